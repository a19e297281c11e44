//! What did commits change, row by row?
//!
//! Where the log has files of changes, those are read. Else the rows of the files that went are held against the rows of
//! the files that came: copy-on-write moves most rows of a file unchanged.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};
use futures::{StreamExt, TryStreamExt, stream};

use super::{diff, snapshot::Files};
use crate::{
    contract::{
        AppendedFile, BatchStream, CHANGE_TYPE, CommitKind, DELETE, INSERT, Result, TableCommit,
        TableVersion, changed_rows, with_change_columns,
    },
    error::{Error, ErrorKind},
    metadata::{DataFile, FileCommit, TableHead},
};

/// Columns that tell apart the rows of one key, in a table with history.
const STARTS: [&str; 2] = ["__START_AT", "__SYSTEM_START_AT"];

/// A commit to readers who know no files.
pub(super) fn summary(commit: &FileCommit) -> TableCommit {
    let rows = |files: &[Arc<DataFile>]| files.iter().map(|file| file.rows).sum::<u64>();
    let kind = match (commit.added.is_empty(), commit.removed.is_empty()) {
        _ if !commit.changed.is_empty() => CommitKind::Change,
        (_, false) if commit.replaces_columns => CommitKind::Replace,
        (true, true) => CommitKind::Nothing,
        (false, true) => CommitKind::Append,
        (true, false) => CommitKind::Delete,
        (false, false) => CommitKind::Change,
    };
    let appended =
        |file: &Arc<DataFile>| AppendedFile { path: file.path.clone(), size: file.size, rows: file.rows };
    TableCommit {
        version: commit.version,
        timestamp: commit.timestamp,
        kind,
        appended: match kind {
            CommitKind::Append => commit.added.iter().map(appended).collect(),
            CommitKind::Nothing | CommitKind::Delete | CommitKind::Change | CommitKind::Replace => Vec::new(),
        },
        removes_files: commit.removes_files,
        rows: if commit.changed.is_empty() {
            rows(&commit.added) + rows(&commit.removed)
        } else {
            rows(&commit.changed)
        },
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
fn keys(head: &TableHead) -> Vec<String> {
    if head.keys.is_empty() {
        return Vec::new();
    }
    let starts = STARTS.into_iter().filter(|name| head.schema.field_with_name(name).is_ok());
    head.keys.iter().cloned().chain(starts.map(str::to_owned)).collect()
}

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
            let old = || self.files.rows(&commit.removed, &self.schema);
            let new = || self.files.rows(&commit.added, &self.schema);
            let found = diff::of(&old, &new, &self.schema).await?;
            let batches = diff::paired(found, &self.keys, &self.schema)?;
            let batches =
                batches.into_iter().map(move |(rows, what)| changed_rows(&rows, Some(what), "", at));
            stream::iter(batches.collect::<Vec<_>>()).boxed()
        })
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
