//! Does a definition become the graph that its text describes?

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use strandline_flow_graph::{GraphError, Mode, UpdateRequest};
use strandline_pipeline_sql::{PipelineDefinition, SourceFile, Support, parse_pipeline_with};

fn parse(text: &str) -> PipelineDefinition {
    parse_pipeline_with(&[SourceFile::new("p.sql", text)], &Support::everything()).unwrap()
}

const PIPELINE: &str = "
    CREATE FLOW cdc DEPENDS ON (seed) AS AUTO CDC INTO t FROM STREAM(v) KEYS (id) SEQUENCE BY ts;
    CREATE FLOW seed AS AUTO CDC ONCE INTO t FROM read_files('old', format => 'csv') KEYS (id) SEQUENCE BY ts;
    CREATE STREAMING TABLE t;
    CREATE TEMPORARY VIEW v AS SELECT * FROM STREAM raw;
    CREATE STREAMING TABLE raw AS SELECT * FROM STREAM read_files('in', format => 'json');";

#[test]
fn g07_g26_flows_are_ordered_whatever_the_order_of_the_text() {
    let graph = parse(PIPELINE).graph().unwrap();
    let text = graph.to_string();
    let place = |line: &str| text.find(line).unwrap_or_else(|| panic!("{line} is not in {text}"));
    assert!(place("raw -> raw") < place("cdc -> t") && place("seed -> t") < place("cdc -> t"), "{text}");
    assert!(parse(PIPELINE).graph_for(Mode::Continuous).is_ok());
}

#[test]
fn g06_the_second_unnamed_change_flow_is_refused() {
    let flow = "AUTO CDC INTO t FROM STREAM raw KEYS (id) SEQUENCE BY ts;";
    let errors = parse(&format!("CREATE STREAMING TABLE t; {flow}{flow}{PIPELINE}")).graph().unwrap_err();
    assert!(errors.iter().any(|error| matches!(error, GraphError::DuplicateFlow { .. })), "{errors:?}");
}

#[test]
fn g09_flows_of_a_target_that_disagree_are_refused() {
    let other =
        "CREATE FLOW x AS AUTO CDC INTO t FROM STREAM(v) KEYS (other) SEQUENCE BY ts STORED AS SCD TYPE 2;";
    assert!(!parse(&format!("{other}{PIPELINE}")).graph().unwrap_err().is_empty());
}

#[test]
fn g07_g20_unknown_names_are_refused() {
    let text =
        "CREATE FLOW f DEPENDS ON (nobody) AS AUTO CDC INTO t FROM STREAM(u) KEYS (id) SEQUENCE BY ts;";
    let errors = parse(text).graph().unwrap_err();
    assert_eq!(errors.len(), 3, "{errors:?}");
}

/// The conditions under which a table with these clauses takes neither a change flow with those, nor a snapshot flow.
fn hybrid(mode: Mode, table: &str, change: &str) -> Vec<&'static str> {
    let text = format!(
        "CREATE STREAMING TABLE t {table};
         CREATE FLOW live AS AUTO CDC INTO t FROM STREAM(raw) KEYS (id) {change};
         CREATE FLOW full AS AUTO CDC INTO t FROM SNAPSHOT (SELECT * FROM read_files('s', format => 'csv')) KEYS (ID);
         CREATE STREAMING TABLE raw AS SELECT * FROM STREAM read_files('in', format => 'json');"
    );
    let errors = parse(&text).graph_for(mode).err().unwrap_or_default();
    errors.iter().filter_map(GraphError::condition).collect()
}

#[test]
fn g11_what_a_table_and_its_flows_say_decides_whether_a_snapshot_flow_may_join() {
    assert!(hybrid(Mode::Triggered, "", "SEQUENCE BY ts").is_empty());
    let refused = |mode, table: &str, change: &str| {
        let conditions = hybrid(mode, table, change);
        let [condition] = conditions.as_slice() else { panic!("{conditions:?}") };
        condition.strip_prefix("APPLY_CHANGES_FROM_SNAPSHOT_ERROR.").unwrap_or(condition)
    };
    assert_eq!(
        refused(Mode::Triggered, "(CONSTRAINT c EXPECT (id > 0))", "SEQUENCE BY ts"),
        "INTEROP_EXPECTATIONS_NOT_SUPPORTED"
    );
    assert_eq!(
        refused(Mode::Triggered, "", "IGNORE NULL UPDATES SEQUENCE BY ts"),
        "INTEROP_IGNORE_NULL_UNSUPPORTED"
    );
    assert_eq!(
        refused(Mode::Triggered, "", "SEQUENCE BY ts COLUMNS TO UPDATE c"),
        "INTEROP_IGNORE_NULL_UNSUPPORTED"
    );
    assert_eq!(refused(Mode::Continuous, "", "SEQUENCE BY ts"), "INTEROP_CONTINUOUS_NOT_SUPPORTED");
}

#[test]
fn r11_a_table_whose_properties_say_so_is_not_refreshed_fully() {
    for (value, allowed) in [("false", false), ("FALSE", false), ("true", true)] {
        let text = format!(
            "CREATE STREAMING TABLE t TBLPROPERTIES ('pipelines.reset.allowed' = '{value}')
             AS SELECT * FROM STREAM read_files('in', format => 'json');"
        );
        let graph = parse(&text).graph().unwrap();
        let request = UpdateRequest::default().with_full_refresh(["t"]).check(&graph);
        assert_eq!(request.is_ok(), allowed, "{value}: {request:?}");
    }
}
