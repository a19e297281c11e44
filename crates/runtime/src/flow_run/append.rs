//! What becomes of the rows of an append flow? They are added to its target, each batch by one commit.

use std::sync::Arc;

use async_trait::async_trait;
use futures::{FutureExt, StreamExt};
use strandline_table_formats::contract::Table;

use super::{Input, Taker, Turn};
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
}

impl Append {
    pub(super) fn new(table: Arc<dyn Table>, writer: Writer) -> Self {
        Self { table, writer }
    }
}

#[async_trait]
impl Taker for Append {
    async fn landed(&self) -> Result<Option<u64>> {
        Ok(self.table.snapshot().await?.last_batch(&self.writer.id))
    }

    async fn take(&self, input: &Input<'_>, planned: &PlannedBatch, _: Option<Turn>) -> Result<BatchOutcome> {
        let rows = || {
            let schema = Arc::clone(&input.analysis.target);
            let rows = async move {
                let rows = input.rows(&planned.plan.slice).await?.execute_stream().await?;
                let rows = rows.map(move |batch| conform(&batch.map_err(Error::from)?, &schema));
                Ok(rows.boxed() as SourceStream)
            };
            rows.boxed()
        };
        let mut outcome = batch::append(self.table.as_ref(), &self.writer, planned.number, &rows).await?;
        outcome.counts.events = outcome.counts.upserted;
        Ok(outcome)
    }
}
