//! The options of a change flow, as a user writes them.

use arrow_schema::DataType;

/// Options of an `AUTO CDC` flow that the core understands; expressions are evaluated before they reach it.
///
/// Names resolve exactly first, then without regard to case where that is unambiguous.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CdcOptions {
    /// `KEYS (..)`: the columns that identify a row; at least one.
    pub keys: Vec<String>,
    /// `STORED AS ..`.
    pub stored_as: StoredAs,
    /// `COLUMNS (..)` or `COLUMNS * EXCEPT (..)`.
    pub columns: ColumnSelection,
    /// `TRACK HISTORY ON ..`: only a change in these columns opens a version. `All` means every kept non-key column.
    pub track_history: ColumnSelection,
    /// What to do with two different upserts of one key at one sequence.
    pub on_tie: OnTie,
    /// Where an SCD1 target keeps the sequence of the event that wrote a row.
    pub sequence_column: SequenceColumn,
    /// `IGNORE NULL UPDATES [ON ..]`: in these columns a NULL of an upsert means "not provided", at every leaf of a
    /// struct. `All` for all non-key columns, `Except` of an empty list too.
    pub ignore_null_updates: Option<ColumnSelection>,
    /// `COLUMNS TO UPDATE ..`: the source column that lists, record by record, the columns which the record sets. It is
    /// no column of the target.
    pub columns_to_update: Option<String>,
    /// Whether batches say, column by column, which rows set it ([`crate::ChangeInput::authored`]): a source that marks
    /// values as "not sent" needs it.
    pub authored_masks: bool,
    /// Bitemporal: what an event means whose system sequence is older than what was received before.
    pub system_time: SystemTime,
    /// What a NULL in a field of a struct sequence means.
    pub null_sequence_fields: NullSequenceFields,
    /// Whether side rows of deletes record when they were applied, so that [`crate::CdcSpec::collect_tombstones`] can
    /// collect them one day. Unset, they are kept for ever.
    pub tombstones_expire: bool,
}

impl CdcOptions {
    /// True when events may set some columns only.
    pub(crate) fn has_partial_updates(&self) -> bool {
        self.ignore_null_updates.is_some() || self.columns_to_update.is_some() || self.authored_masks
    }
}

/// Bitemporal: what becomes of an event whose system sequence is older than what was received before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SystemTime {
    /// It is taken at its word: past beliefs are rewritten, and counted.
    #[default]
    Declared,
    /// It counts as learned at the greatest system sequence received before; its own is kept beside it. What was
    /// believed yesterday never changes then, which is the system time of SQL:2011. The order of arrival matters.
    Monotonic,
}

/// What a NULL in a field of a struct sequence means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NullSequenceFields {
    /// The batch is refused.
    #[default]
    Refused,
    /// It sorts below every value. A sequence that is NULL as a whole is refused all the same.
    First,
}

/// Shape of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoredAs {
    /// One row per key: the newest.
    #[default]
    Scd1,
    /// One row per version of a key, valid in `[__START_AT, __END_AT)`.
    Scd2,
    /// One row per version and the system interval in which it was believed, `[__SYSTEM_START_AT, __SYSTEM_END_AT)`.
    Bitemporal,
}

impl std::fmt::Display for StoredAs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Scd1 => "SCD TYPE 1",
            Self::Scd2 => "SCD TYPE 2",
            Self::Bitemporal => "BITEMPORAL",
        })
    }
}

/// Types of the values by which events are ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequenceTypes {
    /// Of `SEQUENCE BY`: business time in a bitemporal target.
    pub sequence: DataType,
    /// Of `SYSTEM SEQUENCE BY`; bitemporal targets only.
    pub system: Option<DataType>,
}

impl From<&DataType> for SequenceTypes {
    fn from(sequence: &DataType) -> Self {
        Self { sequence: sequence.clone(), system: None }
    }
}

impl From<(&DataType, &DataType)> for SequenceTypes {
    fn from((sequence, system): (&DataType, &DataType)) -> Self {
        Self { sequence: sequence.clone(), system: Some(system.clone()) }
    }
}

/// A list of columns, or all but a list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ColumnSelection {
    /// Every column.
    #[default]
    All,
    /// These columns.
    Only(Vec<String>),
    /// Every column but these (`* EXCEPT (..)`).
    Except(Vec<String>),
}

/// What to do with a tie: two different upserts of one key at one sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnTie {
    /// The larger payload wins, whatever arrived first (R-TIE); the tie is counted.
    #[default]
    LargerWins,
    /// The batch is refused, naming key and sequence. Only ties among retained events are seen.
    Error,
}

/// Where an SCD1 target keeps the sequence of the event that wrote a row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SequenceColumn {
    /// In a column of its own, [`crate::names::SEQUENCE_AT`].
    #[default]
    SystemColumn,
    /// In this kept column, which is the plain sequence of the only flow that feeds the target.
    KeptColumn(String),
}
