//! Is an update that failed tried again as a whole, and when?
//!
//! First each flow is tried again for itself ([`Settings`](crate::Settings)). What is left then, where another attempt
//! may help, is the update: all of it runs again, from what is durable.

use std::time::Duration;

use crate::{Mode, UpdateOutcome, settings::doubled};

/// How often an update has been tried, and how often it may be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UpdateAttempts {
    /// Attempts that failed.
    failed: u32,
    /// How often it is tried again; `None` for ever.
    retries: Option<u32>,
    first_wait: Duration,
    longest_wait: Duration,
}

impl UpdateAttempts {
    /// Before the first attempt: five retries in triggered mode, no limit in continuous mode, the first one after 5
    /// seconds, waits of one hour at most.
    pub fn new(mode: Mode) -> Self {
        Self {
            failed: 0,
            retries: match mode {
                Mode::Triggered => Some(5),
                Mode::Continuous => None,
            },
            first_wait: Duration::from_secs(5),
            longest_wait: Duration::from_hours(1),
        }
    }

    /// Sets how often the update is tried again (`pipelines.numUpdateRetryAttempts`); `None` for ever.
    #[must_use]
    pub fn with_retries(mut self, retries: Option<u32>) -> Self {
        self.retries = retries;
        self
    }

    /// Sets the wait before the first retry, which doubles with each further one, and the longest wait.
    #[must_use]
    pub fn with_backoff(mut self, first_wait: Duration, longest_wait: Duration) -> Self {
        self.first_wait = first_wait;
        self.longest_wait = longest_wait;
        self
    }

    /// Takes note of how an attempt ended: how long to wait before the next one, or `None` if that was the last.
    ///
    /// `retryable` is what [`Scheduler::failed_retryably`](crate::Scheduler::failed_retryably) says. An attempt that
    /// completed, was cancelled, or failed for reasons that another attempt can't mend, is the last one.
    #[must_use]
    pub fn after(&mut self, outcome: UpdateOutcome, retryable: bool) -> Option<Duration> {
        let again = outcome == UpdateOutcome::Failed && retryable;
        if !again || self.retries.is_some_and(|retries| self.failed >= retries) {
            return None;
        }
        let wait = doubled(self.first_wait, self.failed, self.longest_wait);
        self.failed = self.failed.saturating_add(1);
        Some(wait)
    }

    /// The number of the attempt that runs or comes next, from 1.
    pub fn attempt(&self) -> u32 {
        self.failed.saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(attempts: &mut UpdateAttempts, times: usize) -> Vec<Option<u64>> {
        let after = |_| attempts.after(UpdateOutcome::Failed, true).map(|wait| wait.as_secs());
        (0..times).map(after).collect()
    }

    #[test]
    fn r15_a_triggered_update_is_tried_again_five_times_with_doubling_waits() {
        let mut attempts = UpdateAttempts::new(Mode::Triggered);
        assert_eq!(attempts.attempt(), 1);
        assert_eq!(waits(&mut attempts, 6), [Some(5), Some(10), Some(20), Some(40), Some(80), None]);
        assert_eq!(attempts.attempt(), 6);
    }

    #[test]
    fn r15_a_continuous_update_is_tried_again_for_ever_and_waits_no_longer_than_the_longest() {
        let (first, longest) = (Duration::from_secs(1), Duration::from_secs(3));
        let mut attempts = UpdateAttempts::new(Mode::Continuous).with_backoff(first, longest);
        assert_eq!(waits(&mut attempts, 4), [Some(1), Some(2), Some(3), Some(3)]);
        assert!(waits(&mut attempts, 1000).iter().all(|wait| *wait == Some(3)));
        let mut never = UpdateAttempts::new(Mode::Continuous).with_retries(Some(0));
        assert_eq!(waits(&mut never, 1), [None]);
    }

    #[test]
    fn r15_what_another_attempt_cannot_mend_is_not_tried_again() {
        let mut attempts = UpdateAttempts::new(Mode::Triggered);
        for (outcome, retryable) in [
            (UpdateOutcome::Failed, false),
            (UpdateOutcome::Completed, true),
            (UpdateOutcome::Canceled, true),
        ] {
            assert_eq!(attempts.after(outcome, retryable), None, "{outcome} {retryable}");
        }
        assert_eq!(attempts.attempt(), 1);
    }
}
