//! What may the runtime ask of a table, and what may the shared middle ask of a format?
//!
//! Two levels. The runtime sees **rows**: [`TableFormat`], [`Table`], [`TableSnapshot`]. A format's adapter deals in
//! **files and metadata** only: [`TableMetadata`](crate::metadata::TableMetadata). What lies between (reading, pruning, deleting, rewriting and writing
//! Parquet) is written once, in `lake`.
//!
//! # Contract
//! Each line has a function of its number in `conformance`.
//!
//! 1. **Whole or nothing.** A snapshot shows every row of a commit or none of them.
//! 2. **Snapshots don't move.** What a snapshot returned once it returns again, whatever was committed since.
//! 3. **Commits build on their base.** A commit whose read set was changed by another commit after its base is a
//!    [`CommitOutcome::Conflict`] and changes nothing.
//! 4. **Stamps come with the rows.** [`TableSnapshot::last_batch`] of a writer is the batch of its newest commit in that
//!    snapshot, and [`TableSnapshot::state_version`] the state version of the newest stamped commit.
//! 5. **No batch twice.** A commit whose writer's batch is not above the one its base carries is
//!    [`CommitOutcome::AlreadyApplied`] and changes nothing.
//! 6. **Fencing.** A commit whose epoch is below the base's is refused with [`ErrorKind::Conflict`].
//! 7. **Lookups miss nothing.** [`TableSnapshot::lookup`] returns every row of the given keys (of all keys where none are
//!    given) within the bound, each with an id that [`TableChange::Rows`] on that snapshot deletes; it may return more
//!    rows of those keys, none of others. What a bound says of `until` only spares work: an adapter may ignore it.
//! 8. **Deletes are exact.** Deleting ids removes those rows and no other; an id that is not of the base is an error.
//! 9. **Schemas hold.** Rows that do not fit the table's schema are refused by name before anything is written.
//! 10. **Columns come and widen.** A commit may add nullable columns; rows written before read as NULL there. Rows whose
//!     values have a wider type than their column (an integer or a float of more bits, a decimal of more digits) widen it,
//!     rows of before included, in the same commit; a key never widens. For an append that widens, a commit of another
//!     writer in between is a conflict. Rows of a narrower type are taken as they are.
//! 11. **Empty leaves the table.** After [`TableChange::Empty`] there is no row; schema and stamps remain.
//! 12. **Creation is exclusive.** Creating a table that exists is an error; opening one that does not is `None`.
//! 13. **Replacing makes a new table.** After [`TableChange::Replace`] the table's columns, keys, properties and comment
//!     are those of the definition, its rows are those that came with it, and its state version is the stamp's, all in one
//!     commit. Stamps of writers remain; older snapshots stay as they were. A commit of another writer in between is a
//!     conflict, whatever it did; rows that don't fit the definition and definitions that the format can't hold are
//!     refused before anything is written.
//! 14. **Commits say what they did.** [`Table::commits`] gives each commit after a version, once and in order, with its
//!     time and with what it did to rows: nothing, appended, deleted, changed, or replaced the table. A version whose log
//!     is gone is [`ErrorKind::NotFound`].
//! 15. **Changes add up.** The rows of a version, and what [`Table::changes`] gives of the commits after it, are the rows
//!     of a later version. Asked again it gives the same rows. A row that a commit only moved is not among them.
//!
//! 16. **Replacing where swaps.** After [`TableChange::ReplaceWhere`] the rows that met the condition are those that came
//!     with it, in one commit, and all others are as before. A row that comes without meeting the condition is refused,
//!     and nothing is changed.
//!
//! # A full refresh
//! empties a target and its side state together. Its flows' new incarnations are recorded first; then an empty side state
//! with the new keys is written, [`SideState::write_empty`](crate::SideState::write_empty) above the version that the
//! table names, and one [`TableChange::Replace`] without rows names it in its stamp, as **batch 0** of a new incarnation.
//! Whoever crashed on the way looks for that batch with [`TableSnapshot::last_batch`]: it is there or nothing happened.
//! A conflict means that somebody else committed: do the same on the newest version.

use std::{collections::BTreeMap, fmt, sync::Arc};

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use futures::stream::BoxStream;
use strandline_cdc_core::{Bound, Rows};

use crate::{
    error::{Error, ErrorKind},
    parquet::ReadCounts,
};

