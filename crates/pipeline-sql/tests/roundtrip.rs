//! Does a definition survive being written down, and do both ways of defining give the same?

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use proptest::{collection::vec, option, prelude::*};
use strandline_cdc_core::spec::{CdcOptions, ColumnSelection, StoredAs};
use strandline_pipeline_sql::{
    AppendFlow, AutoCdc, AutoCdcFlow, ColumnDef, DatasetDefinition, Expectation, FlowDefinition, FlowKind,
    FlowQuery, OnViolation, PipelineBuilder, PipelineDefinition, SnapshotCdc, SnapshotSource, SourceFile,
    Span, SqlExpr, SqlType, Support, TableDeclaration, ViewDefinition, parse_pipeline, parse_pipeline_with,
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

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z_][a-zA-Z0-9_]{0,6}",
        Just("select".to_owned()),
        Just("keys".to_owned()),
        Just("live".to_owned()),
        "[a-z .`'\"\\\\é-]{1,6}",
    ]
}

fn dataset_name() -> impl Strategy<Value = String> {
    vec(name(), 1..3).prop_map(|parts| parts.join("."))
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z0-9 ]{0,8}", "[a-z'\"\\\\;%_\n`ü-]{0,8}"]
}

fn expr() -> impl Strategy<Value = SqlExpr> {
    let texts = [
        "a",
        "`odd name`",
        "op = 'D'",
        "op = \"D\" AND (x > 1 OR y IS NULL)",
        "struct(ts, lsn)",
        "cast(a AS BIGINT) + 1",
        "a -- why\n + b",
        "coalesce(a, 'it''s \\\\')",
        "NOT x IN (1, 2)",
        "CASE WHEN a THEN b ELSE c END",
    ];
    proptest::sample::select(texts.to_vec()).prop_map(|text| SqlExpr::parse(text).unwrap())
}

fn query(streaming: bool) -> impl Strategy<Value = FlowQuery> {
    let texts = if streaming {
        vec![
            "SELECT * FROM STREAM t",
            "SELECT a, 'x;y' AS b FROM STREAM(`odd t`) AS o JOIN u ON o.i = u.i",
            "WITH c AS (SELECT * FROM STREAM read_files('p', format => 'json', schema => 'a INT')) SELECT * FROM c",
            "SELECT * /* all */ FROM STREAM t -- of it\n WHERE x",
        ]
    } else {
        vec![
            "SELECT 1 AS one",
            "SELECT * FROM t, u",
            "VALUES (1, 'a'), (2, 'b')",
            "SELECT * FROM read_files(\"p\")",
        ]
    };
    proptest::sample::select(texts).prop_map(|text| FlowQuery::parse(text).unwrap())
}

fn names() -> impl Strategy<Value = Vec<String>> {
    vec(name(), 1..4).prop_map(|mut names| {
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| seen.insert(name.clone()));
        names
    })
}

fn selection() -> impl Strategy<Value = ColumnSelection> {
    prop_oneof![
        Just(ColumnSelection::All),
        names().prop_map(ColumnSelection::Only),
        names().prop_map(ColumnSelection::Except)
    ]
}

fn sql_type() -> impl Strategy<Value = SqlType> {
    let leaf = prop_oneof![
        proptest::sample::select(vec![
            SqlType::Boolean,
            SqlType::TinyInt,
            SqlType::SmallInt,
            SqlType::Int,
            SqlType::BigInt,
            SqlType::Float,
            SqlType::Double,
            SqlType::String,
            SqlType::Binary,
            SqlType::Date,
            SqlType::Timestamp,
            SqlType::TimestampNtz,
        ]),
        (1_u8..=38).prop_flat_map(|precision| {
            (0..=precision).prop_map(move |scale| SqlType::Decimal { precision, scale })
        }),
    ];
    leaf.prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|item| SqlType::Array(Box::new(item))),
            (inner.clone(), inner.clone()).prop_map(|(k, v)| SqlType::Map(Box::new(k), Box::new(v))),
            vec(column(inner), 0..3).prop_map(SqlType::Struct),
        ]
    })
}

fn column(data_type: impl Strategy<Value = SqlType>) -> impl Strategy<Value = ColumnDef> {
    (name(), data_type, any::<bool>(), option::of(text()))
        .prop_map(|(name, data_type, nullable, comment)| ColumnDef { name, data_type, nullable, comment })
}

