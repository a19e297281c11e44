//! Does an error name what is wrong, where, and what to do? `golden/errors.txt` holds cases and their rendering;
//! `UPDATE_EXPECT=1` writes it anew.

#![expect(clippy::expect_used, reason = "helpers of tests fail like tests")]

use std::path::PathBuf;

use strandline_pipeline_sql::{Feature, SourceFile, SqlError, Support, parse_pipeline, parse_pipeline_with};

fn errors(text: &str) -> Vec<SqlError> {
    parse_pipeline(&[SourceFile::new("p.sql", text)]).expect_err(text)
}

fn conditions(text: &str) -> Vec<Option<&'static str>> {
    errors(text).iter().map(|error| error.condition).collect()
}

/// The only error's condition and the text that it is about.
fn only(text: &str) -> (Option<&'static str>, String) {
    let errors = errors(text);
    assert_eq!(errors.len(), 1, "{errors:?}");
    (errors[0].condition, text[errors[0].span.clone()].to_owned())
}

const FLOW: &str = "AUTO CDC INTO t FROM STREAM s KEYS (k) SEQUENCE BY v ";

#[test]
fn golden_renderings() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/errors.txt");
    let stored = std::fs::read_to_string(&path).unwrap();
    let mut out = Vec::new();
    for case in stored.split("=== ").skip(1) {
        let (name, rest) = case.split_once('\n').unwrap();
        let text = rest.split("\n---\n").next().unwrap();
        let rendered: String = all_errors(text).iter().map(|error| error.render(text)).collect();
        out.push(format!("=== {name}\n{text}\n---\n{rendered}\n"));
    }
    let out = out.concat();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, out).unwrap();
    } else {
        assert_eq!(stored, out);
    }
}

#[test]
fn g_02_duplicate_missing_and_misspelt_clauses() {
    assert_eq!(only(&format!("{FLOW} SEQUENCE BY w")), (Some("DUPLICATE_CLAUSES"), "SEQUENCE BY".into()));
    assert_eq!(
        conditions(&format!("{FLOW} STORED AS SCD TYPE 1 STORED AS SCD TYPE 1")),
        [Some("DUPLICATE_CLAUSES")]
    );
    assert_eq!(conditions("AUTO CDC INTO t FROM STREAM s KEYS (k)"), [Some("AUTOCDC_MISSING_SEQUENCE_BY")]);
    for (clause, meant) in [
        ("STORD AS SCD TYPE 2", "STORED AS"),
        ("TRACK HISTRY ON (a)", "TRACK HISTORY ON"),
        ("APPLY AS DELET WHEN x", "APPLY AS DELETE WHEN"),
        ("COLUMN (a)", "COLUMNS"),
    ] {
        let errors = errors(&format!("{FLOW}\n  {clause}"));
        assert_eq!(errors[0].help, Some(format!("did you mean {meant}?")), "{clause}");
        assert_eq!((errors[0].line, errors[0].column), (2, 3));
    }
    let errors = errors("AUTO CDC INTO t FROM STREAM s KEY (k) SEQUENCE BY v");
    assert_eq!(errors[0].help.as_deref(), Some("did you mean KEYS?"));
}

#[test]
fn g_03_or_refresh_excludes_if_not_exists() {
    assert_eq!(only("CREATE OR REFRESH STREAMING TABLE IF NOT EXISTS t"), (None, "IF NOT EXISTS".into()));
    let text = format!("CREATE OR REFRESH FLOW IF NOT EXISTS f AS {FLOW}");
    assert_eq!(only(&text), (None, "IF NOT EXISTS".into()));
}

#[test]
fn g_04_bitemporal_is_no_scd_type() {
    let text = format!("{FLOW} STORED AS SCD TYPE BITEMPORAL");
    assert_eq!(only(&text).1, "BITEMPORAL");
    assert_eq!(errors(&text)[0].help.as_deref(), Some("write STORED AS BITEMPORAL"));
    assert_eq!(only(&format!("{FLOW} STORED AS SCD TYPE 3")).1, "3");
}

