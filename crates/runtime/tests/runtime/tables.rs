//! Tables as sources: appended rows, change feeds, chains of tables in one pipeline, tables of others.

use std::{fs, path::Path};

use arrow_array::cast::AsArray;
use object_store::ObjectStoreExt;
use serde_json::{Value, json};
use strandline_runtime::FlowStatus;
use strandline_table_formats::{CommitStamp, StateVersion, TableChange, WriterId};

use crate::pipeline::{Bench, FORMATS, Format};

/// Bronze takes files, silver keeps the newest row of each key, gold follows silver's changes.
const CHAIN: &str = "
    CREATE STREAMING TABLE bronze AS SELECT * FROM STREAM read_files('in/*.json', format => 'json',
      schema => 'k STRING, seq BIGINT, op STRING, v BIGINT');
    CREATE STREAMING TABLE silver;
    CREATE FLOW silver AS AUTO CDC INTO silver FROM STREAM(bronze) KEYS (k)
      APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op) STORED AS SCD TYPE 1;
    CREATE STREAMING TABLE gold;
    CREATE FLOW gold AS AUTO CDC INTO gold
      FROM (SELECT *, v * 10 AS tenfold FROM STREAM(silver) WITH (readChangeFeed = true)) KEYS (k)
      SEQUENCE BY _commit_version STORED AS SCD TYPE 1;
    CREATE STREAMING TABLE history;
    CREATE FLOW history AS AUTO CDC INTO history FROM STREAM(silver) WITH (readChangeFeed = true) KEYS (k)
      SEQUENCE BY _commit_version COLUMNS (k, v) STORED AS SCD TYPE 2;";

fn change(k: &str, seq: i64, op: &str, v: i64) -> Value {
    json!({ "k": k, "seq": seq, "op": op, "v": v })
}

async fn gold_follows(bench: &Bench) {
    let silver = bench.rows("SELECT k, seq, v, v * 10 AS tenfold FROM silver ORDER BY k").await;
    let gold = bench.rows("SELECT k, seq, v, tenfold FROM gold ORDER BY k").await;
    assert_eq!(json!(gold), json!(silver));
    let current = bench.rows("SELECT k, v FROM history WHERE __END_AT IS NULL ORDER BY k").await;
    assert_eq!(json!(current), json!(bench.rows("SELECT k, v FROM silver ORDER BY k").await));
}

#[tokio::test]
async fn t14_t15_bronze_silver_and_gold_chain_in_one_pipeline_with_late_events() {
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("in/1.json", &[change("a", 1, "U", 1), change("b", 5, "U", 5), change("c", 1, "U", 9)]);
        bench.succeed(CHAIN).await;
        gold_follows(&bench).await;
        // An update, a late event that changes nothing, a delete, and a new key.
        bench.file(
            "in/2.json",
            &[change("a", 3, "U", 3), change("b", 2, "U", 2), change("c", 2, "D", 0), change("d", 1, "U", 4)],
        );
        bench.succeed(CHAIN).await;
        gold_follows(&bench).await;
        let gold = bench.rows("SELECT k, v FROM gold ORDER BY k").await;
        assert_eq!(
            json!(gold),
            json!([{"k": "a", "v": 3}, {"k": "b", "v": 5}, {"k": "d", "v": 4}]),
            "{format:?}"
        );
        // The columns of the feed are no columns of its target, unless they are asked for.
        let columns = &bench.rows("SELECT * FROM gold LIMIT 1").await[0];
        assert!(!columns.keys().any(|name| name.starts_with("_c")), "{columns:?}");
        let ended = bench.rows("SELECT k FROM history WHERE __END_AT IS NOT NULL ORDER BY k").await;
        assert_eq!(json!(ended), json!([{"k": "a"}, {"k": "c"}]), "{format:?}");
        // A key that comes back.
        bench.file("in/3.json", &[change("c", 7, "U", 70)]);
        bench.succeed(CHAIN).await;
        gold_follows(&bench).await;
        let before = bench.version("gold").await;
        let report = bench.succeed(CHAIN).await;
        assert!(report.flows.iter().all(|flow| flow.batches == 0), "{report:?}");
        assert_eq!(bench.version("gold").await, before);
    }
}

