//! Values of each format become rows, or an error that names the record.

use arrow_array::{cast::AsArray, types::Int64Type};
use serde_json::json;
use strandline_pipeline_sql::{FlowQuery, InputKind};

use super::*;

fn payload(written: &str, declared: Option<&str>) -> Payload {
    let schema = declared.map(|columns| format!(", schema => '{columns}'")).unwrap_or_default();
    let text = format!(
        "SELECT * FROM STREAM read_kafka(bootstrapServers => 'a:1', subscribe => 't'{schema}{written})"
    );
    let query = FlowQuery::parse(&text).unwrap();
    let InputKind::ReadKafka(call) = &query.inputs[0].kind else { panic!("{query:?}") };
    let options = KafkaOptions::new(call).unwrap();
    let columns = call.schema.as_deref().map(crate::types::schema_of);
    let declared = columns.map(|columns| match &options.envelope {
        Some(envelope) => envelope.schema(&columns).unwrap(),
        None => columns,
    });
    Payload::new(&options, declared).unwrap()
}

fn record(offset: i64, value: Option<&[u8]>) -> Record {
    Record {
        topic: "t".into(),
        partition: 3,
        offset,
        timestamp: Some(1_700_000_000_123),
        timestamp_type: 0,
        key: Some(b"k".to_vec()),
        value: value.map(<[u8]>::to_vec),
        headers: vec![("h".to_owned(), None), ("h".to_owned(), Some(vec![1]))],
    }
}

fn shown(rows: &RecordBatch) -> serde_json::Value {
    let mut writer = arrow_json::WriterBuilder::new()
        .with_explicit_nulls(true)
        .build::<_, arrow_json::writer::JsonArray>(Vec::new());
    writer.write(rows).unwrap();
    writer.finish().unwrap();
    serde_json::from_slice(&writer.into_inner()).unwrap()
}

#[test]
fn records_that_are_not_looked_into_have_the_columns_of_spark() {
    let rows = payload("", None).rows(&[record(7, Some(b"v")), record(8, None)]).unwrap();
    let found = shown(&rows);
    let headers = json!([{"key": "h", "value": null}, {"key": "h", "value": "01"}]);
    assert_eq!(
        found[0],
        json!({"key": "6b", "value": "76", "topic": "t", "partition": 3, "offset": 7,
            "timestamp": "2023-11-14T22:13:20.123Z", "timestampType": 0, "headers": headers})
    );
    assert_eq!(found[1]["value"], json!(null));
}

