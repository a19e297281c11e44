//! Writing a table's files: rows as they come, and files anew without the rows that went.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::{StreamExt, TryStreamExt, stream};

use super::{commit::Committer, plan::Plan};
use crate::{
    contract::{BatchStream, Result},
    error::{Error, ErrorKind},
    merge,
    metadata::{DataFile, TableHead},
    parquet::{Writer, remove_files},
    rows,
    schema::{adapt, widened},
};

impl Committer {
    /// Writes the groups of a plan: what is left of their files, and the rows that come to them, by key.
    pub(super) async fn rewrite(
        &self,
        writer: &mut Writer,
        base: &TableHead,
        plan: &Plan,
        inserts: &RecordBatch,
    ) -> Result<()> {
        for group in &plan.groups {
            let mut inputs: Vec<BatchStream> = Vec::new();
            let mut total = 0;
            for place in &group.files {
                let Some(file) = base.files.get(*place) else { continue };
                let gone = match plan.deletes.get(place) {
                    Some(gone) => Some(Arc::new(gone.clone())),
                    None => self.files.deleted(file).await?,
                };
                let left = file.rows.saturating_sub(gone.as_ref().map_or(0, |d| d.len()));
                if left > 0 {
                    total += left;
                    let files = self.files.clone();
                    inputs.push(rows::ahead(files.open(Arc::clone(file), gone, inserts.schema()).await?));
                }
            }
            let new: Vec<_> =
                group.inserts.iter().map(|(from, to)| Ok(inserts.slice(*from, to - from))).collect();
            total += group.inserts.iter().map(|(from, to)| (to - from) as u64).sum::<u64>();
            if !new.is_empty() {
                inputs.push(stream::iter(new).boxed());
            }
            writer.set_options(self.options.files.sharing(total));
            let mut merged = merge::by_key(inputs, &inserts.schema(), &base.keys)?;
            while let Some(batch) = merged.next().await {
                writer.write(&batch?).await?;
            }
            writer.close().await?;
        }
        Ok(())
    }

    /// Writes rows as they come, each batch checked before it is written; the first batch may bring new columns.
    pub(super) async fn written(
        &self,
        base: &TableHead,
        table: &SchemaRef,
        mut batches: BatchStream,
    ) -> Result<(SchemaRef, Vec<DataFile>)> {
        let Some(first) = batches.try_next().await? else {
            return Ok((Arc::clone(table), Vec::new()));
        };
        let schema = widened(table, first.schema_ref())?;
        if schema != *table {
            self.files.metadata.check_schema(&schema)?;
        }
        let mut writer = self.writer(base, &schema)?;
        let mut all = rows::ahead(stream::once(async { Ok(first) }).chain(batches).boxed());
        let written: Result<()> = async {
            while let Some(batch) = all.next().await {
                let batch = batch?;
                if widened(&schema, batch.schema_ref())? != schema {
                    let message = "new columns must come with the first batch of a stream";
                    return Err(Error::new(ErrorKind::Invalid, message));
                }
                writer.write(&adapt(&batch, &schema)?).await?;
            }
            Ok(())
        }
        .await;
        match written {
            Ok(()) => Ok((schema, writer.finish().await?)),
            Err(e) => {
                writer.abandon().await;
                Err(e)
            }
        }
    }

    /// A writer of files of the table in a schema.
    pub(super) fn writer(&self, base: &TableHead, schema: &SchemaRef) -> Result<Writer> {
        let metadata = &self.files.metadata;
        let partitioner = metadata.partitioner(base, schema)?;
        let schema = metadata.file_schema(base, schema)?;
        let (store, folder) = (Arc::clone(metadata.store()), metadata.root().clone());
        let writer = Writer::new(store, folder, schema, &base.keys, self.options.files);
        Ok(writer.partitioned(partitioner))
    }

    /// Takes back files that no version names.
    pub(super) async fn remove_files(&self, files: &[DataFile]) {
        remove_files(self.files.metadata.store(), self.files.metadata.root(), files).await;
    }
}
