//! What does a snapshot flow mean? Columns of its images, name and type of their versions.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use datafusion::{
    dataframe::DataFrame,
    sql::sqlparser::{
        ast::{Expr, Query, SelectItem, SetExpr, Statement},
        dialect::GenericDialect,
        parser::Parser,
    },
};
use strandline_cdc_core::{CdcError, CdcOptions, CdcSpec, SequenceTypes};
use strandline_pipeline_sql::{FlowQuery, InputKind, PipelineDefinition, SnapshotCdc, SnapshotSource};
use strandline_table_formats::contract::TableFormat;

use super::cdc::CdcWork;
use crate::{
    error::{Error, ErrorKind, Result},
    properties::Properties,
    query::{self, Whole},
    relation,
    snapshots::{INVALID_QUERY, SnapshotProvider, condition},
    types::storable,
};

/// What a snapshot flow reads.
#[derive(Debug, Clone)]
pub(crate) struct SnapshotInput {
    /// The column of versions, in its stored type.
    pub(crate) version: FieldRef,
    /// What the query of the images reads.
    pub(crate) image_inputs: Whole,
    /// What the query of the versions reads.
    pub(crate) version_inputs: Whole,
}

/// Name of the version's column where no query names it.
const VERSION: &str = "version";

/// A snapshot flow and what its queries may read.
pub(super) struct Asked<'a> {
    pub(super) definition: &'a PipelineDefinition,
    pub(super) snapshot: &'a SnapshotCdc,
    /// Columns of the pipeline's tables, as far as they are known.
    pub(super) tables: &'a BTreeMap<String, SchemaRef>,
    pub(super) format: &'a dyn TableFormat,
    pub(super) provider: Option<&'a Arc<dyn SnapshotProvider>>,
}

/// Understands a snapshot flow. Also returns the columns of its images, in stored types.
pub(super) async fn analyse(
    asked: Asked<'_>,
    properties: &Properties,
) -> Result<(SnapshotInput, SchemaRef, CdcWork)> {
    let (input, rows) = match (&asked.snapshot.source, asked.provider) {
        (SnapshotSource::Callback, Some(provider)) => {
            let version = Field::new(VERSION, provider.version_type(), true);
            let inputs = (Whole::default(), Whole::default());
            (snapshot_input(&version, inputs), Arc::new(storable(&provider.schema())))
        }
        (SnapshotSource::Callback, None) => {
            return Err(Error::new(
                ErrorKind::Definition,
                "FROM SNAPSHOT CALLBACK needs code that gives the snapshots, and there is none",
            )
            .help(
                "run the pipeline from Rust, with Project::with_snapshots(flow, provider); or write a query",
            ));
        }
        (SnapshotSource::Query { image, version }, _) => queries(&asked, image, version.as_ref()).await?,
    };
    let work = work(&asked.snapshot.options, &rows, input.version.data_type(), properties)?;
    Ok((input, rows, work))
}

fn snapshot_input(version: &Field, (image_inputs, version_inputs): (Whole, Whole)) -> SnapshotInput {
    let stored = storable(&Schema::new(vec![version.clone()]));
    let version = stored.fields().first().cloned().unwrap_or_else(|| Arc::new(version.clone()));
    SnapshotInput { version, image_inputs, version_inputs }
}

