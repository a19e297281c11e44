//! What does a large change feed look like, the same on every run?

use std::collections::BTreeMap;

use crate::random::{Random, mix};
use crate::reference::{Event, Op, Value};

/// A large feed. Two equal workloads give equal changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Where chance starts.
    pub seed: u64,
    /// How many changes there are.
    pub changes: u64,
    /// How many changes come in a batch.
    pub batch: u64,
    /// Keys are `0..keys`.
    pub keys: u64,
    /// Of a hundred changes, how many go to the first hundredth of the keys.
    pub hot: u8,
    /// Of a hundred changes, how many are deletes.
    pub deletes: u8,
    /// Of a hundred changes, how many come late.
    pub late: u8,
    /// How far back a late change lies, at most.
    pub lateness: u64,
    /// Of a hundred changes, how many repeat the change before.
    pub duplicates: u8,
    /// Values are `0..values`.
    pub values: u64,
}

impl Default for Workload {
    /// A hundred batches of a thousand changes of ten thousand keys, some of everything.
    fn default() -> Self {
        Self {
            seed: 1,
            changes: 100_000,
            batch: 1_000,
            keys: 10_000,
            hot: 20,
            deletes: 5,
            late: 5,
            lateness: 5_000,
            duplicates: 1,
            values: 100,
        }
    }
}

/// One change. Its values are computed, so that a change needs no heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: u64,
    /// The sequence, from 1.
    pub seq: u64,
    /// Whether this is a delete.
    pub delete: bool,
    payload: u64,
    values: u64,
}

impl Change {
    /// The value of a column, counted from 0. Two changes of one key and sequence have equal values.
    pub fn value(&self, column: u64) -> u64 {
        mix(self.payload ^ mix(column)) % self.values.max(1)
    }

    /// The change as an event of the reference model, with the columns `c0`, `c1`, ..
    pub fn event(&self, columns: u64) -> Event {
        let int = |number: u64| Value::Int(number.try_into().unwrap_or(i64::MAX));
        let columns = if self.delete { 0 } else { columns };
        let values: BTreeMap<_, _> = (0..columns).map(|at| (format!("c{at}"), int(self.value(at)))).collect();
        let op = if self.delete { Op::Delete } else { Op::Upsert };
        Event { key: vec![int(self.key)], seq: int(self.seq), op, values, authored: None, sys: None }
    }
}

impl Workload {
    /// The changes, batch by batch.
    pub fn batches(&self) -> impl Iterator<Item = Vec<Change>> + use<> {
        let batch = self.batch.max(1);
        let (changes, mut state) = (self.changes, State::new(self));
        (0..changes.div_ceil(batch)).map(move |number| {
            let from = number * batch;
            (from..changes.min(from + batch)).map(|at| state.next(at + 1)).collect()
        })
    }
}

struct State {
    workload: Workload,
    random: Random,
    last: Option<Change>,
}

impl State {
    fn new(workload: &Workload) -> Self {
        Self { workload: workload.clone(), random: Random::new(workload.seed), last: None }
    }

    fn next(&mut self, at: u64) -> Change {
        if self.random.happens(self.workload.duplicates)
            && let Some(last) = self.last
        {
            return last;
        }
        let hot = self.random.happens(self.workload.hot);
        let keys = if hot { self.workload.keys / 100 } else { self.workload.keys };
        let key = self.random.below(keys);
        let back = if self.random.happens(self.workload.late) {
            self.random.below(self.workload.lateness) + 1
        } else {
            0
        };
        let seq = at.saturating_sub(back).max(1);
        let delete = self.random.happens(self.workload.deletes);
        let payload = mix(mix(key) ^ seq);
        let change = Change { key, seq, delete, payload, values: self.workload.values };
        self.last = Some(change);
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_repeats_itself_and_has_some_of_everything() {
        let workload = Workload::default();
        let changes: Vec<Change> = workload.batches().flatten().collect();
        assert_eq!(changes.len(), 100_000);
        assert!(changes.iter().copied().eq(workload.batches().flatten()));
        assert_eq!(workload.batches().map(|batch| batch.len()).max(), Some(1_000));
        let share = |count: usize| count * 100 / changes.len();
        assert!((3..8).contains(&share(changes.iter().filter(|change| change.delete).count())));
        let late = changes.windows(2).filter(|pair| pair[1].seq < pair[0].seq).count();
        assert!((3..8).contains(&share(late)));
        let other = Workload { seed: 2, ..workload };
        assert!(!changes.iter().copied().eq(other.batches().flatten()));
    }
}
