//! Feeds of Debezium, shaped as the connectors for `PostgreSQL` and `MySQL` write them, into tables.

use serde_json::{Value as Json, json};
use strandline_runtime::FlowStatus;

use crate::pipeline::{Bench, FORMATS, Format, JsonRow};

const UNAVAILABLE: &str = "__debezium_unavailable_value";
const EXCEPT: &str = "COLUMNS * EXCEPT (_op, _ts_ms, _position, _source, _columns)";

/// A record of the connector for `PostgreSQL`, as a file sink writes it.
fn postgres(op: &str, lsn: u64, before: &Json, after: &Json) -> Json {
    let key = [after, before].into_iter().find_map(|row| row.get("id").cloned());
    json!({
        "key": key.map(|id| json!({"id": id})),
        "value": {"before": before, "after": after, "op": op, "ts_ms": 1_700_000_000_000_u64 + lsn,
            "source": {"connector": "postgresql", "db": "shop", "schema": "public", "table": "customers", "txId": lsn / 2, "lsn": lsn,
                "ts_ms": 1_700_000_000_000_u64 + lsn, "snapshot": if op == "r" { "true" } else { "false" }}}
    })
}

/// What happened to a table of customers: read by a snapshot, then changed.
fn feed() -> Vec<Json> {
    let none = Json::Null;
    let row = |id: u64, name: &str, bio: &str| json!({"id": id, "name": name, "bio": bio});
    vec![
        postgres("r", 100, &none, &row(1, "Ann", "long")),
        postgres("r", 100, &none, &row(2, "Bob", "b")),
        postgres("r", 100, &none, &row(3, "Cid", "c")),
        postgres("u", 100, &none, &row(3, "Cid at once", "c")),
        postgres("u", 110, &none, &row(1, "Anne", UNAVAILABLE)),
        postgres("d", 120, &json!({"id": 2, "name": null, "bio": null}), &none),
        json!({"key": {"id": 2}, "value": null}),
        postgres("c", 130, &none, &row(4, "Dan", "d")),
        // A change of the key, as the connector writes it: a delete and an insert.
        postgres("d", 140, &json!({"id": 4, "name": null, "bio": null}), &none),
        json!({"key": {"id": 4}, "value": null}),
        postgres("c", 140, &none, &row(40, "Dan", "d")),
        postgres("u", 150, &none, &row(1, "Anna", UNAVAILABLE)),
        json!({"ts_ms": 1}),
        json!({"key": {"id": 9}, "value": {"op": "m", "message": {"prefix": "p"}, "source": {"lsn": 151}}}),
    ]
}

fn pipeline(source_options: &str, clauses: &str) -> String {
    format!(
        "SET pipelines.maxFlowRetryAttempts = 0;
         CREATE STREAMING TABLE t;
         CREATE FLOW f AS AUTO CDC INTO t
         FROM STREAM read_files('in/*.json', format => 'json', envelope => 'debezium', {source_options})
         KEYS (id) APPLY AS DELETE WHEN _op = 'd' {clauses};"
    )
}

const SCHEMA: &str = "schema => 'id BIGINT, name STRING, bio STRING'";

/// Writes the records into files in this order, some to a file.
fn write(bench: &Bench, records: &[Json], to_a_file: usize) {
    for (number, records) in records.chunks(to_a_file).enumerate() {
        bench.file(&format!("in/{number:03}.json"), records);
    }
}

/// The records in an order in which nobody would expect them, each twice.
fn shuffled(records: &[Json]) -> Vec<Json> {
    let doubled: Vec<&Json> = records.iter().chain(records).collect();
    // A step that has no factor in common with the number of records: each is met once.
    let step = (7..997)
        .find(|step: &usize| {
            !doubled.len().is_multiple_of(*step) && [2, 3, 5].iter().all(|p| !step.is_multiple_of(*p))
        })
        .unwrap();
    let mixed: Vec<Json> = (0..doubled.len()).map(|i| doubled[i * step % doubled.len()].clone()).collect();
    for record in records {
        assert!(mixed.iter().filter(|other| *other == record).count() >= 2, "{record}");
    }
    mixed
}

