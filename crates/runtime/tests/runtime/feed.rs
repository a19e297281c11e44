//! A change feed with real disorder, through files and SQL into Delta: equal to the reference model for one batch, for fifty
//! shuffled batches, and when everything arrives twice.
//!
//! `STRANDLINE_FEED=file.jsonl cargo test --workspace --all-features --test runtime feed` takes a feed of your own: fields `path`, `op`
//! (U or D), `mode`, `blob`, `n`, `authored_at`, `committed_at`. Without it a made-up feed of the same shape is taken.

use std::{collections::BTreeMap, fs};

use serde_json::{Value as Json, json};
use strandline_testkit::{
    real_feed::{self, Clock},
    reference::{self, Row, Value},
};

use crate::pipeline::{Bench, Format, JsonRow};

/// Numbers without pattern, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

fn made_up_feed() -> String {
    let mut random = Random(7);
    let lines = (1..=3000).map(|n| {
        let op = if random.below(12) == 0 { "D" } else { "U" };
        let day = |d: usize| format!("2020-01-{:02}T00:00:{:02}Z", d % 28 + 1, d % 60);
        json!({
            "n": n, "path": format!("src/{}.rs", random.below(150)), "op": op, "mode": "100644",
            "blob": format!("{:x}", random.below(5)), "authored_at": day(random.below(900)), "committed_at": day(n / 4),
        })
        .to_string()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where a test is pointed to a file of the user's"
)]
fn feed() -> Vec<Json> {
    let given = std::env::var("STRANDLINE_FEED").ok();
    let text =
        given.map_or_else(made_up_feed, |path| fs::read_to_string(path).expect("the feed can be read"));
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

const FLOW: &str = "FROM STREAM read_files('in/*.json', format => 'json', maxFilesPerTrigger => 1,
    schema => 'path STRING, op STRING, mode STRING, blob STRING, n BIGINT, authored_at TIMESTAMP, committed_at TIMESTAMP')
    KEYS (path) APPLY AS DELETE WHEN op = 'D' COLUMNS (path, mode, blob)";

/// Tables that are made of the feed: by the order of recording, by business time, and by business and system time.
const TABLES: [&str; 4] = ["now", "was", "was_authored", "believed"];

fn pipeline() -> String {
    let clauses = [
        "SEQUENCE BY n STORED AS SCD TYPE 1",
        "SEQUENCE BY n STORED AS SCD TYPE 2",
        "SEQUENCE BY authored_at STORED AS SCD TYPE 2",
        "SEQUENCE BY authored_at SYSTEM SEQUENCE BY committed_at STORED AS BITEMPORAL",
    ];
    let flow = |(table, clauses): (&str, &str)| {
        format!(
            "CREATE STREAMING TABLE {table}; CREATE FLOW {table} AS AUTO CDC INTO {table} {FLOW} {clauses};"
        )
    };
    TABLES.into_iter().zip(clauses).map(flow).collect()
}

fn plain(rows: Vec<Row>) -> Vec<BTreeMap<String, String>> {
    let text = |value: Value| match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Text(text) => text,
        other => panic!("{other:?} is not met here"),
    };
    let mut rows: Vec<BTreeMap<_, _>> = rows
        .into_iter()
        .map(|row| row.into_iter().map(|(name, value)| (name, text(value))).collect())
        .collect();
    rows.sort();
    rows
}

fn plain_json(rows: Vec<JsonRow>) -> Vec<BTreeMap<String, String>> {
    let text = |value: Json| match value {
        Json::Null => "NULL".to_owned(),
        Json::String(text) => text,
        other => other.to_string(),
    };
    let mut rows: Vec<BTreeMap<_, _>> = rows
        .into_iter()
        .map(|row| row.into_iter().map(|(name, value)| (name, text(value))).collect())
        .collect();
    rows.sort();
    rows
}

/// What the reference model makes of the feed.
fn expected(feed: &[Json], folder: &std::path::Path) -> Vec<Vec<BTreeMap<String, String>>> {
    let file = folder.join("feed.jsonl");
    let lines: Vec<String> = feed.iter().map(ToString::to_string).collect();
    fs::write(&file, lines.join("\n")).unwrap();
    let rows = real_feed::load(&file).unwrap();
    let events = |clock: Clock| rows.iter().map(|row| row.event(clock)).collect::<Vec<_>>();
    let keys = ["path"];
    vec![
        plain(reference::scd1(&keys, &events(Clock::Recorded))),
        plain(reference::scd2(&keys, &events(Clock::Recorded), None)),
        plain(reference::scd2(&keys, &events(Clock::Authored), None)),
        plain(reference::bitemporal(&keys, &events(Clock::Both))),
    ]
}

async fn tables(bench: &Bench) -> Vec<Vec<BTreeMap<String, String>>> {
    let mut tables = Vec::new();
    for table in TABLES {
        tables.push(plain_json(bench.rows(&format!("SELECT * FROM {table}")).await));
    }
    tables
}

fn check(found: &[Vec<BTreeMap<String, String>>], expected: &[Vec<BTreeMap<String, String>>], how: &str) {
    for ((table, found), expected) in TABLES.iter().zip(found).zip(expected) {
        let first = found.iter().zip(expected).find(|(found, expected)| found != expected);
        let lengths = (found.len(), expected.len());
        assert!(found == expected, "{table} {how}: {lengths:?} rows, the first that differ: {first:?}");
    }
}

#[tokio::test]
async fn law_1_a_feed_in_one_batch_in_fifty_shuffled_ones_and_twice() {
    let feed = feed();
    let one = Bench::new(Format::Delta);
    let expected = expected(&feed, one.path());
    let lengths: Vec<usize> = expected.iter().map(Vec::len).collect();
    assert!(lengths[0] > 50 && lengths[1] > lengths[0] && lengths[3] > lengths[2], "a history: {lengths:?}");
    one.file("in/0.json", &feed);
    one.succeed(&pipeline()).await;
    check(&tables(&one).await, &expected, "in one batch");

    let mut shuffled = feed.clone();
    let mut random = Random(42);
    for last in (1..shuffled.len()).rev() {
        shuffled.swap(last, random.below(last + 1));
    }
    let fifty = Bench::new(Format::Delta);
    for (number, batch) in shuffled.chunks(shuffled.len().div_ceil(50)).enumerate() {
        fifty.file(&format!("in/{number:02}.json"), batch);
    }
    fifty.succeed(&pipeline()).await;
    check(&tables(&fifty).await, &expected, "in fifty shuffled batches");

    one.file("in/1.json", &shuffled);
    one.succeed(&pipeline()).await;
    check(&tables(&one).await, &expected, "twice");
    for table in TABLES {
        assert_eq!(one.version(table).await, 1, "what is known changes nothing of {table}");
    }
}
