//! Tables in Apache Iceberg's format. Its spec types, manifests and metadata are the `iceberg` crate's; data files are
//! [`crate::parquet`]'s, and the commit of changed rows is ours.
//!
//! A version is a snapshot, and its number is the snapshot's sequence number. A commit's stamp lies in the summary of its
//! snapshot and in the table's property `strandline.marks`, which outlives the snapshot.

pub mod catalog;
mod chain;
mod commit;
mod error;
mod files;
mod history;
mod manifest;
mod marks;
mod metadata;
mod names;
mod partition;
mod position_deletes;
mod properties;
mod schema;
pub mod storage;
mod summary;
mod values;
pub mod warehouse;

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use ::iceberg::spec::UnboundPartitionSpec;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use catalog::FolderCatalog;
pub use catalog::{
    Catalog, CatalogOptions, Creation, Loaded, MemoryCatalog, RestCatalog, RestOptions, SqlCatalog,
    SqlOptions, Swap,
};
pub use metadata::IcebergMetadata;
use object_store::{local::LocalFileSystem, path::Path};
pub use storage::file_io;
use url::Url;
pub use warehouse::Warehouse;

use crate::{
    contract::{Result, Table, TableDefinition, TableFormat},
    error::{Error, ErrorKind},
    lake::{LakeOptions, LakeTable},
    schema::check_keys,
};

/// Property that names the key columns, as a JSON list.
pub const KEYS: &str = "strandline.keys";
/// Property that other engines show as the table's comment.
const COMMENT: &str = "comment";

/// The Iceberg tables of a catalog's namespace.
#[derive(Debug)]
pub struct IcebergFormat {
    catalog: Arc<dyn Catalog>,
    warehouse: Warehouse,
    options: LakeOptions,
}

impl IcebergFormat {
    /// The tables that a catalog lists. Their files are read and written through the warehouse's store.
    pub fn new(catalog: Arc<dyn Catalog>, warehouse: Warehouse) -> Self {
        Self { catalog, warehouse, options: LakeOptions::default() }
    }

    /// The same with other options.
    #[must_use]
    pub fn with_options(mut self, options: LakeOptions) -> Self {
        self.options = options;
        self
    }

    /// A table's metadata: what the tables of this format do is done with them.
    ///
    /// # Errors
    /// The catalog's.
    pub async fn metadata(&self, name: &str) -> Result<Option<IcebergMetadata>> {
        let Some(loaded) = self.catalog.load(name).await? else { return Ok(None) };
        IcebergMetadata::new(Arc::clone(&self.catalog), name, self.warehouse.clone(), &loaded).map(Some)
    }

    fn table(&self, name: &str, loaded: &Loaded) -> Result<LakeTable<IcebergMetadata>> {
        let metadata = IcebergMetadata::new(Arc::clone(&self.catalog), name, self.warehouse.clone(), loaded)?;
        Ok(LakeTable::new(Arc::new(metadata), self.options))
    }
}

#[async_trait]
impl TableFormat for IcebergFormat {
    fn name(&self) -> &'static str {
        "iceberg"
    }

    fn check_schema(&self, schema: &SchemaRef) -> Result<()> {
        schema::check(schema)
    }

    async fn create(&self, name: &str, definition: &TableDefinition) -> Result<Arc<dyn Table>> {
        check_definition(definition)?;
        check_name(name)?;
        let schema = schema::evolved(None, 0, &definition.schema, &definition.keys)?;
        let creation = Creation {
            sort_order: commit::sort_order(&schema, &definition.keys),
            schema,
            partitioning: UnboundPartitionSpec::builder().build(),
            properties: properties_of(definition),
        };
        let loaded = self.catalog.create(name, creation).await.map_err(|e| e.with("table", name))?;
        Ok(Arc::new(self.table(name, &loaded)?))
    }

    async fn open(&self, name: &str) -> Result<Option<Arc<dyn Table>>> {
        check_name(name)?;
        let Some(loaded) = self.catalog.load(name).await.map_err(|e| e.with("table", name))? else {
            return Ok(None);
        };
        let table = self.table(name, &loaded).map_err(|e| e.with("table", name))?;
        table.snapshot().await.map_err(|e| e.with("table", name))?;
        Ok(Some(Arc::new(table)))
    }

    async fn list(&self) -> Result<Vec<String>> {
        self.catalog.list().await
    }

    async fn open_path(&self, path: &str) -> Result<Option<Arc<dyn Table>>> {
        let Some(folder) = local_folder(path)? else { return Ok(None) };
        let elsewhere = |e| Error::new(ErrorKind::Invalid, "a table's path can't be read").because(e);
        let folder = Path::from_absolute_path(folder).map_err(elsewhere)?;
        // A table's files are named by where they are on the machine.
        let warehouse = Warehouse::new(Arc::new(LocalFileSystem::new()), "file://");
        let catalog = Arc::new(FolderCatalog::new(warehouse.clone(), folder));
        let Some(loaded) = catalog.load(path).await.map_err(|e| e.with("path", path))? else {
            return Ok(None);
        };
        let metadata = IcebergMetadata::new(catalog, path, warehouse, &loaded)?.foreign();
        let table = LakeTable::new(Arc::new(metadata), self.options);
        table.snapshot().await.map_err(|e| e.with("path", path))?;
        Ok(Some(Arc::new(table)))
    }
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
            let why = format!("tables of others are read from local folders, not from {scheme}");
            return Err(elsewhere(&why));
        }
    };
    if !folder.is_dir() {
        return Ok(None);
    }
    let absolute = std::path::absolute(&folder);
    absolute.map(Some).map_err(|e| elsewhere("a table's path can't be read").because(e))
}

/// The properties that a definition makes.
fn properties_of(definition: &TableDefinition) -> HashMap<String, String> {
    let mut all: HashMap<_, _> = definition.properties.clone().into_iter().collect();
    all.insert(KEYS.to_owned(), serde_json::json!(definition.keys).to_string());
    all.extend(definition.comment.clone().map(|comment| (COMMENT.to_owned(), comment)));
    all
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.starts_with(['_', '.']) || name.contains(['/', '\u{1f}']) {
        let message = format!("`{name}` can't be the name of a table");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(())
}

/// Refuses what no table of this adapter can be.
fn check_definition(definition: &TableDefinition) -> Result<()> {
    schema::check(&definition.schema)?;
    check_keys(&definition.schema, &definition.keys)?;
    if let Some(name) = definition.properties.keys().find(|name| name.as_str() == marks::MARKS) {
        let message = format!("the property `{name}` is the engine's own");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(())
}
