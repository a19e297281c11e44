//! Do both ways of defining give the same? (G-05)

use strandline_cdc_core::spec::{ColumnSelection, StoredAs};
use strandline_pipeline_sql::{
    AppendFlow, AutoCdcFlow, ColumnDef, PipelineBuilder, SinkDefinition, SnapshotFlow, SourceFile, SqlType,
    Support, Table, TableDeclaration, UpdateFlow, parse_pipeline, parse_pipeline_with,
};

#[test]
fn g_05_the_builder_gives_the_same_definition_as_sql() {
    let text = "
        SET a.b = 'c';
        CREATE STREAMING TABLE raw;
        CREATE STREAMING TABLE t (id BIGINT NOT NULL) COMMENT 'it''s';
        CREATE TEMPORARY VIEW v AS SELECT * FROM STREAM raw WHERE ok;
        CREATE FLOW raw AS INSERT INTO raw BY NAME SELECT * FROM STREAM read_files('in', format => 'json');
        CREATE FLOW old COMMENT 'c' DEPENDS ON (raw) AS INSERT INTO ONCE raw BY NAME SELECT * FROM x;
        CREATE FLOW cdc DEPENDS ON (old) AS AUTO CDC INTO t FROM STREAM(v) KEYS (id) SEQUENCE BY ts
          APPLY AS DELETE WHEN op = 'D' COLUMNS * EXCEPT (op) STORED AS SCD TYPE 2 TRACK HISTORY ON (plan);";
    let id = ColumnDef { nullable: false, ..ColumnDef::new("id", SqlType::BigInt) };
    let table = TableDeclaration {
        name: "t".into(),
        columns: vec![id],
        comment: Some("it's".into()),
        ..TableDeclaration::default()
    };
    let built = PipelineBuilder::new()
        .set("a.b", "c")
        .streaming_table("raw")
        .table(table)
        .temporary_view("v", "SELECT * FROM STREAM raw WHERE ok")
        .append_flow(AppendFlow::new("raw", "SELECT * FROM STREAM read_files('in', format => 'json')"))
        .append_flow(
            AppendFlow::new("raw", "SELECT * FROM x").named("old").once().comment("c").depends_on(["raw"]),
        )
        .auto_cdc_flow(
            AutoCdcFlow::new("t", "STREAM(v)")
                .named("cdc")
                .depends_on(["old"])
                .keys(["id"])
                .sequence_by("ts")
                .apply_as_delete_when("op = 'D'")
                .columns(&ColumnSelection::Except(vec!["op".into()]))
                .stored_as(StoredAs::Scd2)
                .track_history(&ColumnSelection::Only(vec!["plan".into()])),
        )
        .build();
    assert_eq!(built, parse_pipeline(&[SourceFile::new("p.sql", text)]));
    assert!(built.is_ok());
}

#[test]
fn g_05_the_builder_has_every_clause_of_changes() {
    let text = "
        CREATE STREAMING TABLE now; CREATE STREAMING TABLE masked; CREATE STREAMING TABLE past; CREATE STREAMING TABLE both;
        CREATE FLOW a AS AUTO CDC INTO now FROM STREAM(s) KEYS (k) IGNORE NULL UPDATES ON * EXCEPT (x)
          APPLY AS TRUNCATE WHEN op = 'T' SEQUENCE BY v;
        CREATE FLOW b AS AUTO CDC INTO masked FROM STREAM(s) KEYS (k) SEQUENCE BY v COLUMNS TO UPDATE `the mask`;
        CREATE FLOW c AS AUTO CDC ONCE INTO past FROM old KEYS (k) SEQUENCE BY v STORED AS SCD TYPE 2 VALID TO ended;
        CREATE FLOW d AS AUTO CDC INTO both FROM STREAM(s) KEYS (k) IGNORE NULL UPDATES SEQUENCE BY v
          SYSTEM SEQUENCE BY w STORED AS BITEMPORAL APPLY AS RETRACT WHEN op = 'R'";
    let flow = |name: &str, target: &str, source: &str| {
        AutoCdcFlow::new(target, source).named(name).keys(["k"]).sequence_by("v")
    };
    let built = PipelineBuilder::new()
        .streaming_table("now")
        .streaming_table("masked")
        .streaming_table("past")
        .streaming_table("both")
        .auto_cdc_flow(
            flow("a", "now", "STREAM(s)")
                .ignore_null_updates(&ColumnSelection::Except(vec!["x".into()]))
                .apply_as_truncate_when("op = 'T'"),
        )
        .auto_cdc_flow(flow("b", "masked", "STREAM(s)").columns_to_update("the mask"))
        .auto_cdc_flow(flow("c", "past", "old").once().stored_as(StoredAs::Scd2).valid_to("ended"))
        .auto_cdc_flow(
            flow("d", "both", "STREAM(s)")
                .ignore_null_updates(&ColumnSelection::All)
                .bitemporal("w")
                .apply_as_retract_when("op = 'R'"),
        )
        .build_with(&Support::everything());
    assert_eq!(built, parse_pipeline_with(&[SourceFile::new("p.sql", text)], &Support::everything()));
    assert!(built.is_ok(), "{built:?}");
}

