//! What can a query read besides tables of the pipeline, and with which options?

#![expect(clippy::panic, reason = "helpers of tests fail like tests")]

use strandline_pipeline_sql::{
    FlowQuery, InputKind, OptionValue, PathTable, PipelineDefinition, SourceFile, SqlType, Support,
    parse_pipeline_with,
};

/// What the text defines; printing it changes nothing.
fn parse(text: &str) -> PipelineDefinition {
    let read = |text: &str| {
        parse_pipeline_with(&[SourceFile::new("pipeline.sql", text)], &Support::everything())
            .unwrap_or_else(|errors| panic!("{}", errors[0].render(text)))
    };
    let definition = read(text);
    assert_eq!(read(&definition.to_sql()), definition);
    definition
}

fn kinds(query: &FlowQuery) -> Vec<&InputKind> {
    query.inputs.iter().map(|input| &input.kind).collect()
}

#[test]
fn topics_are_read_with_options_alone() {
    let query = FlowQuery::parse(
        "SELECT * FROM STREAM read_kafka(bootstrapServers => 'a:9092,b:9092', subscribe => \"orders\",
           startingOffsets => 'earliest', 'kafka.group.id' => 'g', maxOffsetsPerTrigger => 500, schema => 'id BIGINT, at TIMESTAMP') AS k
         JOIN STREAM(read_kafka(subscribe => 't')) ON k.id = value",
    )
    .unwrap();
    assert!(query.streaming && query.inputs.iter().all(|input| input.streaming));
    let InputKind::ReadKafka(kafka) = kinds(&query)[0] else { panic!("{query:?}") };
    let keys: Vec<_> = kafka.options.keys().map(String::as_str).collect();
    let expected =
        ["bootstrapservers", "kafka.group.id", "maxoffsetspertrigger", "startingoffsets", "subscribe"];
    assert_eq!(keys, expected);
    assert_eq!(kafka.options["maxoffsetspertrigger"].as_integer(), Some(500));
    let schema = kafka.schema.as_ref().unwrap();
    assert_eq!(
        (schema[0].data_type.clone(), schema[1].data_type.clone()),
        (SqlType::BigInt, SqlType::Timestamp)
    );
    for text in ["read_kafka()", "read_kafka('orders')", "read_kafka(path => 'p', subscribe => 't')"] {
        let error = FlowQuery::parse(&format!("SELECT * FROM STREAM {text}")).expect_err(text);
        assert!(error.help.is_some(), "{error:?}");
    }
    assert!(FlowQuery::parse("SELECT * FROM STREAM read_kafka(a => 1, A => 2)").is_err());
}

#[test]
fn tables_are_read_by_their_path() {
    let table = |path: &str| InputKind::Table(PathTable { format: "delta".into(), path: path.into() });
    for (text, sql) in [
        ("SELECT * FROM delta.`/data/t`", "SELECT * FROM __strandline_input_0 AS \"/data/t\""),
        ("SELECT * FROM DELTA.`/data/t` AS t", "SELECT * FROM __strandline_input_0 AS t"),
        ("SELECT * FROM STREAM delta.`/data/t`", "SELECT * FROM __strandline_input_0 AS \"/data/t\""),
        ("SELECT * FROM STREAM(delta.`/data/t`) t", "SELECT * FROM __strandline_input_0 t"),
    ] {
        let query = FlowQuery::parse(text).unwrap();
        assert_eq!((kinds(&query), query.sql.as_str()), (vec![&table("/data/t")], sql));
        assert_eq!(query.streaming, text.contains("STREAM"));
        assert!(query.dataset_names().is_empty());
    }
    let flow = parse("AUTO CDC INTO t FROM STREAM(delta.`/data/t`) KEYS (k) SEQUENCE BY v");
    assert_eq!(kinds(flow.flows[0].query().unwrap()), [&table("/data/t")]);
    for name in ["delta.t", "`delta`.`/t`", "a.delta.`/t`", "parquet.`t`"] {
        let query = FlowQuery::parse(&format!("SELECT * FROM {name} JOIN STREAM {name} USING (i)")).unwrap();
        assert!(query.inputs.iter().all(|input| matches!(input.kind, InputKind::Dataset(_))), "{name}");
    }
    for name in ["iceberg.`/t`", "delta.``"] {
        for text in [format!("SELECT * FROM {name}"), format!("SELECT * FROM STREAM {name}")] {
            assert!(FlowQuery::parse(&text).is_err(), "{text}");
        }
    }
}

