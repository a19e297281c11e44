//! One snapshot flow and change flows on one target: one result, whichever comes first.

use std::{fs, sync::Arc};

use object_store::memory::InMemory;
use serde_json::{Value, json};
use strandline_testkit::fault::{Fault, FaultStore, Rule};

use crate::pipeline::{Bench, FORMATS, Format};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    SnapshotFirst,
    FeedFirst,
    Any,
}

const ORDERS: [Order; 3] = [Order::SnapshotFirst, Order::FeedFirst, Order::Any];

fn full(clauses: &str, tail: &str) -> String {
    let export = "read_files('snap/*.json', format => 'json', schema => 'id STRING, tier STRING, v BIGINT')";
    format!(
        "CREATE FLOW full {clauses} AS AUTO CDC INTO t
         FROM SNAPSHOT (SELECT id, tier FROM {export} WHERE v = (SELECT v FROM current_snapshot_version()) AND id <> '')
         WITH VERSION (SELECT min(v) AS v FROM {export}
                       WHERE v > (SELECT coalesce(max(v), 0) FROM last_snapshot_version()) HAVING min(v) IS NOT NULL)
         {tail};"
    )
}

fn live(clauses: &str, tail: &str) -> String {
    format!(
        "CREATE FLOW live {clauses} AS AUTO CDC INTO t
         FROM STREAM read_files('in/*.json', format => 'json', maxFilesPerTrigger => 1, schema => 'id STRING, seq BIGINT, op STRING, tier STRING')
         {tail};"
    )
}

const LIVE: &str = "KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (seq, op)";

const HEAD: &str = "SET pipelines.maxFlowRetryAttempts = 0; CREATE STREAMING TABLE t;";

fn pipeline(order: Order) -> String {
    let after = |flow: &str, first: Order| {
        if order == first { format!("DEPENDS ON ({flow})") } else { String::new() }
    };
    let full = full(&after("live", Order::FeedFirst), "KEYS (id)");
    let live = live(&after("full", Order::SnapshotFirst), LIVE);
    format!("{HEAD} {full} {live}")
}

/// The events of the worked table, c8 last.
fn events() -> Vec<Value> {
    let event =
        |id: &str, seq: i64, op: &str, tier: &str| json!({"id": id, "seq": seq, "op": op, "tier": tier});
    vec![
        event("c1", 90, "U", "basic"),
        event("c2", 120, "U", "gold"),
        event("c3", 95, "U", "basic"),
        event("c4", 110, "U", "basic"),
        event("c5", 130, "D", ""),
        event("c6", 80, "U", "gold"),
        event("c6", 140, "U", "gold"),
        event("c7", 99, "D", ""),
        event("c8", 95, "U", "late"),
    ]
}

fn snapshot(bench: &Bench, version: i64, rows: &[(&str, &str)]) {
    let row = |(id, tier): &(&str, &str)| json!({"id": id, "tier": tier, "v": version});
    let lines: Vec<Value> = [("", "")].iter().chain(rows).map(row).collect();
    bench.file(&format!("snap/{version}.json"), &lines);
}

fn worked(bench: &Bench) {
    snapshot(bench, 100, &[("c1", "gold"), ("c2", "basic"), ("c5", "basic")]);
}

fn folders(bench: &Bench) {
    for folder in ["snap", "in"] {
        fs::create_dir_all(bench.path().join(folder)).unwrap();
    }
}

async fn shown(bench: &Bench) -> Value {
    json!(bench.rows("SELECT id, tier FROM t ORDER BY id").await)
}

fn expected() -> Value {
    json!([
        {"id": "c1", "tier": "gold"}, {"id": "c2", "tier": "gold"},
        {"id": "c4", "tier": "basic"}, {"id": "c6", "tier": "gold"},
    ])
}

