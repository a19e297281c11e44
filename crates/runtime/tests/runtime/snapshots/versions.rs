//! Versions: of any type, none at all, and the time at which an image was taken in.

use std::sync::Arc;

use async_trait::async_trait;
use object_store::memory::InMemory;
use serde_json::{Value, json};
use strandline_runtime::FlowStatus;
use strandline_testkit::fault::{Fault, FaultStore, Rule};

use super::{export, exports_with, flow, history_after_three, refused, scd2, worked};
use crate::pipeline::{Bench, FORMATS, Format};

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
async fn a35_the_version_may_be_a_file_by_its_time_and_path() {
    let sql = "
        SET pipelines.maxFlowRetryAttempts = 0;
        CREATE STREAMING TABLE t;
        CREATE FLOW f AS AUTO CDC INTO t
        FROM SNAPSHOT (
          SELECT * FROM read_files('in', format => 'json', schema => 'id BIGINT, tier STRING')
          WHERE _metadata.file_path = (SELECT version.path FROM current_snapshot_version()))
        WITH VERSION (
          SELECT DISTINCT named_struct('at', _metadata.file_modification_time, 'path', _metadata.file_path) AS version
          FROM read_files('in', format => 'json', schema => 'id BIGINT, tier STRING')
          WHERE NOT EXISTS (SELECT 1 FROM last_snapshot_version())
             OR named_struct('at', _metadata.file_modification_time, 'path', _metadata.file_path) > (SELECT version FROM last_snapshot_version())
          ORDER BY version LIMIT 1)
        KEYS (id) STORED AS SCD TYPE 2;";
    let bench = Bench::new(Format::Delta);
    let files: [&[(i64, &str)]; 2] = [&[(1, "a"), (2, "a")], &[(1, "b"), (3, "a")]];
    for (number, rows) in files.iter().enumerate() {
        let rows: Vec<Value> = rows.iter().map(|(id, tier)| json!({"id": id, "tier": tier})).collect();
        bench.file(&format!("in/{number}.json"), &rows);
        assert_eq!(flow(&bench.succeed(sql).await).batches, 1);
        assert_eq!(flow(&bench.succeed(sql).await).batches, 0);
    }
    let rows = bench.rows("SELECT id, tier, __END_AT IS NULL AS now FROM t ORDER BY id, __START_AT").await;
    let row = |id: i64, tier: &str, now: bool| json!({"id": id, "tier": tier, "now": now});
    assert_eq!(
        json!(rows),
        json!([row(1, "a", false), row(1, "b", true), row(2, "a", false), row(3, "a", true)])
    );
}
