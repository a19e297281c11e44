//! Which value of a column's type does somebody mean who writes a literal?
//!
//! Text stands for any type that has a textual form, a number for numbers, and a value of the right kind for itself. A
//! number that would have to be rounded is refused: as of a moment that nobody named is no answer. Dates and timestamps
//! finer than their column are no question of rounding, see [`floored`].

use std::sync::Arc;

use arrow_array::StructArray;
use arrow_schema::{DECIMAL256_MAX_PRECISION, DataType, FieldRef, Fields, TimeUnit};
use datafusion::common::ScalarValue;

use crate::error::{Error, ErrorKind, Result};

/// `value` as a value of `wanted`.
///
/// # Errors
/// `Definition`, naming value and type.
pub(super) fn fitted(value: &ScalarValue, wanted: &DataType) -> Result<ScalarValue> {
    if value.is_null() {
        return ScalarValue::try_new_null(wanted).map_err(|_| refused(value, wanted));
    }
    if let DataType::Struct(fields) = wanted {
        return fitted_struct(value, wanted, fields);
    }
    let given = value.data_type();
    let is_text = given.is_string();
    let same_kind = (is_text && !is_bytes(wanted))
        || (given.is_numeric() && wanted.is_numeric())
        || (given.is_temporal() && wanted.is_temporal())
        || (is_bytes(&given) && is_bytes(wanted))
        || (given == DataType::Boolean && *wanted == DataType::Boolean);
    if !same_kind {
        return Err(refused(value, wanted).help(advice(wanted)));
    }
    let cast = match floored(value, wanted) {
        Some(moment) => return Ok(moment),
        None => value.cast_to(wanted).map_err(|_| refused(value, wanted).help(advice(wanted)))?,
    };
    if (is_text && is_exact(value, &cast)) || comes_back(value, &cast) {
        Ok(cast)
    } else {
        Err(refused(value, wanted).help("the type can't hold it exactly: give it less precision"))
    }
}

/// A date or timestamp on the grid of its column: the last point of the grid that is not after it. A half-open interval
/// between points of the grid covers the one exactly when it covers the other. `None` for other types, and for moments
/// that nanoseconds don't reach.
fn floored(value: &ScalarValue, wanted: &DataType) -> Option<ScalarValue> {
    let (unit, zone): (i64, _) = match wanted {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => (1, zone.clone()),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => (1_000, zone.clone()),
        DataType::Timestamp(TimeUnit::Millisecond, zone) => (1_000_000, zone.clone()),
        DataType::Timestamp(TimeUnit::Second, zone) => (1_000_000_000, zone.clone()),
        DataType::Date32 | DataType::Date64 => (86_400_000_000_000, None),
        _ => return None,
    };
    let finest = DataType::Timestamp(TimeUnit::Nanosecond, zone.clone());
    let ScalarValue::TimestampNanosecond(Some(nanos), _) = value.cast_to(&finest).ok()? else { return None };
    let nanos = nanos.div_euclid(unit).checked_mul(unit)?;
    ScalarValue::TimestampNanosecond(Some(nanos), zone).cast_to(wanted).ok()
}

/// Fields go by position, so that `struct('2025-01-03', 7)` will do.
fn fitted_struct(value: &ScalarValue, wanted: &DataType, fields: &Fields) -> Result<ScalarValue> {
    let ScalarValue::Struct(given) = value else {
        return Err(refused(value, wanted).help(advice(wanted)));
    };
    if given.num_columns() != fields.len() {
        let text = format!("the column's type is a struct of {} fields: {}", fields.len(), advice(wanted));
        return Err(refused(value, wanted).help(text));
    }
    let columns = given
        .columns()
        .iter()
        .zip(fields)
        .map(|(column, field): (_, &FieldRef)| {
            let part = ScalarValue::try_from_array(column, 0)?;
            let fits = fitted(&part, field.data_type())?;
            // Behind a field that was moved, the next one would compare as if it had not been.
            if is_moved(&part, &fits) {
                let help = "within a struct it must be exact: give it less precision";
                return Err(refused(&part, field.data_type()).help(help));
            }
            Ok(fits.to_array()?)
        })
        .collect::<Result<Vec<_>>>()?;
    let nullable: Fields =
        fields.iter().map(|field| Arc::new(field.as_ref().clone().with_nullable(true))).collect();
    Ok(ScalarValue::Struct(Arc::new(StructArray::try_new(nullable, columns, None)?)))
}

/// The moment on the grid is another one than was written.
fn is_moved(written: &ScalarValue, fits: &ScalarValue) -> bool {
    let zone = match fits.data_type() {
        DataType::Timestamp(_, zone) => zone,
        DataType::Date32 | DataType::Date64 => None,
        _ => return false,
    };
    let finest = DataType::Timestamp(TimeUnit::Nanosecond, zone);
    matches!((written.cast_to(&finest), fits.cast_to(&finest)), (Ok(a), Ok(b)) if a != b)
}

fn is_bytes(data_type: &DataType) -> bool {
    data_type.is_binary() || matches!(data_type, DataType::FixedSizeBinary(_))
}

/// Text that stands for a number stands for this very number: more digits than the type has can't be told from others.
fn is_exact(text: &ScalarValue, cast: &ScalarValue) -> bool {
    let fine = match cast.data_type() {
        DataType::Decimal128(_, _) | DataType::Decimal256(_, _) => {
            DataType::Decimal256(DECIMAL256_MAX_PRECISION, FINEST_SCALE)
        }
        _ => return true,
    };
    matches!((text.cast_to(&fine), cast.cast_to(&fine)), (Ok(written), Ok(held)) if written == held)
}

/// Digits after the point that are looked at.
const FINEST_SCALE: i8 = 38;

/// Casting back gives the value again.
fn comes_back(value: &ScalarValue, cast: &ScalarValue) -> bool {
    cast.cast_to(&value.data_type()).is_ok_and(|back| back == *value)
}

fn refused(value: &ScalarValue, wanted: &DataType) -> Error {
    let written = match value {
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => format!("'{text}'"),
        other => other.to_string(),
    };
    Error::new(ErrorKind::Definition, "the literal is no value of the column's type")
        .with("literal", written)
        .with("type", wanted)
}

/// How values of a type are written.
fn advice(wanted: &DataType) -> String {
    match wanted {
        DataType::Struct(fields) => {
            let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
            format!("write struct({})", names.join(", "))
        }
        DataType::Timestamp(_, Some(_)) => {
            "write '2025-01-31 12:00:00', or with a zone '2025-01-31T12:00:00Z'".to_owned()
        }
        DataType::Timestamp(_, None) => "write '2025-01-31 12:00:00'".to_owned(),
        DataType::Date32 | DataType::Date64 => "write '2025-01-31'".to_owned(),
        numeric if numeric.is_numeric() => "write a number".to_owned(),
        binary if is_bytes(binary) => "write X'0a1b'".to_owned(),
        text if text.is_string() => "write it in quotes".to_owned(),
        other => format!("write a literal of type {other}"),
    }
}
