//! Continuous mode: flows go on until they are stopped.

use std::{sync::atomic::Ordering, time::Duration};

use serde_json::json;
use strandline_runtime::{FlowStatus, Mode, UpdateReport};

use crate::pipeline::{Bench, FORMATS, Format};

const PIPELINE: &str = "
    SET pipelines.trigger.interval = 20 ms;
    CREATE STREAMING TABLE raw;
    CREATE FLOW old AS INSERT INTO ONCE raw BY NAME
      SELECT * FROM read_files('old/*.json', format => 'json', schema => 'k STRING, v BIGINT');
    CREATE FLOW live DEPENDS ON (old) AS INSERT INTO raw BY NAME
      SELECT * FROM STREAM read_files('in/*.json', format => 'json', schema => 'k STRING, v BIGINT');
    CREATE STREAMING TABLE now;
    CREATE FLOW now AS AUTO CDC INTO now FROM STREAM(raw) KEYS (k) SEQUENCE BY v;";

/// Runs until `done` says so, then stops.
async fn run_until(bench: &Bench, sql: &str, done: impl AsyncFn() -> bool) -> UpdateReport {
    let project = bench.project(sql).in_mode(Mode::Continuous);
    let stop = project.stop_flag();
    let running = tokio::spawn(async move { project.run().await });
    for _ in 0..2000 {
        if done().await || running.is_finished() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.store(true, Ordering::Relaxed);
    running.await.unwrap().unwrap_or_else(|errors| panic!("{errors:?}"))
}

async fn count(bench: &Bench) -> u64 {
    if bench.storage.format.open("now").await.unwrap().is_none() {
        return 0;
    }
    bench.rows("SELECT count(*) AS n FROM now").await[0]["n"].as_u64().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r01_a_continuous_update_takes_what_comes_until_it_is_stopped() {
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("old/1.json", &[json!({ "k": "o", "v": 0 })]);
        bench.file("in/1.json", &[json!({ "k": "a", "v": 1 })]);
        let report = run_until(&bench, PIPELINE, async || {
            let n = count(&bench).await;
            // Each file is written once the one before it has come through both tables.
            if (2..5).contains(&n) {
                bench.file(&format!("in/{n}.json"), &[json!({ "k": format!("k{n}"), "v": n })]);
            }
            n == 5
        })
        .await;
        let status = |flow: &str| report.flows.iter().find(|report| report.flow == flow).unwrap().status;
        assert_eq!(status("old"), FlowStatus::Completed, "{report:#?}");
        assert_eq!((status("live"), status("now")), (FlowStatus::Stopped, FlowStatus::Stopped));
        assert_eq!(count(&bench).await, 5, "{format:?}");
        // Nothing is taken twice afterwards, in either mode.
        let report = bench.succeed(PIPELINE).await;
        assert!(report.flows.iter().all(|flow| flow.batches == 0), "{report:#?}");
    }
}

#[tokio::test]
async fn g23_a_continuous_pipeline_waits_for_once_flows_only() {
    let bench = Bench::new(Format::Memory);
    let sql = PIPELINE.replace(
        "INSERT INTO ONCE raw BY NAME\n      SELECT * FROM read_files",
        "INSERT INTO raw BY NAME\n      SELECT * FROM STREAM read_files",
    );
    let errors = bench.project(&sql).in_mode(Mode::Continuous).run().await.unwrap_err();
    assert!(errors[0].full_text().contains("DEPENDS_ON_PREDECESSOR_MUST_BE_ONCE"), "{errors:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r20_a_reader_that_goes_on_takes_in_the_columns_that_its_table_gains() {
    for format in FORMATS {
        let bench = Bench::new(format);
        let sql = "SET pipelines.trigger.interval = 20 ms;
            CREATE STREAMING TABLE raw AS SELECT * FROM STREAM read_files('in/*.json', format => 'json');
            CREATE STREAMING TABLE now AS SELECT * FROM STREAM(raw);";
        bench.file("in/1.json", &[json!({ "k": "a" })]);
        let report = run_until(&bench, sql, async || {
            let n = count(&bench).await;
            if n == 1 {
                bench.file("in/2.json", &[json!({ "k": "b", "more": 7 })]);
            }
            n >= 2
        })
        .await;
        assert!(report.flows.iter().all(|flow| flow.reason.is_none()), "{report:#?}");
        let rows = bench.rows("SELECT k, more FROM now ORDER BY k").await;
        assert_eq!(json!(rows), json!([{ "k": "a", "more": null }, { "k": "b", "more": 7 }]), "{format:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_column_that_the_pipeline_does_not_define_any_more_is_not_new() {
    let bench = Bench::new(Format::Delta);
    let sql = |columns: &str| {
        format!(
            "SET pipelines.trigger.interval = 5 ms;
             CREATE STREAMING TABLE raw AS
               SELECT {columns} FROM STREAM read_files('in/*.json', format => 'json', schema => 'k STRING, old INT');
             CREATE STREAMING TABLE now AS SELECT k FROM STREAM(raw);"
        )
    };
    bench.file("in/1.json", &[json!({ "k": "a", "old": 1 })]);
    bench.succeed(&sql("k, old")).await;
    let rounds = std::sync::atomic::AtomicUsize::new(0);
    let report = run_until(&bench, &sql("k"), async || {
        if rounds.fetch_add(1, Ordering::Relaxed) == 1 {
            bench.file("in/2.json", &[json!({ "k": "b" })]);
        }
        rounds.load(Ordering::Relaxed) > 20 && count(&bench).await == 2
    })
    .await;
    assert!(report.flows.iter().all(|flow| flow.reason.is_none() && flow.notice.is_none()), "{report:#?}");
    let planned = bench
        .rows("SELECT count(*) AS n FROM events() WHERE update_id = 2 AND flow_name = 'now' AND status = 'PLANNING'")
        .await;
    assert_eq!(planned[0]["n"], 1, "the flow is not begun again and again");
}
