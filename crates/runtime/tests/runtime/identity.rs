//! What a flow remembers belongs to its source, its target and its pipeline: when one of them is another than before, it says so.

use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use serde_json::json;
use strandline_runtime::FlowStatus;

use crate::pipeline::{Bench, FORMATS, Format};

fn append(path: &str) -> String {
    format!(
        "SET pipelines.maxFlowRetryAttempts = 0;
         CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('{path}', format => 'json', schema => 'n BIGINT');"
    )
}

/// Why the only flow of a pipeline failed.
async fn reason(bench: &Bench, sql: &str) -> String {
    let report = bench.run(sql).await.unwrap();
    report.flows.into_iter().find_map(|flow| flow.reason).expect("a flow fails")
}

async fn remove_below(bench: &Bench, folder: &str) {
    let store = &bench.storage.store;
    let files: Vec<_> = store.list(Some(&Path::from(folder))).try_collect().await.unwrap();
    assert!(!files.is_empty(), "{folder} holds something");
    for file in files {
        store.delete(&file.location).await.unwrap();
    }
}

#[tokio::test]
async fn a_flow_that_is_pointed_to_another_source_says_so_and_takes_nothing() {
    let bench = Bench::new(Format::Delta);
    bench.file("a/x.json", &[json!({ "n": 1 })]);
    bench.file("b/x.json", &[json!({ "n": 2 })]);
    bench.succeed(&append("a/*.json")).await;
    assert!(reason(&bench, &append("b/*.json")).await.contains("another folder"));
    // Another pattern below the same folder is the same source.
    bench.file("a/y.json", &[json!({ "n": 3 })]);
    assert_eq!(bench.succeed(&append("a/?.json")).await.flows[0].rows_in, 1);

    let chain = |table: &str| {
        format!(
            "CREATE STREAMING TABLE a AS SELECT * FROM STREAM read_files('a', format => 'json', schema => 'n BIGINT');
             CREATE STREAMING TABLE b AS SELECT * FROM STREAM read_files('b', format => 'json', schema => 'n BIGINT');
             CREATE STREAMING TABLE c AS SELECT * FROM STREAM({table});"
        )
    };
    bench.succeed(&chain("a")).await;
    assert!(reason(&bench, &chain("b")).await.contains("another table"));
}

#[tokio::test]
async fn a_target_that_is_gone_is_not_made_anew_and_empty() {
    let bench = Bench::new(Format::Delta);
    bench.file("in/1.json", &[json!({ "n": 1 })]);
    bench.succeed(&append("in")).await;
    remove_below(&bench, "tables/t").await;
    assert!(reason(&bench, &append("in")).await.contains("gone"));
}

#[tokio::test]
async fn a_pipeline_that_is_renamed_finds_its_stamps() {
    let bench = Bench::new(Format::Delta);
    bench.file("in/1.json", &[json!({ "n": 1 })]);
    bench.succeed(&append("in")).await;
    // As if the process had died between the commit and its mark.
    remove_below(&bench, "_strandline/flows/t/0/done").await;
    let report = bench.project_named("renamed", &append("in")).run().await.unwrap();
    assert!(report.is_success());
    assert_eq!(bench.rows("SELECT count(*) AS n FROM t").await[0]["n"], json!(1));
}

#[tokio::test]
async fn a_batch_that_landed_needs_its_input_no_more() {
    for format in FORMATS {
        let bench = Bench::new(format);
        let sql = "SET pipelines.maxFlowRetryAttempts = 0; CREATE STREAMING TABLE t;
            CREATE FLOW seed AS AUTO CDC ONCE INTO t FROM read_files('in', format => 'json', schema => 'k BIGINT, s BIGINT') KEYS (k) SEQUENCE BY s;";
        bench.file("in/1.json", &[json!({ "k": 1, "s": 1 })]);
        bench.succeed(sql).await;
        remove_below(&bench, "_strandline/flows/seed/0/done").await;
        remove_below(&bench, "_strandline/flows/seed/0/complete").await;
        std::fs::remove_file(bench.path().join("in/1.json")).unwrap();
        assert_eq!(bench.succeed(sql).await.flows[0].status, FlowStatus::Completed);
        assert_eq!(bench.rows("SELECT count(*) AS n FROM t").await[0]["n"], json!(1));
    }
}

