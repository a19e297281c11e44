//! Level 2: what an adapter does. It knows files and metadata, never a row.

use std::{any::Any, collections::BTreeMap, fmt, sync::Arc};

use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use object_store::{ObjectStore, path::Path};
use roaring::RoaringBitmap;

use crate::{
    contract::{CommitStamp, Result, StateVersion, TableDefinition, TableVersion, WriterId},
    error::{Error, ErrorKind},
};

/// A Parquet file of a table, immutable.
#[derive(Debug, Clone)]
pub struct DataFile {
    /// Path within the table's folder.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Rows.
    pub rows: u64,
    /// Statistics by top-level column, as far as they are known.
    pub stats: BTreeMap<String, ColumnStats>,
    /// What else makes its rows; nothing for files of ours.
    pub overlay: Option<Arc<Overlay>>,
}

/// What makes a file's rows besides the file: other writers leave columns out that are the same in all rows, and mark rows
/// as deleted beside the file.
#[derive(Debug, Clone, Default)]
pub struct Overlay {
    /// Columns of one value, in an array of one.
    pub constants: BTreeMap<String, ArrayRef>,
    /// Which rows don't count.
    pub deleted: Option<DeletedRows>,
}

/// Where it stands which rows of a file don't count.
#[derive(Debug, Clone)]
pub enum DeletedRows {
    /// Here: in the format's own encoding.
    Inline(Vec<u8>),
    /// In a file of the table's folder, from an offset.
    File {
        /// Path within the table's folder.
        path: String,
        /// First byte.
        offset: u64,
        /// Bytes.
        size: u64,
    },
}

/// What one commit did to a table's files.
#[derive(Debug, Clone)]
pub struct FileCommit {
    /// The version that it made.
    pub version: TableVersion,
    /// When, in milliseconds since 1970, UTC.
    pub timestamp: i64,
    /// Files whose rows came.
    pub added: Vec<Arc<DataFile>>,
    /// Files whose rows went.
    pub removed: Vec<Arc<DataFile>>,
    /// Files that hold what changed, row by row, with a column `_change_type`. If there are any, they tell the commit's
    /// changes, and not the files that came and went.
    pub changed: Vec<Arc<DataFile>>,
    /// True when files went, be it that their rows are in others.
    pub removes_files: bool,
    /// True when a column went or changed its type.
    pub replaces_columns: bool,
}

/// Statistics of a column in a file. Bounds may be wider than the values, never narrower.
#[derive(Debug, Clone, Default)]
pub struct ColumnStats {
    /// A value that no value is below, in an array of one; `None` when it is not known.
    pub min: Option<ArrayRef>,
    /// A value that no value is above.
    pub max: Option<ArrayRef>,
    /// How many values are NULL.
    pub nulls: Option<u64>,
}

/// Metadata of one version of a table.
#[derive(Clone)]
pub struct TableHead {
    /// The version.
    pub version: TableVersion,
    /// Columns.
    pub schema: SchemaRef,
    /// Key columns.
    pub keys: Vec<String>,
    /// Properties.
    pub properties: BTreeMap<String, String>,
    /// Newest batch of each writer.
    pub batches: BTreeMap<WriterId, u64>,
    /// State version of the newest stamped commit.
    pub state: StateVersion,
    /// Greatest epoch.
    pub epoch: u64,
    /// Files, sorted by path: a file's place in this list is part of its rows' ids.
    pub files: Arc<Vec<Arc<DataFile>>>,
    /// What tells the table from another one of its name.
    pub identity: Arc<str>,
    /// What else the adapter needs to commit on this version.
    pub adapter: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for TableHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableHead")
            .field("version", &self.version)
            .field("files", &self.files.len())
            .field("epoch", &self.epoch)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// What a commit does to a table's files.
#[derive(Debug, Clone, Default)]
pub struct FileChanges {
    /// Files that come.
    pub add: Vec<DataFile>,
    /// Files that go.
    pub remove: Vec<Arc<DataFile>>,
    /// The schema from now on, when it changes.
    pub schema: Option<SchemaRef>,
    /// What the table is from now on, when it is replaced as a whole; instead of `schema`.
    pub definition: Option<Box<TableDefinition>>,
    /// What kind of change it is, for readers of the table's history.
    pub operation: Operation,
}

/// Kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Operation {
    /// Rows went and came.
    #[default]
    Merge,
    /// Rows came.
    Append,
    /// Everything went, and rows may have come.
    Overwrite,
    /// The same, and the table became another one.
    Replace,
}

/// How a metadata commit ended.
#[derive(Debug, Clone)]
#[must_use]
pub enum MetadataOutcome {
    /// It landed, and this is the table now.
    Committed(TableHead),
    /// There is a version above the base. Nothing was committed.
    Conflict {
        /// The newest version.
        latest: TableVersion,
    },
}

/// A table's metadata, to a format's adapter.
///
/// # Contract
/// A commit lands as exactly the version after its base, whole, or not at all; its stamp lands with it. After an `Err`
/// from [`TableMetadata::commit`] it may have landed or not.
#[async_trait]
pub trait TableMetadata: fmt::Debug + Send + Sync + 'static {
    /// The store that holds the table.
    fn store(&self) -> &Arc<dyn ObjectStore>;
    /// The table's folder in the store.
    fn root(&self) -> &Path;
    /// Refuses a schema that the format can't hold.
    ///
    /// # Errors
    /// `Unsupported`.
    fn check_schema(&self, schema: &SchemaRef) -> Result<()>;
    /// Refuses what a table of this format can't be: its columns, keys or properties.
    ///
    /// # Errors
    /// `Unsupported`, `Invalid`.
    fn check_definition(&self, definition: &TableDefinition) -> Result<()>;
    /// The newest version, or the one asked for.
    ///
    /// # Errors
    /// `NotFound` for a version that is not retained, else the store's.
    async fn head(&self, at: Option<TableVersion>) -> Result<TableHead>;
    /// Commits a change on a base.
    ///
    /// # Errors
    /// The store's.
    async fn commit(
        &self,
        base: &TableHead,
        change: FileChanges,
        stamp: &CommitStamp,
    ) -> Result<MetadataOutcome>;
    /// What each commit after `after`, up to `until`, did, oldest first; `None` begins with version 0.
    ///
    /// # Errors
    /// `NotFound` when the log of one of them is not retained.
    async fn commits(&self, after: Option<TableVersion>, until: TableVersion) -> Result<Vec<FileCommit>>;
    /// The first version that was committed at or after a moment, in milliseconds since 1970, UTC.
    ///
    /// # Errors
    /// The store's.
    async fn first_since(&self, millis: i64) -> Result<Option<TableVersion>>;
    /// Refuses a version whose later changes can't be told, with the reason.
    ///
    /// # Errors
    /// `Unsupported`.
    fn check_changes(&self, _: &TableHead) -> Result<()> {
        Ok(())
    }
    /// The positions of a file's rows that don't count.
    ///
    /// # Errors
    /// The store's, `Corrupt`.
    async fn deleted_rows(&self, _: &DeletedRows) -> Result<RoaringBitmap> {
        Err(Error::new(ErrorKind::Unsupported, "this format marks no rows beside a file"))
    }
}
