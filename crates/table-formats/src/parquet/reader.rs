//! Reading files by column, row group and position.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use arrow_array::{Array, RecordBatch};
use arrow_schema::SchemaRef;
use futures::{Stream, StreamExt};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use parquet::{
    arrow::{
        ParquetRecordBatchStreamBuilder, ProjectionMask,
        arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, RowSelection},
    },
    file::metadata::PageIndexPolicy,
};

use super::{input::Input, numbers, stats};
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
    keys::ColumnKeys,
};

/// Opens files, and remembers their footers: files never change.
#[derive(Debug)]
pub(crate) struct Readers {
    store: Arc<dyn ObjectStore>,
    check_sizes: bool,
    footers: Mutex<Footers>,
}

/// Footers of so many bytes are remembered at most.
const FOOTER_BYTES: usize = 64 << 20;

/// Footers by path; the oldest go first.
#[derive(Debug, Default)]
struct Footers {
    known: BTreeMap<Path, ArrowReaderMetadata>,
    order: VecDeque<Path>,
    bytes: usize,
}

impl Footers {
    fn add(&mut self, path: &Path, footer: &ArrowReaderMetadata, limit: usize) {
        if self.known.insert(path.clone(), footer.clone()).is_some() {
            return;
        }
        self.order.push_back(path.clone());
        self.bytes += footer.metadata().memory_size();
        while self.bytes > limit
            && let Some(oldest) = self.order.pop_front()
        {
            let gone = self.known.remove(&oldest);
            self.bytes -= gone.map_or(0, |gone| gone.metadata().memory_size()).min(self.bytes);
        }
    }
}

/// An open file.
#[derive(Debug, Clone)]
pub(crate) struct FileReader {
    store: Arc<dyn ObjectStore>,
    path: Path,
    size: u64,
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
        Self { store, check_sizes: false, footers: Mutex::default() }
    }

    /// Readers that compare a file's size with the one that is known, once.
    pub(crate) fn checking_sizes(store: Arc<dyn ObjectStore>) -> Self {
        Self { check_sizes: true, ..Self::new(store) }
    }

    /// The store.
    pub(crate) fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// Opens a file of a known size.
    pub(crate) async fn open(&self, path: Path, size: u64) -> Result<FileReader> {
        let known = self.lock().known.get(&path).cloned();
        let footer = match known {
            Some(footer) => footer,
            None => self.load(&path, size).await.map_err(|e| e.with("file", &path))?,
        };
        Ok(FileReader { store: Arc::clone(&self.store), path, size, footer, names: None })
    }

    async fn load(&self, path: &Path, size: u64) -> Result<ArrowReaderMetadata> {
        if self.check_sizes {
            match self.store.head(path).await {
                Ok(meta) if meta.size == size => {}
                Ok(_) => return Err(Error::new(ErrorKind::Corrupt, "a file has another size than is known")),
                Err(object_store::Error::NotFound { .. }) => {
                    return Err(Error::new(ErrorKind::Corrupt, "a file is missing"));
                }
                Err(e) => return Err(e.into()),
            }
        }
        // Selections of rows want to know where pages lie; pages are not pruned by their statistics.
        let options = ArrowReaderOptions::new()
            .with_column_index_policy(PageIndexPolicy::Skip)
            .with_offset_index_policy(PageIndexPolicy::Optional);
        let mut input = Input { store: Arc::clone(&self.store), path: path.clone(), size };
        let footer = ArrowReaderMetadata::load_async(&mut input, options).await?;
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

    /// For each row group, whether it may hold one of the values in this column.
    pub(crate) fn prune(&self, column: &str, keys: &ColumnKeys) -> Result<Vec<bool>> {
        let all = || vec![true; self.footer.metadata().num_row_groups()];
        let Some(stats) = self.stats(column) else { return Ok(all()) };
        let nulls: Vec<_> = stats.nulls.iter().collect();
        keys.within(&stats.min, &stats.max, &nulls)
    }

    /// For each row group, whether a value of this column may be NULL or not below the (single) bound.
    pub(crate) fn prune_below(&self, column: &str, bound: &arrow_array::ArrayRef) -> Result<Vec<bool>> {
        let all = || vec![true; self.footer.metadata().num_row_groups()];
        let Some(stats) = self.stats(column) else { return Ok(all()) };
        if stats.max.data_type() != bound.data_type() {
            return Ok(all());
        }
        let below = arrow_ord::cmp::lt(&stats.max, &arrow_array::Scalar::new(Arc::clone(bound)))?;
        Ok((0..below.len())
            .map(|i| {
                let some_null = !stats.nulls.is_valid(i) || stats.nulls.value(i) > 0;
                some_null || !below.is_valid(i) || !below.value(i)
            })
            .collect())
    }

    fn stats(&self, column: &str) -> Option<stats::GroupStats> {
        stats::of_groups(column, self.schema(), self.footer.parquet_schema(), self.footer.metadata())
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
        let input = Input { store: Arc::clone(&self.store), path: self.path.clone(), size: self.size };
        let mask = match read.columns {
            None => ProjectionMask::all(),
            Some(columns) => {
                let roots = columns.iter().filter_map(|name| self.schema().index_of(name).ok());
                ProjectionMask::roots(self.footer.parquet_schema(), roots)
            }
        };
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

    fn footer() -> ArrowReaderMetadata {
        let column: arrow_array::ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        let bytes = bytes::Bytes::from(writer.into_inner().unwrap());
        ArrowReaderMetadata::load(&bytes, ArrowReaderOptions::new()).unwrap()
    }

    #[test]
    fn the_oldest_footers_are_forgotten() {
        let footer = footer();
        let limit = 3 * footer.metadata().memory_size();
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
