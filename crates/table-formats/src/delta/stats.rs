//! File statistics in the log: JSON, and rounded outward where JSON holds less than the value (milliseconds).

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{
    Array, ArrayRef, StringArray, TimestampMicrosecondArray, TimestampMillisecondArray, cast::AsArray,
    types::TimestampMicrosecondType,
};
use arrow_cast::{cast, display::array_value_to_string};
use arrow_schema::{DataType, Field, SchemaRef};
use serde_json::Value;
use strandline_cdc_core::names;

use crate::{
    contract::Result,
    error::{Error, ErrorKind},
    metadata::{ColumnStats, DataFile},
};

/// Readers expect statistics of so many columns. Those of keys and of system columns are written beyond that: they are
/// what lookups prune by.
const INDEXED: usize = 32;

/// The statistics of a file as the log has them.
pub(super) fn to_json(file: &DataFile, schema: &SchemaRef, keys: &[String]) -> Result<String> {
    let (mut min, mut max, mut nulls) = (Vec::new(), Vec::new(), Vec::new());
    for (i, field) in schema.fields().iter().enumerate() {
        let own = file.stats.get(field.name()).filter(|_| !file.constants.contains_key(field.name()));
        let Some(stats) = own else { continue };
        if i >= INDEXED && !keys.contains(field.name()) && !names::is_reserved(field.name()) {
            continue;
        }
        let name = Value::from(field.name().as_str());
        let low = stats.min.as_ref().map(|v| text(v, false)).transpose()?.flatten();
        let high = stats.max.as_ref().map(|v| text(v, true)).transpose()?.flatten();
        min.extend(low.map(|v| format!("{name}:{v}")));
        max.extend(high.map(|v| format!("{name}:{v}")));
        nulls.extend(stats.nulls.map(|v| format!("{name}:{v}")));
    }
    // Rows that are deleted beside the file are still counted, and may be the ones at the bounds.
    let wide = if file.deleted.is_some() { r#","tightBounds":false"# } else { "" };
    Ok(format!(
        r#"{{"numRecords":{},"minValues":{{{}}},"maxValues":{{{}}},"nullCount":{{{}}}{wide}}}"#,
        file.rows,
        min.join(","),
        max.join(","),
        nulls.join(",")
    ))
}

/// The statistics of a file, as its writer gave them, after rows were deleted beside it; `None` when they don't say how many
/// rows it has. They are not written anew: numbers may have more digits than are read here.
pub(super) fn widened(json: &str) -> Option<String> {
    const TIGHT: &str = r#""tightBounds":true"#;
    const WIDE: &str = r#""tightBounds":false"#;
    let is_wide = |json: &str| -> Option<bool> {
        let stats: Value = serde_json::from_str(json).ok()?;
        stats.get("numRecords").and_then(Value::as_u64)?;
        Some(stats.get("tightBounds").is_some_and(|tight| tight == &Value::from(false)))
    };
    if is_wide(json)? {
        return Some(json.to_owned());
    }
    let new = match json.rfind(TIGHT) {
        Some(at) => format!("{}{WIDE}{}", json.get(..at)?, json.get(at + TIGHT.len()..)?),
        None => format!("{{{WIDE},{}", json.trim_start().strip_prefix('{')?),
    };
    is_wide(&new)?.then_some(new)
}

/// A bound as JSON; `None` for types whose bounds Delta does not have, or that JSON does not hold.
#[expect(clippy::wildcard_enum_match_arm, reason = "a type that is not named is not supported")]
fn text(value: &ArrayRef, up: bool) -> Result<Option<String>> {
    Ok(match value.data_type() {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 | DataType::Decimal128(_, _) => {
            Some(array_value_to_string(value, 0)?)
        }
        DataType::Utf8 => Some(Value::from(value.as_string::<i32>().value(0)).to_string()),
        DataType::Date32 => {
            let text = array_value_to_string(value, 0)?;
            // Years of more than four digits are written in many ways.
            (text.len() == "2000-01-01".len()).then(|| format!("\"{text}\""))
        }
        DataType::Timestamp(_, zone) => {
            let micros = value.as_primitive::<TimestampMicrosecondType>().value(0);
            let millis = if up {
                -(-i128::from(micros)).div_euclid(1000)
            } else {
                i128::from(micros).div_euclid(1000)
            };
            timestamp(millis, zone.is_some())?
        }
        _ => None,
    })
}

fn timestamp(millis: i128, utc: bool) -> Result<Option<String>> {
    let Ok(millis) = i64::try_from(millis) else { return Ok(None) };
    let seconds = TimestampMillisecondArray::from(vec![millis.div_euclid(1000) * 1000]);
    let text = array_value_to_string(&seconds, 0)?;
    if text.len() != "2000-01-01T00:00:00".len() {
        return Ok(None);
    }
    Ok(Some(format!("\"{text}.{:03}{}\"", millis.rem_euclid(1000), if utc { "Z" } else { "" })))
}

/// Rows and statistics from the log.
pub(super) fn from_json(
    json: &str,
    schema: &SchemaRef,
) -> Result<(Option<u64>, BTreeMap<String, ColumnStats>)> {
    let stats: Value = serde_json::from_str(json)
        .map_err(|e| Error::new(ErrorKind::Corrupt, "a file's statistics are no JSON").because(e))?;
    let mut all = BTreeMap::new();
    for field in schema.fields() {
        let of = |what: &str| stats.get(what).and_then(|values| values.get(field.name()));
        let read = |value: Option<&Value>, up| value.map_or(Ok(None), |v| bound(v, field, up));
        let column = ColumnStats {
            min: read(of("minValues"), false)?,
            max: read(of("maxValues"), true)?,
            nulls: of("nullCount").and_then(Value::as_u64),
        };
        all.insert(field.name().clone(), column);
    }
    Ok((stats.get("numRecords").and_then(Value::as_u64), all))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "a type that is not named is not supported")]
