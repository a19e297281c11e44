//! What does a barrier mean for the rows of an SCD1 target?
//!
//! A row whose sequence lies below the version of a snapshot was in that snapshot, unchanged: else it would be gone. One
//! whose sequence *is* that version was written by the snapshot, unless a change row says that a change wrote it: a
//! change wins against the snapshot of its version, whatever its values are.

use arrow_array::ArrayRef;

use crate::{
    algebra::order::{Op, Ordinal, Position},
    barriers::{BarrierKind, Barriers, Keep},
    batch::ChangeBatch,
    columnar::ordinals::ordinals,
    error::CdcError,
    spec::CdcSpec,
};

/// The greatest barriers of a target.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct Floor {
    truncate: Option<Ordinal>,
    snapshot: Option<Ordinal>,
}

impl Floor {
    /// `truncate` and `snapshot`: ordinals of the greatest barriers of their kind.
    pub(in super::super) fn new(truncate: Option<Ordinal>, snapshot: Option<Ordinal>) -> Self {
        Self { truncate, snapshot }
    }

    /// Where every key is empty.
    pub(in super::super) fn barrier(&self) -> Option<Position> {
        self.truncate.max(self.snapshot).map(|at| Position { at, op: Op::Barrier })
    }

    /// True for an event that a barrier defeats.
    pub(in super::super) fn defeats(&self, at: Ordinal) -> bool {
        self.truncate.max(self.snapshot).is_some_and(|floor| at < floor)
    }

    /// What wrote a stored row of this sequence, and where that stands.
    pub(in super::super) fn written_at(&self, at: Ordinal, has_change_row: bool) -> Position {
        match self.snapshot {
            Some(version) if at < version || (at == version && !has_change_row) => {
                Position { at: version, op: Op::Snapshot }
            }
            _ => Position { at, op: Op::Upsert },
        }
    }

    /// Where an upsert needs a change row beside it.
    pub(in super::super) fn needs_change_row(&self) -> Option<Position> {
        self.snapshot.map(|at| Position { at, op: Op::Upsert })
    }
}

/// The greatest barriers of a target and of a batch, as arrays of length 0 or 1: truncate, snapshot.
pub(in super::super) fn greatest(
    barriers: &Barriers,
    batch: &ChangeBatch,
) -> Result<[ArrayRef; 2], CdcError> {
    let none = || batch.sequence.slice(0, 0);
    let stored = barriers.greatest(BarrierKind::Truncate);
    let truncate = match (stored, &batch.truncate) {
        (Some(stored), Some(new)) => {
            let at = ordinals(&[&stored, new])?;
            let newer = matches!(at.as_slice(), [stored, new] if new > stored);
            if newer { ArrayRef::clone(new) } else { stored }
        }
        (stored, new) => stored.or_else(|| new.clone()).unwrap_or_else(none),
    };
    Ok([truncate, barriers.greatest(BarrierKind::Snapshot).unwrap_or_else(none)])
}

/// The barriers of a target after a batch: the greatest truncate and the greatest snapshot.
pub(in super::super) fn after(
    spec: &CdcSpec,
    barriers: &Barriers,
    batch: &ChangeBatch,
) -> Result<Barriers, CdcError> {
    match &batch.truncate {
        None => Ok(barriers.clone()),
        Some(truncate) => barriers.with(spec, BarrierKind::Truncate, truncate, Keep::Greatest),
    }
}
