//! Where are the values of events that author some leaves, and which leaves are those?
//!
//! Leaves are numbered as [`crate::columnar::leaves`] does.

use std::{cmp::Ordering, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch};

use super::{BATCH, HIDDEN, Input, NULL, VISIBLE};
use crate::{
    algebra::authorship::Authored,
    columnar::{
        gather::{Column, column_or_null},
        leaves::{Leaves, listed},
        payload::{PayloadOrder, RowRef},
    },
    error::CdcError,
    spec::CdcSpec,
};

/// The payloads of the changes, of the target's rows, of the side rows, and of a row of NULLs.
pub(super) struct Values {
    pub(super) leaves: Leaves,
    /// Per leaf.
    pub(super) columns: Vec<Column>,
    pub(super) sequences: Column,
    pub(super) order: PayloadOrder,
    /// The leaves of a whole row, under partial updates: there it is a row that sets every leaf.
    every: Option<Vec<usize>>,
    /// Per change, the leaves that it sets; empty when each sets the whole row.
    batch: Vec<Vec<usize>>,
    /// Per side row, the leaves that it lists.
    lists: Vec<Option<Vec<usize>>>,
}

impl Values {
    pub(super) fn new(spec: &CdcSpec, input: &Input<'_>) -> Result<Self, CdcError> {
        let leaves = spec.leaves();
        let split = |rows: &RecordBatch| -> Result<Vec<ArrayRef>, CdcError> {
            let fields = spec.payload_by_name.iter().filter_map(|&at| spec.kept.fields().get(at));
            let columns = fields.map(|field| column_or_null(rows, field)).collect::<Result<Vec<_>, _>>()?;
            Ok(leaves.split(&columns)?)
        };
        let mut sources = vec![Vec::new(); NULL.source];
        for (source, rows) in [
            (BATCH, &input.changes.rows),
            (VISIBLE, &input.prior.visible.batch),
            (HIDDEN, &input.prior.hidden.batch),
        ] {
            if let Some(slot) = sources.get_mut(source) {
                *slot = split(rows)?;
            }
        }
        let columns = leaves.types().enumerate().map(|(leaf, data_type)| {
            let arrays = sources.iter().filter_map(|source| source.get(leaf)).map(Arc::clone).collect();
            Column::new(arrays, data_type)
        });
        let columns: Vec<Column> = columns.collect();
        sources.push(leaves.null_row());
        let sequences = [&input.changes.sequence, &input.visible_sequence, &input.hidden_sequence];
        let set = |row: usize| {
            let leaves = input.changes.authored.iter().flatten().enumerate();
            leaves.filter(|(_, rows)| rows.value(row)).map(|(leaf, _)| leaf).collect()
        };
        let partial = input.changes.authored.is_some();
        Ok(Self {
            columns,
            sequences: Column::new(sequences.map(Arc::clone).into(), &spec.sequence_type),
            order: PayloadOrder::new(&sources)?,
            batch: if partial { (0..input.changes.rows.num_rows()).map(set).collect() } else { Vec::new() },
            every: spec.partial.is_some().then(|| (0..leaves.len()).collect()),
            lists: listed(&input.prior.hidden.batch, &leaves)?,
            leaves,
        })
    }

    /// Number of leaves.
    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    /// What a whole row sets.
    pub(super) fn whole(&self) -> Authored<'_> {
        self.every.as_deref().map_or(Authored::Whole, Authored::Columns)
    }

    /// What a change sets.
    pub(super) fn batch_authored(&self, row: usize) -> Authored<'_> {
        self.batch.get(row).map_or(Authored::Whole, |leaves| Authored::Columns(leaves))
    }

    /// The leaves that a side row lists; `None` for a whole row.
    pub(super) fn listed(&self, hidden: u32) -> Option<&[usize]> {
        self.lists.get(hidden as usize).and_then(Option::as_deref)
    }

    /// Whether these values, one a leaf, are those of `row`.
    pub(super) fn same(&self, values: &[RowRef], row: RowRef) -> bool {
        let mut all = values.iter().enumerate();
        all.all(|(column, &value)| self.order.compare_column(column, value, row) == Ordering::Equal)
    }
}