#[test]
fn objects_become_columns_with_the_frame_beside_them() {
    let payload = payload("", Some("id BIGINT, name STRING"));
    let records = [
        record(1, Some(b" {\"name\": \"a\",\n \"id\": 9007199254740993}")),
        record(2, None),
        record(3, Some(br#"{"id":2,"more":1}"#)),
    ];
    let rows = payload.rows(&records).unwrap();
    assert_eq!(rows.schema(), payload.schema);
    let found = shown(&rows);
    let ids: Vec<_> = rows.column(0).as_primitive::<Int64Type>().iter().collect();
    assert_eq!(ids, [Some(9_007_199_254_740_993), None, Some(2)]);
    assert_eq!(found[0]["name"], "a");
    assert_eq!(found[0]["_kafka"]["offset"], 1);
    assert_eq!(found[0]["_kafka"]["tombstone"], false);
    assert_eq!(found[1]["_kafka"]["tombstone"], true);
    assert_eq!(found[1]["_kafka"]["key"], "6b");
    for (bad, why) in [
        (&b"[1]"[..], "no JSON object"),
        (b"{", "no JSON object"),
        (b"\xff", "no JSON object"),
        (br#"{"id":"x"}"#, "column `id`"),
    ] {
        let error = payload.rows(&[records[0].clone(), record(44, Some(bad))]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data);
        let text = error.full_text();
        assert!(text.contains("topic t, partition 3, offset 44") && text.contains(why), "{text}");
    }
}

#[test]
fn an_envelope_makes_one_row_two_or_none_of_a_record() {
    let payload = payload(", envelope => 'debezium', keys => 'id'", Some("id BIGINT, name STRING"));
    let change = |op: &str, before: serde_json::Value, after: serde_json::Value| {
        json!({"op": op, "before": before, "after": after, "source": {"lsn": 5}}).to_string().into_bytes()
    };
    let row = |id: u64| json!({"id": id, "name": "x"});
    let records = [
        record(1, Some(&change("c", json!(null), row(1)))),
        record(2, None),
        record(3, Some(&change("u", row(1), row(2)))),
        record(4, Some(br#"{"ts_ms":1}"#)),
        record(5, Some(&change("d", row(2), json!(null)))),
    ];
    let found = shown(&payload.rows(&records).unwrap());
    let shape: Vec<_> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            (
                row["_kafka"]["offset"].as_u64().unwrap(),
                row["_op"].as_str().unwrap(),
                row["id"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(shape, [(1, "c", 1), (3, "d", 1), (3, "u", 2), (5, "d", 2)]);
    let error = payload.rows(&[record(9, Some(b"{\"id\":1}"))]).unwrap_err();
    assert!(error.to_string().contains("offset 9"), "{error}");
}

const SCHEMA: &str = r#"{"type":"record","name":"r","fields":[{"name":"id","type":"long"},{"name":"name","type":["null","string"]}]}"#;

/// `{"id": 150, "name": "ab"}`: 150 is the zigzag varint 0xac 0x02, the second branch of the union 0x02.
const DATUM: [u8; 6] = [0xac, 0x02, 0x02, 0x04, b'a', b'b'];

#[test]
fn data_of_avro_bare_or_in_a_frame() {
    let framed =
        |framing: &str| payload(&format!(", avroSchema => '{SCHEMA}', avroFraming => '{framing}'"), None);
    let print = match AvroSchema::new(SCHEMA.to_owned()).fingerprint(FingerprintAlgorithm::Rabin).unwrap() {
        Fingerprint::Rabin(print) => print.to_le_bytes(),
        other => panic!("{other:?}"),
    };
    let single = [&[0xc3, 0x01][..], &print, &DATUM].concat();
    let registry = [&[0, 0, 0, 0, 77][..], &DATUM].concat();
    for (framing, value) in
        [("none", DATUM.to_vec()), ("single-object", single.clone()), ("confluent", registry.clone())]
    {
        let payload = framed(framing);
        let rows =
            payload.rows(&[record(1, Some(&value)), record(2, None), record(3, Some(&value))]).unwrap();
        let found = shown(&rows);
        for row in [0, 2] {
            assert_eq!((&found[row]["id"], &found[row]["name"]), (&json!(150), &json!("ab")), "{framing}");
        }
        assert_eq!((&found[1]["id"], &found[1]["_kafka"]["tombstone"]), (&json!(null), &json!(true)));
        // One byte less, one byte more, another frame.
        let mut other = value.clone();
        other[0] ^= 0x55;
        for bad in [value[..value.len() - 1].to_vec(), [&value[..], &[0]].concat(), other] {
            let wrong = payload.rows(&[record(8, Some(&value)), record(9, Some(&bad))]);
            if framing == "none" && bad.len() == value.len() {
                continue; // Another number is a number too.
            }
            let error = wrong.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Data, "{framing}: {error}");
            assert!(error.to_string().contains("offset 9"), "{framing}: {error}");
        }
    }
    let mut strange = single;
    strange[5] ^= 1;
    let error = framed("single-object").rows(&[record(9, Some(&strange))]).unwrap_err();
    assert!(error.to_string().contains("another schema"), "{error}");
}

#[test]
fn a_column_named_as_the_frame_is_refused() {
    let columns = Schema::new(vec![arrow_schema::Field::new("_kafka", arrow_schema::DataType::Int32, true)]);
    assert_eq!(columns::beside(&columns).unwrap_err().kind(), ErrorKind::Definition);
}
