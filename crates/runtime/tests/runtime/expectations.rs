//! What constraints do to rows: kept, dropped, or nothing of the batch; what is counted; where dropped rows go.

use serde_json::{Value as Json, json};
use std::sync::Arc;
use strandline_runtime::{ErrorKind, FlowReport, FlowStatus, UpdateReport, UpdateRequest};
use strandline_testkit::fault::{Fault, FaultStore, Rule};

use crate::pipeline::{Bench, FORMATS, Format};

const SCHEMA: &str =
    "schema => 'k STRING, seq BIGINT, op STRING, v BIGINT, w BIGINT', maxFilesPerTrigger => 1";

/// An append table `raw` with these constraints.
fn append(constraints: &str, properties: &str) -> String {
    format!(
        "SET pipelines.maxFlowRetryAttempts = 0;
         CREATE STREAMING TABLE raw ({constraints}) {properties} AS
           SELECT * FROM STREAM read_files('in/*.json', format => 'json', {SCHEMA});"
    )
}

/// A target `t` of changes with these constraints, and a flow with these clauses.
fn changes(constraints: &str, properties: &str, clauses: &str) -> String {
    format!(
        "SET pipelines.maxFlowRetryAttempts = 0;
         CREATE STREAMING TABLE t ({constraints}) {properties};
         CREATE FLOW f AS AUTO CDC INTO t FROM STREAM read_files('in/*.json', format => 'json', {SCHEMA})
         KEYS (k) {clauses};"
    )
}

const CLAUSES: &str = "APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS (k, v)";

#[expect(clippy::needless_pass_by_value, reason = "calls read as the JSON that they make")]
fn event(k: &str, seq: i64, op: &str, v: Json) -> Json {
    json!({ "k": k, "seq": seq, "op": op, "v": v })
}

fn only(report: &UpdateReport) -> &FlowReport {
    report.flows.first().unwrap()
}

/// Name, passed, failed of each constraint.
fn counts(report: &FlowReport) -> Vec<(String, u64, u64)> {
    let quality = report.data_quality.as_ref().unwrap();
    quality.expectations.iter().map(|c| (c.name.clone(), c.passed_records, c.failed_records)).collect()
}

fn dropped(report: &FlowReport) -> u64 {
    report.data_quality.as_ref().unwrap().dropped_records
}

#[tokio::test]
async fn r16_keep_and_drop_of_an_append_flow_are_counted() {
    let sql = append(
        "CONSTRAINT positive EXPECT (v > 0) ON VIOLATION DROP ROW, CONSTRAINT named EXPECT (k IS NOT NULL), CONSTRAINT small EXPECT (v < 10) ON VIOLATION DROP ROW",
        "",
    );
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file(
            "in/1.json",
            &[event("a", 1, "U", json!(1)), event("b", 2, "U", json!(-1)), json!({"v": 2})],
        );
        bench.file("in/2.json", &[event("c", 1, "U", json!(null)), event("d", 2, "U", json!(11))]);
        let report = bench.succeed(&sql).await;
        let flow = only(&report);
        let expected =
            [("positive".to_owned(), 3, 2), ("named".to_owned(), 4, 1), ("small".to_owned(), 3, 2)];
        assert_eq!(counts(flow), expected, "{format:?}: NULL violates both");
        assert_eq!((dropped(flow), flow.rows_in, flow.output_rows), (3, 5, Some(2)));
        assert_eq!(json!(bench.rows("SELECT v FROM raw ORDER BY v").await), json!([{"v": 1}, {"v": 2}]));
        // Nothing is new, so nothing is counted.
        let report = bench.succeed(&sql).await;
        assert_eq!(only(&report).data_quality, None);
    }
}

#[tokio::test]
async fn r16_fail_leaves_no_row_of_the_batch_and_others_go_on() {
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("in/1.json", &[event("a", 1, "U", json!(1))]);
        bench.file("in/2.json", &[event("b", 1, "U", json!(5)), event("c", 1, "U", json!(-5))]);
        bench.file("other/1.json", &[json!({"n": 1})]);
        let sql = append(
            "CONSTRAINT positive EXPECT (v > 0) ON VIOLATION FAIL UPDATE, CONSTRAINT small EXPECT (v < 10) ON VIOLATION DROP ROW",
            "",
        ) + "CREATE STREAMING TABLE other AS SELECT * FROM STREAM read_files('other', format => 'json', schema => 'n BIGINT');";
        let report = bench.run(&sql).await.unwrap();
        let flow = only(&report);
        assert_eq!(flow.status, FlowStatus::Failed);
        let reason = flow.reason.as_deref().unwrap();
        for part in ["EXPECTATION_VIOLATION", "positive", "v=-5", "1 of 2"] {
            assert!(reason.contains(part), "`{part}` is not in: {reason}");
        }
        assert_eq!(report.flows[1].status, FlowStatus::Completed);
        assert_eq!(counts(flow)[0], ("positive".to_owned(), 1, 0), "the batch that failed is not counted");
        assert_eq!(json!(bench.rows("SELECT k FROM raw").await), json!([{"k": "a"}]));
        // Mended, the whole batch comes.
        bench.file("in/2.json", &[event("b", 1, "U", json!(5)), event("c", 1, "U", json!(6))]);
        bench.succeed(&sql).await;
        assert_eq!(bench.rows("SELECT k FROM raw").await.len(), 3);
    }
}

