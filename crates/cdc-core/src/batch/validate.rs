//! From source rows to a [`ChangeBatch`]: kept columns only, canonical values, no NULL where none may be.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, cast::AsArray, new_null_array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::DataType;

use super::ChangeBatch;
use crate::{
    columnar::{
        canonical::{Role, canonical},
        print,
    },
    error::CdcError,
    spec::CdcSpec,
};

impl ChangeBatch {
    /// Takes the rows of a batch: `source` with the columns that the spec keeps (others are ignored, absent ones are not
    /// asked for), the value of `SEQUENCE BY` for each row, and where `APPLY AS DELETE WHEN` is TRUE. `deletes` of NULL or
    /// FALSE mean upsert.
    ///
    /// # Errors
    /// [`CdcError::NullKey`] and [`CdcError::NullSequence`] (a NULL field of a struct sequence included), with a count
    /// and a sample; [`CdcError::SchemaMismatch`] for columns that are missing or of another type.
    pub fn new(
        spec: &CdcSpec,
        source: &RecordBatch,
        sequence: &ArrayRef,
        deletes: Option<&BooleanArray>,
    ) -> Result<Self, CdcError> {
        let rows = source.num_rows();
        crate::columnar::check_len(source, "change rows")?;
        check_shape("SEQUENCE BY", spec.sequence_type(), sequence.data_type())?;
        let lengths =
            [("SEQUENCE BY", sequence.len()), ("APPLY AS DELETE WHEN", deletes.map_or(rows, Array::len))];
        if let Some((what, len)) = lengths.into_iter().find(|(_, len)| *len != rows) {
            return Err(CdcError::SchemaMismatch {
                what,
                expected: format!("{rows} values"),
                found: format!("{len} values"),
            });
        }
        check_sequence(source, sequence, "SEQUENCE BY")?;
        let columns = spec
            .kept
            .fields()
            .iter()
            .enumerate()
            .map(|(i, field)| {
                if i >= spec.present {
                    return Ok(new_null_array(field.data_type(), rows));
                }
                let column = source.column_by_name(field.name()).ok_or_else(|| CdcError::SchemaMismatch {
                    what: "source",
                    expected: format!("column `{}`", field.name()),
                    found: "no such column".to_owned(),
                })?;
                check_shape("source column", field.data_type(), column.data_type())?;
                let role = if spec.keys.contains(&i) { Role::Identity } else { Role::Payload };
                if role == Role::Identity {
                    check_key(source, column, field.name())?;
                }
                Ok(canonical(column, role)?)
            })
            .collect::<Result<Vec<_>, CdcError>>()?;
        Ok(Self {
            rows: RecordBatch::try_new(Arc::clone(&spec.kept), columns)?,
            sequence: canonical(sequence, Role::Identity)?,
            deletes: match deletes {
                None => BooleanArray::new(BooleanBuffer::new_unset(rows), None),
                Some(flags) if flags.null_count() > 0 => arrow_select::filter::prep_null_mask_filter(flags),
                Some(flags) => flags.clone(),
            },
        })
    }
}

fn check_shape(what: &'static str, expected: &DataType, found: &DataType) -> Result<(), CdcError> {
    if expected == found {
        return Ok(());
    }
    Err(CdcError::SchemaMismatch { what, expected: expected.to_string(), found: found.to_string() })
}

fn check_key(source: &RecordBatch, column: &ArrayRef, name: &str) -> Result<(), CdcError> {
    let Some((row, count)) = nulls(column) else {
        return Ok(());
    };
    Err(CdcError::NullKey {
        column: name.to_owned(),
        count,
        rows: source.num_rows(),
        row,
        sample: print::row(source, row),
    })
}

fn check_sequence(source: &RecordBatch, sequence: &ArrayRef, what: &str) -> Result<(), CdcError> {
    if let Some((row, count)) = nulls(sequence) {
        return Err(CdcError::NullSequence {
            what: what.to_owned(),
            count,
            rows: source.num_rows(),
            row,
            sample: print::row(source, row),
        });
    }
    if let DataType::Struct(fields) = sequence.data_type() {
        for (field, part) in fields.iter().zip(sequence.as_struct().columns()) {
            check_sequence(source, part, &format!("field `{}` of {what}", field.name()))?;
        }
    }
    Ok(())
}

/// The first NULL and the number of NULLs.
fn nulls(array: &ArrayRef) -> Option<(usize, usize)> {
    let logical = array.logical_nulls()?;
    let first = (0..array.len()).find(|&row| logical.is_null(row))?;
    Some((first, logical.null_count()))
}
