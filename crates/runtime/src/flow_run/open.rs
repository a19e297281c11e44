//! What does a flow need before its first batch? Its source, and its target as it is or new.

use std::{path::Path as FsPath, sync::Arc};

use strandline_cdc_core::CdcSpec;
use strandline_pipeline_sql::{DatasetDefinition, FlowDefinition, FlowKind};
use strandline_table_formats::contract::{TableDefinition, TableFormat, WriterId};

use super::{
    Input, Taker,
    append::Append,
    change::Change,
    checks::Checks,
    images,
    sink::Code,
    snapshot::Snapshot,
    view::{View, ViewSource},
};
use crate::{
    analysis::{FlowAnalysis, Work},
    batch::Writer,
    error::{Error, ErrorKind, Result},
    query::{SourceInput, TableOptions, foreign},
    retention,
    sinks::{FileSink, SinkPlan},
    sources::{FileOptions, FileSource, Source, StreamOptions, TableSource, kafka},
    state::FlowState,
    target::{self, About},
    update::Context,
};

/// What a target of the flow's is when it is new, and what the flow means for it if it applies changes.
pub(crate) fn definition_of<'a>(
    context: &Context,
    flow: &FlowDefinition,
    analysis: &'a FlowAnalysis,
) -> Result<(TableDefinition, Option<&'a CdcSpec>)> {
    let about = about(context, flow, analysis);
    match &analysis.work {
        Work::Cdc(work) => Ok((target::cdc_definition(&work.spec, about)?, Some(&work.spec))),
        Work::Append => Ok((target::append_definition(&analysis.target, about), None)),
        Work::View(_) => Ok((target::view_definition(&analysis.target, about), None)),
        Work::Sink(_) => {
            Err(Error::new(ErrorKind::Internal, "a sink is no table").with("sink", &flow.target))
        }
    }
}

fn about(context: &Context, flow: &FlowDefinition, analysis: &FlowAnalysis) -> About {
    let mut tables = context.definition.datasets.iter().filter_map(DatasetDefinition::table);
    About {
        columns: Some(Arc::clone(&analysis.target)),
        comment: tables.find(|table| table.name == flow.target).and_then(|table| table.comment.clone()),
        properties: analysis.properties.verbatim.clone(),
    }
}

/// Opens or creates the flow's target.
pub(super) async fn taker<'a>(input: &Input<'a>, incarnation: u64) -> Result<Box<dyn Taker + 'a>> {
    let Input { context, flow, analysis, .. } = *input;
    let about = about(context, flow, analysis);
    let id = WriterId { pipeline: context.pipeline.clone(), flow: flow.name.clone(), incarnation };
    let writer = Writer { id, epoch: context.epoch };
    let format = context.format.as_ref();
    if let Work::Sink(plan) = &analysis.work {
        return sink(input, plan, writer).await.map_err(|error| error.with("sink", &flow.target));
    }
    // Two flows of one target must not both create it.
    let turn = context.turn(&flow.target).lock_owned().await;
    if !matches!(analysis.work, Work::View(_)) && format.open(&flow.target).await?.is_none() {
        check_never_filled(context, &flow.target).await?;
    }
    match (&analysis.work, &flow.kind) {
        (Work::Cdc(work), FlowKind::AutoCdc(_)) => {
            let (table, spec) = target::cdc_target(format, &flow.target, work, about).await?;
            let columns = spec.kept_schema();
            let checks = Checks::open(input, columns, Some(spec.sequence_type()), &writer).await?;
            drop(turn);
            let change = Change::new(context, &flow.target, spec, table, writer, checks);
            if flow.once && !analysis.properties.accept_horizon {
                retention::check_no_horizon(change.target())
                    .await
                    .map_err(|e| e.with("table", &flow.target))?;
            }
            Ok(Box::new(change))
        }
        (Work::Cdc(work), FlowKind::Snapshot(snapshot)) => {
            let (table, spec) = target::cdc_target(format, &flow.target, work, about).await?;
            drop(turn);
            // Constraints don't go with snapshots.
            let change = Change::new(context, &flow.target, spec, table, writer, None);
            let rules = analysis.properties.snapshot_rules();
            Ok(Box::new(Snapshot::new(change, snapshot, rules, incarnation)))
        }
        (Work::View(work), _) => {
            let definition = target::view_definition(&analysis.target, about);
            let table = target::view_target(format, &flow.target, &definition).await?;
            let checks = Checks::open(input, &analysis.judged, None, &writer).await?;
            Ok(Box::new(View { table, writer, checks, definition, work }))
        }
        _ => {
            let table = target::append_target(format, &flow.target, &analysis.target, about).await?;
            let checks = Checks::open(input, &analysis.judged, None, &writer).await?;
            Ok(Box::new(Append::new(table, writer, checks)))
        }
    }
}

