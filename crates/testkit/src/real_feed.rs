//! What does a change feed with two clocks, taken from real life, look like?
//!
//! The file holds one JSON object a line; where it lies is the caller's affair.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;

use crate::reference::{Event, Op, Value};

/// One change of one path.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FeedRow {
    /// The key.
    pub path: String,
    /// `U` or `D`.
    pub op: String,
    /// A value; missing in deletes.
    pub mode: Option<String>,
    /// A value: which content the path has. Missing in deletes.
    pub blob: Option<String>,
    /// The order in which the changes were recorded.
    pub n: i64,
    /// Business time; sorts as text.
    pub authored_at: String,
    /// System time; sorts as text.
    pub committed_at: String,
}

/// Which of the feed's clocks orders the changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The order of recording.
    Recorded,
    /// Business time.
    Authored,
    /// Business time, and system time beside it.
    Both,
}

impl FeedRow {
    /// The change as an event of the reference model, with the columns `mode` and `blob`.
    pub fn event(&self, clock: Clock) -> Event {
        let op = if self.op == "D" { Op::Delete } else { Op::Upsert };
        let seq = match clock {
            Clock::Recorded => Value::Int(self.n),
            Clock::Authored | Clock::Both => Value::text(&self.authored_at),
        };
        let values = [("mode", &self.mode), ("blob", &self.blob)];
        let values = values.map(|(name, value)| (name.to_owned(), value.as_deref().into()));
        let values = if op == Op::Delete { [].into() } else { values.into() };
        let sys = (clock == Clock::Both).then(|| Value::text(&self.committed_at));
        Event { key: vec![Value::text(&self.path)], seq, op, values, authored: None, sys }
    }
}

/// Reads a feed from a file of JSON lines.
///
/// # Errors
/// The file cannot be read, or a line is no row of a feed.
pub fn load(file: &Path) -> io::Result<Vec<FeedRow>> {
    let lines = BufReader::new(File::open(file)?).lines();
    lines.map(|line| Ok(serde_json::from_str(&line?)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_row() {
        let line = r#"{"n": 1, "path": "a", "op": "D", "mode": null, "authored_at": "2014", "committed_at": "2015"}"#;
        let row: FeedRow = serde_json::from_str(line).unwrap();
        let event = row.event(Clock::Both);
        assert_eq!((event.op, event.seq, event.sys), (Op::Delete, "2014".into(), Some("2015".into())));
        assert!(event.values.is_empty());
    }
}
