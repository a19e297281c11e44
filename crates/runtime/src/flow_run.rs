//! How does one flow take everything that its source has, batch by batch, and go on where it stopped?
//!
//! For each batch: write the plan, read the slice, apply it, record it as done. A plan that is not recorded as done runs
//! again first, with the same slice; the target's stamp tells whether anything of it is left to do.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use datafusion::dataframe::DataFrame;
use futures::{FutureExt, StreamExt};
use object_store::ObjectStore;
use serde_json::Value;
use strandline_cdc_core::{CdcSpec, SystemTime};
use strandline_pipeline_sql::{AutoCdc, FlowDefinition, FlowKind, TableDeclaration};
use strandline_table_formats::{
    contract::{Table, TableFormat, WriterId},
    parquet,
    side_state::SideState,
};

use crate::{
    analysis::{FlowAnalysis, Work, change_rows},
    batch::{self, BatchOutcome, Pinned, Writer},
    clock::{milliseconds, rfc3339},
    error::{Error, ErrorKind, Result},
    query::{self, Inputs, SourceInput},
    report::{FlowReport, FlowStatus},
    retention,
    sources::{FileOptions, FileSource, Source, SourceStream, TableSource},
    state::{FlowState, Made, Plan, PlannedBatch, engine_path},
    target::{self, About},
    types::conform,
    update::Context,
};

/// The incarnation of flows that were never refreshed as a whole.
const FIRST_INCARNATION: u64 = 0;

/// The right to change a target, within this process.
type Turn = tokio::sync::OwnedMutexGuard<()>;

/// A flow, ready to take batches.
pub(crate) struct FlowRun<'a> {
    context: &'a Context,
    flow: &'a FlowDefinition,
    analysis: &'a FlowAnalysis,
    state: FlowState,
    source: Box<dyn Source>,
    table: Arc<dyn Table>,
    /// What a CDC flow means for this target.
    spec: Option<CdcSpec>,
    /// Side state of the target; asked for by CDC flows only.
    side: SideState,
    writer: Writer,
    report: FlowReport,
}

/// The columns that were inferred of a flow's source before, if they were.
pub(crate) async fn inferred_schema(store: &Arc<dyn ObjectStore>, flow: &str) -> Result<Option<SchemaRef>> {
    FlowState::new(store, flow, FIRST_INCARNATION).inferred_schema().await
}

/// When a ONCE flow completed, if it did.
pub(crate) async fn completed_at(context: &Context, flow: &str) -> Result<Option<String>> {
    FlowState::new(&context.store, flow, FIRST_INCARNATION).completed_at().await
}

/// Refuses to make a target anew that some flow of it has filled: what that flow took is not taken again.
async fn check_never_filled(context: &Context, flow: &FlowDefinition) -> Result<()> {
    for writer in context.definition.flows.iter().filter(|writer| writer.target == flow.target) {
        let (done, _) = FlowState::new(&context.store, &writer.name, FIRST_INCARNATION).last_done().await?;
        if done > 0 {
            return Err(Error::new(ErrorKind::State, "the target is gone, although a flow has filled it")
                .with("table", &flow.target)
                .with("flow that filled it", &writer.name)
                .with("batches", done)
                .help("restore the table; or give its flows and it new names to build it anew"));
        }
    }
    Ok(())
}

/// Records that a ONCE flow completed.
pub(crate) async fn complete(context: &Context, flow: &str) -> Result<()> {
    FlowState::new(&context.store, flow, FIRST_INCARNATION).complete(rfc3339(context.clock.now())).await
}

/// Where a flow goes on.
struct Resumed {
    next: u64,
    progress: Value,
    gives_up_previous: bool,
}

impl<'a> FlowRun<'a> {
    /// Opens the flow's source and target.
    pub(crate) async fn open(
        context: &'a Context,
        flow: &'a FlowDefinition,
        analysis: &'a FlowAnalysis,
        table: Option<&TableDeclaration>,
    ) -> Result<Self> {
        let state = FlowState::new(&context.store, &flow.name, FIRST_INCARNATION);
        let source = open_source(context.format.as_ref(), analysis).await?;
        let source = if flow.once {
            let now = source.available().await?;
            source.fixed(&state.fixed_input(now).await?)?
        } else {
            source
        };
        if analysis.inferred {
            state.record_schema(&analysis.source_schema).await?;
        }
        let about = About {
            columns: Some(Arc::clone(&analysis.target)),
            comment: table.and_then(|table| table.comment.clone()),
            properties: analysis.properties.verbatim.clone(),
        };
        let format = context.format.as_ref();
        // Two flows of one target must not both create it.
        let turn = context.turn(&flow.target).lock_owned().await;
        if context.format.open(&flow.target).await?.is_none() {
            check_never_filled(context, flow).await?;
        }
        let (table, spec) = match (&analysis.work, &flow.kind) {
            (Work::Cdc(work), FlowKind::AutoCdc(_)) => {
                let (table, spec) = target::cdc_target(format, &flow.target, work, about).await?;
                (table, Some(spec))
            }
            _ => (target::append_target(format, &flow.target, &analysis.target, about).await?, None),
        };
        drop(turn);
        let side = side_state(context, &flow.target, spec.as_ref());
        let id = WriterId {
            pipeline: context.pipeline.clone(),
            flow: flow.name.clone(),
            incarnation: FIRST_INCARNATION,
        };
        let writer = Writer { id, epoch: context.epoch };
        let report = FlowReport::new(&flow.name, &flow.target, FlowStatus::Completed);
        let run = Self { context, flow, analysis, state, source, table, spec, side, writer, report };
        if let Some(target) = run.target().filter(|_| flow.once && !analysis.properties.accept_horizon) {
            retention::check_no_horizon(target).await.map_err(|e| e.with("table", &flow.target))?;
        }
        Ok(run)
    }