#[tokio::test]
async fn a11_changes_are_judged_as_events_and_deletes_are_exempt() {
    let constraints = "CONSTRAINT positive EXPECT (v > 0) ON VIOLATION DROP ROW, CONSTRAINT keyed EXPECT (k IS NOT NULL) ON VIOLATION DROP ROW, CONSTRAINT small EXPECT (v < 10)";
    let sql = changes(constraints, "", &format!("{CLAUSES} STORED AS SCD TYPE 1"));
    for format in FORMATS {
        let bench = Bench::new(format);
        // The row that is dropped at 5 is newer than the one at 3, and not in the set.
        bench.file("in/1.json", &[event("a", 5, "U", json!(-1)), event("b", 1, "U", json!(1))]);
        bench.file(
            "in/2.json",
            &[event("a", 3, "U", json!(20)), json!({"seq": 9, "v": 3}), json!({"k": "x", "v": -3})],
        );
        bench.file("in/3.json", &[event("b", 2, "D", json!(-7))]);
        let report = bench.succeed(&sql).await;
        let flow = only(&report);
        assert_eq!(json!(bench.rows("SELECT k, v FROM t").await), json!([{"k": "a", "v": 20}]));
        let expected =
            [("positive".to_owned(), 3, 2), ("keyed".to_owned(), 4, 1), ("small".to_owned(), 4, 1)];
        assert_eq!(counts(flow), expected, "{format:?}");
        assert_eq!((dropped(flow), flow.rows_in, flow.output_rows), (3, 6, None), "2.14: no output rows");
    }
}

#[tokio::test]
async fn a11_law_1_stands_whatever_order_dropped_events_come_in() {
    let constraints = "CONSTRAINT odd EXPECT (v % 2 = 1) ON VIOLATION DROP ROW";
    let sql = changes(constraints, "", &format!("{CLAUSES} STORED AS SCD TYPE 2"));
    let events = [1, 2, 3, 4].map(|seq| event("a", seq, if seq == 4 { "D" } else { "U" }, json!(seq)));
    let mut seen: Option<Json> = None;
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
        let bench = Bench::new(Format::Memory);
        for (n, at) in order.into_iter().enumerate() {
            bench.file(&format!("in/{n}.json"), &[events[at].clone()]);
        }
        bench.succeed(&sql).await;
        let rows = json!(bench.rows("SELECT * FROM t ORDER BY __START_AT").await);
        assert_eq!(rows.as_array().unwrap().len(), 2, "{rows}");
        assert_eq!(*seen.get_or_insert(rows.clone()), rows, "{order:?}");
    }
}

#[tokio::test]
async fn a11_a_column_that_an_event_leaves_unset_is_not_judged() {
    let constraints = "CONSTRAINT v_there EXPECT (v > 0) ON VIOLATION DROP ROW, CONSTRAINT sum EXPECT (v + w < 10) ON VIOLATION DROP ROW";
    let sql = changes(
        constraints,
        "",
        "IGNORE NULL UPDATES SEQUENCE BY seq COLUMNS (k, v, w) STORED AS SCD TYPE 1",
    );
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file(
            "in/1.json",
            &[json!({"k": "a", "seq": 1, "v": 4, "w": 4}), json!({"k": "b", "seq": 1, "v": 9, "w": 9})],
        );
        // The sum would be 54, but w alone is set.
        bench
            .file("in/2.json", &[json!({"k": "a", "seq": 2, "w": 50}), json!({"k": "a", "seq": 3, "v": -1})]);
        let report = bench.succeed(&sql).await;
        assert_eq!(json!(bench.rows("SELECT k, v, w FROM t").await), json!([{"k": "a", "v": 4, "w": 50}]));
        let expected = [("v_there".to_owned(), 3, 1), ("sum".to_owned(), 3, 1)];
        assert_eq!(counts(only(&report)), expected);
    }
}

