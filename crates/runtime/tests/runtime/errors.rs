//! Bad input gets an error that names what and where, changes nothing, and is no obstacle once it is mended.

use std::sync::Arc;

use serde_json::json;
use strandline_runtime::{ErrorKind, FlowStatus, state::LEASE_DURATION};

use crate::pipeline::{Bench, FORMATS, Format};

const SCHEMA: &str = "schema => 'k STRING, seq BIGINT, v BIGINT'";

fn cdc() -> String {
    format!(
        "SET pipelines.maxFlowRetryAttempts = 0;
         CREATE STREAMING TABLE t;
         CREATE FLOW changes AS AUTO CDC INTO t FROM STREAM read_files('in/*.json', format => 'json', {SCHEMA})
         KEYS (k) SEQUENCE BY seq STORED AS SCD TYPE 1;"
    )
}

/// Runs over a bad file, expects the reason to hold `parts`, mends the file, and expects the rows of both.
async fn refused_then_mended(bad: &str, parts: &[&str]) {
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("in/1.json", &[json!({"k": "a", "seq": 1, "v": 1})]);
        bench.succeed(&cdc()).await;
        let version = bench.version("t").await;
        bench.raw_file("in/2.json", bad);
        let report = bench.run(&cdc()).await.unwrap();
        let flow = &report.flows[0];
        assert_eq!(flow.status, FlowStatus::Failed);
        let reason = flow.reason.as_deref().unwrap();
        for part in parts.iter().chain(&["changes"]) {
            assert!(reason.contains(part), "`{part}` is not in: {reason}");
        }
        assert_eq!(bench.version("t").await, version, "nothing of the batch is visible");
        bench.file("in/2.json", &[json!({"k": "b", "seq": 2, "v": 2})]);
        bench.succeed(&cdc()).await;
        assert_eq!(bench.rows("SELECT count(*) AS n FROM t").await[0]["n"], json!(2));
    }
}

#[tokio::test]
async fn a_bad_file_that_is_taken_away_is_no_obstacle() {
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("in/1.json", &[json!({"k": "a", "seq": 1, "v": 1})]);
        bench.raw_file("in/2.json", "{");
        assert!(!bench.run(&cdc()).await.unwrap().is_success());
        std::fs::remove_file(bench.path().join("in/2.json")).unwrap();
        bench.file("in/3.json", &[json!({"k": "b", "seq": 2, "v": 2})]);
        bench.succeed(&cdc()).await;
        bench.file("in/4.json", &[json!({"k": "c", "seq": 2, "v": 2})]);
        bench.succeed(&cdc()).await;
        assert_eq!(bench.rows("SELECT count(*) AS n FROM t").await[0]["n"], json!(3));
    }
}

#[tokio::test]
async fn c33_a_null_key_is_refused_with_count_and_sample() {
    let bad =
        "{\"k\": \"x\", \"seq\": 2, \"v\": 7}\n{\"seq\": 3, \"v\": 8}\n{\"k\": null, \"seq\": 4, \"v\": 9}\n";
    refused_then_mended(bad, &["NULL_KEY", "`k`", "2 of 3", "v=8"]).await;
}

#[tokio::test]
async fn c31_a_null_sequence_is_refused_with_count_and_sample() {
    refused_then_mended("{\"k\": \"x\", \"v\": 7}\n", &["NULL_SEQUENCE", "1 of 1", "v=7"]).await;
}

#[tokio::test]
async fn malformed_json_names_file_line_and_sample() {
    refused_then_mended(
        "{\"k\": \"x\", \"seq\": 2}\n{\"k\": oops}\nnot json\n",
        &["in/2.json", "line 2", "bad lines 2", "oops"],
    )
    .await;
}

#[tokio::test]
async fn a_value_of_another_type_names_file_line_and_sample() {
    refused_then_mended("{\"k\": \"x\", \"seq\": \"soon\"}\n", &["in/2.json", "line 1", "soon"]).await;
}

#[tokio::test]
async fn a_number_that_would_be_cut_names_file_line_and_column() {
    refused_then_mended(
        "{\"k\": \"x\", \"seq\": 2, \"v\": 1.9}\n",
        &["in/2.json", "line 1", "column `v`", "1.9"],
    )
    .await;
}

