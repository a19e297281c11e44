//! Reading files by column, row group and position.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use arrow_array::{Array, RecordBatch};
use arrow_schema::SchemaRef;
use futures::{Stream, TryStreamExt};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use parquet::{
    arrow::{
        ParquetRecordBatchStreamBuilder, ProjectionMask,
        arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, RowSelection},
    },
    file::metadata::PageIndexPolicy,
};

use super::{input::Input, stats};
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
    footers: Mutex<BTreeMap<Path, ArrowReaderMetadata>>,
}

/// So many footers are remembered at most.
const FOOTERS: usize = 1024;

/// An open file.
#[derive(Debug, Clone)]
pub(crate) struct FileReader {
    store: Arc<dyn ObjectStore>,
    path: Path,
    size: u64,
    footer: ArrowReaderMetadata,
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

const BATCH_ROWS: usize = 16 << 10;

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
        let known = self.lock().get(&path).cloned();
        let footer = match known {
            Some(footer) => footer,
            None => self.load(&path, size).await.map_err(|e| e.with("file", &path))?,
        };
        Ok(FileReader { store: Arc::clone(&self.store), path, size, footer })
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
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
        let mut input = Input { store: Arc::clone(&self.store), path: path.clone(), size };
        let footer = ArrowReaderMetadata::load_async(&mut input, options).await?;
        let mut footers = self.lock();
        if footers.len() >= FOOTERS {
            footers.clear();
        }
        footers.insert(path.clone(), footer.clone());
        Ok(footer)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<Path, ArrowReaderMetadata>> {
        self.footers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileReader {
    /// Columns that the file has.
    pub(crate) fn schema(&self) -> &SchemaRef {
        self.footer.schema()
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

    /// Rows, in the file's order.
    pub(crate) fn read(
        &self,
        read: Read,
    ) -> Result<impl Stream<Item = Result<RecordBatch>> + Send + 'static> {
        let input = Input { store: Arc::clone(&self.store), path: self.path.clone(), size: self.size };
        let mut builder = ParquetRecordBatchStreamBuilder::new_with_metadata(input, self.footer.clone())
            .with_batch_size(BATCH_ROWS);
        if let Some(columns) = read.columns {
            let roots = columns.iter().filter_map(|name| self.schema().index_of(name).ok());
            let mask = ProjectionMask::roots(self.footer.parquet_schema(), roots);
            builder = builder.with_projection(mask);
        }
        if let Some(groups) = read.groups {
            builder = builder.with_row_groups(groups);
        }
        if let Some(selection) = read.selection {
            builder = builder.with_row_selection(selection);
        }
        let path = self.path.clone();
        Ok(builder.build()?.map_err(move |e| Error::from(e).with("file", &path)))
    }
}
