//! Which type holds the values of two types, and how do values get there?
//!
//! A column may become wider: integers and floats of more bits, decimals of more digits, structs of more fields, and lists
//! and maps of such. Nothing is rounded and nothing is cut off. Keys and sequences never change their type.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, GenericListArray, MapArray, OffsetSizeTrait, RecordBatch, RecordBatchOptions,
    StructArray, cast::AsArray, new_null_array,
};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DECIMAL128_MAX_PRECISION, DataType, Field, FieldRef, Fields, SchemaRef};

/// The narrowest type that holds all values of both; `None` where there is none.
#[expect(clippy::wildcard_enum_match_arm, reason = "what is not listed does not widen")]
pub fn wider(a: &DataType, b: &DataType) -> Option<DataType> {
    use DataType as T;
    if a == b {
        return Some(a.clone());
    }
    let bits = |data_type: &DataType| match data_type {
        T::Int8 | T::UInt8 => 8,
        T::Int16 | T::UInt16 | T::Float16 => 16,
        T::Int32 | T::UInt32 | T::Float32 => 32,
        _ => 64,
    };
    let larger = || if bits(a) >= bits(b) { a.clone() } else { b.clone() };
    match (a, b) {
        (T::Null, other) | (other, T::Null) => Some(other.clone()),
        (a, b) if a.is_signed_integer() && b.is_signed_integer() => Some(larger()),
        (a, b) if a.is_unsigned_integer() && b.is_unsigned_integer() => Some(larger()),
        (a, b) if a.is_floating() && b.is_floating() => Some(larger()),
        (T::Decimal128(a_digits, a_scale), T::Decimal128(b_digits, b_scale)) => {
            decimal((*a_digits, *a_scale), (*b_digits, *b_scale))
        }
        (T::Struct(a), T::Struct(b)) => struct_of(a, b).map(T::Struct),
        (T::List(a), T::List(b)) => item(a, b).map(T::List),
        (T::LargeList(a), T::LargeList(b)) => item(a, b).map(T::LargeList),
        (T::Map(a, ordered), T::Map(b, _)) => match (a.data_type(), b.data_type()) {
            (T::Struct(x), T::Struct(y)) => {
                let [key, value] = [0, 1].map(|at| Some((x.get(at)?, y.get(at)?)));
                let ((key, other), (value, new)) = (key?, value?);
                (key.data_type() == other.data_type()).then_some(())?;
                let value = Arc::new(
                    value.as_ref().clone().with_data_type(wider(value.data_type(), new.data_type())?),
                );
                let entries = T::Struct(Fields::from(vec![Arc::clone(key), value]));
                Some(T::Map(Arc::new(a.as_ref().clone().with_data_type(entries)), *ordered))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Digits before and after the point as in the one that has more of them.
fn decimal(a: (u8, i8), b: (u8, i8)) -> Option<DataType> {
    let before = |(digits, scale): (u8, i8)| i16::from(digits).saturating_sub(i16::from(scale));
    let scale = a.1.max(b.1);
    let digits = u8::try_from(before(a).max(before(b)).saturating_add(i16::from(scale))).ok()?;
    (digits <= DECIMAL128_MAX_PRECISION).then_some(DataType::Decimal128(digits, scale))
}

fn item(a: &Field, b: &Field) -> Option<FieldRef> {
    let data_type = wider(a.data_type(), b.data_type())?;
    Some(Arc::new(a.clone().with_data_type(data_type).with_nullable(a.is_nullable() || b.is_nullable())))
}

/// The fields of both, those of the first in its order; a field that one lacks is nullable.
fn struct_of(a: &Fields, b: &Fields) -> Option<Fields> {
    let mut fields: Vec<FieldRef> = Vec::new();
    for field in a {
        fields.push(match b.find(field.name()) {
            Some((_, other)) => item(field, other)?,
            None => Arc::new(field.as_ref().clone().with_nullable(true)),
        });
    }
    let new = b.iter().filter(|field| a.find(field.name()).is_none());
    fields.extend(new.map(|field| Arc::new(field.as_ref().clone().with_nullable(true))));
    Some(fields.into())
}

/// Rows in a schema with further columns and wider ones: what they lack is NULL.
///
/// # Errors
/// An Arrow error for a column of another type than one that widens to the schema's.
pub fn widened_rows(rows: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let column = |field: &FieldRef| match rows.column_by_name(field.name()) {
        None => Ok(new_null_array(field.data_type(), rows.num_rows())),
        Some(own) if wider(own.data_type(), field.data_type()).as_ref() == Some(field.data_type()) => {
            widened(own, field.data_type())
        }
        Some(own) => Err(ArrowError::CastError(format!(
            "column `{}` of type {} does not widen to {}",
            field.name(),
            own.data_type(),
            field.data_type()
        ))),
    };
    let columns = schema.fields().iter().map(column).collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &options)
}

/// Values in a wider type; what that has besides is NULL.
#[expect(clippy::wildcard_enum_match_arm, reason = "flat types are cast")]
pub(crate) fn widened(array: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == data_type {
        return Ok(Arc::clone(array));
    }
    match data_type {
        DataType::Struct(fields) if matches!(array.data_type(), DataType::Struct(_)) => {
            let parts = array.as_struct();
            let part = |field: &FieldRef| match parts.column_by_name(field.name()) {
                Some(part) => widened(part, field.data_type()),
                None => Ok(new_null_array(field.data_type(), array.len())),
            };
            let columns = fields.iter().map(part).collect::<Result<Vec<_>, _>>()?;
            Ok(Arc::new(StructArray::try_new_with_length(
                fields.clone(),
                columns,
                parts.nulls().cloned(),
                array.len(),
            )?))
        }
        DataType::List(item) if matches!(array.data_type(), DataType::List(_)) => list::<i32>(array, item),
        DataType::LargeList(item) if matches!(array.data_type(), DataType::LargeList(_)) => {
            list::<i64>(array, item)
        }
        DataType::Map(entries, ordered) if matches!(array.data_type(), DataType::Map(_, _)) => {
            let (_, offsets, old, nulls, _) = array.as_map().clone().into_parts();
            let old: ArrayRef = Arc::new(old);
            let new = widened(&old, entries.data_type())?;
            Ok(Arc::new(MapArray::try_new(
                Arc::clone(entries),
                offsets,
                new.as_struct().clone(),
                nulls,
                *ordered,
            )?))
        }
        _ => cast_with_options(array, data_type, &CastOptions { safe: false, ..CastOptions::default() }),
    }
}

fn list<O: OffsetSizeTrait>(array: &ArrayRef, item: &FieldRef) -> Result<ArrayRef, ArrowError> {
    let (_, offsets, values, nulls) = array.as_list::<O>().clone().into_parts();
    let values = widened(&values, item.data_type())?;
    Ok(Arc::new(GenericListArray::<O>::try_new(Arc::clone(item), offsets, values, nulls)?))
}

/// Paths of the leaves of `wide` that `narrow` lacks, outside lists and maps: no event of such a source sets them.
pub(super) fn missing(path: &str, narrow: &DataType, wide: &DataType, found: &mut Vec<String>) {
    if let (DataType::Struct(narrow), DataType::Struct(wide)) = (narrow, wide) {
        for field in wide {
            let path = format!("{path}.{}", crate::columnar::leaves::quoted(field.name()));
            match narrow.find(field.name()) {
                Some((_, own)) => missing(&path, own.data_type(), field.data_type(), found),
                None => found.push(path),
            }
        }
    }
}
