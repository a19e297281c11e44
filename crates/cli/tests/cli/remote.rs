//! The binary on a storage by URL, on real servers: `tests/s3/run` and `tests/azure/run` start one, make a bucket, and run
//! these. Tests that begin with `s3_` are about that protocol.

use std::{
    process::{Output, Stdio},
    time::{Duration, Instant},
};

use crate::{example, run, strandline, succeed, tables, text};

/// The shortest lease that a pipeline may have.
const LEASE: &str = "strandline.leaseDuration=3 seconds";

/// A prefix of the bucket that nothing else uses.
fn url(name: &str) -> String {
    let bucket = std::env::vars_os().find(|(name, _)| name == "STRANDLINE_STORE");
    let bucket = bucket
        .expect("STRANDLINE_STORE is not set: run tests/s3/run or tests/azure/run")
        .1
        .into_string()
        .expect("text");
    format!("{bucket}/cli/{name}-{}", std::process::id())
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What a run on a local folder leaves.
fn expected() -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    succeed(&["run", text(&example().join("pipeline.sql")), "--storage", text(folder.path())]);
    tables(text(folder.path()))
}

#[test]
#[ignore = "needs a server: tests/s3/run, tests/azure/run"]
fn remote_t21_the_example_is_as_on_a_local_folder_and_a_second_run_changes_nothing() {
    let (pipeline, url) = (example().join("pipeline.sql"), url("example"));
    let nothing = run(&["status", "--storage", &url]);
    assert_eq!(nothing.status.code(), Some(2), "{}", words(&nothing));
    assert!(words(&nothing).contains(&url), "{}", words(&nothing));
    succeed(&["dry-run", text(&pipeline), "--storage", &url]);
    assert_eq!(run(&["status", "--storage", &url]).status.code(), Some(2), "a dry run writes nothing");

    let call = ["run", text(&pipeline), "--storage", &url, "--json"];
    succeed(&call);
    let rows = tables(&url);
    assert_eq!(rows, expected());
    let versions = |status: &str| -> Vec<serde_json::Value> {
        let status: serde_json::Value = serde_json::from_str(status).unwrap();
        status["tables"].as_array().unwrap().iter().map(|table| table["version"].clone()).collect()
    };
    let before = versions(&succeed(&["status", "--storage", &url, "--json"]));
    let report: serde_json::Value = serde_json::from_str(&succeed(&call)).unwrap();
    assert!(report["flows"].as_array().unwrap().iter().all(|flow| flow["batches"] == 0), "{report}");
    assert_eq!(versions(&succeed(&["status", "--storage", &url, "--json"])), before);
    assert_eq!(tables(&url), rows);
    let graph = succeed(&["graph", text(&pipeline), "--storage", &url]);
    assert!(graph.contains("COMPLETED"), "{graph}");
}

#[test]
#[ignore = "needs a server: tests/s3/run, tests/azure/run"]
fn remote_t21_iceberg_tables_lie_there_too_with_their_catalog_in_a_file() {
    let (pipeline, url, folder) =
        (example().join("pipeline.sql"), url("iceberg"), tempfile::tempdir().unwrap());
    let without = run(&["run", text(&pipeline), "--storage", &url, "--format", "iceberg"]);
    assert!(!without.status.success() && words(&without).contains("catalog.uri"), "{}", words(&without));
    let catalog = format!("uri={}", text(&folder.path().join("catalog.db")));
    let place = ["--storage", &url, "--catalog", &catalog];
    for _ in 0..2 {
        succeed(&[&["run", text(&pipeline), "--format", "iceberg"][..], &place].concat());
    }
    let sql = "SELECT * FROM customers_history ORDER BY customer_id, __START_AT";
    let rows = succeed(&[&["query", sql, "--output", "csv"][..], &place].concat());
    assert_eq!(rows, expected()[2]);
}

#[test]
#[ignore = "needs a server: tests/s3/run, tests/azure/run"]
fn s3_options_come_before_the_environment() {
    let (pipeline, url) = (example().join("pipeline.sql"), url("options"));
    let wrong =
        ["run", text(&pipeline), "--storage", &url, "--storage-option", "aws_secret_access_key=wrong"];
    let refused = run(&[&wrong[..], &["--storage-option", "aws_access_key_id=nobody"]].concat());
    assert_eq!(refused.status.code(), Some(1), "{}", words(&refused));
    assert!(
        words(&refused).contains("credentials") && !words(&refused).contains("wrong"),
        "{}",
        words(&refused)
    );
    let misspelt = run(&["query", "SELECT 1", "--storage", &url, "--storage-option", "aws_regoin=x"]);
    assert_eq!(misspelt.status.code(), Some(2));
    assert!(words(&misspelt).contains("aws_regoin"), "{}", words(&misspelt));
}

#[test]
#[ignore = "needs a server: tests/s3/run, tests/azure/run"]
fn s3_a_bucket_that_does_not_exist_is_named() {
    let pipeline = example().join("pipeline.sql");
    let refused = run(&["run", text(&pipeline), "--storage", "s3://no-such-bucket-here/x"]);
    assert_eq!(refused.status.code(), Some(1), "{}", words(&refused));
    assert!(words(&refused).contains("no-such-bucket-here"), "{}", words(&refused));
}

#[test]
#[ignore = "needs a server: tests/s3/run, tests/azure/run"]
#[expect(clippy::disallowed_methods, reason = "real processes run for a real while")]
fn remote_r27_a_killed_process_is_waited_for_and_the_next_one_goes_on() {
    let (pipeline, expected) = (example().join("pipeline.sql"), expected());
    let whole = {
        let (url, started) = (url("undisturbed"), Instant::now());
        succeed(&["run", text(&pipeline), "--storage", &url]);
        started.elapsed()
    };
    let (mut killed, mut refused) = (0, 0);
    for round in 1..=4_u32 {
        let url = url(&format!("killed-{round}"));
        let call = ["run", text(&pipeline), "--storage", &url, "--set", LEASE];
        let mut child = strandline(&call).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(whole.mul_f64(f64::from(round) * 0.2));
        // Whatever the first one does now, a second one beside it is refused, or comes after its end.
        let second = run(&call);
        let ran_alone = child.try_wait().unwrap().is_some();
        if !ran_alone {
            assert_eq!(second.status.code(), Some(3), "{}", words(&second));
            assert!(words(&second).contains("expires at"), "{}", words(&second));
            refused += 1;
        }
        killed += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            let next = run(&call);
            match next.status.code() {
                Some(0) => break,
                Some(3) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(300)),
                _ => panic!("round {round}: {}", words(&next)),
            }
        }
        assert_eq!(tables(&url), expected, "round {round}");
    }
    assert!(killed >= 1 && refused >= 1, "no run was still going on when it was killed: {killed}, {refused}");
}
