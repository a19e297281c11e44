//! Other writers and lost answers: nothing is lost, nothing comes twice.

use std::sync::Arc;

use arrow_array::{cast::AsArray, types::Int64Type};
use futures::{FutureExt, TryStreamExt};
use serde_json::json;
use strandline_runtime::Storage;
use strandline_table_formats::{
    CommitStamp, StateVersion, Table, TableChange, WriterId,
    layer::{FaultyFormat, TableFault},
};

use crate::pipeline::{Bench, FORMATS, Format};

const PIPELINE: &str = "
    SET pipelines.maxFlowRetryAttempts = 0;
    CREATE STREAMING TABLE raw AS SELECT * FROM STREAM read_files('in', format => 'json', schema => 'k BIGINT, seq BIGINT, v BIGINT');
    CREATE STREAMING TABLE t;
    CREATE FLOW t AS AUTO CDC INTO t FROM STREAM read_files('in', format => 'json', schema => 'k BIGINT, seq BIGINT, v BIGINT')
      KEYS (k) SEQUENCE BY seq STORED AS SCD TYPE 2 TRACK HISTORY ON (v);";

fn bench(format: Format) -> (Bench, FaultyFormat) {
    let mut bench = Bench::new(format);
    let faulty = FaultyFormat::new(Arc::clone(&bench.storage.format));
    bench.storage = Storage { format: Arc::new(faulty.clone()), ..bench.storage };
    bench.file(
        "in/1.json",
        &[
            json!({"k": 1, "seq": 1, "v": 1}),
            json!({"k": 2, "seq": 1, "v": 1}),
            json!({"k": 3, "seq": 1, "v": 1}),
        ],
    );
    (bench, faulty)
}

async fn versions(bench: &Bench) -> serde_json::Value {
    json!(bench.rows("SELECT k, v, __START_AT, __END_AT FROM t ORDER BY k, __START_AT").await)
}

#[tokio::test]
async fn t05_a_conflict_is_reconciled_again_on_the_fresh_version() {
    for format in FORMATS {
        let (bench, faulty) = bench(format);
        bench.succeed(PIPELINE).await;
        bench.file("in/2.json", &[json!({"k": 1, "seq": 5, "v": 2}), json!({"k": 2, "seq": 5, "v": 1})]);
        // Between look-up and commit of the CDC flow somebody deletes key 3, and whoever comes second sees it.
        faulty.fail(1, TableFault::Intruder(Arc::new(|table| delete_key(table, 3).boxed())));
        faulty.fail(2, TableFault::Intruder(Arc::new(|table| delete_key(table, 3).boxed())));
        let report = bench.succeed(PIPELINE).await;
        let t = report.flows.iter().find(|flow| flow.flow == "t").unwrap();
        assert!(t.conflicts >= 1, "{t:?}");
        let row = |k: i64, v: i64, start: i64, end: Option<i64>| json!({"k": k, "v": v, "__START_AT": start, "__END_AT": end});
        assert_eq!(
            versions(&bench).await,
            json!([row(1, 1, 1, Some(5)), row(1, 2, 5, None), row(2, 1, 1, None)]),
            "{format:?}"
        );
        // The run of key 2 has a hidden event at 5 although the first attempt's state was given up.
        bench.file("in/3.json", &[json!({"k": 2, "seq": 3, "v": 9})]);
        bench.succeed(PIPELINE).await;
        let rows = versions(&bench).await;
        assert_eq!(
            rows.as_array().unwrap()[2..],
            [row(2, 1, 1, Some(3)), row(2, 9, 3, Some(5)), row(2, 1, 5, None)]
        );
    }
}

/// A foreign DELETE: it carries a stamp of its own, and leaves the state version alone.
async fn delete_key(table: Arc<dyn Table>, key: i64) -> strandline_table_formats::Result<()> {
    let snapshot = table.snapshot().await?;
    if snapshot.schema().field_with_name("__START_AT").is_err() {
        return Ok(());
    }
    let keys = arrow_array::RecordBatch::try_from_iter([(
        "k",
        Arc::new(arrow_array::Int64Array::from(vec![key])) as arrow_array::ArrayRef,
    )])
    .unwrap();
    let plan = strandline_table_formats::LookupPlan { keys: Some(keys), columns: None, bound: None };
    let found: Vec<_> = snapshot.lookup(&plan).await?.try_collect().await?;
    let deletes: Vec<u64> = found.iter().flat_map(|rows| rows.ids.values().to_vec()).collect();
    if deletes.is_empty() {
        return Ok(());
    }
    assert!(
        found.iter().all(|rows| rows.batch["k"]
            .as_primitive::<Int64Type>()
            .values()
            .iter()
            .all(|k| *k == key))
    );
    let batch = snapshot.version().0 + 1;
    let writer = WriterId { pipeline: "foreign".to_owned(), flow: "delete".to_owned(), incarnation: 0 };
    let stamp = CommitStamp { writer, batch, state: snapshot.state_version(), epoch: snapshot.epoch() };
    let change = TableChange::Rows { deletes, inserts: Vec::new() };
    drop(table.commit(snapshot.as_ref(), change, &stamp).await?);
    Ok(())
}

#[tokio::test]
async fn conflicts_without_end_give_up_with_an_error_and_lose_nothing() {
    let (bench, faulty) = bench(Format::Memory);
    for n in 1..200 {
        faulty.fail(n, TableFault::Conflict);
    }
    let report = bench.run(PIPELINE).await.unwrap();
    assert!(
        report.flows.iter().all(|flow| flow.reason.as_deref().is_some_and(|r| r.contains("again and again"))),
        "{report:?}"
    );
    while faulty.commits() < 200 {
        drop(bench.run(PIPELINE).await);
    }
    bench.succeed(PIPELINE).await;
    assert_eq!(bench.rows("SELECT count(*) AS n FROM t").await[0]["n"], json!(3));
    assert_eq!(bench.rows("SELECT count(*) AS n FROM raw").await[0]["n"], json!(3));
}

#[tokio::test]
async fn replay_04_a_lost_answer_appends_nothing_twice() {
    for format in FORMATS {
        for n in 1..=2 {
            for fault in [TableFault::AnswerLost, TableFault::Before] {
                let (bench, faulty) = bench(format);
                faulty.fail(n, fault.clone());
                assert!(!bench.run(PIPELINE).await.unwrap().is_success());
                bench.succeed(PIPELINE).await;
                assert_eq!(
                    bench.rows("SELECT count(*) AS n FROM raw").await[0]["n"],
                    json!(3),
                    "{format:?} {fault:?} {n}"
                );
                assert_eq!(
                    bench.rows("SELECT count(*) AS n FROM t").await[0]["n"],
                    json!(3),
                    "{format:?} {fault:?} {n}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_fenced_writer_is_refused() {
    for format in FORMATS {
        let (bench, _) = bench(format);
        bench.succeed(PIPELINE).await;
        let table = bench.storage.format.open("t").await.unwrap().unwrap();
        let snapshot = table.snapshot().await.unwrap();
        assert!(snapshot.epoch() >= 1);
        let writer = WriterId { pipeline: "test".to_owned(), flow: "t".to_owned(), incarnation: 0 };
        let stale = CommitStamp { writer, batch: 99, state: StateVersion(0), epoch: 0 };
        let refused = table.commit(snapshot.as_ref(), TableChange::Empty, &stale).await;
        assert!(refused.is_err_and(|e| e.to_string().contains("fenced")), "{format:?}");
    }
}
