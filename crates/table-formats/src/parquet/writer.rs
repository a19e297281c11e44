//! Writing a stream of rows to files of a bounded size.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::StreamExt;
use object_store::{ObjectStore, buffered::BufWriter, path::Path};
use parquet::arrow::AsyncArrowWriter;

use super::{properties, stats};
use crate::{contract::Result, metadata::DataFile};

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
    open: Option<OpenFile>,
    done: Vec<DataFile>,
}

struct OpenFile {
    name: String,
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
        Self { store, folder, schema, keys: keys.to_vec(), options, open: None, done: Vec::new() }
    }

    /// Cuts files anew from now on.
    pub(crate) fn set_options(&mut self, options: WriteOptions) {
        self.options = options;
    }

    /// Writes rows of the writer's schema.
    pub(crate) async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut from = 0;
        while from < batch.num_rows() {
            let options = self.options;
            let file = self.file()?;
            let space = usize::try_from(options.file_rows.saturating_sub(file.rows)).unwrap_or(usize::MAX);
            let rows = space.min(batch.num_rows() - from).max(1);
            file.writer.write(&batch.slice(from, rows)).await?;
            file.rows += rows as u64;
            from += rows;
            let bytes = (file.writer.bytes_written() + file.writer.in_progress_size()) as u64;
            if file.rows >= options.file_rows || bytes >= options.file_bytes {
                self.close().await?;
            }
        }
        Ok(())
    }

    /// Ends the current file, so that the next row begins a new one.
    pub(crate) async fn close(&mut self) -> Result<()> {
        let Some(mut file) = self.open.take() else { return Ok(()) };
        let metadata = file.writer.finish().await?;
        self.done.push(DataFile {
            path: file.name,
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
        self.open = None;
        remove_files(&self.store, &self.folder, &self.done).await;
    }

    fn file(&mut self) -> Result<&mut OpenFile> {
        if self.open.is_none() {
            let name = format!("part-{}.parquet", uuid::Uuid::new_v4());
            let sink = BufWriter::new(Arc::clone(&self.store), self.folder.clone().join(name.as_str()));
            let properties = properties::of(&self.schema, &self.keys, self.options);
            let writer = AsyncArrowWriter::try_new(sink, Arc::clone(&self.schema), Some(properties))?;
            self.open = Some(OpenFile { name, rows: 0, writer });
        }
        self.open.as_mut().ok_or_else(|| crate::Error::new(crate::ErrorKind::Internal, "no open file"))
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
