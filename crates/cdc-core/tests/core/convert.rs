//! How does a value of the reference model become an Arrow value, and back?

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Decimal128Array, Float64Array, Int64Array, ListArray,
    MapArray, StringArray, StructArray, UInt32Array, cast::AsArray, new_null_array, types,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_cast::cast;
use arrow_ord::ord::make_comparator;
use arrow_schema::{DataType, Field, Fields, SortOptions};
use arrow_select::take::take;
use strandline_testkit::{reference::Value, scenario::Type};

/// How the values of a column are written in Arrow.
#[derive(Debug, Clone)]
pub(crate) enum Codec {
    /// Value by value.
    Plain(DataType),
    /// `Value::Int(i)` stands for the `i`-th of these values.
    Domain(ArrayRef),
}

impl Codec {
    pub(crate) fn data_type(&self) -> &DataType {
        match self {
            Self::Plain(data_type) => data_type,
            Self::Domain(values) => values.data_type(),
        }
    }

    pub(crate) fn array(&self, values: &[Value]) -> ArrayRef {
        match self {
            Self::Plain(data_type) => array(data_type, values),
            Self::Domain(domain) => {
                let place = |value: &Value| match value {
                    Value::Null => None,
                    Value::Int(i) => Some(u32::try_from(*i).unwrap()),
                    other => panic!("{other:?} is no place in a domain"),
                };
                take(domain, &values.iter().map(place).collect::<UInt32Array>(), None).unwrap()
            }
        }
    }

    pub(crate) fn values(&self, array: &ArrayRef) -> Vec<Value> {
        match self {
            Self::Plain(_) => (0..array.len()).map(|row| value(array, row)).collect(),
            Self::Domain(domain) => {
                let same = make_comparator(domain, array, SortOptions::default()).unwrap();
                let place =
                    |row| (0..domain.len()).find(|&i| same(i, row).is_eq()).expect("a value of the domain");
                let value = |row| {
                    if array.is_null(row) {
                        Value::Null
                    } else {
                        Value::Int(i64::try_from(place(row)).unwrap())
                    }
                };
                (0..array.len()).map(value).collect()
            }
        }
    }
}

pub(crate) fn data_type(kind: &Type) -> DataType {
    match kind {
        Type::Bool => DataType::Boolean,
        Type::Int => DataType::Int64,
        Type::Float => DataType::Float64,
        Type::Text => DataType::Utf8,
        Type::Bytes => DataType::Binary,
        Type::Struct(fields) => DataType::Struct(
            fields.iter().map(|(name, kind)| Field::new(name, data_type(kind), true)).collect::<Fields>(),
        ),
        Type::List(element) => DataType::List(Arc::new(Field::new("item", data_type(element), true))),
        Type::Map(key, value) => {
            let entry =
                vec![Field::new("key", data_type(key), false), Field::new("value", data_type(value), true)];
            DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entry.into()), false)), false)
        }
    }
}

/// The smallest units of a decimal, which is a number of them, or a text with all its digits.
fn units(value: &Value) -> Option<i128> {
    match value {
        Value::Null => None,
        Value::Int(units) => Some((*units).into()),
        Value::Text(text) => Some(text.replace('.', "").parse().unwrap()),
        other => panic!("{other:?} is no decimal"),
    }
}

