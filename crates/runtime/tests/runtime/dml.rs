//! Rows that a user changes by hand in a target: honoured where they make sense, named where they contradict themselves.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use futures::TryStreamExt;
use serde_json::{Value, json};
use strandline_runtime::Storage;
use strandline_table_formats::{
    CommitOutcome, CommitStamp, Error, ErrorKind, LookupPlan, MemoryFormat, Result, Table, TableChange,
    TableDefinition, TableFormat, WriterId,
};

use crate::pipeline::{ALL_FORMATS, Bench, Format};

const PIPELINE: &str = "
    SET pipelines.maxFlowRetryAttempts = 0;
    CREATE STREAMING TABLE t;
    CREATE FLOW t AS AUTO CDC INTO t
      FROM STREAM read_files('in', format => 'json', schema => 'k BIGINT, seq BIGINT, v BIGINT, gone BOOLEAN')
      KEYS (k) APPLY AS DELETE WHEN gone SEQUENCE BY seq COLUMNS (k, v) STORED AS SCD TYPE 2;";

/// Replaces the versions of a key, as a user's DML would.
async fn by_hand(bench: &Bench, key: i64, versions: &[(i64, i64, Option<i64>)]) {
    let table = bench.storage.format.open("t").await.unwrap().unwrap();
    let base = table.snapshot().await.unwrap();
    let column = |values: Vec<Option<i64>>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let keys = RecordBatch::try_from_iter([("k", column(vec![Some(key)]))]).unwrap();
    let plan = LookupPlan { keys: Some(keys), columns: None, bound: None };
    let found: Vec<_> = base.lookup(&plan).await.unwrap().try_collect().await.unwrap();
    let deletes = found.iter().flat_map(|rows| rows.ids.values().to_vec()).collect();
    let schema = base.schema();
    let columns = schema.fields().iter().map(|field| match field.name().as_str() {
        "k" => column(vec![Some(key); versions.len()]),
        "v" => column(versions.iter().map(|version| Some(version.0)).collect()),
        "__START_AT" => column(versions.iter().map(|version| Some(version.1)).collect()),
        "__END_AT" => column(versions.iter().map(|version| version.2).collect()),
        other => panic!("a column {other}"),
    });
    let inserts = vec![RecordBatch::try_new(base.schema(), columns.collect()).unwrap()];
    let writer = WriterId { pipeline: "user".to_owned(), flow: "hand".to_owned(), incarnation: 0 };
    let batch = base.version().0 + 1;
    let stamp = CommitStamp { writer, batch, state: base.state_version(), epoch: base.epoch() };
    let outcome = table.commit(base.as_ref(), TableChange::Rows { deletes, inserts }, &stamp).await.unwrap();
    assert!(matches!(outcome, CommitOutcome::Committed(_)), "{outcome:?}");
}

async fn versions(bench: &Bench) -> Value {
    json!(bench.rows("SELECT k, v, __START_AT AS s, __END_AT AS e FROM t ORDER BY k, s, v").await)
}

fn version(k: i64, v: i64, s: i64, e: Option<i64>) -> Value {
    json!({ "k": k, "v": v, "s": s, "e": e })
}

async fn filled(format: Format) -> Bench {
    let bench = Bench::new(format);
    let event = |k: i64, seq: i64| json!({ "k": k, "seq": seq, "v": 10 * k + seq });
    bench.file("in/1.json", &[event(1, 1), event(1, 5), event(2, 1), event(2, 5)]);
    bench.succeed(PIPELINE).await;
    bench
}

#[tokio::test]
async fn t17_versions_written_by_hand_are_honoured_by_what_comes_later() {
    for format in ALL_FORMATS {
        let bench = filled(format).await;
        by_hand(&bench, 1, &[(70, 2, Some(7)), (71, 7, None)]).await;
        bench
            .file("in/2.json", &[json!({ "k": 1, "seq": 9, "v": 19 }), json!({ "k": 1, "seq": 4, "v": 14 })]);
        bench.succeed(PIPELINE).await;
        let expected = [
            version(1, 70, 2, Some(4)),
            version(1, 14, 4, Some(7)),
            version(1, 71, 7, Some(9)),
            version(1, 19, 9, None),
            version(2, 21, 1, Some(5)),
            version(2, 25, 5, None),
        ];
        assert_eq!(versions(&bench).await, json!(expected), "{format:?}");
    }
}

#[tokio::test]
async fn t18_versions_by_hand_that_overlap_are_named_when_their_key_changes_next() {
    for format in ALL_FORMATS {
        let bench = filled(format).await;
        by_hand(&bench, 1, &[(70, 2, Some(7)), (71, 5, None)]).await;
        let before = versions(&bench).await;
        // Other keys go on.
        bench.file("in/2.json", &[json!({ "k": 2, "seq": 9, "v": 29 })]);
        bench.succeed(PIPELINE).await;
        bench.file("in/3.json", &[json!({ "k": 1, "seq": 6, "v": 16 })]);
        let report = bench.run(PIPELINE).await.unwrap();
        let reason = report.flows[0].reason.clone().unwrap_or_default();
        assert!(reason.contains("overlap") && reason.contains('1'), "{format:?}: {reason}");
        let after = versions(&bench).await;
        assert_eq!(
            after.as_array().unwrap()[..2],
            before.as_array().unwrap()[..2],
            "nothing of it is touched"
        );
        // Put right by hand, the waiting change is taken.
        by_hand(&bench, 1, &[(70, 2, Some(5)), (71, 5, None)]).await;
        bench.succeed(PIPELINE).await;
        let key_1 = versions(&bench).await.as_array().unwrap()[..3].to_vec();
        let expected = [version(1, 70, 2, Some(5)), version(1, 71, 5, Some(6)), version(1, 16, 6, None)];
        assert_eq!(key_1, expected, "{format:?}");
    }
}

