//! What is refused, by which name, and what is left as it was.

use serde_json::json;

use super::{export, exports, exports_with, flow, refused, scd1, worked};
use crate::pipeline::{Bench, FORMATS, Format};

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
async fn a_folder_that_is_not_there_is_no_empty_snapshot() {
    let bench = Bench::new(Format::Delta);
    worked(&bench, 1..=1);
    bench.succeed(&exports("SCD TYPE 1")).await;
    std::fs::remove_dir_all(bench.path().join("in")).unwrap();
    let reason = refused(&bench, &exports("SCD TYPE 1")).await;
    assert!(reason.contains("folder"), "{reason}");
    assert_eq!(bench.rows("SELECT * FROM t").await.len(), 3);
}