#[tokio::test]
async fn a_change_feed_can_be_appended_as_it_is() {
    for format in FORMATS {
        let bench = Bench::new(format);
        let sql = "
            CREATE STREAMING TABLE t;
            CREATE FLOW t AS AUTO CDC INTO t FROM STREAM read_files('in/*.json', format => 'json',
              schema => 'k STRING, seq BIGINT, op STRING, v BIGINT') KEYS (k)
              APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS (k, v);
            CREATE STREAMING TABLE log AS
              SELECT k, v, _change_type AS what, _commit_version AS version, _commit_timestamp AS at
              FROM STREAM(t) WITH (readChangeFeed);";
        bench.file("in/1.json", &[change("a", 1, "U", 1), change("b", 1, "U", 1)]);
        bench.succeed(sql).await;
        bench.file("in/2.json", &[change("a", 2, "U", 2), change("b", 2, "D", 0), change("c", 1, "U", 3)]);
        bench.succeed(sql).await;
        let log = bench.rows("SELECT k, v, what, at > TIMESTAMP '2020-01-01T00:00:00Z' AS dated FROM log ORDER BY version, k, what").await;
        let row = |k: &str, v: i64, what: &str| json!({ "k": k, "v": v, "what": what, "dated": true });
        let expected = [
            row("a", 1, "insert"),
            row("b", 1, "insert"),
            row("a", 2, "update_postimage"),
            row("a", 1, "update_preimage"),
            row("b", 1, "delete"),
            row("c", 3, "insert"),
        ];
        assert_eq!(json!(log), json!(expected), "{format:?}");
    }
}

/// A table that somebody else's commits change.
async fn commit(bench: &Bench, table: &str, change: TableChange, batch: u64) {
    let table = bench.storage.format.open(table).await.unwrap().unwrap();
    let base = table.snapshot().await.unwrap();
    let writer = WriterId { pipeline: "other".into(), flow: "by hand".into(), incarnation: 0 };
    let stamp = CommitStamp { writer, batch, state: base.state_version(), epoch: base.epoch() };
    assert_eq!(base.state_version(), StateVersion(0));
    let outcome = table.commit(base.as_ref(), change, &stamp).await.unwrap();
    assert!(matches!(outcome, strandline_table_formats::CommitOutcome::Committed(_)), "{outcome:?}");
}

const COPY: &str = "
    CREATE STREAMING TABLE raw AS SELECT * FROM STREAM read_files('in/*.json', format => 'json', schema => 'n BIGINT');
    CREATE STREAMING TABLE copy AS SELECT * FROM STREAM(raw);";

#[tokio::test]
async fn a_commit_that_deletes_fails_the_read_and_is_passed_over_when_asked() {
    for format in FORMATS {
        let bench = Bench::new(format);
        bench.file("in/1.json", &[json!({ "n": 1 })]);
        bench.succeed(COPY).await;
        bench.file("in/2.json", &[json!({ "n": 2 })]);
        let raw_only = COPY.split("CREATE STREAMING TABLE copy").next().unwrap();
        bench.succeed(raw_only).await;
        let table = bench.storage.format.open("raw").await.unwrap().unwrap();
        let rows = table.snapshot().await.unwrap().scan(None).await.unwrap();
        commit(&bench, "raw", TableChange::Overwrite(rows), 1).await;
        bench.file("in/3.json", &[json!({ "n": 3 })]);
        // What was appended before is taken; then the read fails, names the version, and says what to do.
        let report = bench.run(COPY).await.unwrap();
        let copy = report.flows.iter().find(|flow| flow.flow == "copy").unwrap();
        assert_eq!(copy.status, FlowStatus::Failed);
        assert_eq!(json!(bench.rows("SELECT n FROM copy ORDER BY n").await), json!([{"n": 1}, {"n": 2}]));
        let (reason, help) = (copy.reason.clone().unwrap(), copy.help.clone().unwrap());
        assert!(reason.contains("version 3") && reason.contains("updates or deletes"), "{reason}");
        assert!(
            help.contains("skipChangeCommits")
                && help.contains("readChangeFeed")
                && help.contains("--full-refresh"),
            "{help}"
        );
        let deletes = COPY.replace("STREAM(raw)", "STREAM(raw) WITH (ignoreDeletes = true)");
        let report = bench.run(&deletes).await.unwrap();
        assert!(!report.is_success(), "an update is no delete");
        let skipping = COPY.replace("STREAM(raw)", "STREAM(raw) WITH (skipChangeCommits = true)");
        bench.succeed(&skipping).await;
        assert_eq!(
            json!(bench.rows("SELECT n FROM copy ORDER BY n").await),
            json!([{"n": 1}, {"n": 2}, {"n": 3}])
        );
        // A commit that only deletes.
        commit(&bench, "raw", TableChange::Empty, 2).await;
        bench.file("in/4.json", &[json!({ "n": 4 })]);
        let report = bench.run(COPY).await.unwrap();
        assert!(
            report
                .flows
                .iter()
                .any(|flow| flow.reason.as_deref().is_some_and(|r| r.contains("deletes rows")))
        );
        bench.succeed(&deletes).await;
        assert_eq!(bench.rows("SELECT count(*) AS n FROM copy").await[0]["n"], json!(4), "{format:?}");
    }
}

