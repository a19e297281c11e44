//! Do a target's seed and live feed meet well, key by key?

use serde_json::{Value, json};
use strandline_runtime::{
    ErrorKind, HandoffReport, Project,
    definition::{AutoCdcFlow, PipelineBuilder, Support},
};

use crate::pipeline::{Bench, FORMATS, Format};

const PIPELINE: &str = "
    CREATE STREAMING TABLE t;
    CREATE FLOW legacy AS AUTO CDC ONCE INTO t
      FROM (SELECT id, valid_from AS seq, v FROM read_files('old', format => 'json', schema => 'id BIGINT, valid_from BIGINT, v STRING'))
      KEYS (id) SEQUENCE BY seq STORED AS SCD TYPE 2;
    CREATE FLOW live DEPENDS ON (legacy) AS AUTO CDC INTO t
      FROM STREAM read_files('new', format => 'json', schema => 'id BIGINT, seq BIGINT, v STRING, op STRING')
      KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS * EXCEPT (op) STORED AS SCD TYPE 2;";

fn seeded(id: i64, valid_from: i64) -> Value {
    json!({"id": id, "valid_from": valid_from, "v": "old"})
}

fn live(id: i64, seq: i64) -> Value {
    json!({"id": id, "seq": seq, "v": "new", "op": if seq % 2 == 0 { "U" } else { "D" }})
}

/// Twelve keys that end at 100; live changes of key n begin at 89 + n, of key 7 only later, of key 50 without a seed.
fn fill(bench: &Bench) {
    bench.file("old/1.json", &(0..13).map(|id| seeded(id, 50)).collect::<Vec<_>>());
    bench.file("old/2.json", &(0..13).map(|id| seeded(id, 100)).collect::<Vec<_>>());
    bench.file("old/3.json", &[seeded(99, 100)]);
    let firsts = (0..13).filter(|id| *id != 7).map(|id| live(id, 89 + id));
    bench.file("new/1.json", &firsts.chain([live(50, 1)]).collect::<Vec<_>>());
    bench.file("new/2.json", &[live(7, 101), live(3, 93), live(3, 100), live(3, 101), live(7, 150)]);
}

async fn report(bench: &Bench, sql: &str) -> HandoffReport {
    let mut reports = bench.project(sql).handoff(None).await.unwrap_or_else(|errors| panic!("{errors:?}"));
    assert_eq!(reports.len(), 1);
    reports.remove(0)
}

#[tokio::test]
async fn keys_whose_live_feed_begins_too_early_are_counted_and_shown() {
    for format in FORMATS {
        let bench = Bench::new(format);
        fill(&bench);
        let before = report(&bench, PIPELINE).await;
        assert!(bench.storage.format.list().await.unwrap().is_empty(), "it makes no table");
        assert_eq!((before.target.as_str(), before.is_clean()), ("t", false));
        assert_eq!(
            (&before.seed_flows[..], &before.live_flows[..]),
            (&["legacy".into()][..], &["live".into()][..])
        );
        assert_eq!((before.seeded_keys, before.live_keys, before.keys_of_both), (14, 14, 13));
        // Keys 0 to 11 begin at 89 to 100, at the last seeded change or before; key 7 begins after it.
        assert_eq!((before.offending_keys, before.offending_changes), (11, 13));
        assert_eq!(before.unusable_rows, 0);
        assert_eq!(before.samples.len(), 10);
        let shown: Vec<_> = before.samples.iter().map(|sample| sample.key["id"].as_i64().unwrap()).collect();
        assert_eq!(shown, [0, 1, 2, 3, 4, 5, 6, 8, 9, 10]);
        let third = &before.samples[3];
        assert_eq!((&third.last_seeded, &third.first_live, third.changes), (&json!(100), &json!(92), 3));
        // What ran already makes no difference, and nothing is changed.
        bench.succeed(PIPELINE).await;
        let versions = bench.version("t").await;
        assert_eq!(report(&bench, PIPELINE).await, before, "{format:?}");
        assert_eq!(bench.version("t").await, versions);
    }
}

#[tokio::test]
async fn a_feed_that_begins_after_the_seed_is_clean() {
    let bench = Bench::new(Format::Memory);
    bench.file("old/1.json", &[seeded(1, 5), seeded(1, 10), seeded(2, 7)]);
    bench.file("new/1.json", &[live(1, 11), live(2, 8), live(3, 1)]);
    let found = report(&bench, PIPELINE).await;
    assert!(found.is_clean() && found.samples.is_empty(), "{found:?}");
    assert_eq!((found.seeded_keys, found.live_keys, found.keys_of_both), (2, 3, 2));
    bench.file("new/2.json", &[live(2, 7)]);
    let found = report(&bench, PIPELINE).await;
    assert_eq!(found.offending_keys, 1, "a change at the last seeded one is not after it");
    assert_eq!(found.samples[0].key["id"], json!(2));
}

