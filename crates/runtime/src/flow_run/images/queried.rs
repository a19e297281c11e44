//! Images that a query gives, of versions that another query chooses.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{FieldRef, Schema};
use async_trait::async_trait;
use datafusion::{catalog::TableProvider, dataframe::DataFrame};
use futures::{StreamExt, TryStreamExt};
use strandline_pipeline_sql::{FlowQuery, PipelineDefinition};
use strandline_table_formats::contract::TableFormat;

use super::Gallery;
use crate::{
    error::{Error, ErrorKind, Result},
    query::{self, Inputs, Whole},
    relation,
    snapshots::{INVALID_QUERY, NULL_VERSION, SnapshotVersion, condition},
    sources::SourceStream,
    update::Context,
};

/// A query, and what it reads whole.
pub(super) struct WholeQuery {
    definition: PipelineDefinition,
    query: FlowQuery,
    reads: Whole,
    format: Arc<dyn TableFormat>,
}

impl WholeQuery {
    pub(super) fn new(context: &Context, query: &FlowQuery, reads: &Whole) -> Self {
        Self {
            definition: context.definition.clone(),
            query: query.clone(),
            reads: reads.clone(),
            format: Arc::clone(&context.format),
        }
    }

    /// Its rows, over its inputs as they are now; `given` adds what they don't hold.
    pub(super) async fn rows(&self, given: impl FnOnce(Inputs) -> Inputs) -> Result<DataFrame> {
        let inputs = given(self.reads.read(self.format.as_ref()).await?);
        query::plan(&self.definition, &self.query, &inputs).await
    }
}

/// `FROM SNAPSHOT (image) WITH VERSION (version)`.
pub(super) struct Queried {
    image: WholeQuery,
    version: WholeQuery,
    column: FieldRef,
}

impl Queried {
    pub(super) fn new(image: WholeQuery, version: WholeQuery, column: FieldRef) -> Self {
        Self { image, version, column }
    }

    fn table_of(&self, version: Option<&SnapshotVersion>) -> Result<Arc<dyn TableProvider>> {
        let schema = Arc::new(Schema::new(vec![self.column.as_ref().clone().with_nullable(true)]));
        let rows = match version {
            Some(version) => RecordBatch::try_new(schema, vec![Arc::clone(version.value())])?,
            None => RecordBatch::new_empty(schema),
        };
        Ok(relation::table_of(rows)?)
    }
}

#[async_trait]
impl Gallery for Queried {
    async fn next(&self, last: Option<&SnapshotVersion>) -> Result<Option<ArrayRef>> {
        let last = self.table_of(last)?;
        let rows = self.version.rows(|inputs| inputs.with_last_version(last)).await?;
        let rows = rows.limit(0, Some(2))?.collect().await?;
        let values: Vec<ArrayRef> = rows
            .iter()
            .filter_map(|batch| batch.columns().first())
            .flat_map(|column| (0..column.len()).map(|row| column.slice(row, 1)))
            .collect();
        match values.as_slice() {
            [] => Ok(None),
            [one] if one.is_null(0) => Err(condition(
                ErrorKind::Data,
                NULL_VERSION,
                "WITH VERSION gave NULL",
            )
            .with("query", &self.version.query.text)
            .help(
                "an aggregate such as max(v) gives a row where it finds none: add HAVING max(v) IS NOT NULL",
            )),
            [one] => Ok(Some(Arc::clone(one))),
            _ => Err(condition(ErrorKind::Data, INVALID_QUERY, "WITH VERSION gave several rows")
                .with("query", &self.version.query.text)
                .help("let it give the next version only, with min(..) or ORDER BY and LIMIT 1")),
        }
    }

    async fn read(&self, version: &SnapshotVersion) -> Result<SourceStream> {
        let version = self.table_of(Some(version))?;
        stream_of(self.image.rows(|inputs| inputs.with_current_version(version)).await?).await
    }
}

pub(super) async fn stream_of(rows: DataFrame) -> Result<SourceStream> {
    Ok(rows.execute_stream().await?.map_err(Error::from).boxed())
}
