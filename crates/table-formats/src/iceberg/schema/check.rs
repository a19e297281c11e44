//! Refuses columns that Iceberg can't hold exactly, by name.

use std::collections::BTreeSet;

use arrow_schema::{DataType, Field, Schema};

use super::from_primitive;
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// Names that Iceberg keeps for itself. Source: the format's specification, "Reserved Field IDs", and the columns that
/// engines add to a table's own.
const RESERVED: [&str; 6] = ["_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id"];

/// Refuses columns that Iceberg can't hold exactly.
pub(in crate::iceberg) fn check(schema: &Schema) -> Result<()> {
    if let Some(taken) = schema.fields().iter().find(|field| RESERVED.contains(&field.name().as_str())) {
        let message = format!("column `{}` has a name that Iceberg keeps for itself", taken.name());
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    check_names(schema.fields().iter().map(AsRef::as_ref), "")?;
    schema.fields().iter().try_for_each(|field| check_field(field, field.name()))
}

/// Readers of Iceberg tables, Spark first, don't tell capital letters from small ones.
fn check_names<'a>(fields: impl Iterator<Item = &'a Field>, within: &str) -> Result<()> {
    let mut names = BTreeSet::new();
    for field in fields {
        if !names.insert(field.name().to_lowercase()) {
            let message = format!(
                "column `{within}{}` appears twice: readers of Iceberg don't tell capital letters from small ones",
                field.name()
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
    }
    Ok(())
}

#[expect(clippy::wildcard_enum_match_arm, reason = "a type that is not named has no parts")]
fn check_field(field: &Field, path: &str) -> Result<()> {
    match field.data_type() {
        DataType::Struct(fields) => {
            check_names(fields.iter().map(AsRef::as_ref), &format!("{path}."))?;
            fields.iter().try_for_each(|f| check_field(f, &format!("{path}.{}", f.name())))
        }
        DataType::List(element) => check_field(element, &format!("{path}.element")),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => {
                fields.iter().try_for_each(|f| check_field(f, &format!("{path}.{}", f.name())))
            }
            other => Err(refused(path, other)),
        },
        other if from_primitive(other).is_some() => Ok(()),
        other => Err(refused(path, other)),
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the others have no remedy of their own")]
fn refused(path: &str, data_type: &DataType) -> Error {
    let remedy = match data_type {
        DataType::Timestamp(_, Some(_)) => "; cast it to microseconds in UTC",
        DataType::Timestamp(_, None) => "; cast it to microseconds",
        DataType::Int8 | DataType::Int16 | DataType::UInt8 | DataType::UInt16 => "; cast it to INT",
        DataType::UInt32 => "; cast it to BIGINT",
        DataType::UInt64 => "; cast it to DECIMAL(20, 0)",
        _ => "; cast it to a type that Iceberg has",
    };
    let message = format!("column `{path}` is {data_type}, which Iceberg can't hold exactly{remedy}");
    Error::new(ErrorKind::Unsupported, message)
}