#[tokio::test]
async fn rows_that_an_update_would_refuse_are_counted() {
    let bench = Bench::new(Format::Memory);
    bench.file("old/1.json", &[seeded(1, 5), json!({"id": null, "valid_from": 5}), json!({"id": 1})]);
    bench.file("new/1.json", &[live(1, 6), json!({"seq": 1})]);
    let found = report(&bench, PIPELINE).await;
    assert_eq!((found.unusable_rows, found.offending_keys, found.seeded_keys), (3, 0, 1));
}

fn typed(keys: &str, columns: &str, sequence: &str) -> String {
    let files = |folder: &str| format!("read_files('{folder}', format => 'json', schema => '{columns}')");
    format!(
        "CREATE STREAMING TABLE t;
         CREATE FLOW seed AS AUTO CDC ONCE INTO t FROM {} KEYS ({keys}) SEQUENCE BY {sequence};
         CREATE FLOW live AS AUTO CDC INTO t FROM STREAM {} KEYS ({keys}) SEQUENCE BY {sequence};",
        files("old"),
        files("new")
    )
}

#[tokio::test]
async fn c_29_composite_keys_and_struct_sequences_are_compared_by_value() {
    let bench = Bench::new(Format::Memory);
    let sql = typed("a, b", "a STRING, b DATE, ts BIGINT, lsn BIGINT", "struct(ts, lsn)");
    let row = |a: &str, ts: i64, lsn: i64| json!({"a": a, "b": "2025-01-01", "ts": ts, "lsn": lsn});
    bench.file("old/1.json", &[row("x", 2, 1), row("x", 1, 999), row("y", 2, 5), row("z", 2, 5)]);
    bench.file("new/1.json", &[row("x", 2, 2), row("y", 2, 4), row("y", 3, 0), row("z", 10, 0)]);
    let found = report(&bench, &sql).await;
    assert_eq!((found.offending_keys, found.offending_changes), (1, 1));
    let sample = &found.samples[0];
    assert_eq!(json!(sample.key), json!({"a": "y", "b": "2025-01-01"}));
    let numbers = |value: &Value| value.as_object().unwrap().values().cloned().collect::<Vec<_>>();
    assert_eq!(numbers(&sample.last_seeded).len(), 2);
    assert!(
        numbers(&sample.last_seeded).contains(&json!(5)) && numbers(&sample.first_live).contains(&json!(4))
    );
}

#[tokio::test]
async fn c_73_keys_are_equal_as_the_engine_has_it() {
    let bench = Bench::new(Format::Memory);
    let sql = typed("k", "k DOUBLE, seq BIGINT", "seq");
    bench.raw_file("old/1.json", "{\"k\": 0.0, \"seq\": 5}\n{\"k\": 1.5, \"seq\": 5}\n");
    bench.raw_file("new/1.json", "{\"k\": -0.0, \"seq\": 4}\n{\"k\": 1.5, \"seq\": 6}\n");
    let found = report(&bench, &sql).await;
    assert_eq!((found.keys_of_both, found.offending_keys), (2, 1));
}

/// A seed of `old` and a live feed of `new`, with clauses of their own.
fn built(bench: &Bench, columns: &str, seed: &[&str], live: &[&str]) -> Project {
    let flow = |name: &str, stream: &str, folder: &str, clauses: &[&str]| {
        let path = bench.path().join(folder);
        let files = format!("read_files('{}', format => 'json', schema => '{columns}')", path.display());
        let flow =
            AutoCdcFlow::new("t", &format!("{stream}{files}")).named(name).keys(["id"]).sequence_by("seq");
        clauses.iter().fold(flow, |flow, clause| flow.clause(*clause))
    };
    let definition = PipelineBuilder::new()
        .streaming_table("t")
        .auto_cdc_flow(flow("seed", "", "old", seed).once())
        .auto_cdc_flow(flow("live", "STREAM ", "new", live))
        .build_with(&Support::everything())
        .unwrap();
    Project::new("test", definition, &[], bench.storage.clone())
}