/// Result of table operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Rows with their ids, as they are read.
pub type RowStream = BoxStream<'static, Result<Rows>>;

/// Rows without ids, as they are written.
pub type BatchStream = BoxStream<'static, Result<RecordBatch>>;

mod history;
mod maintenance;

pub(crate) use history::changed_rows;
pub use history::{
    AppendedFile, CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION, CommitKind, DELETE, INSERT, TableCommit,
    UPDATE_POSTIMAGE, UPDATE_PREIMAGE, change_columns, with_change_columns,
};
pub use maintenance::{FileSums, MaintainOptions, Maintained};

/// Version of a table: 0 after creation, one more with each commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableVersion(pub u64);

/// Version of a table's side state; 0 is the empty state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StateVersion(pub u64);

impl fmt::Display for TableVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for StateVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Who commits: a flow of a pipeline, in one of its incarnations (a full refresh or a checkpoint reset begins a new one).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriterId {
    /// The pipeline.
    pub pipeline: String,
    /// The flow.
    pub flow: String,
    /// Its incarnation, from 0.
    pub incarnation: u64,
}

/// What a commit says about itself, in the same commit as the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitStamp {
    /// Who commits.
    pub writer: WriterId,
    /// Number of the writer's batch, from 1, never used twice within an incarnation; 0 is for the [`TableChange::Replace`]
    /// that an incarnation begins with.
    pub batch: u64,
    /// The version of the side state that belongs to the table from this commit on.
    pub state: StateVersion,
    /// The writer's epoch: a commit with a lower one than the table carries is refused.
    pub epoch: u64,
}

/// What a table is created with, and what [`TableChange::Replace`] makes of it.
#[derive(Debug, Clone)]
pub struct TableDefinition {
    /// Columns.
    pub schema: SchemaRef,
    /// Columns by which rows are found and files are sorted; empty for an append-only table.
    pub keys: Vec<String>,
    /// Properties, kept verbatim; the engine's own begin with `strandline.`.
    pub properties: BTreeMap<String, String>,
    /// A comment for readers.
    pub comment: Option<String>,
}

/// A family of tables in one format at one place.
///
/// # Contract
/// Lines 11 and 12 of the [module's list](self).
#[async_trait]
pub trait TableFormat: fmt::Debug + Send + Sync {
    /// Name of the format, as a user writes it.
    fn name(&self) -> &'static str;
    /// Refuses a schema that the format can't hold, naming the column and its type; nothing is rounded silently.
    ///
    /// # Errors
    /// `Unsupported`.
    fn check_schema(&self, schema: &SchemaRef) -> Result<()>;
    /// Refuses to maintain rows by key, in a format that can only append and overwrite: such targets are named before
    /// anything runs.
    ///
    /// # Errors
    /// `Unsupported`.
    fn check_row_changes(&self) -> Result<()> {
        Ok(())
    }
    /// Creates an empty table.
    ///
    /// # Errors
    /// `Conflict` when it exists; `Unsupported` for a type that the format can't hold.
    async fn create(&self, name: &str, definition: &TableDefinition) -> Result<Arc<dyn Table>>;
    /// Opens a table, or `None` when there is none of that name.
    ///
    /// # Errors
    /// `Corrupt` when something lies there that is not such a table.
    async fn open(&self, name: &str) -> Result<Option<Arc<dyn Table>>>;
    /// Names of the tables, sorted.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn list(&self) -> Result<Vec<String>>;
    /// Opens a table of this format that lies elsewhere, in a folder or at a URL, and belongs to somebody else: it can be
    /// read, not changed. `None` when there is none.
    ///
    /// # Errors
    /// `Unsupported` when the format has no tables of others, or for a place or a table that can't be read.
    async fn open_path(&self, path: &str) -> Result<Option<Arc<dyn Table>>> {
        let message = format!("tables of format {} lie in no place of their own", self.name());
        Err(Error::new(ErrorKind::Unsupported, message).with("path", path))
    }
    /// The same format in a folder of the machine, which is made where it does not exist: its tables are the folders
    /// within. For tables that are filled outside of the pipeline's storage.
    ///
    /// # Errors
    /// `Unsupported` when the format has no tables elsewhere, or the folder can't be made.
    fn in_folder(&self, folder: &std::path::Path) -> Result<Arc<dyn TableFormat>> {
        let message = format!("tables of format {} lie in no place of their own", self.name());
        Err(Error::new(ErrorKind::Unsupported, message).with("path", folder.display().to_string()))
    }
}

