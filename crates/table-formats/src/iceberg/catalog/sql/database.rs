//! The tables of an SQL catalog in an SQLite database, as other implementations lay them out.
//!
//! The layout and its names are those of Iceberg's JDBC catalog, which the SQL catalogs of PyIceberg and iceberg-rust
//! took over: <https://iceberg.apache.org/docs/latest/jdbc/>. Its first version has no `iceberg_type`, and is left so.

use std::{
    path::Path as FsPath,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OptionalExtension, TransactionBehavior, named_params, params};

use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// How long a statement waits for other processes.
const PATIENCE: Duration = Duration::from_secs(30);

const TABLES: &str = "CREATE TABLE IF NOT EXISTS iceberg_tables (
    catalog_name VARCHAR(255) NOT NULL,
    table_namespace VARCHAR(255) NOT NULL,
    table_name VARCHAR(255) NOT NULL,
    metadata_location VARCHAR(1000),
    previous_metadata_location VARCHAR(1000),
    iceberg_type VARCHAR(5),
    PRIMARY KEY (catalog_name, table_namespace, table_name)
);
CREATE TABLE IF NOT EXISTS iceberg_namespace_properties (
    catalog_name VARCHAR(255) NOT NULL,
    namespace VARCHAR(255) NOT NULL,
    property_key VARCHAR(255) NOT NULL,
    property_value VARCHAR(1000),
    PRIMARY KEY (catalog_name, namespace, property_key)
);";

/// An open database, and the part of it that is ours.
#[derive(Debug, Clone)]
pub(super) struct Database {
    connection: Arc<Mutex<Connection>>,
    catalog: String,
    namespace: String,
}

impl Database {
    /// Opens a database, or one in memory, and makes the tables that it lacks.
    ///
    /// # Errors
    /// `Invalid` when the file can't be opened, `Corrupt` when it is no database, `Unavailable`.
    pub(super) async fn open(file: Option<&FsPath>, catalog: String, namespace: String) -> Result<Self> {
        let place = file.map_or_else(|| ":memory:".to_owned(), |file| file.display().to_string());
        let file = file.map(FsPath::to_path_buf);
        let opened = blocking(move || {
            let connection = match file {
                Some(file) => Connection::open(file)?,
                None => Connection::open_in_memory()?,
            };
            connection.busy_timeout(PATIENCE)?;
            // A commit is on disk before it is acknowledged, and so is the end of its journal. The journal stays what it
            // is: the tables of others are in this file too.
            connection.pragma_update(None, "synchronous", "EXTRA")?;
            connection.execute_batch(TABLES)?;
            Ok(connection)
        });
        let connection = opened.await.map_err(|e| e.with("database", place))?;
        Ok(Self { connection: Arc::new(Mutex::new(connection)), catalog, namespace })
    }

    /// Where a table's metadata are.
    pub(super) async fn pointer(&self, table: &str) -> Result<Option<String>> {
        let (database, table) = (self.clone(), table.to_owned());
        let found = self.with(move |connection| {
            let sql = format!(
                "SELECT metadata_location FROM iceberg_tables WHERE catalog_name = ?1 AND table_namespace = ?2
                 AND table_name = ?3{}",
                only_tables(connection)?
            );
            let mut statement = connection.prepare(&sql)?;
            let values = params![database.catalog, database.namespace, table];
            statement.query_row(values, |row| row.get::<_, Option<String>>(0)).optional()
        });
        match found.await? {
            None => Ok(None),
            Some(Some(pointer)) => Ok(Some(pointer)),
            Some(None) => Err(Error::new(ErrorKind::Corrupt, "the catalog lists a table without metadata")),
        }
    }

    /// The names of all tables, sorted.
    pub(super) async fn names(&self) -> Result<Vec<String>> {
        let database = self.clone();
        self.with(move |connection| {
            let sql = format!(
                "SELECT table_name FROM iceberg_tables WHERE catalog_name = ?1 AND table_namespace = ?2{}
                 ORDER BY table_name",
                only_tables(connection)?
            );
            let mut statement = connection.prepare(&sql)?;
            let rows =
                statement.query_map(params![database.catalog, database.namespace], |row| row.get(0))?;
            rows.collect()
        })
        .await
    }

