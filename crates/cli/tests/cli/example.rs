//! The shipped example, and what the binary says.

use crate::{example, run, succeed, tables, text};

#[test]
fn the_example_runs_and_running_it_again_changes_nothing() {
    let storage = tempfile::tempdir().unwrap();
    let pipeline = example().join("pipeline.sql");
    let call = ["run", text(&pipeline), "--storage", text(storage.path())];
    let report = succeed(&call);
    for flow in ["customer_changes", "customers_now", "customers_then"] {
        assert!(report.contains(flow), "{report}");
    }
    let first = tables(text(storage.path()));
    let versions = || {
        let status = succeed(&["status", "--storage", text(storage.path()), "--json"]);
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        status["tables"].clone()
    };
    let before = versions();
    let again = succeed(&["run", text(&pipeline), "--storage", text(storage.path()), "--json"]);
    let again: serde_json::Value = serde_json::from_str(&again).unwrap();
    assert!(again["flows"].as_array().unwrap().iter().all(|flow| flow["batches"] == 0), "{again}");
    assert_eq!(tables(text(storage.path())), first);
    assert_eq!(versions(), before, "no new version");
}

#[test]
fn current_versions_are_the_rows_of_type_1() {
    let storage = tempfile::tempdir().unwrap();
    succeed(&["run", text(&example().join("pipeline.sql")), "--storage", text(storage.path())]);
    let query = |sql: &str| succeed(&["query", sql, "--storage", text(storage.path()), "--output", "csv"]);
    let columns = "customer_id, name, email, city, plan";
    let now = query(&format!("SELECT {columns} FROM customers ORDER BY customer_id"));
    let current = query(&format!(
        "SELECT {columns} FROM customers_history WHERE __END_AT IS NULL ORDER BY customer_id"
    ));
    assert_eq!(now, current, "Law 2");
    let overlaps = query(
        "SELECT count(*) FROM customers_history a JOIN customers_history b ON a.customer_id = b.customer_id
         WHERE a.__START_AT < b.__START_AT AND (a.__END_AT IS NULL OR a.__END_AT > b.__START_AT)",
    );
    assert!(overlaps.trim_end().ends_with('0'), "Law 4: {overlaps}");
}

