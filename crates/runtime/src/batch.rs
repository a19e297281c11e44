//! How does one micro-batch get into its target, once?
//!
//! ```text
//! look up     prior rows of the batch's keys (a snapshot: of all): target at its newest version, state at the version that this one names
//! reconcile   strandline-cdc-core
//! write       data files, state files, state manifest v: nothing of it visible yet
//! commit      the target, once, with a stamp (flow, incarnation, n, v, epoch)
//! ```
//!
//! One commit decides. If another writer moved the target in between, everything from the look-up on happens again on
//! the new version: the rows of a target are a function of the set of events, so the order of the two does not matter.

use std::sync::{Arc, Mutex};

use arrow_array::{ArrayRef, RecordBatch, cast::AsArray};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use futures::{StreamExt, TryStreamExt, future::BoxFuture, stream};
use strandline_cdc_core::{
    BarrierKind, Barriers, CdcSpec, ChangeBatch, ChangeInput, Counts, Lookup, Prior, ReadPlan, Reconciled,
    Reconciliation, Rows, SnapshotBatch, SnapshotRules, SystemTime,
};
use strandline_table_formats::{
    contract::{
        BatchStream, CommitOutcome, CommitStamp, Committed, LookupPlan, RowStream, StateVersion, Table,
        TableChange, TableSnapshot, WriterId,
    },
    error::{Error as TableError, ErrorKind as TableErrorKind},
    parquet::ReadCounts,
    side_state::{SideState, StateSnapshot},
};

use crate::{
    analysis::{DELETE, RETRACT, SEQUENCE, SYSTEM_SEQUENCE, TRUNCATE, VALID_TO},
    error::{Error, ErrorKind, Result},
    expectations::Dropped,
    report::DataQuality,
    sources::SourceStream,
    types::conform,
};

/// Conflicts with other writers in a row before a batch gives up.
pub(crate) const ATTEMPTS: usize = 20;

/// Reads of one batch: a narrow one, and wider ones.
const READS: usize = 4;

/// Who commits, and as what.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    pub(crate) id: WriterId,
    pub(crate) epoch: u64,
}

impl Writer {
    pub(crate) fn stamp(&self, batch: u64, state: StateVersion) -> CommitStamp {
        CommitStamp { writer: self.id.clone(), batch, state, epoch: self.epoch }
    }
}

/// What a batch did.
#[derive(Debug, Clone, Default)]
pub(crate) struct BatchOutcome {
    pub(crate) counts: Counts,
    pub(crate) committed: Option<Committed>,
    pub(crate) conflicts: u64,
    /// Rows given to the target; `None` for changes, which are counted otherwise.
    pub(crate) output_rows: Option<u64>,
    /// It was in the target before: nothing of it counts again.
    pub(crate) landed_before: bool,
    /// What the constraints of the target found.
    pub(crate) quality: Option<DataQuality>,
    /// What was read of the target's data files, and of those beside it.
    pub(crate) read: ReadCounts,
}

/// A CDC target, and who writes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) spec: &'a CdcSpec,
    pub(crate) table: &'a dyn Table,
    pub(crate) side: &'a SideState,
    pub(crate) writer: &'a Writer,
}

impl Target<'_> {
    /// What was read of it until now.
    fn read(&self) -> ReadCounts {
        self.table.read_counts() + self.side.read_counts()
    }
}

/// What is fixed when a batch is planned, so that it is the same batch whenever it is applied.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pinned {
    /// When the plan was made, in milliseconds since 1970.
    pub(crate) planned_at: Option<i64>,
    /// See [`system_floor`].
    pub(crate) system_floor: Option<ArrayRef>,
}

/// What a batch brings to a CDC target.
#[derive(Debug, Clone, Copy)]
enum Incoming<'a> {
    /// Changes, and rows that constraints took out before.
    Changes(&'a ChangeBatch, Option<&'a Dropped>),
    Snapshot(&'a SnapshotBatch, &'a SnapshotRules),
}

