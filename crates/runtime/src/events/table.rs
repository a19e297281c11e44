//! How is the event log asked? As rows of the table function `events()`.
//!
//! | column | |
//! | --- | --- |
//! | `timestamp`, `update_id`, `sequence` | when, in which update, the how-manieth of it |
//! | `event_type`, `level`, `message` | what |
//! | `flow_name`, `dataset_name` | of what |
//! | `status` | of a flow; of an update its state |
//! | `error_condition`, `error_message` | why |
//! | `num_batches`, `num_output_rows`, `num_upserted_rows`, `num_deleted_rows`, `num_dropped_records` | sums of the flow in the update so far |
//! | `details` | all of it, as JSON |

use std::{fmt, sync::Arc};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMillisecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use datafusion::{
    catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider},
    datasource::TableType,
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
use object_store::{ObjectStore, path::Path};
use serde_json::Value;

use super::{Event, segments};
use crate::{
    clock::milliseconds,
    error::{Error, ErrorKind, Result},
};

/// The name of the table function.
pub(crate) const NAME: &str = "events";

/// The function `events()`.
pub(crate) struct EventsFunction {
    store: Arc<dyn ObjectStore>,
}

impl EventsFunction {
    pub(crate) fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self { store }
    }
}

impl fmt::Debug for EventsFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventsFunction")
    }
}

impl TableFunctionImpl for EventsFunction {
    fn call_with_args(&self, args: TableFunctionArgs<'_, '_>) -> DfResult<Arc<dyn TableProvider>> {
        if !args.exprs().is_empty() {
            let error = Error::new(ErrorKind::Definition, "events() takes no arguments")
                .help("filter its rows: SELECT .. FROM events() WHERE ..");
            return Err(error.into());
        }
        Ok(Arc::new(EventsTable { store: Arc::clone(&self.store), schema: schema() }))
    }
}

struct EventsTable {
    store: Arc<dyn ObjectStore>,
    schema: SchemaRef,
}

impl fmt::Debug for EventsTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventsTable")
    }
}

#[async_trait]
impl TableProvider for EventsTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let rows = Rows { store: Arc::clone(&self.store), schema: Arc::clone(&self.schema) };
        let schema = Arc::clone(&self.schema);
        let exec = StreamingTableExec::try_new(schema, vec![Arc::new(rows)], projection, None, false, limit)?;
        Ok(Arc::new(exec))
    }
}

struct Rows {
    store: Arc<dyn ObjectStore>,
    schema: SchemaRef,
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rows")
    }
}

impl PartitionStream for Rows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let store = Arc::clone(&self.store);
        let rows = stream::once(async move {
            let paths: Vec<Path> =
                segments::all(&store).await?.into_values().flatten().map(|segment| segment.path).collect();
            let batches = stream::iter(paths).then(move |path| {
                let store = Arc::clone(&store);
                async move { batch(&events(&store, &path).await?) }
            });
            Ok::<_, Error>(batches)
        });
        let rows = rows.try_flatten().map_err(DataFusionError::from).boxed();
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows))
    }
}

/// The events of one object of the log.
pub(crate) async fn events(store: &Arc<dyn ObjectStore>, path: &Path) -> Result<Vec<Event>> {
    let bytes = segments::read(store, path).await?;
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let event = |line: &[u8]| {
        serde_json::from_slice(line).map_err(|e| {
            Error::new(ErrorKind::State, "a line of the event log is no event").with("file", path).because(e)
        })
    };
    lines.map(event).collect()
}

fn schema() -> SchemaRef {
    let text = |name: &str| Field::new(name, DataType::Utf8, true);
    let number = |name: &str| Field::new(name, DataType::Int64, true);
    let at = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
    let mut fields = vec![Field::new("timestamp", at, true), number("update_id"), number("sequence")];
    fields.extend(
        [
            "event_type",
            "level",
            "message",
            "flow_name",
            "dataset_name",
            "status",
            "error_condition",
            "error_message",
        ]
        .map(text),
    );
    fields.extend(METRICS.map(number));
    fields.push(text("details"));
    Arc::new(Schema::new(fields))
}

const METRICS: [&str; 5] =
    ["num_batches", "num_output_rows", "num_upserted_rows", "num_deleted_rows", "num_dropped_records"];

fn batch(events: &[Event]) -> Result<RecordBatch> {
    fn text<'a>(events: &'a [Event], of: impl Fn(&'a Event) -> Option<&'a str>) -> ArrayRef {
        Arc::new(events.iter().map(of).collect::<StringArray>())
    }
    fn number(events: &[Event], of: impl Fn(&Event) -> Option<u64>) -> ArrayRef {
        let numbers = events.iter().map(|event| of(event).and_then(|n| i64::try_from(n).ok()));
        Arc::new(numbers.collect::<Int64Array>())
    }
    let at: TimestampMillisecondArray = events.iter().map(|event| milliseconds(&event.timestamp)).collect();
    let details: StringArray = events.iter().map(|event| Some(event.details.to_string())).collect();
    let error = |of: fn(&super::EventError) -> Option<&str>| {
        text(events, move |event| event.error.as_ref().and_then(of))
    };
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(at.with_timezone("UTC")),
        number(events, |event| Some(event.origin.update_id)),
        number(events, |event| Some(event.sequence)),
        text(events, |event| Some(&event.event_type)),
        text(events, |event| Some(&event.level)),
        text(events, |event| Some(&event.message)),
        text(events, |event| event.origin.flow_name.as_deref()),
        text(events, |event| event.origin.dataset_name.as_deref()),
        text(events, status),
        error(|error| error.condition.as_deref()),
        error(|error| Some(&error.message)),
    ];
    columns.extend(METRICS.map(|metric| number(events, |event| metric_of(event, metric))));
    columns.push(Arc::new(details));
    Ok(RecordBatch::try_new(schema(), columns)?)
}

/// The details without the object around them.
fn inner(event: &Event) -> Option<&Value> {
    event.details.get(&event.event_type)
}

/// The status of a flow, or the state of an update.
pub(crate) fn status(event: &Event) -> Option<&str> {
    let details = inner(event)?;
    details.get("status").or_else(|| details.get("state"))?.as_str()
}

/// A metric of a flow.
pub(crate) fn metric_of(event: &Event, metric: &str) -> Option<u64> {
    let details = inner(event)?;
    match metric {
        "num_dropped_records" => details.get("data_quality")?.get("dropped_records"),
        _ => details.get("metrics")?.get(metric),
    }?
    .as_u64()
}
