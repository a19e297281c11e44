//! What is the history of a target built with, and does a flow still mean the same?
//!
//! A target records these facts when it is made. A flow that means something else would make a mixture of both
//! histories, so drift is refused by name, and a full refresh is the remedy. What may change: the expressions behind the
//! clauses, columns that are not keys, how upserts say what they set, what happens to ties.

use std::fmt;

use arrow_schema::DataType;

use crate::{
    error::CdcError,
    spec::{CdcSpec, ColumnSelection, StoredAs},
};

/// The facts that a target records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Names and types of the keys, in declared order.
    pub keys: Vec<(String, DataType)>,
    /// Shape of the target.
    pub stored_as: StoredAs,
    /// Type of `SEQUENCE BY`.
    pub sequence_type: DataType,
    /// Type of `SYSTEM SEQUENCE BY`, of a bitemporal target.
    pub system_type: Option<DataType>,
    /// `TRACK HISTORY ON` as it was written, names sorted: all columns, or all but some, grow with the source; a list does
    /// not.
    pub tracked: ColumnSelection,
    /// SCD1: the column that holds the sequence of the event that wrote a row.
    pub sequence_column: Option<String>,
}

/// A fact of a [`Definition`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact {
    /// [`Definition::keys`].
    Keys,
    /// [`Definition::stored_as`].
    StoredAs,
    /// [`Definition::sequence_type`].
    SequenceType,
    /// [`Definition::system_type`].
    SystemType,
    /// [`Definition::tracked`].
    Tracked,
    /// [`Definition::sequence_column`].
    SequenceColumn,
}

impl Fact {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Keys,
        Self::StoredAs,
        Self::SequenceType,
        Self::SystemType,
        Self::Tracked,
        Self::SequenceColumn,
    ];

    /// The condition under which a target refuses a flow that has another one.
    pub fn condition(self) -> &'static str {
        match self {
            Self::Keys => "AUTOCDC_INVALID_STATE.KEY_SCHEMA_DRIFT",
            Self::StoredAs => "AUTOCDC_INVALID_STATE.SCD_TYPE_DRIFT",
            Self::SequenceType => "AUTOCDC_INVALID_STATE.SEQUENCING_TYPE_DRIFT",
            Self::SystemType => "AUTOCDC_INVALID_STATE.SYSTEM_SEQUENCING_TYPE_DRIFT",
            Self::Tracked => "AUTOCDC_INVALID_STATE.TRACK_HISTORY_DRIFT",
            Self::SequenceColumn => "AUTOCDC_INVALID_STATE.SEQUENCE_COLUMN_DRIFT",
        }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keys => "keys",
            Self::StoredAs => "shape",
            Self::SequenceType => "type of SEQUENCE BY",
            Self::SystemType => "type of SYSTEM SEQUENCE BY",
            Self::Tracked => "tracked columns",
            Self::SequenceColumn => "sequence column",
        })
    }
}

impl Definition {
    /// What a fact says, for messages.
    pub fn text(&self, fact: Fact) -> String {
        let none = || "none".to_owned();
        match fact {
            Fact::Keys => {
                let key = |(name, data_type): &(String, DataType)| format!("{name} {data_type}");
                self.keys.iter().map(key).collect::<Vec<_>>().join(", ")
            }
            Fact::StoredAs => self.stored_as.to_string(),
            Fact::SequenceType => self.sequence_type.to_string(),
            Fact::SystemType => self.system_type.as_ref().map_or_else(none, ToString::to_string),
            Fact::Tracked => match &self.tracked {
                ColumnSelection::All => "every kept column".to_owned(),
                ColumnSelection::Only(names) => names.join(", "),
                ColumnSelection::Except(names) => format!("all but {}", names.join(", ")),
            },
            Fact::SequenceColumn => self.sequence_column.clone().unwrap_or_else(none),
        }
    }

    fn same(&self, fact: Fact, other: &Self) -> bool {
        match fact {
            // A key is a set of columns; it identifies the same rows in any order.
            Fact::Keys => sorted(&self.keys) == sorted(&other.keys),
            Fact::StoredAs => self.stored_as == other.stored_as,
            Fact::SequenceType => self.sequence_type == other.sequence_type,
            Fact::SystemType => self.system_type == other.system_type,
            Fact::Tracked => self.tracked == other.tracked,
            Fact::SequenceColumn => self.sequence_column == other.sequence_column,
        }
    }

    /// What a fact says in a form that is equal for definitions which agree on it: to be stored, and compared later.
    pub fn canonical_text(&self, fact: Fact) -> String {
        match fact {
            Fact::Keys => Self { keys: sorted(&self.keys), ..self.clone() }.text(fact),
            Fact::StoredAs | Fact::SequenceType | Fact::SystemType | Fact::Tracked | Fact::SequenceColumn => {
                self.text(fact)
            }
        }
    }

    /// The first fact in which a flow differs from what its target records.
    ///
    /// # Errors
    /// [`CdcError::Drift`], with both sides.
    pub fn check(&self, now: &Self) -> Result<(), CdcError> {
        match Fact::ALL.into_iter().find(|fact| !self.same(*fact, now)) {
            None => Ok(()),
            Some(fact) => Err(CdcError::Drift { fact, recorded: self.text(fact), now: now.text(fact) }),
        }
    }
}

fn sorted(keys: &[(String, DataType)]) -> Vec<(String, DataType)> {
    let mut keys = keys.to_vec();
    keys.sort_by(|a, b| a.0.cmp(&b.0));
    keys
}

impl CdcSpec {
    /// What a target that this flow makes records.
    pub fn definition(&self) -> Definition {
        let key = |at: &usize| {
            let field = self.kept.fields().get(*at)?;
            Some((field.name().clone(), field.data_type().clone()))
        };
        Definition {
            keys: self.keys.iter().filter_map(key).collect(),
            stored_as: self.stored_as,
            sequence_type: self.sequence_type.clone(),
            system_type: self.system_type.clone(),
            tracked: self.track_history.clone(),
            sequence_column: (self.stored_as == StoredAs::Scd1)
                .then(|| self.sequence_column_name().to_owned()),
        }
    }
}
