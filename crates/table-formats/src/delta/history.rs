//! What did each commit do? Read from the log, entry by entry.

use std::{collections::BTreeMap, sync::Arc};

use arrow_schema::SchemaRef;
use deltalake_core::{
    kernel::{Action, Remove},
    logstore::get_actions,
};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::ObjectStoreExt;

use super::{error, file::Named, head::state_of, metadata::DeltaMetadata, schema};
use crate::{
    contract::{Result, TableVersion},
    error::{Error, ErrorKind},
    metadata::{DataFile, FileCommit, TableHead, TableMetadata},
    parquet::file_path,
    schema::holds_columns,
};

/// Log entries that are asked for at once.
const READ_AHEAD: usize = 16;

/// A table when a range of its history ends, and what is known of it before the commit at hand.
struct Reach {
    until: TableHead,
    /// Its columns.
    before: Option<SchemaRef>,
    /// Its files by path, of the version before this one.
    held: Option<(u64, BTreeMap<String, Named>)>,
}

fn partition_columns(head: &TableHead) -> Result<&[String]> {
    Ok(state_of(head)?.metadata().partition_columns())
}

impl DeltaMetadata {
    /// The commits after a version, in the columns of `until`.
    pub(super) async fn history(
        &self,
        after: Option<TableVersion>,
        until: TableVersion,
    ) -> Result<Vec<FileCommit>> {
        let first = after.map_or(0, |after| after.0 + 1);
        if first > until.0 {
            return Ok(Vec::new());
        }
        let mut reach = Reach { until: self.head(Some(until)).await?, before: None, held: None };
        let mut commits = Vec::new();
        for version in first..=until.0 {
            commits.push(self.commit_of(version, &mut reach).await?);
        }
        Ok(commits)
    }

    pub(super) async fn entry(&self, version: u64) -> Result<Vec<Action>> {
        let entry = self.log.read_commit_entry(version).await;
        let entry = entry.map_err(|e| error::of(e, "a log entry can't be read"))?.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("the log of version {version} is not retained"))
        })?;
        get_actions(version, &entry).map_err(|e| error::of(e, "a log entry can't be read"))
    }

    async fn commit_of(&self, version: u64, reach: &mut Reach) -> Result<FileCommit> {
        let columns = &Arc::clone(&reach.until.schema);
        let mut commit = FileCommit {
            version: TableVersion(version),
            timestamp: 0,
            added: Vec::new(),
            removed: Vec::new(),
            changed: Vec::new(),
            removes_files: false,
            replaces_columns: false,
        };
        let mut timestamp = None;
        for action in self.entry(version).await? {
            match action {
                Action::Add(add) if add.data_change => commit.added.push(self.file(add, columns).await?),
                Action::Remove(remove) => {
                    commit.removes_files = true;
                    if remove.data_change {
                        commit.removed.push(self.removed(remove, version, reach).await?);
                    }
                }
                Action::Cdc(cdc) => commit.changed.push(self.file(cdc, columns).await?),
                Action::Metadata(metadata) => {
                    let now = metadata.parse_schema();
                    let now = now.map_err(|e| error::of(e.into(), "a log entry's columns can't be read"))?;
                    let now = schema::from_delta(&now)?;
                    let then = match reach.before.take() {
                        Some(then) => Some(then),
                        None => self.columns_before(version).await?,
                    };
                    commit.replaces_columns = then.is_some_and(|then| !holds_columns(&now, &then));
                    reach.before = Some(now);
                }
                Action::CommitInfo(info) => timestamp = info.in_commit_timestamp.or(info.timestamp),
                Action::Add(_) | Action::Protocol(_) | Action::Txn(_) | Action::DomainMetadata(_) => {}
            }
        }
        commit.timestamp = match timestamp {
            Some(timestamp) => timestamp,
            None => self.written_at(version).await?,
        };
        Ok(commit)
    }

    async fn columns_before(&self, version: u64) -> Result<Option<SchemaRef>> {
        let Some(before) = version.checked_sub(1) else { return Ok(None) };
        match self.head(Some(TableVersion(before))).await {
            Ok(head) => Ok(Some(head.schema)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// A file that went. Writers may leave out which values of the partition columns its rows have: then the version before says.
    async fn removed(&self, remove: Remove, version: u64, reach: &mut Reach) -> Result<Arc<DataFile>> {
        let is_told = remove.partition_values.is_some() || partition_columns(&reach.until)?.is_empty();
        if is_told {
            return self.file(remove, &reach.until.schema).await;
        }
        let untold = || {
            let message = "the log does not say which values of the partition columns a removed file has";
            Error::new(ErrorKind::Unsupported, message).with("version", version).with("file", &remove.path)
        };
        let mut held = reach.held.take().filter(|(of, _)| *of == version);
        if held.is_none() {
            let before = version.checked_sub(1).ok_or_else(untold)?;
            let head = self.head(Some(TableVersion(before))).await.map_err(|error| {
                if error.kind() == ErrorKind::NotFound { untold().because(error) } else { error }
            })?;
            let files = state_of(&head)?.log_data().into_iter();
            held =
                Some((version, files.map(|file| (file.path().into_owned(), Named::from(&file))).collect()));
        }
        let (_, files) = reach.held.insert(held.ok_or_else(untold)?);
        let known = files.remove(&remove.path).ok_or_else(untold)?;
        self.file(known, &reach.until.schema).await
    }

    /// A file as the log names it; where it does not say its size, the store does.
    async fn file(&self, named: impl Into<Named>, columns: &SchemaRef) -> Result<Arc<DataFile>> {
        let mut file = named.into().any(columns)?;
        if file.size == 0 {
            let path = file_path(&self.root, &file.path)?;
            file.size = match self.store.head(&path).await {
                Ok(found) => found.size,
                // Nobody may ever want to read it.
                Err(object_store::Error::NotFound { .. }) => 0,
                Err(e) => return Err(Error::from(e).with("file", path)),
            };
        }
        Ok(Arc::new(file))
    }

    async fn written_at(&self, version: u64) -> Result<i64> {
        let path = self.root.clone().join("_delta_log").join(format!("{version:020}.json"));
        Ok(self.store.head(&path).await?.last_modified.timestamp_millis())
    }

    async fn committed_at(&self, version: u64) -> Result<i64> {
        for action in self.entry(version).await? {
            if let Action::CommitInfo(info) = action
                && let Some(timestamp) = info.in_commit_timestamp.or(info.timestamp)
            {
                return Ok(timestamp);
            }
        }
        self.written_at(version).await
    }

    /// The first version at or after a moment, among those whose log entries are retained. Times may fall from one version to the
    /// next: writers without a common clock write what theirs says. So it is the first that is met, from the oldest on.
    pub(super) async fn first_since(&self, millis: i64) -> Result<Option<TableVersion>> {
        let listed = self.store.list_with_delimiter(Some(&self.root.clone().join("_delta_log"))).await?;
        let names = listed.objects.iter().filter_map(|object| object.location.filename());
        let numbers = names.filter_map(|name| name.strip_suffix(".json")?.parse::<u64>().ok());
        let mut versions: Vec<u64> = numbers.collect();
        versions.sort_unstable();
        let times =
            versions.into_iter().map(async |version| Ok((version, self.committed_at(version).await?)));
        let late = stream::iter(times).buffered(READ_AHEAD).try_skip_while(|(_, at)| {
            let is_before = *at < millis;
            async move { Ok::<_, Error>(is_before) }
        });
        let first = Box::pin(late).try_next().await?;
        Ok(first.map(|(version, _): (u64, i64)| TableVersion(version)))
    }
}
