//! `query` as of a moment: what a history held, and as it was believed then.

use std::sync::Arc;

use arrow_array::{ArrayRef, Decimal128Array, Int64Array, RecordBatch, StringArray};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use strandline_runtime::ErrorKind;
use strandline_table_formats::{CommitStamp, StateVersion, TableChange, TableDefinition, WriterId};

use crate::pipeline::{Bench, FORMATS, Format};

/// A table with these rows; a column whose name begins with `__` and that has text becomes a timestamp.
async fn table(bench: &Bench, name: &str, columns: Vec<(&str, ArrayRef)>) {
    let moment = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let columns: Vec<(&str, ArrayRef)> = columns
        .into_iter()
        .map(|(name, column)| match column.data_type() {
            DataType::Utf8 if name.starts_with("__") => (name, cast(&column, &moment).unwrap()),
            _ => (name, column),
        })
        .collect();
    let fields = columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let rows =
        RecordBatch::try_new(Arc::clone(&schema), columns.into_iter().map(|(_, column)| column).collect())
            .unwrap();
    let definition = TableDefinition { schema, keys: vec![], properties: [].into(), comment: None };
    let table = bench.storage.format.create(name, &definition).await.unwrap();
    let snapshot = table.snapshot().await.unwrap();
    let stamp = CommitStamp {
        writer: WriterId { pipeline: "test".into(), flow: name.into(), incarnation: 0 },
        batch: 1,
        state: StateVersion(0),
        epoch: 0,
    };
    let change = TableChange::Append(stream::iter([Ok(rows)]).boxed());
    let outcome = table.commit(snapshot.as_ref(), change, &stamp).await.unwrap();
    assert!(matches!(outcome, strandline_table_formats::CommitOutcome::Committed(_)), "{outcome:?}");
}

fn text(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn day(month_and_day: &str) -> Option<String> {
    (month_and_day != "-").then(|| {
        let year = if month_and_day == "06-01" { 2024 } else { 2025 };
        format!("{year}-{month_and_day}T00:00:00Z")
    })
}

/// Rows `(value, start, end, system start, system end)` as month and day, `-` for an open end.
async fn beliefs(bench: &Bench, name: &str, rows: &[[&str; 5]]) {
    let column =
        |n: usize| -> ArrayRef { Arc::new(rows.iter().map(|row| day(row[n])).collect::<StringArray>()) };
    let columns = vec![
        ("reportable", text(&rows.iter().map(|row| Some(row[0])).collect::<Vec<_>>())),
        ("__START_AT", column(1)),
        ("__END_AT", column(2)),
        ("__SYSTEM_START_AT", column(3)),
        ("__SYSTEM_END_AT", column(4)),
    ];
    table(bench, name, columns).await;
}

/// The worked table of a reference datum: on file since June, changed on 1 January, learned on the 5th, corrected on the 8th.
const ACME: [[&str; 5]; 4] = [
    ["Y0", "06-01", "-", "06-01", "01-05"],
    ["Y0", "06-01", "01-01", "01-05", "-"],
    ["Y", "01-01", "-", "01-05", "01-08"],
    ["N", "01-01", "-", "01-08", "-"],
];

async fn values(bench: &Bench, from: &str) -> Vec<String> {
    let rows = bench.rows(&format!("SELECT reportable AS v FROM {from} ORDER BY v")).await;
    rows.into_iter().map(|row| row["v"].as_str().unwrap().to_owned()).collect()
}

async fn refusal(bench: &Bench, sql: &str) -> String {
    let error = strandline_runtime::query(&bench.storage, sql).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Definition, "{sql}: {error:?}");
    format!("{} | {}", error.full_text(), error.help_text().unwrap_or_default())
}

#[tokio::test]
async fn c_63_c_67_what_was_shown_and_what_is_true() {
    for format in FORMATS {
        let bench = Bench::new(format);
        beliefs(&bench, "acme", &ACME).await;
        let cases: [(&str, &[&str]); 15] = [
            ("as_of('acme', '2025-01-03', '2025-01-03')", &["Y0"]),
            ("as_of('acme', '2025-01-03', '2025-01-06')", &["Y"]),
            ("as_of('acme', '2025-01-03', '2025-01-09')", &["N"]),
            ("as_of('acme', '2024-12-31', '2025-01-09')", &["Y0"]),
            ("as_of('acme', '2024-01-01', '2025-01-09')", &[]),
            ("as_of('acme', '2025-01-03', '2024-01-01')", &[]),
            // Both axes are half-open: at the boundary the later one is the answer.
            ("as_of('acme', '2025-01-01', '2025-01-08')", &["N"]),
            ("as_of('acme', '2025-01-01', '2025-01-05')", &["Y"]),
            ("as_of('acme', TIMESTAMP '2025-01-01 00:00:00', '2025-01-07T23:59:59.999999Z')", &["Y"]),
            ("as_of('acme', now(), now())", &["N"]),
            ("as_of('acme', NULL, '2025-01-06')", &["Y", "Y0"]),
            ("as_of('acme', '2025-01-03', NULL)", &["N", "Y", "Y0"]),
            ("as_of_system('acme', '2025-01-06')", &["Y", "Y0"]),
            ("as_of_business('acme', '2025-01-03')", &["N", "Y", "Y0"]),
            ("as_of('acme', NULL, NULL)", &["N", "Y", "Y0", "Y0"]),
        ];
        for (from, expected) in cases {
            assert_eq!(values(&bench, from).await, expected, "{format:?}: {from}");
        }
        assert_eq!(values(&bench, "acme_current").await, ["N"]);
        assert_eq!(values(&bench, "acme_believed").await, ["N", "Y0"]);
    }
}

