//! What table properties and clauses mean over several updates: floors, horizons, ends of validity, drift.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value as Json, json};
use strandline_runtime::{FlowReport, FlowStatus, UpdateReport, clock::Clock};

use crate::pipeline::{Bench, FORMATS, Format};

const SOURCE: &str = "FROM STREAM read_files('in/*.json', format => 'json', maxFilesPerTrigger => 1,
    schema => 'k STRING, seq BIGINT, sys BIGINT, op STRING, v BIGINT, w BIGINT, ends BIGINT, mask ARRAY<STRING>')";

/// A table `t` with these properties and one flow with these clauses.
fn pipeline(properties: &str, clauses: &str) -> String {
    format!(
        "SET pipelines.maxFlowRetryAttempts = 0;
         CREATE STREAMING TABLE t {properties};
         CREATE FLOW f AS AUTO CDC INTO t {SOURCE} KEYS (k) {clauses};"
    )
}

fn only(report: &UpdateReport) -> &FlowReport {
    report.flows.iter().find(|flow| flow.flow == "f").unwrap()
}

#[derive(Debug, Default)]
struct Hands(AtomicU64);

impl Clock for Hands {
    fn now(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::Relaxed))
    }
}

/// Runs at a moment, in seconds.
async fn run_at(bench: &Bench, sql: &str, seconds: u64) -> UpdateReport {
    let hands = Hands::default();
    hands.0.store(seconds, Ordering::Relaxed);
    bench.project(sql).with_clock(Arc::new(hands)).run().await.unwrap()
}

#[tokio::test]
async fn c_17_a_truncate_of_an_empty_table_defeats_what_comes_late() {
    let sql =
        pipeline("", "APPLY AS TRUNCATE WHEN op = 'T' SEQUENCE BY seq COLUMNS (k, v) STORED AS SCD TYPE 1");
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("in/1.json", &[json!({"seq": 5, "op": "T"})]);
        bench.succeed(&sql).await;
        assert_eq!(bench.version("t").await, 1, "a batch that only moves the floor is committed");
        bench.file("in/2.json", &[json!({"k": "a", "seq": 4, "v": 1}), json!({"k": "b", "seq": 5, "v": 2})]);
        let report = bench.succeed(&sql).await;
        assert_eq!(only(&report).barrier_defeated, 1, "{report:?}");
        let rows = bench.rows("SELECT k, v FROM t").await;
        assert_eq!(json!(rows), json!([{"k": "b", "v": 2}]));
        // The same truncate again changes nothing, and commits nothing.
        bench.file("in/3.json", &[json!({"seq": 5, "op": "T"})]);
        bench.succeed(&sql).await;
        assert_eq!(bench.version("t").await, 2);
    }
}

#[tokio::test]
async fn a12_monotonic_system_time_takes_its_floor_from_the_table() {
    let clauses = "SEQUENCE BY seq SYSTEM SEQUENCE BY sys COLUMNS (k, v) STORED AS BITEMPORAL";
    for (properties, expected, rewritten) in [
        (
            "TBLPROPERTIES ('strandline.systemTime' = 'monotonic')",
            json!([[1, 10, 15], [2, 20, null], [3, 15, 20]]),
            0,
        ),
        ("", json!([[1, 10, 12], [2, 12, 15], [3, 15, null]]), 1),
    ] {
        for format in FORMATS {
            let bench = Bench::new(format);
            let sql = pipeline(properties, clauses);
            let known = |sys: i64, v: i64| json!({"k": "a", "seq": 1, "sys": sys, "v": v});
            bench.file("in/1.json", &[known(10, 1), known(15, 3)]);
            bench.file("in/2.json", &[json!({"k": "z", "seq": 1, "sys": 20, "v": 1})]);
            bench.succeed(&sql).await;
            // Claims to be known since 12, and came after 20 was seen.
            bench.file("in/3.json", &[json!({"k": "a", "seq": 1, "sys": 12, "v": 2})]);
            let report = bench.succeed(&sql).await;
            let rows = bench
                .rows(
                    "SELECT v, __SYSTEM_START_AT AS s, __SYSTEM_END_AT AS e FROM t WHERE k = 'a' ORDER BY v",
                )
                .await;
            let rows: Vec<Json> = rows.iter().map(|row| json!([row["v"], row["s"], row["e"]])).collect();
            assert_eq!(json!(rows), expected, "{properties}");
            assert_eq!(only(&report).past_beliefs_rewritten, rewritten, "{report:?}");
        }
    }
}

