//! The event log: what a pipeline did can be asked, also of a process that is gone.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use strandline_runtime::{FlowReport, Observer, clock::Clock};

use crate::pipeline::{Bench, Format, JsonRow};

const PIPELINE: &str = "
    SET pipelines.maxFlowRetryAttempts = 0;
    CREATE STREAMING TABLE raw AS
      SELECT * FROM STREAM read_files('in/*.json', format => 'json', schema => 'k STRING, seq BIGINT, op STRING, v BIGINT', maxFilesPerTrigger => 1);
    CREATE STREAMING TABLE now;
    CREATE FLOW changes AS AUTO CDC INTO now FROM STREAM(raw) KEYS (k)
      APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 1;
    CREATE STREAMING TABLE more;
    CREATE FLOW after DEPENDS ON (changes) AS INSERT INTO more BY NAME SELECT k FROM STREAM(raw);";

fn change(k: &str, seq: i64, op: &str, v: i64) -> Value {
    json!({ "k": k, "seq": seq, "op": op, "v": v })
}

fn bench() -> Bench {
    let bench = Bench::new(Format::Memory);
    bench.file("in/1.json", &[change("a", 1, "U", 1), change("b", 2, "U", 1), change("c", 9, "D", 0)]);
    bench.file("in/2.json", &[change("c", 4, "U", 9), change("b", 6, "D", 0), change("a", 1, "U", 2)]);
    bench.file("in/3.json", &[change("a", 0, "U", 9)]);
    bench
}

async fn words(bench: &Bench, sql: &str) -> Vec<String> {
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let line = |row: &JsonRow| row.values().map(word).collect::<Vec<_>>().join(" ");
    bench.rows(sql).await.iter().map(line).collect()
}

#[tokio::test]
async fn r17_an_update_tells_what_it_consists_of_and_every_status_of_its_flows() {
    let bench = bench();
    bench.succeed(PIPELINE).await;
    let update = words(
        &bench,
        "SELECT status FROM events() WHERE event_type IN ('create_update', 'update_progress') ORDER BY sequence",
    );
    assert_eq!(update.await, ["null", "INITIALIZING", "RUNNING", "COMPLETED"]);
    let defined = words(
        &bench,
        "SELECT event_type AS a, coalesce(flow_name, '-') AS b, dataset_name AS c FROM EVENTS()
         WHERE event_type LIKE '%definition' ORDER BY sequence",
    );
    assert_eq!(
        defined.await,
        [
            "dataset_definition - raw",
            "dataset_definition - now",
            "dataset_definition - more",
            "flow_definition raw raw",
            "flow_definition changes now",
            "flow_definition after more"
        ]
    );
    let statuses = words(
        &bench,
        "SELECT status FROM events() WHERE flow_name = 'changes' AND event_type = 'flow_progress' AND level <> 'METRICS'
         ORDER BY sequence",
    );
    assert_eq!(statuses.await, ["QUEUED", "STARTING", "PLANNING", "RUNNING", "COMPLETED"]);
    let details = bench
        .rows("SELECT details FROM events() WHERE flow_name = 'changes' AND event_type = 'flow_definition'")
        .await;
    let details: Value = serde_json::from_str(details[0]["details"].as_str().unwrap()).unwrap();
    assert_eq!(details["flow_definition"]["keys"], json!(["k"]), "{details}");
    assert_eq!(details["flow_definition"]["flow_type"], "CHANGE", "{details}");
}

