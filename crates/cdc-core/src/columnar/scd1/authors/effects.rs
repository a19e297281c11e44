//! What is to change for keys whose columns have several authors, as rows.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Int8Array, Int64Array, RecordBatch, UInt32Array,
    builder::{ListBuilder, StringBuilder},
};
use arrow_schema::{ArrowError, FieldRef, SchemaRef};
use arrow_select::take::take;

use super::{
    super::{Input, ids},
    values::Values,
};
use crate::{
    algebra::order::Ordinal, batch::RowChanges, columnar::payload::RowRef, error::CdcError, names,
    side::SideKind, spec::CdcSpec,
};

/// A row that comes: where its parts are.
pub(super) struct Row {
    /// A change of its key.
    pub(super) key: u32,
    pub(super) at: Ordinal,
    pub(super) sequence: RowRef,
    /// Per leaf.
    pub(super) values: Vec<RowRef>,
}

/// A side row that comes.
pub(super) struct SideRow {
    pub(super) row: Row,
    pub(super) kind: SideKind,
    pub(super) authored: Option<Vec<usize>>,
}

/// Rows that come, and rows of the prior that go.
#[derive(Default)]
pub(in super::super) struct Effects {
    pub(super) rows: Vec<Row>,
    pub(super) side: Vec<SideRow>,
    pub(super) visible_gone: Vec<u32>,
    pub(super) hidden_gone: Vec<u32>,
    pub(super) values: Option<Values>,
    /// Delete events that removed a row.
    pub(in super::super) deleted: u64,
}

impl Effects {
    pub(in super::super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
            && self.side.is_empty()
            && self.visible_gone.is_empty()
            && self.hidden_gone.is_empty()
    }

    /// Target rows that come.
    pub(in super::super) fn upserted(&self) -> u64 {
        self.rows.len() as u64
    }

    pub(in super::super) fn target(&self, spec: &CdcSpec, input: &Input<'_>) -> Result<RowChanges, CdcError> {
        let rows: Vec<&Row> = self.rows.iter().collect();
        let inserts = self.gather(spec, &spec.target, input, &rows)?;
        Ok(RowChanges { deletes: ids(&input.prior.visible.ids, &self.visible_gone), inserts })
    }

    pub(in super::super) fn side(
        &self,
        spec: &CdcSpec,
        schema: &SchemaRef,
        input: &Input<'_>,
    ) -> Result<RowChanges, CdcError> {
        let rows: Vec<&Row> = self.side.iter().map(|side| &side.row).collect();
        let inserts = self.gather(spec, schema, input, &rows)?;
        Ok(RowChanges { deletes: ids(&input.prior.hidden.ids, &self.hidden_gone), inserts })
    }

    fn gather(
        &self,
        spec: &CdcSpec,
        schema: &SchemaRef,
        input: &Input<'_>,
        rows: &[&Row],
    ) -> Result<RecordBatch, CdcError> {
        let Some(values) = &self.values else { return Ok(RecordBatch::new_empty(Arc::clone(schema))) };
        let keys: UInt32Array = rows.iter().map(|row| row.key).collect::<Vec<_>>().into();
        let column = |(i, field): (usize, &FieldRef)| -> Result<ArrayRef, CdcError> {
            if spec.keys.contains(&i) {
                return Ok(take(input.changes.rows.column(i), &keys, None)?);
            }
            let payload = spec.payload_by_name.iter().position(|&kept| kept == i);
            if let Some(column) = payload {
                let mut leaf = |leaf: usize| match values.columns.get(leaf) {
                    Some(column) => {
                        column.gather(&column.places(rows.iter().map(|row| row.values.get(leaf).copied())))
                    }
                    None => Err(ArrowError::InvalidArgumentError("no such leaf".to_owned())),
                };
                return Ok(values.leaves.join(column, &mut leaf)?);
            }
            Ok(match field.name().as_str() {
                names::SIDE_KIND => {
                    let kinds: Vec<i8> = self.side.iter().map(|side| side.kind.code()).collect();
                    Arc::new(Int8Array::from(kinds))
                }
                names::AUTHORED => self.authored(values),
                names::APPLIED_AT => {
                    let is_delete = |side: &SideRow| side.kind == SideKind::Delete;
                    let applied = |side| input.changes.applied_at.filter(|_| is_delete(side));
                    Arc::new(self.side.iter().map(applied).collect::<Int64Array>())
                }
                _ => {
                    let sequences = &values.sequences;
                    sequences.gather(&sequences.places(rows.iter().map(|row| Some(row.sequence))))?
                }
            })
        };
        let columns = schema.fields().iter().enumerate().map(column).collect::<Result<Vec<_>, _>>()?;
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }

    fn authored(&self, values: &Values) -> ArrayRef {
        let mut lists = ListBuilder::new(StringBuilder::new());
        for side in &self.side {
            if let Some(listed) = &side.authored {
                for name in values.leaves.names(|leaf| listed.binary_search(&leaf).is_ok()) {
                    lists.values().append_value(name);
                }
            }
            lists.append(side.authored.is_some());
        }
        Arc::new(lists.finish())
    }
}
