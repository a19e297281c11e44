//! What did each commit do, and what may be forgotten? Read from the snapshots that the table still has.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use iceberg::{
    TableRequirement, TableUpdate,
    spec::{
        MAIN_BRANCH, Operation as SnapshotKind, SnapshotRef, SnapshotReference, TableMetadata as IcebergTable,
    },
};

use super::{
    catalog::{Loaded, Swap},
    chain, files, manifest,
    manifest::Known,
    metadata::{IcebergMetadata, state_of},
};
use crate::{
    contract::{Result, TableVersion},
    error::{Error, ErrorKind},
    metadata::{DataFile, FileCommit, TableHead, TableMetadata},
    schema::holds_columns,
};

/// So often forgetting is tried while others commit.
const TRIES: usize = 16;

impl IcebergMetadata {
    /// The commits after a version: each is what two snapshots differ by.
    pub(super) async fn history(
        &self,
        after: Option<TableVersion>,
        until: TableVersion,
    ) -> Result<Vec<FileCommit>> {
        if after.is_some_and(|after| after >= until) {
            return Ok(Vec::new());
        }
        let newest = self.head(None).await?;
        let loaded = &state_of(&newest)?.loaded;
        let until = chain::at(&loaded.metadata, until)?;
        // Oldest first, from the one that the first commit is held against.
        let mut snapshots: Vec<Option<SnapshotRef>> = Vec::new();
        let ids = until.as_ref().map(|until| until.snapshot_id());
        for snapshot in chain::of(&loaded.metadata, ids) {
            if after.is_some_and(|after| chain::version(Some(snapshot)) <= after) {
                break;
            }
            snapshots.push(Some(Arc::clone(snapshot)));
        }
        snapshots.push(match after {
            Some(after) => chain::at(&loaded.metadata, after)?,
            None => chain::at(&loaded.metadata, TableVersion(0))?,
        });
        snapshots.reverse();
        let mut commits = Vec::new();
        let mut before: Option<TableHead> = None;
        for snapshot in snapshots {
            let known = before.as_ref().unwrap_or(&newest);
            let head = self.read(loaded.clone(), snapshot.clone(), Some(known)).await?;
            if before.is_some() || after.is_none() {
                commits.push(commit_of(before.as_ref(), &head, &loaded.metadata, snapshot.as_ref()));
            }
            before = Some(head);
        }
        Ok(commits)
    }

    /// The first version at or after a moment, among those that are retained.
    pub(super) async fn first_version_since(&self, millis: i64) -> Result<Option<TableVersion>> {
        let newest = self.head(None).await?;
        let metadata = &state_of(&newest)?.loaded.metadata;
        let all: Vec<_> = chain::of(metadata, metadata.current_snapshot_id()).collect();
        let from_nothing = all.last().is_none_or(|oldest| oldest.parent_snapshot_id().is_none());
        if from_nothing && created(metadata) >= millis {
            return Ok(Some(TableVersion(0)));
        }
        let found = all.iter().rev().find(|snapshot| snapshot.timestamp_ms() >= millis);
        Ok(found.map(|snapshot| chain::version(Some(snapshot))))
    }

    /// Forgets snapshots that were replaced before a moment, and that no branch and no tag needs.
    pub(super) async fn forget(&self, before: i64) -> Result<u64> {
        for _ in 0..TRIES {
            let loaded = self.load().await?;
            let snapshot_ids = superseded(&loaded.metadata, before)?;
            let count = snapshot_ids.len() as u64;
            if count == 0 {
                return Ok(0);
            }
            let requirements = vec![
                TableRequirement::UuidMatch { uuid: loaded.metadata.uuid() },
                TableRequirement::RefSnapshotIdMatch {
                    r#ref: MAIN_BRANCH.to_owned(),
                    snapshot_id: loaded.metadata.current_snapshot_id(),
                },
            ];
            let updates = vec![TableUpdate::RemoveSnapshots { snapshot_ids }];
            match self.catalog().commit(self.name(), &loaded, requirements, updates).await? {
                Swap::Swapped(_) => return Ok(count),
                Swap::Lost => {}
            }
        }
        let message = "versions could not be forgotten, because others committed all the time; try again";
        Err(Error::new(ErrorKind::Unavailable, message).with("table", self.name()))
    }