#[tokio::test]
async fn r18_change_flows_tell_upserted_and_deleted_rows_and_others_output_rows() {
    let bench = bench();
    let late = ["in/2.json", "in/3.json"].map(|name| (name, std::fs::read(bench.path().join(name)).unwrap()));
    for (name, _) in &late {
        std::fs::remove_file(bench.path().join(name)).unwrap();
    }
    bench.succeed(PIPELINE).await;
    for (name, content) in late {
        bench.raw_file(name, content);
    }
    let report = bench.succeed(PIPELINE).await;
    let closing = bench
        .rows(
            "SELECT flow_name, num_output_rows, num_upserted_rows, num_deleted_rows, details FROM events()
             WHERE update_id = 2 AND status = 'COMPLETED' AND flow_name IS NOT NULL",
        )
        .await;
    let of = |name: &str| closing.iter().find(|row| row["flow_name"] == name).unwrap();
    let raw = of("raw");
    assert_eq!(raw["num_output_rows"], 4, "{raw:?}");
    assert!(raw["num_upserted_rows"].is_null() && raw["num_deleted_rows"].is_null(), "{raw:?}");
    let changes = of("changes");
    assert!(changes["num_output_rows"].is_null(), "{changes:?}");
    assert!(
        changes["num_upserted_rows"].as_u64() > Some(0) && changes["num_deleted_rows"].as_u64() > Some(0)
    );
    // Deleted: b; late: a@0; tied: a@1 with two values; defeated: c@4, by the delete at 9.
    let told: Value = serde_json::from_str(changes["details"].as_str().unwrap()).unwrap();
    let metrics = &told["flow_progress"]["metrics"];
    let flow = report.flows.iter().find(|flow| flow.flow == "changes").unwrap();
    assert!(flow.late > 0 && flow.tied == 1 && flow.tombstone_defeated == 1, "{flow:?}");
    for (name, expected) in [
        ("num_late_events", flow.late),
        ("num_tied_events", flow.tied),
        ("num_tombstone_defeated_events", flow.tombstone_defeated),
        ("num_upserted_rows", flow.upserted),
        ("num_deleted_rows", flow.deleted),
        ("num_input_rows", 4),
    ] {
        assert_eq!(metrics[name], expected, "{name}: {metrics}");
    }
}

#[tokio::test]
async fn r17_errors_bear_the_name_of_their_condition_and_dependents_are_skipped() {
    let bench = bench();
    bench.raw_file("in/4.json", r#"{"k": null, "seq": 11, "op": "U", "v": 1}"#);
    assert!(!bench.run(PIPELINE).await.unwrap().is_success());
    let row = &bench
        .rows("SELECT error_condition, error_message, level FROM events() WHERE flow_name = 'changes' AND status = 'FAILED'")
        .await[0];
    assert_eq!(row["error_condition"], "AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY", "{row:?}");
    assert_eq!(row["level"], "ERROR");
    assert!(row["error_message"].as_str().unwrap().contains("flow changes"), "{row:?}");
    let skipped = words(
        &bench,
        "SELECT status AS a, error_message AS b FROM events() WHERE flow_name = 'after' AND status <> 'QUEUED'",
    );
    assert_eq!(skipped.await, ["SKIPPED flow changes did not succeed"]);
    let update = words(
        &bench,
        "SELECT status FROM events() WHERE event_type = 'update_progress' ORDER BY sequence DESC LIMIT 1",
    );
    assert_eq!(update.await, ["FAILED"]);
}

/// Each look is a second later than the one before.
#[derive(Debug, Default)]
struct Seconds(Mutex<u64>);

impl Clock for Seconds {
    fn now(&self) -> Duration {
        let mut seconds = self.0.lock().unwrap();
        *seconds += 1;
        Duration::from_secs(1_700_000_000 + *seconds)
    }
}

/// Dies at the first batch of the change flow, as a process does that is killed.
struct Dies(tokio::sync::Notify);

impl Observer for Dies {
    fn started(&self, _: &str) {}
    fn progressed(&self, report: &FlowReport) {
        if report.flow == "changes" {
            self.0.notify_one();
        }
    }
    fn ended(&self, _: &FlowReport) {}
}

#[tokio::test]
async fn r17_a_killed_process_leaves_what_happened_until_then() {
    let bench = bench();
    let dies = Arc::new(Dies(tokio::sync::Notify::new()));
    let project = bench
        .project(PIPELINE)
        .with_clock(Arc::new(Seconds::default()))
        .observed_by(Arc::clone(&dies) as Arc<dyn Observer>);
    tokio::select! {
        biased;
        () = dies.0.notified() => {}
        report = project.run() => panic!("it should have died: {report:?}"),
    }
    let left = words(
        &bench,
        "SELECT flow_name AS a, status AS b FROM events() WHERE event_type = 'flow_progress' ORDER BY sequence",
    )
    .await;
    assert!(left.contains(&"raw COMPLETED".to_owned()), "{left:?}");
    assert!(left.contains(&"changes QUEUED".to_owned()), "{left:?}");
    assert!(!left.contains(&"changes COMPLETED".to_owned()), "{left:?}");
    bench.succeed(PIPELINE).await;
    let updates = words(
        &bench,
        "SELECT update_id AS a, max(sequence) = count(*) AS b FROM events() GROUP BY update_id ORDER BY update_id",
    );
    assert_eq!(updates.await, ["1 true", "2 true"], "each event once, and the updates apart");
}
