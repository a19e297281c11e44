//! Records of each form, shaped as the connectors write them, become rows.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;

fn envelope(options: &[(&str, &str)]) -> Envelope {
    let mut options: BTreeMap<&str, &str> = options.iter().copied().collect();
    options.insert("envelope", "debezium");
    let envelope = Envelope::new(|name| options.remove(name).map(str::to_owned)).unwrap().unwrap();
    assert!(options.is_empty(), "{options:?}");
    envelope
}

fn schema(columns: &str) -> SchemaRef {
    use strandline_pipeline_sql::{FlowQuery, InputKind};
    let query = FlowQuery::parse(&format!("SELECT * FROM read_files('x', schema => '{columns}')")).unwrap();
    match &query.inputs[0].kind {
        InputKind::ReadFiles(call) => crate::types::schema_of(call.schema.as_deref().unwrap()),
        other => panic!("{other:?}"),
    }
}

/// The rows of each record, less `_source`.
fn rows(envelope: &Envelope, columns: &str, records: &[Value]) -> Vec<Vec<Value>> {
    let text: Vec<String> = records.iter().map(ToString::to_string).collect();
    let wanted = envelope.schema(&schema(columns)).unwrap();
    let mut reader = Rows::new(envelope, &wanted);
    let each = text.iter().map(|record| {
        let mut out = String::new();
        let count = reader.record(&mut out, record).unwrap();
        assert_eq!(out.lines().count(), count);
        let rows = out.lines().map(|row| {
            let mut row: Value = serde_json::from_str(row).unwrap();
            row.as_object_mut().unwrap().remove("_source");
            row
        });
        rows.collect()
    });
    each.collect()
}

/// The rows of one record.
fn unwrap(envelope: &Envelope, record: &str, wanted: &Schema) -> Result<String> {
    let mut out = String::new();
    let mut rows = Rows::new(envelope, wanted);
    rows.record(&mut out, record).map_err(|problem| problem.error(record.as_bytes()))?;
    Ok(out)
}

/// The columns of the rows of some records, a line each.
fn infer(envelope: &Envelope, text: &str) -> Result<Schema> {
    let nothing = Schema::empty();
    let mut found = Found::new(envelope, &nothing, crate::sources::kinds::Fields::default());
    text.lines().try_for_each(|record| found.record(record.as_bytes()))?;
    Ok(found.columns())
}

fn postgres(op: &str, lsn: u64, before: &Value, after: &Value) -> Value {
    json!({"before": before, "after": after, "op": op, "ts_ms": 1_559_033_904_900_u64, "transaction": null,
        "source": {"version": "2.5.0.Final", "connector": "postgresql", "name": "shop", "ts_ms": 1_559_033_904_863_u64,
            "snapshot": "false", "db": "shop", "sequence": "[\"24023119\",\"24023128\"]", "schema": "public",
            "table": "customers", "txId": 555, "lsn": lsn, "xmin": null}})
}

fn row(op: &str, lsn: u64, more: Value) -> Value {
    let rank = u8::from(op != "r");
    let mut row = json!({"_op": op, "_ts_ms": 1_559_033_904_900_u64, "_position": format!("{lsn:0>20}:{rank}"), "_columns": null});
    let Value::Object(more) = more else { panic!("an object") };
    row.as_object_mut().unwrap().extend(more);
    row
}

#[test]
fn each_op_is_its_row_after_or_before() {
    let none = Value::Null;
    let (ann, bob) = (json!({"id": 1, "name": "Ann"}), json!({"id": 1, "name": "Bob"}));
    let records = [
        postgres("r", 5, &none, &ann),
        postgres("c", 6, &none, &ann),
        postgres("u", 7, &none, &bob),
        postgres("u", 8, &ann, &bob),
        postgres("d", 9, &json!({"id": 1, "name": null}), &none),
        postgres("t", 10, &none, &none),
        // A logical message, a tombstone, a heartbeat, bounds of a transaction, a change of a schema.
        json!({"op": "m", "ts_ms": 1, "source": {"lsn": 1}, "message": {"prefix": "p", "content": "Zm9v"}}),
        none.clone(),
        json!({"ts_ms": 1_559_033_904_863_u64}),
        json!({"status": "BEGIN", "id": "571", "event_count": null, "data_collections": null}),
        json!({"source": {"file": "a.1"}, "ts_ms": 1, "databaseName": "d", "ddl": "CREATE TABLE t", "tableChanges": []}),
    ];
    let expected = [
        vec![row("r", 5, ann.clone())],
        vec![row("c", 6, ann)],
        vec![row("u", 7, bob.clone())],
        vec![row("u", 8, bob)],
        vec![row("d", 9, json!({"id": 1, "name": null}))],
        vec![row("t", 10, json!({}))],
        vec![],
        vec![],
        vec![],
        vec![],
        vec![],
    ];
    assert_eq!(rows(&envelope(&[]), "id INT, name STRING", &records), expected);
}