async fn table(records: &[Json], to_a_file: usize, format: Format, sql: &str, query: &str) -> Vec<JsonRow> {
    let bench = Bench::new(format);
    write(&bench, records, to_a_file);
    bench.succeed(sql).await;
    bench.rows(query).await
}

fn as_json(rows: &[JsonRow]) -> Json {
    serde_json::to_value(rows).unwrap()
}

#[tokio::test]
async fn a_feed_of_postgres_into_type_1_whatever_its_order() {
    let sql = pipeline(
        &format!("{SCHEMA}, maxFilesPerTrigger => 2"),
        &format!("SEQUENCE BY _position COLUMNS TO UPDATE _columns {EXCEPT} STORED AS SCD TYPE 1"),
    );
    let expected = json!([
        {"id": 1, "name": "Anna", "bio": "long"},
        {"id": 3, "name": "Cid at once", "bio": "c"},
        {"id": 40, "name": "Dan", "bio": "d"}
    ]);
    assert_eq!(shuffled(&feed()).len(), feed().len() * 2);
    for format in FORMATS {
        for (records, to_a_file) in [(feed(), 3), (shuffled(&feed()), 5), (shuffled(&feed()), 100)] {
            let rows =
                table(&records, to_a_file, format, &sql, "SELECT id, name, bio FROM t ORDER BY id").await;
            assert_eq!(as_json(&rows), expected, "{format:?}, {to_a_file} to a file");
        }
    }
}

#[tokio::test]
async fn a_feed_of_postgres_into_type_2_whatever_its_order() {
    let sql = pipeline(
        &format!("{SCHEMA}, maxFilesPerTrigger => 2"),
        &format!("SEQUENCE BY _source.lsn COLUMNS TO UPDATE _columns {EXCEPT} STORED AS SCD TYPE 2"),
    );
    let version = |id: u64, name: &str, bio: &str, from: u64, to: Option<u64>| json!({"id": id, "name": name, "bio": bio, "__START_AT": from, "__END_AT": to});
    let expected = json!([
        version(1, "Ann", "long", 100, Some(110)),
        version(1, "Anne", "long", 110, Some(150)),
        version(1, "Anna", "long", 150, None),
        version(2, "Bob", "b", 100, Some(120)),
        version(4, "Dan", "d", 130, Some(140)),
        version(40, "Dan", "d", 140, None),
    ]);
    // By the log position alone, a read and a change at one position tie: that is what _position is for.
    let feed: Vec<Json> = feed().into_iter().filter(|record| record["key"]["id"] != 3).collect();
    for format in FORMATS {
        for (records, to_a_file) in [(feed.clone(), 3), (shuffled(&feed), 5)] {
            let query = "SELECT * FROM t ORDER BY id, `__START_AT`".replace('`', "\"");
            let rows = table(&records, to_a_file, format, &sql, &query).await;
            assert_eq!(as_json(&rows), expected, "{format:?}, {to_a_file} to a file");
        }
    }
}

#[tokio::test]
async fn a_value_that_the_connector_did_not_get_never_becomes_null_unsaid() {
    let bench = Bench::new(Format::Memory);
    write(&bench, &feed(), 100);
    let sql = pipeline(SCHEMA, &format!("SEQUENCE BY _position {EXCEPT}"));
    let report = bench.run(&sql).await.unwrap();
    let flow = &report.flows[0];
    assert_eq!(flow.status, FlowStatus::Failed);
    let text = flow.reason.clone().unwrap();
    assert!(text.contains("field bio") && text.contains("line 5") && text.contains("in/000.json"), "{text}");
    assert!(flow.help.as_ref().unwrap().contains("COLUMNS TO UPDATE _columns"), "{flow:?}");
    // NULL may mean as much, where the flow says so.
    let sql = pipeline(SCHEMA, &format!("SEQUENCE BY _position IGNORE NULL UPDATES {EXCEPT}"));
    let bench = Bench::new(Format::Memory);
    write(&bench, &feed(), 100);
    bench.succeed(&sql).await;
    assert_eq!(as_json(&bench.rows("SELECT bio FROM t WHERE id = 1").await), json!([{"bio": "long"}]));
}

