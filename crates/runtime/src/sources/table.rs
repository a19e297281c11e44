//! A table as a source: the rows that commits append, each once; or, as a change feed, the rows that they change.
//!
//! A slice is a list of files of one version, or a range of versions. Without the feed, commits that update or delete rows
//! are an error or passed over: what became of rows that were read before can't be told from files alone.

mod options;
mod progress;

use std::sync::Arc;

use arrow_array::{
    BooleanArray, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray, cast::AsArray,
};
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;
use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;
use strandline_table_formats::{
    contract::{
        CHANGE_TYPE, CommitKind, INSERT, Table, TableCommit, TableSnapshot, TableVersion, UPDATE_PREIMAGE,
        with_change_columns,
    },
    error::{Error as TableError, ErrorKind as TableErrorKind},
};

pub use options::{Start, StreamOptions};
use progress::{Progress, Slice, decode};

use super::{Source, SourceStream};
use crate::error::{Error, ErrorKind, Result};

/// Rows in a batch, unless one file or one commit has more.
const MAX_ROWS: u64 = 1_000_000;
const MAX_FILES: usize = 1000;

/// What helps where a table's history is not there any more.
const ANEW: &str = "refresh the flow's target as a whole (--full-refresh), or give the flow a new name";

/// A table, read as a stream.
#[derive(Debug, Clone)]
pub struct TableSource {
    name: String,
    table: Arc<dyn Table>,
    options: StreamOptions,
    /// The version when the source was opened: what comes later is the next update's.
    head: Arc<dyn TableSnapshot>,
    schema: SchemaRef,
    /// The last version to take.
    until: TableVersion,
    begin: Progress,
    /// Whether where it begins must be recorded before anything is taken: later it would be somewhere else.
    pinned: bool,
}

impl TableSource {
    /// The rows of the table as it is now, then those that are appended.
    ///
    /// # Errors
    /// The table's.
    pub async fn open(name: &str, table: Arc<dyn Table>) -> Result<Self> {
        Self::open_with(name, table, StreamOptions::default()).await
    }

    /// The table as its options say.
    ///
    /// # Errors
    /// The table's; `Definition` for a beginning that does not exist; `Unsupported` for the change feed of a table that has
    /// none.
    pub async fn open_with(name: &str, table: Arc<dyn Table>, options: StreamOptions) -> Result<Self> {
        let head = table.snapshot().await?;
        let until = head.version();
        let named = |error: TableError| Error::from(error).with("table", name);
        if options.change_feed {
            head.check_changes().map_err(named)?;
        }
        let next = match options.start {
            Start::Rows => None,
            Start::Latest => Some(until.0 + 1),
            Start::Version(version) if version > until.0 + 1 => {
                return Err(Error::new(
                    ErrorKind::Definition,
                    "startingVersion is after the table's newest version",
                )
                .with("table", name)
                .with("startingVersion", version)
                .with("newest", until));
            }
            Start::Version(version) => Some(version),
            Start::Timestamp(millis) => {
                let first = table.first_since(millis).await.map_err(named)?;
                Some(first.map_or(until.0 + 1, |first| first.0))
            }
        };
        let schema = if options.change_feed {
            with_change_columns(&head.schema()).map_err(named)?
        } else {
            head.schema()
        };
        let id = Some(head.identity().to_owned());
        let begin = Progress { table: name.to_owned(), id, next, ..Progress::default() };
        let pinned = matches!(options.start, Start::Latest | Start::Timestamp(_));
        Ok(Self { name: name.to_owned(), table, options, head, schema, until, begin, pinned })
    }

    /// Refuses what was recorded of another table.
    fn check_table(&self, recorded: &str, id: Option<&str>) -> Result<()> {
        if recorded != self.name {
            return Err(Error::new(ErrorKind::State, "the flow read another table before")
                .with("before", recorded)
                .with("now", &self.name)
                .help("give the flow a new name"));
        }
        if id.is_some_and(|id| id != self.head.identity()) {
            return Err(self.made_anew());
        }
        Ok(())
    }

    fn made_anew(&self) -> Error {
        Error::new(ErrorKind::State, "the table was dropped and made anew since the flow read it")
            .with("table", &self.name)
            .help(ANEW)
    }

    /// The next files of a version.
    fn of_files(&self, version: u64, mut files: Vec<(String, u64)>) -> Option<Slice> {
        let mut rows: u64 = 0;
        let fits = files.iter().take_while(|(_, n)| {
            let first = rows == 0;
            rows = rows.saturating_add(*n);
            first || rows <= MAX_ROWS
        });
        let taken = fits.count().min(MAX_FILES);
        let rest = files.split_off(taken);
        (!files.is_empty()).then(|| Slice {
            files: files.into_iter().map(|(path, _)| path).collect(),
            rest,
            ..self.slice(version)
        })
    }

