//! What is tried again, how often, and what is not; how many flows run at once.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use object_store::memory::InMemory;
use serde_json::json;
use strandline_runtime::{FlowReport, FlowStatus, Observer};
use strandline_testkit::fault::{Fault, FaultStore, Rule};

use crate::pipeline::{Bench, Format};

const FAST: &str = "SET spark.sql.pipelines.execution.watchdog.minRetryTime = 1 ms;";

fn pipeline(settings: &str) -> String {
    format!(
        "{FAST} {settings}
         CREATE STREAMING TABLE raw AS
           SELECT * FROM STREAM read_files('in/*.json', format => 'json', schema => 'k STRING, v BIGINT', maxFilesPerTrigger => 1);"
    )
}

fn bench() -> (Bench, FaultStore<InMemory>) {
    let store = FaultStore::new(InMemory::new());
    let bench = Bench::over(Format::Delta, Arc::new(store.clone()));
    bench.file("in/1.json", &[json!({ "k": "a", "v": 1 })]);
    bench.file("in/2.json", &[json!({ "k": "b", "v": 1 })]);
    (bench, store)
}

#[tokio::test]
async fn r15_a_flow_and_then_the_update_are_tried_again_up_to_their_limits() {
    // Each write of the log's second commit fails: the one that makes the table is the first.
    for (settings, failures, succeeds) in [
        ("", 2, true),
        ("", 3, false),
        ("SET pipelines.maxFlowRetryAttempts = 0;", 1, false),
        ("SET pipelines.maxFlowRetryAttempts = 4;", 4, true),
        ("SET pipelines.maxFlowRetryAttempts = 0; SET pipelines.numUpdateRetryAttempts = 3;", 3, true),
        ("SET pipelines.maxFlowRetryAttempts = 0; SET pipelines.numUpdateRetryAttempts = 3;", 4, false),
        ("SET pipelines.maxFlowRetryAttempts = 1; SET pipelines.numUpdateRetryAttempts = 1;", 3, true),
        ("SET pipelines.maxFlowRetryAttempts = 1; SET pipelines.numUpdateRetryAttempts = 1;", 4, false),
    ] {
        let (bench, store) = bench();
        for n in 1..=failures {
            store.faults().add(Rule::nth(n, Fault::Before).on("/plan/00000000000000000002"));
        }
        let report = bench.run(&pipeline(settings)).await.unwrap();
        assert_eq!(report.is_success(), succeeds, "{settings} {failures}: {report:#?}");
        if succeeds {
            assert_eq!(report.flows[0].batches, 2, "what all attempts did: {report:#?}");
        }
        bench.succeed(&pipeline("")).await;
        assert_eq!(bench.rows("SELECT k FROM raw").await.len(), 2, "nothing twice, nothing missing");
    }
}

#[tokio::test]
async fn r15_an_error_that_another_attempt_does_not_mend_fails_at_once() {
    let (bench, store) = bench();
    bench.raw_file("in/1.json", "{\"k\": 1, \"v\": [}");
    let before = store.faults().count();
    let report = bench.run(&pipeline("SET pipelines.numUpdateRetryAttempts = 9;")).await.unwrap();
    assert_eq!(report.flows[0].status, FlowStatus::Failed);
    let plans = store.faults().trace().iter().skip(before).filter(|op| op.path.contains("/plan/0")).count();
    assert!(plans <= 2, "planned and tried once: {:?}", store.faults().trace());
}

/// Counts how many flows run at once.
#[derive(Default)]
struct Crowd {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Observer for Crowd {
    fn started(&self, _: &str) {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
    }

    fn progressed(&self, _: &FlowReport) {}

