//! What does `${key}` stand for, and where are errors in a text that has it?

#![expect(clippy::panic, clippy::expect_used, reason = "helpers of tests fail like tests")]

use std::{collections::BTreeMap, fmt::Write as _};

use strandline_pipeline_sql::{
    DatasetDefinition, InputKind, PipelineDefinition, SourceFile, SqlError, Support, Values,
    parse_pipeline_with_values,
};

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn read(files: &[&str], values: &Values) -> Result<PipelineDefinition, Vec<SqlError>> {
    let sources: Vec<_> =
        files.iter().enumerate().map(|(n, text)| SourceFile::new(format!("{n}.sql"), *text)).collect();
    parse_pipeline_with_values(&sources, &Support::everything(), values)
}

fn parse(text: &str, overrides: &[(&str, &str)]) -> PipelineDefinition {
    let values = Values { overrides: map(overrides), ..Values::default() };
    read(&[text], &values).unwrap_or_else(|errors| panic!("{}", errors[0].render(text)))
}

fn errors(text: &str, overrides: &[(&str, &str)]) -> Vec<SqlError> {
    let values = Values { overrides: map(overrides), ..Values::default() };
    read(&[text], &values).expect_err(text)
}

/// The SQL of the first view.
fn view(definition: &PipelineDefinition) -> &str {
    let DatasetDefinition::View(view) = &definition.datasets[0] else { panic!("no view: {definition:?}") };
    &view.query.sql
}

#[test]
fn values_stand_in_strings_names_and_sql() {
    let pipeline = parse(
        "CREATE STREAMING TABLE ${env}_raw COMMENT \"of ${env}\" AS
         SELECT `${column}`, '${env}' AS env FROM STREAM read_files('/data/${env}/${day}', format => 'json');
         CREATE FLOW `f ${env}` AS INSERT INTO ${env}_raw BY NAME SELECT * FROM STREAM ${schema}.t WHERE ${condition};",
        &[
            ("env", "prod"),
            ("day", "2025-01-31"),
            ("column", "a `b`"),
            ("schema", "bronze"),
            ("condition", "x > 1 AND y = 'z'"),
        ],
    );
    assert_eq!(pipeline.datasets[0].name(), "prod_raw");
    let query = pipeline.flows[0].query().unwrap();
    assert_eq!(query.sql, "SELECT \"a `b`\", 'prod' AS env FROM __strandline_input_0");
    assert!(
        matches!(&query.inputs[0].kind, InputKind::ReadFiles(files) if files.path == "/data/prod/2025-01-31")
    );
    assert_eq!(pipeline.flows[1].name, "f prod");
    assert_eq!(
        pipeline.flows[1].query().unwrap().sql,
        "SELECT * FROM __strandline_input_0 AS t WHERE x > 1 AND y = 'z'"
    );
    assert_eq!(pipeline.flows[1].query().unwrap().dataset_names(), ["bronze.t"]);
}

#[test]
fn a_value_in_quotes_is_one_piece_of_text_whatever_is_in_it() {
    for value in ["it's", r"C:\data\new", r#"say "hi""#, "100%_\\%", "", "${x}", "$", "{x}", "a\nb; --"] {
        for quote in ['\'', '"'] {
            let text = format!("CREATE VIEW v AS SELECT {quote}<$${{x}}>{quote} AS a");
            let pipeline = parse(&text, &[("x", value)]);
            let expected = format!("SELECT '<${}>' AS a", value.replace('\'', "''"));
            assert_eq!(view(&pipeline), expected, "{text}");
            let again = read(&[&pipeline.to_sql()], &Values::default());
            assert_eq!(again, Ok(pipeline), "printed, {value}");
        }
    }
}

/// As published: `SET startDate = '2025-01-02'` and then `${startDate}` without quotes.
#[test]
fn a_35_a_text_that_was_set_in_quotes_has_them_where_it_stands_alone() {
    let text = "SET startDate = '2025-01-02';
                CREATE VIEW v AS SELECT * FROM src WHERE date > ${startDate} AND d2 > '${startDate}'";
    let sql = |date: &str| {
        format!("SELECT * FROM __strandline_input_0 AS src WHERE date > '{date}' AND d2 > '{date}'")
    };
    assert_eq!(view(&parse(text, &[])), sql("2025-01-02"));
    let given = parse(text, &[("startDate", "2024-12-31")]);
    assert_eq!(view(&given), sql("2024-12-31"));
    assert_eq!(given.settings["startDate"], "2024-12-31");
    let plain = parse("SET n = 5; CREATE VIEW v AS SELECT ${n} AS n, '${n}' AS t", &[]);
    assert_eq!(view(&plain), "SELECT 5 AS n, '5' AS t");
}

