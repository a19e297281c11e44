//! The rows that a batch is reconciled from, column by column: side rows, target rows, changes.

use std::cell::OnceCell;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::Field;

use super::super::{
    column,
    gather::{Column, Places, column_or_null},
    ordinals::ordinals,
    payload::{PayloadOrder, RowRef},
};
use crate::{
    algebra::order::Ordinal,
    batch::{ChangeBatch, Prior},
    error::CdcError,
    names,
    spec::CdcSpec,
};

/// Numbers of the sources of payloads, see [`Sources::columns`].
pub(super) const HIDDEN: usize = 0;
pub(super) const VISIBLE: usize = 1;
pub(super) const BATCH: usize = 2;
/// And of the further source of sequences.
pub(super) const VISIBLE_END: usize = 3;

/// The inputs, column by column.
pub(super) struct Sources<'a> {
    pub(super) prior: &'a Prior,
    pub(super) changes: &'a ChangeBatch,
    /// Kept columns, each with its sources hidden, visible, batch.
    pub(super) columns: Vec<Column>,
    /// Sequences: hidden, visible start, batch, visible end.
    pub(super) sequences: Column,
    /// Ordinals of [`Sources::sequences`].
    pub(super) hidden_at: Vec<Ordinal>,
    pub(super) start_at: Vec<Ordinal>,
    pub(super) batch_at: Vec<Ordinal>,
    end_at: Vec<Ordinal>,
    pub(super) hidden_sequences: ArrayRef,
    pub(super) starts: ArrayRef,
    ends: ArrayRef,
    /// Payload columns in comparison order, per source.
    payloads: Vec<Vec<ArrayRef>>,
    payload_order: OnceCell<PayloadOrder>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(spec: &CdcSpec, prior: &'a Prior, changes: &'a ChangeBatch) -> Result<Self, CdcError> {
        let (hidden, visible) = (&prior.hidden.batch, &prior.visible.batch);
        let sequence = |name: &str| Field::new(name, spec.sequence_type.clone(), true);
        let hidden_sequences = column(hidden, &sequence(names::SEQUENCE_AT), "side rows")?;
        let starts = column(visible, &sequence(names::START_AT), "target rows")?;
        let ends = column(visible, &sequence(names::END_AT), "target rows")?;
        let mut all = ordinals(&[&hidden_sequences, &starts, &changes.sequence, &ends])?.into_iter();
        let mut next = || all.next().unwrap_or_default();
        let (hidden_at, start_at, batch_at, end_at) = (next(), next(), next(), next());
        let per_source = |field: &Field| -> Result<Vec<ArrayRef>, CdcError> {
            let of = |rows: &RecordBatch| column_or_null(rows, field);
            Ok(vec![of(hidden)?, of(visible)?, of(&changes.rows)?])
        };
        let columns = spec
            .kept
            .fields()
            .iter()
            .map(|field| Ok(Column::new(per_source(field)?, field.data_type())))
            .collect::<Result<Vec<_>, CdcError>>()?;
        let payloads = (HIDDEN..=BATCH)
            .map(|source| {
                let ordered = spec.payload_by_name.iter().filter_map(|&i| columns.get(i));
                ordered.filter_map(|column| column.sources().get(source)).cloned().collect()
            })
            .collect();
        let of_sequences = [&hidden_sequences, &starts, &changes.sequence, &ends].map(ArrayRef::clone);
        Ok(Self {
            prior,
            changes,
            columns,
            sequences: Column::new(of_sequences.to_vec(), &spec.sequence_type),
            hidden_at,
            start_at,
            batch_at,
            end_at,
            hidden_sequences,
            starts,
            ends,
            payloads,
            payload_order: OnceCell::new(),
        })
    }

    /// The places of rows in the kept columns, `None` for NULL.
    pub(super) fn places(&self, wanted: impl Iterator<Item = Option<RowRef>>) -> Places {
        // Every kept column has the same sources.
        self.columns.first().map(|column| column.places(wanted)).unwrap_or_default()
    }

    /// The order of payloads, made when it is first asked for.
    pub(super) fn payload_order(&self) -> Result<&PayloadOrder, CdcError> {
        if let Some(order) = self.payload_order.get() {
            return Ok(order);
        }
        let order = PayloadOrder::new(&self.payloads)?;
        Ok(self.payload_order.get_or_init(|| order))
    }

    /// Where a version ends, `None` while it is current.
    pub(super) fn end_of(&self, visible: u32) -> Option<Ordinal> {
        self.ends.is_valid(visible as usize).then(|| at(&self.end_at, visible))
    }
}

pub(super) fn at(ordinals: &[Ordinal], row: u32) -> Ordinal {
    ordinals.get(row as usize).copied().unwrap_or_default()
}
