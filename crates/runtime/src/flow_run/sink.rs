//! What becomes of the rows of a flow into a sink of files or of code? They leave the pipeline, batch by batch.
//!
//! A table sink takes rows as any table does: see [`super::append`].

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use futures::StreamExt;
use strandline_table_formats::contract::{Committed, WriterId};

use super::{Input, Taker, Turn};
use crate::{
    batch::BatchOutcome,
    error::{Error, Result},
    sinks::{BatchSink, FileSink, SinkBatch},
    sources::SourceStream,
    state::PlannedBatch,
    types::conform,
};

/// The rows of a batch in the flow's columns, and how many of them were read.
async fn rows(input: &Input<'_>, planned: &PlannedBatch) -> Result<(SourceStream, Arc<AtomicU64>)> {
    let schema = Arc::clone(&input.analysis.target);
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let rows = input.rows(&planned.plan.slice).await?.execute_stream().await?;
    let rows = rows.map(move |batch| {
        let batch = conform(&batch.map_err(Error::from)?, &schema)?;
        counted.fetch_add(batch.num_rows() as u64, Ordering::Relaxed);
        Ok(batch)
    });
    Ok((rows.boxed(), count))
}

fn outcome(rows: u64, bytes: u64) -> BatchOutcome {
    let committed = Committed { rows_written: rows, bytes_written: bytes, ..Committed::default() };
    let mut outcome =
        BatchOutcome { output_rows: Some(rows), committed: Some(committed), ..BatchOutcome::default() };
    outcome.counts.events = rows;
    outcome
}

/// Files, one a batch.
#[async_trait]
impl Taker for FileSink {
    async fn landed(&self) -> Result<Option<u64>> {
        self.newest().await
    }

    async fn take(&self, input: &Input<'_>, planned: &PlannedBatch, _: Option<Turn>) -> Result<BatchOutcome> {
        let (rows, _) = rows(input, planned).await?;
        let sink = &input.flow.target;
        let written = self.write(planned.number, &input.analysis.target, rows).await;
        let written = written.map_err(|error| error.with("sink", sink))?;
        Ok(outcome(written.rows, written.bytes))
    }
}

/// Code of a Rust program, which can't tell what it wrote.
pub(super) struct Code {
    pub(super) sink: Arc<dyn BatchSink>,
    pub(super) writer: WriterId,
}

#[async_trait]
impl Taker for Code {
    async fn landed(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// What code did with the rows that it was given is not known.
    fn forgets(&self) -> bool {
        false
    }

    async fn take(&self, input: &Input<'_>, planned: &PlannedBatch, _: Option<Turn>) -> Result<BatchOutcome> {
        let (rows, count) = rows(input, planned).await?;
        let batch = SinkBatch {
            flow: self.writer.flow.clone(),
            incarnation: self.writer.incarnation,
            batch_id: planned.number,
            schema: Arc::clone(&input.analysis.target),
            rows,
        };
        self.sink.write(batch).await.map_err(|error| error.with("sink", &input.flow.target))?;
        Ok(outcome(count.load(Ordering::Relaxed), 0))
    }
}