#[test]
fn the_command_line_wins_over_the_text_and_the_text_over_the_configuration() {
    let text = "SET b = set; SET c = set; SET d = ${b}/d;
                CREATE VIEW v AS SELECT '${a} ${b} ${c} ${d}' AS x";
    let values = Values {
        defaults: map(&[("a", "default"), ("b", "default"), ("c", "default")]),
        overrides: map(&[("c", "override")]),
    };
    let pipeline = read(&[text], &values).unwrap();
    assert_eq!(view(&pipeline), "SELECT 'default set override set/d' AS x");
    assert_eq!(pipeline.settings, map(&[("a", "default"), ("b", "set"), ("c", "override"), ("d", "set/d")]));
}

#[test]
fn a_setting_holds_from_its_statement_on_in_later_files_too() {
    let first = "SET x = '1'; CREATE VIEW v AS SELECT '${x}' AS x; SET x = 2;";
    let second = "CREATE VIEW w AS SELECT '${x}' AS x";
    let pipeline = read(&[first, second], &Values::default()).unwrap();
    assert_eq!(view(&pipeline), "SELECT '1' AS x");
    let DatasetDefinition::View(second) = &pipeline.datasets[1] else { panic!("no view") };
    assert_eq!(second.query.sql, "SELECT '2' AS x");
    let before = errors("CREATE VIEW v AS SELECT ${x} AS x; SET x = 1", &[]);
    assert_eq!(before[0].message, "there is no setting x");
}

#[test]
fn comments_escapes_and_what_only_looks_alike_stay() {
    let pipeline = parse(
        "-- ${nobody}
         /* ${nobody} '${nobody}' */
         CREATE VIEW v AS SELECT '\\${nobody}' AS a, '${}' AS b, '${not this}' AS c, '$nobody' AS d -- ${nobody}",
        &[],
    );
    assert_eq!(view(&pipeline), "SELECT '${nobody}' AS a, '${}' AS b, '${not this}' AS c, '$nobody' AS d");
    assert_eq!(read(&[&pipeline.to_sql()], &Values::default()), Ok(pipeline));
}

#[test]
fn errors_are_at_their_place_in_the_authors_text() {
    let text = "SET path = '/a/rather/long/path';\nCREATE VIEW ok AS SELECT '${path}' AS a;\n\
                CREATE VIEW v AS SELECT '${path}' AS a FROM ${path} WHERE";
    let found = errors(text, &[]);
    let places: Vec<_> = found.iter().map(|e| (e.line, e.column, &text[e.span.clone()])).collect();
    assert_eq!(places, [(3, 58, "")], "{found:?}");
    let text = "SET where = 'W';\nCREATE VIEW ${w} AS SELECT 1 AS a;\nCREATE VIEW w${w} AS SELECT '${wher}' AS a, ${nix};\n\
                CREATE VIEW v AS SELECT '${where}' AS a GARBAGE ${where}";
    let found = errors(text, &[("w", "name")]);
    let places: Vec<_> = found.iter().map(|e| (e.line, e.column, &text[e.span.clone()])).collect();
    assert_eq!(places, [(3, 30, "${wher}"), (3, 45, "${nix}"), (4, 41, "GARBAGE")], "{found:?}");
    assert_eq!(found[0].help.as_deref(), Some("did you mean ${where}?"));
    assert!(found[1].help.as_deref().is_some_and(|help| help.starts_with("write SET nix = value")));
}

#[test]
fn spans_are_places_in_the_authors_text() {
    let text = "SET x = 'a long value';\nCREATE STREAMING TABLE t COMMENT '${x}' AS SELECT '${x}' AS x FROM STREAM ${s};\n\
                CREATE FLOW f AS INSERT INTO t BY NAME SELECT '${x}' AS x FROM STREAM u";
    let pipeline = parse(text, &[("s", "source")]);
    let of = |span: strandline_pipeline_sql::Span| &text[span.start..span.end];
    assert_eq!(of(pipeline.datasets[0].span()), "t");
    assert_eq!(of(pipeline.flows[0].query().unwrap().inputs[0].span), "STREAM ${s}");
    assert_eq!(of(pipeline.flows[1].span), "f");
    assert_eq!(of(pipeline.flows[1].query().unwrap().inputs[0].span), "STREAM u");
}

#[test]
fn a_value_brings_in_no_references_and_no_flood() {
    let found = errors("CREATE VIEW v AS SELECT ${x} AS a", &[("x", "'${y}'"), ("y", "1")]);
    assert_eq!(found[0].message, "the value that stands here has ${y} in it");
    assert_eq!(found[0].column, 25);
    let mut text = "SET a0 = 'aaaaaaaaaa';\n".to_owned();
    for n in 1..60 {
        let _ = writeln!(text, "SET a{n} = '${{a{0}}}${{a{0}}}';", n - 1);
    }
    let found = errors(&text, &[]);
    assert!(found[0].message.starts_with("values of settings make this file longer"), "{found:?}");
}
