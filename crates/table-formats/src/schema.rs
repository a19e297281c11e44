//! Whether rows fit a table, how a table widens, and how rows of an older schema become rows of a newer one.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array};
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::take::take;
use strandline_cdc_core::{widened_rows, wider};

use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// The table's schema after rows of the given schema came: the same, or with more nullable columns, or with wider types.
pub(crate) fn widened(table: &SchemaRef, rows: &Schema) -> Result<SchemaRef> {
    let mut fields: Vec<FieldRef> = table.fields().iter().cloned().collect();
    for field in rows.fields() {
        match table.field_with_name(field.name()) {
            Ok(known) if same_type(known.data_type(), field.data_type()) => {}
            Ok(known) => {
                let wide =
                    wider(known.data_type(), field.data_type()).ok_or_else(|| wrong_type(known, field))?;
                if let Some(own) = fields.iter_mut().find(|own| own.name() == known.name()) {
                    *own = Arc::new(known.clone().with_data_type(wide));
                }
            }
            Err(_) if field.is_nullable() => fields.push(Arc::clone(field)),
            Err(_) => {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    format!(
                        "the table has no column `{}` of type {}; only nullable columns can be added",
                        field.name(),
                        field.data_type()
                    ),
                ));
            }
        }
    }
    for field in table.fields().iter().filter(|f| !f.is_nullable()) {
        if rows.field_with_name(field.name()).is_err() {
            let message = format!(
                "column `{}` of type {} is missing and not nullable",
                field.name(),
                field.data_type()
            );
            return Err(Error::new(ErrorKind::Invalid, message));
        }
    }
    if fields.iter().eq(table.fields().iter()) {
        return Ok(Arc::clone(table));
    }
    Ok(Arc::new(Schema::new_with_metadata(fields, table.metadata().clone())))
}

fn wrong_type(known: &Field, given: &Field) -> Error {
    Error::new(
        ErrorKind::Invalid,
        format!(
            "column `{}` is {} in the table and {} in the rows; a full refresh of the table changes its type",
            known.name(),
            known.data_type(),
            given.data_type()
        ),
    )
}

/// True when a column of the table has another type after a change of its schema.
pub(crate) fn retyped(before: &Schema, after: &Schema) -> bool {
    before.fields().iter().any(|field| {
        !after.field_with_name(field.name()).is_ok_and(|now| same_type(now.data_type(), field.data_type()))
    })
}

/// Refuses a key that would change its type.
pub(crate) fn check_keys_kept(keys: &[String], before: &Schema, after: &Schema) -> Result<()> {
    for key in keys {
        let (old, new) = (before.field_with_name(key)?, after.field_with_name(key)?);
        if !same_type(old.data_type(), new.data_type()) {
            return Err(wrong_type(old, new));
        }
    }
    Ok(())
}

/// True when every column of `older` is one of `newer`, with its type or a wider one.
pub(crate) fn holds_columns(newer: &Schema, older: &Schema) -> bool {
    older.fields().iter().all(|field| {
        newer.field_with_name(field.name()).is_ok_and(|now| {
            let (old, new) = (field.data_type(), now.data_type());
            same_type(new, old) || wider(old, new).as_ref() == Some(new)
        })
    })
}

/// True for types that hold the same values: names and nullability inside lists and maps are no difference.
pub(crate) fn same_type(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::List(a), DataType::List(b)) | (DataType::LargeList(a), DataType::LargeList(b)) => {
            same_type(a.data_type(), b.data_type())
        }
        (DataType::Map(a, _), DataType::Map(b, _)) => match (a.data_type(), b.data_type()) {
            (DataType::Struct(a), DataType::Struct(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_type(a.data_type(), b.data_type()))
            }
            (a, b) => a == b,
        },
        (DataType::Struct(a), DataType::Struct(b)) => {
            let same = |(a, b): (&FieldRef, &FieldRef)| {
                a.name() == b.name() && same_type(a.data_type(), b.data_type())
            };
            a.len() == b.len() && a.iter().zip(b).all(same)
        }
        (a, b) => a == b,
    }
}

