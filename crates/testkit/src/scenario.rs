//! How is a case written down once, and run against every shape and every storage format?
//!
//! A scenario is a text file: what the flow means, which batches arrive, and what the target must then show. The format is
//! described in `scenarios/README.md`. [`parse`] and [`load_dir`] read it, [`print`](fn@print) writes it, [`run`] runs it
//! against a [`Subject`], [`run_permuted`] does so in another arrival, and [`ReferenceSubject`] is the subject that is right
//! by definition.
//!
//! Invariant: `parse(&print(&scenario)) == Ok(scenario)`.

use std::collections::BTreeMap;

use crate::reference::Value;

mod cell;
mod definition;
mod events;
mod load;
mod parse;
mod permute;
mod physical;
mod print;
mod run;
mod subject;
mod time;
mod types;

#[cfg(test)]
mod tests;

pub use cell::{parse_cell, print_cell};
pub use load::{LoadError, directory, load_dir};
pub use parse::{ParseError, parse};
pub use permute::{permuted, run_permuted};
pub use physical::{Physical, Unit};
pub use print::print;
pub use run::{Failure, Subject, run};
pub use subject::ReferenceSubject;
pub use time::Zone;
pub use types::{ColumnType, Type, parse_type, print_type};

/// One case: what the flow means, and what happens to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scenario {
    /// The file's name without its extension; not part of the text.
    pub name: String,
    /// What the case shows, in one sentence.
    pub title: String,
    /// The shape of the target.
    pub stored_as: StoredAs,
    /// Every column that the source may carry, in order.
    pub types: Vec<(String, Type)>,
    /// What holds a column where it is not the obvious Arrow type of its `types` entry.
    pub physical: BTreeMap<String, Physical>,
    /// The columns that identify a row.
    pub keys: Vec<String>,
    /// The sequence; several columns are a struct. Empty if only snapshots arrive.
    pub sequence: Vec<String>,
    /// The sequence is no struct of its columns, but the greatest of them.
    pub greatest: bool,
    /// The system sequence of a bitemporal target.
    pub system_sequence: Vec<String>,
    /// Which rows are deletes.
    pub delete_when: Option<Condition>,
    /// Which rows are truncates.
    pub truncate_when: Option<Condition>,
    /// Which rows are retractions.
    pub retract_when: Option<Condition>,
    /// Which source columns the target keeps.
    pub columns: Selection,
    /// Which columns open a version when they change.
    pub track_history: Selection,
    /// In which columns NULL means "not provided".
    pub ignore_null_updates: Option<Selection>,
    /// The column that lists the columns which a record sets.
    pub columns_to_update: Option<String>,
    /// The text that stands for a value which the source did not send.
    pub unavailable: Option<String>,
    /// A source column that differs from one of `types` in case only is that one.
    pub fold_case: bool,
    /// The order and batching in which the events arrive do not matter for the final target.
    pub permute: bool,
    /// What happens, in order.
    pub steps: Vec<Step>,
}

/// The shape of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoredAs {
    /// One row per key.
    #[default]
    Scd1,
    /// One row per version of a key.
    Scd2,
    /// One row per version of a key and system interval.
    Bitemporal,
}

/// Some of the columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// All of them.
    #[default]
    All,
    /// Only these.
    Only(Vec<String>),
    /// All but these.
    Except(Vec<String>),
}

impl Selection {
    /// Whether the column is one of those selected.
    pub fn contains(&self, column: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(columns) => columns.iter().any(|name| name == column),
            Self::Except(columns) => columns.iter().all(|name| name != column),
        }
    }

    /// The columns that are named.
    pub fn names(&self) -> &[String] {
        match self {
            Self::All => &[],
            Self::Only(columns) | Self::Except(columns) => columns,
        }
    }
}

/// True for a row in which the column has the value; false otherwise, also for NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The column to look at.
    pub column: String,
    /// The value to find there.
    pub value: Value,
}

/// One thing that happens, or one thing that must then hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A batch arrives.
    Deliver(Batch),
    /// Earlier batches arrive again, by number.
    Replay(Vec<usize>),
    /// The process ends and starts again.
    Restart,
    /// From here on the flow is defined with these keys.
    Rekey(Vec<String>),
    /// The target shows exactly these rows, in any order.
    ExpectTarget(Table),
    /// The delivery just before was refused; the message names this condition.
    ExpectError(String),
}