/// Applies change rows to a CDC target. `rows` have the source's columns, [`SEQUENCE`] and what else the flow's clauses
/// say, see [`crate::analysis::change_rows`]. `dropped` are rows that the target's constraints took out before.
pub(crate) async fn apply_changes(
    target: Target<'_>,
    number: u64,
    rows: &RecordBatch,
    pinned: &Pinned,
    dropped: Option<&Dropped>,
) -> Result<BatchOutcome> {
    let changes = ChangeBatch::of(target.spec, &change_input(rows, pinned)?)?;
    if changes.is_empty() {
        quarantine(dropped, number).await?;
        return Ok(BatchOutcome::default());
    }
    settle(target, number, Incoming::Changes(&changes, dropped)).await
}

/// Makes a CDC target show a snapshot too.
pub(crate) async fn apply_snapshot(
    target: Target<'_>,
    number: u64,
    image: &SnapshotBatch,
    rules: &SnapshotRules,
) -> Result<BatchOutcome> {
    settle(target, number, Incoming::Snapshot(image, rules)).await
}

async fn settle(target: Target<'_>, number: u64, incoming: Incoming<'_>) -> Result<BatchOutcome> {
    let before = target.read();
    let outcome = settled(target, number, incoming).await?;
    Ok(BatchOutcome { read: target.read() - before, ..outcome })
}

/// Reads, reconciles and commits, until no other writer comes in between.
async fn settled(target: Target<'_>, number: u64, incoming: Incoming<'_>) -> Result<BatchOutcome> {
    let Target { spec, table, side, writer } = target;
    let mut outcome = BatchOutcome::default();
    for _ in 0..ATTEMPTS {
        let base = table.snapshot().await?;
        if base.last_batch(&writer.id).is_some_and(|last| last >= number) {
            return Ok(BatchOutcome { landed_before: true, ..BatchOutcome::default() });
        }
        let state = side.open(base.state_version()).await?;
        let barriers = stored_barriers(spec, &state)?;
        let known = Known { base: base.as_ref(), state: &state, barriers: &barriers };
        let Reconciled { target, side: hidden_changes, barriers: after, counts } = match incoming {
            Incoming::Changes(changes, dropped) => {
                let reconciled = known.reconcile(spec, changes).await?;
                quarantine(dropped, number).await?;
                reconciled
            }
            Incoming::Snapshot(image, rules) => {
                let prior = known.prior(spec, &spec.snapshot_plan(image)).await?;
                spec.reconcile_snapshot(&prior, image, rules)?
            }
        };
        outcome.counts = counts;
        if target.is_empty() && hidden_changes.is_empty() && after == barriers {
            return Ok(outcome);
        }
        let version = side.write(&state, &hidden_changes, after.rows()).await?;
        let change =
            TableChange::Rows { deletes: target.deletes.values().to_vec(), inserts: vec![target.inserts] };
        match table.commit(base.as_ref(), change, &writer.stamp(number, version)).await? {
            CommitOutcome::Committed(committed) => {
                outcome.committed = Some(committed);
                return Ok(outcome);
            }
            CommitOutcome::AlreadyApplied { .. } => {
                return Ok(BatchOutcome { landed_before: true, ..BatchOutcome::default() });
            }
            CommitOutcome::Conflict { .. } => outcome.conflicts += 1,
        }
    }
    Err(busy_target())
}

/// A target as it is, and what it remembers.
struct Known<'a> {
    base: &'a dyn TableSnapshot,
    state: &'a StateSnapshot,
    barriers: &'a Barriers,
}