#[tokio::test]
async fn a_stream_begins_where_its_options_say() {
    for format in FORMATS {
        let bench = Bench::new(format);
        let raw = COPY.split("CREATE STREAMING TABLE copy").next().unwrap();
        for n in 1..=3 {
            bench.file(&format!("in/{n}.json"), &[json!({ "n": n })]);
            bench.succeed(raw).await;
        }
        let sql = |table: &str, options: &str| {
            format!("{raw} CREATE STREAMING TABLE {table} AS SELECT * FROM STREAM(raw) WITH ({options});")
        };
        bench.succeed(&sql("from2", "startingVersion = 2")).await;
        assert_eq!(json!(bench.rows("SELECT n FROM from2 ORDER BY n").await), json!([{"n": 2}, {"n": 3}]));
        bench.succeed(&sql("past", "startingTimestamp = '2000-01-01'")).await;
        assert_eq!(bench.rows("SELECT count(*) AS n FROM past").await[0]["n"], json!(3));
        let latest = sql("latest", "startingVersion = 'latest'");
        bench.succeed(&latest).await;
        let later = sql("later", "startingTimestamp = '2999-01-01'");
        bench.succeed(&later).await;
        // Where it began is remembered, though nothing was there to take.
        bench.file("in/4.json", &[json!({ "n": 4 })]);
        bench.succeed(raw).await;
        for (table, text) in [("latest", &latest), ("later", &later)] {
            bench.succeed(text).await;
            assert_eq!(
                json!(bench.rows(&format!("SELECT n FROM {table}")).await),
                json!([{"n": 4}]),
                "{format:?}"
            );
        }
        let errors = bench.run(&sql("never", "startingVersion = 77")).await;
        let text = format!("{errors:?}");
        assert!(text.contains("startingVersion") && text.contains("77"), "{text}");
        let misspelt = format!("{:?}", bench.run(&sql("never", "startVersion = 1")).await);
        assert!(misspelt.contains("startversion") && misspelt.contains("startingVersion"), "{misspelt}");
    }
}

#[tokio::test]
async fn a_table_made_anew_under_its_name_is_noticed() {
    // Only a format whose tables lie in a store can lose one.
    let bench = Bench::new(Format::Delta);
    bench.file("in/1.json", &[json!({ "n": 1 })]);
    bench.succeed(COPY).await;
    let other = Bench::new(Format::Delta);
    other.file("in/1.json", &[json!({ "n": 1 })]);
    other.file("in/2.json", &[json!({ "n": 2 })]);
    other.succeed(COPY).await;
    let prefix = object_store::path::Path::from("tables/raw");
    let listed: Vec<_> =
        futures::TryStreamExt::try_collect(other.storage.store.list(Some(&prefix))).await.unwrap();
    let listed: Vec<object_store::ObjectMeta> = listed;
    for object in listed {
        let bytes = other.storage.store.get(&object.location).await.unwrap().bytes().await.unwrap();
        bench.storage.store.put(&object.location, bytes.into()).await.unwrap();
    }
    let fresh = std::sync::Arc::new(strandline_table_formats::DeltaFormat::new(
        std::sync::Arc::clone(&bench.storage.store),
        object_store::path::Path::from("tables"),
    ));
    let bench =
        Bench { storage: strandline_runtime::Storage { format: fresh, ..bench.storage.clone() }, ..bench };
    let report = bench.run(COPY).await.unwrap();
    let copy = report.flows.iter().find(|flow| flow.flow == "copy").unwrap();
    assert!(copy.reason.as_deref().is_some_and(|reason| reason.contains("made anew")), "{copy:?}");
    assert!(copy.help.as_deref().is_some_and(|help| help.contains("--full-refresh")), "{copy:?}");
}

