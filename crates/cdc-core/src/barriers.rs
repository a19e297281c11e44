//! What holds for every key of a target at once?
//!
//! A truncate, or a snapshot, is a *barrier*: an event of every key, keys never seen included. It can't be kept with the
//! keys, so it is kept beside them, as are two more facts about a table as a whole. An SCD1 target needs the greatest
//! barrier only; an SCD2 target of snapshots keeps all versions.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Int8Array, RecordBatch, cast::AsArray, new_null_array, types::Int8Type,
};
use arrow_schema::{DataType, SchemaRef};
use arrow_select::{concat::concat, filter::filter};

use crate::{
    columnar::ordinals::ordinals,
    error::CdcError,
    names,
    spec::{CdcSpec, schema_of, system},
};

/// What a row of [`Barriers`] says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(i8)]
pub enum BarrierKind {
    /// Every key is empty at this sequence.
    Truncate = 1,
    /// A snapshot of this version was applied: every key was empty there but for the snapshot's rows.
    Snapshot = 2,
    /// Tombstones up to this sequence may have been collected.
    Horizon = 3,
    /// The greatest system sequence that was received.
    SystemTime = 4,
}

impl BarrierKind {
    const ALL: [Self; 4] = [Self::Truncate, Self::Snapshot, Self::Horizon, Self::SystemTime];

    /// The value stored in [`names::SIDE_KIND`].
    pub fn code(self) -> i8 {
        match self {
            Self::Truncate => 1,
            Self::Snapshot => 2,
            Self::Horizon => 3,
            Self::SystemTime => 4,
        }
    }
}

/// Barriers of a target, and what else holds for all of its keys. Part of the state that belongs to a version of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Barriers {
    /// Kind, sequence, and system sequence where the target has one; ordered by kind and value. `None` for no row.
    rows: Option<RecordBatch>,
}

impl Barriers {
    /// Those of a target that has seen none.
    pub fn none() -> Self {
        Self::default()
    }

    /// What was stored as [`Barriers::rows`].
    ///
    /// # Errors
    /// [`CdcError::SchemaMismatch`] for rows of another schema, or of a kind that this version does not know.
    pub fn from_rows(spec: &CdcSpec, rows: &RecordBatch) -> Result<Self, CdcError> {
        let mismatch = |expected: String, found: String| CdcError::SchemaMismatch {
            what: "stored barriers",
            expected,
            found,
        };
        let schema = spec.barrier_schema();
        let types = |schema: &SchemaRef| {
            let fields =
                schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type()));
            fields.collect::<Vec<_>>().join(", ")
        };
        if types(&schema) != types(&rows.schema()) {
            return Err(mismatch(types(&schema), types(&rows.schema())));
        }
        let kinds = rows.column(0).as_primitive::<Int8Type>();
        let known = |code: Option<i8>| BarrierKind::ALL.iter().any(|kind| Some(kind.code()) == code);
        if let Some(code) = kinds.iter().find(|code| !known(*code)) {
            return Err(mismatch("kinds 1 to 4".to_owned(), format!("{code:?}")));
        }
        let mut barriers = Self::none();
        for kind in BarrierKind::ALL {
            let of_kind: BooleanArray = kinds.iter().map(|code| Some(code == Some(kind.code()))).collect();
            let column = if kind == BarrierKind::SystemTime { 2 } else { 1 };
            let Some(values) = rows.columns().get(column) else { continue };
            let values = filter(values, &of_kind)?;
            if values.logical_nulls().is_some_and(|nulls| nulls.null_count() > 0) {
                return Err(mismatch("no NULL".to_owned(), format!("NULL for kind {}", kind.code())));
            }
            barriers = barriers.with(spec, kind, &values, Keep::All)?;
        }
        Ok(barriers)
    }

    /// To be stored: schema [`CdcSpec::barrier_schema`]. `None` when there is nothing to store.
    pub fn rows(&self) -> Option<&RecordBatch> {
        self.rows.as_ref()
    }

    /// True when there is nothing to store.
    pub fn is_empty(&self) -> bool {
        self.rows.is_none()
    }

    /// The values of one kind, in order: sequences, for [`BarrierKind::SystemTime`] system sequences.
    pub fn values(&self, kind: BarrierKind) -> Option<ArrayRef> {
        let rows = self.rows.as_ref()?;
        let kinds = rows.column(0).as_primitive::<Int8Type>();
        let from = kinds.values().iter().position(|code| *code == kind.code())?;
        let len = kinds.values().iter().filter(|code| **code == kind.code()).count();
        let column = if kind == BarrierKind::SystemTime { 2 } else { 1 };
        rows.columns().get(column).map(|values| values.slice(from, len))
    }

    /// The greatest value of one kind, as an array of length 1.
    pub fn greatest(&self, kind: BarrierKind) -> Option<ArrayRef> {
        self.values(kind).map(|values| values.slice(values.len().saturating_sub(1), 1))
    }

    /// These and `values` of a kind: all of them, or only the greatest.
    pub(crate) fn with(
        &self,
        spec: &CdcSpec,
        kind: BarrierKind,
        values: &ArrayRef,
        keep: Keep,
    ) -> Result<Self, CdcError> {
        let mut parts: Vec<(BarrierKind, ArrayRef)> = Vec::new();
        for other in BarrierKind::ALL {
            let own = self.values(other);
            let all = match (own, other == kind && !values.is_empty()) {
                (own, false) => own,
                (None, true) => Some(sorted(values)?),
                (Some(own), true) => Some(sorted(&concat(&[&own, values])?)?),
            };
            let kept = all.map(|all| match keep {
                Keep::Greatest if other == kind => all.slice(all.len().saturating_sub(1), 1),
                Keep::Greatest | Keep::All => all,
            });
            parts.extend(kept.map(|kept| (other, kept)));
        }
        let rows = parts
            .into_iter()
            .map(|(kind, values)| rows_of(spec, kind, &values))
            .collect::<Result<Vec<_>, _>>()?;
        let rows = arrow_select::concat::concat_batches(&spec.barrier_schema(), &rows)?;
        Ok(Self { rows: (rows.num_rows() > 0).then_some(rows) })
    }
}