#[tokio::test]
async fn a_file_that_is_no_parquet_is_named() {
    let bench = Bench::new(Format::Delta);
    bench.raw_file("in/1.parquet", "this is no parquet");
    let sql = "CREATE STREAMING TABLE t AS SELECT * FROM STREAM read_files('in/*.parquet', format => 'parquet', schema => 'n BIGINT');";
    let report = bench.run(sql).await.unwrap();
    assert!(report.flows[0].reason.as_deref().unwrap().contains("1.parquet"), "{report:?}");
}

#[tokio::test]
async fn a_missing_folder_fails_its_flow_alone() {
    let bench = Bench::new(Format::Delta);
    bench.file("in/1.json", &[json!({ "n": 1 })]);
    let sql = "
        SET pipelines.maxFlowRetryAttempts = 0;
        CREATE STREAMING TABLE a AS SELECT * FROM STREAM read_files('nowhere/*.json', format => 'json', schema => 'n BIGINT');
        CREATE STREAMING TABLE b AS SELECT * FROM STREAM read_files('in/*.json', format => 'json', schema => 'n BIGINT');
        CREATE STREAMING TABLE c AS SELECT * FROM STREAM(a);";
    let report = bench.run(sql).await.unwrap();
    let status: Vec<_> = report.flows.iter().map(|flow| flow.status).collect();
    assert_eq!(status, [FlowStatus::Failed, FlowStatus::Completed, FlowStatus::Skipped], "R-13");
    assert!(report.flows[0].reason.as_deref().unwrap().contains("nowhere"));
    assert!(report.flows[2].reason.as_deref().unwrap().contains('a'));
}

#[tokio::test]
async fn c28_a_tie_can_be_made_an_error_and_unknown_properties_are_refused() {
    for format in FORMATS {
        let bench = Bench::new(format);
        let table =
            |properties: &str| cdc().replace("TABLE t;", &format!("TABLE t TBLPROPERTIES ({properties});"));
        bench.file("in/1.json", &[json!({"k": "a", "seq": 1, "v": 1}), json!({"k": "a", "seq": 1, "v": 2})]);
        let report = bench.run(&table("'strandline.onTie' = 'error', 'owner' = 'us'")).await.unwrap();
        let reason = report.flows[0].reason.clone().unwrap();
        assert!(reason.contains("k=a") && reason.contains("sequence 1"), "{reason}");
        for refused in
            ["'strandline.onTie' = 'coin'", "'pipelines.unknown' = '1'", "'delta.appendOnly' = 'true'"]
        {
            let errors = bench.run(&table(refused)).await.unwrap_err();
            assert_eq!(errors[0].kind(), ErrorKind::Unsupported, "{errors:?}");
        }
        let report = bench.succeed(&table("'pipelines.channel' = 'PREVIEW'")).await;
        assert_eq!(report.flows[0].tied, 1, "the larger row wins, and the tie is counted");
        assert_eq!(bench.rows("SELECT v FROM t").await[0]["v"], json!(2));
    }
}

