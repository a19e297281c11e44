//! How does a value look in a message? Short, on one line.

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};

const LONGEST: usize = 120;

/// One value, shortened.
pub(crate) fn value(array: &ArrayRef, row: usize) -> String {
    let options = FormatOptions::default().with_null("NULL");
    let text = ArrayFormatter::try_new(array.as_ref(), &options)
        .ok()
        .filter(|_| row < array.len())
        .map_or_else(|| "?".to_owned(), |formatter| formatter.value(row).to_string());
    shorten(text)
}

/// One row as `name=value, ..`, shortened; columns of the engine's own are left out.
pub(crate) fn row(batch: &RecordBatch, row: usize) -> String {
    let schema = batch.schema();
    let parts: Vec<String> = schema
        .fields()
        .iter()
        .zip(batch.columns())
        .filter(|(field, _)| !field.name().starts_with(crate::names::RESERVED_PREFIX))
        .map(|(field, array)| format!("{}={}", field.name(), value(array, row)))
        .collect();
    shorten(parts.join(", "))
}

fn shorten(text: String) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}..", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