fn orders() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../table-formats/tests/data/orders")
}

fn copy_folder(from: &Path, to: &Path, keep: &dyn Fn(&str) -> bool) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &to.join(&name), keep);
        } else if keep(&name) {
            fs::copy(entry.path(), to.join(&name)).unwrap();
        }
    }
}

/// The table of another writer, up to a version.
fn orders_until(bench: &Bench, version: u64) {
    let newer = move |name: &str| {
        name.strip_suffix(".json").and_then(|n| n.parse::<u64>().ok()).is_none_or(|n| n <= version)
    };
    copy_folder(&orders(), &bench.path().join("orders"), &newer);
}

#[tokio::test]
async fn t15_the_change_feed_of_a_foreign_table_needs_no_mapping() {
    let bench = Bench::new(Format::Delta);
    let sql = "
        CREATE STREAMING TABLE mine;
        CREATE FLOW mine AS AUTO CDC INTO mine
          FROM STREAM(delta.`orders`) WITH (readChangeFeed = true, startingVersion = 0)
          KEYS (id) SEQUENCE BY _commit_version STORED AS SCD TYPE 2;
        CREATE STREAMING TABLE now;
        CREATE FLOW now AS AUTO CDC INTO now FROM STREAM(delta.`orders`) WITH (readChangeFeed = true)
          KEYS (id) SEQUENCE BY _commit_version;";
    for version in [1, 2, 5] {
        orders_until(&bench, version);
        bench.succeed(sql).await;
    }
    let now = bench.rows("SELECT id, region, amount FROM now ORDER BY id").await;
    let row = |id: i64, region: &str, amount: i64| json!({ "id": id, "region": region, "amount": amount });
    let expected = [
        row(1, "north", 11),
        row(2, "south", 20),
        row(3, "north", 30),
        row(5, "west", 50),
        row(6, "south", 60),
    ];
    assert_eq!(json!(now), json!(expected));
    let current = bench.rows("SELECT id, region, amount FROM mine WHERE __END_AT IS NULL ORDER BY id").await;
    assert_eq!(json!(current), json!(expected));
    let ended = bench
        .rows("SELECT id, amount, __START_AT, __END_AT FROM mine WHERE __END_AT IS NOT NULL ORDER BY id")
        .await;
    assert_eq!(
        json!(ended),
        json!([
            { "id": 1, "amount": 10, "__START_AT": 0, "__END_AT": 2 },
            { "id": 4, "amount": 40, "__START_AT": 1, "__END_AT": 4 }
        ])
    );
}

#[tokio::test]
async fn foreign_tables_are_streamed_joined_and_refused_by_name() {
    let bench = Bench::new(Format::Delta);
    orders_until(&bench, 1);
    bench.file("in/1.json", &[json!({ "n": 1 }), json!({ "n": 4 })]);
    let sql = "
        CREATE STREAMING TABLE appended AS SELECT id, region FROM STREAM(delta.`orders`);
        CREATE STREAMING TABLE joined AS SELECT n, region
          FROM STREAM read_files('in/*.json', format => 'json', schema => 'n BIGINT')
          JOIN delta.`orders` AS o ON n = o.id;";
    bench.succeed(sql).await;
    assert_eq!(bench.rows("SELECT count(*) AS n FROM appended").await[0]["n"], json!(4));
    let joined = bench.rows("SELECT * FROM joined ORDER BY n").await;
    assert_eq!(json!(joined), json!([{"n": 1, "region": "north"}, {"n": 4, "region": "south"}]));
    // Versions 2 and 4 update and delete; 3 only moves rows, 5 appends.
    orders_until(&bench, 5);
    let report = bench.run(sql).await.unwrap();
    let appended = report.flows.iter().find(|flow| flow.flow == "appended").unwrap();
    assert!(appended.reason.as_deref().is_some_and(|reason| reason.contains("version 2")), "{appended:?}");
    bench
        .succeed(
            &sql.replace("STREAM(delta.`orders`)", "STREAM(delta.`orders`) WITH (skipChangeCommits = true)"),
        )
        .await;
    let rows = bench.rows("SELECT id FROM appended ORDER BY id").await;
    assert_eq!(json!(rows), json!([{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}, {"id": 6}]));
    for (text, wanted) in [
        ("CREATE STREAMING TABLE x AS SELECT * FROM STREAM(delta.`nowhere`);", "no table at the path"),
        ("CREATE STREAMING TABLE x AS SELECT * FROM STREAM(delta.`s3://b/t`);", "local folders"),
    ] {
        let found = format!("{:?}", bench.run(text).await);
        assert!(found.contains(wanted), "{found}");
    }
    let memory = Bench::new(Format::Memory);
    let found =
        format!("{:?}", memory.run("CREATE STREAMING TABLE x AS SELECT * FROM STREAM(delta.`t`);").await);
    assert!(found.contains("format"), "{found}");
}