#[test]
fn keys_and_schemas_may_stand_around_a_record_or_not() {
    let plain = postgres("u", 7, &json!({"id": 1}), &json!({"id": 2, "name": "Ann"}));
    let key = json!({"id": 2});
    let of = |schema: &Value, payload: &Value| json!({"schema": schema, "payload": payload});
    let key_schema =
        json!({"type": "struct", "fields": [{"type": "int32", "optional": false, "field": "id"}]});
    let split = vec![row("d", 7, json!({"id": 1})), row("u", 7, json!({"id": 2, "name": "Ann"}))];
    let together = vec![row("u", 7, json!({"id": 2, "name": "Ann"}))];
    let none = Value::Null;
    for (record, expected) in [
        (plain.clone(), &together),
        (of(&none, &plain), &together),
        (json!({"key": key, "value": plain}), &split),
        (json!({"key": of(&key_schema, &key), "value": of(&none, &plain)}), &split),
        (json!({"key": of(&none, &key), "value": plain, "topic": "t", "offset": 3}), &split),
        (json!({"key": key, "value": none}), &vec![]),
        (of(&none, &none), &vec![]),
    ] {
        let found = rows(&envelope(&[]), "id INT, name STRING", std::slice::from_ref(&record));
        assert_eq!(found, std::slice::from_ref(expected), "{record}");
    }
    // The option names the key where records do not.
    let named = envelope(&[("keys", "id")]);
    assert_eq!(rows(&named, "id INT, name STRING", &[plain]), [split]);
    // A key that the row before does not tell did not move.
    let untold = postgres("u", 7, &json!({"id": null}), &json!({"id": 2, "name": "Ann"}));
    assert_eq!(rows(&named, "id INT, name STRING", &[untold]), [together]);
    // A delete whose row before is not known is of its key's row.
    let gone = json!({"key": {"id": 2}, "value": postgres("d", 8, &none, &none)});
    assert_eq!(rows(&named, "id INT, name STRING", &[gone]), [[row("d", 8, json!({"id": 2}))]]);
}

#[test]
fn what_the_connector_did_not_get_is_not_among_the_columns_that_are_set() {
    let bytes: Vec<u8> = UNAVAILABLE.bytes().collect();
    let base64 = BinaryMode::Base64.encode(&bytes);
    for hidden in [
        json!(UNAVAILABLE),
        json!(base64),
        json!(encoding::to_hex(&bytes)),
        json!([UNAVAILABLE]),
        json!([UNAVAILABLE_UUID]),
        json!(bytes),
        json!({UNAVAILABLE: UNAVAILABLE}),
    ] {
        let record =
            postgres("u", 7, &Value::Null, &json!({"id": 1, "name": "Ann", "big": hidden, "n": null}));
        let expected = row("u", 7, json!({"id": 1, "name": "Ann", "n": null, "_columns": ["n", "name"]}));
        let found = rows(&envelope(&[("keys", "id")]), "id INT, name STRING, big STRING, n INT", &[record]);
        assert_eq!(found, [[expected]], "{hidden}");
    }
    // Another marker, as the connector may be told.
    for value in ["gone", "hex:676f6e65"] {
        let other = envelope(&[("unavailablevalue", value)]);
        let record = postgres("u", 7, &Value::Null, &json!({"id": 1, "big": "gone", "name": UNAVAILABLE}));
        let expected = row("u", 7, json!({"id": 1, "name": UNAVAILABLE, "_columns": ["id", "name"]}));
        assert_eq!(rows(&other, "id INT, name STRING, big STRING", &[record]), [[expected]]);
    }
}