#[test]
fn g_05_the_builder_reports_the_part_that_is_wrong() {
    let errors = PipelineBuilder::new()
        .append_flow(AppendFlow::new("t", "SELECT * FROM s").named("f"))
        .auto_cdc_flow(AutoCdcFlow::new("u", "STREAM s").sequence_by("v"))
        .build()
        .unwrap_err();
    let files: Vec<_> = errors.iter().map(|error| error.file.as_str()).collect();
    assert_eq!(files, ["flow f", "flow u"]);
    assert_eq!(errors[1].condition, Some("AUTOCDC_EMPTY_KEYS"));
}

#[test]
fn g_05_tables_views_and_sinks_with_all_they_have() {
    let text = "
        CREATE STREAMING TABLE bronze (id BIGINT, `the day` DATE, CONSTRAINT a EXPECT (id > 0),
          CONSTRAINT `b c` EXPECT (`the day` IS NOT NULL) ON VIOLATION DROP ROW,
          CONSTRAINT d EXPECT (id < 9) ON VIOLATION FAIL UPDATE)
          COMMENT 'raw' TBLPROPERTIES ('quality' = 'bronze');
        CREATE MATERIALIZED VIEW gold (CONSTRAINT some EXPECT (n > 0)) AS SELECT count(*) AS n FROM bronze;
        CREATE MATERIALIZED VIEW plain AS SELECT 1 AS one;
        CREATE SINK files USING json OPTIONS ('path' = '/out', 'x' = '1') COMMENT 'c';
        CREATE SINK code USING foreachBatch;";
    let bronze = Table::new("bronze")
        .column("id", SqlType::BigInt)
        .column("the day", SqlType::Date)
        .expect("a", "id > 0")
        .expect_or_drop("b c", "`the day` IS NOT NULL")
        .expect_or_fail("d", "id < 9")
        .comment("raw")
        .property("quality", "bronze");
    let files = SinkDefinition::new("files", "JSON").option("path", "/out").option("x", "1").described("c");
    let built = PipelineBuilder::new()
        .table(bronze)
        .materialized_view(Table::new("gold").expect("some", "n > 0"), "SELECT count(*) AS n FROM bronze")
        .materialized_view("plain", "SELECT 1 AS one")
        .sink(files)
        .foreach_batch_sink("code")
        .build_with(&Support::everything());
    assert_eq!(built, parse_pipeline_with(&[SourceFile::new("p.sql", text)], &Support::everything()));
    assert!(built.is_ok(), "{built:?}");
}

#[test]
fn g_05_g_19_flows_of_every_kind_with_their_predecessors() {
    let text = "
        CREATE FLOW a DEPENDS ON (seed) AS INSERT INTO t BY NAME SELECT * FROM STREAM s;
        CREATE FLOW b DEPENDS ON (seed, a) COMMENT 'c' AS UPDATE INTO sink BY NAME SELECT * FROM STREAM s;
        CREATE FLOW c DEPENDS ON seed AS AUTO CDC INTO u FROM STREAM s KEYS (k) SEQUENCE BY v;
        CREATE FLOW d DEPENDS ON (seed) AS AUTO CDC INTO v FROM SNAPSHOT (SELECT * FROM x -- all
        ) KEYS (k);
        CREATE FLOW e AS AUTO CDC ONCE INTO v
          FROM SNAPSHOT (SELECT * FROM x WHERE d = (SELECT d FROM current_snapshot_version()))
          WITH VERSION (SELECT min(d) AS d FROM x) KEYS (k, l) STORED AS SCD TYPE 2 TRACK HISTORY ON (m);
        CREATE FLOW w DEPENDS ON (seed) AS AUTO CDC INTO w FROM SNAPSHOT CALLBACK KEYS (k);";
    let image = "SELECT * FROM x WHERE d = (SELECT d FROM current_snapshot_version())";
    let built = PipelineBuilder::new()
        .append_flow(AppendFlow::new("t", "SELECT * FROM STREAM s").named("a").depends_on("seed"))
        .update_flow(
            UpdateFlow::new("sink", "SELECT * FROM STREAM s")
                .named("b")
                .depends_on(["seed", "a", "seed"])
                .comment("c"),
        )
        .auto_cdc_flow(
            AutoCdcFlow::new("u", "STREAM s")
                .named("c")
                .depends_on("seed".to_owned())
                .keys(["k"])
                .sequence_by("v"),
        )
        .snapshot_flow(
            SnapshotFlow::new("v", "SELECT * FROM x -- all").named("d").depends_on(vec!["seed"]).keys(["k"]),
        )
        .snapshot_flow(
            SnapshotFlow::new("v", image)
                .version("SELECT min(d) AS d FROM x")
                .named("e")
                .once()
                .keys(["k", "l"])
                .stored_as(StoredAs::Scd2)
                .track_history(&ColumnSelection::Only(vec!["m".into()])),
        )
        .snapshot_flow(SnapshotFlow::callback("w").depends_on(["seed"]).keys(["k"]))
        .build_with(&Support::everything());
    assert_eq!(built, parse_pipeline_with(&[SourceFile::new("p.sql", text)], &Support::everything()));
    assert!(built.is_ok(), "{built:?}");
}