#[tokio::test]
async fn a11_a_constraint_on_another_flows_column_passes() {
    let sql = "
        CREATE STREAMING TABLE t (CONSTRAINT both EXPECT (b > 0) ON VIOLATION DROP ROW);
        CREATE FLOW one AS AUTO CDC INTO t FROM STREAM read_files('one', format => 'json', schema => 'k STRING, seq BIGINT, a BIGINT') KEYS (k) SEQUENCE BY seq;
        CREATE FLOW two AS AUTO CDC INTO t FROM STREAM read_files('two', format => 'json', schema => 'k STRING, seq BIGINT, b BIGINT') KEYS (k) SEQUENCE BY seq;";
    let bench = Bench::new(Format::Delta);
    bench.file("one/1.json", &[json!({"k": "a", "seq": 1, "a": 1})]);
    bench.file("two/1.json", &[json!({"k": "a", "seq": 2, "b": -1}), json!({"k": "b", "seq": 2, "b": 1})]);
    bench.succeed(sql).await;
    let rows = bench.rows("SELECT k, a, b FROM t ORDER BY k").await;
    assert_eq!(json!(rows), json!([{"k": "a", "a": 1, "b": null}, {"k": "b", "a": null, "b": 1}]));
}

#[tokio::test]
async fn g28_conditions_are_checked_before_anything_runs() {
    let bench = Bench::new(Format::Memory);
    bench.file("in/1.json", &[event("a", 1, "U", json!(1))]);
    for (condition, part) in [
        ("op = 'U'", "op"),
        ("__SEQUENCE_AT > 0", "__SEQUENCE_AT"),
        ("v + 1", "no condition"),
        ("random() < 0.5", "random"),
    ] {
        let sql = changes(&format!("CONSTRAINT odd EXPECT ({condition})"), "", CLAUSES);
        let errors = bench.project(&sql).dry_run().await.unwrap_err();
        let text = errors[0].full_text();
        assert!(text.contains("`odd`") && text.contains(part), "{condition}: {text}");
        assert!(bench.run(&sql).await.is_err());
    }
    assert!(bench.storage.format.list().await.unwrap().is_empty());
}

const QUARANTINE: &str = "TBLPROPERTIES ('strandline.quarantine' = 'bad')";

#[tokio::test]
async fn a11_dropped_rows_go_into_quarantine_with_what_they_violate() {
    let constraints =
        "CONSTRAINT positive EXPECT (v > 0) ON VIOLATION DROP ROW, CONSTRAINT named EXPECT (k <> 'b')";
    for (sql, flow, columns) in [
        (append(constraints, QUARANTINE), "raw", json!({"op": "U", "seq": 2})),
        (changes(constraints, QUARANTINE, CLAUSES), "f", json!({"_sequence": 2})),
    ] {
        for format in FORMATS {
            let bench = Bench::new(format);
            bench.file("in/1.json", &[event("a", 1, "U", json!(1))]);
            bench.file("in/2.json", &[event("b", 2, "U", json!(-1))]);
            bench.succeed(&sql).await;
            bench.succeed(&sql).await;
            let rows = bench.rows("SELECT * FROM bad").await;
            assert_eq!(rows.len(), 1, "{rows:?}");
            let row = json!(rows[0]);
            assert_eq!(row["_violated_constraints"], json!(["positive", "named"]));
            assert_eq!((&row["_flow"], &row["_batch"]), (&json!(flow), &json!(2)));
            assert_eq!((&row["k"], &row["v"]), (&json!("b"), &json!(-1)));
            assert!(row["_quarantined_at"].as_str().unwrap().starts_with("20"), "{row}");
            for (name, value) in columns.as_object().unwrap() {
                assert_eq!(&row[name], value);
            }
        }
    }
}

#[tokio::test]
async fn a_quarantine_is_of_one_table_and_is_refused_where_nothing_is_dropped() {
    let bench = Bench::new(Format::Memory);
    bench.file("in/1.json", &[event("a", 1, "U", json!(1))]);
    let rule = "CONSTRAINT positive EXPECT (v > 0) ON VIOLATION DROP ROW";
    let taken = append(rule, "TBLPROPERTIES ('strandline.quarantine' = 'raw')");
    let twice = append(rule, QUARANTINE) + &changes(rule, QUARANTINE, CLAUSES);
    let bare = "CREATE STREAMING TABLE raw TBLPROPERTIES ('strandline.quarantine' = 'bad') AS SELECT * FROM STREAM read_files('in', format => 'json', schema => 'v BIGINT');".to_owned();
    for (sql, part) in [(taken, "made by the engine"), (twice, "two tables"), (bare, "without constraints")] {
        let errors = bench.project(&sql).dry_run().await.unwrap_err();
        assert!(errors[0].full_text().contains(part), "{}", errors[0].full_text());
        assert_eq!(errors[0].kind(), ErrorKind::Definition);
    }
}

