//! Which columns, types and meaning does every flow have, before anything runs?
//!
//! Flows are analysed in the order in which they will run, so that a table that does not exist yet has the columns that
//! its flows will give it.

use std::{collections::BTreeMap, sync::Arc};

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use datafusion::{dataframe::DataFrame, logical_expr::ident};
use object_store::ObjectStore;
use strandline_cdc_core::{CdcOptions, CdcSpec, ColumnSelection, OnTie, SequenceColumn, StoredAs, names};
use strandline_flow_graph::Graph;
use strandline_pipeline_sql::{
    AutoCdc, DatasetDefinition, FlowDefinition, FlowKind, PipelineDefinition, StreamingTable,
};

use crate::{
    error::{Error, ErrorKind, Result},
    flow_run,
    properties::Properties,
    query::{self, Inputs, SourceInput},
    sources::{FileOptions, FileSource, Source},
    types::{schema_of, storable},
};

/// Column that carries the value of `SEQUENCE BY` beside the source's rows.
pub(crate) const SEQUENCE: &str = "__strandline_sequence";
/// Column that carries the value of `APPLY AS DELETE WHEN`.
pub(crate) const DELETE: &str = "__strandline_delete";

/// What a flow does with its rows.
#[derive(Debug, Clone)]
pub(crate) enum Work {
    /// Appends them.
    Append,
    /// Applies them as changes.
    Cdc(Box<CdcWork>),
}

/// What a CDC flow means, and how else it could mean the same.
#[derive(Debug, Clone)]
pub(crate) struct CdcWork {
    pub(crate) spec: CdcSpec,
    options: CdcOptions,
    source: SchemaRef,
    /// A kept column that is the flow's plain sequence.
    plain_sequence: Option<String>,
}

impl CdcWork {
    /// The spec for a target that keeps sequences in `column`, if this flow can keep them there. Whether a column of its
    /// own is needed depends on how many flows feed a target, which may change; what the target has may not.
    pub(crate) fn with_sequences_in(&self, column: &str) -> Result<Option<CdcSpec>> {
        let sequence_column = match &self.plain_sequence {
            _ if column == names::SEQUENCE_AT => SequenceColumn::SystemColumn,
            Some(plain) if plain == column => SequenceColumn::KeptColumn(plain.clone()),
            _ => return Ok(None),
        };
        let options = CdcOptions { sequence_column, ..self.options.clone() };
        Ok(Some(CdcSpec::new(&options, &self.source, self.spec.sequence_type())?))
    }
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
    /// Columns that the flow gives its target.
    pub(crate) target: SchemaRef,
    pub(crate) properties: Properties,
}

/// All flows of a pipeline, each understood or with the reason why not.
#[derive(Debug)]
pub(crate) struct Analysis {
    pub(crate) flows: BTreeMap<String, Result<FlowAnalysis>>,
}

/// Where a pipeline is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) store: &'a Arc<dyn ObjectStore>,
    /// Name of the format of its tables.
    pub(crate) format: &'a str,
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
    Analysis { flows }
}

/// The columns of `a`, then those that only `b` has.
fn union(a: &Schema, b: &Schema) -> SchemaRef {
    let more = b.fields().iter().filter(|field| a.index_of(field.name()).is_err());
    Arc::new(Schema::new(a.fields().iter().chain(more).cloned().collect::<Vec<_>>()))
}

async fn analyse_flow(
    definition: &PipelineDefinition,
    flow: &FlowDefinition,
    tables: &BTreeMap<String, SchemaRef>,
    place: Place<'_>,
) -> Result<FlowAnalysis> {
    let source = query::source_of(definition, flow.query())?;
    let mut inferred = false;
    let source_schema = match &source {
        SourceInput::Files(call) => {
            let options = FileOptions::new(call)?;
            inferred = call.schema.is_none();
            if let Some(columns) = &call.schema {
                schema_of(columns)
            } else if let Some(known) = flow_run::inferred_schema(place.store, &flow.name).await? {
                known
            } else {
                FileSource::open(&call.path, options, None).await?.schema()
            }
        }
        SourceInput::Table(name) => Arc::clone(tables.get(name).ok_or_else(|| {
            Error::new(
                ErrorKind::Definition,
                "the table that the flow reads has no flow that could be analysed",
            )
            .with("table", name)
        })?),
    };
    let inputs = Inputs::columns_only(&source, &source_schema, tables)?;
    let rows = query::plan(definition, flow.query(), &inputs).await?;
    query::check_batchable(rows.logical_plan(), &inputs)?;
    let table = definition.datasets.iter().find_map(|dataset| match dataset {
        DatasetDefinition::StreamingTable(table) if table.name == flow.target => Some(table),
        _ => None,
    });
    let properties = Properties::new(table)?;
    if let Some(written) = table.and_then(|table| table.format.as_ref())
        && !written.eq_ignore_ascii_case(place.format)
    {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "the table asks for another format than the pipeline runs with",
        )
        .with("table", &flow.target)
        .with("USING", written)
        .with("format", place.format));
    }
    match &flow.kind {
        FlowKind::Append { .. } => {
            let rows = Arc::new(storable(rows.schema().as_arrow()));
            let target = append_target(table, &rows)?;
            Ok(FlowAnalysis { source, source_schema, inferred, rows, work: Work::Append, target, properties })
        }
        FlowKind::AutoCdc(cdc) => {
            let alone = definition.flows.iter().filter(|other| other.target == flow.target).count() == 1;
            let (rows, cdc) = analyse_cdc(cdc, &rows, alone, properties.on_tie)?;
            check_declared(table, &cdc.spec)?;
            let target = Arc::clone(cdc.spec.target_schema());
            Ok(FlowAnalysis {
                source,
                source_schema,
                inferred,
                rows,
                work: Work::Cdc(Box::new(cdc)),
                target,
                properties,
            })
        }
        FlowKind::Snapshot(_) => {
            Err(Error::new(ErrorKind::Unsupported, "not supported yet: AUTO CDC FROM SNAPSHOT"))
        }
    }
}

