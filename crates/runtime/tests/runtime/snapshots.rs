//! Snapshot flows: one complete image after another, each by one commit, with a target that shows what changed between them.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use futures::{StreamExt, stream};
use object_store::memory::InMemory;
use serde_json::{Value, json};
use strandline_runtime::{
    ErrorKind, FlowReport, FlowStatus, Mode, Result, Snapshot, SnapshotProvider, SnapshotVersion,
    UpdateReport, UpdateRequest,
};
use strandline_testkit::fault::{Fault, FaultStore, Rule};

use crate::pipeline::{Bench, FORMATS, Format};

/// A flow that takes the exports below `in`, one version after another.
pub(crate) fn exports(stored_as: &str) -> String {
    exports_with("", "", stored_as)
}

fn exports_with(properties: &str, once: &str, stored_as: &str) -> String {
    let export = "read_files('in/*.json', format => 'json', schema => 'id BIGINT, tier STRING, v BIGINT')";
    format!(
        "SET pipelines.maxFlowRetryAttempts = 0;
         CREATE STREAMING TABLE t {properties};
         CREATE FLOW f AS AUTO CDC {once} INTO t
         FROM SNAPSHOT (SELECT id, tier FROM {export} WHERE v = (SELECT v FROM current_snapshot_version()) AND id > 0)
         WITH VERSION (SELECT min(v) AS v FROM {export}
                       WHERE v > (SELECT coalesce(max(v), 0) FROM last_snapshot_version()) HAVING min(v) IS NOT NULL)
         KEYS (id) STORED AS {stored_as};"
    )
}

/// One export: rows of (id, tier). Row 0 stands for the export itself.
pub(crate) fn export(bench: &Bench, version: i64, rows: &[(i64, &str)]) {
    let row = |(id, tier): &(i64, &str)| json!({"id": id, "tier": tier, "v": version});
    let lines: Vec<Value> = [(0, "")].iter().chain(rows).map(row).collect();
    bench.file(&format!("in/{version}.json"), &lines);
}

pub(crate) fn worked(bench: &Bench, versions: std::ops::RangeInclusive<i64>) {
    let all: [(i64, &[(i64, &str)]); 3] = [
        (1, &[(1, "basic"), (2, "gold"), (3, "basic")]),
        (2, &[(1, "gold"), (3, "basic")]),
        (3, &[(1, "gold"), (2, "basic"), (3, "basic"), (4, "basic")]),
    ];
    for (version, rows) in all.iter().filter(|(version, _)| versions.contains(version)) {
        export(bench, *version, rows);
    }
}

async fn shown(bench: &Bench, sql: &str) -> Value {
    json!(bench.rows(sql).await)
}

async fn scd1(bench: &Bench) -> Value {
    shown(bench, "SELECT id, tier FROM t ORDER BY id").await
}

async fn scd2(bench: &Bench) -> Value {
    shown(bench, "SELECT id, tier, __START_AT AS s, __END_AT AS e FROM t ORDER BY id, s").await
}

fn history_after_three() -> Value {
    json!([
        {"id": 1, "tier": "basic", "s": 1, "e": 2}, {"id": 1, "tier": "gold", "s": 2, "e": null},
        {"id": 2, "tier": "gold", "s": 1, "e": 2}, {"id": 2, "tier": "basic", "s": 3, "e": null},
        {"id": 3, "tier": "basic", "s": 1, "e": null}, {"id": 4, "tier": "basic", "s": 3, "e": null},
    ])
}

fn flow(report: &UpdateReport) -> &FlowReport {
    report.flows.iter().find(|flow| flow.flow == "f").unwrap()
}

/// The reason why the flow failed.
async fn refused(bench: &Bench, sql: &str) -> String {
    match bench.run(sql).await {
        Ok(report) => {
            assert_eq!(flow(&report).status, FlowStatus::Failed, "{report:#?}");
            format!(
                "{} ({})",
                flow(&report).reason.clone().unwrap(),
                flow(&report).help.clone().unwrap_or_default()
            )
        }
        Err(errors) => errors
            .iter()
            .map(|error| format!("{} ({})", error.full_text(), error.help_text().unwrap_or_default()))
            .collect(),
    }
}

#[tokio::test]
async fn r22_c55_c56_all_versions_are_taken_in_one_update_or_one_by_one() {
    for format in FORMATS {
        for at_once in [true, false] {
            let [now, history] = [Bench::new(format), Bench::new(format)];
            let updates: &[std::ops::RangeInclusive<i64>] =
                if at_once { &[1..=3] } else { &[1..=1, 2..=2, 3..=3] };
            for versions in updates {
                for bench in [&now, &history] {
                    worked(bench, versions.clone());
                }
                let report = now.succeed(&exports("SCD TYPE 1")).await;
                assert_eq!(flow(&report).batches, versions.clone().count() as u64);
                history.succeed(&exports("SCD TYPE 2")).await;
            }
            assert_eq!(
                scd1(&now).await,
                json!([
                    {"id": 1, "tier": "gold"}, {"id": 2, "tier": "basic"},
                    {"id": 3, "tier": "basic"}, {"id": 4, "tier": "basic"},
                ])
            );
            assert_eq!(scd2(&history).await, history_after_three(), "{format:?}");
            let version = history.version("t").await;
            let idle = history.succeed(&exports("SCD TYPE 2")).await;
            assert_eq!((flow(&idle).batches, history.version("t").await), (0, version), "nothing is new");
        }
    }
}

