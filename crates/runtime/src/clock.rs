//! What time is it? The only place that asks.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// A source of time: the machine's in production, a fixed one in tests.
///
/// # Contract
/// Any value may be returned, also one before an earlier one: nothing that is decided by time is decided for good.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Time since 1970-01-01T00:00:00Z.
    fn now(&self) -> Duration;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the place that the rule points to")]
    fn now(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

/// An instant as RFC 3339 text in UTC, to the millisecond.
pub fn rfc3339(since_epoch: Duration) -> String {
    let seconds = i64::try_from(since_epoch.as_secs()).unwrap_or(i64::MAX);
    chrono::DateTime::from_timestamp(seconds, since_epoch.subsec_nanos())
        .map_or_else(|| "?".to_owned(), |at| at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true))
}

/// Milliseconds since 1970 of an instant that [`rfc3339`] wrote; `None` for other text.
pub(crate) fn milliseconds(text: &str) -> Option<i64> {
    chrono::DateTime::parse_from_rfc3339(text).ok().map(|at| at.timestamp_millis())
}
