//! What flows do when all goes well: each file once, nothing without need, once flows once.

use serde_json::json;
use strandline_runtime::FlowStatus;

use crate::pipeline::{Bench, FORMATS};

const PIPELINE: &str = "
    CREATE STREAMING TABLE raw AS
      SELECT * FROM STREAM read_files('in/*.json', format => 'json', schema => 'k STRING, seq BIGINT, op STRING, v BIGINT');
    CREATE STREAMING TABLE now;
    CREATE FLOW now AS AUTO CDC INTO now FROM STREAM(raw) KEYS (k)
      APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 1;
    CREATE STREAMING TABLE history;
    CREATE FLOW history AS AUTO CDC INTO history FROM STREAM(raw) KEYS (k)
      APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op, seq) STORED AS SCD TYPE 2;";

fn change(k: &str, seq: i64, op: &str, v: i64) -> serde_json::Value {
    json!({ "k": k, "seq": seq, "op": op, "v": v })
}

#[tokio::test]
async fn bronze_silver_and_history_follow_the_files() {
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("in/1.json", &[change("a", 1, "U", 1), change("b", 1, "U", 5), change("a", 3, "U", 3)]);
        bench.succeed(PIPELINE).await;
        bench.file("in/2.json", &[change("a", 2, "U", 2), change("b", 4, "D", 0), change("c", 9, "D", 0)]);
        let report = bench.succeed(PIPELINE).await;
        let now = report.flows.iter().find(|flow| flow.flow == "now").unwrap();
        assert_eq!((now.rows_in, now.upserted, now.deleted, now.late), (3, 0, 1, 1), "{now:?}");

        assert_eq!(bench.rows("SELECT count(*) AS n FROM raw").await[0]["n"], json!(6));
        let now = bench.rows("SELECT k, v, __SEQUENCE_AT FROM now ORDER BY k").await;
        assert_eq!(json!(now), json!([{ "k": "a", "v": 3, "__SEQUENCE_AT": 3 }]));
        let history = bench.rows("SELECT * FROM history ORDER BY k, __START_AT").await;
        let row = |k: &str, v: i64, start: i64, end: Option<i64>| json!({ "k": k, "v": v, "__START_AT": start, "__END_AT": end });
        assert_eq!(
            json!(history),
            json!([
                row("a", 1, 1, Some(2)),
                row("a", 2, 2, Some(3)),
                row("a", 3, 3, None),
                row("b", 5, 1, Some(4))
            ])
        );
        // The delete of a key that was never seen is remembered.
        bench.file("in/3.json", &[change("c", 5, "U", 7)]);
        let report = bench.succeed(PIPELINE).await;
        assert_eq!(report.flows.iter().find(|flow| flow.flow == "now").unwrap().tombstone_defeated, 1);
        assert_eq!(bench.rows("SELECT count(*) AS n FROM now WHERE k = 'c'").await[0]["n"], json!(0));
    }
}

#[tokio::test]
async fn r03_running_again_with_no_new_files_changes_nothing() {
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("in/1.json", &[change("a", 1, "U", 1)]);
        bench.succeed(PIPELINE).await;
        let mut before = Vec::new();
        for table in ["raw", "now", "history"] {
            before.push(bench.version(table).await);
        }
        let report = bench.succeed(PIPELINE).await;
        assert!(report.flows.iter().all(|flow| flow.batches == 0 && flow.status == FlowStatus::Completed));
        for (table, before) in ["raw", "now", "history"].into_iter().zip(before) {
            assert_eq!(bench.version(table).await, before, "{format:?} {table}");
        }
    }
}

#[tokio::test]
async fn r19_files_are_taken_in_batches_and_once_each() {
    let bench = Bench::new(crate::pipeline::Format::Delta);
    for n in 0..7 {
        bench.file(&format!("in/{n}.json"), &[json!({ "n": n })]);
    }
    let sql = "CREATE STREAMING TABLE t AS SELECT n FROM STREAM read_files('in', format => 'json', schema => 'n BIGINT', maxFilesPerTrigger => 3);";
    let report = bench.succeed(sql).await;
    assert_eq!((report.flows[0].batches, report.flows[0].rows_in), (3, 7));
    // A file that changed is the same file: it is not taken again.
    bench.file("in/0.json", &[json!({ "n": 100 })]);
    bench.file("in/late/deep.json", &[json!({ "n": 8 })]);
    bench.file("in/_hidden.json", &[json!({ "n": 9 })]);
    assert_eq!(bench.succeed(sql).await.flows[0].rows_in, 1);
    assert_eq!(bench.rows("SELECT sum(n) AS s FROM t").await[0]["s"], json!(29));
}

#[tokio::test]
async fn r04_once_flows_run_once_and_order_holds() {
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("old/1.json", &[json!({ "n": 1 })]);
        bench.file("new/1.json", &[json!({ "n": 2 })]);
        let sql = "
            CREATE STREAMING TABLE t;
            CREATE FLOW live DEPENDS ON (backfill) AS INSERT INTO t BY NAME
              SELECT n FROM STREAM read_files('new', format => 'json', schema => 'n BIGINT');
            CREATE FLOW backfill AS INSERT INTO ONCE t BY NAME
              SELECT n FROM read_files('old', format => 'json', schema => 'n BIGINT');";
        bench.succeed(sql).await;
        bench.file("old/2.json", &[json!({ "n": 10 })]);
        bench.file("new/2.json", &[json!({ "n": 20 })]);
        let report = bench.succeed(sql).await;
        let status = |name: &str| report.flows.iter().find(|flow| flow.flow == name).unwrap().status;
        assert_eq!((status("backfill"), status("live")), (FlowStatus::Idle, FlowStatus::Completed));
        assert_eq!(bench.rows("SELECT sum(n) AS s FROM t").await[0]["s"], json!(23), "{format:?}");
    }
}