#[tokio::test]
async fn c55_unchanged_rows_are_not_rewritten_and_counts_are_those_of_written_rows() {
    let bench = Bench::new(Format::Delta);
    worked(&bench, 1..=1);
    let report = bench.succeed(&exports("SCD TYPE 1")).await;
    assert_eq!((flow(&report).output_rows, flow(&report).rows_in), (Some(3), 3));
    worked(&bench, 2..=2);
    let report = bench.succeed(&exports("SCD TYPE 1")).await;
    let flow = flow(&report);
    // 1 changes, 2 goes, 3 stays as it is.
    assert_eq!(
        (flow.output_rows, flow.upserted, flow.deleted),
        (Some(2), 0, 0),
        "r18: no upserts of snapshot flows"
    );
    let at = bench.rows("SELECT id, __SEQUENCE_AT AS at FROM t ORDER BY id").await;
    assert_eq!(json!(at), json!([{"id": 1, "at": 2}, {"id": 3, "at": 1}]));
}

#[tokio::test]
async fn a_column_that_comes_or_goes_does_not_end_every_version() {
    let bench = Bench::new(Format::Delta);
    let flow = |columns: &str, types: &str| {
        exports("SCD TYPE 2")
            .replace("SELECT id, tier FROM", &format!("SELECT {columns} FROM"))
            .replace("id BIGINT, tier STRING, v BIGINT", types)
    };
    worked(&bench, 1..=1);
    bench.succeed(&exports("SCD TYPE 2")).await;
    export(&bench, 2, &[(1, "basic"), (2, "gold"), (3, "basic")]);
    bench.succeed(&flow("id", "id BIGINT, v BIGINT")).await;
    export(&bench, 3, &[(1, "basic"), (2, "gold"), (3, "basic")]);
    bench.succeed(&flow("id, tier, x", "id BIGINT, tier STRING, v BIGINT, x STRING")).await;
    let rows = bench.rows("SELECT id, tier, x, __START_AT AS s, __END_AT AS e FROM t ORDER BY id, s").await;
    let row = |id: i64, tier: &str| json!({"id": id, "tier": tier, "x": null, "s": 1, "e": null});
    assert_eq!(json!(rows), json!([row(1, "basic"), row(2, "gold"), row(3, "basic")]), "a20");
}

#[tokio::test]
async fn g13_what_is_no_version_is_refused_by_name() {
    let export = "read_files('in/*.json', format => 'json', schema => 'id BIGINT, tier STRING, v BIGINT')";
    let null = "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.NULL_SNAPSHOT_VERSION";
    let invalid = "INVALID_AUTO_CDC_FROM_SNAPSHOT_VERSION_QUERY";
    for (version, name) in [
        (format!("SELECT v, id FROM {export} LIMIT 1"), invalid),
        (format!("SELECT v FROM {export}"), invalid),
        (format!("SELECT max(v) AS v FROM {export} WHERE v > 100"), null),
        (
            "SELECT map(['a'], [1]) AS v".to_owned(),
            "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.SNAPSHOT_VERSION_NOT_SORTABLE",
        ),
        ("SELECT NULL AS v".to_owned(), "type"),
    ] {
        let bench = Bench::new(Format::Delta);
        worked(&bench, 1..=1);
        let sql = format!(
            "SET pipelines.maxFlowRetryAttempts = 0; CREATE STREAMING TABLE t;
             CREATE FLOW f AS AUTO CDC INTO t FROM SNAPSHOT (SELECT id, tier FROM {export}) WITH VERSION ({version}) KEYS (id);"
        );
        let reason = refused(&bench, &sql).await;
        assert!(reason.contains(name), "{version}: {reason}");
        if bench.storage.format.open("t").await.unwrap().is_some() {
            assert_eq!(scd1(&bench).await, json!([]), "{version}");
        }
    }
}

/// A flow whose version is always the greatest.
fn greatest(properties: &str) -> String {
    exports_with(properties, "", "SCD TYPE 1")
        .replace("min(v)", "max(v)")
        .replace("WHERE v > (SELECT coalesce(max(v), 0) FROM last_snapshot_version())", "")
}

