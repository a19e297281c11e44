//! Full refreshes, refreshes of some tables, and resets of checkpoints.

use std::sync::Arc;

use object_store::memory::InMemory;
use serde_json::{Value, json};
use strandline_runtime::{FlowReport, FlowStatus, UpdateReport, UpdateRequest};
use strandline_testkit::fault::{Fault, FaultStore, Rule};

use crate::pipeline::{Bench, FORMATS, Format};

const COLUMNS: &str = "k STRING, seq BIGINT, op STRING, v BIGINT";

fn pipeline() -> String {
    format!(
        "CREATE STREAMING TABLE raw;
         CREATE FLOW old AS INSERT INTO ONCE raw BY NAME
           SELECT * FROM read_files('old/*.json', format => 'json', schema => '{COLUMNS}');
         CREATE FLOW live DEPENDS ON (old) AS INSERT INTO raw BY NAME
           SELECT * FROM STREAM read_files('in/*.json', format => 'json', schema => '{COLUMNS}', maxFilesPerTrigger => 1);
         CREATE STREAMING TABLE now;
         CREATE FLOW now AS AUTO CDC INTO now FROM STREAM read_files('in/*.json', format => 'json', schema => '{COLUMNS}')
           KEYS (k) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 1;"
    )
}

fn change(k: &str, seq: i64, op: &str, v: i64) -> Value {
    json!({ "k": k, "seq": seq, "op": op, "v": v })
}

fn filled(bench: &Bench) {
    bench.file("old/1.json", &[change("z", 0, "U", 0)]);
    bench.file("in/1.json", &[change("a", 1, "U", 1), change("b", 5, "U", 1)]);
    bench.file("in/2.json", &[change("a", 3, "D", 0), change("b", 2, "U", 9), change("c", 4, "D", 0)]);
}

fn of<'a>(report: &'a UpdateReport, flow: &str) -> &'a FlowReport {
    report.flows.iter().find(|report| report.flow == flow).unwrap()
}

async fn raw(bench: &Bench) -> Vec<String> {
    let rows = bench.rows("SELECT k FROM raw ORDER BY k, seq").await;
    rows.iter().map(|row| row["k"].as_str().unwrap().to_owned()).collect()
}

async fn now(bench: &Bench) -> Value {
    json!(bench.rows("SELECT * FROM now ORDER BY k").await)
}

#[tokio::test]
async fn r07_a_full_refresh_clears_rows_checkpoints_completion_and_side_state_and_runs_in_order() {
    for format in FORMATS {
        let bench = Bench::new(format);
        filled(&bench);
        bench.succeed(&pipeline()).await;
        assert_eq!(raw(&bench).await, ["a", "a", "b", "b", "c", "z"]);
        // What is gone from the sources is gone from the tables then: the delete of c as well, which nothing shows.
        bench.file("in/2.json", &[]);
        let all = UpdateRequest::full_refresh_all();
        let report = bench.request(&pipeline(), &all).await;
        assert_eq!(raw(&bench).await, ["a", "b", "z"], "{format:?}");
        assert_eq!((of(&report, "old").batches, of(&report, "live").batches), (1, 2));
        assert!(of(&report, "old").notice.as_ref().unwrap().contains("runs again"), "{report:?}");
        bench.file("in/3.json", &[change("c", 3, "U", 7)]);
        let report = bench.succeed(&pipeline()).await;
        assert_eq!(of(&report, "old").status, FlowStatus::Idle, "R-06");
        let keys: Vec<Value> =
            now(&bench).await.as_array().unwrap().iter().map(|row| row["k"].clone()).collect();
        assert_eq!(keys, ["a", "b", "c"], "the tombstone of c at 4 is cleared, too");
    }
}

#[tokio::test]
async fn r07_after_a_full_refresh_keys_shape_and_types_may_be_others() {
    for format in FORMATS {
        let bench = Bench::new(format);
        filled(&bench);
        bench.succeed(&pipeline()).await;
        let other = pipeline()
            .replace("KEYS (k)", "KEYS (k, v)")
            .replace("SCD TYPE 1", "SCD TYPE 2")
            .replace("v BIGINT", "v DOUBLE");
        let report = bench.run(&other).await.unwrap();
        let drift = of(&report, "now").reason.clone().unwrap();
        assert!(drift.contains("DRIFT"), "{drift}");
        assert!(of(&report, "now").help.as_ref().unwrap().contains("--full-refresh"), "{report:?}");
        let report = bench.request(&other, &UpdateRequest::default().with_full_refresh(["NOW"])).await;
        assert_eq!(of(&report, "live").status, FlowStatus::Excluded, "R-08");
        let rows = bench.rows("SELECT k, v, __START_AT, __END_AT FROM now ORDER BY k, __START_AT").await;
        let row =
            |k: &str, v: f64, start: i64| json!({ "k": k, "v": v, "__START_AT": start, "__END_AT": null });
        assert_eq!(json!(rows), json!([row("a", 1.0, 1), row("b", 9.0, 2), row("b", 1.0, 5)]), "{format:?}");
        assert_eq!(bench.request(&other, &UpdateRequest::refresh(["now"])).await.flows.len(), 3);
    }
}

