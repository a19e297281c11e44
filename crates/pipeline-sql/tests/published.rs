//! Is the language read as its users write it? Shapes of published examples, and every clause of `AUTO CDC`.

#![expect(clippy::panic, reason = "helpers of tests fail like tests")]

use strandline_cdc_core::spec::{ColumnSelection, StoredAs};
use strandline_pipeline_sql::{
    AutoCdc, DatasetDefinition, FlowKind, InputKind, OnViolation, OptionValue, PipelineDefinition, ReadFiles,
    SourceFile, SqlError, SqlType, Support, TableDeclaration, parse_pipeline, parse_pipeline_with,
};

fn parse(text: &str) -> PipelineDefinition {
    parse_pipeline(&[SourceFile::new("pipeline.sql", text)])
        .unwrap_or_else(|errors| panic!("{}", listed(&errors)))
}

fn parse_all(text: &str) -> PipelineDefinition {
    parse_pipeline_with(&[SourceFile::new("pipeline.sql", text)], &Support::everything())
        .unwrap_or_else(|errors| panic!("{}", listed(&errors)))
}

fn listed(errors: &[SqlError]) -> String {
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn table(definition: &PipelineDefinition, n: usize) -> &TableDeclaration {
    let DatasetDefinition::StreamingTable(table) = &definition.datasets[n] else {
        panic!("no table: {definition:?}")
    };
    table
}

fn cdc(definition: &PipelineDefinition, n: usize) -> &AutoCdc {
    let FlowKind::AutoCdc(cdc) = &definition.flows[n].kind else { panic!("no changes: {definition:?}") };
    cdc
}

fn files(kind: &InputKind) -> &ReadFiles {
    let InputKind::ReadFiles(files) = kind else { panic!("no files: {kind:?}") };
    files
}

#[test]
fn g_01_streaming_table_over_files_with_double_quoted_strings() {
    let pipeline = parse(
        r#"CREATE OR REFRESH STREAMING TABLE customers_bronze
           COMMENT "raw" TBLPROPERTIES ("quality" = "bronze", pipelines.reset.allowed = false)
           AS SELECT *, current_timestamp() AS at FROM STREAM read_files(
             "/data/customers/*.json", format => "json", cloudFiles.inferColumnTypes => true,
             MaxFilesPerTrigger => 10, schema => "id BIGINT NOT NULL, tags ARRAY<STRUCT<a: STRING, b: MAP<STRING, DECIMAL(9,2)>>>");"#,
    );
    let declared = table(&pipeline, 0);
    assert_eq!(declared.name, "customers_bronze");
    assert_eq!(declared.comment.as_deref(), Some("raw"));
    assert_eq!(declared.properties["pipelines.reset.allowed"], "false");
    let flow = &pipeline.flows[0];
    assert_eq!(
        (flow.name.as_str(), flow.target.as_str(), flow.once),
        ("customers_bronze", "customers_bronze", false)
    );
    let query = flow.query().unwrap();
    assert!(query.streaming);
    assert_eq!(query.sql, "SELECT *, current_timestamp() AS at FROM __strandline_input_0");
    let read = files(&query.inputs[0].kind);
    assert_eq!(read.path, "/data/customers/*.json");
    assert_eq!(read.option("cloudFiles.format"), Some(&OptionValue::Text("json".into())));
    assert_eq!(read.option("INFERCOLUMNTYPES").and_then(OptionValue::as_bool), Some(true));
    assert_eq!(read.option("cloudfiles.maxfilespertrigger").and_then(OptionValue::as_integer), Some(10));
    let schema = read.schema.as_ref().unwrap();
    assert_eq!((schema[0].data_type.clone(), schema[0].nullable), (SqlType::BigInt, false));
    assert_eq!(schema[1].data_type.to_string(), "ARRAY<STRUCT<a STRING, b MAP<STRING, DECIMAL(9, 2)>>>");
}

#[test]
fn g_01_published_auto_cdc_into_scd2() {
    let pipeline = parse(
        "CREATE OR REFRESH STREAMING TABLE target;
         CREATE FLOW apply_cdc AS AUTO CDC INTO target
         FROM stream(cdc_data.users)
         KEYS (userId)
         APPLY AS DELETE WHEN operation = \"DELETE\"
         SEQUENCE BY sequenceNum
         COLUMNS * EXCEPT (operation, sequenceNum)
         STORED AS SCD TYPE 2
         TRACK HISTORY ON * EXCEPT (city)",
    );
    let change = cdc(&pipeline, 0);
    assert_eq!(pipeline.flows[0].name, "apply_cdc");
    assert_eq!(change.options.keys, ["userId"]);
    assert_eq!(change.options.stored_as, StoredAs::Scd2);
    assert_eq!(
        change.options.columns,
        ColumnSelection::Except(vec!["operation".into(), "sequenceNum".into()])
    );
    assert_eq!(change.options.track_history, ColumnSelection::Except(vec!["city".into()]));
    assert_eq!(change.sequence_by.sql(), "sequenceNum");
    let delete = change.apply_as_delete.as_ref().unwrap();
    assert_eq!((delete.text(), delete.sql()), ("operation = \"DELETE\"", "operation = 'DELETE'"));
    assert_eq!(change.source.sql, "SELECT * FROM __strandline_input_0 AS users");
    assert_eq!(change.source.inputs[0].kind, InputKind::Dataset("cdc_data.users".into()));
    assert!(change.source.streaming);
}

#[test]
fn g_01_every_clause_in_the_documented_order() {
    let pipeline = parse_all(
        "CREATE STREAMING TABLE t;
         CREATE OR REFRESH FLOW f COMMENT 'c' AS AUTO CDC ONCE INTO t FROM (SELECT * FROM STREAM s WHERE x > 1)
         KEYS (a, `b.c`)
         IGNORE NULL UPDATES ON * EXCEPT (d)
         APPLY AS DELETE WHEN op = 'D'
         APPLY AS RETRACT WHEN op = 'R'
         SEQUENCE BY struct(ts, lsn)
         SYSTEM SEQUENCE BY seen_at
         COLUMNS (a, `b.c`, d)
         STORED AS BITEMPORAL",
    );
    let change = cdc(&pipeline, 0);
    assert!(pipeline.flows[0].once && change.options.stored_as == StoredAs::Bitemporal);
    assert_eq!(change.options.keys, ["a", "b.c"]);
    assert_eq!(change.options.ignore_null_updates, Some(ColumnSelection::Except(vec!["d".into()])));
    assert_eq!(change.apply_as_retract.as_ref().map(ToString::to_string).as_deref(), Some("op = 'R'"));
    assert_eq!(change.system_sequence_by.as_ref().map(ToString::to_string).as_deref(), Some("seen_at"));
    assert_eq!(change.source.sql, "SELECT * FROM __strandline_input_0 AS s WHERE x > 1");
}

#[test]
fn g_01_clauses_of_scd1_and_partial_updates() {
    let pipeline = parse_all(
        "AUTO CDC INTO t FROM STREAM s KEYS (k) APPLY AS TRUNCATE WHEN op = 'T' SEQUENCE BY v COLUMNS TO UPDATE mask
         STORED AS SCD TYPE 1",
    );
    let change = cdc(&pipeline, 0);
    assert_eq!(change.options.columns_to_update.as_deref(), Some("mask"));
    assert!(change.apply_as_truncate.is_some());
    let pipeline =
        parse_all("APPLY CHANGES INTO LIVE.t FROM STREAM(LIVE.s) KEYS (k) IGNORE NULL UPDATES SEQUENCE BY v");
    assert_eq!(pipeline.flows[0].target, "t");
    assert_eq!(cdc(&pipeline, 0).options.ignore_null_updates, Some(ColumnSelection::All));
}

#[test]
fn g_01_snapshot_flows() {
    let pipeline = parse_all(
        "CREATE FLOW s AS AUTO CDC INTO t FROM SNAPSHOT (SELECT * FROM exports WHERE day = (SELECT * FROM current_snapshot_version()))
         WITH VERSION (SELECT min(day) FROM days) KEYS (id) STORED AS SCD TYPE 2 TRACK HISTORY ON (name)",
    );
    let FlowKind::Snapshot(snapshot) = &pipeline.flows[0].kind else { panic!("no snapshot flow") };
    assert_eq!(snapshot.version().unwrap().dataset_names(), ["days"]);
    assert_eq!(snapshot.options.track_history, ColumnSelection::Only(vec!["name".into()]));
}

#[test]
fn g_01_snapshot_flows_of_a_table_by_its_name() {
    let pipeline = parse_all(
        "CREATE FLOW s AS AUTO CDC ONCE INTO t FROM SNAPSHOT exports.`day one` KEYS (id);
         APPLY CHANGES INTO u FROM SNAPSHOT LIVE.exports KEYS (id) STORED AS SCD TYPE 1",
    );
    for flow in &pipeline.flows {
        let FlowKind::Snapshot(snapshot) = &flow.kind else { panic!("no snapshot flow") };
        assert!(snapshot.version().is_none() && !flow.query().unwrap().streaming, "{snapshot:?}");
        assert_eq!(snapshot.options.keys, ["id"]);
    }
    assert_eq!(pipeline.flows[0].query().unwrap().dataset_names(), ["exports.day one"]);
    assert_eq!(pipeline.flows[1].query().unwrap().dataset_names(), ["exports"]);
    let printed = pipeline.to_sql();
    assert_eq!(parse_all(&printed), pipeline, "{printed}");
}

#[test]
fn g_01_insert_flows_in_both_spellings() {
    for spelling in ["INSERT INTO ONCE t", "INSERT ONCE INTO t"] {
        let text = format!(
            "CREATE FLOW backfill COMMENT 'old days' DEPENDS ON (b24, b25) AS {spelling} BY NAME
             SELECT * FROM read_files('old', format => 'parquet')"
        );
        let pipeline = parse(&text);
        let flow = &pipeline.flows[0];
        assert!(flow.once && !flow.query().unwrap().streaming);
        assert_eq!(flow.depends_on, ["b24", "b25"]);
        assert_eq!(flow.comment.as_deref(), Some("old days"));
    }
    let pipeline = parse("CREATE FLOW live AS INSERT INTO t BY NAME SELECT a FROM STREAM(s)");
    assert!(!pipeline.flows[0].once);
}

#[test]
fn g_19_depends_on_names_collapse() {
    let pipeline =
        parse("CREATE FLOW f DEPENDS ON (a, b, a) AS AUTO CDC INTO t FROM STREAM s KEYS (k) SEQUENCE BY v");
    assert_eq!(pipeline.flows[0].depends_on, ["a", "b"]);
}

#[test]
fn g_02_clauses_in_any_order() {
    let clauses = [
        "SEQUENCE BY ts + 1",
        "APPLY AS DELETE WHEN op = 'D'",
        "STORED AS SCD TYPE 2",
        "TRACK HISTORY ON (a)",
    ];
    let mut seen = Vec::new();
    for first in 0..clauses.len() {
        let mut order = clauses.to_vec();
        order.rotate_left(first);
        for text in [order.join(" "), order.iter().rev().copied().collect::<Vec<_>>().join("\n")] {
            seen.push(parse(&format!("AUTO CDC INTO t FROM STREAM s KEYS (k) {text}")));
        }
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]));
}

