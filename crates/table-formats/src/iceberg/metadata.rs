//! Level 2 on Iceberg's metadata.

use std::{collections::BTreeSet, sync::Arc};

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};
use iceberg::spec::{
    FormatVersion, PartitionSpec, Schema as IcebergSchema, SnapshotRef, Struct, TableMetadata as IcebergTable,
};
use object_store::{ObjectStore, path::Path};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use roaring::RoaringBitmap;
use tokio::sync::Mutex;

use super::{
    Catalog, Loaded, Warehouse, chain,
    commit::{self, Shape},
    files, manifest,
    manifest::{Known, Manifest},
    marks::Marks,
    names,
    partition::{Partitions, Split},
    position_deletes::Deletes,
    properties, schema,
};
use crate::{
    contract::{CommitStamp, Result, TableDefinition, TableVersion},
    error::{Error, ErrorKind},
    metadata::{
        DataFile, DeletedPlace, DeletedRows, FileChanges, FileCommit, Mask, MetadataOutcome, Operation,
        Partitioner, TableHead, TableMetadata,
    },
    parquet::{Readers, file_path},
};

/// So many files of deletes are written at a time.
const WRITES: usize = 8;

/// Metadata of one Iceberg table.
#[derive(Debug)]
pub struct IcebergMetadata {
    catalog: Arc<dyn Catalog>,
    name: String,
    warehouse: Warehouse,
    root: Path,
    /// Whether it is maintained by somebody else, and only read.
    foreign: bool,
    deletes: Deletes,
    partitions: Arc<Partitions>,
    /// The newest version seen: manifests that the next one names too are not read again.
    newest: Mutex<Option<TableHead>>,
}

/// A version, as the adapter knows it.
#[derive(Debug)]
pub(super) struct State {
    /// The table when it was read.
    pub(super) loaded: Loaded,
    /// The version's snapshot; `None` before the first.
    pub(super) snapshot: Option<SnapshotRef>,
    /// Its manifests.
    pub(super) manifests: Vec<Arc<Manifest>>,
}

impl State {
    /// The columns of the version: the newest has those that the table has now.
    fn schema(&self) -> Result<&Arc<IcebergSchema>> {
        let metadata = &self.loaded.metadata;
        let id = match &self.snapshot {
            Some(snapshot) if metadata.current_snapshot_id() != Some(snapshot.snapshot_id()) => {
                snapshot.schema_id()
            }
            None if metadata.current_snapshot_id().is_some() => {
                metadata.schemas_iter().map(|schema| schema.schema_id()).min()
            }
            Some(_) | None => None,
        };
        match id {
            None => Ok(metadata.current_schema()),
            Some(id) => metadata.schema_by_id(id).ok_or_else(|| {
                Error::new(ErrorKind::Corrupt, format!("the table has no schema {id}, which a version has"))
            }),
        }
    }
}

impl IcebergMetadata {
    pub(super) fn new(
        catalog: Arc<dyn Catalog>,
        name: &str,
        warehouse: Warehouse,
        loaded: &Loaded,
    ) -> Result<Self> {
        let root = warehouse.path(loaded.metadata.location())?;
        Ok(Self {
            catalog,
            name: name.to_owned(),
            deletes: Deletes::new(warehouse.clone(), root.clone()),
            warehouse,
            root,
            foreign: false,
            partitions: Arc::default(),
            newest: Mutex::new(None),
        })
    }

    /// Metadata of a table that somebody else maintains.
    pub(super) fn foreign(self) -> Self {
        Self { foreign: true, ..self }
    }

