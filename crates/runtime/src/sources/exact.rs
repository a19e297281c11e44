//! How do numbers and instants come out of JSON without a digit lost?
//!
//! A JSON decoder cuts what does not fit: 1.9 becomes the integer 1, a timestamp loses what is finer than its unit. Since such a
//! value may be the sequence that decides, these columns are decoded as text, and the text is taken exactly or refused.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, cast::AsArray};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

/// The schema to decode with: text in place of integers, decimals and timestamps.
pub(super) fn as_text(schema: &Schema) -> SchemaRef {
    let field = |field: &Field| {
        let data_type = if is_exact(field.data_type()) { DataType::Utf8 } else { field.data_type().clone() };
        field.clone().with_data_type(data_type)
    };
    Arc::new(Schema::new(schema.fields().iter().map(|f| field(f)).collect::<Vec<_>>()))
}

fn is_exact(data_type: &DataType) -> bool {
    data_type.is_signed_integer() || matches!(data_type, DataType::Decimal128(..) | DataType::Timestamp(..))
}

/// The rows with their own types.
pub(super) fn from_text(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = schema.fields().iter().zip(batch.columns()).map(|(field, column)| {
        if is_exact(field.data_type()) { exact(column.as_string(), field) } else { Ok(Arc::clone(column)) }
    });
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns.collect::<Result<_, _>>()?, &options)
}

fn exact(texts: &StringArray, field: &Field) -> Result<ArrayRef, ArrowError> {
    let plain: StringArray = texts
        .iter()
        .map(|text| text.map(|text| plain(text, field)).transpose())
        .collect::<Result<_, ArrowError>>()?;
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(&plain, field.data_type(), &strict).map_err(|error| {
        let bad = (0..plain.len())
            .filter(|&i| plain.is_valid(i))
            .find(|&i| cast_with_options(&plain.slice(i, 1), field.data_type(), &strict).is_err());
        let value = bad.map_or("?", |i| texts.value(i));
        refused(field, value, &error.to_string())
    })
}

fn refused(field: &Field, value: &str, why: &str) -> ArrowError {
    ArrowError::JsonError(format!(
        "`{value}` in column `{}` is no exact {}: {why}",
        field.name(),
        field.data_type()
    ))
}

/// The text without what adds nothing, or an error where a digit would be lost.
fn plain<'a>(text: &'a str, field: &Field) -> Result<&'a str, ArrowError> {
    let kept = match field.data_type() {
        DataType::Decimal128(_, scale) => usize::try_from(*scale).unwrap_or(0),
        DataType::Timestamp(..) => {
            // A bare number has no unit that everybody would guess.
            if text.parse::<f64>().is_ok() {
                return Err(refused(field, text, "write instants as text, 2026-03-01T12:00:00Z"));
            }
            6
        }
        _ => 0,
    };
    if text.contains(['e', 'E']) && !matches!(field.data_type(), DataType::Timestamp(..)) {
        return Err(refused(field, text, "write it without an exponent"));
    }
    let Some((before, fraction)) = text.split_once('.') else { return Ok(text) };
    let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
    let lost = fraction.get(kept..digits).unwrap_or_default();
    if lost.bytes().any(|digit| digit != b'0') {
        return Err(refused(field, text, &format!("{kept} digits behind the point are kept")));
    }
    // An integer with a fraction of zeros is that integer.
    Ok(if kept == 0 && digits == fraction.len() { before } else { text })
}

#[cfg(test)]
#[path = "exact_tests.rs"]
mod tests;
