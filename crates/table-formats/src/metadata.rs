//! Level 2: what an adapter does. It knows files and metadata, never a row.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
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
    /// Columns of one value that the file leaves out, in arrays of one: those that a table is partitioned by, in some
    /// formats.
    pub constants: Arc<BTreeMap<String, ArrayRef>>,
    /// Which rows of it don't count; `None` when all do.
    pub deleted: Option<Arc<DeletedRows>>,
}

impl DataFile {
    /// Rows that count, as far as it is known.
    pub fn live_rows(&self) -> u64 {
        let deleted = self.deleted.as_ref().and_then(|deleted| deleted.count).unwrap_or(0);
        self.rows.saturating_sub(deleted)
    }

    /// True when two files have the same rows: the same path, and the same rows of it count.
    pub fn is_same(&self, other: &Self) -> bool {
        self.path == other.path
            && match (&self.deleted, &other.deleted) {
                (None, None) => true,
                (Some(a), Some(b)) => a.places == b.places,
                (None, Some(_)) | (Some(_), None) => false,
            }
    }
}

/// Which rows of a file don't count: its deletion vector, or its position deletes. [`TableMetadata::deleted_rows`] reads
/// them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedRows {
    /// How many; `None` where the format does not say.
    pub count: Option<u64>,
    /// Where it stands which.
    pub places: Vec<DeletedPlace>,
}

/// Where it stands which rows of a file don't count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeletedPlace {
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
    /// Files that come. One of a path that goes in the same change is the same file with more rows deleted, as
    /// [`TableMetadata::mask`] gave it.
    pub add: Vec<DataFile>,
    /// Files that go.
    pub remove: Vec<Arc<DataFile>>,
    /// The schema from now on, when it changes.
    pub schema: Option<SchemaRef>,
    /// What the table is from now on, when it is replaced as a whole; instead of `schema`.
    pub definition: Option<Box<TableDefinition>>,
    /// Files that tell what changed, row by row, where the table records it: see [`TableMetadata::change_folder`].
    pub changed: Vec<DataFile>,
    /// What kind of change it is, for readers of the table's history.
    pub operation: Operation,
}

/// A file, and which of its rows shall not count any more.
#[derive(Debug, Clone)]
pub struct Mask {
    /// The file as it is in the base version.
    pub file: Arc<DataFile>,
    /// All its rows that don't count from now on, those of before included.
    pub deleted: RoaringBitmap,
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
    /// Rows moved to other files; none came, went or changed.
    Compact,
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

/// Tells rows apart that must not share a file.
///
/// # Contract
/// Each row of a batch is in exactly one group. Rows are in groups of one folder exactly if they may share a file.
pub trait Partitioner: fmt::Debug + Send + Sync {
    /// Rows of a batch in groups: the folder of their files, within the table's, and their places in the batch, rising.
    ///
    /// # Errors
    /// `Unsupported` for values that can't be told apart.
    fn split(&self, rows: &RecordBatch) -> Result<Vec<(String, UInt32Array)>>;
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
    /// Commits a change on a base. Without a stamp, batches, state and epoch stay those of the base: maintenance commits so.
    ///
    /// # Errors
    /// The store's.
    async fn commit(
        &self,
        base: &TableHead,
        change: FileChanges,
        stamp: Option<&CommitStamp>,
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
    async fn deleted_rows(&self, _: &DataFile) -> Result<RoaringBitmap> {
        Err(Error::new(ErrorKind::Unsupported, "this format marks no rows beside a file"))
    }
    /// Refuses a version whose files can't be masked, with the reason: they are rewritten instead.
    ///
    /// # Errors
    /// `Unsupported`.
    fn check_masks(&self, _: &TableHead) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "this format marks no rows beside a file"))
    }
    /// Whether masks make the table no harder to read than it is: where readers would need a newer protocol for the first
    /// mask, it takes somebody who asks for it.
    fn masks_unasked(&self, _: &TableHead) -> bool {
        true
    }
    /// Writes which rows of files don't count any more, beside them, and gives the files as they are with it. Nothing is
    /// visible of it before a commit that removes the old ones and adds these.
    ///
    /// # Errors
    /// The store's, `Unsupported`.
    async fn mask(&self, base: &TableHead, _: Vec<Mask>) -> Result<Vec<DataFile>> {
        self.check_masks(base).map(|()| Vec::new())
    }
    /// The columns as they are written to files of this table: with what the format wants said in the files themselves,
    /// such as the numbers of fields. `schema` may have columns that the base lacks.
    ///
    /// # Errors
    /// `Unsupported`.
    fn file_schema(&self, _: &TableHead, schema: &SchemaRef) -> Result<SchemaRef> {
        Ok(Arc::clone(schema))
    }
    /// What tells rows apart that must not share a file; `None` where any rows may. `schema` may have columns that the base
    /// lacks.
    ///
    /// # Errors
    /// `Unsupported`.
    fn partitioner(&self, _: &TableHead, _: &SchemaRef) -> Result<Option<Arc<dyn Partitioner>>> {
        Ok(None)
    }
    /// The folder, within the table's, for files that tell what a commit changed; `None` where the table does not record
    /// it, and its changes are found by comparing files.
    fn change_folder(&self, _: &TableHead) -> Option<&'static str> {
        None
    }
    /// Forgets the versions that were replaced by newer ones before a moment, in milliseconds since 1970, UTC; the newest
    /// version stays. Gives how many. Their files stay until somebody removes what no version names.
    ///
    /// # Errors
    /// The store's, `Unsupported`.
    async fn expire(&self, _before: i64) -> Result<u64> {
        Err(Error::new(ErrorKind::Unsupported, "this format keeps all versions"))
    }
    /// Every file that is named by a version which was the newest at a moment or after it, by its path within the table's
    /// folder: data files, files of deletes and of changes, and the format's own. What is under the table's folder, is not
    /// among them, and is old enough belongs to nobody.
    ///
    /// # Errors
    /// The store's, `Unsupported`.
    async fn named_files(&self, _since: i64) -> Result<BTreeSet<String>> {
        Err(Error::new(ErrorKind::Unsupported, "this format does not tell which files it needs"))
    }
}