/// A record of `MySQL` with its schema: one column of each kind.
fn typed() -> (Value, Value, Value) {
    let columns = json!([
        {"type": "int64", "optional": false, "field": "id"},
        {"type": "bytes", "optional": true, "name": "org.apache.kafka.connect.data.Decimal", "version": 1,
            "parameters": {"scale": "2", "connect.decimal.precision": "10"}, "field": "price"},
        {"type": "struct", "name": "io.debezium.data.VariableScaleDecimal", "optional": true, "field": "any_number", "fields": [
            {"type": "int32", "optional": false, "field": "scale"}, {"type": "bytes", "optional": false, "field": "value"}]},
        {"type": "int32", "optional": true, "name": "io.debezium.time.Date", "version": 1, "field": "born"},
        {"type": "int64", "optional": true, "name": "io.debezium.time.MicroTime", "version": 1, "field": "opens"},
        {"type": "int64", "optional": true, "name": "io.debezium.time.Timestamp", "version": 1, "field": "at_ms"},
        {"type": "int64", "optional": true, "name": "io.debezium.time.MicroTimestamp", "version": 1, "field": "at_us"},
        {"type": "int64", "optional": true, "name": "io.debezium.time.NanoTimestamp", "version": 1, "field": "at_ns"},
        {"type": "string", "optional": true, "name": "io.debezium.time.ZonedTimestamp", "version": 1, "field": "zoned"},
        {"type": "int32", "optional": true, "name": "io.debezium.time.Year", "version": 1, "field": "year"},
        {"type": "bytes", "optional": true, "field": "raw"},
        {"type": "bytes", "optional": true, "name": "io.debezium.data.Bits", "version": 1, "parameters": {"length": "10"}, "field": "bits"},
        {"type": "string", "optional": true, "name": "io.debezium.data.Json", "version": 1, "field": "doc"},
        {"type": "string", "optional": true, "name": "io.debezium.data.Enum", "version": 1, "parameters": {"allowed": "a,b"}, "field": "grade"},
        {"type": "double", "optional": true, "field": "ratio"},
        {"type": "boolean", "optional": true, "field": "active"},
        {"type": "array", "optional": true, "items": {"type": "int32", "optional": true, "name": "io.debezium.time.Date"}, "field": "days"},
        {"type": "struct", "optional": true, "name": "io.debezium.data.geometry.Point", "version": 1, "field": "place", "fields": [
            {"type": "double", "optional": false, "field": "x"}, {"type": "double", "optional": false, "field": "y"},
            {"type": "bytes", "optional": true, "field": "wkb"}, {"type": "int32", "optional": true, "field": "srid"}]},
        {"type": "map", "optional": true, "keys": {"type": "string"}, "values": {"type": "string", "optional": true}, "field": "tags"}
    ]);
    let named = |field: &str| json!({"type": "struct", "fields": columns, "optional": true, "name": "shop.Value", "field": field});
    let schema = json!({"type": "struct", "optional": false, "name": "shop.Envelope",
        "fields": [named("before"), named("after"), {"type": "string", "optional": false, "field": "op"}]});
    let written = json!({
        "id": 9_007_199_254_740_993_i64, "price": "B1vNFQ==", "any_number": {"scale": 3, "value": "MDk="}, "born": 17_546,
        "opens": 44_712_345_678_i64, "at_ms": 1_529_476_623_000_i64, "at_us": 1_529_507_596_945_104_i64,
        "at_ns": 1_529_507_596_945_104_000_i64, "zoned": "2018-06-20T13:37:03.5Z", "year": 2018, "raw": "AP8=",
        "bits": "AQI=", "doc": "{\"a\": 1}", "grade": "a", "ratio": 0.1, "active": true, "days": [0, null, 1],
        "place": {"x": 1.5, "y": 2.0, "wkb": "AQ==", "srid": null}, "tags": {"a": "1", "b": null}
    });
    let plain = json!({
        "id": 9_007_199_254_740_993_i64, "price": 1_234_567.89, "any_number": "12.345", "born": "2018-01-15",
        "opens": "12:25:12.345678", "at_ms": "2018-06-20T06:37:03", "at_us": "2018-06-20T15:13:16.945104",
        "at_ns": "2018-06-20T15:13:16.945104", "zoned": "2018-06-20T13:37:03.5Z", "year": 2018, "raw": "AP8=",
        "bits": "AQI=", "doc": "{\"a\": 1}", "grade": "a", "ratio": 0.1, "active": true,
        "days": ["1970-01-01", null, "1970-01-02"], "place": {"x": 1.5, "y": 2.0, "wkb": "AQ==", "srid": null},
        "tags": {"a": "1", "b": null}
    });
    (schema, written, plain)
}

