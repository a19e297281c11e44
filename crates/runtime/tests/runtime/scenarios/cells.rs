//! Values of scenarios as cells of Parquet files and of tables, and back.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, ListArray, MapArray, StringArray,
    StructArray, cast::AsArray, new_empty_array, new_null_array, types,
};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Fields, TimeUnit};
use arrow_select::concat::concat;
use datafusion::arrow::buffer::OffsetBuffer;
use strandline_testkit::{
    reference::Value,
    scenario::{ColumnType, Physical, Type, Unit, Zone},
};

pub(super) fn sql_type((kind, physical): &ColumnType) -> String {
    let plain = |kind: &Type| sql_type(&(kind.clone(), None));
    match physical {
        Some(Physical::Int32) => return "INT".to_owned(),
        Some(Physical::Timestamp(_, Zone::Utc)) => return "TIMESTAMP".to_owned(),
        Some(Physical::Timestamp(_, Zone::None)) => return "TIMESTAMP_NTZ".to_owned(),
        Some(Physical::Decimal(precision, scale)) => return format!("DECIMAL({precision}, {scale})"),
        None => {}
    }
    match kind {
        Type::Bool => "BOOLEAN".to_owned(),
        Type::Int => "BIGINT".to_owned(),
        Type::Float => "DOUBLE".to_owned(),
        Type::Text => "STRING".to_owned(),
        Type::Bytes => "BINARY".to_owned(),
        Type::Struct(fields) => {
            let fields: Vec<String> = fields.iter().map(|(n, t)| format!("{n}: {}", plain(t))).collect();
            format!("STRUCT<{}>", fields.join(", "))
        }
        Type::List(item) => format!("ARRAY<{}>", plain(item)),
        Type::Map(key, value) => format!("MAP<{}, {}>", plain(key), plain(value)),
    }
}

fn arrow_type(kind: &Type) -> DataType {
    match kind {
        Type::Bool => DataType::Boolean,
        Type::Int => DataType::Int64,
        Type::Float => DataType::Float64,
        Type::Text => DataType::Utf8,
        Type::Bytes => DataType::Binary,
        Type::Struct(fields) => DataType::Struct(
            fields.iter().map(|(name, kind)| Field::new(name, arrow_type(kind), true)).collect::<Fields>(),
        ),
        Type::List(item) => DataType::List(Arc::new(Field::new("item", arrow_type(item), true))),
        Type::Map(key, value) => {
            let entry =
                vec![Field::new("key", arrow_type(key), false), Field::new("value", arrow_type(value), true)];
            DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entry.into()), false)), false)
        }
    }
}

/// The values of a column of this type.
pub(super) fn column((kind, physical): &ColumnType, values: &[Value]) -> ArrayRef {
    let logical = cells(&arrow_type(kind), values);
    match physical {
        None => logical,
        Some(Physical::Int32) => cast(&logical, &DataType::Int32).unwrap(),
        Some(Physical::Timestamp(unit, zone)) => {
            let unit = match unit {
                Unit::Millisecond => TimeUnit::Millisecond,
                Unit::Microsecond => TimeUnit::Microsecond,
                Unit::Nanosecond => TimeUnit::Nanosecond,
            };
            let zone = match zone {
                Zone::Utc => Some("UTC".into()),
                Zone::None => None,
            };
            cast(&logical, &DataType::Timestamp(unit, zone)).unwrap()
        }
        Some(Physical::Decimal(precision, scale)) => {
            let scale = i8::try_from(*scale).unwrap();
            match logical.as_primitive_opt::<types::Int64Type>() {
                // The number of smallest units.
                Some(units) => {
                    let units = units.iter().map(|units| units.map(i128::from));
                    let units: arrow_array::Decimal128Array = units.collect();
                    Arc::new(units.with_precision_and_scale(*precision, scale).unwrap())
                }
                None => cast(&logical, &DataType::Decimal128(*precision, scale)).unwrap(),
            }
        }
    }
}

fn cells(data_type: &DataType, values: &[Value]) -> ArrayRef {
    let cells: Vec<ArrayRef> = values.iter().map(|value| cell(data_type, value)).collect();
    let cells: Vec<&dyn Array> = cells.iter().map(AsRef::as_ref).collect();
    if cells.is_empty() { new_empty_array(data_type) } else { concat(&cells).unwrap() }
}