#[tokio::test]
async fn csv_parquet_views_and_inferred_columns_work() {
    let bench = Bench::new(crate::pipeline::Format::Delta);
    bench.raw_file("csv/1.csv", "id,name,price\n1,a,1.5\n2,\"b, c\",\n");
    let sql = "
        CREATE TEMPORARY VIEW cheap AS SELECT id, upper(name) AS name, price FROM STREAM read_files('csv/*.csv', format => 'csv', header => true);
        CREATE STREAMING TABLE items AS SELECT * FROM STREAM(cheap) WHERE price IS NULL OR price < 2;
        CREATE STREAMING TABLE named;
        CREATE FLOW named AS AUTO CDC INTO named FROM (SELECT id, name FROM STREAM items) KEYS (id) SEQUENCE BY id;";
    bench.succeed(sql).await;
    let rows = bench.rows("SELECT * FROM items ORDER BY id").await;
    assert_eq!(
        json!(rows),
        json!([{ "id": 1, "name": "A", "price": 1.5 }, { "id": 2, "name": "B, C", "price": null }])
    );
    // The sequence is a kept column, so no system column is needed.
    assert_eq!(
        json!(bench.rows("SELECT * FROM named ORDER BY id LIMIT 1").await),
        json!([{ "id": 1, "name": "A" }])
    );
}

#[tokio::test]
async fn a_struct_sequence_orders_field_by_field() {
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file(
            "in/1.json",
            &[json!({"k": 1, "a": 1, "b": 2, "v": "x"}), json!({"k": 1, "a": 1, "b": 3, "v": "y"})],
        );
        bench.file("in/2.json", &[json!({"k": 1, "a": 0, "b": 9, "v": "z"})]);
        let sql = "
            CREATE STREAMING TABLE t;
            CREATE FLOW t AS AUTO CDC INTO t FROM STREAM read_files('in', format => 'json',
              schema => 'k BIGINT, a BIGINT, b BIGINT, v STRING', maxFilesPerTrigger => 1)
            KEYS (k) SEQUENCE BY STRUCT(a, b) COLUMNS (k, v) STORED AS SCD TYPE 2;";
        bench.succeed(sql).await;
        let rows = bench.rows("SELECT v, __END_AT IS NULL AS current FROM t ORDER BY v").await;
        let expected =
            json!([{"v": "x", "current": false}, {"v": "y", "current": true}, {"v": "z", "current": false}]);
        assert_eq!(json!(rows), expected, "{format:?}");
    }
}

#[tokio::test]
async fn functions_of_spark_mean_what_they_mean_there() {
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("in/1.json", &[json!({ "name": "ada", "at": "2024-02-29T23:30:00Z", "n": -7 })]);
        bench
            .succeed(
                "CREATE STREAMING TABLE t AS SELECT sha2(name, 256) AS hash, concat_ws('-', name, name) AS twice,
                   substring(name, 2, 2) AS part, elt(2, 'x', 'y') AS second, last_day(CAST(at AS DATE)) AS last,
                   pmod(n, 5) AS rest, hex(name) AS hex, nvl(name, '') AS kept, if(n < 0, 'minus', 'plus') AS sign,
                   at > TIMESTAMP '2024-02-29 23:00:00' AS late, date_format(at, '%Y') AS year
                 FROM STREAM read_files('in/*.json', format => 'json', schema => 'name STRING, at TIMESTAMP, n INT')",
            )
            .await;
        let row = &bench.rows("SELECT * FROM t").await[0];
        let expected = json!({
            "hash": row["hash"], "twice": "ada-ada", "part": "da", "second": "y", "last": "2024-02-29", "rest": 3,
            "hex": "616461", "kept": "ada", "sign": "minus", "late": true, "year": "2024"
        });
        assert_eq!(json!(row), expected, "{format:?}");
        assert!(row["hash"].as_str().unwrap().starts_with("fdee430d"), "{row:?}");
    }
}

#[tokio::test]
async fn r26_an_imported_checkpoint_counts_only_while_the_flow_has_none() {
    for format in FORMATS {
        let sql = "CREATE STREAMING TABLE t AS
                     SELECT * FROM STREAM read_files('in/*.json', format => 'json', schema => 'n INT', maxFilesPerTrigger => 1)";
        let old = Bench::new(format);
        (1..=3).for_each(|n| old.file(&format!("in/{n}.json"), &[json!({ "n": n })]));
        assert_eq!(old.project(sql).checkpoint("t").await.unwrap(), None);
        old.succeed(sql).await;
        let checkpoint = old.project(sql).checkpoint("t").await.unwrap().unwrap();
        // It can be kept as text.
        let text = serde_json::to_string(&checkpoint).unwrap();
        let checkpoint: strandline_runtime::Checkpoint = serde_json::from_str(&text).unwrap();

        old.file("in/4.json", &[json!({ "n": 4 })]);
        let new = Bench::new(format).storage;
        let import = || old.project_over(sql, new.clone()).import_checkpoint("t", checkpoint.clone());
        assert!(import().run().await.unwrap().is_success());
        let rows = crate::pipeline::rows(&new, "SELECT n FROM t").await;
        assert_eq!(json!(rows), json!([{ "n": 4 }]), "{format:?}");
        assert_eq!(
            import().run().await.unwrap().flows[0].batches,
            0,
            "it has a checkpoint of its own by now"
        );
        // One that had a checkpoint before goes on from there.
        let report = old.project(sql).import_checkpoint("t", checkpoint).run().await.unwrap();
        assert_eq!(report.flows[0].rows_in, 1);
        assert!(old.project(sql).checkpoint("nowhere").await.is_err());
    }
}