#[tokio::test]
async fn a_seed_ends_where_valid_to_says() {
    let bench = Bench::new(Format::Memory);
    let scd2 = "STORED AS SCD TYPE 2";
    let project = built(&bench, "id BIGINT, seq BIGINT, ended BIGINT", &[scd2, "VALID TO ended"], &[scd2]);
    bench.file(
        "old/1.json",
        &[
            json!({"id": 1, "seq": 5, "ended": 20}),
            json!({"id": 2, "seq": 5}),
            json!({"id": 3, "seq": 5, "ended": 7}),
            // It holds before 10, so that the change at 10 follows on it.
            json!({"id": 4, "seq": 5, "ended": 10}),
        ],
    );
    bench.file("new/1.json", &[1, 2, 3, 4].map(|id| json!({"id": id, "seq": 10})));
    let found = project.handoff(Some("t")).await.unwrap().remove(0);
    assert_eq!((found.offending_keys, found.unusable_rows), (1, 0));
    assert_eq!((&found.samples[0].key["id"], &found.samples[0].last_seeded), (&json!(1), &json!(20)));
}

#[tokio::test]
async fn truncates_are_changes_of_no_key() {
    let bench = Bench::new(Format::Memory);
    let project =
        built(&bench, "id BIGINT, seq BIGINT, op STRING", &[], &["APPLY AS TRUNCATE WHEN op = 'T'"]);
    bench.file("old/1.json", &[json!({"id": 1, "seq": 5})]);
    let change = |id: Option<i64>, seq: i64, op: Option<&str>| json!({"id": id, "seq": seq, "op": op});
    bench.file(
        "new/1.json",
        &[
            change(None, 1, Some("T")),
            change(Some(1), 2, Some("T")),
            change(Some(1), 6, None),
            change(Some(2), 1, Some("U")),
        ],
    );
    let found = project.handoff(None).await.unwrap().remove(0);
    assert!(found.is_clean(), "{found:?}");
    assert_eq!((found.live_keys, found.unusable_rows), (2, 0));
}

async fn refusal(bench: &Bench, sql: &str, target: Option<&str>) -> String {
    let errors = bench.project(sql).handoff(target).await.unwrap_err();
    assert_eq!(errors[0].kind(), ErrorKind::Definition, "{errors:?}");
    format!("{} | {}", errors[0].full_text(), errors[0].help_text().unwrap_or_default())
}

#[tokio::test]
async fn targets_without_both_and_flows_that_disagree_are_refused_by_name() {
    let bench = Bench::new(Format::Memory);
    fill(&bench);
    let only_live =
        PIPELINE.replace("AUTO CDC ONCE", "AUTO CDC").replace("FROM read_files", "FROM STREAM read_files");
    assert!(refusal(&bench, &only_live, None).await.contains("none"));
    let found = refusal(&bench, PIPELINE, Some("nope")).await;
    assert!(found.contains("nope") && found.contains("have both: t"), "{found}");
    let other_type = PIPELINE.replace("valid_from AS seq", "CAST(valid_from AS STRING) AS seq");
    let found = refusal(&bench, &other_type, None).await;
    assert!(found.contains("legacy") && found.contains("Utf8") && found.contains("Int64"), "{found}");
    let other_key = PIPELINE.replace("SELECT id, valid_from", "SELECT CAST(id AS STRING) AS id, valid_from");
    let found = refusal(&bench, &other_key, None).await;
    assert!(found.contains("keys") && found.contains("id Utf8"), "{found}");
}

#[tokio::test]
async fn a_feed_of_a_table_that_is_not_filled_yet_says_what_to_do() {
    let bench = Bench::new(Format::Memory);
    fill(&bench);
    let sql = "
        CREATE STREAMING TABLE raw AS SELECT * FROM STREAM read_files('new', format => 'json', schema => 'id BIGINT, seq BIGINT, v STRING');
        CREATE STREAMING TABLE t;
        CREATE FLOW legacy AS AUTO CDC ONCE INTO t
          FROM (SELECT id, valid_from AS seq, v FROM read_files('old', format => 'json', schema => 'id BIGINT, valid_from BIGINT, v STRING'))
          KEYS (id) SEQUENCE BY seq;
        CREATE FLOW live AS AUTO CDC INTO t FROM STREAM(raw) KEYS (id) SEQUENCE BY seq;";
    let errors = bench.project(sql).handoff(None).await.unwrap_err();
    assert_eq!(errors[0].kind(), ErrorKind::NotFound);
    assert!(
        errors[0].full_text().contains("raw") && errors[0].help_text().unwrap().contains("fill it"),
        "{errors:?}"
    );
    bench.succeed(sql).await;
    assert_eq!(report(&bench, sql).await.offending_keys, 11);
}