#[test]
fn c_39_keys_and_lists_take_unqualified_names() {
    let condition = Some("AUTOCDC_MULTIPART_COLUMN_IDENTIFIER");
    assert_eq!(only("AUTO CDC INTO t FROM STREAM s KEYS (a.b) SEQUENCE BY v"), (condition, "a.b".into()));
    assert_eq!(only(&format!("{FLOW} COLUMNS (k, a.b)")), (condition, "a.b".into()));
    assert!(
        parse_pipeline(&[SourceFile::new("p", "AUTO CDC INTO t FROM STREAM s KEYS (`a.b`) SEQUENCE BY v")])
            .is_ok()
    );
    assert_eq!(
        conditions("AUTO CDC INTO t FROM STREAM s KEYS () SEQUENCE BY v"),
        [Some("AUTOCDC_EMPTY_KEYS")]
    );
    let condition = Some("AUTOCDC_NON_COLUMN_IDENTIFIER");
    assert_eq!(conditions("AUTO CDC INTO t FROM STREAM s KEYS (upper(a)) SEQUENCE BY v"), [condition]);
    assert_eq!(conditions("AUTO CDC INTO t FROM STREAM s KEYS (1) SEQUENCE BY v"), [condition]);
}

#[test]
fn c_36_column_lists_take_one_spelling_and_are_not_empty() {
    let both = "AUTOCDC_BOTH_COLUMN_LIST_AND_EXCEPT_COLUMN_LIST";
    assert_eq!(conditions(&format!("{FLOW} COLUMNS (k, v) COLUMNS * EXCEPT (x)")), [Some(both)]);
    for clause in ["COLUMNS ()", "COLUMNS * EXCEPT ()", "STORED AS SCD TYPE 2 TRACK HISTORY ON ()"] {
        let text = format!("{FLOW} {clause}");
        assert_eq!(only(&text), (None, "()".to_owned()), "{clause}");
    }
}

/// The only condition that a clause behind [`FLOW`] breaks where every clause is supported, and what is marked.
fn broken(clauses: &str) -> (&'static str, String) {
    let text = format!("{FLOW} {clauses}");
    let errors = all_errors(&text);
    assert_eq!(errors.len(), 1, "{text}: {errors:?}");
    (errors[0].condition.expect("a condition"), text[errors[0].span.clone()].to_owned())
}

#[test]
fn c_44_spellings_of_ignore_null_updates_exclude_each_other() {
    let conflict = "AUTOCDC_CONFLICTING_IGNORE_NULL_UPDATES_OPTIONS";
    let spellings =
        ["IGNORE NULL UPDATES", "IGNORE NULL UPDATES ON (a)", "IGNORE NULL UPDATES ON * EXCEPT (a)"];
    for (n, first) in spellings.iter().enumerate() {
        for (m, second) in spellings.iter().enumerate() {
            let condition = if n == m { "DUPLICATE_CLAUSES" } else { conflict };
            assert_eq!(broken(&format!("{first} {second}")).0, condition, "{first} {second}");
        }
    }
    let empty = "AUTOCDC_IGNORE_NULL_EMPTY_COLUMN_LIST";
    assert_eq!(broken("IGNORE NULL UPDATES ON ()"), (empty, "()".to_owned()));
    let all = parse_pipeline_with(
        &[SourceFile::new("p.sql", format!("{FLOW} IGNORE NULL UPDATES ON * EXCEPT ()"))],
        &Support::everything(),
    );
    assert!(all.is_ok(), "an empty list of exceptions means all columns: {all:?}");
}

#[test]
fn c_53_columns_to_update_is_the_only_mask() {
    let conflict = "AUTOCDC_COLUMNS_TO_UPDATE_CONFLICT";
    let marked = "COLUMNS TO UPDATE".to_owned();
    for other in
        ["IGNORE NULL UPDATES", "IGNORE NULL UPDATES ON (a)", "STORED AS BITEMPORAL SYSTEM SEQUENCE BY w"]
    {
        assert_eq!(broken(&format!("{other} COLUMNS TO UPDATE m")), (conflict, marked.clone()), "{other}");
        assert_eq!(broken(&format!("COLUMNS TO UPDATE m {other}")), (conflict, marked.clone()), "{other}");
    }
}

