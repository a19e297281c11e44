//! Tables in Delta Lake's format. Log and transactions are deltalake-core's; data files are [`crate::parquet`]'s.
//!
//! A commit's stamp lies in transaction actions of the same log entry: `strandline/<pipeline>/<flow>/<incarnation>` with
//! the batch, `strandline/state` with the state version, `strandline/epoch` with the epoch. The property
//! `strandline.writers` lists the writers, so that opening a table needs no search for them.

mod actions;
mod crc32;
mod deletion_vector;
mod error;
mod features;
mod file;
mod folder;
mod head;
mod history;
mod log;
mod mask;
mod metadata;
mod protocol;
mod schema;
mod stamp;
mod stats;
mod z85;

pub use metadata::DeltaMetadata;

use std::{path::PathBuf, sync::Arc};

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use deltalake_core::{
    kernel::transaction::CommitProperties,
    logstore::{LogStoreRef, StorageConfig, default_logstore},
    operations::create::CreateBuilder,
};
use folder::Folder;
use object_store::{ObjectStore, local::LocalFileSystem, path::Path};
use url::Url;

use crate::{
    DurableLocal,
    contract::{Result, Table, TableDefinition, TableFormat},
    error::{Error, ErrorKind},
    lake::{LakeOptions, LakeTable},
    schema::check_keys,
};

/// Property that names the key columns, as a JSON list.
pub const KEYS: &str = "strandline.keys";
/// Property that lists the writers, as a JSON list.
const WRITERS: &str = "strandline.writers";
/// A setting that would let stamps expire.
const RETENTION: &str = "delta.setTransactionRetentionDuration";

/// Delta tables in a folder of a store: each in the folder of its name.
#[derive(Debug)]
pub struct DeltaFormat {
    store: Arc<dyn ObjectStore>,
    root: Path,
    options: LakeOptions,
}

impl DeltaFormat {
    /// Tables under this folder of the store. The store must have create-only puts; on a local folder use
    /// [`crate::DurableLocal`], so that what is acknowledged is on disk.
    pub fn new(store: Arc<dyn ObjectStore>, root: Path) -> Self {
        Self { store, root, options: LakeOptions::default() }
    }

    /// The same with other options.
    #[must_use]
    pub fn with_options(mut self, options: LakeOptions) -> Self {
        self.options = options;
        self
    }

    fn folder(&self, name: &str) -> Result<Path> {
        let folder = self.root.clone().join(name);
        if name.is_empty() || name.starts_with('_') || folder.filename() != Some(name) {
            let message = format!("`{name}` can't be the name of a table's folder");
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        Ok(folder)
    }

    /// A table's files and metadata, below what a flow sees of it. Nothing is read yet, not even whether it exists.
    ///
    /// # Errors
    /// `Invalid` for a name that no table can have.
    pub fn metadata(&self, name: &str) -> Result<DeltaMetadata> {
        let folder = self.folder(name)?;
        let log = self.log(&folder)?;
        Ok(DeltaMetadata::new(Arc::clone(&self.store), folder, log))
    }

    fn log(&self, folder: &Path) -> Result<LogStoreRef> {
        log_in(&self.store, folder)
    }

    fn table(&self, folder: Path, log: LogStoreRef) -> LakeTable<DeltaMetadata> {
        let metadata = DeltaMetadata::new(Arc::clone(&self.store), folder, log);
        LakeTable::new(Arc::new(metadata), self.options)
    }
}

#[async_trait]
impl TableFormat for DeltaFormat {
    fn name(&self) -> &'static str {
        "delta"
    }

    fn check_schema(&self, schema: &SchemaRef) -> Result<()> {
        schema::check(schema)
    }

    async fn create(&self, name: &str, definition: &TableDefinition) -> Result<Arc<dyn Table>> {
        check_definition(definition)?;
        let folder = self.folder(name)?;
        let log = self.log(&folder)?;
        if log.is_delta_table_location().await.map_err(|e| error::of(e, "the table can't be looked for"))? {
            return Err(exists(name));
        }
        let keys = serde_json::json!(definition.keys).to_string();
        let properties = definition.properties.iter().map(|(k, v)| (k.clone(), Some(v.clone())));
        let mut builder = CreateBuilder::new()
            .with_log_store(Arc::clone(&log))
            .with_table_name(name)
            .with_columns(schema::to_delta(&definition.schema)?.fields().cloned())
            .with_configuration(properties.chain([(KEYS.to_owned(), Some(keys))]))
            .with_raise_if_key_not_exists(false)
            .with_commit_properties(CommitProperties::default().with_max_retries(0));
        if let Some(comment) = &definition.comment {
            builder = builder.with_comment(comment);
        }
        if let Err(e) = Box::pin(builder.into_future()).await {
            let failed = error::of(e, "the table could not be created").with("table", name);
            let lost = error::is_lost_race(&failed);
            return Err(if lost { exists(name) } else { failed });
        }
        Ok(Arc::new(self.table(folder, log)))
    }

