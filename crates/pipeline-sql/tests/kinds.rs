//! Materialized views, sinks, snapshot flows, and what queries can read: does every spelling say what it means?

#![expect(clippy::panic, clippy::expect_used, reason = "helpers of tests fail like tests")]

use strandline_pipeline_sql::{
    DatasetDefinition, FlowKind, FlowQuery, InputKind, PipelineDefinition, SinkDefinition, SnapshotCdc,
    SnapshotSource, SourceFile, SqlError, Support, parse_pipeline_with,
};

fn read(text: &str) -> Result<PipelineDefinition, Vec<SqlError>> {
    parse_pipeline_with(&[SourceFile::new("pipeline.sql", text)], &Support::everything())
}

/// What the text defines; printing it changes nothing.
fn parse(text: &str) -> PipelineDefinition {
    let definition = read(text).unwrap_or_else(|errors| panic!("{}", errors[0].render(text)));
    let printed = definition.to_sql();
    assert_eq!(read(&printed).as_ref(), Ok(&definition), "{printed}");
    definition
}

/// The only error's condition and the text that it is about.
fn refused(text: &str) -> (Option<&'static str>, &str) {
    let errors = read(text).expect_err(text);
    assert_eq!(errors.len(), 1, "{text}: {errors:?}");
    assert!(errors[0].help.is_some(), "{text}: {errors:?}");
    (errors[0].condition, &text[errors[0].span.clone()])
}

fn sink(definition: &PipelineDefinition, n: usize) -> &SinkDefinition {
    let DatasetDefinition::Sink(sink) = &definition.datasets[n] else { panic!("no sink: {definition:?}") };
    sink
}

fn snapshot(definition: &PipelineDefinition, n: usize) -> &SnapshotCdc {
    let FlowKind::Snapshot(snapshot) = &definition.flows[n].kind else { panic!("{definition:?}") };
    snapshot
}

fn kinds(query: &FlowQuery) -> Vec<&InputKind> {
    query.inputs.iter().map(|input| &input.kind).collect()
}

#[test]
fn g_01_materialized_views_in_every_spelling() {
    for text in [
        "CREATE OR REFRESH MATERIALIZED VIEW m AS SELECT a, count(*) AS n FROM t GROUP BY a",
        "CREATE MATERIALIZED VIEW m AS SELECT a, count(*) AS n FROM t GROUP BY a",
        "CREATE OR REPLACE MATERIALIZED VIEW m AS SELECT a, count(*) AS n FROM t GROUP BY a",
        "CREATE MATERIALIZED VIEW IF NOT EXISTS m AS SELECT a, count(*) AS n FROM t GROUP BY a",
        "CREATE OR REFRESH PRIVATE MATERIALIZED VIEW LIVE.m AS SELECT a, count(*) AS n FROM LIVE.t GROUP BY a",
        "CREATE OR REFRESH LIVE TABLE m AS SELECT a, count(*) AS n FROM LIVE.t GROUP BY a",
        "CREATE LIVE TABLE m AS SELECT a, count(*) AS n FROM live.t GROUP BY a",
    ] {
        let pipeline = parse(text);
        assert!(
            matches!(&pipeline.datasets[0], DatasetDefinition::MaterializedView(view) if view.name == "m")
        );
        let flow = &pipeline.flows[0];
        assert_eq!((flow.name.as_str(), flow.target.as_str(), flow.once), ("m", "m", false), "{text}");
        let FlowKind::Complete { query } = &flow.kind else { panic!("{flow:?}") };
        assert_eq!(query.sql, "SELECT a, count(*) AS n FROM __strandline_input_0 AS t GROUP BY a");
        assert_eq!(query.dataset_names(), ["t"]);
    }
    let all = parse(
        "CREATE MATERIALIZED VIEW m (a BIGINT COMMENT 'one', CONSTRAINT ok EXPECT (a > 0) ON VIOLATION DROP ROW)
         USING delta COMMENT 'c' TBLPROPERTIES ('quality' = 'gold') AS SELECT a FROM t",
    );
    let table = all.datasets[0].table().unwrap();
    assert_eq!((table.columns.len(), table.expectations.len()), (1, 1));
    assert_eq!(table.properties["quality"], "gold");
}

