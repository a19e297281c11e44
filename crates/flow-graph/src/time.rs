//! What time is it?
//!
//! Nobody here looks at a clock: the caller says, in milliseconds since an origin of its choice.

use std::fmt;
use std::time::Duration;

/// A moment, in milliseconds since an origin that the caller chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The moment that lies `wait` later, rounded up to a millisecond; the last representable one if there is none.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        let millis = wait.as_nanos().div_ceil(1_000_000);
        Self(self.0.saturating_add(u64::try_from(millis).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_rounds_up_and_never_wraps() {
        assert_eq!(Timestamp(5).after(Duration::from_millis(7)), Timestamp(12));
        assert_eq!(Timestamp(5).after(Duration::from_nanos(1)), Timestamp(6));
        assert_eq!(Timestamp(5).after(Duration::MAX), Timestamp(u64::MAX));
    }
}
