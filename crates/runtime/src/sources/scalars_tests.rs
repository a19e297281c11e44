//! What is taken exactly, and what is refused.

use super::{Formats, boolean, date, decimal, float, integer, local_micros, micros, pattern, small_float};

#[test]
fn integers_lose_no_fraction_and_no_digit() {
    assert_eq!(integer::<i64>("9007199254740993"), Ok(9_007_199_254_740_993));
    assert_eq!(integer::<i64>("-9223372036854775808"), Ok(i64::MIN));
    for (text, expected) in
        [("-5.0", -5), ("1e3", 1000), ("1200E-2", 12), ("+7", 7), ("0e99999", 0), ("-0", 0)]
    {
        assert_eq!(integer::<i64>(text), Ok(expected), "{text}");
    }
    for refused in ["1.9", "soon", "1e30", "9223372036854775808", "", ".", "-", "1e", "1e99999999999", "0x1f"]
    {
        assert!(integer::<i64>(refused).is_err(), "{refused}");
    }
    assert!(integer::<i8>("128").is_err());
    assert!(integer::<i64>("1e2147483647").unwrap_err().contains("large"));
    assert!(integer::<i64>("1e-2147483648").unwrap_err().contains("point"));
}

#[test]
fn decimals_keep_their_scale() {
    assert_eq!(decimal("2.50", 10, 2), Ok(250));
    assert_eq!(decimal("2.500", 10, 2), Ok(250));
    assert_eq!(decimal("-7", 10, 2), Ok(-700));
    assert_eq!(decimal("1.5e1", 10, 2), Ok(1500));
    assert_eq!(decimal("1200", 4, -2), Ok(12));
    assert_eq!(decimal(&"9".repeat(38), 38, 0), Ok(10_i128.pow(38) - 1));
    for refused in ["2.999", "123456789.00", "x", "NaN"] {
        assert!(decimal(refused, 10, 2).is_err(), "{refused}");
    }
    assert!(decimal(&"9".repeat(39), 38, 0).is_err());
}

#[test]
fn floats_are_numbers_of_their_size() {
    assert_eq!(float("-1.5e3"), Ok(-1500.0));
    assert!(float("NaN").unwrap().is_nan());
    assert_eq!(small_float("-Infinity"), Ok(f32::NEG_INFINITY));
    assert_eq!(small_float("0.1"), Ok(0.1));
    assert!(float("1e999").is_err() && small_float("1e39").is_err() && float("nan").is_err());
    assert_eq!((boolean("TRUE"), boolean("false")), (Ok(true), Ok(false)));
    assert!(boolean("1").is_err());
}

#[test]
fn instants_keep_their_microseconds() {
    let at = |text: &str| micros(text, &Formats::default());
    let noon = 1_772_366_400_000_000;
    assert_eq!(at("2026-03-01T12:00:00.123456Z"), Ok(noon + 123_456));
    assert_eq!(at("2026-03-01T12:00:00.123456000Z"), Ok(noon + 123_456));
    assert_eq!(at("2026-03-01T14:00:00+02:00"), Ok(noon));
    assert_eq!(at("2026-03-01 12:00:00"), Ok(noon));
    assert_eq!(at("9999-12-31T00:00:00Z"), Ok(253_402_214_400_000_000));
    assert_eq!(at("2026-03-01"), Ok(noon - 43_200_000_000));
    for refused in ["2026-03-01T12:00:00.123456789Z", "1700000000", "1700000000.5", "noon", ""] {
        assert!(at(refused).is_err(), "{refused}");
    }
}

#[test]
fn days_have_no_time() {
    let day = |text: &str| date(text, &Formats::default());
    assert_eq!(day("1970-01-11"), Ok(10));
    assert_eq!(day("1970-01-11T00:00:00Z"), Ok(10));
    assert!(day("1970-01-11T00:00:01Z").unwrap_err().contains("time of day"));
    assert!(day("soon").is_err() && day("2026-02-30").is_err());
}

#[test]
fn patterns_of_spark_are_understood() {
    let formats = |date: &str, timestamp: &str| Formats {
        date: Some(pattern("dateFormat", date).unwrap()),
        timestamp: Some(pattern("timestampFormat", timestamp).unwrap()),
    };
    let european = formats("dd.MM.yyyy", "dd/MM/yyyy HH:mm:ss");
    assert_eq!(date("11.01.1970", &european), Ok(10));
    assert_eq!(micros("01/01/1970 00:00:02", &european), Ok(2_000_000));
    assert!(date("1970-01-11", &european).is_err());
    let zoned = formats("yyyyMMdd", "yyyy-MM-dd'T'HH:mm:ss[.SSS]XXX");
    assert_eq!(date("19700111", &zoned), Ok(10));
    assert_eq!(micros("1970-01-01T01:00:00.250+01:00", &zoned), Ok(250_000));
    assert_eq!(micros("1970-01-01T00:00:00Z", &zoned), Ok(0));
    assert!(micros("1970-01-01T00:00:00.1234567Z", &zoned).is_err());
    assert_eq!(pattern("f", "hh:mm a '%'").unwrap(), "%I:%M %p %%");
    assert!(pattern("f", "yyyy-'W'ww").is_err());
}

#[test]
fn a_time_without_a_zone_is_not_moved_to_another() {
    let plain = Formats::default();
    let noon = Ok(1_772_366_400_000_000);
    for text in [
        "2026-03-01 12:00:00",
        "2026-03-01T12:00:00Z",
        "2026-03-01 12:00:00 UTC",
        "2026-03-01T12:00:00+00:00",
    ] {
        assert_eq!(local_micros(text, &plain), noon, "{text}");
    }
    for text in ["2026-03-01T12:00:00+05:00", "2026-03-01 12:00:00 Europe/Vaduz", "2026-03-01T12:00:00-03"] {
        assert!(local_micros(text, &plain).unwrap_err().contains("zone"), "{text}");
        assert!(micros(text, &plain).is_ok(), "{text}");
    }
    let timestamp = Some("%Y-%m-%dT%H:%M:%S%#z".to_owned());
    let zoned = Formats { timestamp, ..Formats::default() };
    assert_eq!(local_micros("2026-03-01T12:00:00Z", &zoned), noon);
    assert!(local_micros("2026-03-01T12:00:00+01:00", &zoned).is_err());
}