#[tokio::test]
async fn t06_t07_a_target_has_the_columns_of_its_shape_and_no_other() {
    let shapes: [(&str, &[&str]); 5] = [
        ("SEQUENCE BY seq COLUMNS (k, v)", &["k", "v", "__SEQUENCE_AT"]),
        ("SEQUENCE BY seq COLUMNS (k, v, seq)", &["k", "seq", "v"]),
        ("SEQUENCE BY seq COLUMNS (k, v) STORED AS SCD TYPE 2", &["k", "v", "__START_AT", "__END_AT"]),
        (
            "SEQUENCE BY seq COLUMNS (k, v) STORED AS SCD TYPE 2 TRACK HISTORY ON (v)",
            &["k", "v", "__START_AT", "__END_AT"],
        ),
        (
            "SEQUENCE BY seq SYSTEM SEQUENCE BY known COLUMNS (k, v) STORED AS BITEMPORAL",
            &["k", "v", "__START_AT", "__END_AT", "__SYSTEM_START_AT", "__SYSTEM_END_AT"],
        ),
    ];
    for format in ALL_FORMATS {
        for (clauses, columns) in shapes {
            let sql = format!(
                "CREATE STREAMING TABLE t;
                 CREATE FLOW t AS AUTO CDC INTO t
                   FROM STREAM read_files('in', format => 'json',
                     schema => 'k BIGINT, seq BIGINT, known BIGINT, v BIGINT, gone BOOLEAN')
                   KEYS (k) APPLY AS DELETE WHEN gone {clauses};"
            );
            let bench = Bench::new(format);
            // A tombstone, an interior event and a late one: what the engine remembers is no row.
            let event = |k: i64, seq: i64, v: i64, gone: bool| json!({ "k": k, "seq": seq, "known": seq, "v": v, "gone": gone });
            bench.file("in/1.json", &[event(1, 1, 1, false), event(1, 3, 1, false), event(2, 9, 0, true)]);
            bench.file("in/2.json", &[event(1, 2, 1, false), event(2, 5, 0, false), event(3, 4, 0, true)]);
            bench.succeed(&sql).await;
            let table = bench.storage.format.open("t").await.unwrap().unwrap();
            let snapshot = table.snapshot().await.unwrap();
            let schema = snapshot.schema();
            let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            assert_eq!(names, columns, "{format:?} {clauses}");
            let current = bench.rows("SELECT k FROM t").await;
            assert!(
                current.iter().all(|row| row["k"] == 1 || row["k"] == 2),
                "{format:?} {clauses}: {current:?}"
            );
        }
    }
}

/// A format whose tables can only be appended to and overwritten.
#[derive(Debug)]
struct AppendOnly(MemoryFormat);

#[async_trait]
impl TableFormat for AppendOnly {
    fn name(&self) -> &'static str {
        "plain-files"
    }
    fn check_schema(&self, schema: &SchemaRef) -> Result<()> {
        self.0.check_schema(schema)
    }
    fn check_row_changes(&self) -> Result<()> {
        Err(Error::new(ErrorKind::Unsupported, "tables of format plain-files take no changes of rows"))
    }
    async fn create(&self, name: &str, definition: &TableDefinition) -> Result<Arc<dyn Table>> {
        self.0.create(name, definition).await
    }
    async fn open(&self, name: &str) -> Result<Option<Arc<dyn Table>>> {
        self.0.open(name).await
    }
    async fn list(&self) -> Result<Vec<String>> {
        self.0.list().await
    }
}

#[tokio::test]
async fn t02_a_change_target_in_a_format_without_changes_of_rows_is_refused_before_anything_runs() {
    let mut bench = Bench::new(Format::Memory);
    let format = Arc::new(AppendOnly(MemoryFormat::new()));
    bench.storage = Storage { format, ..bench.storage };
    bench.file("in/1.json", &[json!({ "k": 1, "seq": 1, "v": 1 })]);
    let append = "CREATE STREAMING TABLE raw AS SELECT * FROM STREAM read_files('in', format => 'json', schema => 'k BIGINT');";
    let errors = bench.run(&format!("{append}{PIPELINE}")).await.unwrap_err();
    let text = errors[0].full_text();
    assert!(text.contains("plain-files") && text.contains("changes of rows"), "{text}");
    assert!(bench.storage.format.list().await.unwrap().is_empty(), "nothing was made");
    bench.succeed(append).await;
    assert_eq!(bench.rows("SELECT k FROM raw").await.len(), 1);
}
