//! Tables in memory: level 2 with nothing but a list of versions, so that the shared middle is tested on it too.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use object_store::{ObjectStore, memory::InMemory, path::Path};
use roaring::RoaringBitmap;

use crate::{
    contract::{CommitStamp, Result, StateVersion, Table, TableDefinition, TableFormat, TableVersion},
    error::{Error, ErrorKind},
    lake::{LakeOptions, LakeTable},
    metadata::{
        DataFile, DeletedPlace, DeletedRows, FileChanges, FileCommit, Mask, MetadataOutcome, Operation,
        TableHead, TableMetadata,
    },
    schema::{check_keys, holds_columns},
    time::wall_clock_millis,
};

/// Tables whose metadata live in this value, and whose files live in a store (by default in memory too).
#[derive(Debug)]
pub struct MemoryFormat {
    store: Arc<dyn ObjectStore>,
    options: LakeOptions,
    tables: Mutex<BTreeMap<String, Arc<LakeTable<MemoryMetadata>>>>,
}

impl Default for MemoryFormat {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryFormat {
    /// No tables yet.
    pub fn new() -> Self {
        Self::with_store(Arc::new(InMemory::new()), LakeOptions::default())
    }

    /// No tables yet, and files in this store.
    pub fn with_store(store: Arc<dyn ObjectStore>, options: LakeOptions) -> Self {
        Self { store, options, tables: Mutex::default() }
    }
}

#[async_trait]
impl TableFormat for MemoryFormat {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn check_schema(&self, _: &SchemaRef) -> Result<()> {
        Ok(())
    }

    async fn create(&self, name: &str, definition: &TableDefinition) -> Result<Arc<dyn Table>> {
        check_keys(&definition.schema, &definition.keys)?;
        let mut tables = lock(&self.tables);
        if tables.contains_key(name) {
            return Err(Error::new(ErrorKind::Conflict, format!("table `{name}` exists")));
        }
        let metadata = MemoryMetadata {
            store: Arc::clone(&self.store),
            root: Path::from(name),
            versions: Mutex::new(vec![Version::now(first_version(definition), false)]),
        };
        let table = Arc::new(LakeTable::new(Arc::new(metadata), self.options));
        tables.insert(name.to_owned(), Arc::clone(&table));
        Ok(table)
    }

    async fn open(&self, name: &str) -> Result<Option<Arc<dyn Table>>> {
        Ok(lock(&self.tables).get(name).map(|table| Arc::clone(table) as Arc<dyn Table>))
    }

    async fn list(&self) -> Result<Vec<String>> {
        Ok(lock(&self.tables).keys().cloned().collect())
    }
}

/// Every version of a table that is kept.
#[derive(Debug)]
pub struct MemoryMetadata {
    store: Arc<dyn ObjectStore>,
    root: Path,
    versions: Mutex<Vec<Version>>,
}

#[derive(Debug)]
struct Version {
    head: TableHead,
    /// When it was committed, in milliseconds since 1970, UTC.
    at: i64,
    /// Whether its commit only moved rows.
    moved: bool,
}

impl Version {
    fn now(head: TableHead, moved: bool) -> Self {
        Self { head, at: wall_clock_millis(), moved }
    }
}

#[async_trait]
impl TableMetadata for MemoryMetadata {
    fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    fn root(&self) -> &Path {
        &self.root
    }

    fn check_schema(&self, _: &SchemaRef) -> Result<()> {
        Ok(())
    }

    fn check_definition(&self, definition: &TableDefinition) -> Result<()> {
        check_keys(&definition.schema, &definition.keys)
    }

    async fn head(&self, at: Option<TableVersion>) -> Result<TableHead> {
        let versions = lock(&self.versions);
        let version = match at {
            None => versions.last(),
            Some(at) => versions.iter().find(|version| version.head.version == at),
        };
        version.map(|version| version.head.clone()).ok_or_else(not_kept)
    }

    async fn commit(
        &self,
        base: &TableHead,
        change: FileChanges,
        stamp: Option<&CommitStamp>,
    ) -> Result<MetadataOutcome> {
        let mut versions = lock(&self.versions);
        let latest = versions.last().map_or(base.version, |version| version.head.version);
        if latest != base.version {
            return Ok(MetadataOutcome::Conflict { latest });
        }
        let moved = change.operation == Operation::Compact;
        let next = base.after(change, stamp);
        versions.push(Version::now(next.clone(), moved));
        Ok(MetadataOutcome::Committed(next))
    }

    fn check_masks(&self, _: &TableHead) -> Result<()> {
        Ok(())
    }

    async fn mask(&self, _: &TableHead, masks: Vec<Mask>) -> Result<Vec<DataFile>> {
        masks.iter().map(masked).collect()
    }

    async fn deleted_rows(&self, file: &DataFile) -> Result<RoaringBitmap> {
        let mut all = RoaringBitmap::new();
        for place in file.deleted.iter().flat_map(|deleted| &deleted.places) {
            let DeletedPlace::Inline(bytes) = place else { continue };
            let failed = |e| Error::new(ErrorKind::Corrupt, "deleted rows can't be read").because(e);
            all |= RoaringBitmap::deserialize_from(bytes.as_slice()).map_err(failed)?;
        }
        Ok(all)
    }

