//! What did commits change, row by row?
//!
//! Where the log has files of changes, those are read. Else the rows of the files that went are held against the rows of
//! the files that came: copy-on-write moves most rows of a file unchanged.

use std::{collections::BTreeMap, sync::Arc};

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use futures::{StreamExt, TryStreamExt, stream};
use roaring::RoaringBitmap;

use super::{diff, snapshot::Files};
use crate::{
    contract::{
        AppendedFile, BatchStream, CHANGE_TYPE, CommitKind, DELETE, INSERT, Result, TableCommit,
        TableVersion, changed_rows, with_change_columns,
    },
    error::{Error, ErrorKind},
    metadata::{DataFile, FileCommit, TableHead},
    rows::chained,
};

/// Columns that tell apart the rows of one key, in a table with history.
const STARTS: [&str; 2] = ["__START_AT", "__SYSTEM_START_AT"];

/// The files of a commit, apart: those that stayed and have other rows deleted, and those that came and went.
struct Sides {
    masked: Vec<(Arc<DataFile>, Arc<DataFile>)>,
    added: Vec<Arc<DataFile>>,
    removed: Vec<Arc<DataFile>>,
}

impl Sides {
    fn of(commit: &FileCommit) -> Self {
        let before: BTreeMap<&str, _> =
            commit.removed.iter().map(|file| (file.path.as_str(), file)).collect();
        let (mut masked, mut added) = (Vec::new(), Vec::new());
        for file in &commit.added {
            match before.get(file.path.as_str()) {
                Some(before) => masked.push((Arc::clone(before), Arc::clone(file))),
                None => added.push(Arc::clone(file)),
            }
        }
        let stays = |file: &&Arc<DataFile>| !masked.iter().any(|(before, _)| before.path == file.path);
        let removed = commit.removed.iter().filter(stays).cloned().collect();
        Self { masked, added, removed }
    }

    /// Rows that reading the changes goes through.
    fn rows(&self) -> u64 {
        let files = self.added.iter().chain(&self.removed).map(|file| file.live_rows());
        let masked = self.masked.iter().map(|(before, after)| before.live_rows().abs_diff(after.live_rows()));
        files.chain(masked).sum()
    }

    /// True when no masked file has rows again that did not count before.
    fn only_loses(&self) -> bool {
        self.masked.iter().all(|(before, after)| after.live_rows() <= before.live_rows())
    }
}

/// A commit to readers who know no files.
pub(super) fn summary(commit: &FileCommit) -> TableCommit {
    let rows = |files: &[Arc<DataFile>]| files.iter().map(|file| file.rows).sum::<u64>();
    let sides = Sides::of(commit);
    let kind = match (commit.added.is_empty(), commit.removed.is_empty()) {
        _ if !commit.changed.is_empty() => CommitKind::Change,
        _ if !sides.masked.is_empty() && sides.added.is_empty() && sides.only_loses() => CommitKind::Delete,
        (_, false) if commit.replaces_columns => CommitKind::Replace,
        (true, true) => CommitKind::Nothing,
        (false, true) => CommitKind::Append,
        (true, false) => CommitKind::Delete,
        (false, false) => CommitKind::Change,
    };
    let appended = |file: &Arc<DataFile>| AppendedFile {
        path: file.path.clone(),
        size: file.size,
        rows: file.live_rows(),
    };
    TableCommit {
        version: commit.version,
        timestamp: commit.timestamp,
        kind,
        appended: match kind {
            CommitKind::Append => commit.added.iter().map(appended).collect(),
            CommitKind::Nothing | CommitKind::Delete | CommitKind::Change | CommitKind::Replace => Vec::new(),
        },
        removes_files: commit.removes_files,
        replaces_columns: commit.replaces_columns,
        rows: if commit.changed.is_empty() { sides.rows() } else { rows(&commit.changed) },
    }
}

/// The changes of some commits.
pub(super) async fn read(files: Files, first: TableVersion, last: TableVersion) -> Result<BatchStream> {
    let metadata = &files.metadata;
    metadata.check_changes(&metadata.head(Some(first)).await?)?;
    let head = metadata.head(Some(last)).await?;
    metadata.check_changes(&head)?;
    with_change_columns(&head.schema)?;
    let commits = metadata.commits(first.0.checked_sub(1).map(TableVersion), last).await?;
    if let Some(replaced) = commits
        .iter()
        .find(|commit| commit.replaces_columns && (commit.version > first || !commit.removed.is_empty()))
    {
        return Err(other_columns(replaced.version));
    }
    let feed = Feed { files, keys: keys(&head), schema: head.schema };
    let streams = stream::iter(commits).then(move |commit| feed.clone().of(commit)).try_flatten();
    Ok(streams.boxed())
}