    pub(super) fn catalog(&self) -> &Arc<dyn Catalog> {
        &self.catalog
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn warehouse(&self) -> &Warehouse {
        &self.warehouse
    }

    /// The table's folder.
    pub(super) fn folder(&self) -> &Path {
        &self.root
    }

    /// The table as the catalog has it.
    pub(super) async fn load(&self) -> Result<Loaded> {
        let loaded = self.catalog.load(&self.name).await?.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "the catalog has no such table any more")
                .with("table", &self.name)
        })?;
        if self.warehouse.path(loaded.metadata.location())? != self.root {
            let message = "the table moved to another folder since it was opened; open it again";
            return Err(Error::new(ErrorKind::Unsupported, message).with("table", &self.name));
        }
        Ok(loaded)
    }

    async fn newest(&self) -> Result<TableHead> {
        let mut newest = self.newest.lock().await;
        let loaded = self.load().await?;
        if let Some(known) = newest.as_ref()
            && state_of(known)?.loaded.metadata_location == loaded.metadata_location
        {
            return Ok(known.clone());
        }
        let snapshot = loaded.metadata.current_snapshot().cloned();
        let head = self.read(loaded, snapshot, newest.as_ref()).await?;
        *newest = Some(head.clone());
        Ok(head)
    }

    /// A version, read on top of a known one.
    pub(super) async fn read(
        &self,
        loaded: Loaded,
        snapshot: Option<SnapshotRef>,
        known: Option<&TableHead>,
    ) -> Result<TableHead> {
        let of: Option<&State> = known.map(state_of).transpose()?;
        let by_url = |manifest: &Arc<Manifest>| (manifest.file.manifest_path.clone(), Arc::clone(manifest));
        let manifests: Known = of.iter().flat_map(|state| &state.manifests).map(by_url).collect();
        let manifests = match &snapshot {
            None => Vec::new(),
            Some(snapshot) => {
                let version = loaded.metadata.format_version();
                manifest::read(&self.warehouse, version, snapshot, &manifests).await?
            }
        };
        self.head_of(State { loaded, snapshot, manifests }, known)
    }

    /// The version that a commit of ours made, which is the newest unless a newer one is known.
    pub(super) async fn remember(&self, state: State) -> Result<TableHead> {
        let mut newest = self.newest.lock().await;
        let head = self.head_of(state, newest.as_ref())?;
        let is_current = {
            let state = state_of(&head)?;
            let current = state.loaded.metadata.current_snapshot_id();
            state.snapshot.as_ref().map(|snapshot| snapshot.snapshot_id()) == current
        };
        if is_current && newest.as_ref().is_none_or(|known| known.version < head.version) {
            *newest = Some(head.clone());
        }
        Ok(head)
    }

    fn head_of(&self, state: State, known: Option<&TableHead>) -> Result<TableHead> {
        let metadata = Arc::clone(&state.loaded.metadata);
        check_readable(&metadata)?;
        let fields = Arc::clone(state.schema()?);
        let columns = if names::moved(&state, &fields)? {
            schema::with_column_numbers(&fields)?
        } else {
            schema::to_arrow(&fields)?
        };
        let same = known.filter(|known| known.schema == columns);
        let known = same.iter().flat_map(|known| known.files.iter());
        let known = known.map(|file| (file.path.as_str(), file)).collect();
        let place = files::Place {
            warehouse: &self.warehouse,
            root: &self.root,
            schema: &fields,
            columns: &columns,
            foreign: self.foreign,
        };
        let files = files::of(&state.manifests, &place, &known)?;
        let marks = Marks::at(&metadata, state.snapshot.as_ref().map(|s| s.snapshot_id()))?;
        let properties = properties::at(&metadata, state.snapshot.as_ref().map(|s| s.snapshot_id()))?;
        let keys = properties::keys(&properties)?;
        Ok(TableHead {
            version: chain::version(state.snapshot.as_ref()),
            schema: columns,
            keys,
            properties,
            batches: marks.batches,
            state: marks.state,
            epoch: marks.epoch,
            files: Arc::new(files),
            identity: metadata.uuid().to_string().into(),
            adapter: Arc::new(state),
        })
    }

    /// The partition of a file that was written for one of this spec.
    pub(super) fn partition(&self, file: &DataFile, spec: &PartitionSpec) -> Option<Struct> {
        if spec.is_unpartitioned() {
            return Some(Struct::empty());
        }
        let of = self.partitions.of_file(&file.path);
        of.filter(|(id, _)| *id == spec.spec_id()).map(|(_, partition)| partition)
    }

    /// Whether the files that come have the numbers that the table has for their columns, and are of partitions as the table
    /// has them. Those of an append or of a compaction may have been written on an older version, after which somebody
    /// else gave a column another number, or made other partitions.
    pub(super) async fn fits(&self, change: &FileChanges, shape: &Shape) -> Result<bool> {
        let spec = shape.metadata.default_partition_spec();
        let stays = |file: &DataFile| change.remove.iter().any(|gone| gone.path == file.path);
        if !spec.is_unpartitioned() {
            let mut new = change.add.iter().filter(|file| !stays(file));
            if new.any(|file| self.partition(file, spec).is_none()) {
                return Ok(false);
            }
        }
        let late = matches!(change.operation, Operation::Append | Operation::Compact);
        if !late || shape.metadata.schemas_iter().len() == 1 {
            return Ok(true);
        }
        let Some(file) = change.add.first() else { return Ok(true) };
        let readers = Readers::new(Arc::clone(self.warehouse.store()));
        let written = readers.open(file_path(&self.root, &file.path)?, file.size).await?;
        let number = |field: &arrow_schema::Field| -> Option<i32> {
            field.metadata().get(PARQUET_FIELD_ID_META_KEY)?.parse().ok()
        };
        let schema = shape.metadata.current_schema();
        let has = |field: &Arc<arrow_schema::Field>| number(field) == schema.field_id_by_name(field.name());
        Ok(written.schema().fields().iter().all(has))
    }
}

#[async_trait]
impl TableMetadata for IcebergMetadata {
    fn store(&self) -> &Arc<dyn ObjectStore> {
        self.warehouse.store()
    }

    fn root(&self) -> &Path {
        &self.root
    }

    fn check_schema(&self, schema: &SchemaRef) -> Result<()> {
        schema::check(schema)
    }

    fn check_definition(&self, definition: &TableDefinition) -> Result<()> {
        super::check_definition(definition)
    }

