//! How do rows of a history get into Arrow?

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Int8Array, Int64Array, RecordBatch,
    builder::{ListBuilder, StringBuilder},
};
use arrow_schema::{FieldRef, SchemaRef};

use super::{
    super::{gather::Column, payload::RowRef},
    sources::{NULL, Sources},
};
use crate::{algebra::step::Filled, error::CdcError, names, side::SideKind, spec::CdcSpec};

/// The values of a row.
#[derive(Debug, Clone)]
pub(super) enum Values {
    None,
    Filled(Filled<RowRef>),
    /// Some leaves; the others are NULL.
    Leaves(Vec<(usize, RowRef)>),
}

impl Values {
    fn leaf(&self, leaf: usize) -> RowRef {
        let row = match self {
            Self::None => None,
            Self::Filled(filled) => filled.leaf(leaf),
            Self::Leaves(leaves) => {
                let found = leaves.binary_search_by_key(&leaf, |(leaf, _)| *leaf).ok();
                found.and_then(|at| leaves.get(at)).map(|(_, row)| *row)
            }
        };
        row.unwrap_or(NULL)
    }
}

/// A row that comes.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// A row of its key.
    pub(super) key: RowRef,
    pub(super) values: Values,
    /// Start of a target row, sequence of a side row.
    pub(super) sequence: RowRef,
    pub(super) end: Option<RowRef>,
    /// Start of a target row in system time, system sequence of a side row.
    pub(super) system: Option<RowRef>,
    pub(super) system_end: Option<RowRef>,
    /// What a side row stands for.
    pub(super) kind: Option<SideKind>,
    /// The leaves that it lists.
    pub(super) authored: Option<Vec<usize>>,
}

/// Rows in the columns of a schema.
pub(super) fn gather(
    spec: &CdcSpec,
    sources: &Sources<'_>,
    schema: &SchemaRef,
    rows: &[Row],
) -> Result<RecordBatch, CdcError> {
    let of = |column: &Column, place: fn(&Row) -> Option<RowRef>| -> Result<ArrayRef, CdcError> {
        Ok(column.gather(&column.places(rows.iter().map(place)))?)
    };
    let one = |(at, field): (usize, &FieldRef)| -> Result<ArrayRef, CdcError> {
        if let Some(key) = spec.keys.iter().position(|&key| key == at).and_then(|key| sources.keys.get(key)) {
            return of(key, |row| Some(row.key));
        }
        if let Some(column) = spec.payload_by_name.iter().position(|&kept| kept == at) {
            let mut leaf = |leaf: usize| match sources.columns.get(leaf) {
                Some(column) => {
                    let places = rows.iter().map(|row| row.values.leaf(leaf));
                    column.gather(&places.map(|row| (row.source, row.row)).collect::<Vec<_>>())
                }
                None => Err(arrow_schema::ArrowError::InvalidArgumentError("no such leaf".to_owned())),
            };
            return Ok(sources.leaves.join(column, &mut leaf)?);
        }
        let sequences = &sources.sequence.values;
        let systems = sources.system.as_ref().map_or(sequences, |system| &system.values);
        match field.name().as_str() {
            names::START_AT | names::SEQUENCE_AT => of(sequences, |row| Some(row.sequence)),
            names::END_AT => of(sequences, |row| row.end),
            names::SYSTEM_START_AT | names::SYSTEM_SEQUENCE_AT => of(systems, |row| row.system),
            names::SYSTEM_END_AT => of(systems, |row| row.system_end),
            names::SYSTEM_SEQUENCE_GIVEN => {
                let given = sources.given.as_ref().map_or(sequences, |given| &given.values);
                of(given, |row| row.system)
            }
            names::SIDE_KIND => {
                Ok(Arc::new(rows.iter().map(|row| row.kind.map(SideKind::code)).collect::<Int8Array>()))
            }
            names::APPLIED_AT => {
                let applied =
                    |row: &Row| sources.changes.applied_at.filter(|_| row.kind == Some(SideKind::Delete));
                Ok(Arc::new(rows.iter().map(applied).collect::<Int64Array>()))
            }
            names::AUTHORED => Ok(authored(sources, rows)),
            _ => Ok(arrow_array::new_null_array(field.data_type(), rows.len())),
        }
    };
    let columns = schema.fields().iter().enumerate().map(one).collect::<Result<Vec<_>, _>>()?;
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

fn authored(sources: &Sources<'_>, rows: &[Row]) -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in rows {
        if let Some(listed) = &row.authored {
            for name in sources.leaves.names(|leaf| listed.binary_search(&leaf).is_ok()) {
                lists.values().append_value(name);
            }
        }
        lists.append(row.authored.is_some());
    }
    Arc::new(lists.finish())
}
