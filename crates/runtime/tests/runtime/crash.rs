//! Killed at any moment and run again: the tables equal those of an undisturbed run.
//!
//! The store fails at every operation in turn, before the operation or after it landed, and everything after it fails
//! too, as if the process had died there. Then the store comes back and the pipeline runs again.

use std::sync::Arc;

use object_store::memory::InMemory;
use serde_json::json;
use strandline_testkit::fault::{Fault, FaultStore, Rule};

use crate::pipeline::{Bench, Format, JsonRow};

const PIPELINE: &str = "
    SET pipelines.maxFlowRetryAttempts = 0;
    CREATE STREAMING TABLE raw AS
      SELECT * FROM STREAM read_files('in/*.json', format => 'json', schema => 'k STRING, seq BIGINT, op STRING, v BIGINT', maxFilesPerTrigger => 2);
    CREATE STREAMING TABLE now;
    CREATE FLOW now AS AUTO CDC INTO now FROM STREAM(raw) KEYS (k)
      APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 1;
    CREATE STREAMING TABLE history;
    CREATE FLOW history AS AUTO CDC INTO history FROM STREAM(raw) KEYS (k)
      APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 2 TRACK HISTORY ON (v);";

fn bench() -> (Bench, FaultStore<InMemory>) {
    let store = FaultStore::new(InMemory::new());
    let bench = Bench::over(Format::Delta, Arc::new(store.clone()));
    let change = |k: &str, seq: i64, op: &str, v: i64| json!({ "k": k, "seq": seq, "op": op, "v": v });
    bench.file("in/1.json", &[change("a", 1, "U", 1), change("b", 2, "U", 1), change("c", 7, "D", 0)]);
    bench.file("in/2.json", &[change("a", 5, "U", 2), change("a", 3, "U", 1), change("b", 6, "D", 0)]);
    bench.file("in/3.json", &[change("c", 4, "U", 9), change("a", 2, "U", 8), change("b", 9, "U", 3)]);
    (bench, store)
}

async fn tables(bench: &Bench) -> Vec<Vec<JsonRow>> {
    let mut tables = Vec::new();
    for sql in [
        "SELECT * FROM raw ORDER BY k, seq",
        "SELECT * FROM now ORDER BY k",
        "SELECT * FROM history ORDER BY k, __START_AT",
    ] {
        tables.push(bench.rows(sql).await);
    }
    tables
}

#[tokio::test]
async fn killing_the_process_at_any_store_operation_changes_nothing() {
    let (undisturbed, store) = bench();
    undisturbed.succeed(PIPELINE).await;
    let operations = store.faults().count();
    let expected = tables(&undisturbed).await;
    assert_eq!(expected[1].len(), 2, "{expected:?}");
    for fault in [Fault::Before, Fault::After] {
        for n in 1..=operations {
            let (bench, store) = bench();
            store.faults().add(Rule::nth(n, fault).and_dies());
            let first = bench.run(PIPELINE).await;
            store.faults().revive();
            if !store.faults().trace().iter().any(|operation| operation.fault.is_some()) {
                assert!(first.is_ok_and(|report| report.is_success()), "no fault was met at {n}");
                continue;
            }
            bench.succeed(PIPELINE).await;
            assert_eq!(
                tables(&bench).await,
                expected,
                "killed {fault:?} at operation {n}: {:?}",
                store.faults().trace()
            );
        }
    }
    eprintln!("{operations} operations, each failed before and after it landed");
}

/// A bitemporal target whose system time is monotonic, one with partial updates, and one that is truncated and forgets
/// its tombstones at once.
const EVERY_SHAPE: &str = "
    SET pipelines.maxFlowRetryAttempts = 0;
    CREATE STREAMING TABLE believed TBLPROPERTIES ('strandline.systemTime' = 'monotonic');
    CREATE FLOW believed AS AUTO CDC INTO believed
      FROM STREAM read_files('in/*.json', format => 'json', schema => 'k STRING, seq BIGINT, op STRING, v BIGINT', maxFilesPerTrigger => 1)
      KEYS (k) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq SYSTEM SEQUENCE BY seq + v COLUMNS * EXCEPT (op, seq) STORED AS BITEMPORAL;
    CREATE STREAMING TABLE parts;
    CREATE FLOW parts DEPENDS ON (believed) AS AUTO CDC INTO parts
      FROM (SELECT k, seq, op, CASE WHEN seq % 2 = 0 THEN v END AS even, CASE WHEN seq % 2 = 1 THEN v END AS odd
            FROM STREAM read_files('in/*.json', format => 'json', schema => 'k STRING, seq BIGINT, op STRING, v BIGINT', maxFilesPerTrigger => 1))
      KEYS (k) IGNORE NULL UPDATES APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 2;
    CREATE STREAMING TABLE emptied TBLPROPERTIES ('pipelines.cdc.tombstoneGCThresholdInSeconds' = '0');
    CREATE FLOW emptied DEPENDS ON (parts) AS AUTO CDC INTO emptied
      FROM STREAM read_files('in/*.json', format => 'json', schema => 'k STRING, seq BIGINT, op STRING, v BIGINT', maxFilesPerTrigger => 1)
      KEYS (k) APPLY AS DELETE WHEN op = 'D' APPLY AS TRUNCATE WHEN seq = 5 SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 1;";

async fn tables_of_every_shape(bench: &Bench) -> Vec<Vec<JsonRow>> {
    let mut tables = Vec::new();
    for sql in [
        "SELECT * FROM believed ORDER BY k, __START_AT, __SYSTEM_START_AT, v",
        "SELECT * FROM parts ORDER BY k, __START_AT",
        "SELECT * FROM emptied ORDER BY k",
    ] {
        tables.push(bench.rows(sql).await);
    }
    tables
}

