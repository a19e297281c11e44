//! Which hidden state may be dropped, and what is weaker from then on?
//!
//! By default nothing is: the target stays a function of the set of events for ever. A target whose tombstones
//! expire ([`crate::CdcOptions::tombstones_expire`]) trades that for a bounded side state. What is dropped leaves one trace
//! for the whole table, the *horizon*: the greatest sequence of a collected tombstone. An event that is not newer than the
//! horizon, of a key without a current row, is dropped and counted from then on, for it may be the upsert that the
//! collected tombstone was kept for. So a key that was deleted does not come back; but a late event of a key that was never
//! seen is lost as well if it is older than the horizon. Of a key that was written again after its tombstone went, an
//! older event is taken: under partial updates it can fill a column that nobody set since, which the delete would have
//! kept empty.
//!
//! Interior events are never dropped: as long as late events may come, each of them can be where a run is cut in two.
//!
//! Tombstones that a barrier covers go without a trace. Bitemporal targets never drop anything.

use std::collections::BTreeSet;

use arrow_array::{Array, ArrayRef, RecordBatch, cast::AsArray, types::Int64Type};
use arrow_schema::{DataType, Field};

use crate::{
    barriers::{BarrierKind, Barriers, Keep},
    batch::{RowChanges, Rows},
    columnar::{
        column, gather::column_or_null, ids, keys::KeyIndex, kind_of, kinds, ordinals::ordinals, row_number,
    },
    error::CdcError,
    names,
    side::SideKind,
    spec::{CdcSpec, StoredAs},
};

/// What collecting expired tombstones changes.
#[derive(Debug, Clone)]
pub struct Collected {
    /// Side rows that go.
    pub side: RowChanges,
    /// The barriers from now on: the horizon has moved up to the greatest sequence that went.
    pub barriers: Barriers,
    /// Tombstones that went.
    pub tombstones: u64,
}

impl CdcSpec {
    /// Collects the tombstones among `hidden`, which may be all side rows or some, that were applied before a moment, in
    /// milliseconds since 1970. Tombstones that do not record when they were applied stay, as do those beside a row whose
    /// columns have several authors: they cut off what is inherited. All side rows of a key must be given together.
    ///
    /// # Errors
    /// [`CdcError::SchemaMismatch`] or [`CdcError::InvalidState`] for rows that are no side rows of this flow.
    pub fn collect_tombstones(
        &self,
        hidden: &Rows,
        barriers: &Barriers,
        applied_before: i64,
    ) -> Result<Collected, CdcError> {
        let rows = &hidden.batch;
        let nothing = RecordBatch::new_empty(rows.schema());
        let (mut gone, mut traced) = (Vec::new(), Vec::new());
        let sequence =
            column(rows, &Field::new(names::SEQUENCE_AT, self.sequence_type.clone(), true), "side rows")?;
        if self.stored_as != StoredAs::Bitemporal {
            let expired = Expired { spec: self, rows, sequence: &sequence, applied_before };
            (gone, traced) = expired.tombstones(barriers)?;
        }
        let went = arrow_select::take::take(&sequence, &arrow_array::UInt32Array::from(traced), None)?;
        let barriers = if went.is_empty() {
            barriers.clone()
        } else {
            barriers.with(self, BarrierKind::Horizon, &went, Keep::Greatest)?
        };
        Ok(Collected {
            tombstones: gone.len() as u64,
            side: RowChanges { deletes: ids(&hidden.ids, &gone), inserts: nothing },
            barriers,
        })
    }
}

struct Expired<'a> {
    spec: &'a CdcSpec,
    rows: &'a RecordBatch,
    sequence: &'a ArrayRef,
    applied_before: i64,
}

impl Expired<'_> {
    /// The tombstones that go, and those of them that no barrier covers.
    fn tombstones(&self, barriers: &Barriers) -> Result<(Vec<u32>, Vec<u32>), CdcError> {
        let applied = column_or_null(self.rows, &Field::new(names::APPLIED_AT, DataType::Int64, true))?;
        let applied = applied.as_primitive::<Int64Type>();
        let kinds = kinds(self.rows)?;
        let index = KeyIndex::new(&self.spec.key_columns(self.rows)?)?;
        let kind = |row: usize| kind_of(self.spec, self.rows, &kinds, self.sequence, row);
        let mut authored: BTreeSet<u32> = BTreeSet::new();
        for (row, &group) in index.groups().iter().enumerate() {
            if matches!(kind(row)?, SideKind::Author | SideKind::Snapshot) {
                authored.insert(group);
            }
        }
        let covered = self.covered(barriers)?;
        let (mut gone, mut traced) = (Vec::new(), Vec::new());
        for (row, group) in index.groups().iter().enumerate() {
            let expired = applied.is_valid(row) && applied.value(row) < self.applied_before;
            let covered = covered.get(row) == Some(&true);
            if (expired || covered) && kind(row)? == SideKind::Delete && !authored.contains(group) {
                gone.push(row_number(row));
                traced.extend((!covered).then(|| row_number(row)));
            }
        }
        Ok((gone, traced))
    }

    /// The side rows that lie below a barrier.
    fn covered(&self, barriers: &Barriers) -> Result<Vec<bool>, CdcError> {
        let kinds = [BarrierKind::Truncate, BarrierKind::Snapshot];
        let floors: Vec<ArrayRef> = kinds.into_iter().filter_map(|kind| barriers.greatest(kind)).collect();
        let arrays: Vec<&ArrayRef> = std::iter::once(self.sequence).chain(&floors).collect();
        let at = ordinals(&arrays)?;
        let Some((own, floors)) = at.split_first() else { return Ok(Vec::new()) };
        let floor = floors.iter().flatten().max();
        Ok(own.iter().map(|at| floor.is_some_and(|floor| at < floor)).collect())
    }
}