#[test]
fn g_06_an_unnamed_change_flow_has_the_name_of_its_target() {
    let pipeline = parse(
        "CREATE STREAMING TABLE t FLOW AUTO CDC FROM STREAM s KEYS (k) SEQUENCE BY v;
         CREATE FLOW AS AUTO CDC INTO u FROM STREAM s KEYS (k) SEQUENCE BY v",
    );
    let names: Vec<_> =
        pipeline.flows.iter().map(|flow| (flow.name.as_str(), flow.target.as_str())).collect();
    assert_eq!(names, [("t", "t"), ("u", "u")]);
}

#[test]
fn g_01_a_35_live_tables_channel_settings_views_and_comments() {
    let pipeline = parse(
        "-- a pipeline
         SET pipelines.channel = PREVIEW; SET pipelines.trigger.interval = '5 seconds';;
         CREATE STREAMING LIVE TABLE a (id BIGINT NOT NULL COMMENT 'the key', at TIMESTAMP_NTZ) USING delta
           TBLPROPERTIES ('pipelines.channel' = 'PREVIEW') AS SELECT * FROM STREAM(LIVE.raw);
         /* views /* nest */ */
         CREATE OR REPLACE TEMPORARY VIEW v AS SELECT * FROM STREAM a;
         CREATE LIVE VIEW w COMMENT 'x' AS SELECT 1 AS one;
         CREATE VIEW x AS WITH c AS (SELECT * FROM v) SELECT * FROM c;",
    );
    assert_eq!(pipeline.settings["pipelines.channel"], "PREVIEW");
    assert_eq!(pipeline.settings["pipelines.trigger.interval"], "5 seconds");
    assert_eq!(table(&pipeline, 0).format.as_deref(), Some("delta"));
    assert_eq!(table(&pipeline, 0).columns[0].comment.as_deref(), Some("the key"));
    let views: Vec<_> = pipeline
        .datasets
        .iter()
        .filter_map(|dataset| {
            let DatasetDefinition::View(view) = dataset else { return None };
            Some((view.name.as_str(), view.temporary, view.query.streaming))
        })
        .collect();
    assert_eq!(views, [("v", true, true), ("w", true, false), ("x", false, false)]);
}

