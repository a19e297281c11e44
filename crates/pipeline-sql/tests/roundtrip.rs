//! Does a definition survive being written down?

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail like tests")]

use proptest::{collection::vec, option, prelude::*};
use strandline_cdc_core::spec::{CdcOptions, ColumnSelection, StoredAs};
use strandline_pipeline_sql::{
    AutoCdc, ColumnDef, DatasetDefinition, Expectation, FlowDefinition, FlowKind, FlowQuery, OnViolation,
    PipelineDefinition, SinkDefinition, SnapshotCdc, SnapshotSource, SourceFile, Span, SqlExpr, SqlType,
    Support, TableDeclaration, ViewDefinition, parse_pipeline_with,
};

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
    prop_oneof!["[a-z0-9 ]{0,8}", "[a-z'\"\\\\;%_\n`ü${}-]{0,8}", Just("${nobody}".to_owned())]
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
            "SELECT '\\${x}' AS a FROM STREAM t WITH (readChangeFeed, 'startingVersion' = 5) AS u",
            "SELECT * FROM STREAM(read_kafka(subscribe => \"t\", maxOffsetsPerTrigger => 5)) k",
            "SELECT * FROM STREAM delta.`/a b/t` JOIN delta.`/c` AS d ON true",
        ]
    } else {
        vec![
            "SELECT 1 AS one",
            "SELECT * FROM t, u",
            "VALUES (1, 'a'), (2, 'b')",
            "SELECT * FROM read_files(\"p\")",
            "SELECT a, count(*) AS n FROM delta.`/c` /* ${nobody} */ GROUP BY a",
            "SELECT * FROM json.`/in/*`",
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

fn sink() -> impl Strategy<Value = DatasetDefinition> {
    let format = proptest::sample::select(vec!["json", "parquet", "delta", SinkDefinition::FOREACH_BATCH]);
    let options = proptest::collection::btree_map(text(), text(), 0..3);
    (dataset_name(), format, options, option::of(text())).prop_map(|(name, format, options, comment)| {
        let sink = SinkDefinition::new(&name, format);
        DatasetDefinition::Sink(SinkDefinition { options, comment, ..sink })
    })
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

/// Image and version with functions that stand nowhere else.
fn versioned() -> SnapshotSource {
    let text = "AUTO CDC INTO t FROM SNAPSHOT (
          WITH v AS (SELECT * FROM current_snapshot_version() AS c) SELECT * FROM s JOIN v ON d = v.day)
        WITH VERSION (SELECT min(d) AS day FROM s WHERE d > (SELECT day FROM last_snapshot_version()) -- next\n)
        KEYS (k)";
    let mut parsed = parse_pipeline_with(&[SourceFile::new("v", text)], &Support::everything()).unwrap();
    let FlowKind::Snapshot(snapshot) = parsed.flows.remove(0).kind else { panic!("no snapshot") };
    snapshot.source
}

fn snapshot() -> impl Strategy<Value = (bool, FlowKind)> {
    let source = prop_oneof![
        (query(false), option::of(query(false)))
            .prop_map(|(image, version)| SnapshotSource::Query { image, version }),
        Just(SnapshotSource::Callback),
        Just(versioned()),
    ];
    (source, names(), selection(), any::<bool>()).prop_map(|(source, keys, track_history, scd2)| {
        let (stored_as, track_history) =
            if scd2 { (StoredAs::Scd2, track_history) } else { (StoredAs::Scd1, ColumnSelection::All) };
        let options = CdcOptions { keys, stored_as, track_history, ..CdcOptions::default() };
        (scd2, FlowKind::Snapshot(Box::new(SnapshotCdc { source, options })))
    })
}

fn flow() -> impl Strategy<Value = FlowDefinition> {
    let append = any::<bool>()
        .prop_flat_map(|once| query(!once).prop_map(move |query| (once, FlowKind::Append { query })));
    let update = query(true).prop_map(|query| (false, FlowKind::Update { query }));
    (
        name(),
        dataset_name(),
        option::of(names()),
        option::of(text()),
        prop_oneof![append, update, auto_cdc(), snapshot()],
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

/// What one statement says: a dataset, a flow, or both in a materialized view.
type Said = (Option<DatasetDefinition>, Option<FlowDefinition>);

fn materialized_view() -> impl Strategy<Value = Said> {
    (table(), query(false)).prop_map(|(table, query)| {
        let DatasetDefinition::StreamingTable(table) = table else { return (None, None) };
        let flow = FlowDefinition {
            name: table.name.clone(),
            target: table.name.clone(),
            once: false,
            depends_on: Vec::new(),
            kind: FlowKind::Complete { query },
            comment: None,
            span: Span::default(),
        };
        (Some(DatasetDefinition::MaterializedView(table)), Some(flow))
    })
}

fn pipeline() -> impl Strategy<Value = PipelineDefinition> {
    let settings = proptest::collection::btree_map("[a-z]{1,4}(\\.[a-z]{1,4}){0,2}", text(), 0..3);
    let said = prop_oneof![
        2 => table().prop_map(|table| (Some(table), None)),
        1 => view().prop_map(|view| (Some(view), None)),
        1 => sink().prop_map(|sink| (Some(sink), None)),
        4 => flow().prop_map(|flow| (None, Some(flow))),
        2 => materialized_view(),
    ];
    (vec(said, 0..8), settings).prop_map(|(said, settings)| {
        let (datasets, flows): (Vec<_>, Vec<_>) = said.into_iter().unzip();
        PipelineDefinition {
            datasets: datasets.into_iter().flatten().collect(),
            flows: flows.into_iter().flatten().collect(),
            settings,
        }
    })
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