    /// The CDC target; `None` for an append flow.
    fn target(&self) -> Option<batch::Target<'_>> {
        let spec = self.spec.as_ref()?;
        Some(batch::Target { spec, table: self.table.as_ref(), side: &self.side, writer: &self.writer })
    }

    /// Takes everything that the source has. The report tells what was done, also when it ends with an error.
    pub(crate) async fn run(mut self) -> (FlowReport, Result<()>) {
        let started = self.context.clock.now();
        let result = self.take_all().await;
        self.report.elapsed = self.context.clock.now().saturating_sub(started);
        (self.report, result)
    }

    async fn take_all(&mut self) -> Result<()> {
        let Resumed { mut next, mut progress, mut gives_up_previous } = self.resume().await?;
        while !self.context.is_stopped() {
            let Some(slice) = self.source.next(&progress).await? else { return Ok(()) };
            let (floor, turn) = self.floor().await?;
            let system_floor = floor.map(|floor| floor_text(&floor)).transpose()?;
            let made = Made { at: rfc3339(self.context.clock.now()), gives_up_previous, system_floor };
            let planned = self.state.plan(next, slice, &progress, made).await?;
            self.take(next, &planned.plan, turn).await?;
            progress = self.source.advance(progress, &planned.plan.slice)?;
            next += 1;
            gives_up_previous = false;
        }
        Ok(())
    }

    /// What a batch that is planned now may not be older than, in system time. It holds as long as no other flow takes its
    /// turn.
    async fn floor(&self) -> Result<(Option<ArrayRef>, Option<Turn>)> {
        match self.target() {
            Some(target) if target.spec.system_time() == SystemTime::Monotonic => {
                let turn = self.context.turn(&self.flow.target).lock_owned().await;
                Ok((batch::system_floor(target).await?, Some(turn)))
            }
            _ => Ok((None, None)),
        }
    }

    /// Finishes the batch that a stopped process may have left, and says where to go on.
    async fn resume(&mut self) -> Result<Resumed> {
        let Some((newest, progress)) = self.state.newest(self.source.as_ref()).await? else {
            return Ok(Resumed { next: 1, progress: self.source.start(), gives_up_previous: false });
        };
        let next = newest.number + 1;
        let (done, _) = self.state.last_done().await?;
        if done < newest.number {
            match self.take(newest.number, &newest.plan, None).await {
                Ok(()) => {}
                // Input that was taken away before anything of it was committed is no longer wanted: plan anew without
                // it. A ONCE flow promised to take all of its input.
                Err(error) if error.kind() == ErrorKind::Gone && !self.flow.once => {
                    self.report.notice = Some(format!("planned input is skipped: {}", error.full_text()));
                    return Ok(Resumed { next, progress, gives_up_previous: true });
                }
                Err(error) => return Err(error),
            }
        }
        let progress = self.source.advance(progress, &newest.plan.slice)?;
        Ok(Resumed { next, progress, gives_up_previous: false })
    }

    /// Takes one batch. The rows of a planned slice are the same whenever they are read.
    async fn take(&mut self, number: u64, plan: &Plan, turn: Option<Turn>) -> Result<()> {
        // The input may be gone by now if the batch landed and only its mark is missing: look for the stamp first.
        let landed = self.table.snapshot().await?.last_batch(&self.writer.id);
        if landed.is_some_and(|landed| landed >= number) {
            return self.state.done(number, rfc3339(self.context.clock.now())).await;
        }
        let outcome = match (self.target(), &self.flow.kind) {
            (Some(target), FlowKind::AutoCdc(cdc)) => {
                self.apply(target, cdc, &PlannedBatch { number, plan: plan.clone() }, turn).await
            }
            _ => self.append(number, &plan.slice).await,
        };
        let outcome = outcome.map_err(|error| error.with("batch", number))?;
        self.state.done(number, rfc3339(self.context.clock.now())).await?;
        self.report.batches += 1;
        self.report.rows_in += outcome.counts.events;
        self.report.add(&outcome.counts);
        self.report.conflicts += outcome.conflicts;
        self.report.bytes_written += outcome.committed.map_or(0, |committed| committed.bytes_written);
        self.context.observer.progressed(&self.report);
        Ok(())
    }

    async fn apply(
        &self,
        target: batch::Target<'_>,
        cdc: &AutoCdc,
        planned: &PlannedBatch,
        turn: Option<Turn>,
    ) -> Result<BatchOutcome> {
        let rows = change_rows(cdc, self.rows(&planned.plan.slice).await?)?.collect().await?;
        let rows = one_batch(&rows, &self.analysis.rows)?;
        let planned_at = milliseconds(&planned.plan.planned_at).ok_or_else(|| {
            Error::new(ErrorKind::State, "a plan does not say when it was made")
                .with("planned_at", &planned.plan.planned_at)
                .help("the state of the flow was changed by hand: restore it")
        })?;
        let pinned = Pinned {
            planned_at: Some(planned_at),
            system_floor: planned.plan.system_floor.as_deref().map(floor_of).transpose()?,
        };
        // Flows of one target take turns within a process, so that conflicts stay rare.
        let turn = match turn {
            Some(turn) => turn,
            None => self.context.turn(&self.flow.target).lock_owned().await,
        };
        let outcome = batch::apply_changes(target, planned.number, &rows, &pinned).await;
        drop(turn);
        outcome
    }

    async fn append(&self, number: u64, slice: &Value) -> Result<BatchOutcome> {
        let rows = || {
            let schema = Arc::clone(&self.analysis.target);
            let rows = async move {
                let rows = self.rows(slice).await?.execute_stream().await?;
                let rows = rows.map(move |batch| conform(&batch.map_err(Error::from)?, &schema));
                Ok(rows.boxed() as SourceStream)
            };
            rows.boxed()
        };
        let mut outcome = batch::append(self.table.as_ref(), &self.writer, number, &rows).await?;
        outcome.counts.events = outcome.counts.upserted;
        Ok(outcome)
    }

    /// The flow's query over one slice.
    async fn rows(&self, slice: &Value) -> Result<DataFrame> {
        let rows = self.source.read(slice).await?;
        let schema = Arc::clone(&self.analysis.source_schema);
        let fitted = {
            let schema = Arc::clone(&schema);
            rows.map(move |batch| conform(&batch?, &schema)).boxed()
        };
        let definition = &self.context.definition;
        let query =
            self.flow.query().ok_or_else(|| Error::new(ErrorKind::Internal, "the flow has no query"))?;
        let tables = query::static_tables(definition, query, self.context.format.as_ref()).await?;
        let inputs = Inputs::batch(&self.analysis.source, schema, fitted, tables)?;
        query::plan(definition, query, &inputs).await
    }
}

