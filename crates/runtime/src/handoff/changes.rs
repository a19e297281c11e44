//! Which keys and sequences do the rows of a change flow have?
//!
//! The flow's source is read whole, as it is now, and its query run over it once.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, cast::AsArray};
use arrow_schema::{Field, FieldRef, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;
use datafusion::{
    dataframe::DataFrame,
    execution::SendableRecordBatchStream,
    logical_expr::{Expr, ident},
};
use futures::{StreamExt, TryStreamExt, stream};

use super::Side;
use crate::{
    error::{Error, ErrorKind, Result},
    flow_run::open_source,
    project::Project,
    query::{self, Inputs},
    sources::{Source, SourceStream},
    types::{cast_exactly, conform},
};

const SEQUENCE: &str = "__strandline_sequence";
const TRUNCATE: &str = "__strandline_truncate";
const VALID_TO: &str = "__strandline_valid_to";

/// Changes of a flow, without their payload.
pub(super) struct Changes {
    /// Key columns, in declared order and stored types.
    pub(super) keys: Vec<ArrayRef>,
    pub(super) sequence: ArrayRef,
    /// Where `VALID TO` says that the row's version ends, in the type of the sequence.
    pub(super) valid_to: Option<ArrayRef>,
}

/// The changes of one flow, batch by batch.
pub(super) struct ChangeReader {
    rows: SendableRecordBatchStream,
    keys: Vec<FieldRef>,
    sequence: Field,
    flow: String,
}

impl ChangeReader {
    pub(super) async fn open(project: &Project, side: &Side<'_>) -> Result<Self> {
        Self::open_named(project, side).await.map_err(|error| error.with("flow", &side.flow.name))
    }

    async fn open_named(project: &Project, side: &Side<'_>) -> Result<Self> {
        let format = project.storage().format.as_ref();
        let source = open_source(format, &side.analysis).await.map_err(|error| {
            if error.kind() == ErrorKind::NotFound {
                error.help("run the flows that fill it first")
            } else {
                error
            }
        })?;
        let schema = Arc::clone(&side.analysis.source_schema);
        let rows = everything(Arc::from(source), Arc::clone(&schema)).await?;
        let definition = project.definition();
        let query = &side.cdc.source;
        let tables = query::static_tables(definition, query, format).await?;
        let inputs = Inputs::batch(&side.analysis.source, schema, rows, tables)?;
        let rows = selected(side, query::plan(definition, query, &inputs).await?)?;
        Ok(Self {
            rows: rows.execute_stream().await?,
            keys: side.keys.clone(),
            sequence: Field::new(SEQUENCE, side.sequence.clone(), true),
            flow: side.flow.name.clone(),
        })
    }

    pub(super) async fn next(&mut self) -> Result<Option<Changes>> {
        let batch = self.rows.try_next().await.map_err(Error::from);
        let changes = batch.and_then(|batch| batch.map(|batch| self.changes(&batch)).transpose());
        changes.map_err(|error| error.with("flow", &self.flow))
    }

    fn changes(&self, batch: &RecordBatch) -> Result<Changes> {
        let batch = without_truncates(batch)?;
        let fields: Vec<FieldRef> =
            self.keys.iter().cloned().chain([Arc::new(self.sequence.clone())]).collect();
        let fitted = conform(&batch, &Arc::new(Schema::new(fields)))?;
        let mut keys = fitted.columns().to_vec();
        let sequence = keys
            .pop()
            .ok_or_else(|| Error::new(ErrorKind::Internal, "the rows of a flow have no sequence"))?;
        let end = Field::new("VALID TO", self.sequence.data_type().clone(), true);
        let valid_to = batch.column_by_name(VALID_TO).map(|column| cast_exactly(column, &end)).transpose()?;
        Ok(Changes { keys, sequence, valid_to })
    }
}

/// Truncates have no key.
fn without_truncates(batch: &RecordBatch) -> Result<RecordBatch> {
    // A condition that is NULL for every row has no type of its own, and holds for none.
    let condition = batch.column_by_name(TRUNCATE).and_then(|column| column.as_boolean_opt());
    let Some(truncates) = condition else { return Ok(batch.clone()) };
    let changes = truncates.iter().map(|truncate| Some(truncate != Some(true))).collect();
    Ok(filter_record_batch(batch, &changes)?)
}

/// Keys, sequence, and what says whether a row is a change of a key.
fn selected(side: &Side<'_>, rows: DataFrame) -> Result<DataFrame> {
    let parsed = |clause: &'static str, text: &str, name: &str| -> Result<Expr> {
        let expr = rows.parse_sql_expr(text).map_err(|e| {
            let error = Error::from(e);
            Error::new(ErrorKind::Definition, format!("{clause} can't be understood: {}", error.full_text()))
        })?;
        Ok(expr.alias(name))
    };
    let mut columns: Vec<Expr> = side.keys.iter().map(|key| ident(key.name())).collect();
    columns.push(parsed("SEQUENCE BY", side.cdc.sequence_by.sql(), SEQUENCE)?);
    if let Some(end) = &side.cdc.valid_to {
        columns.push(parsed("VALID TO", end.sql(), VALID_TO)?);
    }
    if let Some(condition) = &side.cdc.apply_as_truncate {
        columns.push(parsed("APPLY AS TRUNCATE WHEN", condition.sql(), TRUNCATE)?);
    }
    Ok(rows.select(columns)?)
}

/// All that a source has now, in one stream.
async fn everything(source: Arc<dyn Source>, schema: SchemaRef) -> Result<SourceStream> {
    let mut slices = Vec::new();
    let mut progress = source.start();
    while let Some(slice) = source.next(&progress).await? {
        progress = source.advance(progress, &slice)?;
        slices.push(slice);
    }
    let rows = stream::iter(slices).then(move |slice| {
        let source = Arc::clone(&source);
        async move { source.read(&slice).await }
    });
    Ok(rows.try_flatten().map(move |batch| conform(&batch?, &schema)).boxed())
}
