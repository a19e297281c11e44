//! Which columns, types and meaning does every flow have, before anything runs?
//!
//! Flows are analysed in the order in which they will run, so that a table that does not exist yet has the columns that
//! its flows will give it.

mod cdc;
mod expected;
mod snapshot;
mod targets;
mod view;

pub(crate) use cdc::{
    CdcWork, DELETE, RETRACT, SEQUENCE, SYSTEM_SEQUENCE, TRUNCATE, VALID_TO, change_rows, check_row_by_row,
};
pub(crate) use snapshot::SnapshotInput;

pub(crate) use view::{ViewWork, signed};

use std::{collections::BTreeMap, sync::Arc};

use arrow_schema::{Schema, SchemaRef};
use object_store::ObjectStore;
use strandline_cdc_core::names;
use strandline_flow_graph::Graph;
use strandline_pipeline_sql::{
    DatasetDefinition, FlowDefinition, FlowKind, FlowQuery, PipelineDefinition, ReadFiles, SnapshotCdc,
    TableDeclaration,
};
use strandline_table_formats::contract::TableFormat;

use crate::{
    error::{Error, ErrorKind, Result},
    flow_run,
    properties::Properties,
    query::{self, Inputs, SourceInput, foreign},
    sinks::{Registered, SinkPlan},
    snapshots::SnapshotProvider,
    sources::{
        FileSource, kafka,
        metadata::{self, METADATA},
    },
    types::{schema_of, storable},
};

/// What a flow does with its rows.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// Appends them.
    Append,
    /// Applies them as changes.
    Cdc(Box<CdcWork>),
    /// Gives them to a place outside of the pipeline.
    Sink(SinkPlan),
    /// Puts them in the place of all that the target holds.
    View(Box<ViewWork>),
}

/// A flow, understood.
#[derive(Debug, Clone)]
pub(crate) struct FlowAnalysis {
    pub(crate) source: SourceInput,
    /// Columns of the source.
    pub(crate) source_schema: SchemaRef,
    /// Whether they were found out by looking at files.
    pub(crate) inferred: bool,
    /// Columns of the query's rows, in stored types.
    pub(crate) rows: SchemaRef,
    pub(crate) work: Work,
    /// What a snapshot flow reads.
    pub(crate) snapshot: Option<Box<SnapshotInput>>,
    /// Columns of its target, those included that only other flows give it.
    pub(crate) target: SchemaRef,
    /// Columns that constraints of the target can name: what it keeps of the rows of all of its flows.
    pub(crate) judged: SchemaRef,
    pub(crate) properties: Properties,
}

/// All flows of a pipeline, each understood or with the reason why not.
#[derive(Debug)]
pub(crate) struct Analysis {
    pub(crate) flows: BTreeMap<String, Result<FlowAnalysis>>,
}

/// Code of a Rust program that gives snapshots, by the name of the flow.
pub(crate) type SnapshotProviders = BTreeMap<String, Arc<dyn SnapshotProvider>>;

/// Where a pipeline is kept, and what else its text does not say.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) store: &'a Arc<dyn ObjectStore>,
    /// The format of its tables.
    pub(crate) format: &'a dyn TableFormat,
    /// Code that gives snapshots, by flow.
    pub(crate) snapshots: &'a SnapshotProviders,
    /// Code that takes the rows of sinks.
    pub(crate) sinks: &'a Registered,
}

/// Analyses every flow of a pipeline.
pub(crate) async fn analyse(definition: &PipelineDefinition, graph: &Graph, place: Place<'_>) -> Analysis {
    let mut tables: BTreeMap<String, SchemaRef> = BTreeMap::new();
    let mut flows = BTreeMap::new();
    for &id in graph.topological_order() {
        let Some(flow) = graph.flow(id).and_then(|f| definition.flows.iter().find(|d| d.name == f.name()))
        else {
            continue;
        };
        let analysed =
            analyse_flow(definition, flow, &tables, place).await.map_err(|e| e.with("flow", &flow.name));
        if let Ok(analysis) = &analysed {
            let known = tables.remove(&flow.target);
            let merged =
                known.map_or_else(|| Arc::clone(&analysis.target), |known| union(&known, &analysis.target));
            tables.insert(flow.target.clone(), merged);
        }
        flows.insert(flow.name.clone(), analysed);
    }
    targets::agree(definition, &mut flows);
    expected::check(definition, &mut flows);
    Analysis { flows }
}

