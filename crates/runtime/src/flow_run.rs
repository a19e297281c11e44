//! How does one flow take everything that its source has, batch by batch, and go on where it stopped?
//!
//! For each batch: write the plan, read the slice, apply it, record it as done. A plan that is not recorded as done runs
//! again first, with the same slice; the target's stamp tells whether anything of it is left to do. What becomes of a
//! batch's rows depends on the kind of the flow: see [`Taker`].

mod append;
mod change;
mod checks;
mod images;
mod open;
mod sink;
mod snapshot;
mod view;

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::dataframe::DataFrame;
use futures::StreamExt;
use object_store::ObjectStore;
use serde_json::Value;
use strandline_pipeline_sql::FlowDefinition;
use tracing::{Instrument, info_span};

pub(crate) use change::side_state;
pub(crate) use open::{definition_of, new_source, open_source};

use crate::{
    analysis::{FlowAnalysis, Work},
    batch::BatchOutcome,
    clock::rfc3339,
    error::{Error, ErrorKind, Result},
    query::{self, Inputs, SourceInput},
    report::{FlowReport, FlowStatus, Observer},
    sources::{FileOptions, FileSource, NewColumns, Source},
    state::{FlowState, Made, Plan, PlannedBatch},
    types::conform,
    update::Context,
};

/// The right to change a target, within this process.
type Turn = tokio::sync::OwnedMutexGuard<()>;

/// What becomes of the batches of a flow of one kind.
///
/// # Contract
/// 1. After `take` returned, all of the batch is in the target or, where the target can tell, none of it: taking it
///    again does no harm.
/// 2. `landed` says what the target itself knows, whatever the flow's state says.
#[async_trait]
trait Taker: Send + Sync {
    /// The newest batch of this flow that is in the target; `None` for none, or for a target that can't tell.
    async fn landed(&self) -> Result<Option<u64>>;

    /// What a plan that is made now must fix, and the turn for as long as it holds.
    async fn pin(&self) -> Result<Pin> {
        Ok(Pin::default())
    }

    /// Whether nothing of a batch that failed is left at its target.
    fn forgets(&self) -> bool {
        true
    }

    /// Takes one batch.
    async fn take(
        &self,
        input: &Input<'_>,
        planned: &PlannedBatch,
        turn: Option<Turn>,
    ) -> Result<BatchOutcome>;
}

/// See [`Taker::pin`].
#[derive(Default)]
struct Pin {
    system_floor: Option<ArrayRef>,
    turn: Option<Turn>,
}

/// What a flow reads.
struct Input<'a> {
    context: &'a Context,
    flow: &'a FlowDefinition,
    analysis: &'a FlowAnalysis,
    source: Box<dyn Source + 'a>,
}

impl Input<'_> {
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

/// A flow, ready to take batches.
pub(crate) struct FlowRun<'a> {
    input: Input<'a>,
    taker: Box<dyn Taker + 'a>,
    state: FlowState,
    report: FlowReport,
    /// What earlier attempts of the flow did in this update: those who watch are told sums.
    before: Option<FlowReport>,
    /// The columns of the source when it was opened first.
    opened: SchemaRef,
    /// Whether there was a batch to take, be it one that had landed before.
    had_batch: bool,
}

/// How a flow ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It took all that there was.
    Done,
    /// The update was stopped before.
    Stopped,
}

/// The columns that were inferred of a flow's source before, if they were.
pub(crate) async fn inferred_schema(store: &Arc<dyn ObjectStore>, flow: &str) -> Result<Option<SchemaRef>> {
    FlowState::current(store, flow).await?.inferred_schema().await
}

/// When a ONCE flow completed, if it did.
pub(crate) async fn completed_at(context: &Context, flow: &str) -> Result<Option<String>> {
    FlowState::current(&context.store, flow).await?.completed_at().await
}