#[test]
fn g_28_expectations_are_read() {
    let pipeline = parse_all(
        "CREATE STREAMING TABLE t (id INT, CONSTRAINT a EXPECT (id > 0),
           CONSTRAINT b EXPECT (id IS NOT NULL AND (id < 9)) ON VIOLATION DROP ROW,
           CONSTRAINT c EXPECT (id <> 5) ON VIOLATION FAIL UPDATE)
         PARTITIONED BY (id) AS SELECT * FROM STREAM s",
    );
    let expectations = &table(&pipeline, 0).expectations;
    let actions: Vec<_> = expectations.iter().map(|e| e.on_violation).collect();
    assert_eq!(actions, [OnViolation::Keep, OnViolation::DropRow, OnViolation::FailUpdate]);
    assert_eq!(expectations[1].condition.text(), "id IS NOT NULL AND (id < 9)");
    assert_eq!(table(&pipeline, 0).partitioned_by, ["id"]);
}

#[test]
fn t_once_a_change_flow_may_read_a_batch() {
    let pipeline = parse("CREATE FLOW f AS AUTO CDC ONCE INTO t FROM old KEYS (k) SEQUENCE BY v");
    assert!(!cdc(&pipeline, 0).source.streaming);
    assert_eq!(cdc(&pipeline, 0).source.text, "SELECT * FROM old");
}

