//! Does a rewritten query read the right things, under the right names, in SQL that an engine reads by default?

#![expect(clippy::panic, reason = "helpers of tests fail like tests")]

use sqlparser::{dialect::GenericDialect, parser::Parser};
use strandline_pipeline_sql::{FlowQuery, InputKind, SqlExpr};

/// The query's inputs, as `name` or `stream name`.
fn reads(query: &FlowQuery) -> Vec<String> {
    query
        .inputs
        .iter()
        .map(|input| {
            let name = if let InputKind::ReadFiles(files) = &input.kind {
                format!("files {}", files.path)
            } else if let InputKind::Dataset(name) = &input.kind {
                name.clone()
            } else {
                format!("{:?}", input.kind)
            };
            if input.streaming { format!("stream {name}") } else { name }
        })
        .collect()
}

fn parse(text: &str) -> FlowQuery {
    let query = FlowQuery::parse(text).unwrap_or_else(|error| panic!("{}", error.render(text)));
    Parser::parse_sql(&GenericDialect, &query.sql).unwrap_or_else(|error| panic!("{error}: {}", query.sql));
    query
}

fn check(text: &str, sql: &str, inputs: &[&str]) {
    let query = parse(text);
    assert_eq!(query.sql, sql.replace('$', "__strandline_input_"), "{text}");
    assert_eq!(reads(&query), inputs, "{text}");
    assert_eq!(query.streaming, inputs.iter().any(|input| input.starts_with("stream ")), "{text}");
}

#[test]
fn sources_are_replaced_under_the_name_that_the_query_uses() {
    check("SELECT t.a FROM t", "SELECT t.a FROM $0 AS t", &["t"]);
    check("SELECT x.a FROM t AS x", "SELECT x.a FROM $0 AS x", &["t"]);
    check("SELECT a FROM cat.db.t", "SELECT a FROM $0 AS t", &["cat.db.t"]);
    check("SELECT a FROM LIVE.t", "SELECT a FROM $0 AS t", &["t"]);
    check("SELECT a FROM `my t`", "SELECT a FROM $0 AS \"my t\"", &["my t"]);
    check(
        "SELECT a FROM STREAM t JOIN u ON t.i = u.i",
        "SELECT a FROM $0 AS t JOIN $1 AS u ON t.i = u.i",
        &["stream t", "u"],
    );
    check("SELECT a FROM u, STREAM(t) AS t2", "SELECT a FROM $1 AS u, $0 AS t2", &["u", "stream t"]);
    check(
        "SELECT a FROM (STREAM t JOIN STREAM u USING (i))",
        "SELECT a FROM ($0 AS t JOIN $1 AS u USING(i))",
        &["stream t", "stream u"],
    );
    check(
        "SELECT * FROM read_files('p') AS f WHERE f.a > 1",
        "SELECT * FROM $0 AS f WHERE f.a > 1",
        &["files p"],
    );
}

#[test]
fn subqueries_and_set_operations_are_searched() {
    check(
        "SELECT a FROM t WHERE i IN (SELECT i FROM u) UNION ALL (SELECT a FROM STREAM v)",
        "SELECT a FROM $1 AS t WHERE i IN (SELECT i FROM $2 AS u) UNION ALL (SELECT a FROM $0 AS v)",
        &["t", "u", "stream v"],
    );
    check(
        "SELECT (SELECT max(a) FROM STREAM(t)) AS m",
        "SELECT (SELECT max(a) FROM $0 AS t) AS m",
        &["stream t"],
    );
}

#[test]
fn common_table_expressions_shadow_datasets_in_their_scope() {
    check(
        "WITH c AS (SELECT * FROM t) SELECT * FROM C",
        "WITH c AS (SELECT * FROM $0 AS t) SELECT * FROM C",
        &["t"],
    );
    check(
        "WITH t AS (SELECT * FROM t) SELECT * FROM t",
        "WITH t AS (SELECT * FROM $0 AS t) SELECT * FROM t",
        &["t"],
    );
    check(
        "WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM b",
        "WITH a AS (SELECT * FROM $0 AS b), b AS (SELECT * FROM a) SELECT * FROM b",
        &["b"],
    );
    check(
        "SELECT * FROM (WITH c AS (SELECT 1) SELECT * FROM c) x, c",
        "SELECT * FROM (WITH c AS (SELECT 1) SELECT * FROM c) x, $0 AS c",
        &["c"],
    );
    check(
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT * FROM r",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT * FROM r",
        &[],
    );
}

