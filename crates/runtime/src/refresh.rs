//! How are tables emptied and checkpoints forgotten, so that a crash leaves nothing half cleared?
//!
//! What is to be cleared is recorded first. Then the flows begin new incarnations, in which they have planned nothing,
//! and each table is replaced by an empty one in a single commit, its side state with it (R-07, T-13). A record that is
//! not marked as done is finished before the next update starts anything.

use std::{collections::BTreeMap, sync::Arc};

use futures::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use strandline_flow_graph::{Clearing, Graph};
use strandline_pipeline_sql::FlowDefinition;
use strandline_table_formats::contract::{CommitOutcome, TableChange, WriterId};

use crate::{
    analysis::{FlowAnalysis, Work},
    batch::{ATTEMPTS, Writer, busy_target},
    clock::rfc3339,
    error::{Error, ErrorKind, Result},
    expectations::{quarantine_columns, quarantine_definition},
    flow_run::{definition_of, new_source, side_state},
    query::SourceInput,
    sources::{FileSource, kafka},
    state::{FlowState, Register, engine_path},
    update::Context,
};

/// What an update clears, as it was recorded before.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    planned_at: String,
    tables: Vec<TableToEmpty>,
    /// Flows whose targets keep their rows.
    resets: Vec<Beginning>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct TableToEmpty {
    table: String,
    flows: Vec<Beginning>,
}

/// The incarnation that a flow begins.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Beginning {
    flow: String,
    incarnation: u64,
}

/// A record that is not done.
pub(crate) struct OpenRefresh {
    number: u64,
    record: Record,
}

/// Analyses of flows, by name.
pub(crate) type Analyses = BTreeMap<String, Arc<FlowAnalysis>>;

fn records(context: &Context) -> Register {
    Register::new(Arc::clone(&context.store), engine_path(&["refresh"]))
}

fn done(context: &Context) -> Register {
    Register::new(Arc::clone(&context.store), engine_path(&["refresh-done"]))
}

impl OpenRefresh {
    /// What an earlier process did not finish.
    pub(crate) async fn left_over(context: &Context) -> Result<Option<Self>> {
        let Some((number, record)) = records(context).newest().await? else { return Ok(None) };
        let newest_done = done(context).numbers().await?.pop();
        Ok((newest_done < Some(number)).then_some(Self { number, record }))
    }

    /// Records what is to be cleared.
    pub(crate) async fn plan(context: &Context, graph: &Graph, clearing: &Clearing) -> Result<Self> {
        let name = |id| graph.flow(id).map(|flow| (flow.name().to_owned(), flow.target().to_owned()));
        let mut tables = Vec::new();
        for table in &clearing.targets {
            let mut flows = Vec::new();
            for (flow, target) in clearing.flows.iter().filter_map(|id| name(*id)) {
                if target == *table {
                    flows.push(beginning(context, flow).await?);
                }
            }
            tables.push(TableToEmpty { table: table.clone(), flows });
        }
        let mut resets = Vec::new();
        for (flow, _) in clearing.resets.iter().filter_map(|id| name(*id)) {
            resets.push(beginning(context, flow).await?);
        }
        let record = Record { planned_at: rfc3339(context.clock.now()), tables, resets };
        let register = records(context);
        let number = register.numbers().await?.pop().unwrap_or(0) + 1;
        if !register.create(number, &record).await? {
            return Err(Error::new(ErrorKind::Busy, "another process refreshes this pipeline"));
        }
        Ok(Self { number, record })
    }

    /// Lets the flows begin anew. What was inferred of their sources is forgotten with it, so they must be analysed again.
    pub(crate) async fn begin_flows(&self, context: &Context) -> Result<()> {
        let flows = self.record.tables.iter().flat_map(|table| &table.flows).chain(&self.record.resets);
        for Beginning { flow, incarnation } in flows {
            let now = rfc3339(context.clock.now());
            FlowState::begin(&context.store, flow, *incarnation, now).await?;
        }
        Ok(())
    }

    /// Empties the tables, and marks all of it as done.
    pub(crate) async fn empty_tables(&self, context: &Context, analyses: &Analyses) -> Result<()> {
        for table in &self.record.tables {
            empty(context, table, analyses).await.map_err(|error| error.with("table", &table.table))?;
        }
        done(context).create(self.number, &serde_json::Map::new()).await?;
        records(context).prune_below(self.number).await?;
        done(context).prune_below(self.number).await
    }
}

async fn beginning(context: &Context, flow: String) -> Result<Beginning> {
    let incarnation = FlowState::current(&context.store, &flow).await?.incarnation() + 1;
    Ok(Beginning { flow, incarnation })
}