#[tokio::test]
async fn a10_a_version_that_is_not_above_the_last_one_is_refused_or_passed_over() {
    let name = "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.OUT_OF_ORDER_SNAPSHOT_VERSION";
    for format in FORMATS {
        let bench = Bench::new(format);
        worked(&bench, 1..=2);
        // Version 2 is taken, and offered again at once.
        let reason = refused(&bench, &greatest("")).await;
        assert!(reason.contains(name) && reason.contains("version 2"), "{reason}");
        let after_two = json!([{"id": 1, "tier": "gold"}, {"id": 3, "tier": "basic"}]);
        assert_eq!(scd1(&bench).await, after_two);
        // Version 1 after 2.
        std::fs::remove_file(bench.path().join("in/2.json")).unwrap();
        let reason = refused(&bench, &greatest("")).await;
        assert!(reason.contains(name), "{reason}");
        let skip = greatest("TBLPROPERTIES ('strandline.onStaleSnapshot' = 'skip')");
        let report = bench.succeed(&skip).await;
        assert_eq!((flow(&report).batches, scd1(&bench).await), (0, after_two));
        worked(&bench, 3..=3);
        assert_eq!(flow(&bench.succeed(&skip).await).batches, 1);
    }
}

#[tokio::test]
async fn c57_c58_a_snapshot_that_is_refused_leaves_everything_as_it_is() {
    let properties = "TBLPROPERTIES ('strandline.snapshot.maxDeleteFraction' = '1')";
    for format in FORMATS {
        let bench = Bench::new(format);
        let all: Vec<(i64, &str)> = (1..=200).map(|id| (id, "a")).collect();
        export(&bench, 1, &all);
        bench.succeed(&exports("SCD TYPE 1")).await;
        export(&bench, 2, &[(1, "a"), (1, "b")]);
        let reason = refused(&bench, &exports("SCD TYPE 1")).await;
        assert!(reason.contains("DUPLICATE_KEY_VIOLATION") && reason.contains("version 2"), "{reason}");
        assert_eq!(bench.rows("SELECT * FROM t").await.len(), 200);
        // The export is mended under its version; it lacks nearly all keys.
        export(&bench, 2, &[(1, "b")]);
        let reason = refused(&bench, &exports("SCD TYPE 1")).await;
        assert!(reason.contains("TOO_MANY_DELETES"), "a9: {reason}");
        assert_eq!(bench.rows("SELECT * FROM t").await.len(), 200);
        bench.succeed(&exports_with(properties, "", "SCD TYPE 1")).await;
        assert_eq!(scd1(&bench).await, json!([{"id": 1, "tier": "b"}]), "{format:?}");
        // An image without a row, of a version that exists, is an image; no version is none.
        export(&bench, 3, &[]);
        assert_eq!(flow(&bench.succeed(&exports("SCD TYPE 1")).await).batches, 1);
        assert_eq!(scd1(&bench).await, json!([]));
        assert_eq!(flow(&bench.succeed(&exports("SCD TYPE 1")).await).batches, 0);
    }
}

#[tokio::test]
async fn an_export_that_was_taken_away_is_not_an_empty_one() {
    // Version 2 is planned and refused; then its files go. Its plan must not be run over nothing.
    for stored_as in ["SCD TYPE 1", "SCD TYPE 2"] {
        let bench = Bench::new(Format::Delta);
        worked(&bench, 1..=1);
        bench.succeed(&exports(stored_as)).await;
        export(&bench, 2, &[(1, "x"), (1, "y")]);
        refused(&bench, &exports(stored_as)).await;
        std::fs::remove_file(bench.path().join("in/2.json")).unwrap();
        let report = bench.succeed(&exports(stored_as)).await;
        assert!(flow(&report).notice.as_ref().is_some_and(|notice| notice.contains("planned")), "{report:?}");
        let ids = json!(bench.rows("SELECT id FROM t ORDER BY id").await);
        assert_eq!(ids, json!([{"id": 1}, {"id": 2}, {"id": 3}]), "nothing is deleted");
        worked(&bench, 3..=3);
        bench.succeed(&exports(stored_as)).await;
        assert_eq!(bench.rows("SELECT DISTINCT id FROM t").await.len(), 4);
    }
}

