//! Real processes: stopped by a signal, kept out by a lease.
#![cfg(unix)]

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, ChildStderr, Command, Stdio},
};

use crate::{run_in, strandline, succeed_in, write};

const FILES: usize = 300;

/// Many small batches: long enough to be stopped in the middle.
fn slow_pipeline(folder: &Path) {
    write(&folder.join("pipeline.yml"), "name: slow\nstorage: lake\nlibraries:\n  - glob: p.sql\n");
    write(
        &folder.join("p.sql"),
        "CREATE STREAMING TABLE raw AS SELECT * FROM
           STREAM read_files('in/*.json', format => 'json', schema => 'k BIGINT, v BIGINT', maxFilesPerTrigger => 1);
         CREATE STREAMING TABLE now;
         CREATE FLOW changes AS AUTO CDC INTO now
           FROM STREAM read_files('in/*.json', format => 'json', schema => 'k BIGINT, v BIGINT', maxFilesPerTrigger => 1)
           KEYS (k) SEQUENCE BY v;",
    );
    for n in 0..FILES {
        write(&folder.join(format!("in/{n:04}.json")), &format!("{{\"k\": {}, \"v\": {n}}}\n", n % 7));
    }
}

/// A run that is going on: the process, and what it says.
fn started(folder: &Path, more: &[&str], until: &str) -> (Child, BufReader<ChildStderr>) {
    let call: Vec<&str> = ["run", "--json"].iter().chain(more).copied().collect();
    let mut child = strandline(&call)
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    while !line.contains(until) {
        line.clear();
        assert!(said.read_line(&mut line).expect("text") > 0, "it ended before it said {until}");
    }
    (child, said)
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &child.id().to_string()]).status();
    assert!(sent.expect("kill is there").success());
}

fn count(folder: &Path, table: &str) -> usize {
    let rows =
        succeed_in(folder, &["query", &format!("SELECT count(*) AS n FROM {table}"), "--output", "csv"]);
    rows.lines().nth(1).expect("a row").parse().expect("a number")
}

/// What is left equals what an undisturbed run leaves.
fn completes(folder: &Path) {
    succeed_in(folder, &["run"]);
    assert_eq!(count(folder, "raw"), FILES);
    let sql = "SELECT k, v FROM now ORDER BY k";
    let rows = succeed_in(folder, &["query", sql, "--output", "csv"]);
    let expected: Vec<String> =
        (0..7).map(|k| format!("{k},{}", (0..FILES).filter(|n| n % 7 == k).max().unwrap_or(0))).collect();
    assert_eq!(rows.lines().skip(1).collect::<Vec<_>>(), expected);
}

#[test]
fn a_signal_lets_the_batch_in_flight_end_and_the_next_run_goes_on() {
    for (name, code) in [("TERM", 143), ("INT", 130)] {
        let folder = tempfile::tempdir().unwrap();
        slow_pipeline(folder.path());
        let (child, mut said) = started(folder.path(), &[], "changes: batch 3,");
        signal(&child, name);
        let mut rest = String::new();
        while said.read_line(&mut rest).unwrap() > 0 {}
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{rest}");
        assert!(rest.contains("stopping"), "{rest}");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let flows = report["flows"].as_array().unwrap();
        assert!(flows.iter().any(|flow| flow["status"] == "STOPPED"), "{report}");
        let raw = flows.iter().find(|flow| flow["flow"] == "raw").unwrap();
        let taken = count(folder.path(), "raw");
        assert!(taken < FILES, "it was stopped in the middle: {taken}");
        assert_eq!(raw["batches"], taken, "what is visible are whole batches, and all that were told");
        let states =
            "SELECT status FROM events() WHERE event_type = 'update_progress' ORDER BY sequence DESC LIMIT 1";
        assert!(succeed_in(folder.path(), &["query", states, "--output", "csv"]).contains("CANCELED"));
        assert!(succeed_in(folder.path(), &["status"]).contains("STOPPED"));
        completes(folder.path());
    }
}

#[test]
fn r01_a_continuous_update_takes_what_comes_until_it_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    slow_pipeline(folder.path());
    for n in 20..FILES {
        std::fs::remove_file(folder.path().join(format!("in/{n:04}.json"))).unwrap();
    }
    let (child, mut said) =
        started(folder.path(), &["--continuous", "--trigger-interval", "50ms"], "changes: batch 20,");
    for n in 20..FILES {
        write(&folder.path().join(format!("in/{n:04}.json")), &format!("{{\"k\": {}, \"v\": {n}}}\n", n % 7));
    }
    let mut line = String::new();
    while !line.contains("batch 30,") {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it goes on");
    }
    signal(&child, "TERM");
    let mut rest = String::new();
    while said.read_line(&mut rest).unwrap() > 0 {}
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "to be stopped is how it ends: {rest}");
    completes(folder.path());
}

#[test]
fn r27_a_second_process_is_refused_while_the_first_one_runs() {
    let folder = tempfile::tempdir().unwrap();
    slow_pipeline(folder.path());
    let (mut child, _said) = started(folder.path(), &[], "batch 2,");
    let refused = run_in(folder.path(), &["run"]);
    let still_runs = child.try_wait().unwrap().is_none();
    let words = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(still_runs, "the first one was still running");
    assert_eq!(refused.status.code(), Some(3), "{words}");
    assert!(words.contains("another process"), "{words}");
    assert!(succeed_in(folder.path(), &["query", "SELECT 1"]).contains('1'), "questions may be asked");
    // A process that is killed holds nothing.
    child.kill().unwrap();
    child.wait().unwrap();
    completes(folder.path());
}