#[test]
fn stream_elsewhere_is_a_name_like_any_other() {
    check("SELECT stream FROM t", "SELECT stream FROM $0 AS t", &["t"]);
    check("SELECT a, stream x FROM stream", "SELECT a, stream AS x FROM $0 AS stream", &["stream"]);
    check("SELECT a FROM stream AS s WHERE s.a = 1", "SELECT a FROM $0 AS s WHERE s.a = 1", &["stream"]);
    check("SELECT a IS DISTINCT FROM stream FROM t", "SELECT a IS DISTINCT FROM stream FROM $0 AS t", &["t"]);
    check("SELECT extract(day FROM stream) FROM t", "SELECT EXTRACT(DAY FROM stream) FROM $0 AS t", &["t"]);
    check("SELECT * FROM range(1, 3)", "SELECT * FROM range(1, 3)", &[]);
}

#[test]
fn a_33_names_keep_their_case_and_quotes_become_standard() {
    check(
        r#"SELECT `Order Id`, UserId, "it's" AS note FROM t"#,
        r#"SELECT "Order Id", UserId, 'it''s' AS note FROM $0 AS t"#,
        &["t"],
    );
    check(r#"SELECT `a"b` FROM t"#, r#"SELECT "a""b" FROM $0 AS t"#, &["t"]);
}

#[test]
fn a_35_types_have_names_that_an_engine_knows() {
    for (spark, engine) in [
        ("CAST(a AS STRING)", "CAST(a AS STRING)"),
        ("CAST(a AS LONG)", "CAST(a AS BIGINT)"),
        ("CAST(a AS short)", "CAST(a AS SMALLINT)"),
        ("CAST(a AS BYTE)", "CAST(a AS TINYINT)"),
        ("CAST(a AS BINARY)", "CAST(a AS BYTEA)"),
        ("CAST(a AS VARCHAR(10))", "CAST(a AS VARCHAR)"),
        ("CAST(a AS DECIMAL)", "CAST(a AS DECIMAL(10,0))"),
        ("CAST(a AS DEC(9, 2))", "CAST(a AS DECIMAL(9,2))"),
        ("TRY_CAST(a AS TIMESTAMP_NTZ)", "TRY_CAST(a AS TIMESTAMP(6))"),
        ("CAST(a AS TIMESTAMP_LTZ)", "CAST(a AS TIMESTAMP(6) WITH TIME ZONE)"),
        ("a::timestamp", "a::TIMESTAMP(6) WITH TIME ZONE"),
        ("TIMESTAMP '2025-01-01'", "TIMESTAMP(6) WITH TIME ZONE '2025-01-01'"),
        ("CAST(a AS ARRAY<LONG>)", "CAST(a AS ARRAY<BIGINT>)"),
        ("coalesce(CAST(a AS LONG), b::INT)", "coalesce(CAST(a AS BIGINT), b::INT)"),
    ] {
        assert_eq!(SqlExpr::parse(spark).unwrap().sql(), engine, "{spark}");
        let query = parse(&format!("SELECT x FROM t WHERE {spark} IS NULL"));
        assert_eq!(query.sql, format!("SELECT x FROM __strandline_input_0 AS t WHERE {engine} IS NULL"));
    }
}

#[test]
fn a_35_operators_and_casts_as_an_engine_spells_them() {
    for (spark, engine) in [
        ("a <=> b", "(a IS NOT DISTINCT FROM b)"),
        ("a RLIKE '^x'", "(a ~ '^x')"),
        ("a NOT RLIKE '^x'", "(a !~ '^x')"),
        ("a REGEXP b || 'c'", "(a ~ b || 'c')"),
        ("!a AND !(b <=> c)", "NOT a AND NOT ((b IS NOT DISTINCT FROM c))"),
        ("a == b", "a = b"),
        ("a <=> b = c", "(a IS NOT DISTINCT FROM b) = c"),
        (
            "date(a) = timestamp(string(b))",
            "CAST(a AS DATE) = CAST(CAST(b AS STRING) AS TIMESTAMP(6) WITH TIME ZONE)",
        ),
        ("int(a) + double(b)", "CAST(a AS INT) + CAST(b AS DOUBLE)"),
        ("date(a, b) = string()", "date(a, b) = string()"),
    ] {
        assert_eq!(SqlExpr::parse(spark).unwrap().sql(), engine, "{spark}");
        assert_eq!(parse(&format!("SELECT {spark} AS x")).sql, format!("SELECT {engine} AS x"));
    }
}

#[test]
fn what_would_be_read_as_something_else_is_refused() {
    for literal in ["1.0D", "1.5BD", "2Y", "1F", "3s", r"r'\d'", r#"R"\d""#] {
        for text in [format!("SELECT {literal} FROM t"), format!("SELECT a FROM t WHERE f({literal})")] {
            let error = FlowQuery::parse(&text).expect_err(&text);
            assert_eq!(&text[error.span.clone()], literal);
            assert!(error.help.is_some(), "{error:?}");
        }
        assert!(SqlExpr::parse(literal).is_err(), "{literal}");
    }
    check("SELECT 5L, 1 s, r 'x' FROM t", "SELECT 5L, 1 AS s, r AS 'x' FROM $0 AS t", &["t"]);
    for text in
        ["SELECT * FROM t TABLESAMPLE (10 PERCENT)", "SELECT * FROM (SELECT * FROM t) TABLESAMPLE (5 ROWS)"]
    {
        assert!(FlowQuery::parse(text).is_err(), "{text}");
    }
}

#[test]
fn names_may_be_written_as_texts() {
    check("SELECT a FROM IDENTIFIER('x.`y z`') AS i", "SELECT a FROM $0 AS i", &["x.y z"]);
    check("SELECT a FROM STREAM(IDENTIFIER(\"LIVE.t\"))", "SELECT a FROM $0 AS t", &["stream t"]);
    check("SELECT a FROM STREAM IDENTIFIER('t')", "SELECT a FROM $0 AS t", &["stream t"]);
    check("SELECT identifier FROM identifier", "SELECT identifier FROM $0 AS identifier", &["identifier"]);
    for text in
        ["IDENTIFIER()", "IDENTIFIER('')", "IDENTIFIER('a b')", "IDENTIFIER(a)", "IDENTIFIER('a', 'b')"]
    {
        assert!(FlowQuery::parse(&format!("SELECT * FROM {text}")).is_err(), "{text}");
    }
}

#[test]
fn strings_keep_their_value_when_printed() {
    for (text, sql) in [
        (r"'a\'b'", "'a''b'"),
        (r"'a''b'", "'a''b'"),
        (r"'\'\''", "''''''"),
        (r"'\\d+'", r"'\d+'"),
        (r"'\\'", r"'\'"),
        (r"'\\\''", r"'\'''"),
        (r#""say ""hi""""#, r#"'say "hi"'"#),
        ("'100\\%'", "'100\\%'"),
    ] {
        assert_eq!(SqlExpr::parse(text).unwrap().sql(), sql, "{text}");
    }
}

#[test]
fn what_only_reads_is_a_query_and_nothing_else() {
    for text in [
        "INSERT INTO t SELECT 1",
        "DELETE FROM t",
        "WITH c AS (SELECT 1) INSERT INTO t SELECT 1",
        "SELECT * FROM t VERSION AS OF 3",
        "SELECT * FROM __strandline_input_0",
        "SELECT * FROM STREAM(t, u)",
        "SELECT * FROM STREAM(SELECT 1)",
        "SELECT * FROM t garbage more",
        "",
    ] {
        assert!(FlowQuery::parse(text).is_err(), "{text}");
    }
    assert!(SqlExpr::parse("a IN (SELECT b FROM t)").is_err());
    assert!(SqlExpr::parse("a b c").is_err());
}
