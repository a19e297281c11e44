//! A file's bytes, for the Parquet reader.
//!
//! Ranges that lie near each other are read with one request: a request to an object store takes as long as some hundred
//! kilobytes. What is read is counted.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use futures::{FutureExt, StreamExt, TryStreamExt, future::BoxFuture, stream};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use parquet::{
    arrow::{arrow_reader::ArrowReaderOptions, async_reader::AsyncFileReader},
    errors::{ParquetError, Result},
    file::metadata::{ParquetMetaData, ParquetMetaDataReader},
};

use super::counts::Counter;

/// A file in a store, for `parquet`'s stream of record batches.
#[derive(Debug, Clone)]
pub struct Input {
    store: Arc<dyn ObjectStore>,
    path: Path,
    size: u64,
    counter: Arc<Counter>,
    /// Whether this file was counted.
    counted: Arc<AtomicBool>,
    /// The whole file, when it was read with its footer.
    whole: Option<Bytes>,
}

/// What the end of a file holds is read with one request when it fits in here, and so are whole files.
pub(super) const FOOTER_BYTES: usize = 64 << 10;
/// Bytes that are read in vain rather than with another request.
const GAP_BYTES: u64 = 64 << 10;
/// Requests at a time.
const REQUESTS: usize = 8;

impl Input {
    /// The file at `path`, which has `size` bytes.
    pub fn new(store: Arc<dyn ObjectStore>, path: Path, size: u64) -> Self {
        Self { store, path, size, counter: Arc::default(), counted: Arc::default(), whole: None }
    }

    /// The same, counted there.
    pub(super) fn counted_by(self, counter: &Arc<Counter>) -> Self {
        Self { counter: Arc::clone(counter), ..self }
    }

    /// The same, of which all bytes are known.
    pub(super) fn known(self, whole: Option<Bytes>) -> Self {
        Self { whole, ..self }
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// All bytes of a small file, which spares its readers further requests; `None` for a larger one.
    pub(super) async fn small(&self) -> Result<Option<Bytes>> {
        if self.size > FOOTER_BYTES as u64 || self.size == 0 {
            return Ok(None);
        }
        Ok(Some(self.fetch(0..self.size).await?))
    }

    /// Says that the file is read, once.
    fn count(&self) {
        if !self.counted.swap(true, Ordering::Relaxed) {
            self.counter.file();
        }
    }

    async fn fetch(&self, range: Range<u64>) -> Result<Bytes> {
        self.counter.request(range.end.saturating_sub(range.start));
        Ok(self.store.get_range(&self.path, range).await?)
    }

    /// A range of the bytes that are known, if all are.
    fn of_whole(&self, range: &Range<u64>) -> Option<Result<Bytes>> {
        let whole = self.whole.as_ref()?;
        let at = |place: u64| usize::try_from(place).ok().filter(|place| *place <= whole.len());
        let range = at(range.start).zip(at(range.end)).filter(|(from, to)| from <= to);
        let outside = || ParquetError::EOF("a range lies behind the file's end".to_owned());
        Some(range.map(|(from, to)| whole.slice(from..to)).ok_or_else(outside))
    }

    async fn ranges(&self, ranges: Vec<Range<u64>>) -> Result<Vec<Bytes>> {
        self.count();
        if let Some(known) = ranges.iter().map(|range| self.of_whole(range)).collect::<Option<Vec<_>>>() {
            return known.into_iter().collect();
        }
        let fetches = near_ones_together(&ranges);
        let bytes: Vec<Bytes> = stream::iter(fetches.iter().cloned())
            .map(|range| self.fetch(range))
            .buffered(REQUESTS)
            .try_collect()
            .await?;
        ranges.iter().map(|range| cut(&fetches, &bytes, range)).collect()
    }
}

/// The part of what was fetched that is this range.
fn cut(fetches: &[Range<u64>], bytes: &[Bytes], range: &Range<u64>) -> Result<Bytes> {
    let outside = || ParquetError::EOF("fewer bytes than were asked for".to_owned());
    let place = fetches.partition_point(|fetch| fetch.start <= range.start).checked_sub(1);
    let (fetch, bytes) = place.and_then(|i| Some((fetches.get(i)?, bytes.get(i)?))).ok_or_else(outside)?;
    let at = |place: u64| usize::try_from(place.saturating_sub(fetch.start)).unwrap_or(usize::MAX);
    let (from, to) = (at(range.start), at(range.end));
    if from > to || to > bytes.len() {
        return Err(outside());
    }
    Ok(bytes.slice(from..to))
}

/// Ranges that hold all of these, sorted, with gaps between them that are worth a request.
fn near_ones_together(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut sorted = ranges.to_vec();
    sorted.sort_by_key(|range| range.start);
    let mut together: Vec<Range<u64>> = Vec::new();
    for range in sorted {
        match together.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(GAP_BYTES) => {
                last.end = last.end.max(range.end);
            }
            _ => together.push(range),
        }
    }
    together
}

impl AsyncFileReader for Input {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        async move {
            // Footers come this way, and a footer alone is no file that was read.
            match self.of_whole(&range) {
                Some(known) => known,
                None => self.fetch(range).await,
            }
        }
        .boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        self.ranges(ranges).boxed()
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

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    const K: u64 = 1 << 10;

    #[test]
    fn near_ranges_are_read_together() {
        let near = near_ones_together(&[300 * K..400 * K, 0..K, 2 * K..3 * K, 60 * K..61 * K]);
        assert_eq!(near, [0..61 * K, 300 * K..400 * K]);
        assert!(near_ones_together(&[]).is_empty());
    }

    #[tokio::test]
    async fn ranges_come_as_they_were_asked_for() {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let path = Path::from("f");
        let bytes: Vec<u8> = (0..400 * K).map(|i| (i / K).to_le_bytes()[0]).collect();
        store.put(&path, bytes.into()).await.unwrap();
        let counter = Arc::default();
        let input = Input::new(store, path, 400 * K).counted_by(&counter);
        let asked = vec![390 * K..391 * K, 5 * K..6 * K, 7 * K..9 * K, 8 * K..8 * K];
        let got = input.ranges(asked).await.unwrap();
        let seen: Vec<_> = got.iter().map(|b| (b.first().copied(), b.len() as u64)).collect();
        assert_eq!(seen, [(Some(134), K), (Some(5), K), (Some(7), 2 * K), (None, 0)]);
        let counts = counter.now();
        assert_eq!((counts.files, counts.requests, counts.bytes), (1, 2, 5 * K));
    }
}
