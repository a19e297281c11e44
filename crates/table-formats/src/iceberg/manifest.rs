//! Manifests and their lists: read from the warehouse and written to it.
//!
//! A manifest never changes, so what was read of one version serves every other that names it.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use iceberg::{
    io::FileIO,
    spec::{
        FormatVersion, Manifest as IcebergManifest, ManifestContentType, ManifestEntry, ManifestEntryRef,
        ManifestFile, ManifestList, ManifestListWriter, ManifestStatus, ManifestWriterBuilder, PartitionSpec,
        SchemaRef, Snapshot,
    },
};
use object_store::ObjectStoreExt;

use super::{Warehouse, error};
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// So many manifests are read at a time.
const READS: usize = 8;
/// The most that is read of one manifest or list.
const MOST_BYTES: u64 = 1 << 30;
/// Manifests of version 1 have no sequence numbers: they are all of this one.
const INITIAL: i64 = 0;

/// A manifest, with what its entries inherit filled in.
#[derive(Debug)]
pub(super) struct Manifest {
    /// As the list names it.
    pub(super) file: ManifestFile,
    /// Files that came, stayed and went.
    pub(super) entries: Vec<ManifestEntryRef>,
    /// Columns as they were when it was written.
    pub(super) schema: SchemaRef,
    /// How its files are partitioned.
    pub(super) spec: PartitionSpec,
}

impl Manifest {
    fn new(file: ManifestFile, bytes: &[u8]) -> Result<Self> {
        let read = error::parsed("a manifest can't be read", || IcebergManifest::parse_avro(bytes));
        let read = read.map_err(|e| e.with("file", &file.manifest_path))?;
        let (entries, metadata) = read.into_parts();
        Ok(Self {
            entries: entries.into_iter().map(|entry| inherited(entry, &file)).collect(),
            schema: Arc::clone(metadata.schema()),
            spec: metadata.partition_spec().clone(),
            file,
        })
    }

    /// Entries whose files are of the version.
    pub(super) fn live(&self) -> impl Iterator<Item = &ManifestEntryRef> {
        self.entries.iter().filter(|entry| entry.is_alive())
    }
}

/// An entry with what its manifest says for all of them. Source: the format's specification, "Sequence Number
/// Inheritance".
fn inherited(entry: ManifestEntryRef, file: &ManifestFile) -> ManifestEntryRef {
    let mut entry = Arc::unwrap_or_clone(entry);
    entry.snapshot_id = entry.snapshot_id.or(Some(file.added_snapshot_id));
    if entry.status == ManifestStatus::Added || file.sequence_number == INITIAL {
        entry.sequence_number = entry.sequence_number.or(Some(file.sequence_number));
        entry.file_sequence_number = entry.file_sequence_number.or(Some(file.sequence_number));
    }
    Arc::new(entry)
}

/// Manifests by their URL.
pub(super) type Known = BTreeMap<String, Arc<Manifest>>;

/// The manifests of a snapshot. Those that are known are not read again.
pub(super) async fn read(
    warehouse: &Warehouse,
    version: FormatVersion,
    snapshot: &Snapshot,
    known: &Known,
) -> Result<Vec<Arc<Manifest>>> {
    let listed = list(warehouse, version, snapshot).await?;
    let reads = listed.into_iter().map(|file| async move {
        match known.get(&file.manifest_path) {
            Some(manifest) => Ok(Arc::clone(manifest)),
            None => one(warehouse, file).await.map(Arc::new),
        }
    });
    stream::iter(reads).buffered(READS).try_collect().await
}

/// What a snapshot's list says of its manifests.
pub(super) async fn list(
    warehouse: &Warehouse,
    version: FormatVersion,
    snapshot: &Snapshot,
) -> Result<Vec<ManifestFile>> {
    let url = snapshot.manifest_list();
    if url.is_empty() {
        let message = "a snapshot names its manifests one by one, as first versions of the format did";
        return Err(Error::new(ErrorKind::Unsupported, message).with("snapshot", snapshot.snapshot_id()));
    }
    let bytes = bytes(warehouse, url).await?;
    let list = error::parsed("a list of manifests can't be read", || {
        ManifestList::parse_with_version(&bytes, version)
    });
    let list = list.map_err(|e| e.with("file", url))?;
    Ok(list.consume_entries().into_iter().collect())
}