#[tokio::test]
async fn g14_a29_without_versions_one_load_fills_an_empty_target() {
    let name = "AUTO_CDC_FROM_SNAPSHOT_NON_EMPTY_TARGET_WITHOUT_VERSION";
    let plain = |once: &str| {
        format!(
            "SET pipelines.maxFlowRetryAttempts = 0; CREATE STREAMING TABLE t;
             CREATE FLOW f AS AUTO CDC {once} INTO t
             FROM SNAPSHOT (SELECT id, tier FROM read_files('in/*.json', format => 'json', schema => 'id BIGINT, tier STRING, v BIGINT') WHERE id > 0)
             KEYS (id) STORED AS SCD TYPE 2;"
        )
    };
    for format in FORMATS {
        let bench = Bench::new(format);
        worked(&bench, 1..=1);
        assert_eq!(flow(&bench.succeed(&plain("")).await).batches, 1);
        let before = bench.rows("SELECT * FROM t ORDER BY id").await;
        assert_eq!(before.len(), 3);
        let reason = refused(&bench, &plain("")).await;
        assert!(reason.contains(name), "{reason}");
        assert_eq!(bench.rows("SELECT * FROM t ORDER BY id").await, before);

        let once = Bench::new(format);
        worked(&once, 1..=1);
        once.succeed(&plain("ONCE")).await;
        worked(&once, 2..=2);
        assert_eq!(flow(&once.succeed(&plain("ONCE")).await).status, FlowStatus::Idle);
        assert_eq!(once.rows("SELECT * FROM t").await.len(), 3);
    }
    // Rows of somebody else.
    let bench = Bench::new(Format::Delta);
    worked(&bench, 1..=1);
    let live = "CREATE FLOW g AS AUTO CDC INTO t FROM STREAM read_files('in/*.json', format => 'json', schema => 'id BIGINT, tier STRING, v BIGINT')
         KEYS (id) SEQUENCE BY to_timestamp(v) COLUMNS * EXCEPT (v);";
    bench.succeed(&format!("CREATE STREAMING TABLE t; {live}")).await;
    let both = plain("").replace("SCD TYPE 2", "SCD TYPE 1");
    let reason = refused(
        &bench,
        &format!("{both} {}", live.replace("to_timestamp(v)", "CAST(to_timestamp(v) AS TIMESTAMP)")),
    )
    .await;
    assert!(reason.contains(name) || reason.contains("INTEROP") || reason.contains("DRIFT"), "{reason}");
}

#[tokio::test]
async fn a29_the_time_of_an_unversioned_load_is_chosen_once() {
    let sql = "SET pipelines.maxFlowRetryAttempts = 0; CREATE STREAMING TABLE t;
        CREATE FLOW f AS AUTO CDC INTO t
        FROM SNAPSHOT (SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v (id, tier)) KEYS (id) STORED AS SCD TYPE 2;";
    let store = FaultStore::new(InMemory::new());
    let bench = Bench::over(Format::Delta, Arc::new(store.clone()));
    let at = |seconds: u64| bench.project(sql).with_clock(Arc::new(At(seconds)));
    store.faults().add(Rule::nth(1, Fault::After).of("put").on("/plan/").and_dies());
    drop(at(1000).run().await);
    store.faults().revive();
    let report = at(2000).run().await.unwrap();
    assert_eq!(flow(&report).batches, 1, "{report:?}");
    let rows = bench.rows("SELECT id, __START_AT AS s FROM t ORDER BY id").await;
    let row = |id: i64| json!({"id": id, "s": "1970-01-01T00:16:40Z"});
    assert_eq!(json!(rows), json!([row(1), row(2)]));
}

/// A clock that stands.
#[derive(Debug)]
struct At(u64);

#[async_trait]
impl strandline_runtime::clock::Clock for At {
    fn now(&self) -> std::time::Duration {
        std::time::Duration::from_secs(self.0)
    }
}

#[tokio::test]
async fn r23_a_once_flow_takes_every_version_that_there_is_then_rests() {
    let once = exports_with("", "ONCE", "SCD TYPE 2");
    for format in FORMATS {
        let bench = Bench::new(format);
        std::fs::create_dir_all(bench.path().join("in")).unwrap();
        let reason = refused(&bench, &once).await;
        assert!(reason.contains("APPLY_CHANGES_FROM_SNAPSHOT_ERROR.FIRST_SNAPSHOT_EMPTY"), "{reason}");
        worked(&bench, 1..=3);
        assert_eq!(flow(&bench.succeed(&once).await).batches, 3);
        assert_eq!(scd2(&bench).await, history_after_three());
        export(&bench, 4, &[(1, "late")]);
        assert_eq!(flow(&bench.succeed(&once).await).status, FlowStatus::Idle);
        assert_eq!(scd2(&bench).await, history_after_three());
    }
}

/// Versions of other types than BIGINT: the column's type, and three values that rise.
const TYPES: [(&str, [&str; 3]); 7] = [
    ("INT", ["1", "2", "10"]),
    ("STRING", ["\"a\"", "\"aa\"", "\"b\""]),
    ("DATE", ["\"2025-01-31\"", "\"2025-02-01\"", "\"2025-02-02\""]),
    (
        "TIMESTAMP",
        ["\"2025-01-31T10:00:00.000001Z\"", "\"2025-01-31T10:00:00.000002Z\"", "\"2025-02-02T00:00:00Z\""],
    ),
    (
        "TIMESTAMP_NTZ",
        ["\"2025-01-31T10:00:00.000001\"", "\"2025-01-31T10:00:00.000002\"", "\"2025-02-02T00:00:00\""],
    ),
    ("DECIMAL(20, 3)", ["0.001", "0.002", "10"]),
    (
        "STRUCT<at: DATE, n: INT>",
        [
            "{\"at\": \"2025-01-31\", \"n\": 2}",
            "{\"at\": \"2025-01-31\", \"n\": 10}",
            "{\"at\": \"2025-02-01\", \"n\": 1}",
        ],
    ),
];

