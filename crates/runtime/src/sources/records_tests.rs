//! What records become, and what is kept of those that do not fit.

use arrow_array::{RecordBatch, cast::AsArray};
use arrow_schema::SchemaRef;
use serde_json::{Value, json};
use strandline_pipeline_sql::ColumnDef;

use super::{Malformed, Place, RecordDecoder, RecordOptions, Unknown};
use crate::{ErrorKind, types::schema_of};

fn schema(columns: &str) -> SchemaRef {
    schema_of(&ColumnDef::parse(columns).unwrap())
}

fn place(at: u64) -> Place<'static> {
    Place { input: "/in/f.json", unit: "line", at }
}

fn rescuing() -> RecordOptions {
    RecordOptions { rescue: Some("_rescued_data".to_owned()), ..RecordOptions::default() }
}

fn decode(columns: &str, options: RecordOptions, lines: &[&str]) -> crate::Result<RecordBatch> {
    let mut decoder = RecordDecoder::new(&schema(columns), options).unwrap();
    for (at, line) in (1..).zip(lines) {
        decoder.push(line.as_bytes(), place(at))?;
    }
    let batch = decoder.batch(true)?;
    decoder.finish()?;
    Ok(batch.unwrap_or_else(|| RecordBatch::new_empty(schema(columns))))
}

