//! Committing: check against the base, write files, hand them to the adapter.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use futures::{StreamExt, TryStreamExt, stream};
use roaring::RoaringBitmap;

use super::{
    LakeOptions,
    plan::{self, Group},
};
use crate::{
    contract::{
        BatchStream, CommitOutcome, CommitStamp, Committed, Result, TableChange, TableDefinition,
        TableVersion,
    },
    error::{Error, ErrorKind},
    merge,
    metadata::{DataFile, FileChanges, MetadataOutcome, Operation, TableHead, TableMetadata},
    parquet::{Readers, Writer, file_path, remove_files},
    rows,
    schema::{adapt, check_keys_kept, retyped, widened},
};

/// So often an append is tried on top of other writers' commits.
const APPEND_TRIES: usize = 64;

pub(super) struct Committer {
    pub(super) metadata: Arc<dyn TableMetadata>,
    pub(super) readers: Arc<Readers>,
    pub(super) options: LakeOptions,
}

impl Committer {
    pub(super) async fn commit(
        &self,
        base: &TableHead,
        change: TableChange,
        stamp: &CommitStamp,
    ) -> Result<CommitOutcome> {
        if let Some(batch) = already_applied(base, stamp)? {
            return Ok(CommitOutcome::AlreadyApplied { batch });
        }
        match change {
            TableChange::Rows { deletes, inserts } => self.rows(base, deletes, &inserts, stamp).await,
            TableChange::Append(batches) => self.append(base, batches, stamp).await,
            TableChange::Empty => self.overwrite(base, stream::empty().boxed(), stamp).await,
            TableChange::Overwrite(batches) => self.overwrite(base, batches, stamp).await,
            TableChange::Replace { definition, rows } => self.replace(base, definition, rows, stamp).await,
        }
    }

    async fn rows(
        &self,
        base: &TableHead,
        deletes: Vec<u64>,
        inserts: &[RecordBatch],
        stamp: &CommitStamp,
    ) -> Result<CommitOutcome> {
        let deletes = rows::positions_by_file(deletes, |file| base.files.get(file).map(|f| f.rows))?;
        let (schema, inserts) = self.checked(base, inserts)?;
        let inserts = merge::sorted(inserts, &base.keys)?;
        let mut groups = plan::groups(base, &deletes, &inserts, self.options)?;
        if retyped(&base.schema, &schema) {
            check_keys_kept(&base.keys, &base.schema, &schema)?;
            plan::add_the_rest(&mut groups, base);
        }
        let deleted = deletes.values().map(RoaringBitmap::len).sum();
        let remove =
            groups.iter().flat_map(|g| &g.files).filter_map(|f| base.files.get(*f).cloned()).collect();
        let mut writer = self.writer(&schema);
        let add = match self.rewrite(&mut writer, base, &groups, deletes, &inserts).await {
            Ok(()) => writer.finish().await?,
            Err(e) => {
                writer.abandon().await;
                return Err(e);
            }
        };
        let schema = changed(base, &schema);
        let change =
            FileChanges { add, remove, schema, operation: Operation::Merge, ..FileChanges::default() };
        self.land(base, change, stamp, deleted).await
    }

    /// The schema after the commit, and the new rows in it.
    fn checked(&self, base: &TableHead, inserts: &[RecordBatch]) -> Result<(SchemaRef, RecordBatch)> {
        let schema = inserts.iter().try_fold(Arc::clone(&base.schema), |s, b| widened(&s, b.schema_ref()))?;
        if schema != base.schema {
            self.metadata.check_schema(&schema)?;
        }
        let inserts = inserts.iter().map(|b| adapt(b, &schema)).collect::<Result<Vec<_>>>()?;
        let inserts = concat_batches(&schema, &inserts)?;
        Ok((schema, inserts))
    }