/// A table that flows maintain.
///
/// # Contract
/// Lines 1 to 11 and 13 to 16 of the [module's list](self).
#[async_trait]
pub trait Table: fmt::Debug + Send + Sync {
    /// The newest version.
    ///
    /// # Errors
    /// `Unavailable`, `Corrupt`.
    async fn snapshot(&self) -> Result<Arc<dyn TableSnapshot>>;
    /// An older version.
    ///
    /// # Errors
    /// `NotFound` when it is not retained.
    async fn at(&self, version: TableVersion) -> Result<Arc<dyn TableSnapshot>>;
    /// Commits a change that was made from `base`. After an `Err` the commit may have landed: look at
    /// [`TableSnapshot::last_batch`] of a new snapshot before trying again.
    ///
    /// # Errors
    /// `Invalid` for rows that don't fit, `Conflict` for a fenced writer, else the store's.
    async fn commit(
        &self,
        base: &dyn TableSnapshot,
        change: TableChange,
        stamp: &CommitStamp,
    ) -> Result<CommitOutcome>;
    /// What each commit after `after`, up to `until`, did, oldest first. `None` begins with version 0.
    ///
    /// # Errors
    /// `NotFound` when the log of one of them is not retained.
    async fn commits(&self, after: Option<TableVersion>, until: TableVersion) -> Result<Vec<TableCommit>>;
    /// The rows that the commits `first` to `last` changed, commit by commit: the columns of version `last`, then those of
    /// [`change_columns`]. Where a row of one identity was changed, its images before and after are
    /// [`UPDATE_PREIMAGE`] and [`UPDATE_POSTIMAGE`]; other rows are [`DELETE`] and [`INSERT`].
    ///
    /// # Errors
    /// `NotFound` when log or files are not retained; `Unsupported` when the table does not record its changes, or was
    /// replaced by one with other columns.
    async fn changes(&self, first: TableVersion, last: TableVersion) -> Result<BatchStream>;
    /// The first version that was committed at or after a moment, in milliseconds since 1970, UTC; `None` when none was.
    ///
    /// # Errors
    /// The store's.
    async fn first_since(&self, millis: i64) -> Result<Option<TableVersion>>;
    /// Compacts files, forgets old versions and removes what belongs to none. No snapshot of a version that is kept shows
    /// other rows for it, and a commit of another writer is neither lost nor kept waiting. After an `Err` a part may be done.
    ///
    /// # Errors
    /// `Unsupported` when the table is not ours to maintain, else the store's.
    async fn maintain(&self, _: &MaintainOptions) -> Result<Maintained> {
        Err(Error::new(ErrorKind::Unsupported, "this table can't be maintained"))
    }
    /// What was read of the table's data files through this value and its snapshots until now, by look-ups, scans and
    /// rewriting. Nothing where it is not counted.
    fn read_counts(&self) -> ReadCounts {
        ReadCounts::default()
    }
}