/// Refuses to make a target anew that some flow of it has filled: what that flow took is not taken again.
async fn check_never_filled(context: &Context, target: &str) -> Result<()> {
    for writer in context.definition.flows.iter().filter(|writer| writer.target == target) {
        let (done, _) = FlowState::current(&context.store, &writer.name).await?.last_done().await?;
        if done > 0 {
            return Err(Error::new(ErrorKind::State, "the target is gone, although a flow has filled it")
                .with("table", target)
                .with("flow that filled it", &writer.name)
                .with("batches", done)
                .help("restore the table; or give its flows and it new names to build it anew"));
        }
    }
    Ok(())
}

/// Opens what a flow takes, slice by slice, to go on from `state`.
pub(super) async fn source<'a>(
    context: &'a Context,
    flow: &'a FlowDefinition,
    analysis: &'a FlowAnalysis,
    state: &FlowState,
) -> Result<Box<dyn Source + 'a>> {
    match &analysis.snapshot {
        Some(input) => {
            let images = images::open(context, flow, analysis, input)?;
            images.check_recorded(state).await?;
            Ok(Box::new(images))
        }
        None => new_source(context, flow, analysis).await,
    }
}

/// Opens what a flow takes, slice by slice, to begin anew.
pub(crate) async fn new_source<'a>(
    context: &'a Context,
    flow: &'a FlowDefinition,
    analysis: &'a FlowAnalysis,
) -> Result<Box<dyn Source + 'a>> {
    match (&analysis.snapshot, &analysis.work) {
        (Some(input), _) => Ok(Box::new(images::open(context, flow, analysis, input)?)),
        (None, Work::View(work)) => Ok(Box::new(ViewSource::new(context, &flow.target, work))),
        (None, _) => open_source(context.format.as_ref(), analysis).await,
    }
}

/// Opens a sink.
async fn sink(input: &Input<'_>, plan: &SinkPlan, writer: Writer) -> Result<Box<dyn Taker>> {
    match plan {
        SinkPlan::Code(code) => Ok(Box::new(Code { sink: Arc::clone(code), writer: writer.id })),
        SinkPlan::Files(options) => Ok(Box::new(FileSink::open(options, &writer.id)?)),
        SinkPlan::Table(path) => {
            let path = FsPath::new(path);
            let name = path.file_name().and_then(|name| name.to_str());
            let (Some(folder), Some(name)) = (path.parent(), name) else {
                return Err(Error::new(ErrorKind::Definition, "the path of a table sink names no folder")
                    .with("path", path.display()));
            };
            let format = input.context.format.in_folder(folder)?;
            let columns = &input.analysis.target;
            let turn = input.context.turn(&input.flow.target).lock_owned().await;
            let table = target::append_target(format.as_ref(), name, columns, About::default()).await?;
            drop(turn);
            Ok(Box::new(Append::new(table, writer, None)))
        }
    }
}

/// Opens what a flow reads batch by batch.
pub(crate) async fn open_source(
    format: &dyn TableFormat,
    analysis: &FlowAnalysis,
) -> Result<Box<dyn Source>> {
    match &analysis.source {
        SourceInput::Files(call) => {
            let declared = Some(Arc::clone(&analysis.source_schema));
            let mut options = FileOptions::new(call)?;
            if let Work::Cdc(work) = &analysis.work {
                options.envelope = options.envelope.map(|envelope| envelope.for_changes(work.options()));
            }
            Ok(Box::new(FileSource::open(&call.path, options, declared).await?))
        }
        SourceInput::Kafka(call) => {
            let changes = match &analysis.work {
                Work::Cdc(work) => Some(work.options()),
                _ => None,
            };
            kafka::open(call, Some(Arc::clone(&analysis.source_schema)), changes).await
        }
        SourceInput::Foreign(table, options) => {
            let options = stream_options(analysis, options)?;
            let opened = foreign::open(format, table).await?;
            Ok(Box::new(TableSource::open_with(&foreign::name_of(table), opened, options).await?))
        }
        SourceInput::Whole => {
            Err(Error::new(ErrorKind::Internal, "a flow that reads all of its inputs whole has no source"))
        }
        SourceInput::Table(name, options) => {
            let options = stream_options(analysis, options)?;
            let table = format.open(name).await?.ok_or_else(|| {
                Error::new(ErrorKind::NotFound, "the table that the flow reads does not exist")
                    .with("table", name)
            })?;
            Ok(Box::new(TableSource::open_with(name, table, options).await?))
        }
    }
}

/// How a table is read: as was written, and without what rows were before an update where the rows are changes.
fn stream_options(analysis: &FlowAnalysis, written: &TableOptions) -> Result<StreamOptions> {
    let without_preimages = matches!(analysis.work, Work::Cdc(_));
    Ok(StreamOptions { without_preimages, ..StreamOptions::new(written)? })
}
