//! Committing: check against the base, write files, hand them to the adapter.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use futures::{StreamExt, stream};
use roaring::RoaringBitmap;

use super::{
    LakeOptions, WRITE_MODE, WriteMode,
    feed::Recorder,
    plan::{self, Plan},
    snapshot::Files,
};
use crate::{
    contract::{
        BatchStream, CommitOutcome, CommitStamp, Committed, Result, TableChange, TableDefinition,
        TableVersion,
    },
    error::{Error, ErrorKind},
    merge,
    metadata::{DataFile, DeletedPlace, FileChanges, Mask, MetadataOutcome, Operation, TableHead},
    rows,
    schema::{adapt, check_keys_kept, retyped, widened},
};

pub(super) struct Committer {
    pub(super) files: Files,
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
            TableChange::ReplaceWhere { .. } => {
                Err(Error::new(ErrorKind::Internal, "a replacement is a change of rows by now"))
            }
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
        let deleted = deletes.values().map(RoaringBitmap::len).sum();
        let (schema, inserts) = self.checked(base, inserts)?;
        let inserts = merge::sorted(inserts, &base.keys)?;
        let asked = deletes.clone();
        let deletes = self.with_earlier(base, deletes).await?;
        let is_retyped = retyped(&base.schema, &schema);
        if is_retyped {
            check_keys_kept(&base.keys, &base.schema, &schema)?;
        }
        let mode = self.write_mode(base)?;
        let mut plan = plan::rows(base, deletes, &inserts, (mode, is_retyped), self.options)?;
        if is_retyped {
            plan::add_the_rest(&mut plan.groups, base);
        }
        let changed = match Recorder::new(&self.files, base, &schema, self.options.files)? {
            Some(recorder) if !plan.is_told_by_files(&inserts) => {
                Some(recorder.rows(&asked, &inserts).await?)
            }
            _ => None,
        };
        let written = self.changed_files(base, plan, &schema, &inserts).await;
        let (add, remove) = match written {
            Ok(written) => written,
            Err(e) => {
                self.remove_files(changed.as_deref().unwrap_or_default()).await;
                return Err(e);
            }
        };
        // Where changes are recorded and there are none, rows only moved.
        let moves = changed.as_ref().is_some_and(Vec::is_empty);
        let change = FileChanges {
            add,
            remove,
            schema: changed_schema(base, &schema),
            changed: changed.unwrap_or_default(),
            operation: if moves { Operation::Compact } else { Operation::Merge },
            ..FileChanges::default()
        };
        self.land(base, change, stamp, deleted).await
    }

    /// Writes what a plan says: the files that come, and those that go or change.
    async fn changed_files(
        &self,
        base: &TableHead,
        plan: Plan,
        schema: &SchemaRef,
        inserts: &RecordBatch,
    ) -> Result<(Vec<DataFile>, Vec<Arc<DataFile>>)> {
        let mut remove: Vec<_> = plan.removed().filter_map(|file| base.files.get(file).cloned()).collect();
        let mut writer = self.writer(base, schema)?;
        let mut add = match self.rewrite(&mut writer, base, &plan, inserts).await {
            Ok(()) => writer.finish().await?,
            Err(e) => {
                writer.abandon().await;
                return Err(e);
            }
        };
        if !plan.masks.is_empty() {
            let masks = plan.masks.into_iter();
            let masks = masks.filter_map(|(file, deleted)| {
                base.files.get(file).map(|file| Mask { file: Arc::clone(file), deleted })
            });
            let masks: Vec<_> = masks.collect();
            remove.extend(masks.iter().map(|mask| Arc::clone(&mask.file)));
            match self.files.metadata.mask(base, masks).await {
                Ok(masked) => add.extend(masked),
                Err(e) => {
                    self.remove_files(&add).await;
                    return Err(e);
                }
            }
        }
        Ok((add, remove))
    }

    /// Positions to delete, with those of the same files that were deleted before.
    async fn with_earlier(
        &self,
        base: &TableHead,
        deletes: BTreeMap<usize, RoaringBitmap>,
    ) -> Result<BTreeMap<usize, RoaringBitmap>> {
        let mut all = BTreeMap::new();
        for (place, mut deleted) in deletes {
            let file = base.files.get(place);
            if let Some(file) = file
                && let Some(earlier) = self.files.deleted(file).await?
            {
                if !earlier.is_disjoint(&deleted) {
                    let message = "a row that is to be deleted is deleted already";
                    return Err(Error::new(ErrorKind::Invalid, message).with("file", &file.path));
                }
                deleted |= earlier.as_ref();
            }
            all.insert(place, deleted);
        }
        Ok(all)
    }

    /// How deleted rows are written to this table: as its property says, else as the options do.
    fn write_mode(&self, base: &TableHead) -> Result<WriteMode> {
        let mode = match base.properties.get(WRITE_MODE) {
            Some(mode) => mode.parse()?,
            None => self.options.write_mode,
        };
        match self.files.metadata.check_masks(base) {
            Ok(()) if mode == WriteMode::Auto && !self.files.metadata.masks_unasked(base) => {
                Ok(WriteMode::CopyOnWrite)
            }
            Ok(()) => Ok(mode),
            Err(e) if mode == WriteMode::MergeOnRead && base.properties.contains_key(WRITE_MODE) => Err(e),
            Err(_) => Ok(WriteMode::CopyOnWrite),
        }
    }

    /// The schema after the commit, and the new rows in it.
    fn checked(&self, base: &TableHead, inserts: &[RecordBatch]) -> Result<(SchemaRef, RecordBatch)> {
        let schema = inserts.iter().try_fold(Arc::clone(&base.schema), |s, b| widened(&s, b.schema_ref()))?;
        if schema != base.schema {
            self.files.metadata.check_schema(&schema)?;
        }
        let inserts = inserts.iter().map(|b| adapt(b, &schema)).collect::<Result<Vec<_>>>()?;
        let inserts = concat_batches(&schema, &inserts)?;
        Ok((schema, inserts))
    }

    async fn overwrite(
        &self,
        base: &TableHead,
        batches: BatchStream,
        stamp: &CommitStamp,
    ) -> Result<CommitOutcome> {
        let (schema, add) = self.written(base, &base.schema, batches).await?;
        let change = FileChanges {
            add,
            remove: base.files.to_vec(),
            schema: changed_schema(base, &schema),
            operation: Operation::Overwrite,
            ..FileChanges::default()
        };
        let deleted = base.files.iter().map(|f| f.live_rows()).sum();
        self.land(base, change, stamp, deleted).await
    }

    async fn replace(
        &self,
        base: &TableHead,
        definition: Box<TableDefinition>,
        batches: BatchStream,
        stamp: &CommitStamp,
    ) -> Result<CommitOutcome> {
        self.files.metadata.check_definition(&definition)?;
        let (schema, add) = self.written(base, &definition.schema, batches).await?;
        if schema != definition.schema {
            self.remove_files(&add).await;
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
        let deleted = base.files.iter().map(|f| f.live_rows()).sum();
        self.land(base, change, stamp, deleted).await
    }

    pub(super) async fn land(
        &self,
        base: &TableHead,
        change: FileChanges,
        stamp: &CommitStamp,
        deleted: u64,
    ) -> Result<CommitOutcome> {
        let (add, remove, left_over) = (change.add.clone(), change.remove.clone(), left_over(&change));
        match self.files.metadata.commit(base, change, Some(stamp)).await? {
            MetadataOutcome::Committed(head) => Ok(committed(head.version, &add, deleted, &remove)),
            MetadataOutcome::Conflict { .. } => {
                let newest = self.files.metadata.head(None).await?;
                Ok(match self.landed(base, &newest, &add, stamp).await? {
                    Some(version) => committed(version, &add, deleted, &remove),
                    None => CommitOutcome::Conflict { latest: newest.version, left_over },
                })
            }
        }
    }

    /// The version as which our commit landed on `tried` although it was answered with a conflict: a store's client that
    /// repeats a request whose answer was lost finds our own log entry in its way.
    pub(super) async fn landed(
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
        let landed = self.files.metadata.head(Some(ours)).await?;
        Ok(names(&landed, add).then_some(ours))
    }
}