#[test]
fn sources_of_changes_in_every_spelling() {
    for (source, sql) in [
        ("STREAM t", "SELECT * FROM __strandline_input_0 AS t"),
        ("STREAM(t)", "SELECT * FROM __strandline_input_0 AS t"),
        ("stream ( `a t` ) AS s", "SELECT * FROM __strandline_input_0 AS s"),
        ("STREAM t s", "SELECT * FROM __strandline_input_0 s"),
        ("STREAM snapshot", "SELECT * FROM __strandline_input_0 AS snapshot"),
        ("STREAM keys", "SELECT * FROM __strandline_input_0 AS keys"),
        ("STREAM read_files('p', format => 'json')", "SELECT * FROM __strandline_input_0"),
        ("STREAM(read_files('p')) AS f", "SELECT * FROM __strandline_input_0 AS f"),
        ("(SELECT a FROM STREAM t)", "SELECT a FROM __strandline_input_0 AS t"),
        ("(SELECT a FROM STREAM t) AS q", "SELECT a FROM __strandline_input_0 AS t"),
    ] {
        let pipeline = parse(&format!("AUTO CDC INTO t FROM {source} KEYS (k) SEQUENCE BY v"));
        assert_eq!(cdc(&pipeline, 0).source.sql, sql, "{source}");
        assert!(cdc(&pipeline, 0).source.streaming);
    }
}
