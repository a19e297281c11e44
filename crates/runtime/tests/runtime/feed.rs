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
    schema => 'path STRING, op STRING, mode STRING, blob STRING, n BIGINT')
    KEYS (path) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY n COLUMNS (path, mode, blob)";

fn pipeline() -> String {
    format!(
        "CREATE STREAMING TABLE now; CREATE FLOW now AS AUTO CDC INTO now {FLOW} STORED AS SCD TYPE 1;
         CREATE STREAMING TABLE was; CREATE FLOW was AS AUTO CDC INTO was {FLOW} STORED AS SCD TYPE 2;"
    )
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

/// What the reference model makes of the feed, by `n`.
fn expected(feed: &[Json], folder: &std::path::Path) -> [Vec<BTreeMap<String, String>>; 2] {
    let file = folder.join("feed.jsonl");
    let lines: Vec<String> = feed.iter().map(ToString::to_string).collect();
    fs::write(
        &file,
        lines.join(
            "
",
        ),
    )
    .unwrap();
    let events: Vec<_> =
        real_feed::load(&file).unwrap().iter().map(|row| row.event(Clock::Recorded)).collect();
    [plain(reference::scd1(&["path"], &events)), plain(reference::scd2(&["path"], &events, None))]
}

async fn tables(bench: &Bench) -> [Vec<BTreeMap<String, String>>; 2] {
    [plain_json(bench.rows("SELECT * FROM now").await), plain_json(bench.rows("SELECT * FROM was").await)]
}

#[tokio::test]
async fn law_1_a_feed_in_one_batch_in_fifty_shuffled_ones_and_twice() {
    let feed = feed();
    let one = Bench::new(Format::Delta);
    let expected = expected(&feed, one.path());
    assert!(expected[1].len() > expected[0].len() && expected[0].len() > 50, "the feed has a history");
    one.file("in/0.json", &feed);
    one.succeed(&pipeline()).await;
    assert!(tables(&one).await == expected, "in one batch");

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
    assert!(tables(&fifty).await == expected, "in fifty shuffled batches");

    one.file("in/1.json", &shuffled);
    one.succeed(&pipeline()).await;
    assert!(tables(&one).await == expected, "twice");
    assert_eq!(one.version("now").await, 1, "what is known changes nothing");
}