#[tokio::test]
async fn killing_the_process_changes_nothing_of_any_shape() {
    let (undisturbed, store) = bench();
    undisturbed.succeed(EVERY_SHAPE).await;
    let operations = store.faults().count();
    let expected = tables_of_every_shape(&undisturbed).await;
    assert!(expected.iter().all(|rows| !rows.is_empty()), "{expected:?}");
    let every = if cfg!(slow) { 1 } else { 9 };
    for (offset, fault) in [(1, Fault::Before), (5, Fault::After)] {
        for n in (offset..=operations).step_by(every) {
            let (bench, store) = bench();
            store.faults().add(Rule::nth(n, fault).and_dies());
            drop(bench.run(EVERY_SHAPE).await);
            store.faults().revive();
            bench.succeed(EVERY_SHAPE).await;
            let found = tables_of_every_shape(&bench).await;
            assert_eq!(found, expected, "killed {fault:?} at operation {n}: {:?}", store.faults().trace());
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_lost_is_settled_by_looking() {
    // The commit lands, its answer does not arrive, and the process lives on.
    let (undisturbed, _) = bench();
    undisturbed.succeed(PIPELINE).await;
    let expected = tables(&undisturbed).await;
    for commit in 1..=6 {
        let (bench, store) = bench();
        store.faults().add(Rule::nth(commit, Fault::After).on("_delta_log/0"));
        drop(bench.run(PIPELINE).await);
        bench.succeed(PIPELINE).await;
        assert_eq!(tables(&bench).await, expected, "lost the answer of commit {commit}");
    }
}

#[tokio::test]
async fn t12_a_lost_side_state_is_named_and_never_replaced_by_an_empty_one() {
    use futures::TryStreamExt;
    use object_store::{ObjectStore, ObjectStoreExt};
    let (bench, store) = bench();
    bench.succeed(PIPELINE).await;
    let before = tables(&bench).await;
    let root = object_store::path::Path::from("_strandline/state/now");
    let files: Vec<_> = store.inner().list(Some(&root)).try_collect().await.unwrap();
    assert!(!files.is_empty());
    for file in files {
        store.inner().delete(&file.location).await.unwrap();
    }
    bench.file("in/4.json", &[json!({ "k": "c", "seq": 5, "op": "U", "v": 1 })]);
    let report = bench.run(PIPELINE).await.unwrap();
    let now = report.flows.iter().find(|flow| flow.flow == "now").unwrap();
    let reason = now.reason.clone().unwrap_or_default();
    assert!(reason.contains("state"), "{reason}");
    assert_eq!(tables(&bench).await[1], before[1]);
}

/// A target that follows the changes of another one, batch after batch.
const FEED: &str = "
    SET pipelines.maxFlowRetryAttempts = 0;
    CREATE STREAMING TABLE now;
    CREATE FLOW now AS AUTO CDC INTO now
      FROM STREAM read_files('in/*.json', format => 'json', schema => 'k STRING, seq BIGINT, op STRING, v BIGINT', maxFilesPerTrigger => 1)
      KEYS (k) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op) STORED AS SCD TYPE 1;
    CREATE STREAMING TABLE follower;
    CREATE FLOW follower AS AUTO CDC INTO follower FROM STREAM(now) WITH (readChangeFeed = true)
      KEYS (k) SEQUENCE BY _commit_version STORED AS SCD TYPE 2;
    CREATE STREAMING TABLE log AS SELECT k, v, _change_type AS what, _commit_version AS version
      FROM STREAM(now) WITH (readChangeFeed = true);";

/// A pipeline that ran once, and what comes next.
async fn bench_with_feed() -> (Bench, FaultStore<InMemory>) {
    let (bench, store) = bench();
    bench.succeed(FEED).await;
    let change = |k: &str, seq: i64, op: &str, v: i64| json!({ "k": k, "seq": seq, "op": op, "v": v });
    bench.file("in/4.json", &[change("a", 20, "U", 7), change("b", 10, "D", 0), change("e", 1, "U", 5)]);
    bench.file("in/5.json", &[change("a", 19, "U", 6), change("b", 11, "U", 4), change("e", 2, "D", 0)]);
    (bench, store)
}

async fn tables_of_feed(bench: &Bench) -> Vec<Vec<JsonRow>> {
    let mut tables = Vec::new();
    for sql in [
        "SELECT * FROM now ORDER BY k",
        "SELECT * FROM follower ORDER BY k, __START_AT",
        "SELECT * FROM log ORDER BY version, k, what",
    ] {
        tables.push(bench.rows(sql).await);
    }
    tables
}

#[tokio::test]
async fn t15_killing_the_process_changes_nothing_of_who_follows_a_change_feed() {
    let (undisturbed, store) = bench_with_feed().await;
    let before = store.faults().count();
    undisturbed.succeed(FEED).await;
    let operations = store.faults().count() - before;
    let expected = tables_of_feed(&undisturbed).await;
    assert!(expected[1].len() > expected[0].len() && expected[2].len() > 6, "{expected:?}");
    let every = if cfg!(slow) { 1 } else { 11 };
    for (offset, fault) in [(1, Fault::Before), (6, Fault::After)] {
        for n in (offset..=operations).step_by(every) {
            let (bench, store) = bench_with_feed().await;
            store.faults().add(Rule::nth(n, fault).and_dies());
            drop(bench.run(FEED).await);
            store.faults().revive();
            bench.succeed(FEED).await;
            let found = tables_of_feed(&bench).await;
            assert_eq!(found, expected, "killed {fault:?} at operation {n}: {:?}", store.faults().trace());
        }
    }
}