    async fn rewrite(
        &self,
        writer: &mut Writer,
        base: &TableHead,
        groups: &[Group],
        deletes: BTreeMap<usize, RoaringBitmap>,
        inserts: &RecordBatch,
    ) -> Result<()> {
        let mut deletes: BTreeMap<_, _> = deletes.into_iter().map(|(f, d)| (f, Arc::new(d))).collect();
        for group in groups {
            let mut inputs: Vec<BatchStream> = Vec::new();
            let mut total = 0;
            for file in group.files.iter().filter_map(|f| Some((*f, base.files.get(*f)?))) {
                let gone = deletes.remove(&file.0);
                let left = file.1.rows.saturating_sub(gone.as_ref().map_or(0, |d| d.len()));
                if left > 0 {
                    total += left;
                    let path = file_path(self.metadata.root(), &file.1.path)?;
                    let reader = self.readers.open(path, file.1.size).await?;
                    inputs.push(rows::ahead(rows::live_rows(&reader, gone, &inserts.schema())?.boxed()));
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

    async fn overwrite(
        &self,
        base: &TableHead,
        batches: BatchStream,
        stamp: &CommitStamp,
    ) -> Result<CommitOutcome> {
        let (schema, add) = self.written(&base.schema, batches).await?;
        let change = FileChanges {
            add,
            remove: base.files.to_vec(),
            schema: changed(base, &schema),
            operation: Operation::Overwrite,
            ..FileChanges::default()
        };
        let deleted = base.files.iter().map(|f| f.rows).sum();
        self.land(base, change, stamp, deleted).await
    }

    async fn replace(
        &self,
        base: &TableHead,
        definition: Box<TableDefinition>,
        batches: BatchStream,
        stamp: &CommitStamp,
    ) -> Result<CommitOutcome> {
        self.metadata.check_definition(&definition)?;
        let (schema, add) = self.written(&definition.schema, batches).await?;
        if schema != definition.schema {
            remove_files(self.metadata.store(), self.metadata.root(), &add).await;
            let more =
                schema.fields().iter().skip(definition.schema.fields().len()).map(|f| f.name().as_str());
            let more = more.collect::<Vec<_>>().join(", ");
            let message = "the rows have columns that the table's definition lacks";
            return Err(Error::new(ErrorKind::Invalid, message).with("columns", more));
        }
        let change = FileChanges {
            add,
            remove: base.files.to_vec(),
            schema: None,
            definition: Some(definition),
            operation: Operation::Replace,
            ..FileChanges::default()
        };
        let deleted = base.files.iter().map(|f| f.rows).sum();
        self.land(base, change, stamp, deleted).await
    }

    async fn append(
        &self,
        base: &TableHead,
        batches: BatchStream,
        stamp: &CommitStamp,
    ) -> Result<CommitOutcome> {
        let (schema, add) = self.written(&base.schema, batches).await?;
        if retyped(&base.schema, &schema) {
            return self.append_wider(base, &schema, add, stamp).await;
        }
        let mut head = base.clone();
        for _ in 0..APPEND_TRIES {
            // Another writer may have changed the schema meanwhile: ours must fit it still.
            if head.state != base.state {
                // Our stamp names the state of the base: with it the table's would be set back.
                return Ok(CommitOutcome::Conflict { latest: head.version, left_over: paths(&add) });
            }
            let checked =
                widened(&head.schema, &schema).and_then(|s| Ok((s, already_applied(&head, stamp)?)));
            let after = match checked {
                Ok((after, None)) => after,
                Ok((_, Some(batch))) => {
                    // Not ours, as was looked after the conflict.
                    remove_files(self.metadata.store(), self.metadata.root(), &add).await;
                    return Ok(CommitOutcome::AlreadyApplied { batch });
                }
                Err(e) => {
                    remove_files(self.metadata.store(), self.metadata.root(), &add).await;
                    return Err(e);
                }
            };
            if retyped(&head.schema, &after) || retyped(&schema, &after) {
                // A column got wider meanwhile, or would have to: that is not done without reading the table.
                return Ok(CommitOutcome::Conflict { latest: head.version, left_over: paths(&add) });
            }
            let change = FileChanges {
                add: add.clone(),
                remove: Vec::new(),
                schema: changed(&head, &after),
                definition: None,
                operation: Operation::Append,
                ..FileChanges::default()
            };
            match self.metadata.commit(&head, change, Some(stamp)).await? {
                MetadataOutcome::Committed(landed) => return Ok(committed(landed.version, &add, 0, 0)),
                MetadataOutcome::Conflict { .. } => {
                    let newest = self.metadata.head(None).await?;
                    if let Some(version) = self.landed(&head, &newest, &add, stamp).await? {
                        return Ok(committed(version, &add, 0, 0));
                    }
                    head = newest;
                }
            }
        }
        Ok(CommitOutcome::Conflict { latest: head.version, left_over: paths(&add) })
    }

    /// Appends rows some columns of which are wider than the table's: every file is written anew with the wider columns, so
    /// that no reader meets two types in one column.
    async fn append_wider(
        &self,
        base: &TableHead,
        schema: &SchemaRef,
        mut add: Vec<DataFile>,
        stamp: &CommitStamp,
    ) -> Result<CommitOutcome> {
        let appended: u64 = add.iter().map(|file| file.rows).sum();
        let mut groups = Vec::new();
        plan::add_the_rest(&mut groups, base);
        let mut writer = self.writer(schema);
        let none = RecordBatch::new_empty(Arc::clone(schema));
        let rewritten = match check_keys_kept(&base.keys, &base.schema, schema) {
            Ok(()) => self.rewrite(&mut writer, base, &groups, BTreeMap::new(), &none).await,
            refused => refused,
        };
        match rewritten {
            Ok(()) => add.extend(writer.finish().await?),
            Err(e) => {
                writer.abandon().await;
                remove_files(self.metadata.store(), self.metadata.root(), &add).await;
                return Err(e);
            }
        }
        let change = FileChanges {
            add,
            remove: base.files.to_vec(),
            schema: Some(Arc::clone(schema)),
            operation: Operation::Merge,
            ..FileChanges::default()
        };
        Ok(match self.land(base, change, stamp, 0).await? {
            CommitOutcome::Committed(landed) => {
                CommitOutcome::Committed(Committed { rows_written: appended, ..landed })
            }
            other @ (CommitOutcome::AlreadyApplied { .. } | CommitOutcome::Conflict { .. }) => other,
        })
    }

    /// Writes rows as they come, each batch checked before it is written; the first batch may bring new columns.
    async fn written(
        &self,
        table: &SchemaRef,
        mut batches: BatchStream,
    ) -> Result<(SchemaRef, Vec<DataFile>)> {
        let Some(first) = batches.try_next().await? else {
            return Ok((Arc::clone(table), Vec::new()));
        };
        let schema = widened(table, first.schema_ref())?;
        if schema != *table {
            self.metadata.check_schema(&schema)?;
        }
        let mut writer = self.writer(&schema);
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

    fn writer(&self, schema: &SchemaRef) -> Writer {
        let store = Arc::clone(self.metadata.store());
        Writer::new(store, self.metadata.root().clone(), Arc::clone(schema), self.options.files)
    }

    async fn land(
        &self,
        base: &TableHead,
        change: FileChanges,
        stamp: &CommitStamp,
        deleted: u64,
    ) -> Result<CommitOutcome> {
        let (add, removed) = (change.add.clone(), change.remove.len() as u64);
        match self.metadata.commit(base, change, Some(stamp)).await? {
            MetadataOutcome::Committed(head) => Ok(committed(head.version, &add, deleted, removed)),
            MetadataOutcome::Conflict { .. } => {
                let newest = self.metadata.head(None).await?;
                Ok(match self.landed(base, &newest, &add, stamp).await? {
                    Some(version) => committed(version, &add, deleted, removed),
                    None => CommitOutcome::Conflict { latest: newest.version, left_over: paths(&add) },
                })
            }
        }
    }

    /// The version as which our commit landed on `tried` although it was answered with a conflict: a store's client that
    /// repeats a request whose answer was lost finds our own log entry in its way.
    async fn landed(
        &self,
        tried: &TableHead,
        newest: &TableHead,
        add: &[DataFile],
        stamp: &CommitStamp,
    ) -> Result<Option<TableVersion>> {
        let ours = TableVersion(tried.version.0 + 1);
        if names(newest, add) {
            return Ok(Some(ours));
        }
        let carried = newest.batches.get(&stamp.writer).is_some_and(|batch| stamp.batch <= *batch);
        if !carried || add.is_empty() || newest.version <= ours {
            return Ok(None);
        }
        // Later commits may have rewritten our files: the version that would be ours says whose it is.
        let landed = self.metadata.head(Some(ours)).await?;
        Ok(names(&landed, add).then_some(ours))
    }
}

/// The batch that a head carries, when the stamp's is not above it; an error for a fenced writer.
fn already_applied(head: &TableHead, stamp: &CommitStamp) -> Result<Option<u64>> {
    if stamp.epoch < head.epoch {
        let message = format!("fenced: epoch {} is below the table's, {}", stamp.epoch, head.epoch);
        return Err(Error::new(ErrorKind::Conflict, message).with("flow", &stamp.writer.flow));
    }
    Ok(head.batches.get(&stamp.writer).copied().filter(|batch| stamp.batch <= *batch))
}

fn changed(base: &TableHead, schema: &SchemaRef) -> Option<SchemaRef> {
    (schema != &base.schema).then(|| Arc::clone(schema))
}

fn paths(files: &[DataFile]) -> Vec<String> {
    files.iter().map(|f| f.path.clone()).collect()
}

/// True when the files that we wrote are of this version: no other commit names them.
fn names(head: &TableHead, add: &[DataFile]) -> bool {
    add.first().is_some_and(|ours| head.files.iter().any(|file| file.is_same(ours)))
}

fn committed(
    version: TableVersion,
    add: &[DataFile],
    rows_deleted: u64,
    files_removed: u64,
) -> CommitOutcome {
    CommitOutcome::Committed(Committed {
        version: version.0,
        rows_written: add.iter().map(|f| f.rows).sum(),
        rows_deleted,
        bytes_written: add.iter().map(|f| f.size).sum(),
        files_added: add.len() as u64,
        files_removed,
    })
}