/// The columns of an append target: the declared ones, or the query's.
fn append_target(table: Option<&StreamingTable>, rows: &SchemaRef) -> Result<SchemaRef> {
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

/// A declared CDC target must have the columns that its flow gives it, the system columns among them (G-15).
fn check_declared(table: Option<&StreamingTable>, spec: &CdcSpec) -> Result<()> {
    let Some(table) = table.filter(|table| !table.columns.is_empty()) else { return Ok(()) };
    let declared = schema_of(&table.columns);
    for field in spec.target_schema().fields() {
        let found = declared.field_with_name(field.name()).ok().map(Field::data_type);
        if found == Some(field.data_type()) || field.name() == names::SEQUENCE_AT {
            continue;
        }
        let found = found.map_or_else(|| "none".to_owned(), ToString::to_string);
        return Err(Error::new(
            ErrorKind::Definition,
            "the declared columns of the target are not those of its flow",
        )
        .with("column", field.name())
        .with("declared", found)
        .with("needed", field.data_type())
        .help("declare it so, or declare no columns"));
    }
    for field in declared.fields() {
        if spec.target_schema().field_with_name(field.name()).is_err() {
            return Err(Error::new(
                ErrorKind::Definition,
                "the target declares a column that its flow does not have",
            )
            .with("column", field.name()));
        }
    }
    Ok(())
}

fn analyse_cdc(cdc: &AutoCdc, rows: &DataFrame, alone: bool, on_tie: OnTie) -> Result<(SchemaRef, CdcWork)> {
    let source = Arc::new(storable(rows.schema().as_arrow()));
    let with_system = change_rows(cdc, rows.clone())?;
    let system = storable(with_system.schema().as_arrow());
    let sequence_type = system.field_with_name(SEQUENCE)?.data_type().clone();
    if let Ok(delete) = system.field_with_name(DELETE)
        && !matches!(delete.data_type(), DataType::Boolean | DataType::Null)
    {
        return Err(Error::new(ErrorKind::Definition, "APPLY AS DELETE WHEN must be a condition")
            .with("type", delete.data_type()));
    }
    let mut options = CdcOptions { on_tie, ..cdc.options.clone() };
    let plain_sequence = plain_kept_column(cdc, &source);
    if alone && let Some(column) = &plain_sequence {
        options.sequence_column = SequenceColumn::KeptColumn(column.clone());
    }
    let spec = CdcSpec::new(&options, &source, &sequence_type)?;
    Ok((Arc::new(system), CdcWork { spec, options, source, plain_sequence }))
}

/// The column that holds the sequence in an SCD1 target already, so that no system column is needed.
fn plain_kept_column(cdc: &AutoCdc, source: &Schema) -> Option<String> {
    if cdc.options.stored_as != StoredAs::Scd1 {
        return None;
    }
    let written = cdc.sequence_by.text().trim();
    let name = written.strip_prefix('`').and_then(|n| n.strip_suffix('`')).unwrap_or(written);
    source.field_with_name(name).ok()?;
    let listed = |list: &[String]| list.iter().any(|column| column == name);
    let kept = match &cdc.options.columns {
        ColumnSelection::All => true,
        ColumnSelection::Only(list) => listed(list),
        ColumnSelection::Except(list) => !list.iter().any(|column| column.eq_ignore_ascii_case(name)),
    };
    kept.then(|| name.to_owned())
}

/// The source's rows with the columns [`SEQUENCE`] and [`DELETE`] beside them.
pub(crate) fn change_rows(cdc: &AutoCdc, rows: DataFrame) -> Result<DataFrame> {
    let parse = |clause: &'static str, text: &str| {
        rows.parse_sql_expr(text).map_err(|e| {
            let error = Error::from(e);
            Error::new(ErrorKind::Definition, format!("{clause} can't be understood: {}", error.full_text()))
        })
    };
    let mut columns: Vec<_> = rows.schema().fields().iter().map(|field| ident(field.name())).collect();
    columns.push(parse("SEQUENCE BY", cdc.sequence_by.sql())?.alias(SEQUENCE));
    if let Some(condition) = &cdc.apply_as_delete {
        columns.push(parse("APPLY AS DELETE WHEN", condition.sql())?.alias(DELETE));
    }
    Ok(rows.select(columns)?)
}
