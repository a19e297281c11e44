//! The rows that a batch is reconciled from, leaf by leaf: side rows, target rows, changes, and a row of NULLs.

use std::cmp::Ordering;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, new_null_array};
use arrow_schema::{DataType, Field};
use arrow_select::zip::zip;

use super::super::{
    column,
    gather::{Column, column_or_null},
    horizon::Horizon,
    leaves::{Leaves, listed},
    ordinals::ordinals,
    payload::{PayloadOrder, RowRef},
};
use crate::{
    algebra::{order::Ordinal, step::Filled},
    batch::{ChangeBatch, Prior},
    error::CdcError,
    names,
    spec::CdcSpec,
};

/// Numbers of the sources of values.
pub(super) const HIDDEN: usize = 0;
pub(super) const VISIBLE: usize = 1;
pub(super) const BATCH: usize = 2;
/// And of the further source of sequences: where target rows end.
pub(super) const VISIBLE_END: usize = 3;
/// A row whose leaves are NULL.
pub(super) const NULL: RowRef = RowRef { source: 3, row: 0 };

/// A change.
pub(super) fn batch_row(row: u32) -> RowRef {
    RowRef { source: BATCH, row: row as usize }
}

/// A value of every row of each source, and numbers that sort like it.
pub(super) struct Axis {
    pub(super) values: Column,
    at: Vec<Vec<Ordinal>>,
}

impl Axis {
    fn new(arrays: &[ArrayRef], data_type: &DataType) -> Result<Self, CdcError> {
        let at = ordinals(&arrays.iter().collect::<Vec<_>>())?;
        Ok(Self { values: Column::new(arrays.to_vec(), data_type), at })
    }

    pub(super) fn at(&self, row: RowRef) -> Ordinal {
        self.at.get(row.source).and_then(|at| at.get(row.row)).copied().unwrap_or_default()
    }

    pub(super) fn is_null(&self, row: RowRef) -> bool {
        self.values.sources().get(row.source).is_none_or(|array| array.is_null(row.row))
    }
}

