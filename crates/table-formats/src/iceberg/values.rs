//! Values in manifests: bounds of columns, and values that files are partitioned by.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray,
    Int32Array, Int64Array, StringArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    TimestampNanosecondArray,
    cast::AsArray,
    types::{
        Date32Type, Decimal128Type, Int32Type, Int64Type, Time64MicrosecondType, TimestampMicrosecondType,
        TimestampNanosecondType,
    },
};
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use iceberg::spec::{
    DataFile as IcebergFile, Datum, NestedField, PrimitiveLiteral, PrimitiveType, Schema as IcebergSchema,
};

use super::schema;
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
    metadata::{ColumnStats, DataFile},
};

/// What a manifest says about a file's columns, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    pub(super) values: HashMap<i32, u64>,
    pub(super) nulls: HashMap<i32, u64>,
    pub(super) lower: HashMap<i32, Datum>,
    pub(super) upper: HashMap<i32, Datum>,
}

impl Metrics {
    /// Those of a file that was written with these columns.
    pub(super) fn of(file: &DataFile, schema: &IcebergSchema) -> Result<Self> {
        let mut all = Self::default();
        for field in schema.as_struct().fields() {
            let Some(of) = field.field_type.as_primitive_type() else { continue };
            let Some(stats) = file.stats.get(&field.name) else { continue };
            all.values.insert(field.id, file.rows);
            all.nulls.extend(stats.nulls.map(|nulls| (field.id, nulls)));
            for (bounds, value) in [(&mut all.lower, &stats.min), (&mut all.upper, &stats.max)] {
                let bound = value.as_ref().map(|value| datum(value, of)).transpose()?.flatten();
                bounds.extend(bound.map(|bound| (field.id, bound)));
            }
        }
        Ok(all)
    }
}

/// The statistics in a manifest as the shared middle wants them, by name.
pub(super) fn stats(
    file: &IcebergFile,
    schema: &IcebergSchema,
    columns: &SchemaRef,
) -> Vec<(String, ColumnStats)> {
    let of = |(field, column): (&Arc<NestedField>, &Arc<arrow_schema::Field>)| {
        if !field.field_type.is_primitive() {
            return None;
        }
        let bound = |bounds: &HashMap<i32, Datum>| {
            bounds.get(&field.id).and_then(|bound| array(bound.literal(), column.data_type()))
        };
        let stats = ColumnStats {
            min: bound(file.lower_bounds()),
            max: bound(file.upper_bounds()),
            nulls: file.null_value_counts().get(&field.id).copied(),
        };
        Some((field.name.clone(), stats))
    };
    schema.as_struct().fields().iter().zip(columns.fields()).filter_map(of).collect()
}

/// The first value of an array; `None` for NULL and for floats, which have no bounds that hold for every reader.
pub(super) fn datum(value: &ArrayRef, of: &PrimitiveType) -> Result<Option<Datum>> {
    if value.is_empty() || value.is_null(0) {
        return Ok(None);
    }
    if schema::primitive(of)? != *value.data_type() {
        // A bound that nobody could read says nothing.
        return Ok(None);
    }
    let bytes: Vec<u8> = match of {
        PrimitiveType::Boolean => vec![u8::from(value.as_boolean().value(0))],
        PrimitiveType::Int => value.as_primitive::<Int32Type>().value(0).to_le_bytes().into(),
        PrimitiveType::Date => value.as_primitive::<Date32Type>().value(0).to_le_bytes().into(),
        PrimitiveType::Long => value.as_primitive::<Int64Type>().value(0).to_le_bytes().into(),
        PrimitiveType::Time => value.as_primitive::<Time64MicrosecondType>().value(0).to_le_bytes().into(),
        PrimitiveType::Timestamp | PrimitiveType::Timestamptz => {
            value.as_primitive::<TimestampMicrosecondType>().value(0).to_le_bytes().into()
        }
        PrimitiveType::TimestampNs | PrimitiveType::TimestamptzNs => {
            value.as_primitive::<TimestampNanosecondType>().value(0).to_le_bytes().into()
        }
        PrimitiveType::Float | PrimitiveType::Double => return Ok(None),
        PrimitiveType::String => value.as_string::<i32>().value(0).as_bytes().into(),
        PrimitiveType::Binary => value.as_binary::<i32>().value(0).into(),
        PrimitiveType::Uuid | PrimitiveType::Fixed(_) => value.as_fixed_size_binary().value(0).into(),
        PrimitiveType::Decimal { .. } => value.as_primitive::<Decimal128Type>().value(0).to_be_bytes().into(),
    };
    let datum = Datum::try_from_bytes(&bytes, of.clone());
    Ok(Some(datum.map_err(|e| Error::new(ErrorKind::Internal, "a value has no bytes").because(e))?))
}

