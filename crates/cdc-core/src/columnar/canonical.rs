//! Which form of a value is stored and compared? One form for values that are equal.
//!
//! - A NaN is the one quiet NaN; in keys and sequences -0.0 is 0.0 besides, while a payload keeps the sign of zero.
//! - The entries of a map are sorted by key: two maps with the same entries are the same map.
//!
//! Values within structs, lists, maps and dictionaries are treated alike, at any depth.

use std::{cmp::Ordering, sync::Arc};

use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, MapArray, OffsetSizeTrait, StructArray,
    UInt32Array,
    cast::AsArray,
    types::{ArrowPrimitiveType, Float16Type, Float32Type, Float64Type},
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
#[expect(clippy::wildcard_enum_match_arm, reason = "values of all other types have one form")]
pub(crate) fn canonical(array: &ArrayRef, role: Role) -> Result<ArrayRef, ArrowError> {
    macro_rules! floats {
        ($kind:ty, $native:ty) => {{
            let floats = array.as_primitive::<$kind>();
            let zero = <$native>::default();
            let form = |v: $native| {
                if v.is_nan() {
                    <$native>::NAN
                } else if role == Role::Identity && v.partial_cmp(&zero) == Some(Ordering::Equal) {
                    zero
                } else {
                    v
                }
            };
            if floats.values().iter().all(|&v| v.to_bits() == form(v).to_bits()) {
                return Ok(Arc::clone(array));
            }
            Ok(Arc::new(floats.unary::<_, $kind>(form)))
        }};
    }
    match array.data_type() {
        DataType::Float64 => floats!(Float64Type, f64),
        DataType::Float32 => floats!(Float32Type, f32),
        DataType::Float16 => floats!(Float16Type, <Float16Type as ArrowPrimitiveType>::Native),
        DataType::Struct(fields) => {
            let parts = array.as_struct();
            let columns = parts
                .columns()
                .iter()
                .map(|column| canonical(column, role))
                .collect::<Result<Vec<_>, _>>()?;
            if columns.iter().zip(parts.columns()).all(|(new, old)| Arc::ptr_eq(new, old)) {
                return Ok(Arc::clone(array));
            }
            Ok(Arc::new(StructArray::try_new(fields.clone(), columns, parts.nulls().cloned())?))
        }
        DataType::List(_) => list::<i32>(array, role),
        DataType::LargeList(_) => list::<i64>(array, role),
        DataType::FixedSizeList(field, size) => {
            let lists = array.as_fixed_size_list();
            let values = canonical(lists.values(), role)?;
            if Arc::ptr_eq(&values, lists.values()) {
                return Ok(Arc::clone(array));
            }
            let nulls = lists.nulls().cloned();
            Ok(Arc::new(FixedSizeListArray::try_new(Arc::clone(field), *size, values, nulls)?))
        }
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            let values = canonical(dictionary.values(), role)?;
            let same = Arc::ptr_eq(&values, dictionary.values());
            Ok(if same { Arc::clone(array) } else { dictionary.with_values(values) })
        }
        DataType::Map(_, _) => sorted_map(&canonical_entries(array, role)?),
        _ => Ok(Arc::clone(array)),
    }
}

fn list<O: OffsetSizeTrait>(array: &ArrayRef, role: Role) -> Result<ArrayRef, ArrowError> {
    let lists = array.as_list::<O>();
    let values = canonical(lists.values(), role)?;
    if Arc::ptr_eq(&values, lists.values()) {
        return Ok(Arc::clone(array));
    }
    let (field, offsets, _, nulls) = lists.clone().into_parts();
    Ok(Arc::new(GenericListArray::<O>::try_new(field, offsets, values, nulls)?))
}

/// The same maps with their keys and values in canonical form.
fn canonical_entries(array: &ArrayRef, role: Role) -> Result<ArrayRef, ArrowError> {
    let (field, offsets, entries, nulls, ordered) = array.as_map().clone().into_parts();
    let entries: ArrayRef = Arc::new(entries);
    let canonical = canonical(&entries, role)?;
    if Arc::ptr_eq(&canonical, &entries) {
        return Ok(Arc::clone(array));
    }
    Ok(Arc::new(MapArray::try_new(field, offsets, canonical.as_struct().clone(), nulls, ordered)?))
}

/// The same maps with their entries in key order.
fn sorted_map(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let map: &MapArray = array.as_map();
    let compare = make_comparator(map.keys(), map.keys(), SortOptions::default())?;
    let offsets = map.value_offsets();
    let sorted = |from: usize, to: usize| {
        (from..to).zip((from..to).skip(1)).all(|(a, b)| compare(a, b) != Ordering::Greater)
    };
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
