//! What does a change flow mean? Options as a user writes them, and the [`CdcSpec`] that they become once validated.
//!
//! A spec is validated on construction; nobody re-checks later.

mod options;
mod partial;
mod resolve;
mod side_columns;
mod target_columns;
mod widen;

pub(crate) use resolve::system;
pub(crate) use widen::widened;
pub use widen::{widened_rows, wider};

pub use options::{
    CdcOptions, ColumnSelection, NullSequenceFields, OnTie, SequenceColumn, SequenceTypes, StoredAs,
    SystemTime,
};

use std::sync::Arc;

use arrow_schema::{DataType, Schema, SchemaRef};

use crate::{columnar::leaves::Leaves, error::CdcError, names};

/// What a change flow means for its target: keys, kept columns, sequence type, shape of the target.
///
/// Built by [`CdcSpec::new`], which reports the first rule that the options break, with the names that a user needs to
/// mend it. Two specs are equal when they mean the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CdcSpec {
    pub(crate) stored_as: StoredAs,
    pub(crate) on_tie: OnTie,
    /// Kept columns: the payload and keys of an event, before any system column. Those of the source come first, in
    /// source order.
    pub(crate) kept: SchemaRef,
    /// How many of the kept columns the source has. The others are absent: no event authors them.
    pub(crate) present: usize,
    /// Kept columns that the source calls otherwise: position, and name in the source.
    pub(crate) renamed: Vec<(usize, String)>,
    /// Names of leaves that the source lacks within structs that it has: no event authors them either.
    pub(crate) absent_leaves: Vec<String>,
    /// Positions of the key columns in `kept`, in declared order.
    pub(crate) keys: Vec<usize>,
    /// Positions in `kept` of the columns whose change opens a version, in column order.
    pub(crate) tracked: Vec<usize>,
    /// The clause that says so, with the names that the columns have, sorted.
    pub(crate) track_history: ColumnSelection,
    /// Positions in `kept` of the non-key columns, ordered by name: the order in which payloads compare (R-TIE).
    pub(crate) payload_by_name: Vec<usize>,
    /// Columns of which an upsert may leave some unset; `None` when every upsert sets the whole row.
    pub(crate) partial: Option<Partial>,
    pub(crate) sequence_type: DataType,
    /// Bitemporal: type of the system sequence.
    pub(crate) system_type: Option<DataType>,
    pub(crate) system_time: SystemTime,
    pub(crate) null_sequence_fields: NullSequenceFields,
    pub(crate) tombstones_expire: bool,
    /// Where an SCD1 target keeps the sequence of the event that wrote a row.
    pub(crate) sequence_column: SequenceColumn,
    pub(crate) target: SchemaRef,
    pub(crate) side: SchemaRef,
}

/// How a flow's upserts say what they set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Partial {
    /// Positions in the kept columns of those in which NULL means "not provided".
    pub(crate) ignored: Vec<usize>,
    /// The source column that lists what a record sets.
    pub(crate) mask: Option<String>,
}

impl CdcSpec {
    /// Validates `options` against the schema of the source's change rows and the types of `SEQUENCE BY` and, for a
    /// bitemporal target, `SYSTEM SEQUENCE BY`.
    ///
    /// # Errors
    /// Any [`CdcError`] that speaks of a definition: no key, unknown column, key dropped by the selection, reserved
    /// name, a sequence type that has no order, tracked columns on a target that is not SCD2, clauses that exclude each
    /// other.
    pub fn new(
        options: &CdcOptions,
        source: &Schema,
        sequences: impl Into<SequenceTypes>,
    ) -> Result<Self, CdcError> {
        resolve::resolve(options, source, sequences.into())
    }

    /// The shape of the target.
    pub fn stored_as(&self) -> StoredAs {
        self.stored_as
    }

    /// Names of the key columns, in declared order.
    pub fn key_names(&self) -> Vec<&str> {
        self.keys.iter().filter_map(|&k| self.kept.fields().get(k)).map(|f| f.name().as_str()).collect()
    }

    /// Names of the tracked columns, in column order. Meaningful for SCD2; all kept non-key columns by default.
    pub fn tracked_names(&self) -> Vec<&str> {
        self.tracked.iter().filter_map(|&k| self.kept.fields().get(k)).map(|f| f.name().as_str()).collect()
    }

    /// Type of the sequence values.
    pub fn sequence_type(&self) -> &DataType {
        &self.sequence_type
    }

    /// Type of the system sequence values, for a bitemporal target.
    pub fn system_sequence_type(&self) -> Option<&DataType> {
        self.system_type.as_ref()
    }

    /// What an event means whose system sequence is older than what was received before.
    pub fn system_time(&self) -> SystemTime {
        self.system_time
    }

    /// The source column of `COLUMNS TO UPDATE`.
    pub fn columns_to_update(&self) -> Option<&str> {
        self.partial.as_ref().and_then(|partial| partial.mask.as_deref())
    }

    /// True when upserts may leave columns of the target unset: by a clause of the flow, or because the source lacks
    /// some ([`CdcSpec::absent_names`]).
    pub fn is_partial(&self) -> bool {
        self.partial.is_some() || self.has_absent()
    }

    /// The kept columns, keys included: those of the source in source order, then the absent ones.
    pub fn kept_schema(&self) -> &SchemaRef {
        &self.kept
    }

    /// The target's schema: kept columns, then the system columns of its shape.
    pub fn target_schema(&self) -> &SchemaRef {
        &self.target
    }

    /// The schema of the hidden side rows: kept columns (NULL where a row has no payload), then
    /// [`names::SEQUENCE_AT`] and [`names::SIDE_KIND`]; what else a flow needs follows: [`names::AUTHORED`],
    /// [`names::SYSTEM_SEQUENCE_AT`], [`names::SYSTEM_SEQUENCE_GIVEN`], [`names::APPLIED_AT`].
    ///
    /// Stored side rows may have more of those columns, from an earlier definition of the flow. Then the side rows that
    /// come may have them too, whatever this says; rows without one have NULL there.
    pub fn side_schema(&self) -> &SchemaRef {
        &self.side
    }

    /// The leaves of the payload, numbered in comparison order.
    pub(crate) fn leaves(&self) -> Leaves {
        Leaves::new(self.payload_by_name.iter().filter_map(|&at| self.kept.fields().get(at)))
    }

    /// Name of the column of an SCD1 target that holds the sequence of the event that wrote the row.
    pub fn sequence_column_name(&self) -> &str {
        match &self.sequence_column {
            SequenceColumn::SystemColumn => names::SEQUENCE_AT,
            SequenceColumn::KeptColumn(name) => name,
        }
    }
}

pub(crate) fn schema_of(fields: impl IntoIterator<Item = arrow_schema::FieldRef>) -> SchemaRef {
    Arc::new(Schema::new(fields.into_iter().collect::<Vec<_>>()))
}