#[tokio::test]
async fn a4_old_tombstones_are_collected_and_leave_a_horizon() {
    let properties = "TBLPROPERTIES ('pipelines.cdc.tombstoneGCThresholdInSeconds' = '10')";
    let clauses = "APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS (k, v) STORED AS SCD TYPE 1";
    let sql = pipeline(properties, clauses);
    for format in FORMATS {
        let bench = Bench::new(format);
        let upsert = |k: &str, seq: i64| json!({"k": k, "seq": seq, "v": seq});
        bench.file("in/1.json", &[upsert("a", 1), json!({"k": "a", "seq": 5, "op": "D"}), upsert("b", 1)]);
        run_at(&bench, &sql, 100).await;
        let version = bench.version("t").await;
        bench.file("in/2.json", &[upsert("a", 3)]);
        let report = run_at(&bench, &sql, 110).await;
        assert_eq!((only(&report).tombstone_defeated, bench.version("t").await), (1, version), "it is there");

        let report = run_at(&bench, &sql, 111).await;
        assert!(report.is_success() && only(&report).notice.is_none(), "{report:?}");
        assert_eq!(bench.version("t").await, version + 1, "collected, in one commit");
        run_at(&bench, &sql, 200).await;
        assert_eq!(bench.version("t").await, version + 1, "and once");

        bench.file("in/3.json", &[upsert("a", 4), upsert("new", 2), upsert("newer", 9), upsert("b", 2)]);
        let report = run_at(&bench, &sql, 201).await;
        assert_eq!(only(&report).horizon_dropped, 2, "{report:?}");
        let rows = bench.rows("SELECT k, v FROM t ORDER BY k").await;
        assert_eq!(json!(rows), json!([{"k": "b", "v": 2}, {"k": "newer", "v": 9}]));

        // A history would vanish now, and says so.
        let seed = "CREATE FLOW seed AS AUTO CDC ONCE INTO t FROM (SELECT k, seq, v FROM old) KEYS (k) SEQUENCE BY seq COLUMNS (k, v) STORED AS SCD TYPE 1;
             CREATE STREAMING TABLE old AS SELECT * FROM STREAM read_files('old/*.json', format => 'json', schema => 'k STRING, seq BIGINT, v BIGINT');";
        bench.file("old/1.json", &[upsert("old", 1), upsert("older", 20)]);
        let report = run_at(&bench, &format!("{sql} {seed}"), 202).await;
        let refused = report.flows.iter().find(|flow| flow.flow == "seed").unwrap();
        assert_eq!(refused.status, FlowStatus::Failed);
        let help = refused.help.clone().unwrap_or_default();
        assert!(help.contains("strandline.acceptHorizon"), "{refused:?}");
        assert!(refused.reason.as_ref().unwrap().contains("horizon 5"), "{refused:?}");
        let accepting = sql.replace("= '10')", "= '10', 'strandline.acceptHorizon' = 'true')");
        let report = run_at(&bench, &format!("{accepting} {seed}"), 203).await;
        assert!(report.is_success(), "{report:?}");
        assert_eq!(bench.rows("SELECT count(*) AS n FROM t").await[0]["n"], json!(3));
    }
}

#[tokio::test]
async fn properties_that_mean_nothing_here_are_refused_by_name() {
    let bench = Bench::new(Format::Memory);
    bench.file("in/1.json", &[json!({"k": "a", "seq": 1})]);
    let scd1 = "SEQUENCE BY seq STORED AS SCD TYPE 1";
    let bitemporal = "SEQUENCE BY seq SYSTEM SEQUENCE BY sys STORED AS BITEMPORAL";
    for (property, value, clauses, part) in [
        ("strandline.systemTime", "monotonic", scd1, "BITEMPORAL"),
        ("strandline.systemTime", "sometimes", bitemporal, "monotonic"),
        ("strandline.nullSequenceFields", "last", scd1, "refused"),
        ("strandline.acceptHorizon", "yes", scd1, "true"),
        ("pipelines.cdc.tombstoneGCThresholdInSeconds", "two days", scd1, "seconds"),
        ("pipelines.cdc.tombstoneGCThresholdInSeconds", "10", bitemporal, "bitemporal"),
    ] {
        let sql = pipeline(&format!("TBLPROPERTIES ('{property}' = '{value}')"), clauses);
        let errors = bench.run(&sql).await.unwrap_err();
        let text: Vec<String> = errors.iter().map(strandline_runtime::Error::full_text).collect();
        assert!(text.iter().any(|text| text.contains(part)), "{property} = {value}: {text:?}");
    }
}

