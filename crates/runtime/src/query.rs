//! How is the query of a flow run over one batch of its source?
//!
//! A flow has one *source*, which is taken batch by batch; whatever else its query reads is a table that is read whole,
//! as it is at that moment. Views are expanded where they are used. Since the source comes in pieces, the query must
//! give the same rows for any cut: projections, filters and joins with tables do, aggregates and sorts do not. A query
//! whose inputs are all read whole, that of a snapshot for example, may hold anything: see [`Whole`].
//!
//! What users ask of finished tables is in [`ask`].

pub(crate) mod as_of;
pub(crate) mod ask;
pub(crate) mod foreign;
mod hidden;
mod literal;
mod named;
mod whole;

pub(crate) use hidden::wants_metadata;
pub(crate) use whole::{InputVersion, Whole};

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use arrow_schema::{Schema, SchemaRef};
use datafusion::{
    catalog::TableProvider,
    common::tree_node::TreeNodeRecursion,
    dataframe::DataFrame,
    datasource::{ViewTable, source_as_provider},
    execution::context::{SessionConfig, SessionContext},
    logical_expr::{AggregateUDF, JoinType, LogicalPlan, ScalarUDF, TableScan},
};
use strandline_pipeline_sql::{
    DatasetDefinition, FlowQuery, InputKind, OptionValue, PathTable, PipelineDefinition, QueryInput,
    ReadFiles, ReadKafka,
};
use strandline_table_formats::contract::TableFormat;

use crate::{
    error::{Error, ErrorKind, Result},
    relation::{self, SnapshotTable},
    sources::{Envelope, FileOptions, SourceStream, kafka, metadata},
};

/// A context in which names are taken as they are written (A-33: unquoted names are never folded to lower case),
/// functions mean what they mean in Spark where both engines have one of that name, and a TIMESTAMP is an instant.
pub(crate) fn session() -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(1).with_information_schema(true);
    config.options_mut().sql_parser.enable_ident_normalization = false;
    config.options_mut().sql_parser.map_string_types_to_utf8view = false;
    config.options_mut().execution.time_zone = Some("UTC".to_owned());
    let context = SessionContext::new_with_config(config);
    for function in SPARK_SCALARS.iter() {
        context.register_udf(function.as_ref().clone());
    }
    for function in SPARK_AGGREGATES.iter() {
        context.register_udaf(function.as_ref().clone());
    }
    context
}

static SPARK_SCALARS: LazyLock<Vec<Arc<ScalarUDF>>> =
    LazyLock::new(datafusion_spark::all_default_scalar_functions);
static SPARK_AGGREGATES: LazyLock<Vec<Arc<AggregateUDF>>> =
    LazyLock::new(datafusion_spark::all_default_aggregate_functions);

/// What a flow reads batch by batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SourceInput {
    /// `read_files(..)`.
    Files(ReadFiles),
    /// `read_kafka(..)`.
    Kafka(ReadKafka),
    /// A table of the pipeline.
    Table(String, TableOptions),
    /// A table that is none of the pipeline's.
    Foreign(PathTable, TableOptions),
    /// Nothing: all that the flow reads, it reads whole.
    Whole,
}

/// `WITH (..)` behind a streamed table.
pub(crate) type TableOptions = BTreeMap<String, OptionValue>;

impl SourceInput {
    /// What its records are wrapped in.
    pub(crate) fn envelope(&self) -> Result<Option<Envelope>> {
        match self {
            Self::Files(call) => Ok(FileOptions::new(call)?.envelope),
            Self::Kafka(call) => kafka::envelope(call),
            Self::Table(..) | Self::Foreign(..) | Self::Whole => Ok(None),
        }
    }

    /// The columns that the records of the source have, without those that say where a record is from.
    pub(crate) fn of_records<'s>(&self, schema: &'s Schema) -> Result<Vec<&'s str>> {
        let beside = match self {
            Self::Files(call) => FileOptions::new(call)?.records.rescue,
            Self::Kafka(_) => Some(kafka::FRAME.to_owned()),
            Self::Table(..) | Self::Foreign(..) | Self::Whole => None,
        };
        let own = schema.fields().iter().filter(|field| !metadata::is_metadata(field));
        Ok(own.map(|field| field.name().as_str()).filter(|name| beside.as_deref() != Some(name)).collect())
    }

    /// What `input` reads, unless that is a view of the pipeline, or no rows at all.
    fn of(input: &QueryInput) -> Option<Self> {
        Some(match &input.kind {
            InputKind::ReadFiles(files) => Self::Files(files.clone()),
            InputKind::ReadKafka(kafka) => Self::Kafka(kafka.clone()),
            InputKind::Dataset(name) => Self::Table(name.clone(), input.options.clone()),
            InputKind::Table(table) => Self::Foreign(table.clone(), input.options.clone()),
            InputKind::LastSnapshotVersion | InputKind::CurrentSnapshotVersion => return None,
        })
    }
}