#[test]
fn the_schema_of_a_record_says_what_its_values_are() {
    let (schema, written, plain) = typed();
    let record = json!({"schema": schema, "payload": postgres("c", 5, &Value::Null, &written)});
    let envelope = envelope(&[]);
    let found = infer(&envelope, &record.to_string()).unwrap();
    let types: Vec<String> =
        found.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
    assert_eq!(
        types,
        [
            "id Int64",
            "price Decimal128(10, 2)",
            "any_number Utf8",
            "born Date32",
            "opens Utf8",
            "at_ms Timestamp(µs)",
            "at_us Timestamp(µs)",
            "at_ns Timestamp(µs)",
            "zoned Timestamp(µs, \"UTC\")",
            "year Int32",
            "raw Binary",
            "bits Binary",
            "doc Utf8",
            "grade Utf8",
            "ratio Float64",
            "active Boolean",
            "days List(Date32)",
            "place Struct(\"x\": Float64, \"y\": Float64, \"wkb\": Binary, \"srid\": Int32)",
            "tags Map(\"entries\": non-null Struct(\"key\": non-null Utf8, \"value\": Utf8), unsorted)",
        ]
    );
    let wanted = envelope.schema(&found).unwrap();
    let out = unwrap(&envelope, &record.to_string(), &wanted).unwrap();
    let mut row_found: Value = serde_json::from_str(&out).unwrap();
    row_found.as_object_mut().unwrap().remove("_source");
    assert_eq!(row_found, row("c", 5, plain));
}

#[test]
fn declared_types_say_what_values_without_a_schema_are() {
    let after = json!({"price": "B1vNFQ==", "any": {"scale": 3, "value": "MDk="}, "born": 17_546, "at": 1_529_507_596_945_104_i64,
        "zoned": "2018-06-20T13:37:03Z", "raw": "AP8=", "active": 1, "place": {"x": 1}, "n": 5, "day": 86_400_000_000_i64});
    let plain = json!({"price": 1_234_567.89, "any": 12.345, "born": "2018-01-15", "at": "2018-06-20T15:13:16.945104",
        "zoned": "2018-06-20T13:37:03Z", "raw": "AP8=", "active": true, "place": "{\"x\":1}", "n": 5, "day": 86_400_000_000_i64});
    let record = postgres("c", 5, &Value::Null, &after);
    let columns =
        "price DECIMAL(10, 2), any DECIMAL(20, 5), born DATE, at TIMESTAMP_NTZ, zoned TIMESTAMP, raw BINARY,
        active BOOLEAN, place STRING, n INT, day BIGINT";
    assert_eq!(rows(&envelope(&[("timestampunit", "us")]), columns, &[record]), [[row("c", 5, plain)]]);

    let digits = postgres("c", 5, &Value::Null, &json!({"price": "1234", "raw": "00FF"}));
    let modes = envelope(&[("decimalhandlingmode", "string"), ("binaryhandlingmode", "hex")]);
    let plain = row("c", 5, json!({"price": "1234", "raw": "AP8="}));
    assert_eq!(rows(&modes, "price DECIMAL(10, 2), raw BINARY", &[digits]), [[plain]]);
}