    fn ended(&self, _: &FlowReport) {
        self.now.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_flows_run_with_the_permits_respected() {
    let bench = Bench::new(Format::Memory);
    bench.file("in/1.json", &[json!({ "k": "a", "v": 1 })]);
    let flow = |n| {
        format!(
            "CREATE STREAMING TABLE t{n} AS
               SELECT * FROM STREAM read_files('in/*.json', format => 'json', schema => 'k STRING, v BIGINT');"
        )
    };
    let flows = (0..50).map(flow).collect::<Vec<_>>().join("\n");
    let crowd = Arc::new(Crowd::default());
    let sql = format!("SET spark.sql.pipelines.execution.maxConcurrentFlows = 4; {flows}");
    let report =
        bench.project(&sql).observed_by(Arc::clone(&crowd) as Arc<dyn Observer>).run().await.unwrap();
    assert!(report.is_success());
    assert_eq!(report.flows.iter().map(|flow| flow.rows_in).sum::<u64>(), 50);
    assert_eq!(crowd.now.load(Ordering::SeqCst), 0, "each start has its end");
    assert_eq!(crowd.most.load(Ordering::SeqCst), 4);
}

/// A sink whose code panics.
struct Panics;

#[async_trait::async_trait]
impl strandline_runtime::sinks::BatchSink for Panics {
    async fn write(&self, _: strandline_runtime::sinks::SinkBatch) -> Result<(), strandline_runtime::Error> {
        panic!("the code of a user")
    }
}

#[tokio::test]
async fn r13_a_panic_in_one_flow_is_the_failure_of_that_flow() {
    let (bench, _) = bench();
    let sql = pipeline(
        "CREATE SINK code USING foreachBatch;
         CREATE FLOW given AS INSERT INTO code BY NAME
           SELECT * FROM STREAM read_files('in/*.json', format => 'json', schema => 'k STRING, v BIGINT');
         CREATE STREAMING TABLE after;
         CREATE FLOW after DEPENDS ON (given) AS INSERT INTO after BY NAME SELECT * FROM STREAM(raw);",
    );
    let report = bench.project(&sql).with_sink("code", Arc::new(Panics)).run().await.unwrap();
    let of = |name: &str| report.flows.iter().find(|flow| flow.flow == name).unwrap();
    assert!(of("given").reason.as_ref().unwrap().contains("the code of a user"), "{report:#?}");
    assert_eq!((of("raw").status, of("raw").batches), (FlowStatus::Completed, 2));
    assert_eq!(of("after").status, FlowStatus::Skipped);
}

#[tokio::test]
async fn r17_what_is_told_of_a_flow_are_sums_over_its_attempts() {
    let (bench, store) = bench();
    store.faults().add(Rule::nth(1, Fault::Before).on("/plan/00000000000000000002"));
    bench.succeed(&pipeline("")).await;
    let told = bench
        .rows("SELECT details FROM events() WHERE flow_name = 'raw' AND level = 'METRICS' ORDER BY sequence")
        .await;
    let last: serde_json::Value =
        serde_json::from_str(told.last().unwrap()["details"].as_str().unwrap()).unwrap();
    assert_eq!(last["flow_progress"]["metrics"]["num_output_rows"], 2, "{last}");
}

#[tokio::test]
async fn r15_a_clearing_is_tried_again_and_clears_once() {
    let (bench, store) = bench();
    let sql = pipeline("SET pipelines.numUpdateRetryAttempts = 3;");
    bench.succeed(&sql).await;
    let before = bench.version("raw").await;
    // Twice the store fails while what is recorded is being done.
    store.faults().add(Rule::nth(1, Fault::Before).on("/incarnation/"));
    store.faults().add(Rule::nth(2, Fault::Before).on("/incarnation/"));
    let request = strandline_runtime::UpdateRequest::full_refresh_all();
    let report = bench.project(&sql).run_request(&request).await.unwrap();
    assert!(report.is_success(), "{report:#?}");
    assert_eq!(bench.rows("SELECT k FROM raw").await.len(), 2);
    assert_eq!(bench.version("raw").await, before + 3, "emptied once, then two batches");
}
