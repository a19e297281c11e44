//! The rows beside a target that its readers never see, in versions.
//!
//! A version is a manifest that was put once, at a number that nobody had, and names its data files and which of their
//! rows don't count any more. It means nothing until a commit of the target names it in its stamp; a version that no
//! commit names is a leftover.
//!
//! What holds for every key, the target's barriers, is a few values: they stand in the manifest itself.

mod collect;
mod manifest;
mod write;

pub use collect::Collected;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::{StreamExt, stream};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};

use crate::{
    contract::{BatchStream, LookupPlan, Result, RowStream, StateVersion},
    error::{Error, ErrorKind},
    lake::LakeOptions,
    lookup::{Candidate, Lookup},
    parquet::{ReadCounts, Readers},
    rows,
};
use manifest::{Manifest, StateFile};

/// A manifest of more bytes is not read.
const MANIFEST_BYTES: u64 = 256 << 20;

/// Versioned rows in a folder of a store.
#[derive(Debug, Clone)]
pub struct SideState {
    root: Path,
    keys: Vec<String>,
    readers: Arc<Readers>,
    options: LakeOptions,
}

/// One version.
#[derive(Debug, Clone)]
pub struct StateSnapshot {
    version: StateVersion,
    root: Path,
    readers: Arc<Readers>,
    manifest: Arc<Manifest>,
}

impl SideState {
    /// State of rows with these keys, in this folder. The store must have create-only puts.
    pub fn new(store: Arc<dyn ObjectStore>, root: Path, keys: Vec<String>) -> Self {
        let readers = Arc::new(Readers::checking_sizes(store));
        Self { root, keys, readers, options: LakeOptions::default() }
    }

    /// The same with other options.
    #[must_use]
    pub fn with_options(mut self, options: LakeOptions) -> Self {
        self.options = options;
        self
    }

    /// A version; version 0 is empty and always there.
    ///
    /// # Errors
    /// `Corrupt` when a version that was named is missing or contradicts itself, else the store's.
    pub async fn open(&self, version: StateVersion) -> Result<StateSnapshot> {
        if version == StateVersion(0) {
            return Ok(self.snapshot(version, Manifest::empty(self.keys.clone())));
        }
        let path = self.manifest_path(version);
        let corrupt = |message: &str| {
            Error::new(ErrorKind::Corrupt, message).with("state version", version).with("manifest", &path)
        };
        let object = match self.readers.store().get(&path).await {
            Ok(object) => object,
            Err(object_store::Error::NotFound { .. }) => {
                return Err(corrupt("the state version that the table names is missing"));
            }
            Err(e) => return Err(Error::from(e).with("manifest", &path)),
        };
        if object.meta.size > MANIFEST_BYTES {
            return Err(corrupt("the manifest is too large to be one"));
        }
        let manifest =
            Manifest::decode(&object.bytes().await?, version).map_err(|e| e.with("manifest", &path))?;
        if manifest.keys != self.keys {
            return Err(corrupt("the state has other keys than its target"));
        }
        Ok(self.snapshot(version, manifest))
    }

    /// What was read of data files through this value and its snapshots until now.
    pub fn read_counts(&self) -> ReadCounts {
        self.readers.counts()
    }

    fn snapshot(&self, version: StateVersion, manifest: Manifest) -> StateSnapshot {
        StateSnapshot {
            version,
            root: self.root.clone(),
            readers: Arc::clone(&self.readers),
            manifest: Arc::new(manifest),
        }
    }

    fn manifest_path(&self, version: StateVersion) -> Path {
        self.root.clone().join(format!("{:020}.json", version.0))
    }

    fn data_folder(&self) -> Path {
        self.root.clone().join("data")
    }
}

impl StateSnapshot {
    /// Its version.
    pub fn version(&self) -> StateVersion {
        self.version
    }

    /// Its columns; `None` before the first row.
    pub fn schema(&self) -> Option<SchemaRef> {
        self.manifest.schema.clone()
    }

    /// What holds for every key, in the schema in which it was written: a target's barriers. `None` when there is none.
    pub fn barriers(&self) -> Option<&RecordBatch> {
        self.manifest.barriers.as_ref()
    }

    /// Number of its rows.
    pub fn num_rows(&self) -> u64 {
        self.manifest.files.iter().map(StateFile::live).sum()
    }

    /// Number of its data files.
    pub fn num_files(&self) -> usize {
        self.manifest.files.len()
    }

    /// Rows of given keys or of all, with ids for [`SideState::write`] on this version. Columns that no row ever had are left out.
    ///
    /// # Errors
    /// The store's, or `Corrupt`.
    #[expect(
        clippy::unused_async,
        reason = "as for a table: looking for candidates may come to need the store"
    )]
    pub async fn lookup(&self, plan: &LookupPlan) -> Result<RowStream> {
        let Some(schema) = &self.manifest.schema else { return Ok(stream::empty().boxed()) };
        let mut plan = plan.clone();
        if let Some(columns) = &mut plan.columns {
            columns.retain(|name| schema.field_with_name(name).is_ok());
        }
        plan.bound = plan.bound.filter(|bound| schema.field_with_name(&bound.column).is_ok());
        let lookup = Lookup::new(&plan, schema)?;
        let candidates = self.manifest.files.iter().enumerate().map(|(ordinal, file)| Candidate {
            ordinal,
            path: self.path(file),
            size: file.size,
            deleted: (!file.deleted.is_empty()).then(|| Arc::clone(&file.deleted)),
            constants: Arc::default(),
        });
        Ok(lookup.run(Arc::clone(&self.readers), candidates.collect()))
    }

    /// All rows.
    ///
    /// # Errors
    /// The store's, or `Corrupt`.
    #[expect(
        clippy::unused_async,
        reason = "as for a table: looking for candidates may come to need the store"
    )]
    pub async fn scan(&self) -> Result<BatchStream> {
        let Some(schema) = self.manifest.schema.clone() else { return Ok(stream::empty().boxed()) };
        let opens = self.manifest.files.iter().map(|f| self.clone().open(f.clone(), Arc::clone(&schema)));
        Ok(rows::chained(opens.collect::<Vec<_>>()))
    }

    /// A file's rows that count.
    async fn open(self, file: StateFile, schema: SchemaRef) -> Result<BatchStream> {
        let path = self.path(&file);
        let reader = self.readers.open(path.clone(), file.size).await?;
        if reader.rows() != file.rows {
            return Err(Error::new(ErrorKind::Corrupt, "a file has other rows than its manifest says")
                .with("file", path));
        }
        Ok(rows::live_rows(&reader, Some(Arc::clone(&file.deleted)), &schema)?.boxed())
    }

    fn path(&self, file: &StateFile) -> Path {
        self.root.clone().join("data").join(file.path.as_str())
    }
}
