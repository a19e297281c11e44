//! Recording what a commit changed, where its table asks for it: files that tell it row by row, so that a reader of the
//! table's changes need not hold the rows of the files that went against those of the files that came.
//!
//! Source: the Delta protocol, "Add CDC File": if a commit has such files, readers take its changes from them alone; a commit
//! that only adds or only removes whole files needs none.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use futures::{StreamExt, TryStreamExt, stream};
use roaring::RoaringBitmap;

use super::{changes::keys, diff, snapshot::Files};
use crate::{
    contract::{BatchStream, CHANGE_TYPE, INSERT, Result, with_change_columns},
    metadata::{DataFile, TableHead},
    parquet::{WriteOptions, Writer},
    rows::chained,
};

/// Records the changes of a commit on a version.
pub(super) struct Recorder<'a> {
    files: &'a Files,
    base: &'a TableHead,
    /// Columns of the table after the commit.
    schema: SchemaRef,
    folder: &'static str,
    options: WriteOptions,
}

impl<'a> Recorder<'a> {
    /// `None` where the table does not record its changes.
    ///
    /// # Errors
    /// `Unsupported` for a table that has a column of a name that the records need.
    pub(super) fn new(
        files: &'a Files,
        base: &'a TableHead,
        schema: &SchemaRef,
        options: WriteOptions,
    ) -> Result<Option<Self>> {
        let Some(folder) = files.metadata.change_folder(base) else { return Ok(None) };
        with_change_columns(schema)?;
        Ok(Some(Self { files, base, schema: Arc::clone(schema), folder, options }))
    }

    /// Files that tell of a change of rows, which go by their positions in the base's files, and come. None when no row is
    /// another one afterwards.
    pub(super) async fn rows(
        &self,
        deletes: &BTreeMap<usize, RoaringBitmap>,
        inserts: &RecordBatch,
    ) -> Result<Vec<DataFile>> {
        let opens = deletes.iter().filter_map(|(place, positions)| {
            let file = Arc::clone(self.base.files.get(*place)?);
            Some(self.files.clone().picked(file, positions.clone(), Arc::clone(&self.schema)))
        });
        let gone: Vec<RecordBatch> = chained(opens.collect::<Vec<_>>()).try_collect().await?;
        let held = |batches: &[RecordBatch]| -> BatchStream {
            stream::iter(batches.iter().cloned().map(Ok).collect::<Vec<_>>()).boxed()
        };
        let (old, new) = (|| held(&gone), || held(std::slice::from_ref(inserts)));
        let found = diff::of(&old, &new, &self.schema).await?;
        let paired = diff::paired(found, &keys(self.base), &self.schema)?;
        let schema = self.recorded();
        let batches = paired.into_iter().map(|(rows, what)| with_word(&rows, what, &schema));
        self.write(stream::iter(batches.collect::<Vec<_>>()).boxed()).await
    }

    /// Files that tell that the rows of these files came.
    pub(super) async fn appended(&self, files: &[DataFile]) -> Result<Vec<DataFile>> {
        let files: Vec<_> = files.iter().cloned().map(Arc::new).collect();
        let schema = self.recorded();
        let rows = self.files.rows(&files, &self.schema).map(move |batch| {
            let batch = batch?;
            let word: ArrayRef = Arc::new(StringArray::from(vec![INSERT; batch.num_rows()]));
            with_word(&batch, word, &schema)
        });
        self.write(rows.boxed()).await
    }

    /// The columns of a record.
    fn recorded(&self) -> SchemaRef {
        let word = Arc::new(Field::new(CHANGE_TYPE, DataType::Utf8, true));
        Arc::new(Schema::new(self.schema.fields().iter().cloned().chain([word]).collect::<Vec<_>>()))
    }

    async fn write(&self, mut batches: BatchStream) -> Result<Vec<DataFile>> {
        let metadata = &self.files.metadata;
        let folder = metadata.root().clone().join(self.folder);
        let mut writer =
            Writer::new(Arc::clone(metadata.store()), folder, self.recorded(), &[], self.options);
        let written: Result<()> = async {
            while let Some(batch) = batches.next().await {
                writer.write(&batch?).await?;
            }
            Ok(())
        }
        .await;
        if let Err(e) = written {
            writer.abandon().await;
            return Err(e);
        }
        let files = writer.finish().await?.into_iter();
        Ok(files.map(|file| DataFile { path: format!("{}/{}", self.folder, file.path), ..file }).collect())
    }
}

/// Rows with what became of each.
fn with_word(rows: &RecordBatch, word: ArrayRef, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = rows.columns().iter().cloned().chain([word]).collect();
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}
