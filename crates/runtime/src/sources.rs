//! Where do rows come from, and how is a batch of them named so that it can be read again?
//!
//! A [`Source`] is replayable: it hands out *slices*, small JSON values that say which input belongs to a batch, and
//! reading a slice again gives the same rows. The runtime writes the slice into the batch's plan before it reads it, and
//! folds the slices of all plans into the source's *progress*. Other sources can be written outside of this crate.

mod bytes;
mod columnar;
mod columns;
mod csv;
pub(crate) mod debezium;
mod decode;
mod files;
mod infer;
pub(crate) mod json;
pub(crate) mod kafka;
mod kinds;
mod lines;
pub(crate) mod metadata;
mod options;
mod partitions;
mod patterns;
pub(crate) mod records;
mod scalars;
mod table;
mod taken;

pub use debezium::Envelope;
pub use files::{FileSource, NewColumns};
pub use options::{Evolution, FileFormat, FileOptions};
pub use table::{Start, StreamOptions, TableSource};

use std::fmt;

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::arrow::record_batch::RecordBatch;
use futures::stream::BoxStream;
use serde_json::Value;

use crate::error::Result;

/// Rows of a slice.
pub type SourceStream = BoxStream<'static, Result<RecordBatch>>;

/// Replayable input of a flow.
///
/// # Contract
/// 1. Reading a slice twice gives the same rows, in whatever order, or an error.
/// 2. `next` after `advance(progress, slice)` never gives input of `slice` again.
/// 3. What `next` gives was there when the source was opened: a triggered update ends even while input goes on arriving.
/// 4. `next` and `advance` refuse values that this source did not make; they never panic.
#[async_trait]
pub trait Source: fmt::Debug + Send + Sync {
    /// Columns of the rows.
    fn schema(&self) -> SchemaRef;
    /// The progress of a flow that has taken nothing yet.
    fn start(&self) -> Value;
    /// The next slice after `progress`, within the source's rate limits; `None` when there is nothing new.
    ///
    /// # Errors
    /// The store's, or `State` for a progress of another source.
    async fn next(&self, progress: &Value) -> Result<Option<Value>>;
    /// The progress after `slice` has been taken.
    ///
    /// # Errors
    /// `State` for values of another source.
    fn advance(&self, progress: Value, slice: &Value) -> Result<Value>;
    /// The rows of a slice.
    ///
    /// # Errors
    /// `Data` for input that can't be read, naming the file and a sample; `NotFound` for input that is gone.
    async fn read(&self, slice: &Value) -> Result<SourceStream>;
    /// All that the source has now, as a value that [`Source::fixed`] takes: the input of a ONCE flow.
    ///
    /// # Errors
    /// The store's.
    async fn available(&self) -> Result<Value>;
    /// This source, limited to what [`Source::available`] returned.
    ///
    /// # Errors
    /// `State` for a value of another source.
    fn fixed(&self, available: &Value) -> Result<Box<dyn Source>>;
}
