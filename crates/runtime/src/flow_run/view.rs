//! What becomes of the rows of a materialized view? They take the place of all rows before them, in one commit.
//!
//! A view is computed when something that it reads has changed since it was computed, or its text has: tables by their
//! versions, files by their list. What a query makes of the moment (`now()`, `random()`) is computed in each update.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use arrow_schema::{Schema, SchemaRef};
use async_trait::async_trait;
use futures::{FutureExt, StreamExt};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strandline_table_formats::contract::{BatchStream, Table, TableChange, TableDefinition};

use super::{
    Input, Taker, Turn,
    checks::{Checks, Tally},
};
use crate::{
    analysis::{FlowAnalysis, ViewWork, signed},
    batch::{self, BatchOutcome, Writer},
    clock::rfc3339,
    error::{Error, ErrorKind, Result},
    query::{self, InputVersion},
    sources::{Source, SourceStream},
    state::PlannedBatch,
    types::{conform, storable},
    update::Context,
};

/// What a view was computed from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Seen {
    /// The text of the query, of the views behind it, and of the constraints.
    text: String,
    /// The table that holds the rows: one that was made anew holds none.
    table: String,
    inputs: Vec<InputVersion>,
    /// The update and the moment, for a query that is never the same twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moment: Option<(u64, String)>,
}

/// The inputs of a materialized view: there is something to take when they are not those that it was computed from.
pub(super) struct ViewSource<'a> {
    context: &'a Context,
    name: &'a str,
    work: &'a ViewWork,
    opened_at: String,
}

impl fmt::Debug for ViewSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewSource").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a> ViewSource<'a> {
    pub(super) fn new(context: &'a Context, name: &'a str, work: &'a ViewWork) -> Self {
        Self { context, name, work, opened_at: rfc3339(context.clock.now()) }
    }

    fn no_slices() -> Error {
        Error::new(ErrorKind::Internal, "a materialized view does not take its inputs in slices")
    }
}

#[async_trait]
impl Source for ViewSource<'_> {
    fn schema(&self) -> SchemaRef {
        Arc::new(Schema::empty())
    }

    fn start(&self) -> Value {
        Value::Object(serde_json::Map::new())
    }

    async fn next(&self, progress: &Value) -> Result<Option<Value>> {
        let format = self.context.format.as_ref();
        let table = format.open(self.name).await?.ok_or_else(|| {
            Error::new(ErrorKind::State, "the table of a materialized view is gone").with("table", self.name)
        })?;
        let seen = Seen {
            text: self.work.text.clone(),
            table: table.snapshot().await?.identity().to_owned(),
            inputs: self.work.whole.versions(format).await?,
            moment: self.work.is_volatile.then(|| (self.context.epoch, self.opened_at.clone())),
        };
        let seen = serde_json::to_value(seen)?;
        Ok((seen != *progress).then_some(seen))
    }

    fn advance(&self, _: Value, slice: &Value) -> Result<Value> {
        Ok(slice.clone())
    }

    async fn read(&self, _: &Value) -> Result<SourceStream> {
        Err(Self::no_slices())
    }

    async fn available(&self) -> Result<Value> {
        Err(Self::no_slices())
    }

    fn fixed(&self, _: &Value) -> Result<Box<dyn Source>> {
        Err(Self::no_slices())
    }
}

/// The table of a materialized view.
pub(super) struct View<'a> {
    pub(super) table: Arc<dyn Table>,
    pub(super) writer: Writer,
    pub(super) checks: Option<Checks>,
    pub(super) definition: TableDefinition,
    pub(super) work: &'a ViewWork,
}

#[async_trait]
impl Taker for View<'_> {
    async fn landed(&self) -> Result<Option<u64>> {
        Ok(self.table.snapshot().await?.last_batch(&self.writer.id))
    }

    async fn take(&self, input: &Input<'_>, planned: &PlannedBatch, _: Option<Turn>) -> Result<BatchOutcome> {
        let found: Mutex<Option<Tally>> = Mutex::default();
        let rows = || {
            async {
                let rows = computed(input.context, input.flow.query(), input.analysis, self.work).await?;
                let Some(checks) = &self.checks else { return Ok(rows) };
                let (rows, tally) = checks.stream(rows, planned);
                if let Ok(mut found) = found.lock() {
                    *found = Some(tally);
                }
                Ok(rows)
            }
            .boxed()
        };
        let as_it_is = is_as_defined(self.table.as_ref(), &self.definition).await?;
        let change = |rows: BatchStream| {
            if as_it_is {
                return TableChange::Overwrite(rows);
            }
            TableChange::Replace { definition: Box::new(self.definition.clone()), rows }
        };
        let mut outcome =
            batch::replace(self.table.as_ref(), &self.writer, planned.number, &rows, &change).await?;
        outcome.output_rows = Some(outcome.counts.upserted);
        let quality = found.lock().ok().and_then(|found| found.as_ref().map(Tally::found));
        let dropped = quality.as_ref().map_or(0, |quality| quality.dropped_records);
        outcome.counts.events = outcome.counts.upserted + dropped;
        outcome.quality = quality;
        Ok(outcome)
    }
}

/// The rows of the view's query over its inputs as they are now.
async fn computed(
    context: &Context,
    query: Option<&strandline_pipeline_sql::FlowQuery>,
    analysis: &FlowAnalysis,
    work: &ViewWork,
) -> Result<SourceStream> {
    let query = query.ok_or_else(|| Error::new(ErrorKind::Internal, "the flow has no query"))?;
    let inputs = work.whole.read(context.format.as_ref()).await?;
    let rows = signed(query::plan(&context.definition, query, &inputs).await?)?.execute_stream().await?;
    let schema = Arc::clone(&analysis.target);
    Ok(rows.map(move |batch| conform(&batch.map_err(Error::from)?, &schema)).boxed())
}

/// Whether the table has the columns and the properties that the view has now.
async fn is_as_defined(table: &dyn Table, definition: &TableDefinition) -> Result<bool> {
    let snapshot = table.snapshot().await?;
    let users = |properties: &std::collections::BTreeMap<String, String>| {
        let own =
            |name: &str| ["strandline.", "delta.", "write."].iter().any(|prefix| name.starts_with(prefix));
        let users = properties.iter().filter(|(name, _)| !own(name));
        users.map(|(name, value)| (name.clone(), value.clone())).collect::<Vec<_>>()
    };
    Ok(storable(&snapshot.schema()) == storable(&definition.schema)
        && users(snapshot.properties()) == users(&definition.properties))
}