#[test]
fn c_24_c_69_clauses_that_need_a_shape() {
    let bitemporal = "STORED AS BITEMPORAL SYSTEM SEQUENCE BY w";
    let cases = [
        ("STORED AS BITEMPORAL", "AUTOCDC_BITEMPORAL_REQUIRES_SYSTEM_SEQUENCE", "STORED AS"),
        ("SYSTEM SEQUENCE BY w", "AUTOCDC_SYSTEM_SEQUENCE_REQUIRES_BITEMPORAL", "SYSTEM SEQUENCE BY"),
        (
            "STORED AS SCD TYPE 2 SYSTEM SEQUENCE BY w",
            "AUTOCDC_SYSTEM_SEQUENCE_REQUIRES_BITEMPORAL",
            "SYSTEM SEQUENCE BY",
        ),
        (
            "STORED AS SCD TYPE 2 APPLY AS TRUNCATE WHEN x",
            "AUTOCDC_TRUNCATE_REQUIRES_SCD1",
            "APPLY AS TRUNCATE WHEN",
        ),
        ("APPLY AS RETRACT WHEN x", "AUTOCDC_RETRACT_REQUIRES_BITEMPORAL", "APPLY AS RETRACT WHEN"),
        (
            "STORED AS SCD TYPE 2 APPLY AS RETRACT WHEN x",
            "AUTOCDC_RETRACT_REQUIRES_BITEMPORAL",
            "APPLY AS RETRACT WHEN",
        ),
        ("TRACK HISTORY ON (x)", "AUTOCDC_TRACK_HISTORY_REQUIRES_SCD2", "TRACK HISTORY ON"),
    ];
    for (clauses, condition, marked) in cases {
        assert_eq!(broken(clauses), (condition, marked.to_owned()), "{clauses}");
    }
    let truncate = broken(&format!("{bitemporal} APPLY AS TRUNCATE WHEN x"));
    assert_eq!(truncate.0, "AUTOCDC_TRUNCATE_REQUIRES_SCD1");
    // an untracked change would edit a past belief.
    let history = broken(&format!("{bitemporal} TRACK HISTORY ON * EXCEPT (x)"));
    assert_eq!(history.0, "AUTOCDC_TRACK_HISTORY_REQUIRES_SCD2");
}

#[test]
fn clauses_of_snapshot_flows() {
    let flow = "AUTO CDC INTO t FROM SNAPSHOT (SELECT * FROM s) KEYS (k)";
    for (clauses, condition, marked) in [
        ("TRACK HISTORY ON (a)", Some("AUTOCDC_TRACK_HISTORY_REQUIRES_SCD2"), "TRACK HISTORY ON"),
        ("STORED AS SCD TYPE 1 STORED AS SCD TYPE 2", Some("DUPLICATE_CLAUSES"), "STORED AS"),
        ("STORED AS BITEMPORAL", None, "STORED AS"),
        ("SEQUENCE BY v", None, "SEQUENCE BY"),
        ("COLUMNS (a)", None, "COLUMNS"),
        ("IGNORE NULL UPDATES", None, "IGNORE NULL UPDATES"),
        ("APPLY AS DELETE WHEN x", None, "APPLY AS DELETE WHEN"),
        ("VALID TO x", None, "VALID TO"),
    ] {
        let text = format!("{flow} {clauses}");
        let errors = all_errors(&text);
        assert_eq!(errors.len(), 1, "{text}: {errors:?}");
        assert_eq!((errors[0].condition, &text[errors[0].span.clone()]), (condition, marked), "{text}");
    }
    let errors = all_errors("AUTO CDC INTO t FROM SNAPSHOT 1 KEYS (k)");
    assert!(errors[0].help.is_some(), "{errors:?}");
}

#[test]
fn valid_to_closes_the_rows_of_a_seed_in_scd2_only() {
    let once = "AUTOCDC_VALID_TO_REQUIRES_ONCE";
    let scd2 = "AUTOCDC_VALID_TO_REQUIRES_SCD2";
    assert_eq!(broken("STORED AS SCD TYPE 2 VALID TO x"), (once, "VALID TO".to_owned()));
    let seed = "AUTO CDC ONCE INTO t FROM s KEYS (k) SEQUENCE BY v";
    for shape in ["", "STORED AS SCD TYPE 1", "STORED AS BITEMPORAL SYSTEM SEQUENCE BY w"] {
        let text = format!("{seed} {shape} VALID TO x");
        let found: Vec<_> = all_errors(&text).iter().map(|error| error.condition).collect();
        assert_eq!(found, [Some(scd2)], "{shape}");
    }
    let text = format!("{seed} STORED AS SCD TYPE 2 VALID TO x VALID TO y");
    assert_eq!(all_errors(&text)[0].condition, Some("DUPLICATE_CLAUSES"));
    let text = format!("{seed} STORED AS SCD TYPE 2 VALID UNTIL x");
    assert_eq!(all_errors(&text).len(), 1);
    let text = format!("{seed} STORED AS SCD TYPE 2 VALID TO");
    assert_eq!(all_errors(&text).len(), 1, "an expression is missing");
    let text = format!("{seed} STORED AS SCD TYPE 2 VALID TO (SELECT 1)");
    assert_eq!(all_errors(&text)[0].help.as_deref(), Some("compute it in a view and read that"));
}