/// The source of a query: the one input that is taken batch by batch.
///
/// A streaming query names it with STREAM. A batch query (of a ONCE flow) must have exactly one input.
pub(crate) fn source_of(definition: &PipelineDefinition, query: &FlowQuery) -> Result<SourceInput> {
    let inputs = inputs_of(definition, query)?;
    let is_stream = has_stream(&inputs);
    let candidates: Vec<_> = inputs.into_iter().filter(|input| input.streaming || !is_stream).collect();
    match candidates.as_slice() {
        [one] => Ok(one.source.clone()),
        [] => Err(Error::new(ErrorKind::Definition, "the query of the flow reads no file and no table")),
        several => Err(Error::new(
            ErrorKind::Unsupported,
            format!("the query of the flow has {} inputs that would be taken batch by batch", several.len()),
        )
        .help("mark one of them with STREAM, and write one flow for each stream")),
    }
}

const DEEPEST_VIEW: usize = 64;

/// An input of a query, or of a view behind it.
struct Found {
    source: SourceInput,
    /// Marked with STREAM.
    streaming: bool,
}

/// What a query reads, and the views behind it.
fn inputs_of(definition: &PipelineDefinition, query: &FlowQuery) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    collect_inputs(definition, query, &mut found, 0)?;
    Ok(found)
}

fn has_stream(inputs: &[Found]) -> bool {
    inputs.iter().any(|input| input.streaming)
}

fn collect_inputs(
    definition: &PipelineDefinition,
    query: &FlowQuery,
    found: &mut Vec<Found>,
    depth: usize,
) -> Result<()> {
    if depth > DEEPEST_VIEW {
        return Err(Error::new(ErrorKind::Definition, "views are nested too deep"));
    }
    for input in &query.inputs {
        if let Some(view) = view_read(definition, input) {
            collect_inputs(definition, view, found, depth + 1)?;
        } else if let Some(source) = SourceInput::of(input) {
            found.push(Found { source, streaming: input.streaming });
        }
    }
    Ok(())
}

fn view_of<'a>(definition: &'a PipelineDefinition, name: &str) -> Option<&'a FlowQuery> {
    definition.datasets.iter().find_map(|dataset| match dataset {
        DatasetDefinition::View(view) if view.name == name => Some(&view.query),
        _ => None,
    })
}

/// The view of the pipeline that `input` reads, if it does.
fn view_read<'a>(definition: &'a PipelineDefinition, input: &QueryInput) -> Option<&'a FlowQuery> {
    match &input.kind {
        InputKind::Dataset(name) => view_of(definition, name),
        _ => None,
    }
}

/// What stands behind the inputs of a query, for one run of it.
pub(crate) struct Inputs {
    /// The rows of the source, of a query that has one.
    source: Option<(SourceInput, Arc<dyn TableProvider>)>,
    /// Tables that are read whole beside it, by name.
    tables: BTreeMap<String, Arc<dyn TableProvider>>,
    /// Inputs of a query without a source: see [`Whole`].
    whole: Vec<(SourceInput, Arc<dyn TableProvider>)>,
    /// What `last_snapshot_version()` and `current_snapshot_version()` are.
    last_version: Option<Arc<dyn TableProvider>>,
    current_version: Option<Arc<dyn TableProvider>>,
}

impl Inputs {
    fn none() -> Self {
        Self {
            source: None,
            tables: BTreeMap::new(),
            whole: Vec::new(),
            last_version: None,
            current_version: None,
        }
    }

    /// These, with the rows of `last_snapshot_version()`.
    pub(crate) fn with_last_version(self, rows: Arc<dyn TableProvider>) -> Self {
        Self { last_version: Some(rows), ..self }
    }

