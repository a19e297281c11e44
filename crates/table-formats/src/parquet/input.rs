//! A file's bytes, for the Parquet reader.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use futures::{FutureExt, TryFutureExt, future::BoxFuture};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use parquet::{
    arrow::{arrow_reader::ArrowReaderOptions, async_reader::AsyncFileReader},
    errors::{ParquetError, Result},
    file::metadata::{ParquetMetaData, ParquetMetaDataReader},
};

/// A file in a store, for `parquet`'s stream of record batches.
#[derive(Debug)]
pub struct Input {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) path: Path,
    pub(super) size: u64,
}

impl Input {
    /// The file at `path`, which has `size` bytes.
    pub fn new(store: Arc<dyn ObjectStore>, path: Path, size: u64) -> Self {
        Self { store, path, size }
    }
}

/// What the end of a file holds is read with one request when it fits in here.
const FOOTER_BYTES: usize = 64 << 10;

impl AsyncFileReader for Input {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        async move { self.store.get_range(&self.path, range).map_err(ParquetError::from).await }.boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        async move { self.store.get_ranges(&self.path, &ranges).await.map_err(ParquetError::from) }.boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>>> {
        let size = self.size;
        let mut reader = ParquetMetaDataReader::new().with_prefetch_hint(Some(FOOTER_BYTES));
        if let Some(options) = options {
            reader = reader
                .with_column_index_policy(options.column_index_policy())
                .with_offset_index_policy(options.offset_index_policy());
        }
        async move { Ok(Arc::new(reader.load_and_finish(self, size).await?)) }.boxed()
    }
}