#[tokio::test]
async fn lists_of_columns_fit_what_the_flow_keeps() {
    // The target keeps fewer columns, and one of the envelope's own, which each row sets.
    let sql = pipeline(SCHEMA, "SEQUENCE BY _position COLUMNS TO UPDATE _columns COLUMNS (id, bio, _ts_ms)");
    let rows = table(&feed(), 100, Format::Memory, &sql, "SELECT id, bio, _ts_ms FROM t WHERE id = 1").await;
    assert_eq!(as_json(&rows), json!([{"id": 1, "bio": "long", "_ts_ms": 1_700_000_000_150_u64}]));
    // A query that renames a column makes the list wrong, and is told before anything runs.
    let renamed = pipeline(SCHEMA, "SEQUENCE BY _position COLUMNS TO UPDATE _columns");
    let from = "STREAM read_files('in/*.json', format => 'json', envelope => 'debezium', ";
    let renamed = renamed
        .replace(from, &format!("(SELECT id, name AS title, bio, _op, _position, _columns FROM {from}"));
    let renamed = renamed.replace("bio STRING')", "bio STRING'))");
    let bench = Bench::new(Format::Memory);
    write(&bench, &feed(), 100);
    let text = match bench.run(&renamed).await {
        Err(errors) => errors.iter().map(ToString::to_string).collect::<String>(),
        Ok(report) => format!("{:?}", report.flows[0].reason),
    };
    assert!(text.contains("column name") && text.contains("_columns"), "{text}");
}

#[tokio::test]
async fn an_update_that_changes_the_key_of_the_flow_is_a_delete_and_an_upsert() {
    // The table's own key is `row`; the flow's is not, so that the connector tells an update.
    let record = |op: &str, pos: u64, before: Json, after: Json| {
        json!({"before": before, "after": after, "op": op, "ts_ms": pos,
            "source": {"connector": "mysql", "file": "mysql-bin.000003", "pos": pos, "row": 0, "ts_ms": pos}})
    };
    let row = |row: u64, id: &str, n: u64| json!({"row": row, "id": id, "n": n});
    let records = [
        record("c", 10, Json::Null, row(1, "a", 1)),
        record("c", 20, Json::Null, row(2, "b", 2)),
        record("u", 30, row(1, "a", 1), row(1, "z", 3)),
        record("u", 40, row(2, "b", 2), row(2, "b", 4)),
    ];
    let sql = pipeline(
        "schema => 'row BIGINT, id STRING, n BIGINT', maxFilesPerTrigger => 1",
        &format!("SEQUENCE BY _position {EXCEPT} STORED AS SCD TYPE 2"),
    );
    let sequence = |pos: u64| format!("mysql-bin.0000000003:{pos:0>20}:{:0>20}:1", 0);
    let version = |row: u64, id: &str, n: u64, from: u64, to: Option<u64>| json!({"row": row, "id": id, "n": n, "__START_AT": sequence(from), "__END_AT": to.map(sequence)});
    let expected = json!([
        version(1, "a", 1, 10, Some(30)),
        version(2, "b", 2, 20, Some(40)),
        version(2, "b", 4, 40, None),
        version(1, "z", 3, 30, None),
    ]);
    let backwards: Vec<Json> = records.iter().rev().cloned().collect();
    for format in FORMATS {
        for records in [&records[..], &backwards] {
            let query = "SELECT row, id, n, \"__START_AT\", \"__END_AT\" FROM t ORDER BY id, n";
            assert_eq!(as_json(&table(records, 1, format, &sql, query).await), expected, "{format:?}");
        }
    }
}

