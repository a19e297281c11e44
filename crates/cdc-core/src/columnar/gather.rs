//! How are output rows put together from rows of several sources?
//!
//! A column of the output is one `interleave` over that column of every source. NULL is a source of its own.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow_schema::{ArrowError, DataType, Field};
use arrow_select::interleave::interleave;

use super::payload::RowRef;

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

    /// The handle of NULL.
    pub(crate) fn null(&self) -> RowRef {
        RowRef { source: self.arrays.len().saturating_sub(1), row: 0 }
    }

    /// The sources, NULL not among them.
    pub(crate) fn sources(&self) -> &[ArrayRef] {
        self.arrays.split_last().map_or(&[], |(_, sources)| sources)
    }

    /// The rows that `wanted` names, `None` for NULL.
    pub(crate) fn gather(&self, wanted: impl Iterator<Item = Option<RowRef>>) -> Result<ArrayRef, ArrowError> {
        let null = self.null();
        let places: Vec<(usize, usize)> =
            wanted.map(|row| row.unwrap_or(null)).map(|row| (row.source, row.row)).collect();
        let arrays: Vec<&dyn Array> = self.arrays.iter().map(AsRef::as_ref).collect();
        interleave(&arrays, &places)
    }
}

/// The column that `field` describes, or NULLs where the rows were written before it existed.
pub(crate) fn column_or_null(rows: &RecordBatch, field: &Field) -> Result<ArrayRef, ArrowError> {
    match rows.column_by_name(field.name()) {
        None => Ok(new_null_array(field.data_type(), rows.num_rows())),
        Some(array) if array.data_type() == field.data_type() => Ok(Arc::clone(array)),
        Some(array) => Err(ArrowError::SchemaError(format!(
            "column `{}` has type {}, the flow writes {}",
            field.name(),
            array.data_type(),
            field.data_type()
        ))),
    }
}
