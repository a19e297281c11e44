//! Several change flows of one target: a seed and a live feed, each with columns of its own, in either order.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path as StorePath};
use serde_json::{Value as Json, json};
use strandline_runtime::{ErrorKind, FlowStatus};
use strandline_testkit::{
    fault::{Fault, FaultStore, Rule},
    reference::{self, Event, Op, Row, Value},
};

use crate::pipeline::{Bench, FORMATS, Format, JsonRow};

/// A pipeline whose target has two flows; `order` says which comes first.
fn pipeline(order: Order, stored_as: &str) -> String {
    let after = |flow: &str, first: Order| {
        if order == first { format!("DEPENDS ON ({flow})") } else { String::new() }
    };
    format!(
        "SET pipelines.maxFlowRetryAttempts = 0;
         CREATE STREAMING TABLE legacy AS
           SELECT * FROM STREAM read_files('legacy/*.json', format => 'json', schema => 'k STRING, since BIGINT, v BIGINT, w STRING');
         CREATE STREAMING TABLE t;
         CREATE FLOW seed {} AS AUTO CDC ONCE INTO t FROM (SELECT k, since AS seq, v, w FROM legacy) KEYS (k)
           SEQUENCE BY seq COLUMNS * EXCEPT (seq) STORED AS {stored_as};
         CREATE FLOW live {} AS AUTO CDC INTO t
           FROM STREAM read_files('in/*.json', format => 'json', maxFilesPerTrigger => 1, schema => 'k STRING, seq BIGINT, op STRING, v BIGINT, x BIGINT')
           KEYS (k) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS {stored_as};",
        after("live", Order::LiveFirst),
        after("seed", Order::SeedFirst),
    )
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    SeedFirst,
    LiveFirst,
    Any,
}

const ORDERS: [Order; 3] = [Order::SeedFirst, Order::LiveFirst, Order::Any];

fn legacy() -> Vec<Json> {
    let row = |k: &str, since: i64, v: i64, w: Option<&str>| json!({"k": k, "since": since, "v": v, "w": w});
    vec![
        row("a", 1, 1, Some("old")),
        row("a", 4, 2, Some("older")),
        row("b", 2, 1, None),
        row("c", 9, 7, Some("late")),
        row("d", 3, 3, Some("gone")),
    ]
}

fn live() -> Vec<Vec<Json>> {
    let row = |k: &str, seq: i64, op: &str, v: i64, x: Option<i64>| json!({"k": k, "seq": seq, "op": op, "v": v, "x": x});
    vec![
        vec![row("a", 6, "U", 3, Some(1)), row("b", 5, "U", 4, None), row("c", 7, "U", 5, Some(2))],
        vec![row("a", 2, "U", 8, Some(9)), row("d", 5, "D", 0, None), row("e", 1, "U", 1, Some(1))],
        vec![row("d", 8, "U", 6, Some(3)), row("e", 2, "U", 1, Some(1))],
    ]
}

/// What the model makes of both: a flow authors the columns that it has.
fn events() -> Vec<Event> {
    let event = |row: &Json, seq: &str, columns: [&str; 2]| {
        let value = |name: &str| match &row[name] {
            Json::Null => Value::Null,
            Json::Number(number) => Value::Int(number.as_i64().unwrap()),
            other => Value::Text(other.as_str().unwrap().to_owned()),
        };
        Event {
            key: vec![value("k")],
            seq: value(seq),
            op: if row["op"] == json!("D") { Op::Delete } else { Op::Upsert },
            values: columns.iter().map(|name| ((*name).to_owned(), value(name))).collect(),
            authored: Some(columns.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>()),
            sys: None,
        }
    };
    let seeded = legacy();
    let seeded = seeded.iter().map(|row| event(row, "since", ["v", "w"]));
    let fed = live().concat();
    seeded.chain(fed.iter().map(|row| event(row, "seq", ["v", "x"]))).collect()
}