/// Rows that arrive together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Place among the scenario's batches, from 1. A replay keeps the number.
    pub number: usize,
    /// What the rows are.
    pub kind: BatchKind,
    /// The rows. A column that is not listed is absent from the source of this batch.
    pub table: Table,
    /// Columns that the source of this batch has in another type than the scenario's.
    pub types: BTreeMap<String, ColumnType>,
    /// The process dies once before the target's commit; after a restart the batch is delivered again.
    pub crash: bool,
}

/// What the rows of a batch are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchKind {
    /// Change events.
    Changes,
    /// The complete image of the source at this version.
    Snapshot(Value),
}

/// Column names and rows of as many values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The header.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
}

impl Scenario {
    /// The type of a source column.
    pub fn type_of(&self, column: &str) -> Option<&Type> {
        self.types.iter().find(|(name, _)| name == column).map(|(_, kind)| kind)
    }

    /// The physical type of a column of the source or of the target, where it is not the obvious one.
    pub fn physical_of(&self, column: &str) -> Option<Physical> {
        let from = match column {
            "__START_AT" | "__END_AT" | SEQUENCE_AT => self.sequence.as_slice(),
            "__SYSTEM_START_AT" | "__SYSTEM_END_AT" => self.system_sequence.as_slice(),
            _ => return self.physical.get(column).copied(),
        };
        // The bounds of an interval are of the type of the sequence; a struct shows its fields as numbers.
        match from {
            [column] => self.physical.get(column).copied(),
            [column, ..] if self.greatest => self.physical.get(column).copied(),
            _ => None,
        }
    }

    /// The name under which `types` has a source column.
    pub fn declared<'a>(&'a self, column: &'a str) -> &'a str {
        let same = |(name, _): &&(String, Type)| self.fold_case && name.eq_ignore_ascii_case(column);
        if self.type_of(column).is_some() {
            return column;
        }
        self.types.iter().find(same).map_or(column, |(name, _)| name)
    }

    /// The source columns that the target keeps, in order.
    pub fn kept(&self) -> impl Iterator<Item = &(String, Type)> {
        let mask = self.columns_to_update.as_ref();
        self.types.iter().filter(move |(name, _)| self.columns.contains(name) && mask != Some(name))
    }

    /// The type of the sequence, or of the snapshot versions where there is no sequence.
    pub fn sequence_type(&self) -> Type {
        self.type_of_sequence(&self.sequence)
    }

    /// The type of the system sequence.
    pub fn system_sequence_type(&self) -> Type {
        self.type_of_sequence(&self.system_sequence)
    }

    fn type_of_sequence(&self, columns: &[String]) -> Type {
        let field = |name: &String| (name.clone(), self.type_of(name).cloned().unwrap_or(Type::Int));
        match columns {
            [] => Type::Int,
            [column] => field(column).1,
            [column, ..] if self.greatest => field(column).1,
            several => Type::Struct(several.iter().map(field).collect()),
        }
    }

    /// The columns of the target, those of the shape included, in order.
    pub fn target_columns(&self) -> Vec<(String, Type)> {
        let sequence = self.sequence_type();
        let mut columns: Vec<_> = self.kept().cloned().collect();
        let mut add = |name: &str, kind: &Type| columns.push((name.to_owned(), kind.clone()));
        match self.stored_as {
            StoredAs::Scd1 => add(SEQUENCE_AT, &sequence),
            StoredAs::Scd2 | StoredAs::Bitemporal => {
                add("__START_AT", &sequence);
                add("__END_AT", &sequence);
            }
        }
        if self.stored_as == StoredAs::Bitemporal {
            add("__SYSTEM_START_AT", &self.system_sequence_type());
            add("__SYSTEM_END_AT", &self.system_sequence_type());
        }
        columns
    }

    /// The batches, in the order of their numbers.
    pub fn batches(&self) -> impl Iterator<Item = &Batch> {
        self.steps.iter().filter_map(|step| match step {
            Step::Deliver(batch) => Some(batch),
            Step::Replay(_)
            | Step::Restart
            | Step::Rekey(_)
            | Step::ExpectTarget(_)
            | Step::ExpectError(_) => None,
        })
    }
}

/// The column that comparisons leave out unless a scenario lists it.
pub(crate) const SEQUENCE_AT: &str = "__SEQUENCE_AT";
