//! Reading files by column, row group and position.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use parquet::{
    arrow::{
        ParquetRecordBatchStreamBuilder, ProjectionMask,
        arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, RowSelection},
        async_reader::AsyncFileReader,
        parquet_column,
    },
    basic::Type as Physical,
    file::metadata::PageIndexPolicy,
};

use super::{
    bloom,
    counts::{Counter, ReadCounts},
    foreign,
    input::Input,
    numbers,
    spans::Spans,
    stats::{self, Stats},
};
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// Opens files, and remembers their footers: files never change.
#[derive(Debug)]
pub(crate) struct Readers {
    store: Arc<dyn ObjectStore>,
    check_sizes: bool,
    footers: Mutex<Footers>,
    counter: Arc<Counter>,
}

/// Footers of so many bytes are remembered at most.
const FOOTER_BYTES: usize = 64 << 20;

/// Footers by path; the oldest go first.
#[derive(Debug, Default)]
struct Footers {
    known: BTreeMap<Path, Footer>,
    order: VecDeque<Path>,
    bytes: usize,
}

/// What is remembered of a file.
#[derive(Debug, Clone)]
struct Footer {
    metadata: ArrowReaderMetadata,
    /// All of a small file.
    whole: Option<Bytes>,
}

impl Footer {
    fn bytes(&self) -> usize {
        self.metadata.metadata().memory_size() + self.whole.as_ref().map_or(0, Bytes::len)
    }
}

impl Footers {
    fn add(&mut self, path: &Path, footer: &Footer, limit: usize) {
        if self.known.insert(path.clone(), footer.clone()).is_some() {
            return;
        }
        self.order.push_back(path.clone());
        self.bytes += footer.bytes();
        while self.bytes > limit
            && let Some(oldest) = self.order.pop_front()
        {
            let gone = self.known.remove(&oldest);
            self.bytes -= gone.map_or(0, |gone| gone.bytes()).min(self.bytes);
        }
    }
}

/// An open file.
#[derive(Debug, Clone)]
pub(crate) struct FileReader {
    input: Input,
    path: Path,
    footer: ArrowReaderMetadata,
    /// Its columns under the names that its table has for them, where they differ.
    names: Option<SchemaRef>,
}

/// What to read of a file.
#[derive(Debug, Default)]
pub(crate) struct Read {
    /// Columns by name, those that the file has; `None` for all.
    pub(crate) columns: Option<Vec<String>>,
    /// Row groups; `None` for all.
    pub(crate) groups: Option<Vec<usize>>,
    /// Rows of these row groups; `None` for all.
    pub(crate) selection: Option<RowSelection>,
}

/// Rows of a batch, at least and at most.
const BATCH_ROWS: (u64, u64) = (64, 16 << 10);
/// Bytes of a batch, about.
const BATCH_BYTES: u64 = 8 << 20;

/// So many rows of this size make a batch.
fn batch_rows(bytes: u64, rows: u64) -> usize {
    let (least, most) = BATCH_ROWS;
    let row = bytes.div_ceil(rows.max(1)).max(1);
    usize::try_from((BATCH_BYTES / row).clamp(least, most)).unwrap_or(1)
}