#[test]
fn a_35_files_by_their_path_and_in_the_older_spelling() {
    let of = |text: &str| {
        let query = FlowQuery::parse(text).unwrap();
        let InputKind::ReadFiles(files) = query.inputs[0].kind.clone() else { panic!("{query:?}") };
        (files, query.streaming)
    };
    let (files, streaming) = of("SELECT * FROM json.`/data/clicks.json`");
    assert_eq!((files.path.as_str(), streaming), ("/data/clicks.json", false));
    assert_eq!(files.option("format"), Some(&OptionValue::Text("json".into())));
    for text in [
        "SELECT * FROM cloud_files('/in', 'csv', map('cloudFiles.inferColumnTypes', 'true', 'schema', 'a INT'))",
        "SELECT * FROM STREAM(cloud_files(\"/in\", \"csv\", map(\"cloudFiles.inferColumnTypes\", \"true\", \"schema\", \"a INT\")))",
    ] {
        let (files, streaming) = of(text);
        assert!(streaming, "{text}");
        assert_eq!(files.option("inferColumnTypes").and_then(OptionValue::as_bool), Some(true));
        assert_eq!((files.path.as_str(), files.schema.map(|columns| columns.len())), ("/in", Some(1)));
    }
    for text in ["cloud_files('p')", "cloud_files('p', 'json', x)", "cloud_files('p', 'json', map('a'))"] {
        assert!(FlowQuery::parse(&format!("SELECT * FROM {text}")).is_err(), "{text}");
    }
    let plain = FlowQuery::parse("SELECT cloud_files FROM cloud_files").unwrap();
    assert_eq!(plain.dataset_names(), ["cloud_files"]);
}

#[test]
fn streamed_tables_have_options() {
    for text in [
        "SELECT * FROM STREAM t WITH (readChangeFeed = true, skipChangeCommits, 'startingVersion' = 5) AS x",
        "SELECT * FROM STREAM(t) WITH ('readChangeFeed' = 'true', SKIPCHANGECOMMITS, startingVersion => 5) x",
        "SELECT * FROM STREAM delta.`/t` WITH (readchangefeed, skipchangecommits, startingversion = 5) x",
    ] {
        let query = FlowQuery::parse(text).unwrap();
        let options = &query.inputs[0].options;
        assert_eq!(
            options.keys().collect::<Vec<_>>(),
            ["readchangefeed", "skipchangecommits", "startingversion"]
        );
        assert_eq!(options["readchangefeed"].as_bool(), Some(true));
        assert_eq!(options["skipchangecommits"], OptionValue::Boolean(true));
        assert_eq!(options["startingversion"], OptionValue::Integer(5));
        assert!(!query.sql.contains("WITH"), "{}", query.sql);
    }
    let flow =
        parse("AUTO CDC INTO t FROM STREAM s WITH (readChangeFeed) KEYS (k) SEQUENCE BY _commit_version");
    assert_eq!(flow.flows[0].query().unwrap().inputs[0].options.len(), 1);
    let flow =
        parse("AUTO CDC INTO t FROM STREAM(s) WITH (readChangeFeed = true) AS c KEYS (k) SEQUENCE BY v");
    assert_eq!(flow.flows[0].query().unwrap().inputs[0].options.len(), 1);
    for text in [
        "SELECT * FROM t WITH (a = 1)",
        "SELECT * FROM STREAM t AS x WITH (a = 1)",
        "SELECT * FROM STREAM read_files('p') WITH (a = 1)",
        "SELECT * FROM STREAM t WITH ()",
        "SELECT * FROM STREAM t WITH (a, A)",
        "SELECT * FROM STREAM t WITH (a = b)",
    ] {
        assert!(FlowQuery::parse(text).is_err(), "{text}");
    }
    assert!(FlowQuery::parse("SELECT * FROM STREAM t WHERE x").is_ok());
}
