//! How does a Rust program take the batches of a flow?

use std::{fmt, future::Future, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use futures::TryStreamExt;

use crate::{error::Result, sources::SourceStream};

/// One batch of a flow, on its way out of the pipeline.
pub struct SinkBatch {
    /// The flow that it comes from.
    pub flow: String,
    /// Which life of the flow: one more after each full refresh and each reset of its checkpoint, from 0.
    pub incarnation: u64,
    /// Number of the batch within that life, from 1.
    pub batch_id: u64,
    /// Columns of the rows.
    pub schema: SchemaRef,
    /// The rows, as they are read. There may be none.
    pub rows: SourceStream,
}

impl SinkBatch {
    /// All rows, held in memory.
    ///
    /// # Errors
    /// What went wrong while the flow's query was run: give it back as it is.
    pub async fn collect(self) -> Result<Vec<RecordBatch>> {
        self.rows.try_collect().await
    }
}

impl fmt::Debug for SinkBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SinkBatch")
            .field("flow", &self.flow)
            .field("incarnation", &self.incarnation)
            .field("batch_id", &self.batch_id)
            .finish_non_exhaustive()
    }
}

/// Code that takes the batches of the flows into a sink USING foreachBatch.
///
/// # Contract
/// 1. **At least once.** A batch that was taken without an error is not given again, unless the process dies before it
///    has recorded that. A batch that failed is given again.
/// 2. **A stable id.** A batch that is given again has the same `flow`, `incarnation` and `batch_id`, and the same rows
///    in whatever order: whoever remembers the newest id that was written, in the same step as the rows, has each
///    of them exactly once.
/// 3. **In order.** The ids of one flow and incarnation grow by one, and a batch comes after the one before it was taken.
///    Batches of two flows may come at once.
/// 4. **All of it.** A sink reads `rows` to their end before it returns `Ok`, or does not need the rest.
/// 5. **Yours to clean.** The engine neither removes nor repairs what a sink wrote, be it after an error or for a full
///    refresh, which gives everything again in the next incarnation.
///
/// An error of kind [`Unavailable`](crate::ErrorKind::Unavailable) is tried again as the pipeline's settings say; any
/// other one ends the flow for this update.
#[async_trait]
pub trait BatchSink: Send + Sync {
    /// Takes one batch.
    ///
    /// # Errors
    /// When the batch could not be written, or not all of it.
    async fn write(&self, batch: SinkBatch) -> Result<()>;
}

/// A function as a [`BatchSink`]; see [`foreach_batch`].
pub struct ForeachBatch<F>(F);

impl<F> fmt::Debug for ForeachBatch<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ForeachBatch")
    }
}

#[async_trait]
impl<F, R> BatchSink for ForeachBatch<F>
where
    F: Fn(SinkBatch) -> R + Send + Sync,
    R: Future<Output = Result<()>> + Send,
{
    async fn write(&self, batch: SinkBatch) -> Result<()> {
        (self.0)(batch).await
    }
}

/// A sink that calls a function with each batch.
///
/// ```
/// use strandline_runtime::sinks::foreach_batch;
///
/// let sink = foreach_batch(|batch| async move {
///     let id = batch.batch_id;
///     let rows: usize = batch.collect().await?.iter().map(|rows| rows.num_rows()).sum();
///     println!("batch {id}: {rows} rows");
///     Ok(())
/// });
/// # drop(sink);
/// ```
pub fn foreach_batch<F, R>(write: F) -> Arc<dyn BatchSink>
where
    F: Fn(SinkBatch) -> R + Send + Sync + 'static,
    R: Future<Output = Result<()>> + Send + 'static,
{
    Arc::new(ForeachBatch(write))
}