/// Both kinds of flow, each with rows that are kept, dropped and counted; and the same input in an order that conflicts.
fn every_kind() -> String {
    let rules =
        "CONSTRAINT positive EXPECT (v > 0) ON VIOLATION DROP ROW, CONSTRAINT named EXPECT (k <> 'b')";
    append(rules, QUARANTINE)
        + &changes(rules, "TBLPROPERTIES ('strandline.quarantine' = 'bad_changes')", CLAUSES)
            .replace("SET pipelines.maxFlowRetryAttempts = 0;", "")
}

fn crash_bench() -> (Bench, FaultStore<object_store::memory::InMemory>) {
    let store = FaultStore::new(object_store::memory::InMemory::new());
    let bench = Bench::over(Format::Delta, Arc::new(store.clone()));
    bench.file("in/1.json", &[event("a", 1, "U", json!(1)), event("b", 2, "U", json!(-1))]);
    bench.file("in/2.json", &[event("b", 3, "U", json!(-2)), event("c", 4, "U", json!(-3))]);
    (bench, store)
}

async fn everything(bench: &Bench) -> Vec<Json> {
    let mut tables = Vec::new();
    for sql in [
        "SELECT * FROM raw ORDER BY k, seq",
        "SELECT * FROM t ORDER BY k",
        "SELECT k, seq, v, _violated_constraints, _flow, _batch FROM bad ORDER BY k, seq",
        "SELECT k, v, _sequence, _violated_constraints, _flow, _batch FROM bad_changes ORDER BY k, _sequence",
    ] {
        tables.push(json!(bench.rows(sql).await));
    }
    tables
}

#[tokio::test]
async fn r16_killing_the_process_at_any_store_operation_drops_and_quarantines_the_same_rows() {
    let sql = every_kind();
    let (undisturbed, store) = crash_bench();
    undisturbed.succeed(&sql).await;
    let operations = store.faults().count();
    let expected = everything(&undisturbed).await;
    assert_eq!(expected[2].as_array().unwrap().len(), 3, "{expected:?}");
    assert_eq!(expected[3].as_array().unwrap().len(), 3, "{expected:?}");
    let every = if cfg!(slow) { 1 } else { 3 };
    for (offset, fault) in [(1, Fault::Before), (2, Fault::After)] {
        for n in (offset..=operations).step_by(every) {
            let (bench, store) = crash_bench();
            store.faults().add(Rule::nth(n, fault).and_dies());
            drop(bench.run(&sql).await);
            store.faults().revive();
            let report = bench.succeed(&sql).await;
            for flow in &report.flows {
                // A batch that had landed is not counted again.
                if let Some(quality) = &flow.data_quality {
                    assert!(quality.dropped_records <= 3 && flow.rows_in <= 4, "{flow:?}");
                    let judged =
                        |c: &strandline_runtime::ExpectationCounts| c.passed_records + c.failed_records;
                    assert!(
                        quality.expectations.iter().all(|count| judged(count) == flow.rows_in),
                        "{flow:?}"
                    );
                }
            }
            assert_eq!(everything(&bench).await, expected, "killed {fault:?} at operation {n}");
        }
    }
}

#[tokio::test]
async fn r07_a_full_refresh_empties_the_quarantine_with_its_table() {
    let rules = "CONSTRAINT positive EXPECT (v > 0) ON VIOLATION DROP ROW";
    for (sql, table) in [(append(rules, QUARANTINE), "raw"), (changes(rules, QUARANTINE, CLAUSES), "t")] {
        for format in FORMATS {
            let bench = Bench::new(format);
            bench.file("in/1.json", &[event("a", 1, "U", json!(1)), event("b", 2, "U", json!(-1))]);
            bench.succeed(&sql).await;
            std::fs::remove_file(bench.path().join("in/1.json")).unwrap();
            bench.file("in/2.json", &[event("c", 1, "U", json!(1)), event("d", 2, "U", json!(-1))]);
            bench.request(&sql, &UpdateRequest::default().with_full_refresh([table])).await;
            assert_eq!(json!(bench.rows("SELECT k FROM bad").await), json!([{"k": "d"}]), "{format:?}");
            assert_eq!(json!(bench.rows(&format!("SELECT k FROM {table}")).await), json!([{"k": "c"}]));
        }
    }
}