fn all_errors(text: &str) -> Vec<SqlError> {
    parse_pipeline_with(&[SourceFile::new("p.sql", text)], &Support::everything()).expect_err(text)
}

#[test]
fn g_16_once_reads_a_batch_and_anything_else_a_stream() {
    let batch = Some("INVALID_FLOW_QUERY_TYPE.BATCH_RELATION_FOR_STREAMING_TABLE");
    let stream = Some("INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_ONCE_FLOW");
    assert_eq!(conditions("CREATE FLOW f AS INSERT INTO ONCE t BY NAME SELECT * FROM STREAM s"), [stream]);
    assert_eq!(conditions("CREATE FLOW f AS INSERT INTO t BY NAME SELECT * FROM s"), [batch]);
    assert_eq!(conditions("CREATE STREAMING TABLE t AS SELECT * FROM s"), [batch]);
    assert_eq!(only("AUTO CDC INTO t FROM s KEYS (k) SEQUENCE BY v"), (batch, "s".into()));
    assert_eq!(conditions("AUTO CDC INTO t KEYS (k) SEQUENCE BY v"), [Some("AUTOCDC_MISSING_SOURCE")]);
    assert_eq!(conditions("AUTO CDC INTO t FROM KEYS (k) SEQUENCE BY v"), [Some("AUTOCDC_MISSING_SOURCE")]);
}

#[test]
fn what_is_not_executed_is_refused_by_name_and_place() {
    for (feature, text, marked) in [
        (
            Feature::MaterializedView,
            "CREATE OR REFRESH MATERIALIZED VIEW m AS SELECT 1",
            "MATERIALIZED VIEW m",
        ),
        (Feature::MaterializedView, "CREATE LIVE TABLE m AS SELECT 1", "TABLE m"),
        (Feature::Sink, "CREATE SINK s USING json OPTIONS (x = 1)", "SINK s"),
        (
            Feature::FromSnapshot,
            "CREATE FLOW f AS AUTO CDC INTO t FROM SNAPSHOT (SELECT 1) KEYS (k)",
            "FROM SNAPSHOT",
        ),
        (
            Feature::Expectation,
            "CREATE STREAMING TABLE t (CONSTRAINT c EXPECT (a > 1))",
            "CONSTRAINT c EXPECT (a > 1)",
        ),
        (Feature::ClusterBy, "CREATE STREAMING TABLE t CLUSTER BY (a)", "CLUSTER BY (a)"),
        (Feature::PartitionedBy, "CREATE STREAMING TABLE t PARTITIONED BY (a)", "PARTITIONED BY (a)"),
    ] {
        let read = |support: &Support| parse_pipeline_with(&[SourceFile::new("p.sql", text)], support);
        let errors = read(&Support::everything().without(feature)).expect_err(text);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(&text[errors[0].span.clone()], marked);
        assert_eq!(errors[0].message, format!("not supported yet: {feature}"));
        assert!(read(&Support::everything()).is_ok(), "{text}");
    }
}

#[test]
fn g_27_all_errors_are_found_across_statements_and_files() {
    let first =
        "CREATE TABEL x; CREATE STREAMING TABLE ok;\nAUTO CDC INTO t FROM s KEYS (a.b, c.d);\nSELECT 1;";
    let second = "CREATE VIEW v AS SELECT * FROM (;\nSET x = 'open";
    let sources = [SourceFile::new("a.sql", first), SourceFile::new("b.sql", second)];
    let errors = parse_pipeline(&sources).unwrap_err();
    let places: Vec<_> = errors.iter().map(|error| (error.file.as_str(), error.line, error.column)).collect();
    assert_eq!(
        places,
        [
            ("a.sql", 1, 8),
            ("a.sql", 2, 22),
            ("a.sql", 2, 30),
            ("a.sql", 2, 35),
            ("a.sql", 2, 39),
            ("a.sql", 3, 1),
            ("b.sql", 1, 33),
            ("b.sql", 2, 9),
        ]
    );
}

#[test]
fn rendering_is_safe_on_any_text() {
    let text = "SET größe = 1;\n\tCREATE STREAMING TABEL ü";
    let error = &errors(text)[0];
    let rendered = error.render(text);
    assert!(
        rendered.contains("2 | \tCREATE STREAMING TABEL ü\n  | \t                 ^^^^^\n"),
        "{rendered}"
    );
    // Another text than the one that was parsed must do no harm.
    for other in ["", "ü", "\n\n", "üüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü"] {
        assert!(!error.render(other).is_empty());
    }
}