/// An immutable view of one version of a table.
///
/// # Contract
/// Lines 2, 4 and 7 of the [module's list](self).
#[async_trait]
pub trait TableSnapshot: fmt::Debug + Send + Sync {
    /// Its version.
    fn version(&self) -> TableVersion;
    /// Its columns.
    fn schema(&self) -> SchemaRef;
    /// Its properties.
    fn properties(&self) -> &BTreeMap<String, String>;
    /// Number of the newest batch that this writer committed.
    fn last_batch(&self, writer: &WriterId) -> Option<u64>;
    /// The side state that belongs to this version.
    fn state_version(&self) -> StateVersion;
    /// The greatest epoch that committed.
    fn epoch(&self) -> u64;
    /// What tells the table from another one of its name, whatever was committed to it.
    fn identity(&self) -> &str;
    /// Whether [`Table::changes`] can tell what became of this version's rows; the reason why not.
    ///
    /// # Errors
    /// `Unsupported`.
    fn check_changes(&self) -> Result<()>;
    /// Rows of given keys.
    ///
    /// # Errors
    /// The store's, or `Corrupt`.
    async fn lookup(&self, plan: &LookupPlan) -> Result<RowStream>;
    /// All rows, of all columns or of some.
    ///
    /// # Errors
    /// The store's, or `Corrupt`.
    async fn scan(&self, columns: Option<&[String]>) -> Result<BatchStream>;
    /// The files that versions after `since`, up to this one, appended; `None` as `since` gives every file.
    ///
    /// # Errors
    /// `Conflict` when a row of `since` was deleted or rewritten on the way; `NotFound` when `since` is not retained.
    async fn appended_since(&self, since: Option<TableVersion>) -> Result<Vec<AppendedFile>>;
    /// Rows of one file that [`TableSnapshot::appended_since`] named.
    ///
    /// # Errors
    /// `NotFound` when the file is not of this version.
    async fn read_file(&self, path: &str) -> Result<BatchStream>;
    /// For downcasting to the adapter's own snapshot, by the adapter alone.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// Which rows a lookup wants.
#[derive(Debug, Clone)]
pub struct LookupPlan {
    /// Distinct keys, canonical: key columns in declared order. `None` for every row, whatever its key.
    pub keys: Option<RecordBatch>,
    /// Columns wanted; `None` for all.
    pub columns: Option<Vec<String>>,
    /// Only rows at or after this are needed: one value a key, or one for all rows where no keys are given.
    pub bound: Option<Bound>,
}

/// A change of a table's rows.
pub enum TableChange {
    /// Some rows go, by the ids that a lookup on the base gave; some come. Depends on what was read from the base: a
    /// commit of another writer in between is a conflict.
    Rows {
        /// Ids of rows that go.
        deletes: Vec<u64>,
        /// Rows that come, in the table's schema.
        inserts: Vec<RecordBatch>,
    },
    /// Rows come, whatever else happened: commits of other writers in between are no conflict, unless they moved the
    /// side state on, which the stamp would set back.
    Append(BatchStream),
    /// The rows that meet a condition go, and these come, each of which must meet it. Depends on all rows of the base.
    ReplaceWhere {
        /// Which rows.
        condition: Arc<dyn RowCondition>,
        /// Rows that come.
        rows: BatchStream,
    },
    /// Every row goes.
    Empty,
    /// Every row goes, and these come.
    Overwrite(BatchStream),
    /// Every row goes, these come, and the table is what the definition says from now on: columns may go, come and change
    /// their types. See the module's text for a full refresh.
    Replace {
        /// Columns, keys, properties and comment from now on.
        definition: Box<TableDefinition>,
        /// Rows that come, in the definition's columns; nullable ones may be missing.
        rows: BatchStream,
    },
}

/// A condition on rows.
///
/// # Contract
/// The answer for a row depends on the row alone.
pub trait RowCondition: fmt::Debug + Send + Sync {
    /// For each row, whether it meets the condition; NULL counts as not.
    ///
    /// # Errors
    /// `Invalid` when the condition can't be asked of such rows.
    fn met(&self, rows: &RecordBatch) -> Result<BooleanArray>;
}

impl fmt::Debug for TableChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows { deletes, inserts } => f
                .debug_struct("Rows")
                .field("deletes", &deletes.len())
                .field("inserts", &inserts.len())
                .finish(),
            Self::Append(_) => f.write_str("Append"),
            Self::ReplaceWhere { condition, .. } => {
                f.debug_struct("ReplaceWhere").field("condition", condition).finish_non_exhaustive()
            }
            Self::Empty => f.write_str("Empty"),
            Self::Overwrite(_) => f.write_str("Overwrite"),
            Self::Replace { definition, .. } => {
                f.debug_struct("Replace").field("definition", definition).finish_non_exhaustive()
            }
        }
    }
}

/// How a commit ended, as far as it can be foreseen.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum CommitOutcome {
    /// It landed.
    Committed(Committed),
    /// The base carries this writer's batch, or a later one, already. Nothing was written.
    AlreadyApplied {
        /// The batch that it carries.
        batch: u64,
    },
    /// Another commit came in between, and this change depends on what it may have touched: read and reconcile again.
    Conflict {
        /// The version to read.
        latest: TableVersion,
        /// Files written in vain.
        left_over: Vec<String>,
    },
}

/// A commit that landed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Committed {
    /// Version that it made.
    pub version: u64,
    /// Rows written, moved ones included.
    pub rows_written: u64,
    /// Rows removed by id.
    pub rows_deleted: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Files added.
    pub files_added: u64,
    /// Files some of whose rows were marked as deleted beside them.
    pub files_masked: u64,
    /// Files removed.
    pub files_removed: u64,
}