#[tokio::test]
async fn folders_and_files_may_have_brackets_in_their_names() {
    let bench = Bench::new(Format::Delta);
    bench.file("odd [1] {x}/q[1].json", &[json!({ "n": 1 })]);
    bench.file("odd [1] {x}/r.json", &[json!({ "n": 2 })]);
    let table = |name: &str, path: &str| {
        format!(
            "CREATE STREAMING TABLE {name} AS SELECT * FROM STREAM read_files('{path}', format => 'json', schema => 'n BIGINT');"
        )
    };
    let sql = [table("a", "odd [1] {x}/*.json"), table("b", "odd [1] {x}/q[1].json"), table("c", "*/r.json")]
        .concat();
    bench.succeed(&sql).await;
    let rows = bench
        .rows("SELECT (SELECT sum(n) FROM a) AS a, (SELECT sum(n) FROM b) AS b, (SELECT sum(n) FROM c) AS c")
        .await;
    assert_eq!(json!(rows), json!([{ "a": 3, "b": 1, "c": 2 }]));
}

#[tokio::test]
async fn queries_that_depend_on_how_the_stream_is_cut_are_refused() {
    let bench = Bench::new(Format::Delta);
    bench.file("in/1.json", &[json!({ "n": 1 })]);
    let stream = "STREAM read_files('in', format => 'json', schema => 'n BIGINT')";
    let batch = "read_files('in', format => 'json', schema => 'n BIGINT')";
    let with = |flow: &str| {
        format!("CREATE STREAMING TABLE dim AS SELECT n AS d FROM {stream}; CREATE STREAMING TABLE t; {flow}")
    };
    let insert = |query: &str| with(&format!("CREATE FLOW f AS INSERT INTO t BY NAME {query};"));
    for refused in [
        insert(&format!("SELECT d FROM dim LEFT JOIN {stream} s ON d = s.n")),
        insert(&format!("SELECT n FROM {stream} UNION ALL SELECT d AS n FROM dim")),
        insert(&format!("SELECT d FROM dim WHERE d NOT IN (SELECT n FROM {stream})")),
        insert(&format!("SELECT DISTINCT n FROM {stream}")),
        with(&format!("CREATE FLOW f AS INSERT INTO ONCE t BY NAME SELECT count(*) AS n FROM {batch};")),
    ] {
        let errors = bench.project(&refused).dry_run().await.unwrap_err();
        assert!(errors[0].full_text().contains("batch by batch"), "{refused}: {errors:?}");
    }
    bench
        .succeed(&insert(&format!("SELECT s.n, d FROM {stream} s LEFT JOIN dim ON d = s.n WHERE s.n > 0")))
        .await;
    assert_eq!(json!(bench.rows("SELECT * FROM t").await), json!([{ "n": 1, "d": 1 }]));
}

#[tokio::test]
async fn json_that_nests_without_end_is_an_error_and_no_crash() {
    let bench = Bench::new(Format::Delta);
    bench.raw_file(
        "in/1.json",
        format!("{{\"n\": 1}}\n{{\"n\": {}{}}}\n", "[".repeat(100_000), "]".repeat(100_000)),
    );
    let reason = reason(&bench, &append("in")).await;
    assert!(reason.contains("nests") && reason.contains("line 2") && reason.contains("1.json"), "{reason}");
}

#[tokio::test]
async fn misspelt_settings_and_other_formats_are_refused() {
    let bench = Bench::new(Format::Delta);
    bench.file("in/1.json", &[json!({ "n": 1 })]);
    let misspelt = append("in").replace("maxFlowRetryAttempts", "maxFlowRetryAttempt");
    assert!(bench.run(&misspelt).await.unwrap_err()[0].full_text().contains("maxFlowRetryAttempt"));
    let iceberg = append("in").replace("TABLE t AS", "TABLE t USING iceberg AS");
    assert!(bench.run(&iceberg).await.unwrap_err()[0].full_text().contains("iceberg"));
    assert!(strandline_runtime::query(&bench.storage, "COPY (SELECT 1) TO '/tmp/never.csv'").await.is_err());
}

#[tokio::test]
async fn inferred_columns_are_remembered() {
    let bench = Bench::new(Format::Delta);
    let sql = "SET pipelines.maxFlowRetryAttempts = 0;
        CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('in/*.json', format => 'json', schemaEvolutionMode => 'none');
        CREATE STREAMING TABLE u AS SELECT n + 1 AS m FROM STREAM(t);";
    bench.file("in/1.json", &[json!({ "n": 1 })]);
    bench.succeed(sql).await;
    // The file is taken away: what is known of its columns stays.
    std::fs::remove_file(bench.path().join("in/1.json")).unwrap();
    bench.succeed(sql).await;
    bench.file("in/2.json", &[json!({ "n": 1.5 })]);
    let report = bench.run(sql).await.unwrap();
    assert!(report.flows[0].reason.as_deref().unwrap().contains("column `n`"), "{report:?}");
    bench.file("in/2.json", &[json!({ "n": 5, "new": true })]);
    bench.succeed(sql).await;
    assert_eq!(json!(bench.rows("SELECT m FROM u ORDER BY m").await), json!([{ "m": 2 }, { "m": 6 }]));
}