    /// These, with the row of `current_snapshot_version()`.
    pub(crate) fn with_current_version(self, rows: Arc<dyn TableProvider>) -> Self {
        Self { current_version: Some(rows), ..self }
    }

    /// Inputs with columns and no rows.
    pub(crate) fn columns_only(
        source: &SourceInput,
        schema: &SchemaRef,
        tables: &BTreeMap<String, SchemaRef>,
    ) -> Result<Self> {
        let empty = |schema: &SchemaRef| relation::columns_only(Arc::clone(schema));
        let tables =
            tables.iter().map(|(name, schema)| Ok((name.clone(), empty(schema)?))).collect::<Result<_>>()?;
        Ok(Self { source: Some((source.clone(), empty(schema)?)), tables, ..Self::none() })
    }

    /// Inputs for one batch.
    pub(crate) fn batch(
        source: &SourceInput,
        schema: SchemaRef,
        rows: SourceStream,
        tables: BTreeMap<String, Arc<dyn TableProvider>>,
    ) -> Result<Self> {
        Ok(Self { source: Some((source.clone(), relation::once(schema, rows)?)), tables, ..Self::none() })
    }

    /// The rows of an input; `is_stream` where the query marks its source with STREAM: then the same without the mark is no
    /// source, and read whole.
    fn provider(&self, input: &QueryInput, is_stream: bool) -> Result<Arc<dyn TableProvider>> {
        let version = match &input.kind {
            InputKind::LastSnapshotVersion => &self.last_version,
            InputKind::CurrentSnapshotVersion => &self.current_version,
            _ => &None,
        };
        if let Some(version) = version {
            return Ok(Arc::clone(version));
        }
        let wanted = SourceInput::of(input).ok_or_else(|| {
            Error::new(ErrorKind::Definition, "UNRESOLVABLE_TABLE_VALUED_FUNCTION: the versions of snapshots are known to snapshot flows only")
        })?;
        let source = self.source.iter().filter(|_| input.streaming || !is_stream);
        if let Some((_, rows)) = source.chain(&self.whole).find(|(known, _)| *known == wanted) {
            return Ok(Arc::clone(rows));
        }
        match &wanted {
            SourceInput::Table(name, _) => self.tables.get(name).cloned().ok_or_else(|| {
                Error::new(ErrorKind::NotFound, "a table that the query reads does not exist yet")
                    .with("table", name)
            }),
            SourceInput::Files(files) => Err(Error::new(
                ErrorKind::Unsupported,
                "files can only be read as the stream of a flow, not joined to it",
            )
            .with("path", &files.path)
            .help("load them into a table of the pipeline and join that")),
            SourceInput::Kafka(_) => Err(Error::new(
                ErrorKind::Unsupported,
                "topics can only be read as the stream of a flow, not joined to it",
            )
            .help("load them into a table of the pipeline and join that")),
            SourceInput::Foreign(table, _) => {
                self.tables.get(&foreign::name_of(table)).cloned().ok_or_else(|| {
                    Error::new(ErrorKind::Internal, "a table that the query reads was not opened")
                        .with("table", foreign::name_of(table))
                })
            }
            SourceInput::Whole => Err(Error::new(ErrorKind::Internal, "an input of a query is no input")),
        }
    }
}

/// The tables that a query reads whole, as they are now.
pub(crate) async fn static_tables(
    definition: &PipelineDefinition,
    query: &FlowQuery,
    format: &dyn TableFormat,
) -> Result<BTreeMap<String, Arc<dyn TableProvider>>> {
    let mut tables: BTreeMap<String, Arc<dyn TableProvider>> = BTreeMap::new();
    let views = definition.datasets.iter().filter_map(|dataset| match dataset {
        DatasetDefinition::View(view) => Some(&view.query),
        _ => None,
    });
    let inputs = views.chain([query]).flat_map(|query| &query.inputs);
    for input in inputs.filter(|input| !input.streaming) {
        let InputKind::Dataset(name) = &input.kind else { continue };
        if tables.contains_key(name) {
            continue;
        }
        if let Some(table) = format.open(name).await? {
            tables.insert(name.clone(), Arc::new(SnapshotTable::new(table.snapshot().await?)));
        }
    }
    for (name, snapshot) in foreign::read_whole(definition, query, format).await? {
        tables.insert(name, Arc::new(SnapshotTable::new(snapshot)));
    }
    Ok(tables)
}

