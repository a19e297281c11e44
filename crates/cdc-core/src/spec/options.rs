//! The options of a change flow, as a user writes them.

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
}

/// Shape of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoredAs {
    /// One row per key: the newest.
    #[default]
    Scd1,
    /// One row per version of a key, valid in `[__START_AT, __END_AT)`.
    Scd2,
}

impl std::fmt::Display for StoredAs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Scd1 => "SCD TYPE 1",
            Self::Scd2 => "SCD TYPE 2",
        })
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