fn rows(batch: &RecordBatch) -> Vec<Value> {
    let mut writer = arrow_json::WriterBuilder::new()
        .with_explicit_nulls(true)
        .build::<_, arrow_json::writer::LineDelimited>(Vec::new());
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    let text = String::from_utf8(writer.into_inner()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn rescued(batch: &RecordBatch, row: usize) -> Value {
    let column = batch.column_by_name("_rescued_data").unwrap().as_string::<i32>();
    if arrow_array::Array::is_null(column, row) {
        Value::Null
    } else {
        serde_json::from_str(column.value(row)).unwrap()
    }
}

#[test]
fn every_type_is_read_from_json() {
    let columns = "b BOOLEAN, i TINYINT, l BIGINT, f FLOAT, d DOUBLE, n DECIMAL(20, 2), s STRING, x BINARY, day DATE,
        at TIMESTAMP, local TIMESTAMP_NTZ, list ARRAY<INT>, m MAP<STRING, INT>, o STRUCT<a: INT, p: STRUCT<q: STRING>>";
    let full = r#"{"b": true, "i": 7, "l": 9007199254740993, "f": 0.5, "d": -1e3, "n": 123456789012345678.10, "s": "x",
        "x": "aGk=", "day": "2026-03-01", "at": "2026-03-01T12:00:00+02:00", "local": "2026-03-01 12:00:00",
        "list": [1, null, 3], "m": {"k": 1, "j": null, "k": 2}, "o": {"a": 1, "p": {"q": "z"}}}"#;
    let texts = r#"{"b": "true", "i": "7", "l": "1e2", "d": "NaN", "s": {"raw": [1, 2]}, "o": {"p": {}}}"#;
    let batch = decode(columns, RecordOptions::default(), &[full, texts, "{}"]).unwrap();
    let mut found = rows(&batch);
    found[0].as_object_mut().unwrap().remove("n");
    assert_eq!(
        found[0],
        json!({"b": true, "i": 7, "l": 9_007_199_254_740_993_i64, "f": 0.5, "d": -1000.0,
        "s": "x", "x": "6869", "day": "2026-03-01", "at": "2026-03-01T10:00:00Z",
        "local": "2026-03-01T12:00:00", "list": [1, null, 3], "m": {"j": null, "k": 2}, "o": {"a": 1, "p": {"q": "z"}}})
    );
    let decimals = batch.column_by_name("n").unwrap().as_primitive::<arrow_array::types::Decimal128Type>();
    assert_eq!(decimals.value(0), 12_345_678_901_234_567_810, "no digit went through a float");
    assert_eq!(found[1]["l"], json!(100));
    assert_eq!(found[1]["s"], json!(r#"{"raw": [1, 2]}"#), "text columns keep what is no text as it stands");
    assert_eq!(found[1]["o"], json!({"a": null, "p": {"q": null}}));
    assert!(found[2].as_object().unwrap().values().all(Value::is_null));
}

#[test]
fn a_record_that_does_not_fit_is_told_with_the_count() {
    let lines = [r#"{"n": 1}"#, r#"{"n": 1.9}"#, "oops", r#"{"n": "soon"}"#, "[{\"n\": 2}, 3]"];
    let error = decode("n BIGINT", RecordOptions::default(), &lines).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    let text = error.full_text();
    for part in ["/in/f.json", "line 2", "bad lines 4", "column `n`", "1.9"] {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    let options = RecordOptions { malformed: Malformed::Drop, ..RecordOptions::default() };
    assert_eq!(rows(&decode("n BIGINT", options, &lines).unwrap()), [json!({"n": 1}), json!({"n": 2})]);
    let error = decode("n BIGINT NOT NULL", RecordOptions::default(), &["{}"]).unwrap_err().full_text();
    assert!(error.contains("NOT NULL"), "{error}");
}

#[test]
fn r21_the_rescue_column_holds_what_fits_no_other() {
    let columns = "n BIGINT, o STRUCT<a: INT>, l ARRAY<STRUCT<x: INT>>, _rescued_data STRING";
    let lines = [
        r#"{"n": 1, "o": {"a": 2}, "l": [{"x": 1}]}"#,
        r#"{"n": "soon", "new": {"deep": [1.50]}, "N": 3}"#,
        r#"{"o": {"a": "x", "b": null, "c": true}, "l": [{"x": 1}, {"x": "y", "z": 2}], "n": 5}"#,
        r#"{"o": [1], "l": 7}"#,
    ];
    let batch = decode(columns, rescuing(), &lines).unwrap();
    assert_eq!(rescued(&batch, 0), Value::Null);
    let path = "/in/f.json";
    assert_eq!(rescued(&batch, 1), json!({"n": "soon", "new": {"deep": [1.5]}, "N": 3, "_file_path": path}));
    assert_eq!(
        rescued(&batch, 2),
        json!({"o": {"a": "x", "b": null, "c": true}, "l": [{"x": 1}, {"x": "y", "z": 2}], "_file_path": path})
    );
    assert_eq!(rescued(&batch, 3), json!({"o": [1], "l": 7, "_file_path": path}));
    let found = rows(&batch);
    assert_eq!(found[2]["l"], json!([{"x": 1}, {"x": null}]));
    assert_eq!(found[2]["n"], json!(5));
    let text = batch.column_by_name("_rescued_data").unwrap().as_string::<i32>().value(1).to_owned();
    assert!(text.contains("1.50"), "as it was written: {text}");
}

#[test]
fn r21_names_that_differ_in_case_are_rescued_or_read() {
    let mut folding = rescuing();
    folding.look.ignore_case = true;
    let columns = "id INT, _rescued_data STRING";
    let strict = decode(columns, rescuing(), &[r#"{"ID": 1}"#]).unwrap();
    assert_eq!((rows(&strict)[0]["id"].clone(), rescued(&strict, 0)["ID"].clone()), (Value::Null, json!(1)));
    let folded = decode(columns, folding, &[r#"{"ID": 1}"#]).unwrap();
    assert_eq!((rows(&folded)[0]["id"].clone(), rescued(&folded, 0)), (json!(1), Value::Null));
}

#[test]
fn r20_r21_new_fields_stop_or_are_refused() {
    let with = |unknown| RecordOptions { unknown, ..rescuing() };
    let columns = "n BIGINT, o STRUCT<a: INT>, _rescued_data STRING";
    let error = decode(columns, with(Unknown::Evolve), &[r#"{"new": 1}"#]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SchemaEvolved);
    assert!(error.full_text().contains("new"), "{error}");
    let untyped = [r#"{"new": null, "N": 1, "o": {"b": 1}, "m": [{}]}"#];
    let batch = decode(columns, with(Unknown::Evolve), &untyped).unwrap();
    assert_eq!(
        rescued(&batch, 0)["N"],
        json!(1),
        "no column comes of what has no type, or a known name in another case"
    );
    // What can't become a column is rescued, or refused where it would be lost; what has no type is no news.
    let batch = decode(columns, with(Unknown::Refuse), &untyped).unwrap();
    assert_eq!((&rescued(&batch, 0)["N"], &rescued(&batch, 0)["o"]), (&json!(1), &json!({"b": 1})));
    let strict = RecordOptions { unknown: Unknown::Refuse, ..RecordOptions::default() };
    let bare = "n BIGINT, o STRUCT<a: INT>";
    for (columns, options, line) in [
        (columns, with(Unknown::Refuse), r#"{"new": 1}"#),
        (bare, strict.clone(), r#"{"N": 1}"#),
        (bare, strict.clone(), r#"{"o": {"b": 1}}"#),
    ] {
        let error = decode(columns, options, &[line]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(error.full_text().contains("UNKNOWN_FIELD_EXCEPTION"), "{error}");
    }
    assert_eq!(
        rows(&decode(bare, strict, &[r#"{"n": 1, "new": null, "m": [{}]}"#]).unwrap())[0]["n"],
        json!(1)
    );
    assert_eq!(
        rows(&decode("n BIGINT", RecordOptions::default(), &[r#"{"n": 1, "x": 2}"#]).unwrap()),
        [json!({"n": 1})]
    );
}

#[test]
fn r20_names_that_are_taken_elsewhere_become_no_column() {
    let columns = schema("n BIGINT, _rescued_data STRING");
    for unknown in [Unknown::Evolve, Unknown::Refuse] {
        let options = RecordOptions { unknown, ..rescuing() };
        let mut decoder = RecordDecoder::new(&columns, options).unwrap().without(vec!["year".to_owned()]);
        decoder.push(br#"{"n": 1, "year": 7, "Year": 8, "_rescued_data": "x"}"#, place(1)).unwrap();
        let batch = decoder.batch(true).unwrap().unwrap();
        assert_eq!(
            rescued(&batch, 0),
            json!({"Year": 8, "_rescued_data": "x", "_file_path": "/in/f.json"}),
            "{unknown:?}"
        );
    }
    let mut folding = RecordOptions { unknown: Unknown::Evolve, ..rescuing() };
    folding.look.ignore_case = true;
    let mut decoder = RecordDecoder::new(&columns, folding).unwrap().without(vec!["year".to_owned()]);
    decoder.push(br#"{"n": 1, "Year": 8}"#, place(1)).unwrap();
    assert_eq!(rescued(&decoder.batch(true).unwrap().unwrap(), 0), Value::Null);
}

#[test]
fn r21_a_record_that_can_not_be_read_is_kept_where_asked() {
    let options = RecordOptions { malformed: Malformed::Keep, ..rescuing() };
    let batch = decode("n BIGINT, _rescued_data STRING", options, &["{\"n\": 1}", "no \"json\""]).unwrap();
    assert_eq!(rescued(&batch, 1)["_corrupt_record"], json!("no \"json\""));
    assert_eq!(rows(&batch)[1]["n"], Value::Null);
}

#[test]
fn batches_are_cut_by_rows_and_by_bytes() {
    let mut decoder = RecordDecoder::new(&schema("s STRING"), RecordOptions::default()).unwrap();
    let long = format!("{{\"s\": \"{}\"}}", "x".repeat(1 << 20));
    let mut batches = 0;
    for at in 1..=20 {
        decoder.push(long.as_bytes(), place(at)).unwrap();
        batches += usize::from(decoder.batch(false).unwrap().is_some());
    }
    assert_eq!(batches, 2);
    assert_eq!(decoder.batch(true).unwrap().unwrap().num_rows(), 4);
    assert!(decoder.batch(true).unwrap().is_none());
}