/// How many batches the flow of a pipeline of one flow took.
async fn batches(bench: &Bench, sql: &str) -> u64 {
    let report = bench.succeed(sql).await;
    report.flows.iter().map(|flow| flow.batches).sum()
}

#[tokio::test]
async fn t14_commits_that_bring_nothing_are_done_with_once() {
    // Version 2 updates, 3 only moves rows, 4 deletes: passed over, they must not be looked for when the log lost them.
    for (options, at_first) in [
        // The files that version 1 appended are not of version 2 any more: a batch each.
        ("skipChangeCommits = true, startingVersion = 1", 2),
        ("readChangeFeed = true", 1),
    ] {
        let bench = Bench::new(Format::Delta);
        let sql =
            format!("CREATE STREAMING TABLE t AS SELECT id FROM STREAM(delta.`orders`) WITH ({options});");
        orders_until(&bench, 2);
        assert_eq!(batches(&bench, &sql).await, at_first, "{options}");
        orders_until(&bench, 3);
        assert_eq!((batches(&bench, &sql).await, batches(&bench, &sql).await), (1, 0), "{options}");
        orders_until(&bench, 5);
        let before = bench.rows("SELECT count(*) AS n FROM t").await[0]["n"].as_i64().unwrap();
        assert_eq!((batches(&bench, &sql).await, batches(&bench, &sql).await), (1, 0), "{options}");
        let after = bench.rows("SELECT count(*) AS n FROM t").await[0]["n"].as_i64().unwrap();
        assert!(after > before, "{options}");
    }
}

#[tokio::test]
async fn t15_changes_before_a_column_went_are_read_in_a_batch_of_their_own() {
    let bench = Bench::new(Format::Delta);
    orders_until(&bench, 5);
    let log = bench.path().join("orders/_delta_log");
    let entry = |version: u64| log.join(format!("{version:020}.json"));
    let first = fs::read_to_string(entry(0)).unwrap();
    let mut metadata: Value =
        serde_json::from_str(first.lines().find(|line| line.contains("metaData")).unwrap()).unwrap();
    let mut schema: Value =
        serde_json::from_str(metadata["metaData"]["schemaString"].as_str().unwrap()).unwrap();
    schema["fields"].as_array_mut().unwrap().retain(|field| field["name"] != "amount");
    metadata["metaData"]["schemaString"] = json!(schema.to_string());
    fs::write(entry(6), metadata.to_string()).unwrap();
    let last = fs::read_to_string(entry(5)).unwrap();
    let mut add: Value =
        serde_json::from_str(last.lines().find(|line| line.contains("\"add\"")).unwrap()).unwrap();
    let path = add["add"]["path"].as_str().unwrap().to_owned();
    fs::copy(bench.path().join("orders").join(&path), bench.path().join("orders/region=south/again.parquet"))
        .unwrap();
    add["add"]["path"] = json!("region=south/again.parquet");
    fs::write(entry(7), add.to_string()).unwrap();
    let sql = "CREATE STREAMING TABLE t AS SELECT id, _commit_version AS version
        FROM STREAM(delta.`orders`) WITH (readChangeFeed = true, startingVersion = 5);";
    assert_eq!(batches(&bench, sql).await, 2);
    let rows = bench.rows("SELECT id, version FROM t ORDER BY version").await;
    assert_eq!(json!(rows), json!([{"id": 6, "version": 5}, {"id": 6, "version": 7}]));
}