/// The columns of `a`, then those that only `b` has.
fn union(a: &Schema, b: &Schema) -> SchemaRef {
    let more = b.fields().iter().filter(|field| a.index_of(field.name()).is_err());
    Arc::new(Schema::new(a.fields().iter().chain(more).cloned().collect::<Vec<_>>()))
}

/// The columns of files, and what is known of the files beside them.
pub(crate) fn with_metadata(columns: &SchemaRef) -> SchemaRef {
    if columns.field_with_name(METADATA).is_ok() {
        return Arc::clone(columns);
    }
    let fields = columns.fields().iter().cloned().chain([metadata::column()]);
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The columns of the files that a flow reads, as they were recorded if they were.
async fn file_columns(call: &ReadFiles, flow: &str, place: Place<'_>) -> Result<SchemaRef> {
    let is_inferred = call.schema.is_none();
    let recorded = if is_inferred { flow_run::inferred_schema(place.store, flow).await? } else { None };
    FileSource::columns(call, recorded.as_ref()).await
}

async fn analyse_flow(
    definition: &PipelineDefinition,
    flow: &FlowDefinition,
    tables: &BTreeMap<String, SchemaRef>,
    place: Place<'_>,
) -> Result<FlowAnalysis> {
    if let FlowKind::Snapshot(snapshot) = &flow.kind {
        return analyse_snapshot(definition, flow, snapshot, tables, place).await;
    }
    if let FlowKind::Complete { query } = &flow.kind {
        return view::analyse(definition, flow, query, tables, place).await;
    }
    let read = flow.query().ok_or_else(|| Error::new(ErrorKind::Internal, "the flow has no query"))?;
    let source = query::source_of(definition, read)?;
    let SourceColumns { source_schema, inferred, feed } =
        source_columns(definition, flow, (read, &source), (tables, place)).await?;
    let tables = foreign::with_columns(definition, read, (tables, place.format)).await?;
    let inputs = Inputs::columns_only(&source, &source_schema, &tables)?;
    let rows = query::plan(definition, read, &inputs).await?;
    query::check_batchable(rows.logical_plan(), &inputs)?;
    let (table, properties) = target_of(definition, flow, place)?;
    let (rows, judged, target, work) = match &flow.kind {
        FlowKind::Append { .. } | FlowKind::Update { .. } => {
            properties.check_append()?;
            let rows = Arc::new(storable(rows.schema().as_arrow()));
            let target = append_target(table, &rows)?;
            let sink = SinkPlan::of(definition, &flow.target, place.sinks, place.format.name())?;
            (rows, Arc::clone(&target), target, sink.map_or(Work::Append, Work::Sink))
        }
        FlowKind::AutoCdc(cdc) => {
            let alone = definition.flows.iter().filter(|other| other.target == flow.target).count() == 1;
            if let Some(envelope) = source.envelope()? {
                cdc::check_lists(cdc, &envelope, &source.of_records(&source_schema)?, &rows)?;
            }
            let (rows, cdc) = cdc::analyse(&cdc::meant(cdc, &rows, feed)?, &rows, alone, &properties)?;
            let (judged, target) = (Arc::clone(cdc.spec.kept_schema()), Arc::clone(cdc.spec.target_schema()));
            (rows, judged, target, Work::Cdc(Box::new(cdc)))
        }
        FlowKind::Snapshot(_) | FlowKind::Complete { .. } => {
            return Err(Error::new(ErrorKind::Internal, "a flow of this kind has no stream"));
        }
    };
    Ok(FlowAnalysis {
        source,
        source_schema,
        inferred,
        rows,
        work,
        snapshot: None,
        target,
        judged,
        properties,
    })
}

/// See [`source_columns`].
struct SourceColumns {
    source_schema: SchemaRef,
    inferred: bool,
    /// Whether its rows say what became of them.
    feed: bool,
}

/// The columns of what a flow takes batch by batch.
async fn source_columns(
    definition: &PipelineDefinition,
    flow: &FlowDefinition,
    (read, source): (&FlowQuery, &SourceInput),
    (tables, place): (&BTreeMap<String, SchemaRef>, Place<'_>),
) -> Result<SourceColumns> {
    let (mut inferred, mut feed) = (false, false);
    let source_schema = match source {
        SourceInput::Files(call) => {
            inferred = call.schema.is_none();
            let columns = file_columns(call, &flow.name, place).await?;
            if query::wants_metadata(definition, read) { with_metadata(&columns) } else { columns }
        }
        SourceInput::Kafka(call) => {
            let columns = kafka::columns(call)?;
            inferred = columns.is_none();
            match (columns, flow_run::inferred_schema(place.store, &flow.name).await?) {
                (Some(columns), _) | (None, Some(columns)) => columns,
                (None, None) => kafka::open(call, None, None).await?.schema(),
            }
        }
        SourceInput::Whole => Arc::new(Schema::empty()),
        SourceInput::Table(..) | SourceInput::Foreign(..) => {
            let columns;
            (columns, feed) = foreign::columns(definition, read, source, (tables, place.format)).await?;
            columns
        }
    };
    Ok(SourceColumns { source_schema, inferred, feed })
}

async fn analyse_snapshot(
    definition: &PipelineDefinition,
    flow: &FlowDefinition,
    snapshot: &SnapshotCdc,
    tables: &BTreeMap<String, SchemaRef>,
    place: Place<'_>,
) -> Result<FlowAnalysis> {
    let (_, properties) = target_of(definition, flow, place)?;
    let provider = place.snapshots.get(&flow.name);
    let asked = snapshot::Asked { definition, snapshot, tables, format: place.format, provider };
    let (input, rows, work) = snapshot::analyse(asked, &properties).await?;
    Ok(FlowAnalysis {
        source: SourceInput::Whole,
        source_schema: Arc::new(Schema::empty()),
        inferred: false,
        target: Arc::clone(work.spec.target_schema()),
        rows,
        judged: Arc::clone(work.spec.kept_schema()),
        work: Work::Cdc(Box::new(work)),
        snapshot: Some(Box::new(input)),
        properties,
    })
}

/// What is declared of a flow's target.
fn target_of<'a>(
    definition: &'a PipelineDefinition,
    flow: &FlowDefinition,
    place: Place<'_>,
) -> Result<(Option<&'a TableDeclaration>, Properties)> {
    let table = table_of(definition, &flow.target);
    let properties = Properties::new(table)?.with_settings(&definition.settings)?;
    properties.check_format(place.format.name())?;
    if matches!(flow.kind, FlowKind::AutoCdc(_) | FlowKind::Snapshot(_)) {
        place.format.check_row_changes()?;
    }
    let is_snapshot =
        |other: &FlowDefinition| other.target == flow.target && matches!(other.kind, FlowKind::Snapshot(_));
    if !definition.flows.iter().any(is_snapshot) {
        properties.check_no_snapshots()?;
    }
    if let Some(written) = table.and_then(|table| table.format.as_ref())
        && !written.eq_ignore_ascii_case(place.format.name())
    {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "the table asks for another format than the pipeline runs with",
        )
        .with("table", &flow.target)
        .with("USING", written)
        .with("format", place.format.name()));
    }
    Ok((table, properties))
}

