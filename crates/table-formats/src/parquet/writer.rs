//! Writing a stream of rows to files of a bounded size.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use arrow_select::take::take_record_batch;
use futures::StreamExt;
use object_store::{ObjectStore, buffered::BufWriter, path::Path};
use parquet::arrow::AsyncArrowWriter;

use super::{properties, stats};
use crate::{
    contract::Result,
    metadata::{DataFile, Partitioner},
};

/// So many files of rows that are told apart are open at a time; with one more all are ended.
const OPEN_FILES: usize = 64;

/// How files are cut.
#[derive(Debug, Clone, Copy)]
pub struct WriteOptions {
    /// Rows of a file, at most.
    pub file_rows: u64,
    /// Bytes of a file, about.
    pub file_bytes: u64,
    /// Rows of a row group, at most.
    pub group_rows: usize,
    /// Rows of a page, about: what a lookup of one key decodes.
    pub page_rows: usize,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { file_rows: 1 << 20, file_bytes: 256 << 20, group_rows: 128 << 10, page_rows: 4 << 10 }
    }
}

impl WriteOptions {
    /// For a known number of rows: as many files, each with its share, so that no small rest becomes a file.
    pub(crate) fn sharing(self, rows: u64) -> Self {
        let files = rows.div_ceil(self.file_rows.max(1)).max(1);
        Self { file_rows: rows.div_ceil(files).max(1), ..self }
    }
}

/// Writes rows to new files in a folder.
pub(crate) struct Writer {
    store: Arc<dyn ObjectStore>,
    folder: Path,
    schema: SchemaRef,
    keys: Vec<String>,
    options: WriteOptions,
    partitioner: Option<Arc<dyn Partitioner>>,
    /// Open files by the folder that they lie in: one, unless rows are told apart.
    open: BTreeMap<String, OpenFile>,
    done: Vec<DataFile>,
}

struct OpenFile {
    path: String,
    rows: u64,
    writer: AsyncArrowWriter<BufWriter>,
}

impl Writer {
    /// A writer of rows of this schema, which are looked up by these keys.
    pub(crate) fn new(
        store: Arc<dyn ObjectStore>,
        folder: Path,
        schema: SchemaRef,
        keys: &[String],
        options: WriteOptions,
    ) -> Self {
        Self {
            store,
            folder,
            schema,
            keys: keys.to_vec(),
            options,
            partitioner: None,
            open: BTreeMap::new(),
            done: Vec::new(),
        }
    }

    /// The same, and rows that must not share a file go to files apart.
    pub(crate) fn partitioned(self, partitioner: Option<Arc<dyn Partitioner>>) -> Self {
        Self { partitioner, ..self }
    }

    /// Cuts files anew from now on.
    pub(crate) fn set_options(&mut self, options: WriteOptions) {
        self.options = options;
    }

    /// Writes rows of the writer's schema.
    pub(crate) async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let Some(partitioner) = &self.partitioner else { return self.write_to("", batch).await };
        for (folder, places) in partitioner.split(batch)? {
            let rows = take_record_batch(batch, &places)?;
            if !self.open.contains_key(&folder) && self.open.len() >= OPEN_FILES {
                self.close().await?;
            }
            self.write_to(&folder, &rows).await?;
        }
        Ok(())
    }

    async fn write_to(&mut self, folder: &str, batch: &RecordBatch) -> Result<()> {
        let mut from = 0;
        while from < batch.num_rows() {
            let options = self.options;
            let file = self.file(folder)?;
            let space = usize::try_from(options.file_rows.saturating_sub(file.rows)).unwrap_or(usize::MAX);
            let rows = space.min(batch.num_rows() - from).max(1);
            file.writer.write(&batch.slice(from, rows)).await?;
            file.rows += rows as u64;
            from += rows;
            let bytes = (file.writer.bytes_written() + file.writer.in_progress_size()) as u64;
            if file.rows >= options.file_rows || bytes >= options.file_bytes {
                self.close_one(folder).await?;
            }
        }
        Ok(())
    }

    /// Ends the current files, so that the next row begins a new one.
    pub(crate) async fn close(&mut self) -> Result<()> {
        while let Some(folder) = self.open.first_key_value().map(|(folder, _)| folder.clone()) {
            self.close_one(&folder).await?;
        }
        Ok(())
    }

    async fn close_one(&mut self, folder: &str) -> Result<()> {
        let Some(mut file) = self.open.remove(folder) else { return Ok(()) };
        let metadata = file.writer.finish().await?;
        self.done.push(DataFile {
            path: file.path,
            size: file.writer.bytes_written() as u64,
            rows: file.rows,
            stats: stats::of_file(&self.schema, &metadata)?,
            constants: Arc::default(),
            deleted: None,
        });
        Ok(())
    }

    /// The files, in the order in which they were written.
    pub(crate) async fn finish(mut self) -> Result<Vec<DataFile>> {
        self.close().await?;
        Ok(self.done)
    }

    /// Takes back what was written, as far as the store lets us: no table names these files.
    pub(crate) async fn abandon(mut self) {
        self.open.clear();
        remove_files(&self.store, &self.folder, &self.done).await;
    }

    fn file(&mut self, folder: &str) -> Result<&mut OpenFile> {
        if !self.open.contains_key(folder) {
            let name = format!("part-{}.parquet", uuid::Uuid::new_v4());
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let sink = BufWriter::new(Arc::clone(&self.store), super::file_path(&self.folder, &path)?);
            let properties = properties::of(&self.schema, &self.keys, self.options);
            let writer = AsyncArrowWriter::try_new(sink, Arc::clone(&self.schema), Some(properties))?;
            self.open.insert(folder.to_owned(), OpenFile { path, rows: 0, writer });
        }
        let open = self.open.get_mut(folder);
        open.ok_or_else(|| crate::Error::new(crate::ErrorKind::Internal, "no open file"))
    }
}

/// Deletes files that no table names; a file that stays is only a leftover.
pub(crate) async fn remove_files(store: &Arc<dyn ObjectStore>, folder: &Path, files: &[DataFile]) {
    let paths: Vec<_> = files.iter().filter_map(|f| super::file_path(folder, &f.path).ok()).map(Ok).collect();
    let mut deletions = store.delete_stream(futures::stream::iter(paths).boxed());
    while let Some(deleted) = deletions.next().await {
        if let Err(error) = deleted {
            tracing::debug!(%error, "a leftover file stays");
        }
    }
}