#[tokio::test]
async fn r08_a_refresh_of_some_tables_leaves_the_others_alone() {
    for format in FORMATS {
        let bench = Bench::new(format);
        filled(&bench);
        let report = bench.request(&pipeline(), &UpdateRequest::refresh(["now"])).await;
        assert_eq!(of(&report, "live").status, FlowStatus::Excluded);
        assert!(bench.storage.format.open("raw").await.unwrap().is_none());
        assert_eq!(now(&bench).await[0]["k"], json!("b"));
        let unknown = UpdateRequest::refresh(["nowhere"]).with_full_refresh(["norther"]);
        let errors = bench.project(&pipeline()).run_request(&unknown).await.unwrap_err();
        assert_eq!(errors.len(), 2, "{errors:?}");
    }
}

#[tokio::test]
async fn r09_r10_a_reset_reads_the_source_anew_and_keeps_the_rows() {
    for format in FORMATS {
        let bench = Bench::new(format);
        filled(&bench);
        bench.succeed(&pipeline()).await;
        let before = now(&bench).await;
        let reset = UpdateRequest::default().with_checkpoint_reset(["live", "now"]);
        let report = bench.request(&pipeline(), &reset).await;
        assert_eq!(of(&report, "old").status, FlowStatus::Idle, "what it depends on stays complete");
        assert_eq!((of(&report, "live").batches, of(&report, "now").rows_in), (2, 5));
        assert_eq!(now(&bench).await, before, "{format:?}");
        assert_eq!(raw(&bench).await.len(), 6 + 5, "an append target takes the rows again");
        // The late event is still defeated: side state is kept.
        bench.file("in/3.json", &[change("c", 3, "U", 7)]);
        bench.succeed(&pipeline()).await;
        assert_eq!(now(&bench).await, before);
    }
}

#[tokio::test]
async fn r11_a_table_that_may_not_be_refreshed_fully_says_so() {
    let bench = Bench::new(Format::Memory);
    filled(&bench);
    let kept =
        pipeline().replace("TABLE raw;", "TABLE raw TBLPROPERTIES ('pipelines.reset.allowed' = 'false');");
    bench.succeed(&kept).await;
    let request = UpdateRequest::default().with_full_refresh(["raw"]);
    let errors = bench.project(&kept).run_request(&request).await.unwrap_err();
    assert!(errors[0].full_text().contains("pipelines.reset.allowed"), "{errors:?}");
    // All that may be refreshed is.
    assert_eq!(raw(&bench).await.len(), 6);
}

#[tokio::test]
async fn nothing_is_cleared_when_a_once_flow_could_not_be_filled_again() {
    for format in FORMATS {
        let bench = Bench::new(format);
        filled(&bench);
        bench.succeed(&pipeline()).await;
        std::fs::remove_file(bench.path().join("old/1.json")).unwrap();
        let report =
            bench.project(&pipeline()).run_request(&UpdateRequest::full_refresh_all()).await.unwrap();
        assert!(!report.is_success());
        let reason = of(&report, "live").reason.clone().unwrap();
        assert!(reason.contains("ONCE flow is empty now") && reason.contains("old"), "{reason}");
        assert!(report.flows.iter().all(|flow| flow.status == FlowStatus::Failed), "{report:#?}");
        let log = bench
            .rows("SELECT status, error_message FROM events() WHERE update_id = 2 AND level = 'ERROR'")
            .await;
        let log = serde_json::to_string(&log).unwrap();
        assert!(log.contains("FAILED") && log.contains("ONCE flow is empty now"), "{log}");
        assert_eq!(raw(&bench).await.len(), 6, "{format:?}");
        bench.succeed(&pipeline()).await;
    }
}