    async fn commits(&self, after: Option<TableVersion>, until: TableVersion) -> Result<Vec<FileCommit>> {
        let versions = lock(&self.versions);
        let first = after.map_or(0, |after| after.0 + 1);
        let mut commits = Vec::new();
        let mut before: Option<&Version> = None;
        for version in versions.iter().take_while(|version| version.head.version <= until) {
            if version.head.version.0 >= first {
                if before.is_none() && version.head.version.0 > 0 {
                    return Err(not_kept());
                }
                commits.push(commit_of(before.map(|before| &before.head), version));
            }
            before = Some(version);
        }
        Ok(commits)
    }

    async fn first_since(&self, millis: i64) -> Result<Option<TableVersion>> {
        let versions = lock(&self.versions);
        Ok(versions.iter().find(|version| version.at >= millis).map(|version| version.head.version))
    }

    async fn expire(&self, before: i64) -> Result<u64> {
        let mut versions = lock(&self.versions);
        let replaced = versions.iter().skip(1).take_while(|next| next.at < before).count();
        versions.drain(..replaced);
        Ok(replaced as u64)
    }

    async fn named_files(&self, since: i64) -> Result<BTreeSet<String>> {
        let versions = lock(&self.versions);
        let replaced = versions.iter().skip(1).take_while(|next| next.at < since).count();
        let kept = versions.iter().skip(replaced).flat_map(|version| version.head.files.iter());
        Ok(kept.map(|file| file.path.clone()).collect())
    }
}

fn not_kept() -> Error {
    Error::new(ErrorKind::NotFound, "there is no such version")
}

impl TableHead {
    /// The version after this one, as far as every format has it.
    pub(crate) fn after(&self, change: FileChanges, stamp: Option<&CommitStamp>) -> Self {
        let mut files: Vec<Arc<DataFile>> = self
            .files
            .iter()
            .filter(|file| !change.remove.iter().any(|gone| gone.path == file.path))
            .cloned()
            .collect();
        files.extend(change.add.into_iter().map(Arc::new));
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let mut batches = self.batches.clone();
        batches.extend(stamp.map(|stamp| (stamp.writer.clone(), stamp.batch)));
        let before = TableDefinition {
            schema: change.schema.unwrap_or_else(|| Arc::clone(&self.schema)),
            keys: self.keys.clone(),
            properties: self.properties.clone(),
            comment: None,
        };
        let TableDefinition { schema, keys, properties, .. } = change.definition.map_or(before, |new| *new);
        Self {
            version: TableVersion(self.version.0 + 1),
            schema,
            keys,
            properties,
            batches,
            state: stamp.map_or(self.state, |stamp| stamp.state),
            epoch: self.epoch.max(stamp.map_or(0, |stamp| stamp.epoch)),
            files: Arc::new(files),
            identity: Arc::clone(&self.identity),
            adapter: Arc::clone(&self.adapter),
        }
    }
}

fn masked(mask: &Mask) -> Result<DataFile> {
    let mut bytes = Vec::new();
    let failed = |e| Error::new(ErrorKind::Internal, "deleted rows can't be written").because(e);
    mask.deleted.serialize_into(&mut bytes).map_err(failed)?;
    let places = vec![DeletedPlace::Inline(bytes)];
    let deleted = DeletedRows { count: Some(mask.deleted.len()), places };
    Ok(DataFile { deleted: Some(Arc::new(deleted)), ..mask.file.as_ref().clone() })
}

/// What made one version of another.
fn commit_of(before: Option<&TableHead>, version: &Version) -> FileCommit {
    let after = &version.head;
    let files = |of: Option<&TableHead>, but: Option<&TableHead>| -> Vec<Arc<DataFile>> {
        let known: BTreeMap<&str, _> =
            but.iter().flat_map(|h| h.files.iter()).map(|f| (f.path.as_str(), f)).collect();
        let all = of.iter().flat_map(|head| head.files.iter());
        all.filter(|file| known.get(file.path.as_str()).is_none_or(|known| !known.is_same(file)))
            .cloned()
            .collect()
    };
    let (added, removed) = (files(Some(after), before), files(before, Some(after)));
    let removes_files = !removed.is_empty();
    let of_rows = |files: Vec<_>| if version.moved { Vec::new() } else { files };
    FileCommit {
        version: after.version,
        timestamp: version.at,
        added: of_rows(added),
        removed: of_rows(removed),
        changed: Vec::new(),
        removes_files,
        replaces_columns: before.is_some_and(|before| !holds_columns(&after.schema, &before.schema)),
    }
}

fn first_version(definition: &TableDefinition) -> TableHead {
    TableHead {
        version: TableVersion(0),
        schema: Arc::clone(&definition.schema),
        keys: definition.keys.clone(),
        properties: definition.properties.clone(),
        batches: BTreeMap::new(),
        state: StateVersion(0),
        epoch: 0,
        files: Arc::default(),
        identity: uuid::Uuid::new_v4().to_string().into(),
        adapter: Arc::new(()),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