fn typed(data_type: &str) -> String {
    let export = format!(
        "read_files('in/*.json', format => 'json', schema => 'id BIGINT, tier STRING, v {data_type}')"
    );
    format!(
        "SET pipelines.maxFlowRetryAttempts = 0; CREATE STREAMING TABLE t;
         CREATE FLOW f AS AUTO CDC INTO t
         FROM SNAPSHOT (SELECT id, tier FROM {export} WHERE v = (SELECT version FROM current_snapshot_version()))
         WITH VERSION (
           SELECT v AS version FROM {export}
           WHERE NOT EXISTS (SELECT 1 FROM last_snapshot_version()) OR v > (SELECT version FROM last_snapshot_version())
           ORDER BY v LIMIT 1)
         KEYS (id) STORED AS SCD TYPE 2;"
    )
}

#[tokio::test]
async fn versions_of_every_ordered_type_survive_in_plans_and_are_asked_for_in_order() {
    for (data_type, values) in TYPES {
        let bench = Bench::new(Format::Delta);
        let file = |at: usize| {
            let line = |id: usize| format!("{{\"id\": {id}, \"tier\": \"{at}\", \"v\": {}}}", values[at]);
            bench.raw_file(&format!("in/{at}.json"), format!("{}\n{}", line(1), line(at + 2)));
        };
        file(0);
        assert_eq!(flow(&bench.succeed(&typed(data_type)).await).batches, 1, "{data_type}");
        // The next process reads the version from the plan.
        (1..3).for_each(file);
        assert_eq!(flow(&bench.succeed(&typed(data_type)).await).batches, 2, "{data_type}");
        assert_eq!(flow(&bench.succeed(&typed(data_type)).await).batches, 0, "{data_type}");
        let versions = bench.rows("SELECT tier FROM t WHERE id = 1 ORDER BY __START_AT").await;
        assert_eq!(json!(versions), json!([{"tier": "0"}, {"tier": "1"}, {"tier": "2"}]), "{data_type}");
    }
}

#[tokio::test]
async fn the_name_and_the_type_of_a_version_do_not_change() {
    let name = "AUTO_CDC_FROM_SNAPSHOT_VERSION_SCHEMA_CHANGED";
    let bench = Bench::new(Format::Delta);
    worked(&bench, 1..=1);
    bench.succeed(&exports("SCD TYPE 1")).await;
    worked(&bench, 2..=2);
    for other in [
        exports("SCD TYPE 1").replace("v BIGINT", "v INT"),
        exports("SCD TYPE 1")
            .replace("min(v) AS v", "min(v) AS w")
            .replace("SELECT v FROM current", "SELECT w FROM current")
            .replace("coalesce(max(v), 0) FROM last", "coalesce(max(w), 0) FROM last"),
    ] {
        let reason = refused(&bench, &other).await;
        assert!(reason.contains(name) && reason.contains("v Int64"), "{reason}");
    }
    bench.succeed(&exports("SCD TYPE 1")).await;
    assert_eq!(scd1(&bench).await, json!([{"id": 1, "tier": "gold"}, {"id": 3, "tier": "basic"}]));
}

#[tokio::test]
async fn t11_a_snapshot_flow_that_means_something_else_is_refused() {
    for (other, name) in [
        (exports("SCD TYPE 1"), "SCD_TYPE_DRIFT"),
        (exports("SCD TYPE 2").replace("KEYS (id)", "KEYS (tier)"), "KEY_SCHEMA_DRIFT"),
        (exports("SCD TYPE 2 TRACK HISTORY ON (tier)"), "TRACK_HISTORY_DRIFT"),
    ] {
        let bench = Bench::new(Format::Delta);
        worked(&bench, 1..=1);
        bench.succeed(&exports("SCD TYPE 2")).await;
        let reason = refused(&bench, &other).await;
        assert!(reason.contains(name), "{reason}");
    }
}

#[tokio::test]
async fn properties_of_snapshots_are_refused_where_nothing_obeys_them() {
    let bench = Bench::new(Format::Delta);
    worked(&bench, 1..=1);
    for (property, value) in [
        ("strandline.onStaleSnapshot", "skip"),
        ("strandline.snapshot.maxDeleteFraction", "0.5"),
        ("strandline.snapshot.guardFromRows", "7"),
    ] {
        for flow in [
            "AS SELECT * FROM STREAM read_files('in/*.json', format => 'json', schema => 'id BIGINT, v BIGINT')",
            "; CREATE FLOW f AS AUTO CDC INTO t FROM STREAM read_files('in/*.json', format => 'json', schema => 'id BIGINT, v BIGINT') KEYS (id) SEQUENCE BY v",
        ] {
            let sql = format!("CREATE STREAMING TABLE t TBLPROPERTIES ('{property}' = '{value}') {flow};");
            let errors = bench.run(&sql).await.unwrap_err();
            assert!(errors[0].full_text().contains(property), "{errors:?}");
        }
        let wrong = exports_with(&format!("TBLPROPERTIES ('{property}' = 'much')"), "", "SCD TYPE 1");
        assert!(refused(&bench, &wrong).await.contains(property));
    }
}