/// The inputs, leaf by leaf.
pub(super) struct Sources<'a> {
    pub(super) prior: &'a Prior,
    pub(super) changes: &'a ChangeBatch,
    pub(super) leaves: Leaves,
    /// Per leaf.
    pub(super) columns: Vec<Column>,
    /// Key columns in declared order.
    pub(super) keys: Vec<Column>,
    /// Sequences: hidden, visible start, batch, visible end.
    pub(super) sequence: Axis,
    /// System sequences in the same order, for a bitemporal target.
    pub(super) system: Option<Axis>,
    /// System sequences as events gave them: hidden, nothing, batch.
    pub(super) given: Option<Axis>,
    pub(super) horizon: Horizon,
    order: PayloadOrder,
    /// Places of the tracked leaves.
    tracked: Vec<usize>,
    /// Per side row, the leaves that it lists.
    listed: Vec<Option<Vec<usize>>>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(spec: &CdcSpec, prior: &'a Prior, changes: &'a ChangeBatch) -> Result<Self, CdcError> {
        let (hidden, visible) = (&prior.hidden.batch, &prior.visible.batch);
        let leaves = spec.leaves();
        let columns_of = |rows: &RecordBatch| -> Result<Vec<ArrayRef>, CdcError> {
            let fields = spec.payload_by_name.iter().filter_map(|&at| spec.kept.fields().get(at));
            let columns = fields.map(|field| column_or_null(rows, field)).collect::<Result<Vec<_>, _>>()?;
            Ok(leaves.split(&columns)?)
        };
        let mut sources = vec![columns_of(hidden)?, columns_of(visible)?, columns_of(&changes.rows)?];
        let columns = leaves.types().enumerate().map(|(leaf, data_type)| {
            Column::new(sources.iter().filter_map(|source| source.get(leaf)).cloned().collect(), data_type)
        });
        let columns = columns.collect();
        sources.push(leaves.null_row());
        let keys = spec.key_fields().into_iter().map(|field| {
            let arrays = [hidden, visible, &changes.rows].map(|rows| column(rows, &field, "key columns"));
            Ok(Column::new(arrays.into_iter().collect::<Result<_, CdcError>>()?, field.data_type()))
        });
        let keys = keys.collect::<Result<_, CdcError>>()?;
        let named = |rows: &RecordBatch, name: &str, data_type: &DataType, what: &'static str| {
            column(rows, &Field::new(name, data_type.clone(), true), what)
        };
        let sequence = [
            named(hidden, names::SEQUENCE_AT, &spec.sequence_type, "side rows")?,
            named(visible, names::START_AT, &spec.sequence_type, "target rows")?,
            ArrayRef::clone(&changes.sequence),
            named(visible, names::END_AT, &spec.sequence_type, "target rows")?,
        ];
        let sequence = Axis::new(&sequence, &spec.sequence_type)?;
        let (mut system, mut given) = (None, None);
        if let (Some(data_type), Some(own)) = (&spec.system_type, &changes.system) {
            let at = named(hidden, names::SYSTEM_SEQUENCE_AT, data_type, "side rows")?;
            let arrays = [
                ArrayRef::clone(&at),
                named(visible, names::SYSTEM_START_AT, data_type, "target rows")?,
                ArrayRef::clone(&own.at),
                named(visible, names::SYSTEM_END_AT, data_type, "target rows")?,
            ];
            system = Some(Axis::new(&arrays, data_type)?);
            let mut stored = at;
            if hidden.column_by_name(names::SYSTEM_SEQUENCE_GIVEN).is_some() {
                let given = named(hidden, names::SYSTEM_SEQUENCE_GIVEN, data_type, "side rows")?;
                // Rows from before the mode was set have none: they count as they came.
                let has: BooleanArray = (0..given.len()).map(|row| Some(given.is_valid(row))).collect();
                stored = zip(&has, &given, &stored)?;
            }
            given = Some(Axis::new(
                &[stored, new_null_array(data_type, 0), ArrayRef::clone(&own.given)],
                data_type,
            )?);
        }
        let tracked = spec.payload_by_name.iter().enumerate().filter(|(_, at)| spec.tracked.contains(at));
        let tracked = tracked.flat_map(|(column, _)| leaves.of_column(column)).collect();
        Ok(Self {
            prior,
            changes,
            columns,
            keys,
            sequence,
            system,
            given,
            horizon: Horizon::new(prior, &changes.sequence)?,
            order: PayloadOrder::new(&sources)?,
            tracked,
            listed: listed(hidden, &leaves)?,
            leaves,
        })
    }

    /// Compares a leaf of two rows.
    pub(super) fn compare(&self, leaf: usize, a: RowRef, b: RowRef) -> Ordering {
        if a == b { Ordering::Equal } else { self.order.compare_column(leaf, a, b) }
    }

    /// Compares two rows as wholes (R-TIE).
    pub(super) fn compare_rows(&self, a: RowRef, b: RowRef) -> Ordering {
        if a == b { Ordering::Equal } else { self.order.compare(a, b) }
    }

    /// Whether two rows show the same in every leaf.
    pub(super) fn same(&self, a: &Filled<RowRef>, b: &Filled<RowRef>) -> bool {
        self.alike(a, b, 0..self.leaves.len())
    }

    /// Whether two rows show the same in the tracked leaves.
    pub(super) fn repeats(&self, a: &Filled<RowRef>, b: &Filled<RowRef>) -> bool {
        self.alike(a, b, self.tracked.iter().copied())
    }

    fn alike(&self, a: &Filled<RowRef>, b: &Filled<RowRef>, mut leaves: impl Iterator<Item = usize>) -> bool {
        if let (Filled::Whole(a), Filled::Whole(b)) = (a, b)
            && a == b
        {
            return true;
        }
        let at = |row: &Filled<RowRef>, leaf| row.leaf(leaf).unwrap_or(NULL);
        leaves.all(|leaf| self.compare(leaf, at(a, leaf), at(b, leaf)).is_eq())
    }

    /// The leaves that a side row lists; `None` for a whole row.
    pub(super) fn listed(&self, hidden: u32) -> Option<&[usize]> {
        self.listed.get(hidden as usize).and_then(Option::as_deref)
    }

    /// Where a target row ends, `None` while it is current.
    pub(super) fn end_of(&self, visible: u32) -> Option<Ordinal> {
        let end = RowRef { source: VISIBLE_END, row: visible as usize };
        (!self.sequence.is_null(end)).then(|| self.sequence.at(end))
    }
}