#[tokio::test]
async fn a_truncate_empties_the_table_as_of_its_position() {
    let none = Json::Null;
    let row = |id: u64| json!({"id": id, "name": "x", "bio": "y"});
    let mut records = vec![
        postgres("c", 10, &none, &row(1)),
        postgres("c", 20, &none, &row(2)),
        postgres("t", 30, &none, &none),
        postgres("c", 40, &none, &row(3)),
    ];
    let sql = pipeline(
        &format!("{SCHEMA}, maxFilesPerTrigger => 1"),
        &format!("APPLY AS TRUNCATE WHEN _op = 't' SEQUENCE BY _position {EXCEPT}"),
    );
    for format in FORMATS {
        for _ in 0..2 {
            let rows = table(&records, 1, format, &sql, "SELECT id FROM t").await;
            assert_eq!(as_json(&rows), json!([{"id": 3}]), "{format:?}");
            records.reverse();
        }
    }
}

/// A record of `MySQL` with its schema; `more` are columns that the table got later.
fn with_schema(pos: u64, row: &Json, more: &[Json]) -> Json {
    let mut columns = vec![
        json!({"type": "int32", "optional": false, "field": "id"}),
        json!({"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "version": 1, "field": "price",
            "parameters": {"scale": "2", "connect.decimal.precision": "10"}, "optional": true}),
        json!({"type": "int32", "name": "io.debezium.time.Date", "version": 1, "field": "due", "optional": true}),
        json!({"type": "int64", "name": "io.debezium.time.MicroTimestamp", "version": 1, "field": "at", "optional": true}),
        json!({"type": "string", "name": "io.debezium.time.ZonedTimestamp", "version": 1, "field": "seen", "optional": true}),
        json!({"type": "bytes", "field": "raw", "optional": true}),
    ];
    columns.extend_from_slice(more);
    json!({
        "schema": {"type": "struct", "name": "shop.Envelope", "fields": [
            {"type": "struct", "field": "before", "fields": columns, "optional": true},
            {"type": "struct", "field": "after", "fields": columns, "optional": true}]},
        "payload": {"before": null, "after": row, "op": "c", "ts_ms": 1,
            "source": {"connector": "mysql", "file": "binlog.000001", "pos": pos, "row": 0}}
    })
}

#[tokio::test]
async fn columns_and_types_come_from_the_schema_of_records() {
    let row = json!({"id": 7, "price": "B1vNFQ==", "due": 17_546, "at": 1_529_507_596_945_104_i64,
        "seen": "2018-06-20T13:37:03.5Z", "raw": "AP8="});
    let sql = "CREATE STREAMING TABLE t;
        CREATE FLOW f AS INSERT INTO t BY NAME
        SELECT *, arrow_typeof(price) AS price_type, arrow_typeof(at) AS at_type, arrow_typeof(seen) AS seen_type
        FROM STREAM read_files('in/*.json', format => 'json', envelope => 'debezium');";
    for format in FORMATS {
        let bench = Bench::new(format);
        write(&bench, &[with_schema(4, &row, &[])], 1);
        bench.succeed(sql).await;
        let query = "SELECT id, CAST(price AS VARCHAR) AS price, CAST(due AS VARCHAR) AS due, CAST(at AS VARCHAR) AS at,
            CAST(seen AS VARCHAR) AS seen, raw, price_type, at_type, seen_type, _op, _source.pos AS pos FROM t";
        let expected = json!([{"id": 7, "price": "1234567.89", "due": "2018-01-15", "at": "2018-06-20T15:13:16.945104",
            "seen": "2018-06-20T13:37:03.500Z", "raw": "00ff", "price_type": "Decimal128(10, 2)", "at_type": "Timestamp(µs)",
            "seen_type": "Timestamp(µs, \"UTC\")", "_op": "c", "pos": 4}]);
        assert_eq!(as_json(&bench.rows(query).await), expected, "{format:?}");
    }
}

