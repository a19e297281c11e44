//! What becomes of the rows of an append flow? They are added to its target, each batch by one commit.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::{FutureExt, StreamExt};
use strandline_table_formats::contract::Table;

use super::{
    Input, Taker, Turn,
    checks::{Checks, Tally},
};
use crate::{
    batch::{self, BatchOutcome, Writer},
    error::{Error, Result},
    sources::SourceStream,
    state::PlannedBatch,
    types::conform,
};

/// The target of an append flow.
pub(super) struct Append {
    table: Arc<dyn Table>,
    writer: Writer,
    checks: Option<Checks>,
}

impl Append {
    pub(super) fn new(table: Arc<dyn Table>, writer: Writer, checks: Option<Checks>) -> Self {
        Self { table, writer, checks }
    }
}

#[async_trait]
impl Taker for Append {
    async fn landed(&self) -> Result<Option<u64>> {
        Ok(self.table.snapshot().await?.last_batch(&self.writer.id))
    }

    async fn take(&self, input: &Input<'_>, planned: &PlannedBatch, _: Option<Turn>) -> Result<BatchOutcome> {
        // Of the newest attempt: only that one may have landed.
        let found: Mutex<Option<Tally>> = Mutex::default();
        let rows = || {
            let schema = Arc::clone(&input.analysis.target);
            let rows = async {
                let rows = input.rows(&planned.plan.slice).await?.execute_stream().await?;
                let rows = rows.map(move |batch| conform(&batch.map_err(Error::from)?, &schema)).boxed();
                let Some(checks) = &self.checks else { return Ok(rows as SourceStream) };
                let (rows, tally) = checks.stream(rows, planned);
                if let Ok(mut found) = found.lock() {
                    *found = Some(tally);
                }
                Ok(rows)
            };
            rows.boxed()
        };
        let mut outcome = batch::append(self.table.as_ref(), &self.writer, planned.number, &rows).await?;
        outcome.output_rows = Some(outcome.counts.upserted);
        let quality = found.lock().ok().and_then(|found| found.as_ref().map(Tally::found));
        let dropped = quality.as_ref().map_or(0, |quality| quality.dropped_records);
        outcome.counts.events = outcome.counts.upserted + dropped;
        outcome.quality = quality;
        Ok(outcome)
    }
}
