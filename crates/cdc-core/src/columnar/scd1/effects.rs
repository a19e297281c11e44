//! What is to change for keys whose newest event decides, as rows.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int8Array, Int64Array, RecordBatch, UInt32Array, new_null_array};
use arrow_schema::SchemaRef;
use arrow_select::{concat::concat_batches, take::take};

use super::{
    super::{ids, payload::RowRef, row_number},
    Input, Stored,
    floor::Floor,
};
use crate::{
    algebra::order::{Event, Op},
    batch::RowChanges,
    error::CdcError,
    names,
    side::SideKind,
    spec::CdcSpec,
};

/// One change after another.
pub(super) fn both(first: &RowChanges, second: &RowChanges) -> Result<RowChanges, CdcError> {
    let deletes = first.deletes.values().iter().chain(second.deletes.values()).copied().collect::<Vec<_>>();
    let inserts = concat_batches(&first.inserts.schema(), [&first.inserts, &second.inserts])?;
    Ok(RowChanges { deletes: deletes.into(), inserts })
}

/// What is to change: rows of the batch that come, rows of the prior that go.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub(super) upserts: Vec<u32>,
    /// Side rows that come, and what they are.
    pub(super) hidden: Vec<(u32, SideKind)>,
    visible_gone: Vec<u32>,
    pub(super) hidden_gone: Vec<u32>,
    pub(super) deleted: u64,
}

impl Effects {
    pub(super) fn is_empty(&self) -> bool {
        self.hidden.is_empty()
            && [&self.upserts, &self.visible_gone, &self.hidden_gone].iter().all(|v| v.is_empty())
    }

    /// The stored event of a key gives way to `winner`.
    pub(super) fn replace(&mut self, stored: Stored, winner: Event<RowRef>, floor: &Floor) {
        self.visible_gone.extend(stored.visible);
        self.hidden_gone.extend(stored.tombstone.into_iter().chain(stored.change));
        let row = row_number(winner.row.row);
        let goes = u64::from(stored.visible.is_some());
        match winner.op {
            Op::Upsert | Op::Snapshot => {
                self.upserts.push(row);
                if Some(winner.position()) == floor.needs_change_row() {
                    self.hidden.push((row, SideKind::Change));
                }
            }
            Op::Delete => {
                self.hidden.push((row, SideKind::Delete));
                self.deleted = self.deleted.saturating_add(goes);
            }
            // A barrier needs no tombstone: it is known of every key.
            Op::Barrier | Op::Retract => self.deleted = self.deleted.saturating_add(goes),
        }
    }

    pub(super) fn target(&self, spec: &CdcSpec, input: &Input<'_>) -> Result<RowChanges, CdcError> {
        let rows = UInt32Array::from(self.upserts.clone());
        let columns =
            spec.target.fields().iter().map(|field| match input.changes.rows.column_by_name(field.name()) {
                Some(column) => take(column, &rows, None),
                None => take(&input.changes.sequence, &rows, None),
            });
        let inserts = RecordBatch::try_new(Arc::clone(&spec.target), columns.collect::<Result<_, _>>()?)?;
        Ok(RowChanges { deletes: ids(&input.prior.visible.ids, &self.visible_gone), inserts })
    }

    pub(super) fn side(
        &self,
        spec: &CdcSpec,
        schema: &SchemaRef,
        input: &Input<'_>,
    ) -> Result<RowChanges, CdcError> {
        let rows: UInt32Array = self.hidden.iter().map(|(row, _)| *row).collect::<Vec<_>>().into();
        let columns = schema.fields().iter().enumerate().map(|(i, field)| {
            if spec.keys.contains(&i) {
                return take(input.changes.rows.column(i), &rows, None);
            }
            match field.name().as_str() {
                names::SEQUENCE_AT => take(&input.changes.sequence, &rows, None),
                names::SIDE_KIND => {
                    let kinds = self.hidden.iter().map(|(_, kind)| kind.code());
                    Ok(Arc::new(Int8Array::from_iter_values(kinds)) as ArrayRef)
                }
                names::APPLIED_AT => {
                    let is_delete = |kind: SideKind| kind == SideKind::Delete;
                    let applied =
                        |(_, kind): &(u32, SideKind)| input.changes.applied_at.filter(|_| is_delete(*kind));
                    Ok(Arc::new(self.hidden.iter().map(applied).collect::<Int64Array>()))
                }
                _ => Ok(new_null_array(field.data_type(), rows.len())),
            }
        });
        let inserts = RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<_, _>>()?)?;
        Ok(RowChanges { deletes: ids(&input.prior.hidden.ids, &self.hidden_gone), inserts })
    }
}