#[tokio::test]
async fn the_example_of_a_feed_gives_what_its_readme_says() {
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/debezium");
    let sql = std::fs::read_to_string(example.join("pipeline.sql")).unwrap();
    let mut files: Vec<_> =
        std::fs::read_dir(example.join("feed")).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    for format in FORMATS {
        let bench = Bench::new(format);
        // File by file, as they came.
        for file in &files {
            let name = file.file_name().unwrap().to_str().unwrap();
            bench.raw_file(&format!("feed/{name}"), std::fs::read(file).unwrap());
            bench.succeed(&sql).await;
        }
        let query = "SELECT id, name, CAST(credit AS VARCHAR) AS credit, CAST(since AS VARCHAR) AS since,
            length(notes) AS notes FROM customers ORDER BY id";
        assert_eq!(
            as_json(&bench.rows(query).await),
            json!([
                {"id": 1001, "name": "Sally Thomas-Reed", "credit": "1250.00", "since": "2020-01-01", "notes": 42},
                {"id": 1002, "name": "George Bailey", "credit": "0.00", "since": "2021-01-01", "notes": 26},
                {"id": 1004, "name": "Anne Kretchmar", "credit": "999.00", "since": "2026-01-01", "notes": 4}
            ]),
            "{format:?}"
        );
        let query = "SELECT name, length(notes) AS notes, \"__END_AT\" IS NULL AS now FROM customers_history
            WHERE id = 1001 ORDER BY \"__START_AT\"";
        assert_eq!(
            as_json(&bench.rows(query).await),
            json!([
                {"name": "Sally Thomas", "notes": 42, "now": false},
                {"name": "Sally Reed", "notes": 42, "now": false},
                {"name": "Sally Thomas-Reed", "notes": 42, "now": true}
            ]),
            "{format:?}"
        );
    }
}

#[tokio::test]
async fn a_column_that_the_table_gets_later_is_a_new_column() {
    let note = json!({"type": "string", "optional": true, "field": "note"});
    let sql = "CREATE STREAMING TABLE t;
        CREATE FLOW f AS AUTO CDC INTO t
        FROM STREAM read_files('in/*.json', format => 'json', envelope => 'debezium')
        KEYS (id) APPLY AS DELETE WHEN _op = 'd' SEQUENCE BY _position
        COLUMNS * EXCEPT (_op, _ts_ms, _position, _source, _columns, _rescued_data);";
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("in/1.json", &[with_schema(4, &json!({"id": 1, "price": "AQ=="}), &[])]);
        bench.succeed(sql).await;
        let wider = json!({"id": 2, "price": "Ag==", "note": "n"});
        bench.file("in/2.json", &[with_schema(5, &wider, std::slice::from_ref(&note))]);
        bench.succeed(sql).await;
        let rows = bench.rows("SELECT id, CAST(price AS VARCHAR) AS price, note FROM t ORDER BY id").await;
        let expected =
            json!([{"id": 1, "price": "0.01", "note": null}, {"id": 2, "price": "0.02", "note": "n"}]);
        assert_eq!(as_json(&rows), expected, "{format:?}");
    }
}

#[tokio::test]
async fn columns_are_found_in_records_over_several_lines_and_no_key_is_rounded() {
    let bench = Bench::new(Format::Delta);
    // BIGINT UNSIGNED: as a float both keys would be one.
    let record = |id: u64, lsn: u64| {
        let record = postgres("c", lsn, &Json::Null, &json!({"id": id, "name": lsn.to_string()}));
        serde_json::to_string_pretty(&record).unwrap()
    };
    bench.raw_file("in/1.json", format!("{}\n{}", record(u64::MAX, 10), record(u64::MAX - 614, 11)));
    let clauses = format!("SEQUENCE BY _position {EXCEPT}");
    bench.succeed(&pipeline("multiLine => true, rescuedDataColumn => ''", &clauses)).await;
    let rows = bench.rows("SELECT CAST(id AS STRING) AS id, name FROM t ORDER BY name").await;
    let row = |id: u64, name: &str| json!({"id": id.to_string(), "name": name});
    assert_eq!(json!(rows), json!([row(u64::MAX, "10"), row(u64::MAX - 614, "11")]));
}
