//! What goes into [`crate::CdcSpec::reconcile`] and what comes out: Arrow rows, with opaque row ids.

mod authored;
mod barrier;
mod input;
mod proposal;
mod validate;

pub(crate) use validate::{check_sequence, kept_rows};

pub use input::ChangeInput;
pub use proposal::Proposal;

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::SchemaRef;

use crate::{algebra::order::Op, barriers::Barriers};

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
    /// What holds for every key. Stored with the side rows, and versioned with them.
    pub barriers: Barriers,
    /// Whether the plan had no bound for the target's rows, so that all of its keys' rows are here.
    pub complete: bool,
}

impl Prior {
    /// What is known of a target that has no rows yet.
    pub fn empty(spec: &crate::CdcSpec) -> Self {
        Self {
            visible: Rows::empty(SchemaRef::clone(spec.target_schema())),
            hidden: Rows::empty(SchemaRef::clone(spec.side_schema())),
            barriers: Barriers::none(),
            complete: true,
        }
    }
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
    /// The distinct keys of the batch: key columns in declared order, canonical values. `None` for every key there is:
    /// the batch holds a barrier.
    pub keys: Option<RecordBatch>,
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
    /// One value a key of [`ReadPlan::keys`], in the same order; one value for all without keys.
    pub at_least: ArrayRef,
    /// Rows of key `i` whose column of this name lies above `until[i]` are not needed either, but for the first of them.
    pub until: Option<(String, ArrayRef)>,
}

/// Outcome of reconciling a batch with what was read.
#[derive(Debug, Clone)]
#[must_use]
pub enum Reconciliation {
    /// What must change.
    Done(Reconciled),
    /// The plan asked for too little to decide: a tie, an inherited value. Read again with this plan, then reconcile again,
    /// with [`Prior::complete`] as this plan says.
    ReadMore(ReadPlan),
}

/// Row-level effects of a batch, as values. Unchanged rows are never in it.
#[derive(Debug, Clone)]
pub struct Reconciled {
    /// Effects on the target.
    pub target: RowChanges,
    /// Effects on the side rows.
    pub side: RowChanges,
    /// The barriers from now on; equal to those of the prior when nothing of them changed.
    pub barriers: Barriers,
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
    /// Events older than a truncate or a snapshot that was known before the batch, or is part of it.
    pub barrier_defeated: u64,
    /// Events of keys without a current row that are not newer than the horizon of collected tombstones: they
    /// were dropped.
    pub horizon_dropped: u64,
    /// Bitemporal: stored rows whose belief at a system time that was known already changed.
    pub past_beliefs_rewritten: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.events = self.events.saturating_add(other.events);
        self.upserted = self.upserted.saturating_add(other.upserted);
        self.deleted = self.deleted.saturating_add(other.deleted);
        self.late = self.late.saturating_add(other.late);
        self.tied = self.tied.saturating_add(other.tied);
        self.tombstone_defeated = self.tombstone_defeated.saturating_add(other.tombstone_defeated);
        self.barrier_defeated = self.barrier_defeated.saturating_add(other.barrier_defeated);
        self.horizon_dropped = self.horizon_dropped.saturating_add(other.horizon_dropped);
        self.past_beliefs_rewritten =
            self.past_beliefs_rewritten.saturating_add(other.past_beliefs_rewritten);
    }
}

/// The change events of one batch, validated: kept columns in canonical form, a sequence each, and what each does.
#[derive(Debug, Clone)]
pub struct ChangeBatch {
    /// Kept columns. The values of events that are no upserts mean nothing.
    pub(crate) rows: RecordBatch,
    pub(crate) sequence: ArrayRef,
    /// Bitemporal: when each event became known, and what it said itself where that was clamped.
    pub(crate) system: Option<SystemSequence>,
    pub(crate) ops: Vec<Op>,
    /// Truncates: the greatest sequence of them, as an array of length 1. Their rows are not among the others.
    pub(crate) truncate: Option<ArrayRef>,
    pub(crate) truncates: u64,
    /// For the rows of a snapshot: its version, as an array of length 1.
    pub(crate) snapshot: Option<ArrayRef>,
    /// Per leaf of the payload, the events that set it; `None` when every upsert sets the whole row.
    pub(crate) authored: Option<Vec<BooleanBuffer>>,
    /// Milliseconds since 1970.
    pub(crate) applied_at: Option<i64>,
}

/// System sequences of a batch.
#[derive(Debug, Clone)]
pub(crate) struct SystemSequence {
    pub(crate) at: ArrayRef,
    pub(crate) given: ArrayRef,
}

impl ChangeBatch {
    /// Number of events.
    pub fn len(&self) -> usize {
        self.rows.num_rows().saturating_add(usize::try_from(self.truncates).unwrap_or(usize::MAX))
    }

    /// True when there is no event.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