impl Known<'_> {
    /// Reads what the changes need and reconciles; a narrow read may not be enough, and is widened then.
    async fn reconcile(&self, spec: &CdcSpec, changes: &ChangeBatch) -> Result<Reconciled> {
        // Another flow may have moved system time on since the plan was made. Nothing of this batch has landed.
        let changes = match self.barriers.greatest(BarrierKind::SystemTime) {
            Some(floor) => changes.clone().learned_from(spec, &floor)?,
            None => changes.clone(),
        };
        let mut wanted = spec.read_plan(&changes)?;
        let hidden = self.hidden(spec, &wanted).await?;
        for _ in 0..READS {
            let prior = self.prior_with(spec, &wanted, hidden.clone()).await?;
            match spec.reconcile(&prior, &changes)? {
                Reconciliation::Done(reconciled) => return Ok(reconciled),
                Reconciliation::ReadMore(more) => wanted = more,
            }
        }
        Err(Error::new(ErrorKind::Internal, "a batch can't be decided from the rows of its keys")
            .with("reads", READS))
    }

    async fn prior(&self, spec: &CdcSpec, plan: &ReadPlan) -> Result<Prior> {
        self.prior_with(spec, plan, self.hidden(spec, plan).await?).await
    }

    async fn hidden(&self, spec: &CdcSpec, plan: &ReadPlan) -> Result<Rows> {
        rows_of(self.state.lookup(&lookup(plan, &plan.hidden)).await?, spec.side_schema()).await
    }

    async fn prior_with(&self, spec: &CdcSpec, plan: &ReadPlan, hidden: Rows) -> Result<Prior> {
        // The table may lack columns that the flow has, and name parts of nested ones otherwise.
        let schema = narrowed(spec.target_schema(), plan.visible.columns.as_deref())?;
        let mut lookup = lookup(plan, &plan.visible);
        let stored = self.base.schema();
        if let Some(columns) = &mut lookup.columns {
            columns.retain(|name| stored.field_with_name(name).is_ok());
        }
        let visible = rows_of(self.base.lookup(&lookup).await?, &schema).await?;
        let visible = Rows { batch: conform(&visible.batch, &schema)?, ids: visible.ids };
        Ok(Prior { visible, hidden, barriers: self.barriers.clone(), complete: plan.visible.bound.is_none() })
    }
}

/// What the batch's constraints dropped is committed before its other rows, so that none of it can be missing.
async fn quarantine(dropped: Option<&Dropped>, number: u64) -> Result<()> {
    match dropped {
        Some(dropped) => dropped.commit(number).await,
        None => Ok(()),
    }
}

/// The events that change rows say.
pub(crate) fn change_input<'a>(rows: &'a RecordBatch, pinned: &'a Pinned) -> Result<ChangeInput<'a>> {
    let sequence = rows
        .column_by_name(SEQUENCE)
        .ok_or_else(|| Error::new(ErrorKind::Internal, "the change rows have no sequence column"))?;
    // A condition that is NULL for every row has no type of its own, and holds for none.
    let condition = |name: &str| rows.column_by_name(name).and_then(|column| column.as_boolean_opt());
    Ok(ChangeInput {
        system_sequence: rows.column_by_name(SYSTEM_SEQUENCE),
        deletes: condition(DELETE),
        truncates: condition(TRUNCATE),
        retracts: condition(RETRACT),
        valid_to: rows.column_by_name(VALID_TO),
        applied_at: pinned.planned_at,
        system_floor: pinned.system_floor.as_ref(),
        ..ChangeInput::new(rows, sequence)
    })
}

/// For a target with monotonic system time: the greatest system sequence that it has seen, as an array of length 1.
pub(crate) async fn system_floor(target: Target<'_>) -> Result<Option<ArrayRef>> {
    if target.spec.system_time() != SystemTime::Monotonic {
        return Ok(None);
    }
    let barriers = barriers(target).await?;
    Ok(barriers.greatest(BarrierKind::SystemTime))
}

/// What holds for every key of the target, as it is now.
pub(crate) async fn barriers(target: Target<'_>) -> Result<Barriers> {
    let base = target.table.snapshot().await?;
    let state = target.side.open(base.state_version()).await?;
    stored_barriers(target.spec, &state)
}

pub(crate) fn stored_barriers(spec: &CdcSpec, state: &StateSnapshot) -> Result<Barriers> {
    match state.barriers() {
        Some(rows) => Ok(Barriers::from_rows(spec, rows)?),
        None => Ok(Barriers::none()),
    }
}

fn lookup(plan: &ReadPlan, what: &Lookup) -> LookupPlan {
    LookupPlan { keys: plan.keys.clone(), columns: what.columns.clone(), bound: what.bound.clone() }
}

fn narrowed(schema: &SchemaRef, columns: Option<&[String]>) -> Result<SchemaRef> {
    let Some(columns) = columns else { return Ok(Arc::clone(schema)) };
    let places: Vec<usize> = columns.iter().filter_map(|name| schema.index_of(name).ok()).collect();
    Ok(Arc::new(schema.project(&places)?))
}

pub(crate) async fn rows_of(rows: RowStream, schema: &SchemaRef) -> Result<Rows> {
    let parts: Vec<Rows> = rows.try_collect().await?;
    let Some(first) = parts.first() else { return Ok(Rows::empty(Arc::clone(schema))) };
    let batch = concat_batches(&first.batch.schema(), parts.iter().map(|rows| &rows.batch))?;
    let ids = parts.iter().flat_map(|rows| rows.ids.values().iter().copied()).collect::<Vec<_>>().into();
    Ok(Rows { batch, ids })
}