    /// A slice of nothing up to a version.
    fn slice(&self, version: u64) -> Slice {
        Slice {
            table: self.name.clone(),
            id: Some(self.head.identity().to_owned()),
            version,
            files: Vec::new(),
            rest: Vec::new(),
            from: None,
        }
    }

    async fn commits(&self, first: u64) -> Result<Vec<TableCommit>> {
        let after = first.checked_sub(1).map(TableVersion);
        self.table.commits(after, self.until).await.map_err(|error| self.lost(error, first))
    }

    /// An error of the table, with what to do where its history is not there any more.
    fn lost(&self, error: TableError, version: u64) -> Error {
        if error.kind() != TableErrorKind::NotFound {
            return Error::from(error).with("table", &self.name);
        }
        Error::new(
            ErrorKind::State,
            "versions of the table that the flow has not read yet are no longer kept",
        )
        .with("table", &self.name)
        .with("first version", version)
        .help(ANEW)
        .because(error.to_string())
    }

    /// Files that the next commits appended, all of them files of one version.
    async fn appended(&self, first: u64) -> Result<Option<Slice>> {
        let mut files: Vec<(String, u64)> = Vec::new();
        let mut version = None;
        for commit in self.commits(first).await? {
            let passed_over = match commit.kind {
                CommitKind::Nothing | CommitKind::Append => true,
                CommitKind::Delete => self.options.ignore_deletes || self.options.skip_change_commits,
                CommitKind::Change | CommitKind::Replace => self.options.skip_change_commits,
            };
            if !files.is_empty() && (commit.removes_files || commit.replaces_columns || !passed_over) {
                // The files so far may not be of this version any more, or not have its columns.
                break;
            }
            if !passed_over {
                return Err(self.changed(&commit));
            }
            version = Some(commit.version.0);
            files.extend(commit.appended.into_iter().map(|file| (file.path, file.rows)));
        }
        // Where nothing came the versions are done with all the same: the log keeps them for a while only.
        Ok(version.map(|version| self.of_files(version, files).unwrap_or_else(|| self.slice(version))))
    }

    fn changed(&self, commit: &TableCommit) -> Error {
        let what = match commit.kind {
            CommitKind::Delete => "deletes rows",
            CommitKind::Replace => "replaces the table",
            CommitKind::Nothing | CommitKind::Append | CommitKind::Change => "updates or deletes rows",
        };
        let message = format!("a commit {what}, and the table is read as a stream of appended rows");
        Error::new(ErrorKind::Unsupported, message)
            .with("table", &self.name)
            .with("version", commit.version)
            .help(format!(
                "read its changes, STREAM(t) WITH (readChangeFeed = true); or pass such commits over, WITH (skipChangeCommits = true); or {ANEW}"
            ))
    }

    /// What the next commits changed: whole commits, as many as make a batch.
    async fn changes(&self, first: u64) -> Result<Option<Slice>> {
        let mut rows: u64 = 0;
        let (mut last, mut changed) = (None, false);
        for commit in self.commits(first).await? {
            if commit.replaces_columns && last.is_some() {
                break;
            }
            if commit.kind == CommitKind::Replace {
                return Err(Error::new(
                    ErrorKind::State,
                    "the table was replaced by one with other columns, so that its changes don't go on",
                )
                .with("table", &self.name)
                .with("version", commit.version)
                .help(ANEW));
            }
            rows = rows.saturating_add(commit.rows);
            if changed && rows > MAX_ROWS {
                break;
            }
            changed |= commit.kind != CommitKind::Nothing;
            last = Some(commit.version.0);
        }
        Ok(last.map(|last| Slice { from: changed.then_some(first), ..self.slice(last) }))
    }

    /// Rows of files, as rows that came.
    async fn as_inserts(&self, rows: SourceStream, version: u64) -> Result<SourceStream> {
        let version = TableVersion(version);
        let before = version.0.checked_sub(1).map(TableVersion);
        let commits =
            self.table.commits(before, version).await.map_err(|error| self.lost(error, version.0))?;
        let micros = commits.last().map_or(0, |commit| commit.timestamp.saturating_mul(1000));
        let version = i64::try_from(version.0).unwrap_or(i64::MAX);
        let with_columns = move |batch: RecordBatch| -> Result<RecordBatch> {
            let n = batch.num_rows();
            let mut columns = batch.columns().to_vec();
            columns.push(Arc::new(StringArray::from(vec![INSERT; n])));
            columns.push(Arc::new(Int64Array::from(vec![version; n])));
            columns.push(Arc::new(TimestampMicrosecondArray::from(vec![micros; n]).with_timezone("UTC")));
            Ok(RecordBatch::try_new(with_change_columns(batch.schema_ref())?, columns)?)
        };
        Ok(rows.map(move |batch| with_columns(batch?)).boxed())
    }