async fn queries(
    asked: &Asked<'_>,
    image: &FlowQuery,
    version: Option<&FlowQuery>,
) -> Result<(SnapshotInput, SchemaRef)> {
    let definition = asked.definition;
    let image_inputs = Whole::of(definition, [image], asked.tables, asked.format).await?;
    let version_inputs = Whole::of(definition, version, asked.tables, asked.format).await?;
    let column = match version {
        Some(query) => version_column(definition, query, &version_inputs).await?,
        // The time at which it is taken in.
        None => Field::new(VERSION, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
    };
    let input = snapshot_input(&column, (image_inputs, version_inputs));
    let mut inputs = input.image_inputs.columns_only()?;
    if version.is_some() {
        inputs = inputs.with_current_version(no_version(&input.version)?);
    }
    let rows = query::plan(definition, image, &inputs).await?;
    Ok((input, Arc::new(storable(rows.schema().as_arrow()))))
}

/// A table of versions without a row.
fn no_version(column: &FieldRef) -> Result<Arc<dyn datafusion::catalog::TableProvider>> {
    let schema = Arc::new(Schema::new(vec![Arc::clone(column)]));
    Ok(relation::table_of(RecordBatch::new_empty(schema))?)
}

/// Name and type of the version that a query gives.
///
/// `last_snapshot_version()` has the very column that the query gives, so that a query which reads it is planned again
/// with what came out of it, until both are the same.
async fn version_column(definition: &PipelineDefinition, query: &FlowQuery, inputs: &Whole) -> Result<Field> {
    let reads_last = query.inputs.iter().any(|input| input.kind == InputKind::LastSnapshotVersion);
    if !reads_last {
        return one_column(&planned(definition, query, inputs, None).await?);
    }
    let name = output_name(&query.sql).unwrap_or_else(|| VERSION.to_owned());
    let mut failure = None;
    for first in first_types() {
        let mut assumed = Field::new(&name, first, true);
        for _ in 0..ROUNDS {
            let rows = match planned(definition, query, inputs, Some(&assumed)).await {
                Ok(rows) => rows,
                Err(error) => {
                    failure.get_or_insert(error);
                    break;
                }
            };
            let found = one_column(&rows)?;
            if found.data_type() == assumed.data_type() && found.name() == assumed.name() {
                if *found.data_type() != DataType::Null {
                    return Ok(found);
                }
                break;
            }
            assumed = found;
        }
    }
    Err(failure.unwrap_or_else(|| {
        condition(
            ErrorKind::Definition,
            INVALID_QUERY,
            "the type of the version can't be told from the query",
        )
        .with("query", &query.text)
        .help("cast the version, for example CAST(max(v) AS BIGINT) AS v")
    }))
}

/// How often a query is planned again with the column that came out of it.
const ROUNDS: usize = 4;

/// Types to begin with: no type of its own, which takes that of what it is compared with; then the usual ones.
fn first_types() -> [DataType; 6] {
    [
        DataType::Null,
        DataType::Int64,
        DataType::Utf8,
        DataType::Date32,
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        DataType::Timestamp(TimeUnit::Microsecond, None),
    ]
}

async fn planned(
    definition: &PipelineDefinition,
    query: &FlowQuery,
    inputs: &Whole,
    last: Option<&Field>,
) -> Result<DataFrame> {
    let mut inputs = inputs.columns_only()?;
    if let Some(last) = last {
        inputs = inputs.with_last_version(no_version(&Arc::new(last.clone()))?);
    }
    // Types are settled once literals and columns are brought to one type.
    let rows = query::plan(definition, query, &inputs).await?;
    let (state, plan) = rows.into_parts();
    let plan = state.optimize(&plan)?;
    Ok(DataFrame::new(state, plan))
}

fn one_column(rows: &DataFrame) -> Result<Field> {
    let columns = storable(rows.schema().as_arrow());
    match columns.fields().as_ref() {
        [one] => Ok(one.as_ref().clone()),
        several => {
            let names: Vec<&str> = several.iter().map(|field| field.name().as_str()).collect();
            Err(condition(ErrorKind::Definition, INVALID_QUERY, "WITH VERSION must give one column")
                .with("columns", names.join(", "))
                .help("put several values into one: SELECT named_struct('at', at, 'n', n) AS version"))
        }
    }
}

/// The name that the first column of a query's rows has, if it is written there.
fn output_name(sql: &str) -> Option<String> {
    let mut statements = Parser::parse_sql(&GenericDialect {}, sql).ok()?.into_iter();
    match statements.next()? {
        Statement::Query(query) => name_in(&query),
        _ => None,
    }
}

fn name_in(query: &Query) -> Option<String> {
    let mut body = query.body.as_ref();
    loop {
        body = match body {
            SetExpr::SetOperation { left, .. } => left.as_ref(),
            SetExpr::Query(inner) => inner.body.as_ref(),
            SetExpr::Select(select) => {
                return match select.projection.first()? {
                    SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
                    SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name.value.clone()),
                    SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
                        parts.last().map(|name| name.value.clone())
                    }
                    _ => None,
                };
            }
            _ => return None,
        };
    }
}

fn work(
    options: &CdcOptions,
    rows: &SchemaRef,
    version: &DataType,
    properties: &Properties,
) -> Result<CdcWork> {
    let sequences = SequenceTypes { sequence: version.clone(), system: None };
    let options = CdcOptions {
        on_tie: properties.on_tie,
        system_time: properties.system_time,
        null_sequence_fields: properties.null_sequence_fields,
        tombstones_expire: properties.tombstones_expire_after.is_some(),
        ..options.clone()
    };
    let spec = CdcSpec::new(&options, rows, sequences.clone()).map_err(|error| match error {
        CdcError::NonOrderableSequence { data_type } => condition(
            ErrorKind::Definition,
            "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.SNAPSHOT_VERSION_NOT_SORTABLE",
            "versions of this type have no order",
        )
        .with("type", data_type),
        other => Error::from(other),
    })?;
    Ok(CdcWork::new(spec, options, Arc::clone(rows), sequences))
}