/// Appends rows to a table, unless there are none. `rows` is called once an attempt.
pub(crate) async fn append<'a>(
    table: &dyn Table,
    writer: &Writer,
    number: u64,
    rows: &(dyn Fn() -> BoxFuture<'a, Result<SourceStream>> + Send + Sync),
) -> Result<BatchOutcome> {
    let mut outcome = BatchOutcome::default();
    for _ in 0..ATTEMPTS {
        let base = table.snapshot().await?;
        if base.last_batch(&writer.id).is_some_and(|last| last >= number) {
            return Ok(BatchOutcome { landed_before: true, ..BatchOutcome::default() });
        }
        let Some(rows) = unless_empty(rows().await?).await? else { return Ok(outcome) };
        let stamp = writer.stamp(number, base.state_version());
        let failure = Failure::default();
        let change = TableChange::Append(failure.watch(rows));
        match table.commit(base.as_ref(), change, &stamp).await.map_err(|error| failure.or(error))? {
            CommitOutcome::Committed(committed) => {
                outcome.counts.upserted = committed.rows_written;
                outcome.committed = Some(committed);
                return Ok(outcome);
            }
            CommitOutcome::AlreadyApplied { .. } => {
                return Ok(BatchOutcome { landed_before: true, ..BatchOutcome::default() });
            }
            CommitOutcome::Conflict { .. } => outcome.conflicts += 1,
        }
    }
    Err(busy_target())
}

/// Puts rows in the place of all that a table holds. `rows` is called once an attempt; `change` says how they come.
pub(crate) async fn replace<'a>(
    table: &dyn Table,
    writer: &Writer,
    number: u64,
    rows: &(dyn Fn() -> BoxFuture<'a, Result<SourceStream>> + Send + Sync),
    change: &(dyn Fn(BatchStream) -> TableChange + Send + Sync),
) -> Result<BatchOutcome> {
    let mut outcome = BatchOutcome::default();
    for _ in 0..ATTEMPTS {
        let base = table.snapshot().await?;
        if base.last_batch(&writer.id).is_some_and(|last| last >= number) {
            return Ok(BatchOutcome { landed_before: true, ..BatchOutcome::default() });
        }
        let stamp = writer.stamp(number, base.state_version());
        let failure = Failure::default();
        let change = change(failure.watch(rows().await?));
        match table.commit(base.as_ref(), change, &stamp).await.map_err(|error| failure.or(error))? {
            CommitOutcome::Committed(committed) => {
                outcome.counts.upserted = committed.rows_written;
                outcome.committed = Some(committed);
                return Ok(outcome);
            }
            CommitOutcome::AlreadyApplied { .. } => {
                return Ok(BatchOutcome { landed_before: true, ..BatchOutcome::default() });
            }
            CommitOutcome::Conflict { .. } => outcome.conflicts += 1,
        }
    }
    Err(busy_target())
}

pub(crate) fn busy_target() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "other writers changed the target again and again while a batch was written",
    )
    .with("attempts", ATTEMPTS)
}

async fn unless_empty(mut rows: SourceStream) -> Result<Option<SourceStream>> {
    while let Some(batch) = rows.next().await.transpose()? {
        if batch.num_rows() > 0 {
            return Ok(Some(stream::once(async { Ok(batch) }).chain(rows).boxed()));
        }
    }
    Ok(None)
}

/// The error that ended a stream of ours while a table read from it: it must come out as it is, not as the table's.
#[derive(Debug, Clone, Default)]
struct Failure(Arc<Mutex<Option<Error>>>);

impl Failure {
    fn watch(&self, rows: SourceStream) -> BatchStream {
        let slot = Arc::clone(&self.0);
        rows.map_err(move |error| {
            let told = TableError::new(TableErrorKind::Invalid, error.to_string());
            if let Ok(mut slot) = slot.lock() {
                slot.get_or_insert(error);
            }
            told
        })
        .boxed()
    }

    fn or(&self, error: TableError) -> Error {
        let own = self.0.lock().ok().and_then(|mut slot| slot.take());
        own.unwrap_or_else(|| error.into())
    }
}