    async fn open(&self, name: &str) -> Result<Option<Arc<dyn Table>>> {
        let folder = self.folder(name)?;
        let log = self.log(&folder)?;
        if !log.is_delta_table_location().await.map_err(|e| error::of(e, "the table can't be looked for"))? {
            return Ok(None);
        }
        let table = self.table(folder, log);
        table.snapshot().await.map_err(|e| e.with("table", name))?;
        Ok(Some(Arc::new(table)))
    }

    async fn open_path(&self, path: &str) -> Result<Option<Arc<dyn Table>>> {
        let Some(folder) = local_folder(path)? else { return Ok(None) };
        let store: Arc<dyn ObjectStore> = Arc::new(LocalFileSystem::new_with_prefix(folder)?);
        let log = log_in(&store, &Path::default())?;
        if !log.is_delta_table_location().await.map_err(|e| error::of(e, "the table can't be looked for"))? {
            return Ok(None);
        }
        let metadata = DeltaMetadata::new(store, Path::default(), log).foreign();
        let table = LakeTable::new(Arc::new(metadata), self.options);
        table.snapshot().await.map_err(|e| e.with("path", path))?;
        Ok(Some(Arc::new(table)))
    }

    fn in_folder(&self, folder: &std::path::Path) -> Result<Arc<dyn TableFormat>> {
        let store = DurableLocal::new(folder).map_err(|e| {
            let message = "the folder can't be made, or not be written to";
            Error::new(ErrorKind::Unsupported, message).with("path", folder.display().to_string()).because(e)
        })?;
        Ok(Arc::new(Self::new(Arc::new(store), Path::default()).with_options(self.options)))
    }

    async fn list(&self) -> Result<Vec<String>> {
        let folders = self.store.list_with_delimiter(Some(&self.root)).await?.common_prefixes;
        let mut names = Vec::new();
        for folder in folders {
            let log = self.log(&folder)?;
            let is_table = log.is_delta_table_location().await;
            if is_table.map_err(|e| error::of(e, "the tables can't be listed"))? {
                names.extend(folder.filename().map(str::to_owned));
            }
        }
        names.sort();
        Ok(names)
    }
}

fn log_in(store: &Arc<dyn ObjectStore>, folder: &Path) -> Result<LogStoreRef> {
    // To deltalake the folder is a store's root: a path in its URL would be escaped once too often.
    let root = Url::parse("memory:///").map_err(|e| Error::new(ErrorKind::Internal, "no URL").because(e))?;
    let store = Arc::new(Folder::new(Arc::clone(store), folder.clone()));
    Ok(default_logstore(Arc::<Folder>::clone(&store), store, &root, &StorageConfig::default()))
}

/// The folder of a table by its path or `file://` URL; `None` when there is no such folder.
fn local_folder(path: &str) -> Result<Option<PathBuf>> {
    let elsewhere = |why: &str| Error::new(ErrorKind::Unsupported, why.to_owned()).with("path", path);
    let folder = match path.split_once("://") {
        None => PathBuf::from(path),
        Some(("file", _)) => {
            let url = Url::parse(path).map_err(|e| elsewhere("a table's URL can't be read").because(e))?;
            url.to_file_path().map_err(|()| elsewhere("a table's URL names no folder"))?
        }
        Some((scheme, _)) => {
            return Err(elsewhere(&format!(
                "tables of others are read from local folders, not from {scheme}"
            )));
        }
    };
    Ok(folder.is_dir().then_some(folder))
}

/// Refuses what no table of this adapter can be.
fn check_definition(definition: &TableDefinition) -> Result<()> {
    schema::check(&definition.schema)?;
    check_keys(&definition.schema, &definition.keys)?;
    if definition.properties.contains_key(RETENTION) {
        let message = format!("`{RETENTION}` would let the marks of committed batches expire");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(())
}

fn exists(name: &str) -> Error {
    Error::new(ErrorKind::Conflict, format!("table `{name}` exists"))
}