#[test]
fn a_35_older_words_for_streaming_tables_and_views() {
    for text in [
        "CREATE OR REFRESH STREAMING LIVE TABLE t AS SELECT a FROM STREAM(LIVE.s)",
        "CREATE STREAMING LIVE TABLE t AS SELECT a FROM STREAM LIVE.s",
        "CREATE OR REFRESH STREAMING TABLE t AS SELECT a FROM STREAM(s)",
        "CREATE OR REFRESH PRIVATE STREAMING TABLE t AS SELECT a FROM STREAM s",
    ] {
        let pipeline = parse(text);
        assert!(matches!(&pipeline.datasets[0], DatasetDefinition::StreamingTable(_)), "{text}");
        let FlowKind::Append { query } = &pipeline.flows[0].kind else { panic!("{text}") };
        assert!(query.streaming && query.dataset_names() == ["s"], "{text}");
    }
    for text in ["CREATE LIVE VIEW v AS SELECT 1 AS a", "CREATE TEMPORARY LIVE VIEW v AS SELECT 1 AS a"] {
        assert!(
            matches!(&parse(text).datasets[0], DatasetDefinition::View(view) if view.temporary),
            "{text}"
        );
    }
}

#[test]
fn materialized_views_are_refused_without_a_query_or_over_a_stream() {
    let streaming = "INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_MATERIALIZED_VIEW";
    assert_eq!(
        refused("CREATE MATERIALIZED VIEW m AS SELECT * FROM STREAM t"),
        (Some(streaming), "SELECT * FROM STREAM t")
    );
    assert_eq!(refused("CREATE LIVE TABLE m AS SELECT * FROM STREAM(LIVE.t)").0, Some(streaming));
    assert_eq!(refused("CREATE MATERIALIZED VIEW m"), (None, ""));
    assert_eq!(refused("CREATE MATERIALIZED VIEW m COMENT 'c' AS SELECT 1"), (None, "COMENT"));
    assert_eq!(refused("CREATE TABLE m AS SELECT 1"), (None, "TABLE"));
    assert_eq!(refused("CREATE MATERIALISED VIEW m AS SELECT 1"), (None, "MATERIALISED"));
}

#[test]
fn sinks_in_every_spelling() {
    let pipeline = parse(
        "CREATE SINK files USING JSON OPTIONS ('path' = '/out', 'a.b' 'c', d = 5, \"e\" = true) COMMENT 'x';
         CREATE SINK p USING parquet; CREATE SINK IF NOT EXISTS d COMMENT 'x' OPTIONS (path 'p') USING delta;
         CREATE SINK code USING foreachBatch;
         CREATE FLOW f AS INSERT INTO files BY NAME SELECT * FROM STREAM t;
         CREATE FLOW g COMMENT 'c' DEPENDS ON f AS UPDATE INTO code BY NAME SELECT * FROM STREAM t;",
    );
    let files = sink(&pipeline, 0);
    assert_eq!(
        (files.name.as_str(), files.format.as_str(), files.comment.as_deref()),
        ("files", "json", Some("x"))
    );
    let options: Vec<_> = files.options.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(options, [("a.b", "c"), ("d", "5"), ("e", "true"), ("path", "/out")]);
    assert_eq!(
        (sink(&pipeline, 1).format.as_str(), sink(&pipeline, 2).format.as_str()),
        ("parquet", "delta")
    );
    assert_eq!(sink(&pipeline, 3).format, SinkDefinition::FOREACH_BATCH);
    assert!(matches!(pipeline.flows[0].kind, FlowKind::Append { .. }));
    assert!(matches!(pipeline.flows[1].kind, FlowKind::Update { .. }));
    assert_eq!(pipeline.flows[1].depends_on, ["f"]);
    let graph = pipeline.graph().map(|_| ()).expect_err("t is nowhere");
    assert_eq!(graph.len(), 2, "{graph:?}");
}