fn table_of<'a>(definition: &'a PipelineDefinition, name: &str) -> Option<&'a TableDeclaration> {
    definition.datasets.iter().filter_map(DatasetDefinition::table).find(|table| table.name == name)
}

/// The columns of an append target: the declared ones, or the query's.
fn append_target(table: Option<&TableDeclaration>, rows: &SchemaRef) -> Result<SchemaRef> {
    if let Some(reserved) =
        rows.fields().iter().find(|field| field.name().starts_with(names::RESERVED_PREFIX))
    {
        return Err(Error::new(
            ErrorKind::Definition,
            "a column has no name of its own, or one that the engine reserves",
        )
        .with("column", reserved.name())
        .help("give it an alias: SELECT a + 1 AS b"));
    }
    let declared = match table {
        Some(table) if !table.columns.is_empty() => schema_of(&table.columns),
        _ => return Ok(Arc::clone(rows)),
    };
    for field in rows.fields() {
        match declared.field_with_name(field.name()) {
            Ok(column) if crate::types::is_lossless(field.data_type(), column.data_type()) => {}
            Ok(column) => {
                return Err(Error::new(ErrorKind::Definition, "a column does not fit its declaration")
                    .with("column", field.name())
                    .with("type", field.data_type())
                    .with("declared", column.data_type())
                    .help("cast it in the flow's query"));
            }
            Err(_) => {
                return Err(Error::new(
                    ErrorKind::Definition,
                    "the target does not declare a column that the flow has",
                )
                .with("column", field.name())
                .help("declare it, or drop it from the flow's query"));
            }
        }
    }
    Ok(declared)
}