/// The side state of a target; of an append target there is none.
pub(crate) fn side_state(context: &Context, target: &str, spec: Option<&CdcSpec>) -> SideState {
    let keys = spec.iter().flat_map(|spec| spec.key_names()).map(str::to_owned).collect();
    SideState::new(Arc::clone(&context.store), engine_path(&["state", target]), keys)
}

/// A value of one row, as it stands in a plan.
fn floor_text(floor: &ArrayRef) -> Result<String> {
    let rows = RecordBatch::try_from_iter_with_nullable([("floor", Arc::clone(floor), true)])?;
    Ok(parquet::to_text(&rows)?)
}

fn floor_of(text: &str) -> Result<ArrayRef> {
    let rows = parquet::from_text(text)
        .map_err(|e| Error::from(e).with("system_floor of a plan, bytes", text.len()))?;
    let floor = rows.columns().first().filter(|_| rows.num_rows() == 1).cloned();
    floor.ok_or_else(|| Error::new(ErrorKind::State, "the system_floor of a plan is no value"))
}

/// Opens what a flow reads batch by batch.
pub(crate) async fn open_source(
    format: &dyn TableFormat,
    analysis: &FlowAnalysis,
) -> Result<Box<dyn Source>> {
    match &analysis.source {
        SourceInput::Files(call) => {
            let declared = Some(Arc::clone(&analysis.source_schema));
            Ok(Box::new(FileSource::open(&call.path, FileOptions::new(call)?, declared).await?))
        }
        SourceInput::Kafka(_) | SourceInput::Foreign(..) => {
            Err(Error::new(ErrorKind::Unsupported, "not supported yet: this kind of source"))
        }
        SourceInput::Table(name, _) => {
            let table = format.open(name).await?.ok_or_else(|| {
                Error::new(ErrorKind::NotFound, "the table that the flow reads does not exist")
                    .with("table", name)
            })?;
            Ok(Box::new(TableSource::open(name, table).await?))
        }
    }
}

/// All rows as one batch in stored types.
fn one_batch(rows: &[RecordBatch], schema: &SchemaRef) -> Result<RecordBatch> {
    let fitted = rows.iter().map(|batch| conform(batch, schema)).collect::<Result<Vec<_>>>()?;
    Ok(concat_batches(schema, &fitted)?)
}
