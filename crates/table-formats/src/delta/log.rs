//! The folder of a table's log: which versions can be read from it, what they need, and forgetting old ones.

use std::collections::BTreeSet;

use deltalake_core::{DeltaTable, checkpoints, kernel::Action, table::state::DeltaTableState};
use futures::TryStreamExt;
use object_store::path::Path;

use super::{error, features, file::Named, head::state_of, metadata::DeltaMetadata, protocol::Features};
use crate::{
    contract::{Result, TableVersion},
    error::{Error, ErrorKind},
    metadata::{DeletedPlace, DeletedRows, TableMetadata},
    time::wall_clock_millis,
};

/// The log's folder, within the table's.
const FOLDER: &str = "_delta_log";
/// Files of the log are as old as the store says, whose clock may be another one: so much, in milliseconds.
const CLOCKS_DIFFER: i64 = 24 * 60 * 60 * 1000;

/// What lies in the log's folder.
#[derive(Debug, Default)]
pub(super) struct LogFiles {
    /// Versions that have an entry.
    entries: BTreeSet<u64>,
    /// Versions that have a checkpoint.
    checkpoints: BTreeSet<u64>,
    /// Everything, by its path within the table's folder.
    paths: BTreeSet<String>,
}

impl LogFiles {
    fn add(&mut self, within: &str) {
        if let Some((number, kind)) = within.split_once('.')
            && let Ok(number) = number.parse::<u64>()
        {
            if kind == "json" {
                self.entries.insert(number);
            } else if kind.starts_with("checkpoint.") {
                self.checkpoints.insert(number);
            }
        }
        self.paths.insert(format!("{FOLDER}/{within}"));
    }

    /// The oldest version from which on all can be read: the beginning or a checkpoint that has no gap behind it.
    pub(super) fn oldest(&self, newest: u64) -> Option<u64> {
        let mut first = newest.saturating_add(1);
        while let Some(before) = first.checked_sub(1).filter(|before| self.entries.contains(before)) {
            first = before;
        }
        if first == 0 {
            return Some(0);
        }
        self.checkpoints.range(first - 1..).next().copied()
    }
}

impl DeltaMetadata {
    pub(super) async fn log_files(&self) -> Result<LogFiles> {
        let folder: Path = self.root.clone().join(FOLDER);
        let mut files = LogFiles::default();
        let mut listed = self.store.list(Some(&folder));
        while let Some(object) = listed.try_next().await? {
            let within = object.location.prefix_match(&folder).into_iter().flatten();
            files.add(&within.map(|part| part.as_ref().to_owned()).collect::<Vec<_>>().join("/"));
        }
        Ok(files)
    }

    /// True when a version can be read from the log.
    pub(super) async fn is_retained(&self, version: TableVersion, newest: TableVersion) -> Result<bool> {
        Ok(self.log_files().await?.oldest(newest.0).is_some_and(|oldest| oldest <= version.0))
    }

    /// Writes a checkpoint of a version.
    pub(super) async fn checkpoint(&self, state: &DeltaTableState) -> Result<()> {
        let mut table = DeltaTable::new(std::sync::Arc::clone(&self.log));
        table.state = Some(state.clone());
        let written = Box::pin(checkpoints::create_checkpoint(&table, None)).await;
        written.map_err(|e| error::of(e, "no checkpoint was written"))
    }

    /// The newest version at a moment; `None` when the log does not reach back so far.
    async fn newest_at(&self, millis: i64, newest: u64) -> Result<Option<u64>> {
        match self.first_since(millis).await? {
            None => Ok(Some(newest)),
            Some(version) => Ok(version.0.checked_sub(1)),
        }
    }