#[tokio::test]
async fn a7_null_fields_of_a_struct_sequence_sort_first_where_that_is_asked_for() {
    let clauses = "SEQUENCE BY named_struct('seq', seq, 'sys', sys) COLUMNS (k, v) STORED AS SCD TYPE 1";
    let rows = [json!({"k": "a", "seq": 1, "v": 1}), json!({"k": "a", "seq": 1, "sys": 0, "v": 2})];
    let bench = Bench::new(Format::Delta);
    bench.file("in/1.json", &rows);
    let report = bench.run(&pipeline("", clauses)).await.unwrap();
    assert!(only(&report).reason.as_ref().unwrap().contains("NULL_SEQUENCE"), "{report:?}");
    let first = pipeline("TBLPROPERTIES ('strandline.nullSequenceFields' = 'first')", clauses);
    bench.succeed(&first).await;
    assert_eq!(json!(bench.rows("SELECT v FROM t").await), json!([{"v": 2}]));
}

#[tokio::test]
async fn c_72_a_seed_closes_what_ended_without_a_successor() {
    let sql = format!(
        "CREATE STREAMING TABLE t;
         CREATE STREAMING TABLE old AS SELECT * {SOURCE};
         CREATE FLOW f AS AUTO CDC ONCE INTO t FROM (SELECT k, seq, v, ends FROM old) KEYS (k) SEQUENCE BY seq
         VALID TO ends COLUMNS (k, v) STORED AS SCD TYPE 2;"
    )
    .replace("maxFilesPerTrigger => 1,", "");
    for format in FORMATS {
        let bench = Bench::new(format);
        let row = |k: &str, seq: i64, ends: Option<i64>| json!({"k": k, "seq": seq, "v": seq, "ends": ends});
        bench.file(
            "in/1.json",
            &[row("a", 1, Some(3)), row("a", 3, None), row("b", 1, Some(4)), row("b", 6, None)],
        );
        bench.succeed(&sql).await;
        let rows = bench.rows("SELECT k, __START_AT AS s, __END_AT AS e FROM t ORDER BY k, s").await;
        let rows: Vec<Json> = rows.iter().map(|row| json!([row["k"], row["s"], row["e"]])).collect();
        assert_eq!(json!(rows), json!([["a", 1, 3], ["a", 3, null], ["b", 1, 4], ["b", 6, null]]));
    }
}

#[tokio::test]
async fn t11_what_a_row_leaves_unset_may_be_said_otherwise_later() {
    let clauses = |ignored: &str| format!("{ignored} SEQUENCE BY seq COLUMNS (k, v, w) STORED AS SCD TYPE 2");
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("in/1.json", &[json!({"k": "a", "seq": 1, "v": 1, "w": 1})]);
        bench.succeed(&pipeline("", &clauses("IGNORE NULL UPDATES"))).await;
        bench.file("in/2.json", &[json!({"k": "a", "seq": 3, "v": 3})]);
        bench.succeed(&pipeline("", &clauses("IGNORE NULL UPDATES ON (w)"))).await;
        bench.file("in/3.json", &[json!({"k": "a", "seq": 5, "v": 5})]);
        bench.succeed(&pipeline("", &clauses(""))).await;
        bench.file("in/4.json", &[json!({"k": "a", "seq": 2, "w": 2})]);
        bench.succeed(&pipeline("", &clauses("IGNORE NULL UPDATES ON * EXCEPT ()"))).await;
        let rows = bench.rows("SELECT v, w, __START_AT AS s FROM t ORDER BY s").await;
        let rows: Vec<Json> = rows.iter().map(|row| json!([row["s"], row["v"], row["w"]])).collect();
        assert_eq!(json!(rows), json!([[1, 1, 1], [2, 1, 2], [3, 3, 2], [5, 5, null]]), "{format:?}");
    }
}