/// Records that a ONCE flow completed.
pub(crate) async fn complete(context: &Context, flow: &str) -> Result<()> {
    FlowState::current(&context.store, flow).await?.complete(rfc3339(context.clock.now())).await
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
        before: Option<FlowReport>,
    ) -> Result<Self> {
        let state = FlowState::current(&context.store, &flow.name).await?;
        let source = open::source(context, flow, analysis, &state).await?;
        let source = if flow.once {
            let now = source.available().await?;
            source.fixed(&state.fixed_input(now).await?)?
        } else {
            source
        };
        if let (true, SourceInput::Files(call)) = (analysis.inferred, &analysis.source) {
            let columns = FileSource::recorded(&FileOptions::new(call)?, &analysis.source_schema);
            state.record_schema(&columns).await?;
        }
        if let (true, SourceInput::Kafka(_)) = (analysis.inferred, &analysis.source) {
            state.record_schema(&analysis.source_schema).await?;
        }
        let opened = source.schema();
        let input = Input { context, flow, analysis, source };
        let taker = open::taker(&input, state.incarnation()).await?;
        let report = FlowReport::new(&flow.name, &flow.target, FlowStatus::Completed);
        Ok(Self { input, taker, state, report, before, opened, had_batch: false })
    }

    /// Takes everything that the source has. The report tells what was done, also when it ends with an error.
    pub(crate) async fn run(mut self) -> (FlowReport, Result<Ended>) {
        let clock = Arc::clone(&self.input.context.clock);
        let started = clock.now();
        let result = match self.take_all().await {
            Err(error) if error.kind() == ErrorKind::SchemaEvolved => {
                Err(self.record_new_columns(error).await)
            }
            other => other,
        };
        let is_view = matches!(self.input.analysis.work, Work::View(_));
        if is_view && !self.had_batch && matches!(result, Ok(Ended::Done)) {
            let notice = "nothing that it reads has changed: it was not computed again";
            self.report.notice.get_or_insert_with(|| notice.to_owned());
        }
        self.report.elapsed = clock.now().saturating_sub(started);
        (self.report, result)
    }

    /// Records the columns that a batch was stopped for. Nothing of it is in the target, so it may be read with them.
    async fn record_new_columns(&mut self, error: Error) -> Error {
        let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<NewColumns>());
        let Some(NewColumns { schema, names }) = cause else {
            // A table knows its columns: there is nothing to record.
            self.report.notice = Some(error.full_text());
            return error;
        };
        self.report.notice = Some(format!("the source has new columns: {}", names.join(", ")));
        match self.state.widen_schema(schema).await {
            Ok(()) => error,
            Err(failed) => failed,
        }
    }

    async fn take_all(&mut self) -> Result<Ended> {
        let Resumed { mut next, mut progress, mut gives_up_previous } = self.resume().await?;
        while !self.input.context.is_stopped() {
            let Some(slice) = self.input.source.next(&progress).await? else {
                if !self.waits_for_more() {
                    return Ok(Ended::Done);
                }
                self.wait_for_more().await?;
                continue;
            };
            let context = self.input.context;
            let permit = context.batch_permit().await;
            let Pin { system_floor, turn } = self.taker.pin().await?;
            let system_floor = system_floor.map(|floor| change::floor_text(&floor)).transpose()?;
            let made = Made { at: self.now(), gives_up_previous, system_floor };
            let planned = self.state.plan(next, slice, &progress, made).await?;
            let taken = self.take(next, &planned.plan, turn).await;
            drop(permit);
            next += 1;
            gives_up_previous = match taken {
                Ok(()) => false,
                // In continuous mode nobody starts the flow again: it goes on without what was taken away.
                Err(error) if self.waits_for_more() && self.may_give_up(&error) => true,
                Err(error) => return Err(error),
            };
            if gives_up_previous {
                self.wait_for_more().await?;
            } else {
                progress = self.input.source.advance(progress, &planned.plan.slice)?;
            }
        }
        Ok(Ended::Stopped)
    }

    /// In continuous mode a flow goes on; a ONCE flow ends in any mode.
    fn waits_for_more(&self) -> bool {
        self.input.context.continuous && !self.input.flow.once
    }

    /// Tells that all that was there is taken, and looks again after the trigger interval.
    async fn wait_for_more(&mut self) -> Result<()> {
        let Input { context, flow, analysis, .. } = self.input;
        context.caught_up(&flow.name);
        context.pause(analysis.properties.trigger_interval.unwrap_or(context.trigger_interval)).await;
        // The versions of snapshots are asked for anew whenever one is wanted.
        if analysis.snapshot.is_none() {
            self.input.source = new_source(context, flow, analysis).await?;
            self.check_columns()?;
        }
        Ok(())
    }

    /// A table may gain columns while a flow reads it on and on: they must not be passed over. What it had before is not
    /// new, also where the pipeline does not define it any more.
    fn check_columns(&self) -> Result<()> {
        let Input { analysis, source, .. } = &self.input;
        let from_table = matches!(analysis.source, SourceInput::Table(..) | SourceInput::Foreign(..));
        let columns = source.schema();
        let unknown = columns.fields().iter().find(|field| self.opened.index_of(field.name()).is_err());
        match unknown.filter(|_| from_table) {
            Some(field) => {
                Err(Error::new(ErrorKind::SchemaEvolved, "the table that the flow reads has a new column")
                    .with("column", field.name()))
            }
            None => Ok(()),
        }
    }

    fn now(&self) -> String {
        rfc3339(self.input.context.clock.now())
    }

    /// Finishes the batch that a stopped process may have left, and says where to go on.
    async fn resume(&mut self) -> Result<Resumed> {
        let source = self.input.source.as_ref();
        let newest = self.state.newest(source).await?;
        self.check_landed(newest.as_ref().map_or(0, |(newest, _)| newest.number)).await?;
        let Some((newest, progress)) = newest else {
            // After a full refresh or a reset the flow begins at the beginning.
            let imported = self.input.context.imported.get(&self.input.flow.name).cloned();
            let imported = imported.filter(|_| self.state.incarnation() == 0);
            let progress = imported.unwrap_or_else(|| source.start());
            return Ok(Resumed { next: 1, progress, gives_up_previous: false });
        };
        let next = newest.number + 1;
        let (done, _) = self.state.last_done().await?;
        if done < newest.number {
            match self.take(newest.number, &newest.plan, None).await {
                Ok(()) => {}
                // Input that was taken away before anything of it was committed is no longer wanted: plan anew without
                // it. A ONCE flow promised to take all of its input; one of snapshots, those that there are.
                Err(error) if self.may_give_up(&error) => {
                    return Ok(Resumed { next, progress, gives_up_previous: true });
                }
                Err(error) => return Err(error),
            }
        }
        let progress = self.input.source.advance(progress, &newest.plan.slice)?;
        Ok(Resumed { next, progress, gives_up_previous: false })
    }

    /// Whether the input of a batch that failed is gone, so that another batch may take its place. Not where code may have
    /// been given a part of it: it would get the rest again under another id.
    fn may_give_up(&mut self, error: &Error) -> bool {
        let is_kept = self.input.flow.once && self.input.analysis.snapshot.is_none();
        if error.kind() != ErrorKind::Gone || is_kept || !self.taker.forgets() {
            return false;
        }
        self.report.notice = Some(format!("planned input is skipped: {}", error.full_text()));
        true
    }

    /// Refuses to go on where the target has batches that were never planned here: they would be taken for those of the
    /// same numbers that are planned from now on, whose rows would be lost.
    async fn check_landed(&self, planned: u64) -> Result<()> {
        let landed = self.taker.landed().await?.unwrap_or(0);
        if landed <= planned {
            return Ok(());
        }
        Err(Error::new(ErrorKind::State, "the target has batches of the flow that this storage has not planned")
            .with("newest batch in the target", landed)
            .with("newest batch that is planned", planned)
            .help("another storage wrote them, or the state of this one is older than its target: restore it, or give the flow or its target another name"))
    }

    /// Takes one batch. The rows of a planned slice are the same whenever they are read.
    async fn take(&mut self, number: u64, plan: &Plan, turn: Option<Turn>) -> Result<()> {
        self.had_batch = true;
        // The input may be gone by now if the batch landed and only its mark is missing: look for the stamp first.
        if self.taker.landed().await?.is_some_and(|landed| landed >= number) {
            return self.state.done(number, self.now()).await;
        }
        let planned = PlannedBatch { number, plan: plan.clone() };
        let outcome =
            self.taker.take(&self.input, &planned, turn).instrument(info_span!("batch", number)).await;
        let outcome = outcome.map_err(|error| error.with("batch", number))?;
        self.state.done(number, self.now()).await?;
        if outcome.landed_before {
            return Ok(());
        }
        self.report.batches += 1;
        self.report.rows_in += outcome.counts.events;
        self.report.add(&outcome.counts);
        self.report.conflicts += outcome.conflicts;
        if let Some(rows) = outcome.output_rows {
            *self.report.output_rows.get_or_insert(0) += rows;
        }
        if let Some(quality) = &outcome.quality {
            self.report.add_quality(quality);
        }
        self.report.files_read += outcome.read.files;
        self.report.bytes_read += outcome.read.bytes;
        self.report.bytes_written += outcome.committed.map_or(0, |committed| committed.bytes_written);
        let mut told = self.report.clone();
        if let Some(before) = &self.before {
            told.add_attempt(before);
        }
        self.input.context.log.progressed(&told);
        Ok(())
    }
}