#[test]
fn schemas_that_grow_are_put_together() {
    let named = |columns: Value| {
        json!({"schema": {"type": "struct", "fields": [{"type": "struct", "field": "after", "fields": columns}]},
            "payload": postgres("c", 5, &Value::Null, &json!({"id": 1}))})
    };
    let first = named(json!([{"type": "int32", "field": "id"}, {"type": "string", "field": "a"}]));
    let second = named(json!([{"type": "int64", "field": "id"}, {"type": "float", "field": "b"}]));
    let text = format!("{first}\n{second}\n{first}");
    let found = infer(&envelope(&[]), &text).unwrap();
    let types: Vec<String> =
        found.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
    assert_eq!(types, ["id Int64", "a Utf8", "b Float32"]);
    let other = named(json!([{"type": "string", "field": "id"}]));
    let error = infer(&envelope(&[]), &format!("{first}\n{other}")).unwrap_err();
    assert!(error.to_string().contains("id"), "{error}");
    // Without schemas, the rows tell.
    let plain = postgres("u", 5, &json!({"id": 1}), &json!({"id": 2, "name": "} {\"x\""}));
    let found = infer(&envelope(&[("keys", "id")]), &plain.to_string()).unwrap();
    let types: Vec<String> =
        found.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
    assert_eq!(types, ["id Int64", "name Utf8"]);
}

#[test]
fn a_number_beyond_64_bits_is_none_that_is_rounded() {
    // BIGINT UNSIGNED, of a record without a schema.
    let of = |id: u64| postgres("c", 5, &Value::Null, &json!({"id": id, "more": null})).to_string();
    let text = format!("{}\n{}", of(u64::MAX), of(1));
    let found = infer(&envelope(&[]), &text).unwrap();
    let types: Vec<String> =
        found.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
    assert_eq!(types, ["id Decimal128(38, 0)", "more Utf8"]);
}

#[test]
fn errors_name_field_and_sample() {
    let refused = |options: &[(&str, &str)], columns: &str, record: &Value| {
        let envelope = envelope(options);
        let wanted = envelope.schema(&schema(columns)).unwrap();
        unwrap(&envelope, &record.to_string(), &wanted).unwrap_err()
    };
    let of = |after: Value| postgres("c", 5, &Value::Null, &after);
    for (record, field) in [
        (of(json!({"at": 5})), Some("at")),
        (of(json!({"price": "12.34"})), Some("price")),
        (of(json!({"raw": "!"})), Some("raw")),
        (of(json!({"born": 1.5})), Some("born")),
        (of(json!({"born": 9_000_000_000_000_i64})), Some("born")),
        (of(json!({"_op": 1})), Some("_op")),
        (postgres("x", 5, &Value::Null, &Value::Null), None),
        (postgres("c", 5, &Value::Null, &Value::Null), None),
        (postgres("d", 5, &Value::Null, &Value::Null), None),
        (json!({"id": 1}), None),
        (of(json!("{\"_id\": 1}")), None),
    ] {
        let error = refused(&[], "at TIMESTAMP, price DECIMAL(10, 2), raw BINARY, born DATE", &record);
        assert_eq!(error.kind(), ErrorKind::Data);
        let text = error.to_string();
        assert!(text.contains("sample {"), "{text}");
        assert_eq!(text.split_once("field ").and_then(|(_, rest)| rest.split(',').next()), field, "{text}");
    }
    let error = envelope(&[]).schema(&schema("id INT, _source STRING")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Definition);
    for (option, value) in [
        ("envelope", "maxwell"),
        ("binaryhandlingmode", "x"),
        ("decimalhandlingmode", "x"),
        ("timestampunit", "s"),
        ("metadataprefix", "__strandline_"),
        ("unavailablevalue", "hex:xyz"),
    ] {
        let mut options = BTreeMap::from([("envelope", "debezium"), (option, value)]);
        let error = Envelope::new(|name| options.remove(name).map(str::to_owned)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Definition, "{option}");
    }
}

#[test]
fn any_text_is_rows_or_an_error() {
    let (schema, written, _) = typed();
    let record = json!({"schema": schema, "payload": postgres("u", 5, &written, &written)}).to_string();
    let envelope = envelope(&[]);
    let wanted = envelope.schema(&Schema::empty()).unwrap();
    for at in (0..record.len()).step_by(7).filter(|at| record.is_char_boundary(*at)) {
        for noise in ["", "null", "{", "\"", "9"] {
            let text = format!("{}{noise}{}", &record[..at], record.get(at + 1..).unwrap_or_default());
            if let Ok(rows) = unwrap(&envelope, &text, &wanted) {
                for row in serde_json::Deserializer::from_str(&rows).into_iter::<Value>() {
                    row.unwrap();
                }
            }
        }
    }
}