async fn empty(context: &Context, table: &TableToEmpty, analyses: &Analyses) -> Result<()> {
    let Some(stored) = context.format.open(&table.table).await? else { return Ok(()) };
    let writers = context.definition.flows.iter().filter(|flow| flow.target == table.table);
    let writers: Vec<&FlowDefinition> = writers.collect();
    let (Some(first), Some(begun)) = (writers.first(), table.flows.first()) else {
        // The pipeline does not write it any more.
        return Ok(());
    };
    let Some(analysis) = analyses.get(&first.name) else {
        return Err(Error::new(
            ErrorKind::State,
            "a full refresh that was begun can't be finished: a flow of the table could not be understood",
        )
        .with("flow that failed", &first.name)
        .help("mend what that flow reads, or take it out of the pipeline"));
    };
    let (definition, spec) = definition_of(context, first, analysis)?;
    let side = side_state(context, &table.table, spec);
    let id = WriterId {
        pipeline: context.pipeline.clone(),
        flow: begun.flow.clone(),
        incarnation: begun.incarnation,
    };
    let writer = Writer { id, epoch: context.epoch };
    for _ in 0..ATTEMPTS {
        let base = stored.snapshot().await?;
        if base.last_batch(&writer.id).is_some() {
            return empty_quarantine(context, &table.table, analysis, &writer).await;
        }
        let version = match spec {
            Some(_) => side.write_empty(base.state_version()).await?,
            None => base.state_version(),
        };
        let rows = stream::empty().boxed();
        let change = TableChange::Replace { definition: Box::new(definition.clone()), rows };
        match stored.commit(base.as_ref(), change, &writer.stamp(0, version)).await? {
            CommitOutcome::Committed(_) | CommitOutcome::AlreadyApplied { .. } => {
                return empty_quarantine(context, &table.table, analysis, &writer).await;
            }
            CommitOutcome::Conflict { .. } => {}
        }
    }
    Err(busy_target())
}

/// What the table's constraints dropped belongs to the rows that are cleared.
async fn empty_quarantine(
    context: &Context,
    of: &str,
    analysis: &FlowAnalysis,
    writer: &Writer,
) -> Result<()> {
    let Some(name) = &analysis.properties.quarantine else { return Ok(()) };
    let Some(stored) = context.format.open(name).await? else { return Ok(()) };
    let sequence = match &analysis.work {
        Work::Cdc(work) => Some(work.spec.sequence_type()),
        Work::Append | Work::View(_) | Work::Sink(_) => None,
    };
    let definition = quarantine_definition(of, quarantine_columns(&analysis.judged, sequence)?);
    for _ in 0..ATTEMPTS {
        let base = stored.snapshot().await?;
        if base.last_batch(&writer.id).is_some() {
            return Ok(());
        }
        let stamp = writer.stamp(0, base.state_version());
        let rows = stream::empty().boxed();
        let change = TableChange::Replace { definition: Box::new(definition.clone()), rows };
        match stored.commit(base.as_ref(), change, &stamp).await? {
            CommitOutcome::Committed(_) | CommitOutcome::AlreadyApplied { .. } => return Ok(()),
            CommitOutcome::Conflict { .. } => {}
        }
    }
    Err(busy_target())
}

/// Refuses to clear what could not be filled again: a flow that was not understood, a source that can't be opened, or a
/// ONCE flow whose source is empty although it was not before.
pub(crate) async fn check_sources(
    context: &Context,
    graph: &Graph,
    clearing: &Clearing,
    analyses: &Analyses,
) -> Result<()> {
    for flow in clearing.flows.iter().chain(&clearing.resets).filter_map(|id| graph.flow(*id)) {
        check_source(context, flow.name(), flow.is_once(), analyses).await.map_err(|error| {
            error
                .with("flow", flow.name())
                .help("nothing was cleared; a full refresh or a reset fills the target anew from its sources")
        })?;
    }
    Ok(())
}

async fn check_source(context: &Context, flow: &str, once: bool, analyses: &Analyses) -> Result<()> {
    let analysis = analyses.get(flow).ok_or_else(|| {
        Error::new(
            ErrorKind::NotFound,
            "a flow that would run again can't be understood, so nothing is cleared",
        )
    })?;
    if matches!(analysis.work, Work::View(_)) {
        // It reads what is there, and has nothing that only it remembers.
        return Ok(());
    }
    let defined = context.definition.flows.iter().find(|defined| defined.name == flow);
    let defined = defined.ok_or_else(|| Error::new(ErrorKind::Internal, "the flow is not defined"))?;
    if analysis.inferred {
        // What is known of the source's columns will be forgotten: they must be there to be found out again.
        match &analysis.source {
            SourceInput::Files(call) => drop(FileSource::columns(call, None).await?),
            SourceInput::Kafka(call) => drop(kafka::open(call, None, None).await?),
            _ => {}
        }
    }
    let source = match new_source(context, defined, analysis).await {
        Ok(source) => source,
        // A table that another flow of the update makes.
        Err(error) if error.kind() == ErrorKind::NotFound && !once => return Ok(()),
        Err(error) => return Err(error),
    };
    let (taken, _) = FlowState::current(&context.store, flow).await?.last_done().await?;
    let gives_once = once || analysis.snapshot.is_some();
    if gives_once && taken > 0 && source.next(&source.start()).await?.is_none() {
        let kind = if once { "ONCE" } else { "snapshot" };
        return Err(Error::new(
            ErrorKind::NotFound,
            format!(
                "the source of a {kind} flow is empty now: a full refresh would lose the rows that it gave"
            ),
        ));
    }
    Ok(())
}