    /// A property of the namespace.
    pub(super) async fn property(&self, key: &'static str) -> Result<Option<String>> {
        let database = self.clone();
        self.with(move |connection| {
            let mut statement = connection.prepare(
                "SELECT property_value FROM iceberg_namespace_properties
                 WHERE catalog_name = ?1 AND namespace = ?2 AND property_key = ?3",
            )?;
            let values = params![database.catalog, database.namespace, key];
            Ok(statement.query_row(values, |row| row.get::<_, Option<String>>(0)).optional()?.flatten())
        })
        .await
    }

    /// Lists a table that was not there, and its namespace.
    ///
    /// # Errors
    /// `Conflict` when it is there.
    pub(super) async fn insert(&self, table: &str, pointer: &str) -> Result<()> {
        let (database, table, pointer) = (self.clone(), table.to_owned(), pointer.to_owned());
        self.with(move |connection| {
            let has_type = has_type(connection)?;
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            // The mark by which other implementations know a namespace without tables.
            transaction.execute(
                "INSERT INTO iceberg_namespace_properties VALUES (?1, ?2, 'exists', 'true') ON CONFLICT DO NOTHING",
                params![database.catalog, database.namespace],
            )?;
            let (column, value) = if has_type { (", iceberg_type", ", 'TABLE'") } else { ("", "") };
            transaction.execute(
                &format!(
                    "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location{column})
                     VALUES (?1, ?2, ?3, ?4{value})"
                ),
                params![database.catalog, database.namespace, table, pointer],
            )?;
            transaction.commit()
        })
        .await
    }

    /// Moves a table's pointer if it is where it was; false when it is not.
    pub(super) async fn swap(&self, table: &str, base: &str, next: &str) -> Result<bool> {
        let (database, table) = (self.clone(), table.to_owned());
        let (base, next) = (base.to_owned(), next.to_owned());
        self.with(move |connection| {
            let sql = format!(
                "UPDATE iceberg_tables SET metadata_location = :next, previous_metadata_location = :base
                 WHERE catalog_name = :catalog AND table_namespace = :namespace AND table_name = :table
                 AND metadata_location = :base{}",
                only_tables(connection)?
            );
            let mut statement = connection.prepare(&sql)?;
            let swapped = statement.execute(named_params! {
                ":next": next, ":base": base, ":catalog": database.catalog, ":namespace": database.namespace,
                ":table": table,
            })?;
            Ok(swapped > 0)
        })
        .await
    }

    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let connection = Arc::clone(&self.connection);
        blocking(move || work(&mut connection.lock().unwrap_or_else(PoisonError::into_inner))).await
    }
}

/// What leaves views out, where the database can have some.
fn only_tables(connection: &Connection) -> rusqlite::Result<&'static str> {
    let has_type = has_type(connection)?;
    Ok(if has_type { " AND (iceberg_type = 'TABLE' OR iceberg_type IS NULL)" } else { "" })
}

/// Asked each time: another program may add the column while we run.
fn has_type(connection: &Connection) -> rusqlite::Result<bool> {
    let mut statement = connection
        .prepare("SELECT 1 FROM pragma_table_info('iceberg_tables') WHERE name = 'iceberg_type'")?;
    statement.exists([])
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> rusqlite::Result<T> + Send + 'static,
) -> Result<T> {
    let result = tokio::task::spawn_blocking(work).await;
    result
        .map_err(|e| Error::new(ErrorKind::Internal, "a call of the catalog broke off").because(e))?
        .map_err(failed)
}

// All others are statements that are wrong: ours.
fn failed(e: rusqlite::Error) -> Error {
    let (kind, message) = match e.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => (ErrorKind::Conflict, "the catalog has it already"),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            (ErrorKind::Unavailable, "the catalog's database was locked by another process for too long")
        }
        Some(
            ErrorCode::SystemIoFailure | ErrorCode::FileLockingProtocolFailed | ErrorCode::SchemaChanged,
        ) => (ErrorKind::Unavailable, "the catalog's database did not answer"),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            (ErrorKind::Corrupt, "the catalog's file is no SQLite database, or a broken one")
        }
        Some(ErrorCode::DiskFull) => (ErrorKind::Unsupported, "there is no room for the catalog's database"),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            (ErrorKind::Invalid, "the catalog's database can't be opened, or not be written to")
        }
        // A column that is missing or of another type: the tables are not a catalog's.
        _ => (ErrorKind::Corrupt, "the catalog's database is not laid out as one"),
    };
    Error::new(kind, message).because(e)
}