#[tokio::test]
async fn a_stream_is_joined_with_the_whole_of_its_own_table() {
    for format in FORMATS {
        let bench = Bench::new(format);
        let sql = COPY.replace(
            "SELECT * FROM STREAM(raw)",
            "SELECT new.n, old.n AS before FROM STREAM(raw) AS new JOIN raw AS old ON old.n = new.n - 1",
        );
        bench.file("in/1.json", &[json!({ "n": 1 }), json!({ "n": 2 })]);
        bench.succeed(&sql).await;
        bench.file("in/2.json", &[json!({ "n": 3 })]);
        bench.succeed(&sql).await;
        let rows = bench.rows("SELECT n, before FROM copy ORDER BY n").await;
        assert_eq!(json!(rows), json!([{"n": 2, "before": 1}, {"n": 3, "before": 2}]), "{format:?}");
    }
    let bench = Bench::new(Format::Delta);
    orders_until(&bench, 1);
    bench
        .succeed(
            "CREATE STREAMING TABLE t AS SELECT new.id FROM STREAM(delta.`orders`) AS new
             JOIN delta.`orders` AS old ON old.id = new.id;",
        )
        .await;
    assert_eq!(bench.rows("SELECT count(*) AS n FROM t").await[0]["n"], json!(4));
}

#[tokio::test]
async fn r05_a_once_flow_over_a_change_feed_fixes_its_last_version() {
    let bench = Bench::new(Format::Delta);
    orders_until(&bench, 2);
    let sql = "
        CREATE STREAMING TABLE t;
        CREATE FLOW seed AS AUTO CDC ONCE INTO t FROM STREAM(delta.`orders`) WITH (readChangeFeed = true, startingVersion = 1)
          KEYS (id) SEQUENCE BY _commit_version;";
    bench.succeed(sql).await;
    orders_until(&bench, 5);
    bench.succeed(sql).await;
    let rows = bench.rows("SELECT id, amount FROM t ORDER BY id").await;
    let row = |id: i64, amount: i64| json!({ "id": id, "amount": amount });
    assert_eq!(json!(rows), json!([row(1, 11), row(3, 30), row(4, 40), row(5, 50)]));
}

#[tokio::test]
async fn a_change_flow_that_could_not_see_deletes_is_refused() {
    let bench = Bench::new(Format::Memory);
    let sql = CHAIN.replace("SELECT *, v * 10", "SELECT k, seq, v, _commit_version, v * 10");
    let found = format!("{:?}", bench.run(&sql).await);
    assert!(found.contains("_change_type") && found.contains("APPLY AS DELETE WHEN"), "{found}");
}

#[tokio::test]
async fn t16_a_delete_and_an_insert_in_one_commit_are_an_update() {
    // The table has no keys, so that a commit which changes a row deletes it and inserts another.
    for format in FORMATS {
        let bench = Bench::new(format);
        let sql = "
            CREATE STREAMING TABLE raw AS SELECT * FROM STREAM read_files('in/*.json', format => 'json', schema => 'k STRING, v BIGINT');
            CREATE STREAMING TABLE now;
            CREATE FLOW now AS AUTO CDC INTO now FROM STREAM(raw) WITH (readChangeFeed = true) KEYS (k) SEQUENCE BY _commit_version;
            CREATE STREAMING TABLE log AS SELECT k, v, _change_type AS what FROM STREAM(raw) WITH (readChangeFeed = true);";
        bench.file("in/1.json", &[json!({ "k": "a", "v": 1 }), json!({ "k": "b", "v": 1 })]);
        bench.succeed(sql).await;
        let table = bench.storage.format.open("raw").await.unwrap().unwrap();
        let old = table.snapshot().await.unwrap().scan(None).await.unwrap();
        let doubled = futures::StreamExt::boxed(futures::StreamExt::map(old, |batch| {
            let batch = batch?;
            let values = batch.column(1).as_primitive::<arrow_array::types::Int64Type>();
            let values: arrow_array::Int64Array = values.unary(|v| v * 2);
            let columns = vec![std::sync::Arc::clone(batch.column(0)), std::sync::Arc::new(values)];
            Ok(arrow_array::RecordBatch::try_new(batch.schema(), columns)?)
        }));
        commit(&bench, "raw", TableChange::Overwrite(doubled), 1).await;
        bench.succeed(sql).await;
        let now = bench.rows("SELECT k, v FROM now ORDER BY k").await;
        assert_eq!(json!(now), json!([{"k": "a", "v": 2}, {"k": "b", "v": 2}]), "{format:?}");
        let log = bench.rows("SELECT what, count(*) AS n FROM log GROUP BY what ORDER BY what").await;
        assert_eq!(json!(log), json!([{"what": "delete", "n": 2}, {"what": "insert", "n": 4}]), "{format:?}");
    }
}