/// A value as an array of one; `None` where it is none of that type, and for floats.
pub(super) fn array(value: &PrimitiveLiteral, of: &DataType) -> Option<ArrayRef> {
    use PrimitiveLiteral as Value;
    Some(match (value, of) {
        (Value::Boolean(value), DataType::Boolean) => Arc::new(BooleanArray::from(vec![*value])),
        (Value::Int(value), DataType::Int32) => Arc::new(Int32Array::from(vec![*value])),
        (Value::Int(value), DataType::Date32) => Arc::new(Date32Array::from(vec![*value])),
        // A column that got wider keeps the bounds of its files.
        (Value::Int(value), DataType::Int64) => Arc::new(Int64Array::from(vec![i64::from(*value)])),
        (Value::Long(value), DataType::Int64) => Arc::new(Int64Array::from(vec![*value])),
        (Value::Long(value), DataType::Time64(TimeUnit::Microsecond)) => {
            Arc::new(Time64MicrosecondArray::from(vec![*value]))
        }
        (Value::Long(value), DataType::Timestamp(TimeUnit::Microsecond, zone)) => {
            Arc::new(TimestampMicrosecondArray::from(vec![*value]).with_timezone_opt(zone.clone()))
        }
        (Value::Long(value), DataType::Timestamp(TimeUnit::Nanosecond, zone)) => {
            Arc::new(TimestampNanosecondArray::from(vec![*value]).with_timezone_opt(zone.clone()))
        }
        (Value::String(value), DataType::Utf8) => Arc::new(StringArray::from(vec![value.as_str()])),
        (Value::Binary(value), DataType::Binary) => Arc::new(BinaryArray::from(vec![value.as_slice()])),
        (Value::Binary(value), DataType::FixedSizeBinary(_)) => fixed(value, of)?,
        (Value::UInt128(value), DataType::FixedSizeBinary(16)) => fixed(&value.to_be_bytes(), of)?,
        (Value::Int128(value), DataType::Decimal128(precision, scale)) => {
            Arc::new(Decimal128Array::from(vec![*value]).with_precision_and_scale(*precision, *scale).ok()?)
        }
        _ => return None,
    })
}

fn fixed(bytes: &[u8], of: &DataType) -> Option<ArrayRef> {
    let array = FixedSizeBinaryArray::try_from_iter([bytes].into_iter()).ok()?;
    // A bound of other writers may be cut short: then it is no value of the type.
    (array.data_type() == of).then(|| Arc::new(array) as ArrayRef)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_the_bytes_of_manifests() {
        let utc = || Some(Arc::<str>::from("UTC"));
        let values: Vec<ArrayRef> = vec![
            Arc::new(BooleanArray::from(vec![true])),
            Arc::new(Int32Array::from(vec![i32::MIN])),
            Arc::new(Int64Array::from(vec![i64::MAX])),
            Arc::new(Date32Array::from(vec![-1])),
            Arc::new(Time64MicrosecondArray::from(vec![86_399_999_999])),
            Arc::new(TimestampMicrosecondArray::from(vec![-1])),
            Arc::new(TimestampMicrosecondArray::from(vec![i64::MIN]).with_timezone_opt(utc())),
            Arc::new(StringArray::from(vec!["\u{10ffff}"])),
            Arc::new(BinaryArray::from(vec![&b"\xff\x00"[..]])),
            fixed(&[0, 255, 3], &DataType::FixedSizeBinary(3)).unwrap(),
        ];
        let decimals = [-1, 0, 255, -129, 99_999_999_999_999_999_999_999_999_999_999_999_999].map(|value| {
            Arc::new(Decimal128Array::from(vec![value]).with_precision_and_scale(38, 4).unwrap()) as ArrayRef
        });
        for value in values.into_iter().chain(decimals) {
            let of = schema::from_primitive(value.data_type()).unwrap();
            let bytes = datum(&value, &of).unwrap().unwrap().to_bytes().unwrap();
            let read = Datum::try_from_bytes(&bytes, of).unwrap();
            assert_eq!(array(read.literal(), value.data_type()), Some(Arc::clone(&value)), "{value:?}");
        }
    }
}