fn bound(value: &Value, field: &Field, up: bool) -> Result<Option<ArrayRef>> {
    let to = field.data_type();
    let text: ArrayRef = match to {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => match value.as_i64() {
            Some(n) => Arc::new(StringArray::from(vec![n.to_string()])),
            None => return Ok(None),
        },
        DataType::Utf8 | DataType::Date32 | DataType::Timestamp(_, _) => match value.as_str() {
            Some(s) => Arc::new(StringArray::from(vec![s])),
            None => return Ok(None),
        },
        // Decimals lose digits in JSON, the others have no bounds.
        _ => return Ok(None),
    };
    let read = cast(&text, to)?;
    if read.is_null(0) {
        return Ok(None);
    }
    if let (DataType::Timestamp(_, zone), true) = (to, up) {
        // Other writers cut a timestamp to milliseconds: the value may lie up to one millisecond above.
        let micros = read.as_primitive::<TimestampMicrosecondType>().value(0).saturating_add(999);
        let above = TimestampMicrosecondArray::from(vec![micros]).with_timezone_opt(zone.clone());
        return Ok(Some(Arc::new(above)));
    }
    Ok(Some(read))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_others_get_wide_without_being_altered_else() {
        let digits = r#""maxValues":{"d":12345678901234567890.123456789}"#;
        let wide = |json: &str| widened(json).unwrap();
        assert_eq!(
            wide(&format!(r#"{{"numRecords":3,{digits},"tightBounds":true}}"#)),
            format!(r#"{{"numRecords":3,{digits},"tightBounds":false}}"#)
        );
        let none = wide(&format!(r#" {{"numRecords":3,{digits}}}"#));
        assert_eq!(none, format!(r#"{{"tightBounds":false,"numRecords":3,{digits}}}"#));
        assert_eq!(wide(&none), none);
        // A column may have any name, and no number of rows is no statistics.
        let named = r#"{"tightBounds":true,"numRecords":1,"maxValues":{"tightBounds":true}}"#;
        assert_eq!(widened(named), None);
        let text = r#""numRecords":1,"maxValues":{"a":"\"tightBounds\":true"}}"#;
        assert_eq!(
            wide(&format!(r#"{{"tightBounds":true,{text}"#)),
            format!(r#"{{"tightBounds":false,{text}"#)
        );
        assert_eq!(widened(r#"{"maxValues":{}}"#), None);
        assert_eq!(widened("no json"), None);
    }
}
