//! The time of day, for logs: people, vacuum and readers of changes want it, nothing here is decided by it.

/// Milliseconds since 1970, UTC.
#[expect(clippy::disallowed_methods, reason = "a table's log says when something was committed")]
pub(crate) fn wall_clock_millis() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
