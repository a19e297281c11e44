//! How do a stream of rows and a table of ours look to DataFusion?

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::{
    catalog::{Session, TableProvider, streaming::StreamingTable},
    datasource::{MemTable, TableType},
    error::{DataFusionError, Result as DfResult},
    execution::{SendableRecordBatchStream, TaskContext},
    logical_expr::Expr,
    physical_plan::{
        ExecutionPlan,
        stream::RecordBatchStreamAdapter,
        streaming::{PartitionStream, StreamingTableExec},
    },
};
use futures::{StreamExt, TryStreamExt, stream};
use strandline_table_formats::contract::TableSnapshot;

use crate::{
    error::Error,
    sources::{Source, SourceStream},
    types::conform,
};

/// Rows that can be read once: the input of one batch.
pub(crate) fn once(schema: SchemaRef, rows: SourceStream) -> DfResult<Arc<dyn TableProvider>> {
    let rows = OneStream { schema: Arc::clone(&schema), rows: Mutex::new(Some(rows)) };
    Ok(Arc::new(StreamingTable::try_new(schema, vec![Arc::new(rows)])?))
}

/// No rows: enough to find out which columns a query has.
pub(crate) fn columns_only(schema: SchemaRef) -> DfResult<Arc<dyn TableProvider>> {
    once(schema, stream::empty().boxed())
}

struct OneStream {
    schema: SchemaRef,
    rows: Mutex<Option<SourceStream>>,
}

impl fmt::Debug for OneStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OneStream")
    }
}

impl PartitionStream for OneStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = self.rows.lock().ok().and_then(|mut rows| rows.take());
        let rows = rows.unwrap_or_else(|| {
            let twice =
                Error::new(crate::error::ErrorKind::Unsupported, "a query reads its stream more than once");
            stream::once(async {
                Err(twice.help("read it once; join with tables instead of the stream itself"))
            })
            .boxed()
        });
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows.map_err(DataFusionError::from)))
    }
}

/// These rows.
pub(crate) fn table_of(rows: RecordBatch) -> DfResult<Arc<dyn TableProvider>> {
    Ok(Arc::new(MemTable::try_new(rows.schema(), vec![vec![rows]])?))
}

/// All rows of a source, as often as they are asked for.
pub(crate) fn everything(source: Arc<dyn Source>) -> DfResult<Arc<dyn TableProvider>> {
    let schema = source.schema();
    let rows = Everything { schema: Arc::clone(&schema), source };
    Ok(Arc::new(StreamingTable::try_new(schema, vec![Arc::new(rows)])?))
}

#[derive(Debug)]
struct Everything {
    schema: SchemaRef,
    source: Arc<dyn Source>,
}

impl PartitionStream for Everything {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let source = Arc::clone(&self.source);
        let start = source.start();
        let slices = stream::try_unfold((source, start), |(source, progress)| async {
            let Some(slice) = source.next(&progress).await? else { return Ok(None) };
            let rows = source.read(&slice).await?;
            let progress = source.advance(progress, &slice)?;
            Ok::<_, Error>(Some((rows, (source, progress))))
        });
        let schema = Arc::clone(&self.schema);
        let rows = slices.try_flatten().map(move |batch| conform(&batch?, &schema));
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows.map_err(DataFusionError::from)))
    }
}

/// One version of a table.
#[derive(Debug)]
pub(crate) struct SnapshotTable {
    snapshot: Arc<dyn TableSnapshot>,
    schema: SchemaRef,
}

impl SnapshotTable {
    pub(crate) fn new(snapshot: Arc<dyn TableSnapshot>) -> Self {
        Self { schema: snapshot.schema(), snapshot }
    }
}

#[async_trait]
impl TableProvider for SnapshotTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(columns) => Arc::new(self.schema.project(columns)?),
            None => Arc::clone(&self.schema),
        };
        let scan = SnapshotScan { snapshot: Arc::clone(&self.snapshot), schema: Arc::clone(&schema) };
        Ok(Arc::new(StreamingTableExec::try_new(schema, vec![Arc::new(scan)], None, None, false, limit)?))
    }
}

#[derive(Debug)]
struct SnapshotScan {
    snapshot: Arc<dyn TableSnapshot>,
    schema: SchemaRef,
}

impl PartitionStream for SnapshotScan {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let snapshot = Arc::clone(&self.snapshot);
        let schema = Arc::clone(&self.schema);
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let rows = stream::once(async move { snapshot.scan(Some(&names)).await })
            .try_flatten()
            .map_err(|error| DataFusionError::from(Error::from(error)));
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }
}