#[test]
fn mistakes_in_sinks_and_update_flows() {
    assert_eq!(refused("CREATE SINK s"), (None, ""));
    assert_eq!(refused("CREATE SINK s USING jsn"), (None, "jsn"));
    assert_eq!(refused("CREATE SINK s USING kafka OPTIONS (a = 'b')"), (None, "kafka"));
    assert_eq!(refused("CREATE SINK s USING json OPTONS (a = 'b')"), (None, "OPTONS"));
    let batch = Some("INVALID_FLOW_QUERY_TYPE.BATCH_RELATION_FOR_STREAMING_TABLE");
    assert_eq!(refused("CREATE FLOW f AS UPDATE INTO s BY NAME SELECT 1 AS a"), (batch, "SELECT 1 AS a"));
    assert_eq!(refused("CREATE FLOW f AS UPDATE INTO ONCE s BY NAME SELECT 1 AS a"), (None, "ONCE"));
    assert_eq!(refused("CREATE FLOW f AS UPDATE s SELECT 1"), (None, "s"));
    assert_eq!(refused("CREATE FLOW f AS UPDATE INTO s FROM t"), (None, "FROM"));
    for text in ["CREATE SINK s USING json USING json", "CREATE SINK s USING json COMMENT 'a' COMMENT 'b'"] {
        assert_eq!(read(text).expect_err(text)[0].condition, Some("DUPLICATE_CLAUSES"));
    }
    let twice = read("CREATE SINK s USING json OPTIONS (a = 1, a = 2)").expect_err("given twice");
    assert_eq!(twice[0].message, "option a is given twice");
}

#[test]
fn replacing_inserts_are_refused_by_name() {
    for (clause, marked) in [
        ("REPLACE WHERE day > 5 BY NAME SELECT * FROM STREAM s", "REPLACE"),
        ("BY NAME REPLACE WHERE day > 5 SELECT * FROM STREAM s", "REPLACE"),
        ("REPLACE USING (k) SEQUENCE BY c SELECT * FROM STREAM s", "REPLACE"),
    ] {
        let text = format!("CREATE FLOW f AS INSERT INTO t {clause}");
        let errors = read(&text).expect_err(&text);
        assert!(errors[0].message.starts_with("not supported yet: INSERT .. REPLACE "), "{errors:?}");
        assert_eq!((&text[errors[0].span.clone()], errors[0].help.is_some()), (marked, true));
    }
}

#[test]
fn g_01_snapshot_flows_with_versions() {
    let pipeline = parse(
        "CREATE FLOW f AS AUTO CDC INTO t
         FROM SNAPSHOT (
           WITH now AS (SELECT version FROM current_snapshot_version() AS c)
           SELECT * EXCEPT (day) FROM read_files('exports') JOIN now ON day = now.version)
         WITH VERSION (
           SELECT min(day) AS version FROM days
           WHERE day > coalesce((SELECT * FROM last_snapshot_version()), 0) HAVING min(day) IS NOT NULL)
         KEYS (id) STORED AS SCD TYPE 1",
    );
    let flow = snapshot(&pipeline, 0);
    let image = pipeline.flows[0].query().unwrap();
    assert!(!image.streaming);
    assert!(kinds(image).contains(&&InputKind::CurrentSnapshotVersion));
    assert!(image.sql.contains("SELECT version FROM __strandline_input_0 AS c"), "{}", image.sql);
    let version = flow.version().unwrap();
    assert_eq!(kinds(version), [&InputKind::Dataset("days".into()), &InputKind::LastSnapshotVersion]);
    assert!(version.sql.contains("FROM __strandline_input_0 AS last_snapshot_version"), "{}", version.sql);
    assert_eq!(pipeline.flows[0].queries().flat_map(FlowQuery::dataset_names).collect::<Vec<_>>(), ["days"]);
}

#[test]
fn g_01_snapshot_flows_from_callbacks_and_names() {
    let pipeline = parse(
        "CREATE FLOW a AS AUTO CDC INTO t FROM SNAPSHOT CALLBACK KEYS (id) STORED AS SCD TYPE 2 TRACK HISTORY ON (x);
         CREATE FLOW b AS AUTO CDC ONCE INTO t FROM SNAPSHOT `callback` KEYS (id);
         CREATE FLOW c AS AUTO CDC INTO t FROM SNAPSHOT callback.t WITH VERSION (SELECT 1 AS v) KEYS (id);
         CREATE STREAMING TABLE u FLOW AUTO CDC ONCE FROM SNAPSHOT (SELECT * FROM s) KEYS (id)",
    );
    assert_eq!(snapshot(&pipeline, 0).source, SnapshotSource::Callback);
    assert!(pipeline.flows[0].query().is_none() && pipeline.flows[0].queries().count() == 0);
    assert_eq!(pipeline.flows[1].query().unwrap().dataset_names(), ["callback"]);
    assert_eq!(pipeline.flows[2].query().unwrap().dataset_names(), ["callback.t"]);
    assert!(snapshot(&pipeline, 2).version().is_some());
    assert!(pipeline.flows[3].once && pipeline.flows[3].name == "u");
}

