//! Where are the values of events that author some columns, and which columns are those?
//!
//! Columns are numbered by their place in comparison order: the non-key columns by name.

use std::{cmp::Ordering, sync::Arc};

use arrow_array::{Array, ArrayRef, RecordBatch, cast::AsArray, new_null_array};

use super::{BATCH, HIDDEN, Input, NULL, VISIBLE};
use crate::{
    algebra::authorship::Authored,
    columnar::{
        gather::{Column, column_or_null},
        payload::{PayloadOrder, RowRef},
    },
    error::CdcError,
    names,
    spec::CdcSpec,
};

/// The payloads of the changes, of the target's rows, of the side rows, and of a row of NULLs.
pub(super) struct Values {
    /// Per column.
    pub(super) columns: Vec<Column>,
    pub(super) sequences: Column,
    pub(super) order: PayloadOrder,
    /// Names of the columns.
    pub(super) names: Vec<String>,
    /// The columns that the batch's upserts author; `None` for all.
    batch: Option<Vec<usize>>,
    /// Per side row, the columns that it lists.
    lists: Vec<Option<Vec<usize>>>,
}

impl Values {
    pub(super) fn new(spec: &CdcSpec, input: &Input<'_>) -> Result<Self, CdcError> {
        let fields: Vec<_> =
            spec.payload_by_name.iter().filter_map(|&i| Some((i, spec.kept.fields().get(i)?))).collect();
        let mut sources = vec![Vec::new(); NULL.source];
        for (source, rows) in [
            (BATCH, &input.changes.rows),
            (VISIBLE, &input.prior.visible.batch),
            (HIDDEN, &input.prior.hidden.batch),
        ] {
            if let Some(slot) = sources.get_mut(source) {
                *slot = fields
                    .iter()
                    .map(|(_, field)| column_or_null(rows, field))
                    .collect::<Result<Vec<ArrayRef>, _>>()?;
            }
        }
        let columns = fields.iter().enumerate().map(|(column, (_, field))| {
            let arrays = sources.iter().filter_map(|source| source.get(column)).map(Arc::clone).collect();
            Column::new(arrays, field.data_type())
        });
        let columns: Vec<Column> = columns.collect();
        sources.push(fields.iter().map(|(_, field)| new_null_array(field.data_type(), 1)).collect());
        let names: Vec<String> = fields.iter().map(|(_, field)| field.name().clone()).collect();
        let sequences = [&input.changes.sequence, &input.visible_sequence, &input.hidden_sequence];
        let authored = fields.iter().enumerate().filter(|(_, (kept, _))| *kept < spec.present);
        Ok(Self {
            columns,
            sequences: Column::new(sequences.map(Arc::clone).into(), &spec.sequence_type),
            order: PayloadOrder::new(&sources)?,
            batch: spec.has_absent().then(|| authored.map(|(column, _)| column).collect()),
            lists: lists(&input.prior.hidden.batch, &names)?,
            names,
        })
    }

    /// Number of columns.
    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    pub(super) fn batch_authored(&self) -> Authored<'_> {
        self.batch.as_deref().map_or(Authored::Whole, Authored::Columns)
    }

    /// The columns that a side row lists; `None` for a whole row.
    pub(super) fn listed(&self, hidden: u32) -> Option<&[usize]> {
        self.lists.get(hidden as usize).and_then(Option::as_deref)
    }

    /// Whether these values, one a column, are those of `row`.
    pub(super) fn same(&self, values: &[RowRef], row: RowRef) -> bool {
        let mut all = values.iter().enumerate();
        all.all(|(column, &value)| self.order.compare_column(column, value, row) == Ordering::Equal)
    }
}

/// The columns that each side row lists. A name that is no column of the target any more is left out.
fn lists(hidden: &RecordBatch, names: &[String]) -> Result<Vec<Option<Vec<usize>>>, CdcError> {
    let Some(column) = hidden.column_by_name(names::AUTHORED) else { return Ok(Vec::new()) };
    let mismatch = || CdcError::SchemaMismatch {
        what: "side rows",
        expected: format!("`{}` as a list of text", names::AUTHORED),
        found: format!("type {}", column.data_type()),
    };
    let lists = column.as_list_opt::<i32>().ok_or_else(mismatch)?;
    let texts = lists.values().as_string_opt::<i32>().ok_or_else(mismatch)?;
    let offsets = lists.value_offsets();
    let bound = |at: usize| offsets.get(at).and_then(|offset| usize::try_from(*offset).ok());
    let list = |row: usize| {
        let (from, to) = (bound(row)?, bound(row.checked_add(1)?)?);
        let listed = (from..to).filter(|&at| texts.is_valid(at)).map(|at| texts.value(at));
        let mut columns: Vec<usize> =
            listed.filter_map(|text| names.iter().position(|name| name == text)).collect();
        columns.sort_unstable();
        columns.dedup();
        Some(columns)
    };
    Ok((0..lists.len()).map(|row| if lists.is_valid(row) { list(row) } else { None }).collect())
}
