//! What goes into [`crate::CdcSpec::reconcile`] and what comes out: Arrow rows, with opaque row ids.

mod validate;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, UInt64Array};
use arrow_schema::SchemaRef;

/// Rows that exist already, each with the id under which it can be deleted.
///
/// Ids are opaque here: whoever read the rows gave them, and gets them back in [`RowChanges::deletes`]. They are valid
/// for the version that the rows were read from.
#[derive(Debug, Clone)]
pub struct Rows {
    /// The rows.
    pub batch: RecordBatch,
    /// One id a row.
    pub ids: UInt64Array,
}

impl Rows {
    /// No rows.
    pub fn empty(schema: SchemaRef) -> Self {
        Self { batch: RecordBatch::new_empty(schema), ids: UInt64Array::from(Vec::<u64>::new()) }
    }
}

/// Everything known about the batch's keys before the batch.
///
/// Both may hold more rows than the read plan asked for (rows of other keys, or older ones); they are left alone.
#[derive(Debug, Clone)]
pub struct Prior {
    /// Target rows. Schema: the target's, or only the plan's columns.
    pub visible: Rows,
    /// Side rows. Schema: [`crate::CdcSpec::side_schema`].
    pub hidden: Rows,
}

/// Row-level effects on one store: first the rows with these ids go, then these rows come.
#[derive(Debug, Clone)]
pub struct RowChanges {
    /// Ids of rows that go, as they came in [`Rows::ids`]; each once.
    pub deletes: UInt64Array,
    /// Rows that come.
    pub inserts: RecordBatch,
}

impl RowChanges {
    /// True when nothing changes.
    pub fn is_empty(&self) -> bool {
        self.deletes.is_empty() && self.inserts.num_rows() == 0
    }
}

/// What must be read before a batch is reconciled.
#[derive(Debug, Clone)]
pub struct ReadPlan {
    /// The distinct keys of the batch: key columns in declared order, canonical values.
    pub keys: RecordBatch,
    /// What of the target is needed.
    pub visible: Lookup,
    /// What of the side rows is needed.
    pub hidden: Lookup,
}

/// What one store must return for the keys of a [`ReadPlan`]. Returning more rows is allowed, fewer is not.
#[derive(Debug, Clone)]
pub struct Lookup {
    /// Columns that are needed; `None` for all.
    pub columns: Option<Vec<String>>,
    /// Only rows at or after a bound are needed.
    pub bound: Option<Bound>,
}

/// "Rows of key `i` whose `column` is NULL, or not below `at_least[i]`".
#[derive(Debug, Clone)]
pub struct Bound {
    /// Column with sequence values.
    pub column: String,
    /// One value a key of [`ReadPlan::keys`], in the same order.
    pub at_least: ArrayRef,
}

/// Outcome of reconciling a batch with what was read.
#[derive(Debug, Clone)]
#[must_use]
pub enum Reconciliation {
    /// What must change.
    Done(Reconciled),
    /// The narrow read of [`crate::CdcSpec::read_plan`] does not decide a tie: read again with this plan, then reconcile again.
    ReadMore(ReadPlan),
}

/// Row-level effects of a batch, as values. Unchanged rows are never in it.
#[derive(Debug, Clone)]
pub struct Reconciled {
    /// Effects on the target.
    pub target: RowChanges,
    /// Effects on the side rows.
    pub side: RowChanges,
    /// What happened, counted.
    pub counts: Counts,
}

/// What a batch did, in rows and events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Events in the batch.
    pub events: u64,
    /// Target rows inserted or rewritten.
    pub upserted: u64,
    /// Delete events that removed a row (SCD1) or ended a version (SCD2).
    pub deleted: u64,
    /// Events older than the newest event of their key that was known before the batch.
    pub late: u64,
    /// Upserts that met a different upsert of their key at their own sequence.
    pub tied: u64,
    /// Upserts that a newer delete of their key, known before the batch, kept out of an SCD1 target.
    pub tombstone_defeated: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.events = self.events.saturating_add(other.events);
        self.upserted = self.upserted.saturating_add(other.upserted);
        self.deleted = self.deleted.saturating_add(other.deleted);
        self.late = self.late.saturating_add(other.late);
        self.tied = self.tied.saturating_add(other.tied);
        self.tombstone_defeated = self.tombstone_defeated.saturating_add(other.tombstone_defeated);
    }
}

/// The change events of one batch, validated: kept columns in canonical form, a sequence each, and which are deletes.
#[derive(Debug, Clone)]
pub struct ChangeBatch {
    pub(crate) rows: RecordBatch,
    pub(crate) sequence: ArrayRef,
    pub(crate) deletes: BooleanArray,
}

impl ChangeBatch {
    /// Number of events.
    pub fn len(&self) -> usize {
        self.rows.num_rows()
    }

    /// True when there is no event.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