fn other_columns(version: TableVersion) -> Error {
    let message = "the table was replaced by one with other columns, so that its changes don't go on";
    Error::new(ErrorKind::Unsupported, message).with("version", version)
}

/// The columns by which a row is the same row before and after a change.
pub(super) fn keys(head: &TableHead) -> Vec<String> {
    if head.keys.is_empty() {
        return Vec::new();
    }
    let starts = STARTS.into_iter().filter(|name| head.schema.field_with_name(name).is_ok());
    head.keys.iter().cloned().chain(starts.map(str::to_owned)).collect()
}

/// Some rows of a file, by their positions.
type Picked = (Arc<DataFile>, RoaringBitmap);

#[derive(Clone)]
struct Feed {
    files: Files,
    keys: Vec<String>,
    schema: SchemaRef,
}

impl Feed {
    async fn of(self, commit: FileCommit) -> Result<BatchStream> {
        let version = commit.version;
        let rows = self.rows(commit).await.map_err(|error| gone(error, version))?;
        Ok(rows.map_err(move |error| gone(error, version)).boxed())
    }

    async fn rows(&self, commit: FileCommit) -> Result<BatchStream> {
        let at = (commit.version, commit.timestamp);
        let all = |files: &[Arc<DataFile>], word: &'static str| {
            let rows = self.files.rows(files, &self.schema);
            rows.map(move |batch| changed_rows(&batch?, None, word, at)).boxed()
        };
        Ok(if !commit.changed.is_empty() {
            self.recorded(&commit)
        } else if commit.removed.is_empty() {
            all(&commit.added, INSERT)
        } else if commit.added.is_empty() {
            all(&commit.removed, DELETE)
        } else {
            let sides = Sides::of(&commit);
            let (lost, regained) = self.masked(&sides).await?;
            let old = || self.picked(&lost).chain(self.files.rows(&sides.removed, &self.schema)).boxed();
            let new = || self.picked(&regained).chain(self.files.rows(&sides.added, &self.schema)).boxed();
            let found = diff::of(&old, &new, &self.schema).await?;
            let batches = diff::paired(found, &self.keys, &self.schema)?;
            let batches =
                batches.into_iter().map(move |(rows, what)| changed_rows(&rows, Some(what), "", at));
            stream::iter(batches.collect::<Vec<_>>()).boxed()
        })
    }

    /// Rows of files that stayed: those that don't count any more, and those that count again.
    async fn masked(&self, sides: &Sides) -> Result<(Vec<Picked>, Vec<Picked>)> {
        let (mut lost, mut regained) = (Vec::new(), Vec::new());
        for (before, after) in &sides.masked {
            let then = self.files.deleted(before).await?.unwrap_or_default();
            let now = self.files.deleted(after).await?.unwrap_or_default();
            lost.push((Arc::clone(after), now.as_ref() - then.as_ref()));
            regained.push((Arc::clone(after), then.as_ref() - now.as_ref()));
        }
        Ok((lost, regained))
    }

    fn picked(&self, picked: &[Picked]) -> BatchStream {
        let opens = picked.iter().filter(|(_, positions)| !positions.is_empty()).map(|(file, positions)| {
            self.files.clone().picked(Arc::clone(file), positions.clone(), Arc::clone(&self.schema))
        });
        chained(opens.collect::<Vec<_>>())
    }

    /// What a writer recorded itself.
    fn recorded(&self, commit: &FileCommit) -> BatchStream {
        let at = (commit.version, commit.timestamp);
        let what = Arc::new(Field::new(CHANGE_TYPE, DataType::Utf8, false));
        let columns = self.schema.fields().iter().cloned().chain([what]).collect::<Vec<_>>();
        let rows = self.files.rows(&commit.changed, &Arc::new(Schema::new(columns)));
        let last = self.schema.fields().len();
        let places: Vec<usize> = (0..last).collect();
        let read = move |batch: Result<arrow_array::RecordBatch>| {
            let batch = batch?;
            changed_rows(&batch.project(&places)?, batch.columns().get(last).cloned(), "", at)
        };
        rows.map(read).boxed()
    }
}

/// A file that vacuum took before its changes were read.
fn gone(error: Error, version: TableVersion) -> Error {
    if !error.is_missing_file() {
        return error;
    }
    let message = "files that tell what a commit changed were removed from the table's folder";
    Error::new(ErrorKind::NotFound, message).with("version", version).because(error)
}