#[tokio::test]
async fn a_snapshot_reads_tables_views_and_files_of_the_pipeline_as_they_are_then() {
    let sql = "
        SET pipelines.maxFlowRetryAttempts = 0;
        CREATE STREAMING TABLE raw AS SELECT * FROM STREAM read_files('in/*.json', format => 'json', schema => 'id BIGINT, tier STRING, v BIGINT');
        CREATE VIEW exported AS SELECT id, tier, v FROM raw WHERE id > 0;
        CREATE STREAMING TABLE t;
        CREATE FLOW f AS AUTO CDC INTO t
        FROM SNAPSHOT (
          SELECT e.id, upper(e.tier) AS tier, max(n.name) AS name
          FROM exported e JOIN current_snapshot_version() c ON e.v = c.v
          LEFT JOIN read_files('names.json', format => 'json', schema => 'id BIGINT, name STRING') n ON n.id = e.id
          GROUP BY e.id, e.tier)
        WITH VERSION (SELECT min(v) AS v FROM raw WHERE v > coalesce((SELECT v FROM last_snapshot_version()), 0) HAVING count(*) > 0)
        KEYS (id) STORED AS SCD TYPE 2;";
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("names.json", &[json!({"id": 1, "name": "one"})]);
        worked(&bench, 1..=2);
        let report = bench.succeed(sql).await;
        assert_eq!(flow(&report).batches, 2, "the table of this update is read after it was filled");
        let rows =
            bench.rows("SELECT id, tier, name, __START_AT AS s, __END_AT AS e FROM t ORDER BY id, s").await;
        assert_eq!(
            json!(rows),
            json!([
                {"id": 1, "tier": "BASIC", "name": "one", "s": 1, "e": 2},
                {"id": 1, "tier": "GOLD", "name": "one", "s": 2, "e": null},
                {"id": 2, "tier": "GOLD", "name": null, "s": 1, "e": 2},
                {"id": 3, "tier": "BASIC", "name": null, "s": 1, "e": null},
            ])
        );
    }
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_no_empty_snapshot() {
    let bench = Bench::new(Format::Delta);
    worked(&bench, 1..=1);
    bench.succeed(&exports("SCD TYPE 1")).await;
    std::fs::remove_dir_all(bench.path().join("in")).unwrap();
    let reason = refused(&bench, &exports("SCD TYPE 1")).await;
    assert!(reason.contains("folder"), "{reason}");
    assert_eq!(bench.rows("SELECT * FROM t").await.len(), 3);
}

// --- Code of a Rust program

/// Images of (id, tier), each with its version.
struct Code {
    images: Mutex<Vec<(i64, Vec<(i64, &'static str)>)>>,
    calls: AtomicUsize,
    version_type: DataType,
}

impl Code {
    fn new(images: Vec<(i64, Vec<(i64, &'static str)>)>) -> Arc<Self> {
        Arc::new(Self {
            images: Mutex::new(images),
            calls: AtomicUsize::new(0),
            version_type: DataType::Int64,
        })
    }

    fn worked() -> Arc<Self> {
        Self::new(vec![
            (1, vec![(1, "basic"), (2, "gold"), (3, "basic")]),
            (2, vec![(1, "gold"), (3, "basic")]),
            (3, vec![(1, "gold"), (2, "basic"), (3, "basic"), (4, "basic")]),
        ])
    }
}

#[async_trait]
impl SnapshotProvider for Code {
    fn schema(&self) -> SchemaRef {
        let columns = [("id", DataType::Int64), ("tier", DataType::Utf8)];
        Arc::new(Schema::new(columns.map(|(name, kind)| Field::new(name, kind, true)).to_vec()))
    }

    fn version_type(&self) -> DataType {
        self.version_type.clone()
    }

    async fn next(&self, last: Option<SnapshotVersion>) -> Result<Option<Snapshot>> {
        use arrow_array::{cast::AsArray, types::Int64Type};
        self.calls.fetch_add(1, Ordering::Relaxed);
        let last = last.map_or(i64::MIN, |last| last.value().as_primitive::<Int64Type>().value(0));
        let images = self.images.lock().unwrap();
        let Some((version, rows)) = images.iter().find(|(version, _)| *version > last) else {
            return Ok(None);
        };
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.iter().map(|(id, _)| *id)));
        let tiers: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|(_, tier)| *tier)));
        let rows = RecordBatch::try_new(self.schema(), vec![ids, tiers]).unwrap();
        let rows = stream::iter([Ok(rows)]).boxed();
        Ok(Some(Snapshot { version: SnapshotVersion::from(*version), rows }))
    }
}

const CALLED: &str = "
    SET pipelines.maxFlowRetryAttempts = 0;
    CREATE STREAMING TABLE t;
    CREATE FLOW f AS AUTO CDC INTO t FROM SNAPSHOT CALLBACK KEYS (id) STORED AS SCD TYPE 2;";

