//! Everything that can be wrong with a definition or a batch, by the names that Spark and Lakeflow users know.

use arrow_schema::DataType;

use crate::{definition::Fact, spec::StoredAs};

/// Why a definition or a batch was refused. Nothing has been changed when one of these is returned.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CdcError {
    /// No key column was given.
    #[error("AUTOCDC_EMPTY_KEYS: KEYS needs at least one column")]
    EmptyKeys,
    /// One column was named twice in a list that takes each once.
    #[error("column `{column}` is listed twice in {clause}")]
    DuplicateColumn {
        /// The clause.
        clause: &'static str,
        /// The column.
        column: String,
    },
    /// A list names a column that the source does not have.
    #[error("AUTOCDC_COLUMNS_NOT_FOUND_IN_SCHEMA: {clause} names `{column}`, which is not among the columns: {}", available.join(", "))]
    UnknownColumn {
        /// The clause that names it.
        clause: &'static str,
        /// The name.
        column: String,
        /// Names that exist.
        available: Vec<String>,
    },
    /// A name fits several columns that differ in case only.
    #[error("{clause} names `{column}`, which fits several columns: {}; write one of them exactly", candidates.join(", "))]
    AmbiguousColumn {
        /// The clause that names it.
        clause: &'static str,
        /// The name.
        column: String,
        /// Columns that it fits.
        candidates: Vec<String>,
    },
    /// An include list is empty.
    #[error("{clause} needs at least one column")]
    EmptyColumnList {
        /// The clause.
        clause: &'static str,
    },
    /// The column selection drops a key.
    #[error(
        "AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA: key `{key}` is dropped by the column selection; keep it in COLUMNS"
    )]
    KeyNotSelected {
        /// The key.
        key: String,
    },
    /// A source column carries a reserved name.
    #[error(
        "AUTOCDC_RESERVED_COLUMN_NAME_PREFIX_CONFLICT: source column `{column}` carries a name that the engine reserves; rename it in the flow's query"
    )]
    ReservedColumn {
        /// The column.
        column: String,
    },
    /// Two columns of the source have one name.
    #[error("the source has two columns named `{column}`; rename one in the flow's query")]
    AmbiguousSource {
        /// The name.
        column: String,
    },
    /// The sequence has a type without an order.
    #[error(
        "AUTOCDC_MICROBATCH_VALIDATION.NON_ORDERABLE_SEQUENCE: SEQUENCE BY has type {data_type}, which has no order"
    )]
    NonOrderableSequence {
        /// The type.
        data_type: DataType,
    },
    /// A key has a type that has no equality.
    #[error("key `{key}` has type {data_type}, which cannot identify a row")]
    UnhashableKey {
        /// The key.
        key: String,
        /// Its type.
        data_type: DataType,
    },
    /// `TRACK HISTORY ON` on a target that is not SCD2.
    #[error(
        "AUTOCDC_TRACK_HISTORY_REQUIRES_SCD2: TRACK HISTORY ON needs STORED AS SCD TYPE 2, the target is {stored_as}"
    )]
    TrackHistoryRequiresScd2 {
        /// The target's shape.
        stored_as: StoredAs,
    },
    /// A tracked column is a key.
    #[error("TRACK HISTORY ON names key `{column}`: a key never changes within a row, name other columns")]
    TrackedKey {
        /// The column.
        column: String,
    },
    /// The kept column that should hold the sequence has another type than the sequence.
    #[error("column `{column}` has type {found}, so it does not hold the sequence of type {expected}")]
    SequenceColumnType {
        /// The column.
        column: String,
        /// Its type.
        found: DataType,
        /// The sequence's type.
        expected: DataType,
    },
    /// A column of the source has another type than the target's column of that name.
    #[error(
        "CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE: column `{column}` has type {found} in the source and {expected} in the target; cast it in the flow's query, or run a full refresh of the target"
    )]
    TargetColumnType {
        /// The column.
        column: String,
        /// Its type in the source.
        found: DataType,
        /// Its type in the target.
        expected: DataType,
    },
    /// A flow means something else than what its target was built with.
    #[error("{}: the {fact} of the target changed from {recorded} to {now}; a full refresh of the target takes it up", fact.condition())]
    Drift {
        /// What changed.
        fact: Fact,
        /// What the target records.
        recorded: String,
        /// What the flow has.
        now: String,
    },
    /// Two clauses of a flow exclude each other, or one needs another.
    #[error("{condition}: {why}")]
    ConflictingClauses {
        /// The condition's name.
        condition: &'static str,
        /// What excludes what, or what is missing.
        why: &'static str,
    },
    /// A clause of partial updates names a key.
    #[error("{clause} names key `{column}`: a key is part of every record, name other columns")]
    PartialKey {
        /// The clause.
        clause: &'static str,
        /// The column.
        column: String,
    },
    /// The column of `COLUMNS TO UPDATE` is no list of names.
    #[error("COLUMNS TO UPDATE names `{column}`, which has type {found}; it must be a list of strings")]
    ColumnsToUpdateType {
        /// The column.
        column: String,
        /// Its type.
        found: DataType,
    },
    /// A record lists a column that it can't update.
    #[error(
        "AUTOCDC_COLUMNS_TO_UPDATE_INVALID: `{mask}` lists `{listed}` in {count} of {rows} rows, which is no column to update (those are: {}), first in row {row}: {sample}", available.join(", ")
    )]
    ColumnsToUpdateInvalid {
        /// The column with the lists.
        mask: String,
        /// What it lists.
        listed: String,
        /// Rows with such a name.
        count: usize,
        /// Rows of the batch.
        rows: usize,
        /// First such row, counted from 0.
        row: usize,
        /// That row, shortened.
        sample: String,
        /// Columns that can be listed.
        available: Vec<String>,
    },
    /// An event of a kind that the target's shape does not have.
    #[error(
        "{condition}: row {row} of the batch is a {what}, which a target stored as {stored_as} does not take: {sample}"
    )]
    EventOfOtherShape {
        /// The condition's name.
        condition: &'static str,
        /// The kind of event.
        what: &'static str,
        /// The target's shape.
        stored_as: StoredAs,
        /// First such row, counted from 0.
        row: usize,
        /// That row, shortened.
        sample: String,
    },
    /// A key is NULL.
    #[error(
        "AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY: key `{column}` is NULL in {count} of {rows} rows, first in row {row}: {sample}"
    )]
    NullKey {
        /// The key column.
        column: String,
        /// Rows with NULL.
        count: usize,
        /// Rows of the batch.
        rows: usize,
        /// First such row, counted from 0.
        row: usize,
        /// That row, shortened.
        sample: String,
    },
    /// A sequence is NULL, or a field of a struct sequence is.
    #[error(
        "AUTOCDC_MICROBATCH_VALIDATION.{condition}: {what} is NULL in {count} of {rows} rows, first in row {row}: {sample}"
    )]
    NullSequence {
        /// `NULL_SEQUENCE`, or `NULL_SYSTEM_SEQUENCE`.
        condition: &'static str,
        /// `SEQUENCE BY`, or the field of it that is NULL.
        what: String,
        /// Rows with NULL.
        count: usize,
        /// Rows of the batch.
        rows: usize,
        /// First such row, counted from 0.
        row: usize,
        /// That row, shortened.
        sample: String,
    },
    /// Two different upserts of one key at one sequence, under `on_tie = error`.
    #[error(
        "two different upserts of key {key} at sequence {sequence} ({count} such ties in the batch), and on_tie is error"
    )]
    Tie {
        /// The key, printed.
        key: String,
        /// The sequence, printed.
        sequence: String,
        /// Ties in the batch.
        count: usize,
    },
    /// A batch does not have the schema that the spec was built for.
    #[error("{what} does not fit the flow's definition: expected {expected}, found {found}")]
    SchemaMismatch {
        /// Which input.
        what: &'static str,
        /// What the spec wants.
        expected: String,
        /// What came.
        found: String,
    },
    /// The stored rows contradict themselves: overlapping versions, an unknown side row, ...
    #[error(
        "stored rows of key {key} are not a valid history: {why}; a full refresh of the target rebuilds it"
    )]
    InvalidState {
        /// The key, printed.
        key: String,
        /// What is wrong.
        why: String,
    },
    /// A snapshot, or the target beside it, has two rows of one key.
    #[error(
        "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.DUPLICATE_KEY_VIOLATION: {count} rows of {what} repeat a key, first {key}; nothing of the snapshot is applied"
    )]
    DuplicateKey {
        /// The snapshot, or the target.
        what: &'static str,
        /// The first such key, printed.
        key: String,
        /// Rows beyond the first of their key.
        count: usize,
    },
    /// A snapshot's version is NULL, or not exactly one value.
    #[error(
        "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.NULL_SNAPSHOT_VERSION: a snapshot needs exactly one version that is not NULL, found {found}"
    )]
    SnapshotVersion {
        /// What came.
        found: String,
    },
    /// A snapshot's version is not above the last one.
    #[error(
        "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.OUT_OF_ORDER_SNAPSHOT_VERSION: version {version} is not above {last}, the last one that was applied"
    )]
    OutOfOrderSnapshot {
        /// The version that came.
        version: String,
        /// The last version.
        last: String,
    },
    /// `VALID TO` does not lie after the sequence of its row.
    #[error(
        "AUTOCDC_MICROBATCH_VALIDATION.EMPTY_VALIDITY: VALID TO is not above SEQUENCE BY in {count} of {rows} rows with an end, first {end} after {start}: {sample}"
    )]
    EmptyValidity {
        /// Such rows.
        count: usize,
        /// Rows with an end.
        rows: usize,
        /// The end, printed.
        end: String,
        /// The sequence, printed.
        start: String,
        /// That row, shortened.
        sample: String,
    },
    /// A snapshot for a target whose tombstones were collected.
    #[error(
        "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.BELOW_HORIZON: tombstones of the target up to {horizon} were collected, so that a snapshot may bring back what was deleted; set accept_horizon to take it"
    )]
    SnapshotBelowHorizon {
        /// The horizon, printed.
        horizon: String,
    },
    /// A snapshot would delete more than its guard allows.
    #[error(
        "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.TOO_MANY_DELETES: the snapshot of version {version} would delete {deleted} of {rows} rows, more than a fraction of {allowed} (and at least {at_least}): a failed export is likelier than such a source; raise max_delete_fraction to 1 to accept it"
    )]
    SnapshotDeletesTooMuch {
        /// Its version.
        version: String,
        /// Rows that would go.
        deleted: usize,
        /// Rows of the target that are current.
        rows: usize,
        /// The fraction that is allowed, from 0 to 1.
        allowed: f64,
        /// Deletes below this number are never refused.
        at_least: usize,
    },
    /// Arrow refused an operation that the spec's validation should have made possible.
    #[error("Arrow: {0}")]
    Arrow(String),
}

impl From<arrow_schema::ArrowError> for CdcError {
    fn from(error: arrow_schema::ArrowError) -> Self {
        Self::Arrow(error.to_string())
    }
}
