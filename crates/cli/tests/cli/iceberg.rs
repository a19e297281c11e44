//! The same pipeline with tables of Iceberg: one word is another one, and the rows are the same.

use std::path::Path;

use crate::{example, run_in, succeed, succeed_in, text, write};

/// Every row of the example's tables, in a fixed order.
fn rows(storage: &str, more: &[&str]) -> Vec<String> {
    [
        "SELECT * FROM customer_changes ORDER BY customer_id, changed_at, op, name",
        "SELECT * FROM customers ORDER BY customer_id",
        "SELECT * FROM customers_history ORDER BY customer_id, __START_AT",
    ]
    .iter()
    .map(|sql| succeed(&[&["query", sql, "--storage", storage, "--output", "csv"], more].concat()))
    .collect()
}

#[test]
fn the_example_has_the_same_rows_in_iceberg() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = example().join("pipeline.sql");
    let (delta, iceberg) = (folder.path().join("delta"), folder.path().join("ice berg"));
    succeed(&["run", text(&pipeline), "--storage", text(&delta)]);
    let call = ["run", text(&pipeline), "--storage", text(&iceberg), "--format", "iceberg"];
    succeed(&call);
    let expected = rows(text(&delta), &[]);
    assert!(expected.iter().all(|rows| rows.lines().count() > 100));
    // The storage says in which format its tables are.
    assert_eq!(rows(text(&iceberg), &[]), expected);
    assert_eq!(rows(text(&iceberg), &["--format", "iceberg"]), expected);
    // A second update finds nothing to do.
    let again = succeed(&[&call[..], &["--json"]].concat());
    let again: serde_json::Value = serde_json::from_str(&again).unwrap();
    assert!(again["flows"].as_array().unwrap().iter().all(|flow| flow["batches"] == 0), "{again}");
    assert_eq!(rows(text(&iceberg), &["--format", "iceberg"]), expected);
    assert!(iceberg.join("catalog.db").is_file());
    let metadata = iceberg.join("warehouse/default/customers/metadata");
    assert!(metadata.read_dir().unwrap().count() > 1);
    let status = succeed(&["status", "--storage", text(&iceberg), "--format", "iceberg"]);
    assert!(status.contains("customers_history"), "{status}");
}

fn pipeline(folder: &Path, more: &str) {
    write(&folder.join("pipeline.yml"), &format!("name: two\nstorage: lake\nformat: iceberg\n{more}"));
    write(
        &folder.join("transformations/a.sql"),
        "CREATE STREAMING TABLE a AS
           SELECT n FROM STREAM read_files('../in', format => 'json', schema => 'n BIGINT');",
    );
    write(&folder.join("in/1.json"), "{\"n\": 1}\n");
}

#[test]
fn a_spec_names_the_catalog_and_the_call_wins() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let settings = ["namespace: sales.eu", "warehouse: wh", "name: prod"];
    let settings = settings.map(|setting| format!("  catalog.{setting}\n")).concat();
    pipeline(folder, &format!("configuration:\n{settings}"));
    let sql = "SELECT n FROM a";
    // Asking makes nothing.
    std::fs::create_dir(folder.join("lake")).unwrap();
    assert_eq!(run_in(folder, &["query", sql]).status.code(), Some(2));
    assert_eq!(folder.join("lake").read_dir().unwrap().count(), 0);
    succeed_in(folder, &["run"]);
    assert!(folder.join("lake/wh/sales/eu/a/metadata").is_dir());
    assert_eq!(succeed_in(folder, &["query", sql, "--output", "csv"]), "n\n1\n");
    let elsewhere = ["query", sql, "--catalog", "namespace=elsewhere"];
    assert!(!run_in(folder, &elsewhere).status.success());
    assert!(run_in(folder, &[&elsewhere[..3], &["name=prod"]].concat()).status.success());
}

#[test]
fn what_is_wrong_with_a_catalog_is_said_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    pipeline(folder, "");
    for (options, said) in [
        (&["type=hive"][..], "`sql` or `rest`"),
        (&["type=rest"], "catalog.uri"),
        (&["uri=http://127.0.0.1:1/", "tokn=x"], "catalog.tokn"),
        (&["uri=postgresql://db/x"], "SQLite"),
    ] {
        let options: Vec<_> = options.iter().flat_map(|option| ["--catalog", option]).collect();
        let refused = run_in(folder, &[&["run"][..], &options].concat());
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{error}");
        assert!(error.contains(said), "{error}");
    }
    let delta = run_in(folder, &["run", "--format", "delta", "--catalog", "namespace=a"]);
    assert_eq!(delta.status.code(), Some(2));
    // Nobody listens there.
    let away = run_in(folder, &["run", "--catalog", "uri=http://127.0.0.1:1/"]);
    let error = String::from_utf8_lossy(&away.stderr).into_owned();
    assert_eq!(away.status.code(), Some(1), "{error}");
    assert!(error.contains("can't be reached"), "{error}");
}

/// The whole of it over a real catalog: `tests/rest-catalog/run` starts it and runs this.
#[ignore = "needs the server of tests/rest-catalog/run"]
#[test]
#[expect(clippy::disallowed_methods, reason = "the script that starts the server says where it is")]
fn rest_catalog_lists_the_tables_of_a_pipeline() {
    let variable = |name: &str| {
        std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run tests/rest-catalog/run"))
    };
    let (uri, home) = (variable("STRANDLINE_REST_CATALOG"), variable("STRANDLINE_REST_CATALOG_HOME"));
    let uri = format!("uri={uri}");
    let options = [
        "--format",
        "iceberg",
        "--catalog",
        &uri,
        "--catalog",
        "namespace=cli",
        "--catalog",
        "credential=tests:secret",
    ];
    let folder = tempfile::tempdir().unwrap();
    let pipeline = example().join("pipeline.sql");
    succeed(&["run", text(&pipeline), "--storage", text(folder.path())]);
    // The server says where tables lie: that is within the storage.
    let call = ["run", text(&pipeline), "--storage", &home];
    for more in [
        &[][..],
        &["--full-refresh-all"],
        &["--full-refresh-all", "--set", "strandline.writeMode=merge_on_read"],
    ] {
        succeed(&[&call[..], &options, more].concat());
        assert_eq!(rows(&home, &options), rows(text(folder.path()), &[]));
    }
    assert!(Path::new(&home).join("warehouse/cli/customers/metadata").is_dir());
}
