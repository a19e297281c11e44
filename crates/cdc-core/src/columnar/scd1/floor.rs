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

/// The greatest barriers of a target, and of a batch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Floor {
    /// Of both.
    truncate: Option<Ordinal>,
    /// Of the target: what its rows were written under.
    snapshot: Option<Ordinal>,
    /// Of both: what its rows will stand under.
    new_snapshot: Option<Ordinal>,
}

impl Floor {
    pub(super) fn new(
        truncate: Option<Ordinal>,
        snapshot: Option<Ordinal>,
        new_snapshot: Option<Ordinal>,
    ) -> Self {
        Self { truncate, snapshot, new_snapshot }
    }

    /// Where every key is empty.
    pub(super) fn barrier(&self) -> Option<Position> {
        self.truncate.max(self.new_snapshot).map(|at| Position { at, op: Op::Barrier })
    }

    /// True for an event that a barrier defeats.
    pub(super) fn defeats(&self, event: Position) -> bool {
        self.barrier().is_some_and(|barrier| event < barrier)
    }

    /// What wrote a stored row of this sequence, and where that stands.
    pub(super) fn written_at(&self, at: Ordinal, has_change_row: bool) -> Position {
        match self.snapshot {
            Some(version) if at < version || (at == version && !has_change_row) => {
                Position { at: version, op: Op::Snapshot }
            }
            _ => Position { at, op: Op::Upsert },
        }
    }

    /// Where an upsert needs a change row beside it.
    pub(super) fn needs_change_row(&self) -> Option<Position> {
        self.new_snapshot.map(|at| Position { at, op: Op::Upsert })
    }
}

/// The greatest barriers as arrays of length 0 or 1: truncates of both the target and a batch, snapshots of the target,
/// snapshots of both.
pub(super) fn greatest(barriers: &Barriers, batch: &ChangeBatch) -> Result<[ArrayRef; 3], CdcError> {
    let or_none = |array: Option<ArrayRef>| array.unwrap_or_else(|| batch.sequence.slice(0, 0));
    let stored = barriers.greatest(BarrierKind::Snapshot);
    let truncate = larger(barriers.greatest(BarrierKind::Truncate), batch.truncate.clone())?;
    let snapshot = larger(stored.clone(), batch.snapshot.clone())?;
    Ok([or_none(truncate), or_none(stored), or_none(snapshot)])
}

fn larger(stored: Option<ArrayRef>, new: Option<ArrayRef>) -> Result<Option<ArrayRef>, CdcError> {
    let (Some(stored), Some(new)) = (&stored, &new) else { return Ok(stored.or(new)) };
    let at = ordinals(&[stored, new])?;
    let newer = matches!(at.as_slice(), [stored, new] if new > stored);
    Ok(Some(ArrayRef::clone(if newer { new } else { stored })))
}

/// The barriers of a target after a batch: the greatest truncate and the greatest snapshot.
pub(super) fn after(spec: &CdcSpec, barriers: &Barriers, batch: &ChangeBatch) -> Result<Barriers, CdcError> {
    let mut after = barriers.clone();
    for (kind, new) in [(BarrierKind::Truncate, &batch.truncate), (BarrierKind::Snapshot, &batch.snapshot)] {
        if let Some(new) = new {
            after = after.with(spec, kind, new, Keep::Greatest)?;
        }
    }
    Ok(after)
}