    async fn snapshot_at(&self, version: u64) -> Result<Arc<dyn TableSnapshot>> {
        if self.head.version().0 == version {
            return Ok(Arc::clone(&self.head));
        }
        self.table.at(TableVersion(version)).await.map_err(|error| self.lost(error, version))
    }
}

#[async_trait]
impl Source for TableSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn start(&self) -> Value {
        serde_json::to_value(&self.begin).unwrap_or_default()
    }

    async fn next(&self, progress: &Value) -> Result<Option<Value>> {
        let progress: Progress = decode(progress)?;
        self.check_table(&progress.table, progress.id.as_deref())?;
        let slice = match progress.first() {
            _ if !progress.rest.is_empty() => {
                self.of_files(progress.version.unwrap_or_default(), progress.rest)
            }
            None => {
                let files = self.head.appended_since(None).await?;
                let files = files.into_iter().map(|file| (file.path, file.rows)).collect();
                self.of_files(self.until.0, files)
            }
            Some(first) if progress.version.is_none() && self.pinned && first > 0 => {
                Some(self.slice(first - 1))
            }
            Some(first) if first == self.until.0 + 1 => None,
            Some(first) if first > self.until.0 => return Err(self.made_anew()),
            Some(first) if self.options.change_feed => self.changes(first).await?,
            Some(first) => self.appended(first).await?,
        };
        Ok(slice.map(serde_json::to_value).transpose()?)
    }

    fn advance(&self, _: Value, slice: &Value) -> Result<Value> {
        Ok(serde_json::to_value(Progress::from(decode::<Slice>(slice)?))?)
    }

    async fn read(&self, slice: &Value) -> Result<SourceStream> {
        let slice: Slice = decode(slice)?;
        self.check_table(&slice.table, slice.id.as_deref())?;
        let source = self.clone();
        if let Some(from) = slice.from {
            let changes = self.table.changes(TableVersion(from), TableVersion(slice.version)).await;
            let changes = changes.map_err(|error| self.lost(error, from))?;
            let without = self.options.without_preimages;
            let rows = changes.map(move |batch| {
                let batch = batch.map_err(|error| source.lost(error, from))?;
                if without { no_preimages(&batch) } else { Ok(batch) }
            });
            return Ok(rows.boxed());
        }
        if slice.files.is_empty() {
            return Ok(stream::empty().boxed());
        }
        let version = slice.version;
        let snapshot = self.snapshot_at(version).await?;
        let rows = stream::iter(slice.files).then(move |file| {
            let (snapshot, source) = (Arc::clone(&snapshot), source.clone());
            async move {
                let rows = snapshot.read_file(&file).await.map_err(|error| source.lost(error, version))?;
                Ok::<_, Error>(rows.map_err(move |error| source.lost(error, version)))
            }
        });
        let rows = rows.try_flatten().boxed();
        if self.options.change_feed { self.as_inserts(rows, version).await } else { Ok(rows) }
    }

    async fn available(&self) -> Result<Value> {
        let mut all = Progress { until: Some(self.until.0), ..self.begin.clone() };
        if all.next.is_none() {
            let files = self.head.appended_since(None).await?;
            all.rest = files.into_iter().map(|file| (file.path, file.rows)).collect();
            all.version = Some(self.until.0);
        }
        Ok(serde_json::to_value(all)?)
    }

    fn fixed(&self, available: &Value) -> Result<Box<dyn Source>> {
        let begin: Progress = decode(available)?;
        let until = begin.until.or(begin.version).map_or(self.until, TableVersion);
        Ok(Box::new(Self { until, begin, pinned: false, ..self.clone() }))
    }
}

/// Rows without what they were before an update.
fn no_preimages(batch: &RecordBatch) -> Result<RecordBatch> {
    let what = batch.column_by_name(CHANGE_TYPE).and_then(|column| column.as_string_opt::<i32>());
    let what =
        what.ok_or_else(|| Error::new(ErrorKind::Internal, "changed rows don't say what became of them"))?;
    let keep: BooleanArray = what.iter().map(|word| Some(word != Some(UPDATE_PREIMAGE))).collect();
    Ok(filter_record_batch(batch, &keep)?)
}