/// Rows in another schema: columns by name, missing ones NULL.
pub(crate) fn adapt(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.schema_ref() == schema {
        return Ok(batch.clone());
    }
    let columns = schema.fields().iter().map(|field| column(batch, field)).collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
        .map_err(|e| Error::new(ErrorKind::Invalid, "rows do not fit the table").because(e))
}

/// Rows in another schema, with the columns that have one value in all of them: each in an array of one.
pub(crate) fn completed(
    batch: &RecordBatch,
    schema: &SchemaRef,
    constants: &BTreeMap<String, ArrayRef>,
) -> Result<RecordBatch> {
    if constants.is_empty() {
        return adapt(batch, schema);
    }
    let every_row = UInt32Array::from(vec![0; batch.num_rows()]);
    let columns = schema.fields().iter().map(|field| match constants.get(field.name()) {
        Some(value) => Ok(take(value, &every_row, None)?),
        None => column(batch, field),
    });
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns.collect::<Result<_>>()?, &options)
        .map_err(|e| Error::new(ErrorKind::Corrupt, "rows do not fit the table").because(e))
}

fn column(batch: &RecordBatch, field: &Field) -> Result<ArrayRef> {
    let Some(column) = batch.column_by_name(field.name()) else {
        return Ok(new_null_array(field.data_type(), batch.num_rows()));
    };
    if column.data_type() == field.data_type() {
        return Ok(Arc::clone(column));
    }
    if !same_type(column.data_type(), field.data_type()) {
        return widened_column(column, field);
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(column, field.data_type(), &options).map_err(|e| {
        let message = format!(
            "column `{}` of type {} can't be read as {}",
            field.name(),
            column.data_type(),
            field.data_type()
        );
        Error::new(ErrorKind::Invalid, message).because(e)
    })
}

/// A column in a wider type.
fn widened_column(column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    let column = &cast(column, &unmarked(column.data_type()))?;
    let as_is = Field::new(field.name(), column.data_type().clone(), true);
    let rows = RecordBatch::try_new(Arc::new(Schema::new(vec![as_is])), vec![Arc::clone(column)])?;
    let wide = widened_rows(&rows, &Arc::new(Schema::new(vec![field.clone()])));
    let wide = wide.map_err(|e| {
        let message = format!(
            "column `{}` of type {} can't be read as {}",
            field.name(),
            column.data_type(),
            field.data_type()
        );
        Error::new(ErrorKind::Invalid, message).because(e)
    })?;
    Ok(Arc::clone(wide.column(0)))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the other types have no fields")]
/// A type without what files say of the fields within it: their numbers make no other type of it.
fn unmarked(data_type: &DataType) -> DataType {
    let of = |field: &FieldRef| -> FieldRef {
        let inner = unmarked(field.data_type());
        Arc::new(field.as_ref().clone().with_metadata(std::iter::empty().collect()).with_data_type(inner))
    };
    match data_type {
        DataType::List(item) => DataType::List(of(item)),
        DataType::LargeList(item) => DataType::LargeList(of(item)),
        DataType::Map(entries, sorted) => DataType::Map(of(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(of).collect()),
        other => other.clone(),
    }
}

/// The schema of some columns, in the order named.
pub(crate) fn projected(schema: &SchemaRef, columns: Option<&[String]>) -> Result<SchemaRef> {
    let Some(columns) = columns else { return Ok(Arc::clone(schema)) };
    let fields = columns
        .iter()
        .map(|name| {
            let field = schema.fields().iter().find(|f| f.name() == name);
            field
                .cloned()
                .ok_or_else(|| Error::new(ErrorKind::Invalid, format!("the table has no column `{name}`")))
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Schema::new(fields)))
}

/// Refuses keys that the schema does not have.
pub(crate) fn check_keys(schema: &Schema, keys: &[String]) -> Result<()> {
    match keys.iter().find(|key| schema.field_with_name(key).is_err()) {
        None => Ok(()),
        Some(key) => {
            Err(Error::new(ErrorKind::Invalid, format!("the key `{key}` is no column of the table")))
        }
    }
}