/// Reads a manifest.
pub(super) async fn one(warehouse: &Warehouse, file: ManifestFile) -> Result<Manifest> {
    if file.key_metadata.is_some() {
        let message = "a manifest is encrypted, which is not read";
        return Err(Error::new(ErrorKind::Unsupported, message).with("file", &file.manifest_path));
    }
    let bytes = bytes(warehouse, &file.manifest_path).await?;
    Manifest::new(file, &bytes)
}

async fn bytes(warehouse: &Warehouse, url: &str) -> Result<Bytes> {
    let found = warehouse.store().get(&warehouse.path(url)?).await;
    let found = found.map_err(|e| missing(e).with("file", url))?;
    if found.meta.size > MOST_BYTES {
        let message = format!("a manifest of {} bytes is too large to be read", found.meta.size);
        return Err(Error::new(ErrorKind::Unsupported, message).with("file", url));
    }
    found.bytes().await.map_err(|e| missing(e).with("file", url))
}

/// A file that the table names and that is not there.
fn missing(e: object_store::Error) -> Error {
    if matches!(e, object_store::Error::NotFound { .. }) {
        return Error::new(ErrorKind::Corrupt, "a file that the table names is missing").because(e);
    }
    e.into()
}

/// Where the crate puts what it writes, until we put it where it belongs.
const SCRATCH: &str = "memory:///scratch";

/// A manifest to be written.
pub(super) struct Draft {
    /// Columns that its bounds are of.
    pub(super) schema: SchemaRef,
    /// How its files are partitioned.
    pub(super) spec: PartitionSpec,
    /// What kind of files it names.
    pub(super) content: ManifestContentType,
    /// Its entries. Those that came have no number yet: the snapshot's.
    pub(super) entries: Vec<ManifestEntry>,
}

/// Writes a manifest under a URL, for a snapshot of a sequence number.
pub(super) async fn write(
    warehouse: &Warehouse,
    url: &str,
    draft: Draft,
    (snapshot, sequence): (i64, i64),
) -> Result<Manifest> {
    let failed = |e| error::of(e, "a manifest can't be written");
    let io = FileIO::new_with_memory();
    let output = io.new_output(SCRATCH).map_err(failed)?;
    let builder = ManifestWriterBuilder::new(output, Some(snapshot), draft.schema, draft.spec);
    let mut writer = match draft.content {
        ManifestContentType::Data => builder.build_v2_data(),
        ManifestContentType::Deletes => builder.build_v2_deletes(),
    };
    for entry in draft.entries {
        let number = entry.sequence_number.unwrap_or(sequence);
        match entry.status {
            ManifestStatus::Added => writer.add_file(entry.data_file, -1),
            ManifestStatus::Deleted => {
                writer.add_delete_file(entry.data_file, number, entry.file_sequence_number)
            }
            ManifestStatus::Existing => {
                let since = entry.snapshot_id.unwrap_or(snapshot);
                writer.add_existing_file(entry.data_file, since, number, entry.file_sequence_number)
            }
        }
        .map_err(failed)?;
    }
    let mut file = writer.write_manifest_file().await.map_err(failed)?;
    let bytes = written(&io).await?;
    url.clone_into(&mut file.manifest_path);
    // As the list's writer will number it.
    file.sequence_number = sequence;
    if file.min_sequence_number < 0 {
        file.min_sequence_number = sequence;
    }
    put(warehouse, url, bytes.clone()).await?;
    Manifest::new(file, &bytes)
}

/// Writes the list of a snapshot's manifests under a URL.
pub(super) async fn write_list(
    warehouse: &Warehouse,
    url: &str,
    manifests: &[Arc<Manifest>],
    (snapshot, parent, sequence): (i64, Option<i64>, i64),
) -> Result<()> {
    let failed = |e| error::of(e, "a list of manifests can't be written");
    let io = FileIO::new_with_memory();
    let output = io.new_output(SCRATCH).map_err(failed)?.writer().await.map_err(failed)?;
    let mut writer = ManifestListWriter::v2(output, snapshot, parent, sequence);
    writer.add_manifests(manifests.iter().map(|manifest| manifest.file.clone())).map_err(failed)?;
    writer.close().await.map_err(failed)?;
    put(warehouse, url, written(&io).await?).await
}

async fn written(io: &FileIO) -> Result<Bytes> {
    let failed = |e| error::of(e, "what was written can't be read again");
    io.new_input(SCRATCH).map_err(failed)?.read().await.map_err(failed)
}

async fn put(warehouse: &Warehouse, url: &str, bytes: Bytes) -> Result<()> {
    let put = warehouse.store().put(&warehouse.path(url)?, bytes.into()).await;
    put.map(drop).map_err(|e| Error::from(e).with("file", url))
}