#[tokio::test]
async fn code_of_a_program_gives_one_image_after_another() {
    for format in FORMATS {
        let bench = Bench::new(format);
        let code = Code::worked();
        let project =
            bench.project(CALLED).with_snapshots("f", Arc::clone(&code) as Arc<dyn SnapshotProvider>);
        let report = project.run().await.unwrap();
        assert_eq!((flow(&report).status, flow(&report).batches), (FlowStatus::Completed, 3), "{report:?}");
        assert_eq!(code.calls.load(Ordering::Relaxed), 4, "three images, and nothing new");
        assert_eq!(scd2(&bench).await, history_after_three());
        let report = project.run().await.unwrap();
        assert_eq!((flow(&report).batches, code.calls.load(Ordering::Relaxed)), (0, 5));
    }
    let errors = Bench::new(Format::Delta).run(CALLED).await.unwrap_err();
    assert!(errors[0].help_text().unwrap().contains("with_snapshots"), "{errors:?}");
}

#[tokio::test]
async fn code_that_gives_another_version_after_a_crash_is_planned_anew() {
    let store = FaultStore::new(InMemory::new());
    let bench = Bench::over(Format::Delta, Arc::new(store.clone()));
    let code = Code::worked();
    let project = bench.project(CALLED).with_snapshots("f", Arc::clone(&code) as Arc<dyn SnapshotProvider>);
    // Version 1 is planned, and nothing of it lands.
    store.faults().add(Rule::nth(1, Fault::After).of("put").on("/plan/").and_dies());
    drop(project.run().await);
    store.faults().revive();
    code.images.lock().unwrap().remove(0);
    let report = project.run().await.unwrap();
    assert_eq!((flow(&report).status, flow(&report).batches), (FlowStatus::Completed, 2), "{report:?}");
    assert!(flow(&report).notice.as_ref().unwrap().contains("planned version 1"), "{report:?}");
    let starts = bench.rows("SELECT DISTINCT __START_AT AS s FROM t ORDER BY s").await;
    assert_eq!(json!(starts), json!([{"s": 2}, {"s": 3}]));
}

#[tokio::test]
async fn code_that_breaks_its_contract_is_told_so_by_name() {
    let bench = Bench::new(Format::Delta);
    let code = Code {
        images: Mutex::new(vec![(1, vec![(1, "a")])]),
        calls: AtomicUsize::new(0),
        version_type: DataType::Utf8,
    };
    let report = bench.project(CALLED).with_snapshots("f", Arc::new(code)).run().await.unwrap();
    let reason = flow(&report).reason.clone().unwrap();
    assert!(reason.contains("APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INVALID_SNAPSHOT_VERSION_TYPE"), "{reason}");
    let once = CALLED.replace("AUTO CDC INTO", "AUTO CDC ONCE INTO");
    let bench = Bench::new(Format::Delta);
    let report = bench.project(&once).with_snapshots("f", Code::new(vec![])).run().await.unwrap();
    assert!(flow(&report).reason.as_ref().unwrap().contains("FIRST_SNAPSHOT_EMPTY"), "{report:?}");
    let none: ArrayRef = Arc::new(Int64Array::from(vec![None::<i64>]));
    let error = SnapshotVersion::new(none).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Data && error.to_string().contains("NULL_SNAPSHOT_VERSION"),
        "{error}"
    );
}

// --- Restarts

#[tokio::test]
async fn r22_a_crash_between_two_versions_resumes_at_the_second() {
    let store = FaultStore::new(InMemory::new());
    let bench = Bench::over(Format::Delta, Arc::new(store.clone()));
    worked(&bench, 1..=3);
    store.faults().add(Rule::nth(2, Fault::Before).of("put").on("/plan/").and_dies());
    drop(bench.run(&exports("SCD TYPE 2")).await);
    store.faults().revive();
    let taken = bench.rows("SELECT DISTINCT __START_AT AS s FROM t").await;
    assert_eq!(json!(taken), json!([{"s": 1}]), "the first version is there");
    assert_eq!(flow(&bench.succeed(&exports("SCD TYPE 2")).await).batches, 2);
    assert_eq!(scd2(&bench).await, history_after_three());
}

#[tokio::test]
async fn t04_killing_the_process_at_any_store_operation_changes_nothing_of_snapshots() {
    for stored_as in ["SCD TYPE 1", "SCD TYPE 2"] {
        let killed = |n: Option<(usize, Fault)>| {
            let store = FaultStore::new(InMemory::new());
            let bench = Bench::over(Format::Delta, Arc::new(store.clone()));
            worked(&bench, 1..=3);
            if let Some((n, fault)) = n {
                store.faults().add(Rule::nth(n, fault).and_dies());
            }
            (bench, store)
        };
        let shown = async |bench: &Bench| {
            if stored_as == "SCD TYPE 1" { scd1(bench).await } else { scd2(bench).await }
        };
        let (undisturbed, store) = killed(None);
        undisturbed.succeed(&exports(stored_as)).await;
        let (operations, expected) = (store.faults().count(), shown(&undisturbed).await);
        assert_eq!(expected.as_array().unwrap().len(), if stored_as == "SCD TYPE 1" { 4 } else { 6 });
        for fault in [Fault::Before, Fault::After] {
            for n in 1..=operations {
                let (bench, store) = killed(Some((n, fault)));
                drop(bench.run(&exports(stored_as)).await);
                store.faults().revive();
                bench.succeed(&exports(stored_as)).await;
                assert_eq!(
                    shown(&bench).await,
                    expected,
                    "killed {fault:?} at operation {n}: {:?}",
                    store.faults().trace()
                );
            }
        }
    }
}