#[tokio::test]
async fn arguments_may_be_given_by_name_and_the_table_as_a_name() {
    let bench = Bench::new(FORMATS[0]);
    beliefs(&bench, "acme", &ACME).await;
    beliefs(&bench, "Odd name", &ACME[..1]).await;
    for (from, expected) in [
        ("as_of(acme, business => '2025-01-03', system => '2025-01-06')", &["Y"][..]),
        ("as_of(acme, system => '2025-01-06', business => '2025-01-03')", &["Y"]),
        ("AS_OF(acme, SYSTEM => '2025-01-06')", &["Y", "Y0"]),
        ("as_of(acme, business => '2025-01-03')", &["N", "Y", "Y0"]),
        ("as_of(\"table\" => acme, business => '2025-01-03', system => '2025-01-06')", &["Y"]),
        ("as_of_system(acme, system => '2025-01-06')", &["Y", "Y0"]),
        ("as_of(\"Odd name\", NULL, '2024-07-01')", &["Y0"]),
        ("(SELECT * FROM as_of(acme, '2025-01-03', system => '2025-01-06')) AS inner_query", &["Y"]),
    ] {
        assert_eq!(values(&bench, from).await, expected, "{from}");
    }
    for (from, said) in [
        ("as_of(acme, sytem => '2025-01-06')", "sytem"),
        ("as_of(acme, '2025-01-03', business => '2025-01-03')", "twice"),
        ("as_of(acme, system => '2025-01-06', '2025-01-03')", "without a name"),
        ("as_of(system => '2025-01-06')", "as_of(table, business, system)"),
    ] {
        let found = refusal(&bench, &format!("SELECT * FROM {from}")).await;
        assert!(found.contains(said), "{from}: {found}");
    }
}

#[tokio::test]
async fn two_moments_can_be_compared_in_one_query() {
    let bench = Bench::new(FORMATS[1]);
    beliefs(&bench, "acme", &ACME).await;
    let sql = "SELECT then.reportable AS shown, now.reportable AS true_now
               FROM as_of(acme, '2025-01-03', '2025-01-06') AS then, as_of(acme, '2025-01-03', '2025-01-09') AS now";
    assert_eq!(json!(bench.rows(sql).await), json!([{"shown": "Y", "true_now": "N"}]));
}

const HISTORY: &str = "
    CREATE STREAMING TABLE h;
    CREATE FLOW h AS AUTO CDC INTO h FROM STREAM read_files('in', format => 'json', schema => 'k STRING, v STRING, seq BIGINT')
      KEYS (k) SEQUENCE BY seq COLUMNS (k, v) STORED AS SCD TYPE 2;
    CREATE STREAMING TABLE now;
    CREATE FLOW now AS AUTO CDC INTO now FROM STREAM read_files('in', format => 'json', schema => 'k STRING, v STRING, seq BIGINT')
      KEYS (k) SEQUENCE BY seq;";