    /// Every file that the table names, by its path within the table's folder.
    pub(super) async fn all_files(&self) -> Result<BTreeSet<String>> {
        let newest = self.head(None).await?;
        let state = state_of(&newest)?;
        let Loaded { metadata, metadata_location } = &state.loaded;
        let mut urls = BTreeSet::from([metadata_location.clone()]);
        urls.extend(metadata.metadata_log().iter().map(|entry| entry.metadata_file.clone()));
        urls.extend(metadata.statistics_iter().map(|file| file.statistics_path.clone()));
        urls.extend(metadata.partition_statistics_iter().map(|file| file.statistics_path.clone()));
        let own = state.manifests.iter();
        let known: Known = own.map(|m| (m.file.manifest_path.clone(), Arc::clone(m))).collect();
        let mut seen = BTreeSet::new();
        for snapshot in metadata.snapshots() {
            urls.insert(snapshot.manifest_list().to_owned());
            let listed = manifest::list(self.warehouse(), metadata.format_version(), snapshot).await?;
            for file in listed {
                if !seen.insert(file.manifest_path.clone()) {
                    continue;
                }
                let manifest = match known.get(&file.manifest_path) {
                    Some(manifest) => Arc::clone(manifest),
                    None => Arc::new(manifest::one(self.warehouse(), file).await?),
                };
                // Also what went: an older snapshot may need it.
                urls.extend(manifest.entries.iter().map(|entry| entry.file_path().to_owned()));
            }
        }
        urls.extend(seen);
        let within = |url: &String| files::relative(self.warehouse(), self.folder(), url).ok();
        let mut paths: BTreeSet<String> = urls.iter().filter_map(within).collect();
        paths.insert("metadata/version-hint.text".to_owned());
        Ok(paths)
    }
}

/// Branches and tags.
pub(super) fn references(metadata: &IcebergTable) -> Result<BTreeMap<String, SnapshotReference>> {
    let failed = |e| Error::new(ErrorKind::Internal, "the table's branches can't be told").because(e);
    let mut all = serde_json::to_value(metadata).map_err(failed)?;
    match all.get_mut("refs").map(serde_json::Value::take) {
        None | Some(serde_json::Value::Null) => Ok(BTreeMap::new()),
        Some(refs) => serde_json::from_value(refs).map_err(failed),
    }
}

/// Snapshots that were replaced before a moment. Those of branches and tags stay, with all that a branch came from.
fn superseded(metadata: &IcebergTable, before: i64) -> Result<Vec<i64>> {
    let mut needed = BTreeSet::new();
    for (name, reference) in references(metadata)? {
        let id = reference.snapshot_id;
        needed.insert(id);
        if name != MAIN_BRANCH && reference.is_branch() {
            needed.extend(chain::of(metadata, Some(id)).map(|snapshot| snapshot.snapshot_id()));
        }
    }
    let mut replaced_at = i64::MAX;
    for snapshot in chain::of(metadata, metadata.current_snapshot_id()) {
        if replaced_at >= before {
            needed.insert(snapshot.snapshot_id());
        }
        replaced_at = snapshot.timestamp_ms();
    }
    // What is on no branch was rolled back, or is being committed by somebody: its own time decides.
    let on_main: BTreeSet<i64> =
        chain::of(metadata, metadata.current_snapshot_id()).map(|s| s.snapshot_id()).collect();
    let old = |s: &&SnapshotRef| on_main.contains(&s.snapshot_id()) || s.timestamp_ms() < before;
    let all = metadata.snapshots().filter(old).map(|snapshot| snapshot.snapshot_id());
    let mut gone: Vec<i64> = all.filter(|id| !needed.contains(id)).collect();
    gone.sort_unstable();
    Ok(gone)
}

/// When the table was made, as far as it is known.
fn created(metadata: &IcebergTable) -> i64 {
    let logged = metadata.metadata_log().first().map(|entry| entry.timestamp_ms);
    let first = metadata.history().first().map(iceberg::spec::SnapshotLog::timestamp_ms);
    [logged, first].into_iter().flatten().min().unwrap_or_else(|| metadata.last_updated_ms())
}

/// What made one version of another.
fn commit_of(
    before: Option<&TableHead>,
    after: &TableHead,
    metadata: &IcebergTable,
    snapshot: Option<&SnapshotRef>,
) -> FileCommit {
    let by_path = |head: Option<&TableHead>| -> BTreeMap<String, Arc<DataFile>> {
        let files = head.into_iter().flat_map(|head| head.files.iter());
        files.map(|file| (file.path.clone(), Arc::clone(file))).collect()
    };
    let (old, new) = (by_path(before), by_path(Some(after)));
    let lacks = |others: &BTreeMap<String, Arc<DataFile>>, file: &DataFile| {
        others.get(&file.path).is_none_or(|other| !other.is_same(file))
    };
    let mut added: Vec<_> = new.values().filter(|file| lacks(&old, file)).cloned().collect();
    let mut removed: Vec<_> = old.values().filter(|file| lacks(&new, file)).cloned().collect();
    let removes_files = !removed.is_empty();
    if snapshot.is_some_and(|snapshot| snapshot.summary().operation == SnapshotKind::Replace) {
        // Its rows are the same, in other files.
        added.clear();
        removed.clear();
    }
    FileCommit {
        version: after.version,
        timestamp: snapshot.map_or_else(|| created(metadata), |snapshot| snapshot.timestamp_ms()),
        added,
        removed,
        changed: Vec::new(),
        removes_files,
        replaces_columns: before.is_some_and(|before| !holds_columns(&after.schema, &before.schema)),
    }
}
