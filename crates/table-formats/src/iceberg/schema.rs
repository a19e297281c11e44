//! Which columns Iceberg holds, and their translation, with the numbers by which it knows them.

mod check;
mod numbers;

pub(super) use check::check;
pub(super) use numbers::evolved;

use std::{collections::HashMap, sync::Arc};

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use iceberg::spec::{NestedField, PrimitiveType, Schema as IcebergSchema, Type};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;

use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// The zone of timestamps that are moments.
const UTC: &str = "UTC";

/// The Arrow schema of a table's columns.
pub(super) fn to_arrow(schema: &IcebergSchema) -> Result<SchemaRef> {
    Ok(Arc::new(Schema::new(fields(schema.as_struct().fields(), false)?)))
}

/// The same, and each field with its number, as Parquet files have it.
pub(super) fn with_numbers(schema: &IcebergSchema) -> Result<SchemaRef> {
    Ok(Arc::new(Schema::new(fields(schema.as_struct().fields(), true)?)))
}

/// The Arrow schema of a table's columns, each with its number, but not the fields within.
pub(super) fn with_column_numbers(schema: &IcebergSchema) -> Result<SchemaRef> {
    let columns = to_arrow(schema)?;
    let numbered = columns.fields().iter().zip(schema.as_struct().fields()).map(|(column, field)| {
        let number = (PARQUET_FIELD_ID_META_KEY.to_owned(), field.id.to_string());
        column.as_ref().clone().with_metadata(HashMap::from([number]))
    });
    Ok(Arc::new(Schema::new(numbered.collect::<Vec<_>>())))
}

fn fields(fields: &[Arc<NestedField>], numbered: bool) -> Result<Fields> {
    fields.iter().map(|field| Ok(Arc::new(self::field(field, &field.name, numbered)?))).collect()
}

fn field(of: &NestedField, name: &str, numbered: bool) -> Result<Field> {
    let data_type = data_type(&of.field_type, numbered).map_err(|e| e.with("column", name))?;
    let field = Field::new(name, data_type, !of.required);
    if !numbered {
        return Ok(field);
    }
    let number = (PARQUET_FIELD_ID_META_KEY.to_owned(), of.id.to_string());
    Ok(field.with_metadata(HashMap::from([number])))
}

fn data_type(of: &Type, numbered: bool) -> Result<DataType> {
    Ok(match of {
        Type::Primitive(of) => primitive(of)?,
        Type::Struct(of) => DataType::Struct(fields(of.fields(), numbered)?),
        Type::List(list) => DataType::List(Arc::new(field(&list.element_field, "element", numbered)?)),
        Type::Map(map) => {
            let entries = Fields::from(vec![
                field(&map.key_field, "key", numbered)?,
                field(&map.value_field, "value", numbered)?,
            ]);
            DataType::Map(Arc::new(Field::new("key_value", DataType::Struct(entries), false)), false)
        }
    })
}

/// The Arrow type of values without parts.
pub(super) fn primitive(of: &PrimitiveType) -> Result<DataType> {
    let zoned = || Some(UTC.into());
    Ok(match of {
        PrimitiveType::Boolean => DataType::Boolean,
        PrimitiveType::Int => DataType::Int32,
        PrimitiveType::Long => DataType::Int64,
        PrimitiveType::Float => DataType::Float32,
        PrimitiveType::Double => DataType::Float64,
        PrimitiveType::Decimal { precision, scale } => {
            let (precision, scale) = (u8::try_from(*precision).ok(), i8::try_from(*scale).ok());
            let fits = precision.zip(scale).filter(|(precision, _)| (1..=38).contains(precision));
            let (precision, scale) =
                fits.ok_or_else(|| Error::new(ErrorKind::Corrupt, "a decimal of more than 38 digits"))?;
            DataType::Decimal128(precision, scale)
        }
        PrimitiveType::Date => DataType::Date32,
        PrimitiveType::Time => DataType::Time64(TimeUnit::Microsecond),
        PrimitiveType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        PrimitiveType::Timestamptz => DataType::Timestamp(TimeUnit::Microsecond, zoned()),
        PrimitiveType::TimestampNs => DataType::Timestamp(TimeUnit::Nanosecond, None),
        PrimitiveType::TimestamptzNs => DataType::Timestamp(TimeUnit::Nanosecond, zoned()),
        PrimitiveType::String => DataType::Utf8,
        PrimitiveType::Uuid => DataType::FixedSizeBinary(16),
        PrimitiveType::Fixed(length) => {
            let length = i32::try_from(*length);
            DataType::FixedSizeBinary(
                length.map_err(|e| Error::new(ErrorKind::Corrupt, "a type of too many bytes").because(e))?,
            )
        }
        PrimitiveType::Binary => DataType::Binary,
    })
}

/// Iceberg's type of values without parts; `None` for those that it does not have.
#[expect(clippy::wildcard_enum_match_arm, reason = "a type that is not named is not held")]
pub(super) fn from_primitive(of: &DataType) -> Option<PrimitiveType> {
    Some(match of {
        DataType::Boolean => PrimitiveType::Boolean,
        DataType::Int32 => PrimitiveType::Int,
        DataType::Int64 => PrimitiveType::Long,
        DataType::Float32 => PrimitiveType::Float,
        DataType::Float64 => PrimitiveType::Double,
        DataType::Decimal128(precision, scale) => PrimitiveType::Decimal {
            precision: u32::from(*precision),
            scale: u32::try_from(*scale).ok().filter(|scale| *scale <= u32::from(*precision))?,
        },
        DataType::Date32 => PrimitiveType::Date,
        DataType::Time64(TimeUnit::Microsecond) => PrimitiveType::Time,
        DataType::Timestamp(TimeUnit::Microsecond, None) => PrimitiveType::Timestamp,
        DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) if zone.as_ref() == UTC => {
            PrimitiveType::Timestamptz
        }
        DataType::Utf8 => PrimitiveType::String,
        DataType::FixedSizeBinary(length) => PrimitiveType::Fixed(u64::try_from(*length).ok()?),
        DataType::Binary => PrimitiveType::Binary,
        _ => return None,
    })
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
