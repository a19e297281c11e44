//! Everything that can be wrong with a definition or a batch, by the names that Spark and Lakeflow users know.

use arrow_schema::DataType;

use crate::spec::StoredAs;

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
        "AUTOCDC_RESERVED_COLUMN_NAME_CONFLICT: source column `{column}` carries a name that the engine reserves; rename it in the flow's query"
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
        "column `{column}` has type {found} in the source and {expected} in the target; cast it in the flow's query, or run a full refresh of the target"
    )]
    TargetColumnType {
        /// The column.
        column: String,
        /// Its type in the source.
        found: DataType,
        /// Its type in the target.
        expected: DataType,
    },
    /// The source lacks columns of a target whose shape does not keep them yet.
    #[error(
        "the source no longer has these columns of the {stored_as} target: {}; select them in the flow's query, as NULL if need be, or run a full refresh of the target", columns.join(", ")
    )]
    AbsentColumns {
        /// The target's shape.
        stored_as: StoredAs,
        /// The columns.
        columns: Vec<String>,
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
        "AUTOCDC_MICROBATCH_VALIDATION.NULL_SEQUENCE: {what} is NULL in {count} of {rows} rows, first in row {row}: {sample}"
    )]
    NullSequence {
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
    /// Arrow refused an operation that the spec's validation should have made possible.
    #[error("Arrow: {0}")]
    Arrow(String),
}

impl From<arrow_schema::ArrowError> for CdcError {
    fn from(error: arrow_schema::ArrowError) -> Self {
        Self::Arrow(error.to_string())
    }
}