/// Which values of a kind are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The greatest.
    Greatest,
    /// All.
    All,
}

/// Values in order, each once.
fn sorted(values: &ArrayRef) -> Result<ArrayRef, CdcError> {
    let at = ordinals(&[values])?.pop().unwrap_or_default();
    let mut order: Vec<u32> = (0..values.len()).map(crate::columnar::row_number).collect();
    let ordinal = |row: &u32| at.get(*row as usize).copied();
    order.sort_by_key(ordinal);
    order.dedup_by_key(|row| ordinal(row));
    Ok(arrow_select::take::take(values, &arrow_array::UInt32Array::from(order), None)?)
}

fn rows_of(spec: &CdcSpec, kind: BarrierKind, values: &ArrayRef) -> Result<RecordBatch, CdcError> {
    let schema = spec.barrier_schema();
    let kinds: ArrayRef = Arc::new(Int8Array::from(vec![kind.code(); values.len()]));
    let filled = if kind == BarrierKind::SystemTime { 2 } else { 1 };
    let columns = schema.fields().iter().enumerate().map(|(place, field)| match place {
        0 => Arc::clone(&kinds),
        _ if place == filled => Arc::clone(values),
        _ => new_null_array(field.data_type(), values.len()),
    });
    Ok(RecordBatch::try_new(Arc::clone(&schema), columns.collect())?)
}

impl CdcSpec {
    /// The schema of stored [`Barriers`]: [`names::SIDE_KIND`], [`names::SEQUENCE_AT`], and
    /// [`names::SYSTEM_SEQUENCE_AT`] where the target has a system sequence.
    pub fn barrier_schema(&self) -> SchemaRef {
        let system_column =
            self.system_type.as_ref().map(|data_type| system(names::SYSTEM_SEQUENCE_AT, data_type));
        let own =
            [system(names::SIDE_KIND, &DataType::Int8), system(names::SEQUENCE_AT, &self.sequence_type)];
        schema_of(own.into_iter().chain(system_column))
    }
}
