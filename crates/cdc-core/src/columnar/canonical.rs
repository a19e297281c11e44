//! Which form of a value is stored and compared? One form for values that are equal.
//!
//! - A NaN is the one quiet NaN; in keys and sequences -0.0 is 0.0 besides, while a payload keeps the sign of zero.
//! - The entries of a map are sorted by key: two maps with the same entries are the same map.
//!
//! Floats nested in structs are treated alike; those within lists and maps are left as they come.

use std::{cmp::Ordering, sync::Arc};

use arrow_array::{
    Array, ArrayRef, MapArray, StructArray, UInt32Array,
    cast::AsArray,
    types::{Float32Type, Float64Type},
};
use arrow_ord::ord::make_comparator;
use arrow_schema::{ArrowError, DataType, SortOptions};
use arrow_select::take::take;

/// Whether the sign of zero is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Keys and sequences: equal numbers are one value.
    Identity,
    /// Other values.
    Payload,
}

/// The canonical form of an array; the array itself where nothing has to change.
pub(crate) fn canonical(array: &ArrayRef, role: Role) -> Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Float64 => {
            let floats = array.as_primitive::<Float64Type>();
            let odd = |v: f64| (v.is_nan() && v.to_bits() != f64::NAN.to_bits()) || is_negative_zero(v, role);
            if !floats.values().iter().any(|&v| odd(v)) {
                return Ok(Arc::clone(array));
            }
            Ok(Arc::new(floats.unary::<_, Float64Type>(|v| {
                if v.is_nan() { f64::NAN } else if is_negative_zero(v, role) { 0.0 } else { v }
            })))
        }
        DataType::Float32 => {
            let floats = array.as_primitive::<Float32Type>();
            let odd = |v: f32| {
                (v.is_nan() && v.to_bits() != f32::NAN.to_bits()) || is_negative_zero(f64::from(v), role)
            };
            if !floats.values().iter().any(|&v| odd(v)) {
                return Ok(Arc::clone(array));
            }
            Ok(Arc::new(floats.unary::<_, Float32Type>(|v| {
                if v.is_nan() { f32::NAN } else if is_negative_zero(f64::from(v), role) { 0.0 } else { v }
            })))
        }
        DataType::Struct(fields) => {
            let parts = array.as_struct();
            let columns =
                parts.columns().iter().map(|column| canonical(column, role)).collect::<Result<Vec<_>, _>>()?;
            Ok(Arc::new(StructArray::try_new(fields.clone(), columns, parts.nulls().cloned())?))
        }
        DataType::Map(_, _) => sorted_map(array),
        _ => Ok(Arc::clone(array)),
    }
}

fn is_negative_zero(value: f64, role: Role) -> bool {
    role == Role::Identity && value == 0.0 && value.is_sign_negative()
}

/// The same maps with their entries in key order.
fn sorted_map(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let map: &MapArray = array.as_map();
    let compare = make_comparator(map.keys(), map.keys(), SortOptions::default())?;
    let offsets = map.value_offsets();
    let sorted = |from: usize, to: usize| (from + 1..to).all(|i| compare(i - 1, i) != Ordering::Greater);
    let bounds = || {
        offsets.windows(2).filter_map(|w| match w {
            [from, to] => Some((usize::try_from(*from).ok()?, usize::try_from(*to).ok()?)),
            _ => None,
        })
    };
    if bounds().all(|(from, to)| sorted(from, to)) {
        return Ok(Arc::clone(array));
    }
    let mut order: Vec<usize> = (0..map.entries().len()).collect();
    for (from, to) in bounds() {
        if let Some(entries) = order.get_mut(from..to) {
            entries.sort_by(|&a, &b| compare(a, b));
        }
    }
    let order: UInt32Array = order.into_iter().map(super::row_number).collect::<Vec<_>>().into();
    let entries = take(map.entries(), &order, None)?;
    let DataType::Map(field, ordered) = array.data_type() else {
        return Ok(Arc::clone(array));
    };
    let map = MapArray::try_new(
        Arc::clone(field),
        map.offsets().clone(),
        entries.as_struct().clone(),
        map.nulls().cloned(),
        *ordered,
    )?;
    Ok(Arc::new(map))
}
