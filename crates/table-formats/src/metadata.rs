//! Level 2: what an adapter does. It knows files and metadata, never a row.

use std::{any::Any, collections::BTreeMap, fmt, sync::Arc};

use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use object_store::{ObjectStore, path::Path};

use crate::contract::{CommitStamp, Result, StateVersion, TableDefinition, TableVersion, WriterId};

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
}
