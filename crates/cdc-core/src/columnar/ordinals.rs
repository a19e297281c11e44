//! How do sequence values of any orderable type become numbers that sort like them?
//!
//! Integers and instants map to a word directly. Everything else is row-encoded, sorted once, and replaced by its rank.

use arrow_array::{
    Array, ArrayRef, PrimitiveArray, cast::AsArray, downcast_primitive_array, types::ArrowPrimitiveType,
};
use arrow_buffer::ArrowNativeType;
use arrow_row::{RowConverter, SortField};
use arrow_schema::{ArrowError, DataType};

use crate::algebra::order::Ordinal;

/// The ordinals of several arrays of one type, comparable with one another. NULLs get 0: callers ask the array.
pub(crate) fn ordinals(arrays: &[&ArrayRef]) -> Result<Vec<Vec<Ordinal>>, ArrowError> {
    match arrays.first().map(Array::data_type) {
        None => Ok(Vec::new()),
        Some(data_type) if is_direct(data_type) => arrays.iter().map(|array| direct(array)).collect(),
        Some(data_type) => ranks(arrays, data_type),
    }
}

fn is_direct(data_type: &DataType) -> bool {
    data_type.is_integer() || (data_type.is_temporal() && !matches!(data_type, DataType::Interval(_)))
}

fn direct(array: &ArrayRef) -> Result<Vec<Ordinal>, ArrowError> {
    fn signed<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>) -> Vec<Ordinal> {
        // Flipping the sign bit makes unsigned order follow signed order.
        let word = |value: &T::Native| (value.to_i64().unwrap_or_default() ^ i64::MIN).cast_unsigned();
        array.values().iter().map(word).collect()
    }
    if let DataType::UInt64 = array.data_type() {
        return Ok(array.as_primitive::<arrow_array::types::UInt64Type>().values().to_vec());
    }
    Ok(downcast_primitive_array!(
        array => signed(array),
        other => return Err(ArrowError::InvalidArgumentError(format!("{other} has no direct order"))),
    ))
}

/// Dense ranks over all arrays.
fn ranks(arrays: &[&ArrayRef], data_type: &DataType) -> Result<Vec<Vec<Ordinal>>, ArrowError> {
    let converter = RowConverter::new(vec![SortField::new(data_type.clone())])?;
    let encoded = arrays
        .iter()
        .map(|array| converter.convert_columns(&[ArrayRef::clone(array)]))
        .collect::<Result<Vec<_>, _>>()?;
    let mut values: Vec<_> = encoded
        .iter()
        .enumerate()
        .flat_map(|(array, rows)| rows.iter().enumerate().map(move |(row, value)| (value, array, row)))
        .collect();
    values.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let mut ranked: Vec<Vec<Ordinal>> = arrays.iter().map(|array| vec![0; array.len()]).collect();
    let mut rank: Ordinal = 0;
    let mut previous = None;
    for (value, array, row) in values {
        rank = rank.saturating_add(u64::from(previous.is_some_and(|p| p != value)));
        if let Some(slot) = ranked.get_mut(array).and_then(|ranks| ranks.get_mut(row)) {
            *slot = rank;
        }
        previous = Some(value);
    }
    Ok(ranked)
}

#[cfg(test)]
#[path = "ordinals_tests.rs"]
mod tests;