#[tokio::test]
async fn g27_a_dry_run_reports_every_error_and_writes_nothing() {
    let bench = Bench::new(Format::Delta);
    let sql = format!(
        "CREATE STREAMING TABLE t;
         CREATE FLOW a AS AUTO CDC INTO t FROM STREAM read_files('in', format => 'json', {SCHEMA}) KEYS (nope) SEQUENCE BY seq;
         CREATE STREAMING TABLE u AS SELECT missing FROM STREAM read_files('in', format => 'json', {SCHEMA});
         CREATE STREAMING TABLE w AS SELECT sum(v) AS s FROM STREAM read_files('in', format => 'json', {SCHEMA});"
    );
    std::fs::create_dir(bench.path().join("in")).unwrap();
    let errors = bench.project(&sql).dry_run().await.unwrap_err();
    let text: Vec<String> = errors.iter().map(strandline_runtime::Error::full_text).collect();
    assert_eq!(errors.len(), 3, "{text:?}");
    for (part, flow) in [("nope", "flow a"), ("missing", "flow u"), ("aggregate", "flow w")] {
        assert!(text.iter().any(|t| t.contains(part) && t.contains(flow)), "{part}: {text:?}");
    }
    let errors = bench.run(&sql).await.unwrap_err();
    assert!(errors.iter().all(|e| matches!(e.kind(), ErrorKind::Definition | ErrorKind::Unsupported)));
    assert!(bench.storage.format.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn t11_drift_of_keys_shape_or_tracked_columns_is_refused_by_name() {
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("in/1.json", &[json!({"k": "a", "seq": 1, "v": 1})]);
        let flow = |keys: &str, tail: &str| {
            format!(
                "CREATE STREAMING TABLE t; CREATE FLOW t AS AUTO CDC INTO t FROM STREAM read_files('in', format => 'json', {SCHEMA})
                 KEYS ({keys}) SEQUENCE BY seq COLUMNS * EXCEPT (seq) {tail};"
            )
        };
        let flow_keeping = |keys: &str, tail: &str| flow(keys, tail);
        bench.succeed(&flow("k", "STORED AS SCD TYPE 2")).await;
        for (sql, condition) in [
            (flow_keeping("k, v", "STORED AS SCD TYPE 2"), "KEY_SCHEMA_DRIFT"),
            (flow_keeping("k", "STORED AS SCD TYPE 1"), "SCD_TYPE_DRIFT"),
            (flow_keeping("k", "STORED AS SCD TYPE 2 TRACK HISTORY ON (v)"), "TRACK_HISTORY_DRIFT"),
            (
                flow_keeping("k", "STORED AS SCD TYPE 2").replace("BY seq", "BY CAST(seq AS STRING)"),
                "SEQUENCING_TYPE_DRIFT",
            ),
        ] {
            let report = bench.run(&sql).await.unwrap();
            let reason = report.flows[0].reason.clone().unwrap_or_default();
            assert!(reason.contains(condition), "{condition} is not in: {reason}");
            assert!(report.flows[0].help.as_deref().is_some_and(|help| help.contains("--full-refresh")));
        }
        bench.succeed(&flow("k", "STORED AS SCD TYPE 2")).await;
    }
}

#[tokio::test]
async fn a28_a_second_flow_may_join_a_target_whose_sequence_is_a_kept_column() {
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("in/1.json", &[json!({"k": "a", "seq": 5, "v": 5})]);
        bench.file("old/1.json", &[json!({"k": "a", "seq": 1, "v": 1}), json!({"k": "b", "seq": 1, "v": 1})]);
        bench.succeed(&cdc()).await;
        let backfill = format!(
            "{} CREATE FLOW old AS AUTO CDC ONCE INTO t FROM read_files('old', format => 'json', {SCHEMA}) KEYS (k) SEQUENCE BY seq;",
            cdc()
        );
        bench.succeed(&backfill).await;
        let rows = bench.rows("SELECT * FROM t ORDER BY k").await;
        assert_eq!(
            json!(rows),
            json!([{"k": "a", "seq": 5, "v": 5}, {"k": "b", "seq": 1, "v": 1}]),
            "{format:?}"
        );
    }
}

#[tokio::test]
async fn t08_a_new_column_is_added_and_old_rows_are_null() {
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("in/1.json", &[json!({"k": "a", "seq": 1, "v": 1})]);
        let flow = |schema: &str, scd: u8| {
            format!(
                "CREATE STREAMING TABLE t; CREATE FLOW t AS AUTO CDC INTO t FROM STREAM read_files('in', format => 'json', schema => '{schema}')
                 KEYS (k) SEQUENCE BY seq COLUMNS * EXCEPT (seq) STORED AS SCD TYPE {scd};"
            )
        };
        bench.succeed(&flow("k STRING, seq BIGINT, v BIGINT", 2)).await;
        bench.file(
            "in/2.json",
            &[json!({"k": "a", "seq": 2, "v": 1, "w": "new"}), json!({"k": "b", "seq": 2, "v": 1})],
        );
        bench.succeed(&flow("k STRING, seq BIGINT, v BIGINT, w STRING", 2)).await;
        let rows = bench.rows("SELECT k, w, __START_AT, __END_AT FROM t ORDER BY k, __START_AT").await;
        assert_eq!(
            json!(rows),
            json!([
                {"k": "a", "w": null, "__START_AT": 1, "__END_AT": 2},
                {"k": "a", "w": "new", "__START_AT": 2, "__END_AT": null},
                {"k": "b", "w": null, "__START_AT": 2, "__END_AT": null},
            ]),
            "{format:?}"
        );
    }
}

