//! How are output rows put together from rows of several sources?
//!
//! A column of the output is one `interleave` over that column of every source. NULL is a source of its own.

use arrow_array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow_schema::{ArrowError, DataType, Field};
use arrow_select::interleave::interleave;

use super::payload::RowRef;
use crate::{
    error::CdcError,
    spec::{widened, wider},
};

/// Source and row of values.
pub(crate) type Places = Vec<(usize, usize)>;

/// One column in every source, with a NULL behind them.
pub(crate) struct Column {
    arrays: Vec<ArrayRef>,
}

impl Column {
    pub(crate) fn new(sources: Vec<ArrayRef>, data_type: &DataType) -> Self {
        let mut arrays = sources;
        arrays.push(new_null_array(data_type, 1));
        Self { arrays }
    }

    /// True when its values have one width, so that they are cheap to move.
    pub(crate) fn is_flat(&self) -> bool {
        self.arrays.first().is_some_and(|array| array.data_type().is_primitive())
    }

    /// The handle of NULL.
    pub(crate) fn null(&self) -> RowRef {
        RowRef { source: self.arrays.len().saturating_sub(1), row: 0 }
    }

    /// The sources, NULL not among them.
    pub(crate) fn sources(&self) -> &[ArrayRef] {
        self.arrays.split_last().map_or(&[], |(_, sources)| sources)
    }

    /// The places of the rows that `wanted` names, `None` for NULL: they hold for every column with as many sources.
    pub(crate) fn places(&self, wanted: impl Iterator<Item = Option<RowRef>>) -> Places {
        let null = self.null();
        wanted.map(|row| row.unwrap_or(null)).map(|row| (row.source, row.row)).collect()
    }

    /// The values at places.
    pub(crate) fn gather(&self, places: &[(usize, usize)]) -> Result<ArrayRef, ArrowError> {
        let arrays: Vec<&dyn Array> = self.arrays.iter().map(AsRef::as_ref).collect();
        interleave(&arrays, places)
    }
}

/// Items ordered by their group, those of one group in their former order.
pub(crate) fn by_group<T: Copy>(items: &[T], groups: usize, group: impl Fn(&T) -> u32) -> Vec<T> {
    let mut next = vec![0_usize; groups];
    for item in items {
        if let Some(count) = next.get_mut(group(item) as usize) {
            *count = count.saturating_add(1);
        }
    }
    let mut before = 0_usize;
    for slot in &mut next {
        before = before.saturating_add(std::mem::replace(slot, before));
    }
    let mut ordered = items.to_vec();
    for item in items {
        let Some(place) = next.get_mut(group(item) as usize) else { continue };
        if let Some(slot) = ordered.get_mut(*place) {
            *slot = *item;
        }
        *place = place.saturating_add(1);
    }
    ordered
}

/// The column that `field` describes, or NULLs where the rows were written before it existed. Rows that were written
/// before it became wider have it in a narrower type.
pub(crate) fn column_or_null(rows: &RecordBatch, field: &Field) -> Result<ArrayRef, CdcError> {
    let Some(array) = rows.column_by_name(field.name()) else {
        return Ok(new_null_array(field.data_type(), rows.num_rows()));
    };
    if wider(array.data_type(), field.data_type()).as_ref() == Some(field.data_type()) {
        return Ok(widened(array, field.data_type())?);
    }
    Err(CdcError::SchemaMismatch {
        what: "stored rows",
        expected: format!("`{}` {}", field.name(), field.data_type()),
        found: format!("type {}", array.data_type()),
    })
}