#[tokio::test]
async fn r24_c59_c60_both_orders_of_the_flows_in_one_update_give_one_table() {
    for format in FORMATS {
        for order in ORDERS {
            for turned in [0, 4, 7] {
                let bench = Bench::new(format);
                worked(&bench);
                let mut events = events();
                events.rotate_left(turned);
                for (number, event) in events.iter().enumerate() {
                    bench.file(&format!("in/{number}.json"), std::slice::from_ref(event));
                }
                let report = bench.succeed(&pipeline(order)).await;
                assert_eq!(shown(&bench).await, expected(), "{format:?} {order:?} {turned}: {report:#?}");
                let version = bench.version("t").await;
                bench.succeed(&pipeline(order)).await;
                assert_eq!(bench.version("t").await, version, "nothing is new");
            }
        }
    }
}

#[tokio::test]
async fn r24_the_snapshot_may_come_updates_before_or_after_the_events() {
    for format in FORMATS {
        // After so many of the events.
        for at in [0, 4, 9] {
            let bench = Bench::new(format);
            folders(&bench);
            for (number, event) in events().iter().enumerate() {
                if number == at {
                    worked(&bench);
                    bench.succeed(&pipeline(Order::Any)).await;
                }
                bench.file(&format!("in/{number}.json"), std::slice::from_ref(event));
                if number % 3 == 0 {
                    bench.succeed(&pipeline(Order::Any)).await;
                }
            }
            worked(&bench);
            bench.succeed(&pipeline(Order::Any)).await;
            assert_eq!(shown(&bench).await, expected(), "{format:?} {at}");
        }
    }
}

