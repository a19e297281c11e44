//! What an update is asked for, and the values it is given.

use std::path::Path;

use crate::{run_in, succeed_in, write};

fn pipeline(folder: &Path) {
    write(
        &folder.join("pipeline.yml"),
        "name: two\nstorage: lake\nconfiguration:\n  input: ../in\n  factor: 10\n  pipelines.maxFlowRetryAttempts: 0\n",
    );
    write(
        &folder.join("transformations/both.sql"),
        "CREATE STREAMING TABLE a AS
           SELECT n * ${factor} AS n FROM STREAM read_files('${input}', format => 'json', schema => 'n BIGINT');
         CREATE STREAMING TABLE b AS
           SELECT n * ${factor} AS n FROM STREAM read_files('${input}', format => 'json', schema => 'n BIGINT');",
    );
    write(&folder.join("in/1.json"), "{\"n\": 1}\n");
}

fn values(folder: &Path, table: &str) -> Vec<String> {
    let sql = format!("SELECT n FROM {table} ORDER BY n");
    let rows = succeed_in(folder, &["query", &sql, "--output", "csv"]);
    rows.lines().skip(1).map(str::to_owned).collect()
}

fn statuses(report: &str) -> Vec<String> {
    let report: serde_json::Value = serde_json::from_str(report).expect("JSON");
    let flow = |flow: &serde_json::Value| format!("{} {}", flow["flow"], flow["status"]).replace('"', "");
    report["flows"].as_array().expect("a list").iter().map(flow).collect()
}

#[test]
fn r08_an_update_takes_what_it_is_asked_for_and_r07_fills_anew_what_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    pipeline(folder);
    succeed_in(folder, &["run"]);
    assert_eq!((values(folder, "a"), values(folder, "b")), (vec!["10".into()], vec!["10".into()]));
    write(&folder.join("in/2.json"), "{\"n\": 2}\n");
    let report = succeed_in(folder, &["run", "--refresh", "a", "--json"]);
    assert_eq!(statuses(&report), ["a COMPLETED", "b EXCLUDED"]);
    assert_eq!((values(folder, "a").len(), values(folder, "b").len()), (2, 1));

    // A value of the command line comes before that of the file; only what is filled anew shows it.
    succeed_in(folder, &["run", "--full-refresh", "b", "--set", "factor=7"]);
    assert_eq!(values(folder, "a"), ["10", "20"]);
    assert_eq!(values(folder, "b"), ["7", "14"]);
    succeed_in(folder, &["run", "--reset-checkpoint", "a"]);
    assert_eq!(values(folder, "a"), ["10", "10", "20", "20"], "an append table takes its input again");
    succeed_in(folder, &["run", "--full-refresh-all"]);
    assert_eq!(
        (values(folder, "a"), values(folder, "b")),
        (vec!["10".into(), "20".into()], vec!["10".into(), "20".into()])
    );
    let both = succeed_in(folder, &["run", "--refresh", "a,b", "--json"]);
    assert_eq!(statuses(&both), ["a COMPLETED", "b COMPLETED"]);
}

#[test]
fn a_dry_run_tells_what_would_become_of_each_flow() {
    let folder = tempfile::tempdir().unwrap();
    pipeline(folder.path());
    let said = succeed_in(folder.path(), &["dry-run", "--full-refresh", "a"]);
    assert!(said.contains("a -> a (append): would be refreshed fully"), "{said}");
    assert!(said.contains("b -> b (append): would not run"), "{said}");
    assert!(!folder.path().join("lake").exists());
}

#[test]
fn names_and_values_that_do_not_exist_are_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    pipeline(folder.path());
    let refused = |call: &[&str]| {
        let output = run_in(folder.path(), call);
        assert_eq!(output.status.code(), Some(2), "{call:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = refused(&["run", "--refresh", "c", "--reset-checkpoint", "d"]);
    assert!(said.contains('c') && said.contains('d'), "{said}");
    assert!(refused(&["dry-run", "--refresh", "c"]).contains('c'));
    let said = refused(&["run", "--set", "pipelines.maxFlowRetries=1"]);
    assert!(said.contains("pipelines.maxFlowRetries"), "{said}");
    assert!(refused(&["run", "--set", "novalue"]).contains("KEY=VALUE"));
    write(&folder.path().join("transformations/c.sql"), "CREATE VIEW c AS SELECT ${missing} AS x FROM a;");
    let said = refused(&["run"]);
    assert!(said.contains("missing") && said.contains('^'), "{said}");
    assert!(!folder.path().join("lake/tables").exists());
    succeed_in(folder.path(), &["dry-run", "--set", "missing=1"]);
}
