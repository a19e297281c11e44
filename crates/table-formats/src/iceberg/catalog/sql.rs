//! A catalog in an SQLite database: one file, no server, shared by processes of one machine.

mod database;

use std::{fmt, path::Path as FsPath, sync::Arc};

use async_trait::async_trait;
use iceberg::{TableRequirement, TableUpdate};
use object_store::path::Path;

use self::database::Database;
use super::{Catalog, Creation, Loaded, Swap, metadata_file};
use crate::{
    contract::Result,
    durable::DurableLocal,
    error::{Error, ErrorKind},
    iceberg::Warehouse,
};

/// Which part of a database is this catalog, and where its tables lie.
#[derive(Debug, Clone)]
pub struct SqlOptions {
    /// The catalog's name: one database may hold several. Others that read it give the same name.
    pub catalog: String,
    /// The namespace of the tables; its levels are joined by dots.
    pub namespace: String,
    /// The store of the tables.
    pub warehouse: Warehouse,
    /// Where in the store the namespaces have their folders.
    pub folder: Path,
}

impl SqlOptions {
    /// The catalog `default` and its namespace `default`, with tables in this folder of a store.
    pub fn new(warehouse: Warehouse, folder: Path) -> Self {
        Self { catalog: "default".to_owned(), namespace: "default".to_owned(), warehouse, folder }
    }
}

/// Tables of Iceberg that are listed in an SQLite database. `SqlCatalog` of PyIceberg and of iceberg-rust and Iceberg's
/// `JdbcCatalog` read and write the same database.
///
/// A commit writes the next metadata file into the warehouse, and then moves the table's pointer if nobody moved it: one
/// statement of SQL, on disk before it is acknowledged. Old metadata files stay, but for those that the table's properties
/// `write.metadata.delete-after-commit.enabled` and `write.metadata.previous-versions-max` give up.
pub struct SqlCatalog {
    database: Database,
    options: SqlOptions,
}

impl SqlCatalog {
    /// The catalog in a database file, which is made when it does not exist.
    ///
    /// # Errors
    /// `Invalid` when the file can't be opened, `Corrupt` when it is no database, `Unavailable`.
    pub async fn open(database: impl AsRef<FsPath>, options: SqlOptions) -> Result<Self> {
        Self::new(Some(database.as_ref()), options).await
    }

    /// The catalog in `catalog.db` of a folder, with its tables in `warehouse` beside it.
    ///
    /// # Errors
    /// Those of [`SqlCatalog::open`].
    pub async fn in_folder(folder: impl AsRef<FsPath>) -> Result<Self> {
        let unusable = |e| Error::new(ErrorKind::Invalid, "the folder can't be used").because(e);
        let folder = std::path::absolute(folder).map_err(unusable)?;
        // Readers open files by these URLs, most of them without undoing any encoding.
        let url = format!("file://{}", folder.display());
        let warehouse = Warehouse::new(Arc::new(DurableLocal::new(&folder)?), &url);
        Self::open(folder.join("catalog.db"), SqlOptions::new(warehouse, Path::from("warehouse"))).await
    }

    /// A catalog that is gone with this value, for tests.
    ///
    /// # Errors
    /// `Unavailable`.
    pub async fn in_memory(options: SqlOptions) -> Result<Self> {
        Self::new(None, options).await
    }

    async fn new(file: Option<&FsPath>, options: SqlOptions) -> Result<Self> {
        let database = Database::open(file, options.catalog.clone(), options.namespace.clone()).await?;
        Ok(Self { database, options })
    }

    /// The store that holds the tables.
    pub fn warehouse(&self) -> &Warehouse {
        &self.options.warehouse
    }

    /// The namespace's own folder if it was given one, else that of its name.
    async fn namespace_folder(&self) -> Result<String> {
        let own = self.database.property("location").await?;
        let named = || {
            let levels = self.options.namespace.split('.');
            self.warehouse().url(&levels.fold(self.options.folder.clone(), Path::join))
        };
        Ok(own.unwrap_or_else(named))
    }
}

impl fmt::Debug for SqlCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlCatalog").field("options", &self.options).finish_non_exhaustive()
    }
}

#[async_trait]
impl Catalog for SqlCatalog {
    async fn list(&self) -> Result<Vec<String>> {
        self.database.names().await
    }

    async fn load(&self, table: &str) -> Result<Option<Loaded>> {
        let mut before: Option<String> = None;
        loop {
            let Some(pointer) = self.database.pointer(table).await.map_err(|e| e.with("table", table))?
            else {
                return Ok(None);
            };
            match metadata_file::read(self.warehouse(), &pointer).await {
                // A commit may have removed it since, and then the pointer is elsewhere.
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    if before.as_ref() == Some(&pointer) {
                        let message = "the metadata file that the catalog names is gone";
                        return Err(Error::new(ErrorKind::Corrupt, message).with("table", table).because(e));
                    }
                    before = Some(pointer);
                }
                other => return other.map(Some),
            }
        }
    }

    async fn create(&self, table: &str, creation: Creation) -> Result<Loaded> {
        let taken =
            || Error::new(ErrorKind::Conflict, "a table of this name exists already").with("table", table);
        if self.database.pointer(table).await?.is_some() {
            return Err(taken());
        }
        let folder = metadata_file::table_folder(&self.namespace_folder().await?, table)?;
        // Refused before anything is written when it lies outside.
        self.warehouse().path(&folder)?;
        let created =
            metadata_file::write(self.warehouse(), &metadata_file::first(folder, creation)?).await?;
        match self.database.insert(table, &created.metadata_location).await {
            Ok(()) => Ok(created),
            Err(e) if e.kind() == ErrorKind::Conflict => {
                metadata_file::remove(self.warehouse(), std::slice::from_ref(&created.metadata_location))
                    .await;
                Err(taken().because(e))
            }
            Err(e) => Err(e.with("table", table)),
        }
    }

    async fn commit(
        &self,
        table: &str,
        base: &Loaded,
        requirements: Vec<TableRequirement>,
        updates: Vec<TableUpdate>,
    ) -> Result<Swap> {
        if !metadata_file::hold(&requirements, &base.metadata) {
            return Ok(Swap::Lost);
        }
        let draft = metadata_file::next(base, updates)?;
        let next = metadata_file::write(self.warehouse(), &draft).await?;
        let swapped = self.database.swap(table, &base.metadata_location, &next.metadata_location).await;
        // After an error nobody knows if the file is the newest: it stays.
        if !swapped.map_err(|e| e.with("table", table))? {
            metadata_file::remove(self.warehouse(), std::slice::from_ref(&next.metadata_location)).await;
            return Ok(Swap::Lost);
        }
        metadata_file::remove(self.warehouse(), &draft.expired).await;
        Ok(Swap::Swapped(next))
    }
}