#[test]
fn g_12_snapshot_version_functions_outside_their_clause() {
    let flow = |image: &str, version: &str| {
        format!("CREATE FLOW f AS AUTO CDC INTO t FROM SNAPSHOT ({image}) {version} KEYS (id)")
    };
    let misuse = Some("INVALID_USAGE_OF_SNAPSHOT_VERSION_FUNCTION");
    let versioned = "WITH VERSION (SELECT 1 AS v)";
    for (image, version, marked) in [
        ("SELECT * FROM last_snapshot_version()", versioned, "last_snapshot_version"),
        (
            "SELECT * FROM s",
            "WITH VERSION (SELECT * FROM current_snapshot_version())",
            "current_snapshot_version",
        ),
        ("SELECT * FROM current_snapshot_version()", "", "current_snapshot_version"),
        ("SELECT * FROM last_snapshot_version()", "", "last_snapshot_version"),
        ("SELECT * FROM s WHERE d = current_snapshot_version()", versioned, "current_snapshot_version"),
        ("SELECT * FROM STREAM current_snapshot_version()", versioned, "current_snapshot_version"),
        ("SELECT * FROM STREAM(current_snapshot_version())", versioned, "current_snapshot_version"),
    ] {
        assert_eq!(refused(&flow(image, version)), (misuse, marked), "{image} {version}");
    }
    let elsewhere = Some("UNRESOLVABLE_TABLE_VALUED_FUNCTION");
    for function in ["last_snapshot_version", "current_snapshot_version", "LAST_Snapshot_Version"] {
        for text in [
            format!("CREATE VIEW v AS SELECT * FROM {function}()"),
            format!("CREATE MATERIALIZED VIEW v AS SELECT (SELECT * FROM {function}()) AS a"),
            format!("CREATE STREAMING TABLE v AS SELECT * FROM STREAM s JOIN {function}() ON a = b"),
            format!("AUTO CDC INTO t FROM (SELECT * FROM STREAM s, {function}()) KEYS (k) SEQUENCE BY v"),
            format!("AUTO CDC INTO t FROM STREAM s KEYS (k) SEQUENCE BY {function}()"),
        ] {
            assert_eq!(refused(&text), (elsewhere, function), "{text}");
        }
    }
    // Elsewhere these are names like any other.
    parse("CREATE VIEW v AS SELECT last_snapshot_version FROM current_snapshot_version");
}

#[test]
fn snapshots_and_their_versions_come_from_no_stream() {
    let stream = Some("INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_SNAPSHOT_FLOW");
    let text = "CREATE FLOW f AS AUTO CDC INTO t FROM SNAPSHOT (SELECT * FROM STREAM s) KEYS (id)";
    assert_eq!(refused(text), (stream, "(SELECT * FROM STREAM s)"));
    let text = "AUTO CDC INTO t FROM SNAPSHOT (SELECT 1) WITH VERSION (SELECT v FROM STREAM s) KEYS (id)";
    let version = Some("INVALID_AUTO_CDC_FROM_SNAPSHOT_VERSION_QUERY");
    assert_eq!(refused(text), (version, "(SELECT v FROM STREAM s)"));
    let text = "AUTO CDC INTO t FROM SNAPSHOT CALLBACK WITH VERSION (SELECT 1) KEYS (id)";
    assert_eq!(refused(text), (None, "WITH"));
    let text = "AUTO CDC INTO t FROM SNAPSHOT (SELECT 1) WITH VERSION SELECT 1 KEYS (id)";
    assert_eq!(refused(text), (None, "SELECT"));
}