#[tokio::test]
async fn r07_killing_a_full_refresh_at_any_store_operation_leaves_nothing_half_cleared() {
    let one_by_one = format!(
        "SET pipelines.maxFlowRetryAttempts = 0; SET spark.sql.pipelines.execution.maxConcurrentFlows = 1; {}",
        pipeline()
    );
    let prepared = async || {
        let store = FaultStore::new(InMemory::new());
        let bench = Bench::over(Format::Delta, Arc::new(store.clone()));
        filled(&bench);
        bench.succeed(&one_by_one).await;
        bench.file("in/2.json", &[change("b", 2, "U", 9)]);
        (bench, store)
    };
    let request = UpdateRequest::default().with_full_refresh(["raw", "now"]);
    let (undisturbed, store) = prepared().await;
    let before = store.faults().count();
    bench_rows_differ(&undisturbed, &one_by_one, &request).await;
    let expected = (raw(&undisturbed).await, now(&undisturbed).await);
    let operations = store.faults().count() - before;
    let every = if cfg!(slow) { 1 } else { 11 };
    for (offset, fault) in [(1, Fault::Before), (3, Fault::After)] {
        for n in (offset..=operations).step_by(every) {
            let (bench, store) = prepared().await;
            store.faults().add(Rule::nth(n, fault).and_dies());
            let killed = bench.project(&one_by_one).run_request(&request).await;
            store.faults().revive();
            let is_recorded = strandline_runtime::state::Register::new(
                Arc::clone(&bench.storage.store),
                strandline_runtime::state::engine_path(&["refresh"]),
            );
            let is_recorded = !is_recorded.numbers().await.unwrap().is_empty();
            bench.succeed(&one_by_one).await;
            let found = (raw(&bench).await, now(&bench).await);
            // Before the intent is recorded nothing has happened; after it all of it happens.
            if !is_recorded {
                assert!(killed.is_err() || !killed.unwrap().is_success());
                assert_eq!(found.0.len(), 6, "{fault:?} at {n}: nothing has happened");
                continue;
            }
            assert_eq!(found, expected, "{fault:?} at {n}: what is recorded happens");
        }
    }
    eprintln!("{operations} operations of a full refresh, every {every}th failed before or after it landed");
}

async fn bench_rows_differ(bench: &Bench, sql: &str, request: &UpdateRequest) {
    let before = raw(bench).await;
    bench.request(sql, request).await;
    assert_ne!(raw(bench).await, before);
}

#[tokio::test]
async fn r07_a_full_refresh_empties_the_quarantine_as_well() {
    for format in FORMATS {
        let bench = Bench::new(format);
        filled(&bench);
        let sql = pipeline().replace(
            "CREATE STREAMING TABLE raw;",
            "CREATE STREAMING TABLE raw (CONSTRAINT known EXPECT (op = 'U') ON VIOLATION DROP ROW)
               TBLPROPERTIES ('strandline.quarantine' = 'dropped');",
        );
        bench.succeed(&sql).await;
        assert_eq!(bench.rows("SELECT k FROM dropped").await.len(), 2);
        bench.request(&sql, &UpdateRequest::full_refresh_all()).await;
        assert_eq!(bench.rows("SELECT k FROM dropped").await.len(), 2, "{format:?}");
        assert_eq!(raw(&bench).await, ["a", "b", "b", "z"]);
    }
}

#[tokio::test]
async fn nothing_is_cleared_when_columns_could_not_be_found_out_again() {
    for format in FORMATS {
        let bench = Bench::new(format);
        let sql =
            "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('in/*.json', format => 'json')";
        bench.file("in/1.json", &[json!({ "n": 1 })]);
        bench.succeed(sql).await;
        std::fs::remove_file(bench.path().join("in/1.json")).unwrap();
        for request in
            [UpdateRequest::full_refresh_all(), UpdateRequest::default().with_checkpoint_reset(["t"])]
        {
            let report = bench.project(sql).run_request(&request).await.unwrap();
            let reason = report.flows[0].reason.clone().unwrap();
            assert!(reason.contains("could not begin"), "{reason}");
            // The pipeline goes on as if nobody had asked.
            assert_eq!(bench.succeed(sql).await.flows[0].batches, 0);
            assert_eq!(bench.rows("SELECT n FROM t").await.len(), 1, "{format:?}");
        }
        bench.file("in/2.json", &[json!({ "n": 2 })]);
        bench.request(sql, &UpdateRequest::full_refresh_all()).await;
        assert_eq!(json!(bench.rows("SELECT n FROM t").await), json!([{ "n": 2 }]));
    }
}

#[tokio::test]
async fn a_target_that_knows_more_than_the_state_of_its_flow_is_named() {
    for format in FORMATS {
        let bench = Bench::new(format);
        filled(&bench);
        bench.succeed(&pipeline()).await;
        // The state of the flows is lost, the tables are not.
        let root = strandline_runtime::state::engine_path(&["flows"]);
        let lost: Vec<_> =
            futures::TryStreamExt::try_collect(bench.storage.store.list(Some(&root))).await.unwrap();
        let lost: Vec<object_store::ObjectMeta> = lost;
        for object in lost {
            object_store::ObjectStoreExt::delete(&bench.storage.store, &object.location).await.unwrap();
        }
        bench.file("in/3.json", &[change("d", 1, "U", 1)]);
        let report = bench.run(&pipeline()).await.unwrap();
        let reason = of(&report, "now").reason.clone().unwrap();
        assert!(reason.contains("has not planned"), "{reason}");
        assert_eq!(now(&bench).await.as_array().unwrap().len(), 1, "{format:?}");
    }
}