fn decimal_text(units: i128, scale: i8) -> String {
    let scale = usize::try_from(scale).unwrap();
    let digits = format!("{:0>width$}", units.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if units < 0 { "-" } else { "" };
    let point = if scale == 0 { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

pub(crate) fn array(data_type: &DataType, values: &[Value]) -> ArrayRef {
    macro_rules! flat {
        ($array:ty, $kind:ident, $get:expr) => {
            Arc::new(
                values
                    .iter()
                    .map(|value| match value {
                        Value::Null => None,
                        Value::$kind(inner) => Some($get(inner)),
                        other => panic!("{other:?} in a column of {data_type}"),
                    })
                    .collect::<$array>(),
            )
        };
    }
    let valid: Vec<bool> = values.iter().map(|value| !value.is_null()).collect();
    let nulls = Some(NullBuffer::from(valid)).filter(|nulls| nulls.null_count() > 0);
    match data_type {
        DataType::Boolean => flat!(BooleanArray, Bool, |v: &bool| *v),
        DataType::Int64 => flat!(Int64Array, Int, |v: &i64| *v),
        DataType::Int32 | DataType::Timestamp(_, _) => {
            cast(&array(&DataType::Int64, values), data_type).unwrap()
        }
        DataType::Decimal128(precision, scale) => {
            let units: Decimal128Array = values.iter().map(units).collect();
            Arc::new(units.with_precision_and_scale(*precision, *scale).unwrap())
        }
        DataType::Float64 => flat!(Float64Array, Float, |v: &f64| *v),
        DataType::Utf8 => flat!(StringArray, Text, |v: &String| v.clone()),
        DataType::Binary => {
            let bytes: Vec<Option<&[u8]>> = values
                .iter()
                .map(|value| match value {
                    Value::Bytes(bytes) => Some(bytes.as_slice()),
                    _ => None,
                })
                .collect();
            Arc::new(BinaryArray::from(bytes))
        }
        DataType::Struct(fields) if values.is_empty() => new_null_array(&DataType::Struct(fields.clone()), 0),
        DataType::Struct(fields) => {
            let part = |i: usize| -> Vec<Value> {
                values
                    .iter()
                    .map(|value| match value {
                        Value::Struct(parts) => parts[i].1.clone(),
                        _ => Value::Null,
                    })
                    .collect()
            };
            let columns =
                fields.iter().enumerate().map(|(i, field)| array(field.data_type(), &part(i))).collect();
            Arc::new(StructArray::new(fields.clone(), columns, nulls))
        }
        DataType::List(element) => {
            let lists: Vec<&[Value]> = values
                .iter()
                .map(|value| if let Value::List(items) = value { items.as_slice() } else { &[] })
                .collect();
            let offsets = OffsetBuffer::from_lengths(lists.iter().map(|list| list.len()));
            let items = array(element.data_type(), &lists.concat());
            Arc::new(ListArray::new(Arc::clone(element), offsets, items, nulls))
        }
        DataType::Map(entry, ordered) => {
            let maps: Vec<&[(Value, Value)]> = values
                .iter()
                .map(|value| if let Value::Map(items) = value { items.as_slice() } else { &[] })
                .collect();
            let offsets = OffsetBuffer::from_lengths(maps.iter().map(|map| map.len()));
            let DataType::Struct(fields) = entry.data_type() else { panic!("a map has entries") };
            let (keys, items): (Vec<_>, Vec<_>) = maps.concat().into_iter().unzip();
            let columns = vec![array(fields[0].data_type(), &keys), array(fields[1].data_type(), &items)];
            let entries = StructArray::new(fields.clone(), columns, None);
            Arc::new(MapArray::new(Arc::clone(entry), offsets, entries, nulls, *ordered))
        }
        other => panic!("no value is written as {other}"),
    }
}

pub(crate) fn value(array: &ArrayRef, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    let all = |items: ArrayRef| (0..items.len()).map(|i| value(&items, i)).collect::<Vec<_>>();
    match array.data_type() {
        DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
        DataType::Int64 => Value::Int(array.as_primitive::<types::Int64Type>().value(row)),
        DataType::Int8 => Value::Int(array.as_primitive::<types::Int8Type>().value(row).into()),
        DataType::Int32 | DataType::Timestamp(_, _) => value(&cast(array, &DataType::Int64).unwrap(), row),
        DataType::Decimal128(precision, scale) => {
            let units = array.as_primitive::<types::Decimal128Type>().value(row);
            i64::try_from(units)
                .ok()
                .filter(|_| *precision <= 18)
                .map_or_else(|| Value::Text(decimal_text(units, *scale)), Value::Int)
        }
        DataType::Float64 => Value::Float(array.as_primitive::<types::Float64Type>().value(row)),
        DataType::Utf8 => Value::text(array.as_string::<i32>().value(row)),
        DataType::Binary => Value::Bytes(array.as_binary::<i32>().value(row).to_vec()),
        DataType::Struct(fields) => {
            let parts = array.as_struct().columns();
            Value::Struct(
                fields.iter().zip(parts).map(|(f, part)| (f.name().clone(), value(part, row))).collect(),
            )
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
