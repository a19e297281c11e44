//! How many flows run at once, and how often is one tried?

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::Mode;

/// The limits of an update.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Settings {
    permits: NonZeroUsize,
    /// `None`: what is usual in the mode.
    max_flow_retry_attempts: Option<u32>,
    first_wait: Duration,
    longest_wait: Duration,
}

impl Default for Settings {
    /// 16 flows at once; two retries in triggered mode, no limit in continuous mode; the first one after 5 seconds,
    /// waits of one hour at most.
    fn default() -> Self {
        Self {
            permits: NonZeroUsize::MIN.saturating_add(15),
            max_flow_retry_attempts: None,
            first_wait: Duration::from_secs(5),
            longest_wait: Duration::from_hours(1),
        }
    }
}

impl Settings {
    /// Sets how many flows may run at once.
    #[must_use]
    pub fn with_permits(mut self, permits: NonZeroUsize) -> Self {
        self.permits = permits;
        self
    }

    /// Sets how often a flow is tried again after a retryable error (`pipelines.maxFlowRetryAttempts`), in either mode.
    #[must_use]
    pub fn with_max_flow_retry_attempts(mut self, retries: u32) -> Self {
        self.max_flow_retry_attempts = Some(retries);
        self
    }

    /// Sets the wait before the first retry, which doubles with each further one, and the longest wait.
    #[must_use]
    pub fn with_backoff(mut self, first_wait: Duration, longest_wait: Duration) -> Self {
        self.first_wait = first_wait;
        self.longest_wait = longest_wait;
        self
    }

    /// How many flows may run at once. A flow that has caught up in continuous mode counts no more.
    pub fn permits(&self) -> usize {
        self.permits.get()
    }

    /// How long to wait after the failure of that attempt (from 1); `None` when it was the last one.
    pub fn wait_after(&self, mode: Mode, attempt: u32) -> Option<Duration> {
        let usual = match mode {
            Mode::Triggered => 2,
            Mode::Continuous => u32::MAX,
        };
        let doublings = attempt.saturating_sub(1);
        (attempt <= self.max_flow_retry_attempts.unwrap_or(usual))
            .then(|| doubled(self.first_wait, doublings, self.longest_wait))
    }
}

/// A wait that was doubled so often, but is no longer than the longest.
pub(crate) fn doubled(first: Duration, doublings: u32, longest: Duration) -> Duration {
    let factor = 2_u32.checked_pow(doublings).unwrap_or(u32::MAX);
    first.saturating_mul(factor).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r15_waits_double_up_to_the_longest_and_end_with_the_retries() {
        let settings = Settings::default()
            .with_max_flow_retry_attempts(5)
            .with_backoff(Duration::from_secs(1), Duration::from_secs(6));
        let waits: Vec<_> = (1..=6).map(|attempt| settings.wait_after(Mode::Triggered, attempt)).collect();
        let secs = |secs| Some(Duration::from_secs(secs));
        assert_eq!(waits, [secs(1), secs(2), secs(4), secs(6), secs(6), None]);
    }

    #[test]
    fn r15_a_flow_is_retried_twice_by_default_and_huge_attempts_do_not_overflow() {
        let settings = Settings::default();
        let triggered = |settings: &Settings, attempt| settings.wait_after(Mode::Triggered, attempt);
        assert!(triggered(&settings, 2).is_some() && triggered(&settings, 3).is_none());
        let endless = settings.with_max_flow_retry_attempts(u32::MAX);
        assert_eq!(triggered(&endless, u32::MAX), Some(Duration::from_hours(1)));
    }

    #[test]
    fn r15_in_continuous_mode_a_flow_is_retried_for_ever_unless_a_limit_is_set() {
        let settings = Settings::default();
        assert_eq!(settings.wait_after(Mode::Continuous, 1), Some(Duration::from_secs(5)));
        assert_eq!(settings.wait_after(Mode::Continuous, u32::MAX), Some(Duration::from_hours(1)));
        let limited = settings.with_max_flow_retry_attempts(1);
        assert_eq!(limited.wait_after(Mode::Continuous, 2), None);
    }
}