fn expected(stored_as: &str) -> Vec<JsonRow> {
    let rows: Vec<Row> = match stored_as {
        "SCD TYPE 1" => reference::scd1(&["k"], &events()),
        _ => reference::scd2(&["k"], &events(), None),
    };
    let json = |value: Value| match value {
        Value::Null => Json::Null,
        Value::Int(number) => json!(number),
        Value::Text(text) => json!(text),
        other => panic!("{other:?} is not met here"),
    };
    sorted(rows.into_iter().map(|row| row.into_iter().map(|(name, value)| (name, json(value))).collect()))
}

fn sorted(rows: impl IntoIterator<Item = JsonRow>) -> Vec<JsonRow> {
    let mut rows: Vec<JsonRow> = rows.into_iter().collect();
    rows.sort_by_key(|row| json!(row).to_string());
    rows
}

async fn target(bench: &Bench) -> Vec<JsonRow> {
    sorted(bench.rows("SELECT * FROM t").await)
}

const SHAPES: [&str; 2] = ["SCD TYPE 1", "SCD TYPE 2"];

#[tokio::test]
async fn a_seed_and_a_live_feed_make_one_table_in_either_order() {
    for format in FORMATS {
        for stored_as in SHAPES {
            for order in ORDERS {
                let bench = Bench::new(format);
                bench.file("legacy/1.json", &legacy());
                // The feed goes on in a later update, when the seed is idle.
                let fed = live();
                let (first, rest) = fed.split_at(2);
                for (number, rows) in first.iter().enumerate() {
                    bench.file(&format!("in/{number}.json"), rows);
                }
                bench.succeed(&pipeline(order, stored_as)).await;
                bench.file("in/9.json", &rest.concat());
                let report = bench.succeed(&pipeline(order, stored_as)).await;
                let status: BTreeMap<_, _> =
                    report.flows.iter().map(|flow| (flow.flow.as_str(), flow.status)).collect();
                assert_eq!(status["seed"], FlowStatus::Idle);
                assert_eq!(target(&bench).await, expected(stored_as), "{format:?} {stored_as} {order:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_restart_between_or_within_them_changes_nothing() {
    for stored_as in SHAPES {
        for order in ORDERS {
            for n in (3..150).step_by(if cfg!(slow) { 1 } else { 13 }) {
                let store = FaultStore::new(InMemory::new());
                let bench = Bench::over(Format::Delta, Arc::new(store.clone()));
                bench.file("legacy/1.json", &legacy());
                for (number, rows) in live().iter().enumerate() {
                    bench.file(&format!("in/{number}.json"), rows);
                }
                store.faults().add(Rule::nth(n, Fault::After).and_dies());
                drop(bench.run(&pipeline(order, stored_as)).await);
                store.faults().revive();
                bench.succeed(&pipeline(order, stored_as)).await;
                assert_eq!(target(&bench).await, expected(stored_as), "{stored_as} {order:?}, killed at {n}");
            }
        }
    }
}

/// Two flows that differ in one clause, the first with `changes`, the second with `other`.
fn flows(clauses: [&str; 2]) -> String {
    let [first, second] = clauses;
    let source =
        "FROM STREAM read_files('in/*.json', format => 'json', schema => 'k STRING, seq BIGINT, v BIGINT')";
    let narrow = "FROM (SELECT k, CAST(seq AS INT) AS seq, v FROM STREAM read_files('in/*.json', format => 'json', schema => 'k STRING, seq BIGINT, v BIGINT'))";
    let typed = "FROM (SELECT CAST(k AS BIGINT) AS k, seq, CAST(v AS STRING) AS v FROM STREAM read_files('in/*.json', format => 'json', schema => 'k STRING, seq BIGINT, v BIGINT'))";
    let flow = |name: &str, clause: &str| {
        let (from, rest) = match clause {
            "narrow" => (narrow, "KEYS (k) SEQUENCE BY seq STORED AS SCD TYPE 2"),
            "typed" => (typed, "KEYS (k) SEQUENCE BY seq STORED AS SCD TYPE 2"),
            other => (source, other),
        };
        format!("CREATE FLOW {name} AS AUTO CDC INTO t {from} {rest};")
    };
    format!("CREATE STREAMING TABLE t; {} {}", flow("one", first), flow("two", second))
}

#[tokio::test]
async fn g09_flows_that_disagree_are_refused_with_both_values_before_anything_runs() {
    let plain = "KEYS (k) SEQUENCE BY seq STORED AS SCD TYPE 2";
    let cases: [(&str, &[&str]); 6] = [
        ("KEYS (v) SEQUENCE BY seq STORED AS SCD TYPE 2", &["(k)", "(v)"]),
        ("KEYS (k) SEQUENCE BY seq STORED AS SCD TYPE 1", &["SCD TYPE 2", "SCD TYPE 1"]),
        ("KEYS (k) SEQUENCE BY seq STORED AS SCD TYPE 2 TRACK HISTORY ON (v)", &["no such clause", "(v)"]),
        ("narrow", &["SEQUENCE BY", "Int64", "Int32"]),
        ("typed", &["keys", "k Utf8", "k Int64"]),
        ("KEYS (k) SEQUENCE BY CAST(seq AS STRING) STORED AS SCD TYPE 2", &["SEQUENCE BY", "Int64", "Utf8"]),
    ];
    for (other, parts) in cases {
        for swapped in [false, true] {
            let bench = Bench::new(Format::Delta);
            bench.file("in/1.json", &[json!({"k": "1", "seq": 1, "v": 1})]);
            let sql = flows(if swapped { [other, plain] } else { [plain, other] });
            let errors = bench.run(&sql).await.unwrap_err();
            let text: Vec<String> = errors.iter().map(strandline_runtime::Error::full_text).collect();
            let text = text.join("; ");
            assert!(errors.iter().all(|error| error.kind() == ErrorKind::Definition), "{text}");
            for part in parts.iter().chain(&["one", "two", "t"]) {
                assert!(text.contains(part), "`{part}` is not in: {text}");
            }
            assert!(bench.storage.format.open("t").await.unwrap().is_none(), "nothing ran");
        }
    }
}

#[tokio::test]
async fn flows_of_one_target_do_not_both_create_it() {
    let plain = "KEYS (k) SEQUENCE BY seq STORED AS SCD TYPE 1";
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("in/1.json", &[json!({"k": "1", "seq": 1, "v": 1}), json!({"k": "2", "seq": 1, "v": 1})]);
        bench.succeed(&flows([plain, plain])).await;
        let rows = bench.rows("SELECT k, __SEQUENCE_AT FROM t ORDER BY k").await;
        assert_eq!(json!(rows), json!([{"k": "1", "__SEQUENCE_AT": 1}, {"k": "2", "__SEQUENCE_AT": 1}]));
    }
}

#[tokio::test]
async fn a_target_that_is_gone_is_not_made_anew_by_another_flow_of_it() {
    let store = Arc::new(InMemory::new());
    let bench = Bench::over(Format::Delta, Arc::clone(&store) as Arc<dyn ObjectStore>);
    let flow = |name: &str| {
        format!(
            "CREATE FLOW {name} AS AUTO CDC INTO t FROM STREAM read_files('in/*.json', format => 'json',
             schema => 'k STRING, seq BIGINT, v BIGINT') KEYS (k) SEQUENCE BY seq STORED AS SCD TYPE 2;"
        )
    };
    bench.file("in/1.json", &[json!({"k": "1", "seq": 1, "v": 1})]);
    let one = format!("CREATE STREAMING TABLE t; {}", flow("one"));
    bench.succeed(&one).await;
    let gone: Vec<_> = store.list(Some(&StorePath::from("tables"))).try_collect().await.unwrap();
    for file in gone {
        store.delete(&file.location).await.unwrap();
    }
    let report = bench.run(&format!("{one} {}", flow("two"))).await.unwrap();
    assert!(!report.is_success(), "{report:#?}");
    let told = format!("{report:?}");
    assert!(told.contains("the target is gone") && told.contains("flow that filled it"), "{told}");
    assert!(bench.storage.format.open("t").await.unwrap().is_none(), "no flow made it anew");
}