/// The rows of `query`, lazily.
pub(crate) async fn plan(
    definition: &PipelineDefinition,
    query: &FlowQuery,
    inputs: &Inputs,
) -> Result<DataFrame> {
    let is_stream = has_stream(&inputs_of(definition, query)?);
    plan_at(definition, query, (inputs, is_stream), 0).await
}

async fn plan_at(
    definition: &PipelineDefinition,
    query: &FlowQuery,
    (inputs, is_stream): (&Inputs, bool),
    depth: usize,
) -> Result<DataFrame> {
    if depth > DEEPEST_VIEW {
        return Err(Error::new(ErrorKind::Definition, "views are nested too deep"));
    }
    let context = session();
    let mut hidden_in = Vec::new();
    for input in &query.inputs {
        let provider: Arc<dyn TableProvider> = match view_read(definition, input) {
            Some(view) => {
                let rows = Box::pin(plan_at(definition, view, (inputs, is_stream), depth + 1)).await?;
                Arc::new(ViewTable::new(rows.into_unoptimized_plan(), None))
            }
            None => inputs.provider(input, is_stream)?,
        };
        let is_files = matches!(input.kind, InputKind::ReadFiles(_));
        if is_files && provider.schema().fields().iter().any(|field| metadata::is_metadata(field)) {
            hidden_in.push(input.placeholder.as_str());
        }
        context.register_table(input.placeholder.as_str(), provider)?;
    }
    if !hidden_in.is_empty() {
        return Ok(context.sql(&hidden::without_metadata(&query.sql, &hidden_in)?).await?);
    }
    Ok(context.sql(&query.sql).await?)
}

/// Refuses a plan whose result depends on how its source is cut into batches.
///
/// # Errors
/// `Unsupported`, naming the part of the query.
pub(crate) fn check_batchable(plan: &LogicalPlan, inputs: &Inputs) -> Result<()> {
    match &inputs.source {
        Some((_, source)) => reads_source(plan, source).map(drop),
        None => Ok(()),
    }
}

/// Whether the plan reads the source; an error where the rows of batches would not add up to those of the whole.
fn reads_source(plan: &LogicalPlan, source: &Arc<dyn TableProvider>) -> Result<bool> {
    let refuse = |what: &str| {
        Err(Error::new(
            ErrorKind::Unsupported,
            format!("a flow takes its source batch by batch, so its query can't hold {what}"),
        )
        .help("flows project, filter, and join with tables; compute this from the table that the flow fills, in a materialized view: CREATE MATERIALIZED VIEW .. AS SELECT .."))
    };
    let mut within_subqueries = false;
    plan.apply_subqueries(|subquery| {
        within_subqueries |= reads(subquery, source)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    if within_subqueries {
        return refuse("the stream in a subquery");
    }
    let inputs =
        plan.inputs().into_iter().map(|input| reads_source(input, source)).collect::<Result<Vec<_>>>()?;
    let any = inputs.contains(&true);
    match plan {
        LogicalPlan::TableScan(scan) => Ok(is_source(scan, source)),
        _ if !any => Ok(false),
        LogicalPlan::Aggregate(_) => refuse("an aggregate"),
        LogicalPlan::Window(_) => refuse("a window function"),
        LogicalPlan::Sort(_) => refuse("ORDER BY"),
        LogicalPlan::Limit(_) => refuse("LIMIT"),
        LogicalPlan::Distinct(_) => refuse("DISTINCT"),
        LogicalPlan::RecursiveQuery(_) => refuse("a recursive query"),
        LogicalPlan::Union(_) if inputs.contains(&false) => refuse("a UNION of the stream with a table"),
        LogicalPlan::Join(join) => match (inputs.as_slice(), join.join_type) {
            (_, JoinType::Inner)
            | (
                [true, false],
                JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark,
            )
            | (
                [false, true],
                JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark,
            ) => Ok(true),
            _ => refuse("a join that keeps rows of a table without their match in the stream"),
        },
        _ => Ok(true),
    }
}

fn reads(plan: &LogicalPlan, source: &Arc<dyn TableProvider>) -> datafusion::error::Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found |= matches!(node, LogicalPlan::TableScan(scan) if is_source(scan, source));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

fn is_source(scan: &TableScan, source: &Arc<dyn TableProvider>) -> bool {
    source_as_provider(&scan.source).is_ok_and(|provider| Arc::ptr_eq(&provider, source))
}