#[test]
fn g_19_depends_on_takes_a_name_or_a_list_for_every_kind_of_flow() {
    for body in [
        "INSERT INTO t BY NAME SELECT * FROM STREAM s",
        "UPDATE INTO t BY NAME SELECT * FROM STREAM s",
        "AUTO CDC INTO t FROM STREAM s KEYS (k) SEQUENCE BY v",
        "AUTO CDC INTO t FROM SNAPSHOT (SELECT 1) KEYS (k)",
        "AUTO CDC INTO t FROM SNAPSHOT CALLBACK KEYS (k)",
    ] {
        for (clauses, names) in [
            ("DEPENDS ON a", vec!["a"]),
            ("DEPENDS ON `a b` COMMENT 'c'", vec!["a b"]),
            ("COMMENT 'c' DEPENDS ON (a, b, a)", vec!["a", "b"]),
            ("DEPENDS ON (a) COMMENT 'c'", vec!["a"]),
        ] {
            let pipeline = parse(&format!("CREATE FLOW f {clauses} AS {body}"));
            assert_eq!(pipeline.flows[0].depends_on, names, "{clauses} {body}");
            assert_eq!(pipeline.flows[0].comment.is_some(), clauses.contains("COMMENT"));
        }
    }
    let text = "CREATE FLOW f DEPENDS ON a, b AS INSERT INTO t BY NAME SELECT * FROM STREAM s";
    assert_eq!(refused(text), (None, ","));
    for list in ["", "()", "(a,)", "'a'"] {
        let text = format!("CREATE FLOW f DEPENDS ON {list} AS INSERT INTO t BY NAME SELECT * FROM STREAM s");
        assert!(read(&text).is_err(), "{text}");
    }
}

#[test]
fn g_28_expectations_stand_among_columns_and_behind_them() {
    for text in [
        "CREATE STREAMING TABLE t (CONSTRAINT a EXPECT (x > 0), CONSTRAINT b EXPECT (\"y\" = z) ON VIOLATION FAIL UPDATE)",
        "CREATE STREAMING TABLE t (CONSTRAINT a EXPECT (x > 0) CONSTRAINT b EXPECT (y) ON VIOLATION DROP ROW)",
        "CREATE STREAMING TABLE t (x INT CONSTRAINT a EXPECT (x > 0) ON VIOLATION DROP ROW, y BOOLEAN CONSTRAINT b EXPECT (y))",
        "CREATE STREAMING TABLE t (CONSTRAINT a EXPECT (x > 0), x INT NOT NULL COMMENT 'c', CONSTRAINT b EXPECT (y))",
        "CREATE MATERIALIZED VIEW t (CONSTRAINT a EXPECT (x > 0), CONSTRAINT b EXPECT (y)) AS SELECT x, y FROM s",
        "CREATE OR REFRESH LIVE TABLE t (CONSTRAINT a EXPECT (x > 0), CONSTRAINT b EXPECT (y)) AS SELECT x, y FROM s",
    ] {
        let pipeline = parse(text);
        let names: Vec<_> =
            pipeline.datasets[0].table().unwrap().expectations.iter().map(|e| e.name.as_str()).collect();
        assert_eq!(names, ["a", "b"], "{text}");
    }
}

#[test]
fn g_28_names_are_unique_and_conditions_are_about_one_row() {
    let table = |constraints: &str| format!("CREATE STREAMING TABLE t (id INT, {constraints})");
    let twice = "CONSTRAINT a EXPECT (id > 0)";
    assert_eq!(refused(&table(&format!("{twice}, {twice}"))), (None, twice));
    for (condition, marked) in [
        ("id IN (SELECT id FROM other)", "id"),
        ("EXISTS (SELECT 1)", "EXISTS"),
        ("count(*) > 1", "count"),
        ("id > avg(id) + 1", "avg"),
        ("SUM(DISTINCT id) > 1", "SUM"),
        ("custom(DISTINCT id) > 1", "custom"),
        ("max(id) FILTER (WHERE id > 1) > 1", "max"),
        ("row_number() OVER (PARTITION BY id ORDER BY at) = 1", "row_number"),
        ("abs(sum(id) OVER ()) = 1", "sum"),
        ("lag(id) OVER (ORDER BY at) < id", "lag"),
    ] {
        assert_eq!(
            refused(&table(&format!("CONSTRAINT a EXPECT ({condition})"))),
            (None, marked),
            "{condition}"
        );
    }
    for (text, marked) in [
        ("CONSTRAINT a EXPECTS (id > 1)", "EXPECTS"),
        ("CONSTRAINT pk PRIMARY KEY (id)", "PRIMARY"),
        ("PRIMARY KEY (id)", "PRIMARY"),
        ("day STRING GENERATED ALWAYS AS (dayofweek(at))", "GENERATED"),
        ("day STRING DEFAULT 'x'", "DEFAULT"),
    ] {
        assert_eq!(refused(&table(text)), (None, marked), "{text}");
    }
    let wrong = read(&table("CONSTRAINT a EXPECT (id > 1) ON VIOLATION DROP")).expect_err("no action");
    assert_eq!(wrong[0].message, "expected DROP ROW or FAIL UPDATE, found `DROP`");
}
