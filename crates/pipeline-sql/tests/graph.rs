//! Does a definition become the graph that its text describes?

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use strandline_flow_graph::{GraphError, Mode};
use strandline_pipeline_sql::{PipelineDefinition, SourceFile, parse_pipeline};

fn parse(text: &str) -> PipelineDefinition {
    parse_pipeline(&[SourceFile::new("p.sql", text)]).unwrap()
}

const PIPELINE: &str = "
    CREATE FLOW cdc DEPENDS ON (seed) AS AUTO CDC INTO t FROM STREAM(v) KEYS (id) SEQUENCE BY ts;
    CREATE FLOW seed AS AUTO CDC ONCE INTO t FROM read_files('old', format => 'csv') KEYS (id) SEQUENCE BY ts;
    CREATE STREAMING TABLE t;
    CREATE TEMPORARY VIEW v AS SELECT * FROM STREAM raw;
    CREATE STREAMING TABLE raw AS SELECT * FROM STREAM read_files('in', format => 'json');";

#[test]
fn g_07_g_26_flows_are_ordered_whatever_the_order_of_the_text() {
    let graph = parse(PIPELINE).graph().unwrap();
    let text = graph.to_string();
    let place = |line: &str| text.find(line).unwrap_or_else(|| panic!("{line} is not in {text}"));
    assert!(place("raw -> raw") < place("cdc -> t") && place("seed -> t") < place("cdc -> t"), "{text}");
    assert!(parse(PIPELINE).graph_for(Mode::Continuous).is_ok());
}

#[test]
fn g_06_the_second_unnamed_change_flow_is_refused() {
    let flow = "AUTO CDC INTO t FROM STREAM raw KEYS (id) SEQUENCE BY ts;";
    let errors = parse(&format!("CREATE STREAMING TABLE t; {flow}{flow}{PIPELINE}")).graph().unwrap_err();
    assert!(errors.iter().any(|error| matches!(error, GraphError::DuplicateFlow { .. })), "{errors:?}");
}

#[test]
fn g_09_flows_of_a_target_that_disagree_are_refused() {
    let other =
        "CREATE FLOW x AS AUTO CDC INTO t FROM STREAM(v) KEYS (other) SEQUENCE BY ts STORED AS SCD TYPE 2;";
    assert!(!parse(&format!("{other}{PIPELINE}")).graph().unwrap_err().is_empty());
}

#[test]
fn g_07_g_20_unknown_names_are_refused() {
    let text =
        "CREATE FLOW f DEPENDS ON (nobody) AS AUTO CDC INTO t FROM STREAM(u) KEYS (id) SEQUENCE BY ts;";
    let errors = parse(text).graph().unwrap_err();
    assert_eq!(errors.len(), 3, "{errors:?}");
}
