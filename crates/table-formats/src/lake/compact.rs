//! Compaction: rows move to other files, and none comes, goes or changes.
//!
//! Each group of files is rewritten and committed on its own, so that not much is in vain when another writer comes first.
//! A commit of another writer that left the group's files alone is no conflict: the same files are committed on top of it.

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use futures::StreamExt;

use super::{
    LakeOptions,
    compact_plan::{self, Group},
    snapshot::Files,
};
use crate::{
    contract::{Maintained, Result, TableVersion},
    merge,
    metadata::{DataFile, FileChanges, MetadataOutcome, Operation, TableHead},
    parquet::{Writer, remove_files},
};

/// So often the table is looked at anew: parts of a file that was split may be small, and other writers may have changed
/// what was being compacted.
const ROUNDS: usize = 5;
/// So often a commit is made again on top of others that left its files alone.
const TRIES: usize = 64;

/// Compacts a table.
pub(super) struct Compactor {
    pub(super) files: Files,
    pub(super) options: LakeOptions,
}

impl Compactor {
    /// Compacts what is worth it, and adds what was done.
    pub(super) async fn run(&self, dry_run: bool, done: &mut Maintained) -> Result<()> {
        let mut lost = 0;
        for round in 0..ROUNDS {
            let mut head = self.files.metadata.head(None).await?;
            if round == 0 && head.files.iter().any(|file| !file.constants.is_empty()) {
                done.notices.push("files of a partitioned table are not compacted".to_owned());
            }
            let groups = compact_plan::groups(&head, self.options);
            if dry_run {
                done.compacted = groups.iter().flat_map(|group| &group.files).map(|file| file.size).collect();
                return Ok(());
            }
            lost = 0;
            if groups.is_empty() {
                break;
            }
            for group in groups {
                if let Some(newest) = self.group(&head, &group).await? {
                    head = newest;
                    done.commits += 1;
                    group.files.iter().for_each(|file| done.compacted.add(file.size));
                } else {
                    head = self.files.metadata.head(None).await?;
                    lost += 1;
                }
            }
            done.conflicts += lost;
        }
        if lost > 0 {
            let message =
                "other writers changed files while they were compacted: some are left for the next time";
            done.notices.push(message.to_owned());
        }
        Ok(())
    }

    /// Compacts some files, and gives the version with it; `None` when another writer changed them.
    async fn group(&self, head: &TableHead, group: &Group) -> Result<Option<TableHead>> {
        if !holds(head, &group.files) {
            return Ok(None);
        }
        let add = self.rewritten(head, group).await?;
        let mut base = head.clone();
        for _ in 0..TRIES {
            let change = FileChanges {
                add: add.clone(),
                remove: group.files.clone(),
                operation: Operation::Compact,
                ..FileChanges::default()
            };
            let tried = match self.files.metadata.commit(&base, change, None).await? {
                MetadataOutcome::Committed(newest) => return Ok(Some(newest)),
                MetadataOutcome::Conflict { .. } => base.version,
            };
            base = self.files.metadata.head(None).await?;
            if self.landed(tried, &base, &add).await? {
                return Ok(Some(base));
            }
            if base.schema != head.schema || base.identity != head.identity || !holds(&base, &group.files) {
                break;
            }
        }
        remove_files(self.files.metadata.store(), self.files.metadata.root(), &add).await;
        Ok(None)
    }

    /// Whether a commit on `tried` landed although it was answered with a conflict.
    async fn landed(&self, tried: TableVersion, newest: &TableHead, add: &[DataFile]) -> Result<bool> {
        let Some(ours) = add.first() else { return Ok(false) };
        let names = |head: &TableHead| head.files.iter().any(|file| file.path == ours.path);
        if names(newest) {
            return Ok(true);
        }
        let version = TableVersion(tried.0 + 1);
        if newest.version <= version {
            return Ok(false);
        }
        // Later commits may have rewritten our files already.
        match self.files.metadata.head(Some(version)).await {
            Ok(head) => Ok(names(&head)),
            Err(error) if error.kind() == crate::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// New files with the rows of these, by key.
    async fn rewritten(&self, head: &TableHead, group: &Group) -> Result<Vec<DataFile>> {
        let schema = self.files.metadata.file_schema(head, &head.schema)?;
        let partitioner = self.files.metadata.partitioner(head, &head.schema)?;
        let writer = || {
            let metadata = &self.files.metadata;
            let (store, folder) = (Arc::clone(metadata.store()), metadata.root().clone());
            let writer = Writer::new(store, folder, Arc::clone(&schema), &head.keys, self.options.files);
            writer.partitioned(partitioner.clone())
        };
        let mut outputs = Outputs { end: group.split_by, current: writer(), closed: writer() };
        match self.merge(head, &group.files, &mut outputs).await {
            Ok(()) => {
                let mut files = outputs.current.finish().await?;
                files.extend(outputs.closed.finish().await?);
                Ok(files)
            }
            Err(error) => {
                outputs.current.abandon().await;
                outputs.closed.abandon().await;
                Err(error)
            }
        }
    }

    async fn merge(&self, head: &TableHead, group: &[Arc<DataFile>], outputs: &mut Outputs) -> Result<()> {
        let mut inputs = Vec::new();
        for file in group.iter().filter(|file| file.live_rows() > 0) {
            let deleted = self.files.deleted(file).await?;
            inputs.push(self.files.clone().open(Arc::clone(file), deleted, Arc::clone(&head.schema)).await?);
        }
        if outputs.end.is_none() {
            let rows = group.iter().map(|file| file.live_rows()).sum();
            outputs.current.set_options(self.options.files.sharing(rows));
        }
        let mut merged = merge::by_key(inputs, &head.schema, &head.keys)?;
        while let Some(batch) = merged.next().await {
            outputs.write(&batch?).await?;
        }
        Ok(())
    }
}

/// Where rows go: those that ended to files of their own.
struct Outputs {
    end: Option<&'static str>,
    current: Writer,
    closed: Writer,
}

impl Outputs {
    async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let Some(end) = self.end.and_then(|end| batch.column_by_name(end)) else {
            return self.current.write(batch).await;
        };
        let is_current: BooleanArray = (0..end.len()).map(|row| Some(end.is_null(row))).collect();
        let is_closed: BooleanArray = (0..end.len()).map(|row| Some(end.is_valid(row))).collect();
        self.current.write(&filter_record_batch(batch, &is_current)?).await?;
        self.closed.write(&filter_record_batch(batch, &is_closed)?).await
    }
}

/// True when all of these files are of this version, as they are.
fn holds(head: &TableHead, group: &[Arc<DataFile>]) -> bool {
    group.iter().all(|file| head.files.iter().any(|now| now.is_same(file)))
}