#[tokio::test]
async fn t09_a_column_that_vanishes_keeps_its_values_and_t10_a_changed_type_is_refused() {
    for format in FORMATS {
        let bench = Bench::new(format);
        let flow = |schema: &str, scd: u8| {
            format!(
                "SET pipelines.maxFlowRetryAttempts = 0; CREATE STREAMING TABLE t; CREATE FLOW t AS AUTO CDC INTO t
                 FROM STREAM read_files('in', format => 'json', schema => '{schema}') KEYS (k) SEQUENCE BY seq STORED AS SCD TYPE {scd};"
            )
        };
        bench.file(
            "in/1.json",
            &[json!({"k": 1, "seq": 1, "v": 1, "w": "x"}), json!({"k": 2, "seq": 1, "v": 1, "w": "y"})],
        );
        bench.succeed(&flow("k BIGINT, seq BIGINT, v BIGINT, w STRING", 1)).await;
        bench.file("in/2.json", &[json!({"k": 1, "seq": 2, "v": 2}), json!({"k": 3, "seq": 2, "v": 3})]);
        let report = bench.run(&flow("k BIGINT, seq BIGINT, v STRING, w STRING", 1)).await.unwrap();
        let reason = report.flows[0].reason.clone().unwrap();
        assert!(reason.contains("`v`") && reason.contains("Int64") && reason.contains("Utf8"), "{reason}");
        bench.succeed(&flow("k BIGINT, seq BIGINT, v BIGINT", 1)).await;
        // A late event that still has the column is its newest author.
        bench.file("in/3.json", &[json!({"k": 3, "seq": 1, "v": 0, "w": "z"})]);
        bench.succeed(&flow("k BIGINT, seq BIGINT, v BIGINT, w STRING", 1)).await;
        let rows = bench.rows("SELECT k, v, w FROM t ORDER BY k").await;
        let row = |k: i64, v: i64, w: &str| json!({"k": k, "v": v, "w": w});
        assert_eq!(json!(rows), json!([row(1, 2, "x"), row(2, 1, "y"), row(3, 3, "z")]), "{format:?}");
    }
}

#[tokio::test]
async fn r27_a_second_process_is_refused_and_named() {
    let bench = Bench::new(Format::Delta);
    let folder = tempfile::tempdir().unwrap();
    let storage =
        strandline_runtime::Storage { folder: Some(folder.path().to_owned()), ..bench.storage.clone() };
    let lease = |storage: strandline_runtime::Storage| async move {
        let clock = Arc::new(strandline_runtime::clock::SystemClock);
        strandline_runtime::state::Lease::acquire(&storage, clock, LEASE_DURATION).await
    };
    let first = lease(storage.clone()).await.unwrap();
    let second = lease(storage.clone()).await.unwrap_err();
    assert_eq!(second.kind(), ErrorKind::Busy);
    let epoch = first.epoch;
    drop(first);
    assert!(lease(storage).await.unwrap().epoch > epoch, "each lease has an epoch of its own");
}

#[tokio::test]
async fn a_property_of_change_flows_is_refused_on_a_table_that_rows_are_appended_to() {
    let bench = Bench::new(Format::Memory);
    bench.file("in/1.json", &[json!({"k": "a"})]);
    for property in [
        "'strandline.onTie' = 'error'",
        "'strandline.systemTime' = 'monotonic'",
        "'strandline.acceptHorizon' = 'true'",
        "'pipelines.cdc.tombstoneGCThresholdInSeconds' = '60'",
    ] {
        let sql = format!(
            "CREATE STREAMING TABLE t TBLPROPERTIES ({property}) AS
             SELECT * FROM STREAM read_files('in/*.json', format => 'json', schema => 'k STRING')"
        );
        let errors = bench.run(&sql).await.unwrap_err();
        let text: Vec<String> = errors.iter().map(strandline_runtime::Error::full_text).collect();
        assert!(text.iter().any(|text| text.contains("change flows only")), "{property}: {text:?}");
    }
}
