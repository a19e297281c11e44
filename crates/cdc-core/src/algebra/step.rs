//! What do the events at one sequence of a key do together, and what is the row after them?
//!
//! Events at one sequence come in the order of when they became known, then of their rank. A delete forgets what was
//! before, in this sequence and in earlier ones; an upsert writes the row or some leaves of it; a retraction takes back
//! what the sequence did so far. What is not written is inherited from the sequence before.

use std::{cmp::Ordering, rc::Rc};

use super::order::Op;

/// What an event writes: a whole row, then some leaves over it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Write<Row> {
    pub(crate) whole: Option<Row>,
    /// Leaf and row with its value, by leaf.
    pub(crate) leaves: Vec<(usize, Row)>,
}

impl<Row: Copy> Write<Row> {
    pub(crate) fn whole(row: Row) -> Self {
        Self { whole: Some(row), leaves: Vec::new() }
    }

    /// This, then another one.
    fn then(&self, next: &Self) -> Self {
        if next.whole.is_some() {
            return next.clone();
        }
        Self { whole: self.whole, leaves: merged(&self.leaves, &next.leaves, |_, _, newer| newer) }
    }
}

/// Two lists of leaves as one; where both have a leaf, `choose` says whose value it has.
pub(crate) fn merged<Row: Copy>(
    old: &[(usize, Row)],
    new: &[(usize, Row)],
    choose: impl Fn(usize, Row, Row) -> Row,
) -> Vec<(usize, Row)> {
    let (mut old, mut new) = (old.iter().copied().peekable(), new.iter().copied().peekable());
    let mut all = Vec::new();
    loop {
        let next = match (old.peek(), new.peek()) {
            (Some(&(a, before)), Some(&(b, after))) => match a.cmp(&b) {
                Ordering::Less => old.next(),
                Ordering::Greater => new.next(),
                Ordering::Equal => {
                    old.next();
                    new.next();
                    Some((a, choose(a, before, after)))
                }
            },
            (Some(_), None) => old.next(),
            (None, _) => new.next(),
        };
        match next {
            Some(leaf) => all.push(leaf),
            None => return all,
        }
    }
}

/// What a sequence does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step<Row> {
    /// Whether what was before is forgotten.
    pub(crate) reset: bool,
    pub(crate) write: Option<Write<Row>>,
}

impl<Row> Default for Step<Row> {
    fn default() -> Self {
        Self { reset: false, write: None }
    }
}

impl<Row: Copy> Step<Row> {
    /// The next event at this sequence.
    pub(crate) fn take(&mut self, op: Op, write: Option<&Write<Row>>) {
        match op {
            Op::Retract => *self = Self::default(),
            Op::Barrier | Op::Delete => *self = Self { reset: true, write: None },
            Op::Snapshot | Op::Upsert => {
                let Some(new) = write else { return };
                self.write = Some(self.write.as_ref().map_or_else(|| new.clone(), |old| old.then(new)));
            }
        }
    }

    /// True when the row after this sequence depends on the one before.
    pub(crate) fn inherits(&self) -> bool {
        !self.reset && self.write.as_ref().is_none_or(|write| write.whole.is_none())
    }

    /// The row after this sequence. `null` is a row whose leaves are NULL.
    pub(crate) fn apply(
        &self,
        before: Option<&Filled<Row>>,
        leaves: usize,
        null: Row,
    ) -> Option<Filled<Row>> {
        let inherited = before.filter(|_| !self.reset);
        let Some(write) = &self.write else { return inherited.cloned() };
        let base = write.whole.map(Filled::Whole);
        let base = base.as_ref().or(inherited);
        if write.leaves.is_empty() {
            return Some(base.cloned().unwrap_or(Filled::Whole(null)));
        }
        let mut filled: Vec<Row> =
            (0..leaves).map(|leaf| base.and_then(|base| base.leaf(leaf)).unwrap_or(null)).collect();
        for &(leaf, row) in &write.leaves {
            if let Some(slot) = filled.get_mut(leaf) {
                *slot = row;
            }
        }
        Some(Filled::Leaves(filled.into()))
    }
}

/// The values of a row: those of one row, or leaf by leaf of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Filled<Row> {
    Whole(Row),
    Leaves(Rc<[Row]>),
}

impl<Row: Copy> Filled<Row> {
    /// The row that has the value of a leaf.
    pub(crate) fn leaf(&self, leaf: usize) -> Option<Row> {
        match self {
            Self::Whole(row) => Some(*row),
            Self::Leaves(rows) => rows.get(leaf).copied(),
        }
    }
}

#[cfg(test)]
#[path = "step_tests.rs"]
mod tests;