#[tokio::test]
async fn a_type_2_table_is_read_as_of_business_time() {
    for format in FORMATS {
        let bench = Bench::new(format);
        let row = |v: &str, seq: i64| json!({"k": "k", "v": v, "seq": seq});
        bench.file("in/1.json", &[row("free", 10), row("plus", 20), row("pro", 30)]);
        bench.succeed(HISTORY).await;
        let at = async |from: &str| -> Vec<Value> {
            let rows = bench.rows(&format!("SELECT v FROM {from} ORDER BY v")).await;
            rows.into_iter().map(|row| row["v"].clone()).collect()
        };
        assert!(at("as_of(h, 9)").await.is_empty());
        assert_eq!(at("as_of(h, 10)").await, ["free"]);
        assert_eq!(at("as_of('h', '20')").await, ["plus"]);
        assert_eq!(at("as_of_business(h, 29)").await, ["plus"]);
        assert_eq!(at("as_of(h, business => 10 + 20)").await, ["pro"], "a constant expression is a literal");
        assert_eq!(at("h_current").await, ["pro"]);
        for (from, said) in [
            ("as_of(h, 1, 2)", "no system time"),
            ("as_of_system(h, 1)", "no system time"),
            ("as_of(now, 1)", "no history"),
            ("as_of(nope, 1)", "tables are h, now"),
            ("as_of(h, 'soon')", "Int64"),
            ("as_of(h, 10.5)", "Int64"),
            ("as_of(h)", "as_of(table, business, system)"),
            ("as_of(h, 1, NULL, NULL)", "as_of(table, business, system)"),
            ("as_of(1, 1)", "as_of(table, business, system)"),
            ("h_believed", "h_believed"),
            ("now_current", "now_current"),
        ] {
            let found = refusal(&bench, &format!("SELECT * FROM {from}")).await;
            assert!(found.contains(said), "{from}: {found}");
        }
    }
}

#[tokio::test]
async fn a_table_keeps_its_name_when_a_view_would_have_it_too() {
    let bench = Bench::new(FORMATS[0]);
    beliefs(&bench, "acme", &ACME).await;
    beliefs(&bench, "acme_current", &ACME[..1]).await;
    assert_eq!(values(&bench, "acme_current").await, ["Y0"]);
    assert!(values(&bench, "acme_current_current").await.is_empty(), "its own history has no current row");
    let found = refusal(&bench, "SELECT * FROM as_of(acme, '2025-01-03')").await;
    assert!(found.contains("two moments"), "{found}");
}

#[tokio::test]
async fn c_29_struct_sequences_take_struct_literals() {
    for format in FORMATS {
        let bench = Bench::new(format);
        let part = |values: Vec<Option<i64>>| -> ArrayRef { Arc::new(Int64Array::from(values)) };
        let fields = vec![Field::new("ts", DataType::Int64, true), Field::new("lsn", DataType::Int64, true)];
        let column = |ts: [Option<i64>; 3], lsn: [Option<i64>; 3]| -> ArrayRef {
            let present: Vec<bool> = ts.iter().map(Option::is_some).collect();
            let parts = vec![part(ts.to_vec()), part(lsn.to_vec())];
            Arc::new(arrow_array::StructArray::new(fields.clone().into(), parts, Some(present.into())))
        };
        let columns = vec![
            ("v", text(&[Some("a"), Some("b"), Some("c")])),
            ("__START_AT", column([Some(1), Some(1), Some(2)], [Some(1), Some(5), Some(0)])),
            ("__END_AT", column([Some(1), Some(2), None], [Some(5), Some(0), None])),
        ];
        table(&bench, "s", columns).await;
        for (moment, expected) in [
            ("struct(1, 0)", None),
            ("struct(1, 1)", Some("a")),
            ("struct(1, 4)", Some("a")),
            ("struct(1, 5)", Some("b")),
            ("named_struct('ts', 1, 'lsn', 999)", Some("b")),
            ("struct('2', '0')", Some("c")),
            ("struct(3, NULL)", Some("c")),
        ] {
            let rows = bench.rows(&format!("SELECT v FROM as_of(s, {moment})")).await;
            let found: Vec<&str> = rows.iter().map(|row| row["v"].as_str().unwrap()).collect();
            assert_eq!(found, Vec::from_iter(expected), "{format:?}: {moment}");
        }
        let found = refusal(&bench, "SELECT * FROM as_of(s, 1)").await;
        assert!(found.contains("struct(ts, lsn)"), "{found}");
    }
}

#[tokio::test]
async fn a_number_with_more_digits_than_the_column_has_is_refused_in_quotes_too() {
    let bench = Bench::new(Format::Memory);
    let price = |values: &[Option<i128>]| -> ArrayRef {
        let values = Decimal128Array::from(values.to_vec());
        Arc::new(values.with_precision_and_scale(10, 2).unwrap())
    };
    let columns = vec![
        ("v", text(&[Some("old"), Some("new")])),
        ("__START_AT", price(&[Some(100), Some(250)])),
        ("__END_AT", price(&[Some(250), None])),
    ];
    table(&bench, "h", columns).await;
    for (moment, value) in [("'2.49'", "old"), ("'2.500'", "new"), ("2.5", "new")] {
        let rows = bench.rows(&format!("SELECT v FROM as_of(h, {moment})")).await;
        assert_eq!(json!(rows), json!([{"v": value}]), "{moment}");
    }
    for finer in ["2.499", "'2.499'"] {
        let found = refusal(&bench, &format!("SELECT v FROM as_of(h, {finer})")).await;
        assert!(found.contains("Decimal128(10, 2)") && found.contains("less precision"), "{found}");
    }
}