fn table() -> impl Strategy<Value = DatasetDefinition> {
    let on_violation =
        proptest::sample::select(vec![OnViolation::Keep, OnViolation::DropRow, OnViolation::FailUpdate]);
    let expectation = (name(), expr(), on_violation)
        .prop_map(|(name, condition, on_violation)| Expectation { name, condition, on_violation });
    (
        (dataset_name(), vec(column(sql_type()), 0..4), vec(expectation, 0..3)),
        (option::of(name()), option::of(names()), option::of(names()), option::of(text())),
        proptest::collection::btree_map(text(), text(), 0..3),
    )
        .prop_map(
            |((name, mut columns, mut expectations), (format, partitions, clusters, comment), properties)| {
                let mut seen = std::collections::BTreeSet::new();
                // A column of this name would begin a constraint, if it were not quoted.
                columns.retain(|column| seen.insert(column.name.clone()));
                seen.clear();
                expectations.retain(|expectation| seen.insert(expectation.name.clone()));
                DatasetDefinition::StreamingTable(TableDeclaration {
                    name,
                    columns,
                    expectations,
                    format,
                    partitioned_by: partitions.unwrap_or_default(),
                    cluster_by: clusters.unwrap_or_default(),
                    comment,
                    properties,
                    span: Span::default(),
                })
            },
        )
}

fn view() -> impl Strategy<Value = DatasetDefinition> {
    (dataset_name(), any::<bool>().prop_flat_map(query), any::<bool>(), option::of(text())).prop_map(
        |(name, query, temporary, comment)| {
            DatasetDefinition::View(ViewDefinition { name, query, temporary, comment, span: Span::default() })
        },
    )
}

fn auto_cdc() -> impl Strategy<Value = (bool, FlowKind)> {
    let scd1 =
        (option::of(expr()), option::of(prop_oneof![selection(), Just(ColumnSelection::Except(Vec::new()))]));
    (
        (query(true), names(), selection(), expr(), option::of(expr())),
        scd1,
        (expr(), option::of(expr()), option::of(name()), selection()),
        (0..3_u8, any::<bool>(), option::of(expr())),
    )
        .prop_map(
            |(
                (source, keys, columns, sequence_by, apply_as_delete),
                (truncate, ignore),
                (system, retract, mask, track_history),
                (shape, once, valid_to),
            )| {
                let stored_as = [StoredAs::Scd1, StoredAs::Scd2, StoredAs::Bitemporal][usize::from(shape)];
                let bitemporal = stored_as == StoredAs::Bitemporal;
                let track_history = if shape == 1 { track_history } else { ColumnSelection::All };
                let options = CdcOptions {
                    keys,
                    stored_as,
                    columns,
                    track_history,
                    columns_to_update: mask.filter(|_| !bitemporal && ignore.is_none()),
                    ignore_null_updates: ignore,
                    ..CdcOptions::default()
                };
                let cdc = AutoCdc {
                    source,
                    options,
                    sequence_by,
                    apply_as_delete,
                    apply_as_truncate: truncate.filter(|_| shape == 0),
                    apply_as_retract: retract.filter(|_| bitemporal),
                    system_sequence_by: bitemporal.then_some(system),
                    valid_to: valid_to.filter(|_| once && shape == 1),
                };
                (once, FlowKind::AutoCdc(Box::new(cdc)))
            },
        )
}

fn snapshot() -> impl Strategy<Value = (bool, FlowKind)> {
    (query(false), option::of(query(false)), names(), selection(), any::<bool>()).prop_map(
        |(source, version, keys, track_history, scd2)| {
            let (stored_as, track_history) =
                if scd2 { (StoredAs::Scd2, track_history) } else { (StoredAs::Scd1, ColumnSelection::All) };
            let options = CdcOptions { keys, stored_as, track_history, ..CdcOptions::default() };
            (
                scd2,
                FlowKind::Snapshot(Box::new(SnapshotCdc {
                    source: SnapshotSource::Query { image: source, version },
                    options,
                })),
            )
        },
    )
}

fn flow() -> impl Strategy<Value = FlowDefinition> {
    let append = any::<bool>()
        .prop_flat_map(|once| query(!once).prop_map(move |query| (once, FlowKind::Append { query })));
    (
        name(),
        dataset_name(),
        option::of(names()),
        option::of(text()),
        prop_oneof![append, auto_cdc(), snapshot()],
    )
        .prop_map(|(name, target, depends_on, comment, (once, kind))| FlowDefinition {
            name,
            target,
            once,
            depends_on: depends_on.unwrap_or_default(),
            kind,
            comment,
            span: Span::default(),
        })
}

fn pipeline() -> impl Strategy<Value = PipelineDefinition> {
    let settings = proptest::collection::btree_map("[a-z]{1,4}(\\.[a-z]{1,4}){0,2}", text(), 0..3);
    (vec(prop_oneof![table(), view()], 0..4), vec(flow(), 0..4), settings)
        .prop_map(|(datasets, flows, settings)| PipelineDefinition { datasets, flows, settings })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn definition_to_sql_to_definition_is_the_identity(definition in pipeline()) {
        let text = definition.to_sql();
        let sources = [SourceFile::new("printed.sql", text.as_str())];
        let parsed = parse_pipeline_with(&sources, &Support::everything());
        let parsed = parsed.map_err(|errors| {
            TestCaseError::fail(errors.iter().map(|error| error.render(&text)).collect::<String>() + &text)
        })?;
        prop_assert_eq!(&parsed, &definition, "{}", text);
    }
}