#[tokio::test]
async fn c61_c62_at_an_equal_version_the_change_wins_and_the_second_snapshot_rules_the_rest() {
    for format in FORMATS {
        for order in ORDERS {
            let bench = Bench::new(format);
            worked(&bench);
            snapshot(&bench, 200, &[("c1", "silver"), ("c9", "new"), ("c2", "silver")]);
            let event =
                |id: &str, seq: i64, op: &str| json!({"id": id, "seq": seq, "op": op, "tier": "event"});
            bench.file(
                "in/1.json",
                &[event("c1", 200, "U"), event("c9", 200, "D"), event("c2", 150, "U"), event("c5", 150, "U")],
            );
            bench.succeed(&pipeline(order)).await;
            assert_eq!(
                shown(&bench).await,
                json!([{"id": "c1", "tier": "event"}, {"id": "c2", "tier": "silver"}]),
                "{format:?} {order:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_flow_may_join_a_target_later() {
    for format in FORMATS {
        for snapshot_first in [true, false] {
            let bench = Bench::new(format);
            worked(&bench);
            for (number, event) in events().iter().enumerate() {
                bench.file(&format!("in/{number}.json"), std::slice::from_ref(event));
            }
            // A change flow that was alone keeps its sequences where a second flow can't: it has dropped the column.
            let first = if snapshot_first { full("", "KEYS (id)") } else { live("", LIVE) };
            bench.succeed(&format!("{HEAD} {first}")).await;
            bench.succeed(&pipeline(Order::Any)).await;
            assert_eq!(shown(&bench).await, expected(), "{format:?} {snapshot_first}");
        }
    }
}

#[tokio::test]
async fn g11_keys_of_the_two_kinds_may_differ_in_case() {
    for format in FORMATS {
        let bench = Bench::new(format);
        worked(&bench);
        for (number, event) in events().iter().enumerate() {
            bench.file(&format!("in/{number}.json"), std::slice::from_ref(event));
        }
        let upper = full("", "KEYS (ID)").replace("SELECT id, tier FROM", "SELECT id AS `ID`, tier FROM");
        let sql = format!("{HEAD} {upper} {}", live("", LIVE));
        bench.succeed(&sql).await;
        assert_eq!(shown(&bench).await, expected(), "{format:?}");
        // Once more on the target that exists, with news of both.
        snapshot(&bench, 200, &[("c1", "silver")]);
        bench.file("in/99.json", &[json!({"id": "c2", "seq": 210, "op": "U", "tier": "back"})]);
        bench.succeed(&sql).await;
        assert_eq!(
            shown(&bench).await,
            json!([{"id": "c1", "tier": "silver"}, {"id": "c2", "tier": "back"}])
        );
    }
}

#[tokio::test]
async fn g10_g11_what_can_not_share_a_target_is_refused_by_name_before_anything_runs() {
    let scd2 = |keys: &str| format!("{keys} STORED AS SCD TYPE 2");
    let checked = "SET pipelines.maxFlowRetryAttempts = 0; CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (tier <> ''));";
    let plain = (full("", "KEYS (id)"), live("", LIVE));
    let two_keys = LIVE.replace("KEYS (id)", "KEYS (id, tier)");
    let cases = [
        ("INTEROP_REQUIRES_SCD1", HEAD, full("", &scd2("KEYS (id)")), live("", &scd2(LIVE))),
        (
            "INTEROP_IGNORE_NULL_UNSUPPORTED",
            HEAD,
            plain.0.clone(),
            live("", &format!("{LIVE} IGNORE NULL UPDATES")),
        ),
        ("INTEROP_KEYS_MISMATCH", HEAD, plain.0.clone(), live("", &two_keys)),
        ("INTEROP_KEYS_MISMATCH", HEAD, full("", "KEYS (tier, id)"), live("", &two_keys)),
        (
            "INTEROP_SEQUENCE_TYPE_MISMATCH",
            HEAD,
            plain.0.clone(),
            live("", &LIVE.replace("SEQUENCE BY seq", "SEQUENCE BY CAST(seq AS INT)")),
        ),
        ("INTEROP_EXPECTATIONS_NOT_SUPPORTED", checked, plain.0.clone(), plain.1.clone()),
        (
            "INTEROP_COLUMNS_MISMATCH",
            HEAD,
            plain.0.clone(),
            live("", &LIVE.replace("EXCEPT (seq, op)", "EXCEPT (op)")),
        ),
        ("SEVERAL_SNAPSHOT_FLOWS", HEAD, plain.0.clone(), plain.0.replace("FLOW full", "FLOW second")),
    ];
    for (name, head, full, live) in cases {
        for sql in [format!("{head} {full} {live}"), format!("{head} {live} {full}")] {
            let bench = Bench::new(Format::Delta);
            worked(&bench);
            bench.file("in/1.json", &events());
            let errors = bench.run(&sql).await.expect_err(name);
            let text: String = errors.iter().map(strandline_runtime::Error::full_text).collect();
            assert!(text.contains(name), "{name}: {text}");
            assert!(bench.storage.format.open("t").await.unwrap().is_none(), "nothing ran");
        }
    }
}

#[tokio::test]
async fn t04_killing_the_process_changes_nothing_of_a_hybrid_target() {
    let killed = |rule: Option<Rule>| {
        let store = FaultStore::new(InMemory::new());
        let bench = Bench::over(Format::Delta, Arc::new(store.clone()));
        worked(&bench);
        snapshot(&bench, 105, &[("c1", "gold"), ("c2", "basic"), ("c5", "basic")]);
        for (number, events) in events().chunks(3).enumerate() {
            bench.file(&format!("in/{number}.json"), events);
        }
        if let Some(rule) = rule {
            store.faults().add(rule);
        }
        (bench, store)
    };
    for order in [Order::SnapshotFirst, Order::FeedFirst] {
        let (undisturbed, store) = killed(None);
        undisturbed.succeed(&pipeline(order)).await;
        assert_eq!(shown(&undisturbed).await, expected());
        let operations = store.faults().count();
        for (offset, fault) in [(1, Fault::Before), (3, Fault::After)] {
            for n in (offset..=operations).step_by(if cfg!(slow) { 1 } else { 5 }) {
                let (bench, store) = killed(Some(Rule::nth(n, fault).and_dies()));
                drop(bench.run(&pipeline(order)).await);
                store.faults().revive();
                bench.succeed(&pipeline(order)).await;
                assert_eq!(
                    shown(&bench).await,
                    expected(),
                    "killed {fault:?} at {n}: {:?}",
                    store.faults().trace()
                );
            }
        }
    }
}
