//! Does any text at all make the parser panic, overflow the stack or take for ever? (Invariant 7)

use proptest::prelude::*;
use strandline_pipeline_sql::{
    FlowQuery, PipelineDefinition, SourceFile, SqlError, SqlExpr, Support, Values, parse_pipeline,
    parse_pipeline_with, parse_pipeline_with_values,
};

const VALID: &str = "SET pipelines.x = 'y';
CREATE OR REFRESH STREAMING TABLE t (id BIGINT NOT NULL, s STRUCT<a: ARRAY<INT>, b: MAP<STRING, DECIMAL(5,2)>>,
  CONSTRAINT c EXPECT (id > 0) ON VIOLATION DROP ROW) USING delta PARTITIONED BY (id) COMMENT \"it's\"
  TBLPROPERTIES ('a' = 'b', c.d = -1) AS SELECT * FROM STREAM read_files('p', format => 'json', schema => 'a INT');
CREATE TEMPORARY VIEW v AS WITH c AS (SELECT * FROM t) SELECT `x y`, a[1], m:k FROM STREAM(c) JOIN LIVE.d ON x = 'ü';
CREATE FLOW f COMMENT 'c' DEPENDS ON (a, b) AS INSERT INTO ONCE t BY NAME VALUES (1), (2);
CREATE FLOW g AS AUTO CDC ONCE INTO t FROM (SELECT * FROM STREAM s) KEYS (k, `a.b`) IGNORE NULL UPDATES ON * EXCEPT (a)
  APPLY AS DELETE WHEN op = 'D' SEQUENCE BY struct(a, b) COLUMNS * EXCEPT (op) STORED AS SCD TYPE 2 TRACK HISTORY ON (p);
CREATE FLOW h AS AUTO CDC INTO t FROM SNAPSHOT (SELECT 1) WITH VERSION (SELECT 2) KEYS (k);
CREATE FLOW i AS AUTO CDC ONCE INTO t FROM s KEYS (k) SEQUENCE BY a STORED AS SCD TYPE 2 VALID TO b + 1;
CREATE FLOW j AS AUTO CDC INTO t FROM STREAM s KEYS (k) APPLY AS RETRACT WHEN r SEQUENCE BY a SYSTEM SEQUENCE BY b STORED AS BITEMPORAL;
AUTO CDC INTO t FROM STREAM s KEYS (k) APPLY AS TRUNCATE WHEN r SEQUENCE BY a COLUMNS TO UPDATE m;
CREATE MATERIALIZED VIEW m (CONSTRAINT q EXPECT (n > 0)) AS SELECT k, count(*) AS n FROM json.`/in` JOIN delta.`/t` USING (k) GROUP BY k;
CREATE FLOW k DEPENDS ON a AS UPDATE INTO x BY NAME SELECT '${pipelines.x}', '\\${no}' FROM STREAM(t) WITH (readChangeFeed, 'startingVersion' = 5) u;
CREATE FLOW l AS AUTO CDC INTO t FROM SNAPSHOT (SELECT * FROM s, current_snapshot_version() c)
  WITH VERSION (SELECT min(d) FROM s WHERE d > (SELECT * FROM last_snapshot_version())) KEYS (k);
AUTO CDC INTO u FROM SNAPSHOT CALLBACK KEYS (k);
-- COMMAND ----------
CREATE STREAMING TABLE w FLOW INSERT ONCE BY NAME SELECT * FROM read_kafka(subscribe => 'a', schema => 'b INT')
-- COMMAND ----------
CREATE LIVE TABLE y AS SELECT 1; CREATE INCREMENTAL LIVE TABLE z AS SELECT * FROM cloud_files('p', 'json', map('a', 'b'));
CREATE SINK x USING foreachBatch OPTIONS ('a' 'b', c.d = 1); /* c */ -- end";

/// Reads `text` in every way, and renders every error against it.
fn read(text: &str) {
    let sources = [SourceFile::new("f", text)];
    let value = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let values = Values {
        defaults: [value("k", "it's \"`\\ ${pipelines.x}")].into(),
        overrides: [value("pipelines.x", "")].into(),
    };
    checked(text, parse_pipeline(&sources));
    checked(text, parse_pipeline_with(&sources, &Support::everything()));
    checked(text, parse_pipeline_with_values(&sources, &Support::everything(), &values));
}

fn checked(text: &str, result: Result<PipelineDefinition, Vec<SqlError>>) {
    match result {
        Ok(definition) => {
            let printed = definition.to_sql();
            assert!(!printed.contains("__strandline_"));
            let sources = [SourceFile::new("f", printed.as_str())];
            let again = parse_pipeline_with(&sources, &Support::everything());
            assert_eq!(again.as_ref(), Ok(&definition), "{text}\nis printed as\n{printed}");
            definition.graph().map(|graph| graph.to_string()).unwrap_or_default();
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in errors {
                assert!(error.span.start <= error.span.end && error.span.end <= text.len(), "{error:?}");
                assert!(text.is_char_boundary(error.span.start) && text.is_char_boundary(error.span.end));
                assert!(!error.render(text).is_empty() && !error.to_string().contains('\n'), "{error:?}");
            }
        }
    }
}