// --- Refreshes

#[tokio::test]
async fn r07_a_full_refresh_takes_every_version_again_and_takes_up_what_changed() {
    let all = UpdateRequest::full_refresh_all();
    for format in FORMATS {
        let bench = Bench::new(format);
        worked(&bench, 1..=3);
        bench.succeed(&exports("SCD TYPE 2")).await;
        std::fs::remove_file(bench.path().join("in/1.json")).unwrap();
        // The versions become texts.
        let texts = exports("SCD TYPE 2").replace("SELECT min(v) AS v", "SELECT CAST(min(v) AS STRING) AS v");
        let texts = texts.replace("WHERE v = (SELECT v", "WHERE CAST(v AS STRING) = (SELECT v");
        let texts = texts.replace(
            "WHERE v > (SELECT coalesce(max(v), 0)",
            "WHERE CAST(v AS STRING) > (SELECT coalesce(max(v), '')",
        );
        assert!(refused(&bench, &texts).await.contains("VERSION_SCHEMA_CHANGED"));
        let report = bench.request(&texts, &all).await;
        assert_eq!((flow(&report).status, flow(&report).batches), (FlowStatus::Completed, 2), "{report:#?}");
        assert_eq!(
            scd2(&bench).await,
            json!([
                {"id": 1, "tier": "gold", "s": "2", "e": null}, {"id": 2, "tier": "basic", "s": "3", "e": null},
                {"id": 3, "tier": "basic", "s": "2", "e": null}, {"id": 4, "tier": "basic", "s": "3", "e": null},
            ]),
            "{format:?}"
        );
        assert_eq!(flow(&bench.succeed(&texts).await).batches, 0);
    }
}

#[tokio::test]
async fn a17_r10_after_a_reset_of_its_checkpoint_a_flow_reads_its_versions_again_and_nothing_changes() {
    let reset = UpdateRequest::default().with_checkpoint_reset(["f"]);
    for format in FORMATS {
        for stored_as in ["SCD TYPE 1", "SCD TYPE 2"] {
            let bench = Bench::new(format);
            worked(&bench, 1..=3);
            bench.succeed(&exports(stored_as)).await;
            let (before, version) =
                (bench.rows("SELECT * FROM t ORDER BY id, tier").await, bench.version("t").await);
            let report = bench.request(&exports(stored_as), &reset).await;
            assert_eq!(
                (flow(&report).status, flow(&report).batches),
                (FlowStatus::Completed, 3),
                "{report:#?}"
            );
            assert_eq!(
                bench.rows("SELECT * FROM t ORDER BY id, tier").await,
                before,
                "{format:?} {stored_as}"
            );
            assert_eq!(bench.version("t").await, version, "nothing is committed");
            export(&bench, 4, &[(1, "last")]);
            assert_eq!(flow(&bench.succeed(&exports(stored_as)).await).batches, 1);
            let last = json!(bench.rows("SELECT id, tier FROM t ORDER BY id DESC, tier DESC").await);
            assert!(last.to_string().contains("last"), "{last}");
        }
    }
}

#[tokio::test]
async fn r01_in_continuous_mode_a_flow_waits_for_the_next_version() {
    let bench = Bench::new(Format::Delta);
    worked(&bench, 1..=1);
    let sql = format!("SET pipelines.trigger.interval = '50 milliseconds'; {}", exports("SCD TYPE 2"));
    let project = bench.project(&sql).in_mode(Mode::Continuous);
    let stop = project.stop_flag();
    let running = tokio::spawn(async move { project.run().await });
    // Exports come whole, as a rename brings them.
    let staging = Bench::new(Format::Delta);
    worked(&staging, 2..=3);
    for (versions, rows) in [(2..2, 3), (2..4, 6)] {
        for version in versions {
            let name = format!("in/{version}.json");
            std::fs::rename(staging.path().join(&name), bench.path().join(&name)).unwrap();
        }
        let arrived = async {
            loop {
                if bench.storage.format.open("t").await.unwrap().is_some()
                    && bench.rows("SELECT * FROM t").await.len() == rows
                {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(60), arrived)
            .await
            .expect("the version is taken");
    }
    stop.store(true, Ordering::Relaxed);
    let report = running.await.unwrap().unwrap();
    assert_eq!((flow(&report).status, flow(&report).batches), (FlowStatus::Stopped, 3), "{report:#?}");
    assert_eq!(scd2(&bench).await, history_after_three());
}
