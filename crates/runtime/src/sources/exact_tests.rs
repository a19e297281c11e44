//! What is taken exactly, and what is refused.

use std::sync::Arc;

use arrow_array::{RecordBatch, StringArray};
use arrow_cast::display::array_value_to_string;
use arrow_schema::{DataType, Field, Schema, TimeUnit};

use super::from_text;

fn taken(data_type: DataType, text: &str) -> Result<String, String> {
    let schema = Arc::new(Schema::new(vec![Field::new("c", data_type, true)]));
    let decoded = RecordBatch::try_from_iter([("c", Arc::new(StringArray::from(vec![text])) as _)]).unwrap();
    let batch = from_text(&decoded, &schema).map_err(|e| e.to_string())?;
    array_value_to_string(batch.column(0), 0).map_err(|e| e.to_string())
}

#[test]
fn integers_lose_no_fraction_and_no_digit() {
    assert_eq!(taken(DataType::Int64, "9007199254740993"), Ok("9007199254740993".to_owned()));
    assert_eq!(taken(DataType::Int64, "-5.0"), Ok("-5".to_owned()));
    for refused in ["1.9", "soon", "1e30", "9223372036854775808", ""] {
        let error = taken(DataType::Int64, refused).unwrap_err();
        assert!(error.contains("`c`"), "{error}");
    }
    assert!(taken(DataType::Int8, "128").is_err());
}

#[test]
fn decimals_keep_their_scale() {
    let decimal = DataType::Decimal128(10, 2);
    assert_eq!(taken(decimal.clone(), "2.50"), Ok("2.50".to_owned()));
    assert_eq!(taken(decimal.clone(), "2.500"), Ok("2.50".to_owned()));
    assert_eq!(taken(decimal.clone(), "7"), Ok("7.00".to_owned()));
    for refused in ["2.999", "123456789.00", "x"] {
        assert!(taken(decimal.clone(), refused).is_err(), "{refused}");
    }
}

#[test]
fn instants_keep_their_microseconds() {
    let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let ok = |text: &str| taken(instant.clone(), text);
    assert_eq!(ok("2026-03-01T12:00:00.123456Z"), Ok("2026-03-01T12:00:00.123456Z".to_owned()));
    assert_eq!(ok("2026-03-01T12:00:00.123456000Z"), Ok("2026-03-01T12:00:00.123456Z".to_owned()));
    assert_eq!(ok("2026-03-01T12:00:00+02:00"), Ok("2026-03-01T10:00:00Z".to_owned()));
    assert_eq!(ok("9999-12-31T00:00:00Z"), Ok("9999-12-31T00:00:00Z".to_owned()));
    assert_eq!(ok("2026-03-01"), Ok("2026-03-01T00:00:00Z".to_owned()));
    for refused in ["2026-03-01T12:00:00.123456789Z", "1700000000", "1700000000.5", "noon"] {
        assert!(ok(refused).is_err(), "{refused}");
    }
}
