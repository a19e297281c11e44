//! What happened can be asked with SQL, and where a pipeline stands is told.

use crate::{run_in, succeed_in, write};

const PIPELINE: &str = "
    SET pipelines.maxFlowRetryAttempts = 0;
    CREATE STREAMING TABLE raw AS
      SELECT * FROM STREAM read_files('in/*.json', format => 'json', schema => 'k STRING, seq BIGINT');
    CREATE STREAMING TABLE now;
    CREATE FLOW seed AS AUTO CDC ONCE INTO now
      FROM read_files('seed/*.json', format => 'json', schema => 'k STRING, seq BIGINT') KEYS (k) SEQUENCE BY seq;
    CREATE FLOW changes DEPENDS ON (seed) AS AUTO CDC INTO now FROM STREAM(raw) KEYS (k) SEQUENCE BY seq;";

#[test]
fn r04_r17_states_times_and_reasons_are_told_after_an_update() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(&folder.join("pipeline.yml"), "name: told\nstorage: lake\nlibraries: [{glob: {include: p.sql}}]\n");
    write(&folder.join("p.sql"), PIPELINE);
    write(&folder.join("seed/1.json"), "{\"k\": \"a\", \"seq\": 1}\n{\"k\": \"b\", \"seq\": 1}\n");
    write(&folder.join("in/1.json"), "{\"k\": \"a\", \"seq\": 2}\n");
    let report = succeed_in(folder, &["run"]);
    assert!(!report.contains("defeated"), "counters without counts are not shown: {report}");
    write(&folder.join("in/2.json"), "{\"k\": null, \"seq\": 3}\n");
    let failed = run_in(folder, &["run"]);
    assert_eq!(failed.status.code(), Some(1));

    let status = succeed_in(folder, &["status", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["last_update"]["state"], "FAILED", "{status}");
    let flow =
        |name: &str| status["flows"].as_array().unwrap().iter().find(|flow| flow["flow"] == name).unwrap();
    assert_eq!(flow("seed")["state"], "IDLE");
    assert!(flow("seed")["completed_at"].as_str().unwrap().starts_with("20"), "{status}");
    assert_eq!(flow("changes")["state"], "FAILED");
    assert!(flow("changes")["reason"].as_str().unwrap().contains("NULL_KEY"), "{status}");
    assert_eq!(flow("changes")["batches"], 1);
    let now = status["tables"].as_array().unwrap().iter().find(|table| table["table"] == "now").unwrap();
    assert_eq!(now["rows"], 2, "{status}");
    let text = succeed_in(folder, &["status"]);
    assert!(text.contains("update 2: FAILED") && text.contains("changes: "), "{text}");

    let sql = "SELECT flow_name, status, error_condition FROM events()
               WHERE update_id = 2 AND level = 'ERROR' AND flow_name IS NOT NULL";
    let rows = succeed_in(folder, &["query", sql, "--output", "csv"]);
    assert_eq!(
        rows,
        "flow_name,status,error_condition\nchanges,FAILED,AUTOCDC_MICROBATCH_VALIDATION.NULL_KEY\n"
    );
    let graph = succeed_in(folder, &["graph"]);
    assert!(graph.contains("changes (AUTO CDC, SCD TYPE 1)") && graph.contains("FAILED"), "{graph}");
    assert!(graph.contains("now  streaming table, 2 rows, version"), "{graph}");
}