#[tokio::test]
async fn t11_the_type_of_the_system_sequence_is_recorded() {
    let bench = Bench::new(Format::Delta);
    bench.file("in/1.json", &[json!({"k": "a", "seq": 1, "sys": 1, "v": 1})]);
    let sql = |sys: &str| {
        pipeline("", &format!("SEQUENCE BY seq SYSTEM SEQUENCE BY {sys} COLUMNS (k, v) STORED AS BITEMPORAL"))
    };
    bench.succeed(&sql("sys")).await;
    let report = bench.run(&sql("CAST(sys AS STRING)")).await.unwrap();
    let reason = only(&report).reason.clone().unwrap();
    for part in ["SYSTEM_SEQUENCING_TYPE_DRIFT", "Int64", "Utf8"] {
        assert!(reason.contains(part), "{reason}");
    }
}

#[tokio::test]
async fn a15_records_say_which_columns_they_set() {
    let clauses = "SEQUENCE BY seq COLUMNS (k, v, w, mask) STORED AS SCD TYPE 1 COLUMNS TO UPDATE mask";
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("in/1.json", &[json!({"k": "a", "seq": 1, "v": 1, "w": 1})]);
        bench.file("in/2.json", &[json!({"k": "a", "seq": 3, "v": null, "w": 9, "mask": ["v"]})]);
        bench.file("in/3.json", &[json!({"k": "a", "seq": 2, "v": 7, "w": 7, "mask": ["w", "v"]})]);
        bench.succeed(&pipeline("", clauses)).await;
        let rows = bench.rows("SELECT k, v, w FROM t").await;
        assert_eq!(json!(rows), json!([{"k": "a", "v": null, "w": 7}]));
        bench.file("in/4.json", &[json!({"k": "a", "seq": 4, "mask": ["nothing"]})]);
        let report = bench.run(&pipeline("", clauses)).await.unwrap();
        assert!(only(&report).reason.as_ref().unwrap().contains("COLUMNS_TO_UPDATE_INVALID"), "{report:?}");
    }
}

#[tokio::test]
async fn a32_nanoseconds_of_a_file_are_refused_where_they_are_no_whole_microseconds() {
    use arrow_array::{ArrayRef, RecordBatch, StringArray, TimestampNanosecondArray};
    let bench = Bench::new(Format::Delta);
    let write = |name: &str, nanos: i64| {
        let at: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![nanos]).with_timezone("UTC"));
        let key: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
        let rows = RecordBatch::try_from_iter([("k", key), ("at", at)]).unwrap();
        let mut writer = parquet::arrow::ArrowWriter::try_new(Vec::new(), rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        bench.raw_file(name, writer.into_inner().unwrap());
    };
    let sql = "SET pipelines.maxFlowRetryAttempts = 0; CREATE STREAMING TABLE t;
        CREATE FLOW f AS AUTO CDC INTO t FROM STREAM read_files('in/*.parquet', format => 'parquet', schema => 'k STRING, at TIMESTAMP')
        KEYS (k) SEQUENCE BY at STORED AS SCD TYPE 2;";
    write("in/1.parquet", 5_000);
    bench.succeed(sql).await;
    write("in/2.parquet", 7_001);
    let reason = only(&bench.run(sql).await.unwrap()).reason.clone().unwrap();
    for part in ["microseconds", "column at", "7001", "2.parquet"] {
        assert!(reason.contains(part), "{reason}");
    }
}

#[tokio::test]
async fn a_clause_speaks_of_one_row() {
    let bench = Bench::new(Format::Memory);
    bench.file("in/1.json", &[json!({"k": "a", "seq": 1, "v": 1})]);
    for (clauses, part) in [
        ("APPLY AS DELETE WHEN sum(seq) OVER () > 4 SEQUENCE BY seq", "a window function"),
        ("APPLY AS DELETE WHEN count(*) > 1 SEQUENCE BY seq", "an aggregate"),
        ("APPLY AS DELETE WHEN random() < 0.5 SEQUENCE BY seq", "such as now() or random()"),
        ("SEQUENCE BY now()", "such as now() or random()"),
    ] {
        let sql = format!(
            "CREATE STREAMING TABLE t; CREATE FLOW f AS AUTO CDC INTO t
             FROM STREAM read_files('in/*.json', format => 'json', schema => 'k STRING, seq BIGINT, v BIGINT')
             KEYS (k) {clauses};"
        );
        let errors = bench.run(&sql).await.unwrap_err();
        let text: Vec<String> = errors.iter().map(strandline_runtime::Error::full_text).collect();
        assert!(text.iter().any(|text| text.contains(part)), "{clauses}: {text:?}");
    }
}