/// The batch that a head carries, when the stamp's is not above it; an error for a fenced writer.
pub(super) fn already_applied(head: &TableHead, stamp: &CommitStamp) -> Result<Option<u64>> {
    if stamp.epoch < head.epoch {
        let message = format!("fenced: epoch {} is below the table's, {}", stamp.epoch, head.epoch);
        return Err(Error::new(ErrorKind::Conflict, message).with("flow", &stamp.writer.flow));
    }
    Ok(head.batches.get(&stamp.writer).copied().filter(|batch| stamp.batch <= *batch))
}

pub(super) fn changed_schema(base: &TableHead, schema: &SchemaRef) -> Option<SchemaRef> {
    (schema != &base.schema).then(|| Arc::clone(schema))
}

/// What a change that did not land has written: files of their own, or what masks files that stay.
pub(super) fn left_over(change: &FileChanges) -> Vec<String> {
    let mut paths = Vec::new();
    for file in change.add.iter().chain(&change.changed) {
        if !change.remove.iter().any(|gone| gone.path == file.path) {
            paths.push(file.path.clone());
            continue;
        }
        let places = file.deleted.iter().flat_map(|deleted| &deleted.places);
        paths.extend(places.filter_map(|place| match place {
            DeletedPlace::File { path, .. } => Some(path.clone()),
            DeletedPlace::Inline(_) => None,
        }));
    }
    paths.sort();
    paths.dedup();
    paths
}

/// True when the files that we wrote are of this version: no other commit names them.
fn names(head: &TableHead, add: &[DataFile]) -> bool {
    add.first().is_some_and(|ours| head.files.iter().any(|file| file.is_same(ours)))
}

pub(super) fn committed(
    version: TableVersion,
    add: &[DataFile],
    rows_deleted: u64,
    remove: &[Arc<DataFile>],
) -> CommitOutcome {
    let stays = |path: &str| remove.iter().any(|gone| gone.path == path);
    let (masked, new): (Vec<&DataFile>, Vec<&DataFile>) = add.iter().partition(|file| stays(&file.path));
    CommitOutcome::Committed(Committed {
        version: version.0,
        rows_written: new.iter().map(|f| f.rows).sum(),
        rows_deleted,
        bytes_written: new.iter().map(|f| f.size).sum(),
        files_added: new.len() as u64,
        files_masked: masked.len() as u64,
        files_removed: (remove.len() - masked.len()) as u64,
    })
}