/// One value, as an array of length 1.
fn cell(data_type: &DataType, value: &Value) -> ArrayRef {
    match (value, data_type) {
        (Value::Null, _) => new_null_array(data_type, 1),
        (Value::Bool(value), _) => Arc::new(BooleanArray::from(vec![*value])),
        (Value::Int(value), _) => Arc::new(Int64Array::from(vec![*value])),
        (Value::Float(value), _) => Arc::new(Float64Array::from(vec![*value])),
        (Value::Text(value), _) => Arc::new(StringArray::from(vec![value.as_str()])),
        (Value::Bytes(value), _) => Arc::new(BinaryArray::from(vec![value.as_slice()])),
        (Value::Struct(parts), DataType::Struct(fields)) => {
            let parts = fields.iter().zip(parts).map(|(field, (_, part))| cell(field.data_type(), part));
            Arc::new(StructArray::new(fields.clone(), parts.collect(), None))
        }
        (Value::List(items), DataType::List(item)) => {
            let offsets = OffsetBuffer::from_lengths([items.len()]);
            Arc::new(ListArray::new(Arc::clone(item), offsets, cells(item.data_type(), items), None))
        }
        (Value::Map(items), DataType::Map(entry, ordered)) => {
            let DataType::Struct(fields) = entry.data_type() else { panic!("a map has entries") };
            let (keys, values): (Vec<Value>, Vec<Value>) = items.iter().cloned().unzip();
            let columns = vec![cells(fields[0].data_type(), &keys), cells(fields[1].data_type(), &values)];
            let entries = StructArray::new(fields.clone(), columns, None);
            let offsets = OffsetBuffer::from_lengths([items.len()]);
            Arc::new(MapArray::new(Arc::clone(entry), offsets, entries, None, *ordered))
        }
        other => panic!("{other:?} do not go together"),
    }
}

/// A value of a table. `physical_of` says what a scenario takes the numbers of a column, or of a field, for.
pub(super) fn value(
    name: &str,
    array: &ArrayRef,
    row: usize,
    physical_of: &dyn Fn(&str) -> Option<Physical>,
) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    let all =
        |items: ArrayRef| (0..items.len()).map(|i| value("", &items, i, physical_of)).collect::<Vec<_>>();
    match array.data_type() {
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::Int32 => Value::Int(array.as_primitive::<types::Int32Type>().value(row).into()),
        DataType::Int64 => Value::Int(array.as_primitive::<types::Int64Type>().value(row)),
        DataType::Float64 => Value::Float(array.as_primitive::<types::Float64Type>().value(row)),
        DataType::Utf8 => Value::text(array.as_string::<i32>().value(row)),
        DataType::Binary => Value::Bytes(array.as_binary::<i32>().value(row).to_vec()),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            let micros = array.as_primitive::<types::TimestampMicrosecondType>().value(row);
            Value::Int(match physical_of(name) {
                Some(Physical::Timestamp(Unit::Millisecond, _)) => micros / 1000,
                Some(Physical::Timestamp(Unit::Nanosecond, _)) => micros * 1000,
                _ => micros,
            })
        }
        DataType::Decimal128(precision, _) if *precision <= 18 => {
            Value::Int(i64::try_from(array.as_primitive::<types::Decimal128Type>().value(row)).unwrap())
        }
        DataType::Decimal128(_, _) => {
            let text = cast(&array.slice(row, 1), &DataType::Utf8).unwrap();
            Value::text(text.as_string::<i32>().value(0))
        }
        DataType::Struct(fields) => {
            let parts = fields.iter().zip(array.as_struct().columns());
            let part = |(field, part): (&Arc<Field>, &ArrayRef)| {
                (field.name().clone(), value(field.name(), part, row, physical_of))
            };
            Value::Struct(parts.map(part).collect())
        }
        DataType::List(_) => Value::List(all(array.as_list::<i32>().value(row))),
        DataType::Map(_, _) => {
            let entries = array.as_map().value(row);
            let (keys, items) = (all(Arc::clone(entries.column(0))), all(Arc::clone(entries.column(1))));
            Value::Map(keys.into_iter().zip(items).collect())
        }
        other => panic!("no value is read from {other}"),
    }
}