    async fn head(&self, at: Option<TableVersion>) -> Result<TableHead> {
        let newest = self.newest().await?;
        match at {
            None => Ok(newest),
            Some(version) if version == newest.version => Ok(newest),
            Some(version) => {
                let loaded = state_of(&newest)?.loaded.clone();
                let snapshot = chain::at(&loaded.metadata, version)?;
                self.read(loaded, snapshot, Some(&newest)).await
            }
        }
    }

    async fn commit(
        &self,
        base: &TableHead,
        change: FileChanges,
        stamp: Option<&CommitStamp>,
    ) -> Result<MetadataOutcome> {
        if self.foreign {
            return Err(Error::new(ErrorKind::Unsupported, "a table by its path is read, not changed"));
        }
        check_writable(&state_of(base)?.loaded.metadata)?;
        self.swap(base, &change, stamp).await
    }

    async fn commits(&self, after: Option<TableVersion>, until: TableVersion) -> Result<Vec<FileCommit>> {
        self.history(after, until).await
    }

    async fn first_since(&self, millis: i64) -> Result<Option<TableVersion>> {
        self.first_version_since(millis).await
    }

    async fn deleted_rows(&self, file: &DataFile) -> Result<RoaringBitmap> {
        let mut all = RoaringBitmap::new();
        for place in file.deleted.iter().flat_map(|deleted| &deleted.places) {
            all |= self.deletes.of_file(&file.path, place).await?;
        }
        Ok(all)
    }

    fn check_masks(&self, head: &TableHead) -> Result<()> {
        check_writable(&state_of(head)?.loaded.metadata)
    }

    async fn mask(&self, base: &TableHead, masks: Vec<Mask>) -> Result<Vec<DataFile>> {
        self.check_masks(base)?;
        let own = own_deletes(self, state_of(base)?)?;
        let own = &own;
        let one = |mask: Mask| async move {
            let (path, size) = self.deletes.write(&mask.file.path, &mask.deleted).await?;
            // What the new file replaces goes in the same commit; files of deletes of several data files stay.
            let old = mask.file.deleted.iter().flat_map(|deleted| &deleted.places);
            let stay = old.filter(|place| match place {
                DeletedPlace::File { path, .. } => !own.contains(path),
                DeletedPlace::Inline(_) => true,
            });
            let mut places: Vec<_> = stay.cloned().collect();
            places.push(DeletedPlace::File { path, offset: 0, size });
            let deleted = DeletedRows { count: Some(mask.deleted.len()), places };
            Ok::<_, Error>(DataFile { deleted: Some(Arc::new(deleted)), ..mask.file.as_ref().clone() })
        };
        stream::iter(masks.into_iter().map(one)).buffered(WRITES).try_collect().await
    }

    fn file_schema(&self, head: &TableHead, schema: &SchemaRef) -> Result<SchemaRef> {
        let metadata = &state_of(head)?.loaded.metadata;
        schema::with_numbers(&commit::numbered(metadata, schema, &[])?)
    }

    fn partitioner(&self, head: &TableHead, schema: &SchemaRef) -> Result<Option<Arc<dyn Partitioner>>> {
        let metadata = &state_of(head)?.loaded.metadata;
        let spec = metadata.default_partition_spec();
        let fields = commit::numbered(metadata, schema, &[])?;
        // A table that loses a column by which it is partitioned is not partitioned any more.
        if spec.is_unpartitioned() || commit::lacks_source(spec, &fields) {
            return Ok(None);
        }
        Ok(Some(Arc::new(Split::new(spec, &fields, schema, &self.partitions)?)))
    }

    async fn expire(&self, before: i64) -> Result<u64> {
        self.forget(before).await
    }

    async fn named_files(&self, _: i64) -> Result<BTreeSet<String>> {
        self.all_files().await
    }
}

pub(super) fn state_of(head: &TableHead) -> Result<&State> {
    let state = head.adapter.downcast_ref::<State>();
    state.ok_or_else(|| Error::new(ErrorKind::Invalid, "the base is no version of an Iceberg table"))
}

/// Paths of files of deletes that are of one data file each.
fn own_deletes(adapter: &IcebergMetadata, state: &State) -> Result<BTreeSet<String>> {
    let entries = state.manifests.iter().flat_map(|manifest| manifest.live());
    let own = entries.filter(|entry| entry.data_file().referenced_data_file().is_some());
    own.map(|entry| files::relative(&adapter.warehouse, &adapter.root, entry.file_path())).collect()
}

/// Refuses tables that can't be read right, with the reason.
fn check_readable(metadata: &IcebergTable) -> Result<()> {
    if metadata.format_version() == FormatVersion::V1 {
        let message = "the table has format version 1, whose commits have no order; upgrade it: set its \
                       property `format-version` to 2 with the engine that wrote it";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let defaults = metadata.current_schema().as_struct().fields().iter();
    if let Some(field) = defaults.into_iter().find(|field| field.initial_default.is_some()) {
        let message = format!("column `{}` has a default value, which is not read", field.name);
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    Ok(())
}

/// Refuses tables that can't be changed, with the reason.
fn check_writable(metadata: &IcebergTable) -> Result<()> {
    if metadata.format_version() == FormatVersion::V3 {
        let message = "the table has format version 3, which is read, not changed";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    Ok(())
}