#[test]
fn a_history_is_read_as_of_a_moment() {
    let storage = tempfile::tempdir().unwrap();
    succeed(&["run", text(&example().join("pipeline.sql")), "--storage", text(storage.path())]);
    let query = |sql: &str| succeed(&["query", sql, "--storage", text(storage.path()), "--output", "csv"]);
    let columns = "customer_id, plan, __START_AT";
    let moments = query("SELECT DISTINCT __START_AT FROM customers_history ORDER BY __START_AT");
    let moments: Vec<&str> = moments.lines().skip(1).collect();
    assert!(moments.len() > 2, "{moments:?}");
    for moment in moments.iter().step_by(moments.len() / 3) {
        let by_hand = query(&format!(
            "SELECT {columns} FROM customers_history
             WHERE __START_AT <= '{moment}' AND (__END_AT IS NULL OR __END_AT > '{moment}') ORDER BY customer_id"
        ));
        let as_of = query(&format!(
            "SELECT {columns} FROM as_of(customers_history, business => '{moment}') ORDER BY customer_id"
        ));
        assert_eq!(as_of, by_hand, "{moment}");
    }
    let current = query(&format!("SELECT {columns} FROM customers_history_current ORDER BY customer_id"));
    let open = query(&format!(
        "SELECT {columns} FROM customers_history WHERE __END_AT IS NULL ORDER BY customer_id"
    ));
    assert_eq!(current, open);
    let refused = run(&["query", "SELECT * FROM as_of(customers, 'x')", "--storage", text(storage.path())]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no history"));
}

#[test]
fn the_readme_of_the_example_prints_what_comes_out() {
    let storage = tempfile::tempdir().unwrap();
    succeed(&["run", text(&example().join("pipeline.sql")), "--storage", text(storage.path())]);
    let readme = std::fs::read_to_string(example().join("README.md")).unwrap();
    let mut shown = 0;
    for block in readme.split("```").skip(1).step_by(2) {
        // A block that begins with a query holds the query and the table that it prints.
        let Some(rest) = block.trim_start_matches("text").trim_start().strip_prefix("> ") else { continue };
        let (sql, table) = rest.split_once('\n').unwrap();
        let printed = succeed(&["query", sql, "--storage", text(storage.path())]);
        assert_eq!(printed.trim(), table.trim(), "{sql}");
        shown += 1;
    }
    assert!(shown >= 2, "the README shows queries");
}

#[test]
fn a_dry_run_prints_the_graph_and_writes_nothing() {
    let storage = tempfile::tempdir().unwrap();
    let folder = storage.path().join("lake");
    let printed = succeed(&["dry-run", text(&example().join("pipeline.sql")), "--storage", text(&folder)]);
    assert!(printed.contains("customers_then") && printed.contains("SCD TYPE 2"), "{printed}");
    assert!(!folder.join("tables").exists() && !folder.join("_strandline").exists());
}

#[test]
fn exit_codes_tell_what_kind_of_trouble_it_is() {
    let storage = tempfile::tempdir().unwrap();
    let pipeline = storage.path().join("p.sql");
    let call = |sql: &str| {
        std::fs::write(&pipeline, sql).unwrap();
        let output = run(&["run", text(&pipeline), "--storage", text(&storage.path().join("lake"))]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = call("CREATE STREAMING TABLE t AS SELECT * FORM x;");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("p.sql:1:") && said.contains('^'), "file, line, column and a caret: {said}");
    let (code, said) = call(
        "CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t FROM STREAM(nope) KEYS (k) SEQUENCE BY s;",
    );
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("nope"), "{said}");
    let (code, said) = call(
        "SET pipelines.maxFlowRetryAttempts = 0;
         CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('none', format => 'json', schema => 'a BIGINT');",
    );
    assert_eq!(code, Some(1), "{said}");
    let output = run(&["query", "SELECT 1", "--storage", text(&storage.path().join("nothing"))]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_pipeline_spec_names_its_files_and_storage() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    write(
        "pipeline.yml",
        "name: shop\nstorage: lake\nlibraries:\n  - glob:\n      include: transformations/**\nconfiguration:\n  pipelines.maxFlowRetryAttempts: \"0\"\n",
    );
    write(
        "transformations/a.sql",
        "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('../in', format => 'json', schema => 'n BIGINT');",
    );
    write("in/1.json", "{\"n\": 41}\n");
    succeed(&["run", text(&folder.path().join("pipeline.yml"))]);
    let lake = folder.path().join("lake");
    assert_eq!(
        succeed(&["query", "SELECT n + 1 AS m FROM t", "--storage", text(&lake), "--output", "json"]).trim(),
        "{\"m\":42}"
    );
}

#[test]
fn nightly_exports_become_a_history() {
    let storage = tempfile::tempdir().unwrap();
    let pipeline = example().join("../exports/pipeline.sql");
    let run = || succeed(&["run", text(&pipeline), "--storage", text(storage.path()), "--json"]);
    let batches = |report: &str| -> Vec<u64> {
        let report: serde_json::Value = serde_json::from_str(report).unwrap();
        report["flows"].as_array().unwrap().iter().map(|flow| flow["batches"].as_u64().unwrap()).collect()
    };
    assert_eq!(batches(&run()), [3, 1], "every export, and the newest one");
    let query = |sql: &str| succeed(&["query", sql, "--storage", text(storage.path()), "--output", "csv"]);
    let history =
        query("SELECT id, plan, __START_AT, __END_AT FROM customers_history ORDER BY id, __START_AT");
    assert!(history.contains("2,pro,2026-03-01,2026-03-02\n2,free,2026-03-03,"), "{history}");
    let columns = "id, name, plan";
    assert_eq!(
        query(&format!("SELECT {columns} FROM customers ORDER BY id")),
        query(&format!("SELECT {columns} FROM customers_history WHERE __END_AT IS NULL ORDER BY id")),
        "Law 2"
    );
    assert_eq!(batches(&run()), [0, 0]);
}