impl Readers {
    /// Readers of files in a store.
    pub(crate) fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self { store, check_sizes: false, footers: Mutex::default(), counter: Arc::default() }
    }

    /// Readers that compare a file's size with the one that is known, once.
    pub(crate) fn checking_sizes(store: Arc<dyn ObjectStore>) -> Self {
        Self { check_sizes: true, ..Self::new(store) }
    }

    /// The store.
    pub(crate) fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// What was read until now.
    pub(crate) fn counts(&self) -> ReadCounts {
        self.counter.now()
    }

    /// Opens a file of a known size.
    pub(crate) async fn open(&self, path: Path, size: u64) -> Result<FileReader> {
        let input = Input::new(Arc::clone(&self.store), path.clone(), size).counted_by(&self.counter);
        let known = self.lock().known.get(&path).cloned();
        let footer = match known {
            Some(footer) => footer,
            None => self.load(&path, input.clone()).await.map_err(|e| e.with("file", &path))?,
        };
        Ok(FileReader { input: input.known(footer.whole), path, footer: footer.metadata, names: None })
    }

    async fn load(&self, path: &Path, input: Input) -> Result<Footer> {
        if self.check_sizes {
            match self.store.head(path).await {
                Ok(meta) if meta.size == input.size() => {}
                Ok(_) => return Err(Error::new(ErrorKind::Corrupt, "a file has another size than is known")),
                Err(object_store::Error::NotFound { .. }) => {
                    return Err(Error::new(ErrorKind::Corrupt, "a file is missing"));
                }
                Err(e) => return Err(e.into()),
            }
        }
        let options = ArrowReaderOptions::new()
            .with_column_index_policy(PageIndexPolicy::Optional)
            .with_offset_index_policy(PageIndexPolicy::Optional);
        let whole = input.small().await?;
        let mut input = input.known(whole.clone());
        let metadata = ArrowReaderMetadata::load_async(&mut input, options.clone()).await?;
        let footer = Footer { metadata: foreign::plainly(metadata, &options)?, whole };
        self.lock().add(path, &footer, FOOTER_BYTES);
        Ok(footer)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Footers> {
        self.footers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileReader {
    /// Columns that the file has.
    pub(crate) fn schema(&self) -> &SchemaRef {
        self.names.as_ref().unwrap_or_else(|| self.footer.schema())
    }

    /// The same file in a table's columns: by the numbers of fields, where the table's schema has them.
    pub(crate) fn named_by(mut self, table: &SchemaRef) -> Self {
        self.names = numbers::renamed(self.footer.schema(), table);
        self
    }

    /// Rows of each row group.
    pub(crate) fn group_rows(&self) -> Vec<u64> {
        self.footer.metadata().row_groups().iter().map(|g| g.num_rows().try_into().unwrap_or(0)).collect()
    }

    /// Rows of the file.
    pub(crate) fn rows(&self) -> u64 {
        self.group_rows().iter().sum()
    }

    /// A column's statistics by row group; `None` when there are none.
    pub(crate) fn group_stats(&self, column: &str) -> Option<Stats> {
        stats::of_groups(column, self.schema(), self.footer.parquet_schema(), self.footer.metadata())
    }

    /// A column's statistics by page of a row group, and the pages' first rows.
    pub(crate) fn page_stats(&self, column: &str, group: usize) -> Option<(Stats, Vec<u64>)> {
        let footer = &self.footer;
        stats::of_pages(column, self.schema(), footer.parquet_schema(), footer.metadata(), group)
    }

    /// Bytes in the file of these rows' pages in some columns, about.
    pub(crate) fn page_bytes(&self, columns: &SchemaRef, group: usize, spans: &Spans) -> u64 {
        let metadata = self.footer.metadata();
        let Some(of_group) = metadata.row_groups().get(group) else { return 0 };
        let rows = u64::try_from(of_group.num_rows()).unwrap_or(0);
        let mask = self.mask(columns.fields().iter().map(|field| field.name()));
        let leaves = of_group.columns().iter().enumerate().filter(|(leaf, _)| mask.leaf_included(*leaf));
        let bytes = leaves.map(|(leaf, column)| {
            let Some(starts) = stats::page_starts(metadata, group, leaf) else {
                return u64::try_from(column.compressed_size()).unwrap_or(0);
            };
            let pages = metadata.offset_index().and_then(|index| index.get(group)?.get(leaf));
            let touched = spans.touch(&starts, rows);
            let pages = pages.iter().flat_map(|pages| pages.page_locations()).zip(touched);
            let sizes = pages.filter(|(_, touched)| *touched).map(|(page, _)| page.compressed_page_size);
            sizes.map(|size| u64::try_from(size).unwrap_or(0)).sum()
        });
        bytes.sum()
    }

    /// Bytes of a column's filter in a row group; `None` when it has none.
    pub(crate) fn filter_bytes(&self, column: &str, group: usize) -> Option<u64> {
        self.filter_of(column, group).map(|(place, _)| place.end - place.start)
    }

    /// For each value, none of them NULL, whether a row group's filter of this column may hold it. `None` when there is no
    /// filter that knows.
    pub(crate) async fn filter(
        &self,
        column: &str,
        group: usize,
        values: &ArrayRef,
    ) -> Result<Option<Vec<bool>>> {
        let Some((place, physical)) = self.filter_of(column, group) else { return Ok(None) };
        let bytes = self.input.clone().get_bytes(place).await;
        let bytes = bytes.map_err(|e| Error::from(e).with("file", &self.path))?;
        Ok(bloom::read(&bytes).and_then(|filter| bloom::probe(&filter, values, physical)))
    }

    fn filter_of(&self, column: &str, group: usize) -> Option<(Range<u64>, Physical)> {
        let descriptor = self.footer.parquet_schema();
        let (leaf, _) = parquet_column(descriptor, self.schema(), column)?;
        let of_group = self.footer.metadata().row_groups().get(group)?;
        let place = bloom::place(of_group.columns().get(leaf)?, self.input.size())?;
        Some((place, descriptor.column(leaf).physical_type()))
    }

    fn mask<'a>(&self, columns: impl Iterator<Item = &'a String>) -> ProjectionMask {
        let roots = columns.filter_map(|name| self.schema().index_of(name).ok());
        ProjectionMask::roots(self.footer.parquet_schema(), roots)
    }

    /// Bytes of these columns, before compression.
    fn bytes(&self, mask: &ProjectionMask) -> u64 {
        let groups = self.footer.metadata().row_groups().iter();
        let columns = groups.flat_map(|g| g.columns().iter().enumerate());
        let wanted = columns.filter(|(leaf, _)| mask.leaf_included(*leaf));
        wanted.map(|(_, c)| u64::try_from(c.uncompressed_size()).unwrap_or(0)).sum()
    }

    /// Rows, in the file's order.
    pub(crate) fn read(
        &self,
        read: Read,
    ) -> Result<impl Stream<Item = Result<RecordBatch>> + Send + 'static> {
        let mask = match &read.columns {
            None => ProjectionMask::all(),
            Some(columns) => self.mask(columns.iter()),
        };
        let input = self.input.clone();
        let mut builder = ParquetRecordBatchStreamBuilder::new_with_metadata(input, self.footer.clone())
            .with_batch_size(batch_rows(self.bytes(&mask), self.rows()))
            .with_projection(mask);
        if let Some(groups) = read.groups {
            builder = builder.with_row_groups(groups);
        }
        if let Some(selection) = read.selection {
            builder = builder.with_row_selection(selection);
        }
        let path = self.path.clone();
        let names = self.names.clone().map(|names| (Arc::clone(self.footer.schema()), names));
        Ok(builder.build()?.map(move |batch| {
            let batch = batch.map_err(|e| Error::from(e).with("file", &path))?;
            match &names {
                None => Ok(batch),
                Some((file, names)) => numbers::rename(&batch, file, names),
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, RecordBatch};
    use parquet::arrow::ArrowWriter;

    use super::*;

    fn footer() -> Footer {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        let bytes = Bytes::from(writer.into_inner().unwrap());
        let metadata = ArrowReaderMetadata::load(&bytes, ArrowReaderOptions::new()).unwrap();
        Footer { metadata, whole: Some(bytes) }
    }

    #[test]
    fn the_oldest_footers_are_forgotten() {
        let footer = footer();
        let limit = 3 * footer.bytes();
        let mut footers = Footers::default();
        for i in [0, 1, 2, 1, 3, 4] {
            footers.add(&Path::from(format!("f{i}")), &footer, limit);
            assert!(footers.bytes <= limit && footers.known.len() == footers.order.len());
        }
        let left: Vec<_> = footers.known.keys().map(ToString::to_string).collect();
        assert_eq!(left, ["f2", "f3", "f4"]);
    }

    #[test]
    fn wide_rows_come_in_small_batches() {
        assert_eq!(batch_rows(0, 0), 16 << 10);
        assert_eq!(batch_rows(16 << 20, 1 << 20), 16 << 10);
        assert_eq!(batch_rows(1 << 30, 1 << 14), 128);
        assert_eq!(batch_rows(1 << 40, 1 << 10), 64);
    }
}
