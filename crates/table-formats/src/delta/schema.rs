//! Which columns Delta holds, and their translation.

use std::{collections::BTreeSet, sync::Arc};

use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use deltalake_core::kernel::{
    StructType,
    engine::arrow_conversion::{TryIntoArrow, TryIntoKernel},
};

use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// Refuses columns that Delta can't hold exactly.
pub(super) fn check(schema: &Schema) -> Result<()> {
    check_names(schema.fields().iter().map(AsRef::as_ref), "")?;
    schema.fields().iter().try_for_each(|field| check_field(field, field.name()))
}

fn check_names<'a>(fields: impl Iterator<Item = &'a Field>, within: &str) -> Result<()> {
    let mut names = BTreeSet::new();
    for field in fields {
        if !names.insert(field.name().to_lowercase()) {
            let message = format!(
                "column `{within}{}` appears twice: Delta does not tell capital letters from small ones",
                field.name()
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
    }
    Ok(())
}

#[expect(clippy::wildcard_enum_match_arm, reason = "a type that is not named is not supported")]
fn check_field(field: &Field, path: &str) -> Result<()> {
    match field.data_type() {
        DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Float32
        | DataType::Float64
        | DataType::Utf8
        | DataType::Binary
        | DataType::Date32
        | DataType::Timestamp(TimeUnit::Microsecond, None) => Ok(()),
        DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) if zone.as_ref() == "UTC" => Ok(()),
        DataType::Decimal128(precision, scale) if *scale >= 0 && scale.unsigned_abs() <= *precision => Ok(()),
        DataType::Struct(fields) => {
            check_names(fields.iter().map(AsRef::as_ref), &format!("{path}."))?;
            fields.iter().try_for_each(|f| check_field(f, &format!("{path}.{}", f.name())))
        }
        DataType::List(element) => check_field(element, &format!("{path}.element")),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => {
                fields.iter().try_for_each(|f| check_field(f, &format!("{path}.{}", f.name())))
            }
            _ => Err(refused(path, field.data_type())),
        },
        other => Err(refused(path, other)),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the others have no remedy of their own")]
fn refused(path: &str, data_type: &DataType) -> Error {
    let remedy = match data_type {
        DataType::Timestamp(_, Some(_)) => "; cast it to microseconds in UTC",
        DataType::Timestamp(_, None) => "; cast it to microseconds",
        data_type if data_type.is_unsigned_integer() => "; cast it to a signed integer",
        _ => "; cast it to a type that Delta has",
    };
    let message = format!("column `{path}` is {data_type}, which Delta can't hold exactly{remedy}");
    Error::new(ErrorKind::Unsupported, message)
}

/// Delta's schema of an Arrow schema.
pub(super) fn to_delta(schema: &Schema) -> Result<StructType> {
    let schema: std::result::Result<StructType, _> = schema.try_into_kernel();
    schema
        .map_err(|e| Error::new(ErrorKind::Unsupported, "the schema has no counterpart in Delta").because(e))
}

/// The Arrow schema of Delta's schema.
pub(super) fn from_delta(schema: &StructType) -> Result<SchemaRef> {
    let schema: std::result::Result<Schema, _> = schema.try_into_arrow();
    match schema {
        Ok(schema) => Ok(Arc::new(schema)),
        Err(e) => Err(Error::new(ErrorKind::Unsupported, "the table's schema can't be read").because(e)),
    }
}

/// True for types with a timestamp that has no time zone.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other types hold none")]
pub(super) fn holds_local_time(data_type: &DataType) -> bool {
    match data_type {
        DataType::Timestamp(_, None) => true,
        DataType::Struct(fields) => fields.iter().any(|f| holds_local_time(f.data_type())),
        DataType::List(inner) | DataType::Map(inner, _) => holds_local_time(inner.data_type()),
        _ => false,
    }
}