fn fragment() -> impl Strategy<Value = String> {
    let words: Vec<&str> = VALID.split_inclusive(&[' ', '(', ')', ',', ';', '\n'][..]).collect();
    prop_oneof![
        8 => proptest::sample::select(words).prop_map(str::to_owned),
        1 => "\\PC{0,4}",
        1 => proptest::sample::select(vec!["${pipelines.x}", "${k}", "${", "$", "{", "}", "(", ")", "'", "\"", "`", "\\", ";", "\u{0}", "/*", "--", "<", ">>", "=>", "😀", "\r\n"])
            .prop_map(str::to_owned),
    ]
}

/// `PROPTEST_CASES` asks for more than a few minutes allow.
fn cases() -> u32 {
    ProptestConfig::default().cases.max(1500)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_text_never_panics(text in "(?s:.){0,80}") {
        read(&text);
        drop(SqlExpr::parse(&text));
        drop(FlowQuery::parse(&text));
    }

    #[test]
    fn shuffled_words_never_panic(words in proptest::collection::vec(fragment(), 0..40)) {
        read(&words.concat());
    }

    /// One statement at a time, so that more of what comes out parses.
    #[test]
    fn mutated_statements_survive_being_printed(
        statement in proptest::sample::select(VALID.split(';').collect::<Vec<_>>()),
        edits in proptest::collection::vec((any::<proptest::sample::Index>(), 0..3_usize, fragment()), 1..3),
    ) {
        let mut words: Vec<String> =
            statement.split_inclusive(&[' ', '(', ')', ',', '\n'][..]).map(str::to_owned).collect();
        for (at, length, with) in edits {
            let at = at.index(words.len() + 1).min(words.len());
            let end = (at + length).min(words.len());
            words.splice(at..end, [with]);
        }
        read(&format!("SET pipelines.x = 'y';{}", words.concat()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases() / 5, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_sql_never_panics(
        edits in proptest::collection::vec((any::<proptest::sample::Index>(), 0..12_usize, fragment()), 1..5),
    ) {
        let mut chars: Vec<char> = VALID.chars().collect();
        for (at, length, with) in edits {
            let at = at.index(chars.len() + 1).min(chars.len());
            let end = (at + length).min(chars.len());
            chars.splice(at..end, with.chars());
            if chars.is_empty() {
                break;
            }
        }
        read(&chars.into_iter().collect::<String>());
    }
}

#[test]
fn valid_text_is_valid() {
    let read = parse_pipeline_with(&[SourceFile::new("f", VALID)], &Support::everything());
    assert!(read.is_ok(), "{read:?}");
}

#[test]
fn every_prefix_is_read() {
    for (at, _) in VALID.char_indices() {
        read(&VALID[..at]);
    }
}

#[test]
fn deep_nesting_is_refused() {
    let deep = 10_000;
    for (open, middle, close) in [
        ("(", "1", ")"),
        ("f(", "1", ")"),
        ("NOT ", "a", ""),
        ("- ", "1", ""),
        ("a + (", "1", ")"),
        ("CASE WHEN ", "a", " THEN 1 END"),
        ("array[", "1", "]"),
        ("struct(", "1", ")"),
        ("overlay(", "1", ")"),
        ("f(x -> ", "1", ")"),
    ] {
        let text = format!("{}{middle}{}", open.repeat(deep), close.repeat(deep));
        assert!(SqlExpr::parse(&text).is_err(), "{open}");
        let medium = format!("{}{middle}{}", open.repeat(300), close.repeat(300));
        assert!(SqlExpr::parse(&medium).is_err(), "{open}");
    }
    for text in [
        format!("SELECT * FROM {}t{}", "(".repeat(500), ")".repeat(500)),
        format!("{}SELECT 1{}", "(".repeat(500), ")".repeat(500)),
        format!("{}t{}", "SELECT * FROM (".repeat(500), ")".repeat(500)),
    ] {
        assert!(FlowQuery::parse(&text).is_err());
        read(&format!("CREATE VIEW v AS {text}"));
    }
    read(&format!("CREATE STREAMING TABLE t (a {}INT{})", "ARRAY<".repeat(deep), ">".repeat(deep)));
    read(&"CREATE VIEW v AS SELECT * FROM STREAM(".repeat(deep));
}

/// Chains nest to the left without recursion in the parser; printing and dropping them must not overflow either.
#[test]
fn long_chains_are_read_or_refused() {
    for (unit, ok) in [(1_900, true), (100_000, false)] {
        for link in [" + 1", " AND b", " || 'x'", " IS NULL", "[0]", "::int", " COLLATE c"] {
            let text = format!("a{}", link.repeat(unit / 2));
            let parsed = SqlExpr::parse(&text);
            assert!(!ok || parsed.is_ok() || link.contains("COLLATE"), "{link} {parsed:?}");
        }
        let unions = format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(unit / 3));
        assert_eq!(FlowQuery::parse(&unions).is_ok(), ok);
    }
    let list = (0..50_000).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    assert!(FlowQuery::parse(&format!("SELECT * FROM t WHERE a IN ({list})")).is_ok());
}
