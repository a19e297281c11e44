//! Which Arrow type does a SQL type mean, and in which type is a value stored?
//!
//! Queries compute in more types than tables hold: string views, unsigned integers, nanoseconds. Each has one stored
//! type that holds all of its values; where one does not (nanoseconds that are no whole microseconds) the value is
//! refused when it is met, and never rounded.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, cast::AsArray, types::TimestampNanosecondType};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use strandline_pipeline_sql::{ColumnDef, SqlType};

use crate::error::{Error, ErrorKind, Result};

/// The Arrow schema of declared columns.
pub fn schema_of(columns: &[ColumnDef]) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(field_of).collect::<Vec<_>>()))
}

fn field_of(column: &ColumnDef) -> FieldRef {
    Arc::new(Field::new(&column.name, type_of(&column.data_type), column.nullable))
}

fn type_of(sql: &SqlType) -> DataType {
    match sql {
        SqlType::Boolean => DataType::Boolean,
        SqlType::TinyInt => DataType::Int8,
        SqlType::SmallInt => DataType::Int16,
        SqlType::Int => DataType::Int32,
        SqlType::BigInt => DataType::Int64,
        SqlType::Float => DataType::Float32,
        SqlType::Double => DataType::Float64,
        SqlType::Decimal { precision, scale } => {
            DataType::Decimal128(*precision, i8::try_from(*scale).unwrap_or(i8::MAX))
        }
        SqlType::String => DataType::Utf8,
        SqlType::Binary => DataType::Binary,
        SqlType::Date => DataType::Date32,
        SqlType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        SqlType::TimestampNtz => DataType::Timestamp(TimeUnit::Microsecond, None),
        SqlType::Struct(fields) => DataType::Struct(fields.iter().map(field_of).collect()),
        SqlType::Array(item) => DataType::List(Arc::new(Field::new_list_field(type_of(item), true))),
        SqlType::Map(key, value) => map_type(type_of(key), type_of(value)),
    }
}

fn map_type(key: DataType, value: DataType) -> DataType {
    let entries = Fields::from(vec![Field::new("key", key, false), Field::new("value", value, true)]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
}

/// The schema in which rows of `schema` are stored; every column may be NULL.
pub fn storable(schema: &Schema) -> Schema {
    Schema::new(
        schema.fields().iter().map(|field| storable_field(field).with_nullable(true)).collect::<Vec<_>>(),
    )
}

fn storable_field(field: &Field) -> Field {
    Field::new(field.name(), storable_type(field.data_type()), field.is_nullable())
}

fn storable_type(data_type: &DataType) -> DataType {
    let nested = |field: &FieldRef| Arc::new(storable_field(field));
    match data_type {
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        DataType::BinaryView | DataType::LargeBinary | DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Dictionary(_, value) => storable_type(value),
        DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 => DataType::Int64,
        DataType::Float16 => DataType::Float32,
        DataType::Timestamp(_, zone) => {
            DataType::Timestamp(TimeUnit::Microsecond, zone.as_ref().map(|_| "UTC".into()))
        }
        DataType::Decimal32(p, s) | DataType::Decimal64(p, s) => DataType::Decimal128(*p, *s),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(nested).collect()),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => {
            // Formats call the items of a list, and the entries of a map, by names of their own.
            DataType::List(Arc::new(Field::new_list_field(storable_type(item.data_type()), true)))
        }
        DataType::Map(entry, _) => match entry.data_type() {
            DataType::Struct(parts) if parts.len() == 2 => {
                let part =
                    |at: usize| parts.get(at).map_or(DataType::Null, |part| storable_type(part.data_type()));
                map_type(part(0), part(1))
            }
            _ => data_type.clone(),
        },
        other => other.clone(),
    }
}

/// True when every value of `from` is a value of `to`.
pub fn is_lossless(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    let bits = |t: &T| match t {
        T::Int8 => Some(8),
        T::Int16 => Some(16),
        T::Int32 => Some(32),
        T::Int64 => Some(64),
        _ => None,
    };
    if from == to || storable_type(from) == *to {
        return true;
    }
    match (from, to) {
        (T::Float32 | T::Int8 | T::Int16 | T::Int32, T::Float64) | (T::Null, _) => true,
        (T::List(a), T::List(b)) => is_lossless(a.data_type(), b.data_type()),
        (T::Map(a, _), T::Map(b, _)) => match (a.data_type(), b.data_type()) {
            (T::Struct(a), T::Struct(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_lossless(a.data_type(), b.data_type()))
            }
            _ => false,
        },
        (T::Struct(a), T::Struct(b)) => {
            let fits = |(a, b): (&FieldRef, &FieldRef)| {
                a.name() == b.name() && is_lossless(a.data_type(), b.data_type())
            };
            a.len() == b.len() && a.iter().zip(b).all(fits)
        }
        (T::Decimal128(p1, s1), T::Decimal128(p2, s2)) => {
            s2 >= s1 && i16::from(*p2) - i16::from(*s2) >= i16::from(*p1) - i16::from(*s1)
        }
        _ => matches!((bits(from), bits(to)), (Some(narrow), Some(wide)) if narrow <= wide),
    }
}

/// Brings rows to `schema` by name: columns that are missing are NULL, lossless casts only. Further columns are dropped.
///
/// # Errors
/// `Data` for a column of another type, or for a value that the stored type does not hold.
pub fn conform(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = schema
        .fields()
        .iter()
        .map(|field| match batch.column_by_name(field.name()) {
            Some(column) => cast_exactly(column, field),
            None => Ok(arrow_array::new_null_array(field.data_type(), batch.num_rows())),
        })
        .collect::<Result<Vec<_>>>()?;
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// Casts without loss, or says why it can't.
///
/// # Errors
/// `Data`.
pub fn cast_exactly(column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    let (from, to) = (column.data_type(), field.data_type());
    if from == to {
        return Ok(Arc::clone(column));
    }
    if !is_lossless(from, to) {
        return Err(Error::new(ErrorKind::Data, "a column has a type that does not fit")
            .with("column", field.name())
            .with("type", from)
            .with("expected", to)
            .help("cast it in the flow's query"));
    }
    if let DataType::Timestamp(TimeUnit::Nanosecond, _) = from {
        let nanos = column.as_primitive::<TimestampNanosecondType>();
        if let Some(row) = (0..nanos.len()).find(|&row| nanos.is_valid(row) && nanos.value(row) % 1000 != 0) {
            return Err(Error::new(
                ErrorKind::Data,
                "a timestamp is finer than microseconds, which tables hold",
            )
            .with("column", field.name())
            .with("row", row)
            .with("nanoseconds since 1970", nanos.value(row))
            .help("round it in the flow's query, for example with date_trunc('microsecond', ..)"));
        }
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(column, to, &strict).map_err(|e| {
        Error::new(ErrorKind::Data, "a value does not fit the stored type")
            .with("column", field.name())
            .with("type", to)
            .because(e)
    })
}
