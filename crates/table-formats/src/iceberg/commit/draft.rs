//! Which manifests does a change write, and which stay as they are?
//!
//! Files that come are in a manifest of their own. A manifest that names a file which goes is written anew, without what
//! went before; every other one stays. Many small ones are put together.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use iceberg::spec::{
    DataContentType, ManifestContentType, ManifestEntry, ManifestEntryRef, ManifestStatus, PartitionSpec,
    SchemaRef,
};

use super::Shape;
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
    iceberg::{
        files::relative,
        manifest::{self, Manifest},
        metadata::{IcebergMetadata, State},
        summary::Counts,
    },
    metadata::{DataFile, FileChanges},
};

/// When so many manifests have fewer entries than [`SMALL_ENTRIES`], they become one.
const MANY_MANIFESTS: usize = 50;
/// A manifest of fewer entries is small.
const SMALL_ENTRIES: usize = 4096;

/// The manifests of a snapshot to be.
pub(in crate::iceberg) struct Draft {
    /// Those to write.
    pub(super) new: Vec<manifest::Draft>,
    /// Those that stay.
    pub(super) kept: Vec<Arc<Manifest>>,
    /// Files that come.
    pub(super) came: Counts,
    /// Files that go.
    pub(super) went: Counts,
}

/// Entries by partition spec.
type BySpec = BTreeMap<i32, (SchemaRef, PartitionSpec, Vec<ManifestEntry>)>;

/// Which files of a version a change concerns, by their paths.
struct Concerned<'a> {
    adapter: &'a IcebergMetadata,
    /// Files that go, and those that stay with more rows deleted.
    gone: BTreeSet<&'a str>,
    /// Those that stay.
    masked: BTreeMap<&'a str, &'a DataFile>,
}

impl<'a> Concerned<'a> {
    fn of(adapter: &'a IcebergMetadata, change: &'a FileChanges) -> Self {
        let gone: BTreeSet<&str> = change.remove.iter().map(|file| file.path.as_str()).collect();
        let masked = change.add.iter().map(|file| (file.path.as_str(), file));
        let masked = masked.filter(|(path, _)| gone.contains(path)).collect();
        Self { adapter, gone, masked }
    }

    fn path(&self, url: &str) -> Result<String> {
        relative(self.adapter.warehouse(), self.adapter.folder(), url)
    }

    /// Whether an entry's file goes.
    fn goes(&self, entry: &ManifestEntry) -> Result<bool> {
        Ok(match entry.content_type() {
            DataContentType::Data => {
                let path = self.path(entry.file_path())?;
                !self.masked.contains_key(path.as_str()) && self.gone.contains(path.as_str())
            }
            // Deletes of one file go with it, and when all its deletes are written anew.
            DataContentType::PositionDeletes => match entry.data_file().referenced_data_file() {
                Some(of) => self.gone.contains(self.path(&of)?.as_str()),
                None => false,
            },
            DataContentType::EqualityDeletes => false,
        })
    }

    /// How many of a manifest's data files are concerned; the deletes of those that are masked are added.
    fn found(&self, manifest: &Manifest, deletes: &mut BySpec) -> Result<usize> {
        let mut found = 0;
        for entry in manifest.live().filter(|entry| entry.content_type() == DataContentType::Data) {
            let path = self.path(entry.file_path())?;
            found += usize::from(self.gone.contains(path.as_str()));
            let Some(file) = self.masked.get(path.as_str()) else { continue };
            let spec = manifest.file.partition_spec_id;
            let by = || (Arc::clone(&manifest.schema), manifest.spec.clone(), Vec::new());
            let entry = self.adapter.delete_entry(file, entry, spec)?;
            deletes.entry(spec).or_insert_with(by).2.push(entry);
        }
        Ok(found)
    }
}

impl Draft {
    /// The manifests after a change.
    pub(super) fn of(
        adapter: &IcebergMetadata,
        state: &State,
        change: &FileChanges,
        shape: &Shape,
    ) -> Result<Self> {
        let concerned = Concerned::of(adapter, change);
        let mut draft =
            Self { new: Vec::new(), kept: Vec::new(), came: Counts::default(), went: Counts::default() };
        let new = change.add.iter().filter(|file| !concerned.masked.contains_key(file.path.as_str()));
        let entries = new.map(|file| adapter.data_entry(file, shape)).collect::<Result<Vec<_>>>()?;
        if !entries.is_empty() {
            let metadata = &shape.metadata;
            draft.adds(manifest::Draft {
                schema: Arc::clone(metadata.current_schema()),
                spec: metadata.default_partition_spec().as_ref().clone(),
                content: ManifestContentType::Data,
                entries,
            });
        }
        let mut deletes = BySpec::new();
        let mut found = 0;
        for manifest in &state.manifests {
            found += concerned.found(manifest, &mut deletes)?;
            draft.carry(manifest, &concerned)?;
        }
        if found != concerned.gone.len() {
            let message = "a file that shall go is not one of the version that the change is made from";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        for (schema, spec, entries) in deletes.into_values() {
            draft.adds(manifest::Draft { schema, spec, content: ManifestContentType::Deletes, entries });
        }
        draft.merge();
        Ok(draft)
    }

    fn adds(&mut self, new: manifest::Draft) {
        new.entries.iter().for_each(|entry| self.came.add(entry.data_file()));
        self.new.push(new);
    }

    /// Takes a manifest over: as it is, or without files that go.
    fn carry(&mut self, manifest: &Arc<Manifest>, concerned: &Concerned<'_>) -> Result<()> {
        let mut entries = Vec::new();
        let mut changes = false;
        for entry in manifest.live() {
            let goes = concerned.goes(entry)?;
            changes |= goes;
            if goes {
                self.went.add(entry.data_file());
            }
            entries.push(staying(entry, goes));
        }
        if changes {
            self.new.push(manifest::Draft {
                schema: Arc::clone(&manifest.schema),
                spec: manifest.spec.clone(),
                content: manifest.file.content,
                entries,
            });
        } else if !entries.is_empty() {
            self.kept.push(Arc::clone(manifest));
        }
        Ok(())
    }

    /// Puts small manifests together when they are many.
    fn merge(&mut self) {
        let small = |manifest: &Manifest| manifest.entries.len() < SMALL_ENTRIES;
        if self.kept.iter().filter(|manifest| small(manifest)).count() < MANY_MANIFESTS {
            return;
        }
        let (merged, kept) = std::mem::take(&mut self.kept).into_iter().partition(|m| small(m));
        self.kept = kept;
        let mut groups = BTreeMap::<_, Vec<Arc<Manifest>>>::new();
        for manifest in merged {
            let deletes = manifest.file.content == ManifestContentType::Deletes;
            let key = (deletes, manifest.file.partition_spec_id, manifest.schema.schema_id());
            groups.entry(key).or_default().push(manifest);
        }
        for group in groups.into_values() {
            let Some(first) = group.first().filter(|_| group.len() > 1) else {
                self.kept.extend(group);
                continue;
            };
            let entries = group.iter().flat_map(|manifest| manifest.live());
            self.new.push(manifest::Draft {
                schema: Arc::clone(&first.schema),
                spec: first.spec.clone(),
                content: first.file.content,
                entries: entries.map(|entry| staying(entry, false)).collect(),
            });
        }
    }
}

/// An entry as a new manifest has it.
fn staying(entry: &ManifestEntryRef, goes: bool) -> ManifestEntry {
    let mut entry = entry.as_ref().clone();
    entry.status = if goes { ManifestStatus::Deleted } else { ManifestStatus::Existing };
    entry
}