    /// Removes the entries of versions that were replaced before a moment, behind a checkpoint.
    pub(super) async fn forget(&self, before: i64) -> Result<u64> {
        let head = self.head(None).await?;
        if Features::of(state_of(&head)?.protocol()).writer.contains(features::PROTECTED) {
            return Err(features::unsupported(&format!("the feature {}", features::PROTECTED)));
        }
        let files = self.log_files().await?;
        let (Some(oldest), Some(first)) =
            (files.oldest(head.version.0), self.newest_at(before, head.version.0).await?)
        else {
            return Ok(0);
        };
        if first <= oldest {
            return Ok(0);
        }
        if !files.checkpoints.contains(&first) {
            let kept = self.head(Some(TableVersion(first))).await?;
            self.checkpoint(state_of(&kept)?).await?;
        }
        let cutoff = wall_clock_millis().saturating_add(CLOCKS_DIFFER);
        let removed = checkpoints::cleanup_expired_logs_for(first, self.log.as_ref(), cutoff, None).await;
        removed.map_err(|e| error::of(e, "the log can't be shortened"))?;
        Ok(first - oldest)
    }

    /// The files of every version that was the newest at a moment or later.
    pub(super) async fn needed_since(&self, millis: i64) -> Result<BTreeSet<String>> {
        let newest = self.head(None).await?.version;
        let mut files = self.log_files().await?;
        let oldest = files.oldest(newest.0).ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, "the table's log has neither its beginning nor a checkpoint")
        })?;
        let first = self.newest_at(millis, newest.0).await?.unwrap_or(0).max(oldest);
        let head = self.head(Some(TableVersion(first))).await?;
        let mut names = std::mem::take(&mut files.paths);
        for file in head.files.iter() {
            names.insert(file.path.clone());
            names.extend(file.deleted.iter().flat_map(|deleted| vectors(deleted)));
        }
        for version in first..=newest.0 {
            // The first version's own entry says more than its files, where it is still there.
            if version > first || files.entries.contains(&version) {
                for action in self.entry(version).await? {
                    named(action, &mut names)?;
                }
            }
        }
        Ok(names)
    }
}

/// Adds what an action names.
fn named(action: Action, names: &mut BTreeSet<String>) -> Result<()> {
    match action {
        Action::Add(add) => {
            names.insert(add.path.clone());
            names.extend(Named::from(add).deleted()?.iter().flat_map(|deleted| vectors(deleted)));
        }
        Action::Cdc(cdc) => {
            names.insert(cdc.path);
        }
        Action::Remove(_)
        | Action::Metadata(_)
        | Action::Protocol(_)
        | Action::Txn(_)
        | Action::CommitInfo(_)
        | Action::DomainMetadata(_) => {}
    }
    Ok(())
}

/// The files in which it stands which rows of a file don't count.
fn vectors(deleted: &DeletedRows) -> impl Iterator<Item = String> {
    deleted.places.iter().filter_map(|place| match place {
        DeletedPlace::File { path, .. } => Some(path.clone()),
        DeletedPlace::Inline(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(names: &[&str]) -> LogFiles {
        let mut files = LogFiles::default();
        for name in names {
            files.add(name);
        }
        files
    }

    #[test]
    fn versions_are_read_from_the_beginning_or_a_checkpoint_without_a_gap_behind_it() {
        let entry = |n: u64| format!("{n:020}.json");
        let checkpoint = |n: u64| format!("{n:020}.checkpoint.parquet");
        let of = |names: Vec<String>, newest| {
            log(&names.iter().map(String::as_str).collect::<Vec<_>>()).oldest(newest)
        };
        assert_eq!(of((0..4).map(entry).collect(), 3), Some(0));
        assert_eq!(of((1..4).map(entry).collect(), 3), None);
        assert_eq!(of((3..6).map(entry).chain([checkpoint(2)]).collect(), 5), Some(2));
        assert_eq!(of((3..6).map(entry).chain([checkpoint(1), checkpoint(4)]).collect(), 5), Some(4));
        // A checkpoint of the newest version stands alone.
        assert_eq!(of(vec![checkpoint(7), entry(0), "_last_checkpoint".into()], 7), Some(7));
    }
}
