//! How many flows run at once, and how often is one tried?

use std::num::NonZeroUsize;
use std::time::Duration;

/// The limits of an update.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Settings {
    permits: NonZeroUsize,
    max_flow_retry_attempts: u32,
    first_wait: Duration,
    longest_wait: Duration,
}

impl Default for Settings {
    /// 16 flows at once, two retries, the first one after 5 seconds, waits of one hour at most.
    fn default() -> Self {
        Self {
            permits: NonZeroUsize::MIN.saturating_add(15),
            max_flow_retry_attempts: 2,
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

    /// Sets how often a flow is tried again after a retryable error (`pipelines.maxFlowRetryAttempts`).
    #[must_use]
    pub fn with_max_flow_retry_attempts(mut self, retries: u32) -> Self {
        self.max_flow_retry_attempts = retries;
        self
    }

    /// Sets the wait before the first retry, which doubles with each further one, and the longest wait.
    #[must_use]
    pub fn with_backoff(mut self, first_wait: Duration, longest_wait: Duration) -> Self {
        self.first_wait = first_wait;
        self.longest_wait = longest_wait;
        self
    }

    /// How many flows may run at once.
    pub fn permits(&self) -> usize {
        self.permits.get()
    }

    /// How long to wait after the failure of that attempt (from 1); `None` when it was the last one.
    pub fn wait_after(&self, attempt: u32) -> Option<Duration> {
        let doublings = attempt.saturating_sub(1);
        (attempt <= self.max_flow_retry_attempts).then(|| {
            let factor = 2_u32.checked_pow(doublings).unwrap_or(u32::MAX);
            self.first_wait.saturating_mul(factor).min(self.longest_wait)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r15_waits_double_up_to_the_longest_and_end_with_the_retries() {
        let settings = Settings::default()
            .with_max_flow_retry_attempts(5)
            .with_backoff(Duration::from_secs(1), Duration::from_secs(6));
        let waits: Vec<_> = (1..=6).map(|attempt| settings.wait_after(attempt)).collect();
        let secs = |secs| Some(Duration::from_secs(secs));
        assert_eq!(waits, [secs(1), secs(2), secs(4), secs(6), secs(6), None]);
    }

    #[test]
    fn r15_a_flow_is_retried_twice_by_default_and_huge_attempts_do_not_overflow() {
        let settings = Settings::default();
        assert!(settings.wait_after(2).is_some() && settings.wait_after(3).is_none());
        let endless = settings.with_max_flow_retry_attempts(u32::MAX);
        assert_eq!(endless.wait_after(u32::MAX), Some(Duration::from_hours(1)));
    }
}
