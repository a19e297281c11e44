use super::*;
mod changes;
use crate::{CdcFacts, DatasetKind, EdgeKind, FlowId, FlowKind, QueryMode};

fn table(name: &str) -> Dataset {
    Dataset::streaming_table(name)
}

/// A flow named `name` into the table `t_name`.
fn append(name: &str) -> Flow {
    Flow::new(format!("t_{name}"), FlowKind::Append, QueryMode::Streaming).named(name)
}

fn backfill(name: &str, target: &str) -> Flow {
    Flow::new(target, FlowKind::Append, QueryMode::Batch).named(name).once()
}

fn facts(keys: &[&str]) -> CdcFacts {
    CdcFacts {
        keys: keys.iter().map(ToString::to_string).collect(),
        stored_as: "SCD TYPE 1".into(),
        ..CdcFacts::default()
    }
}

fn change(name: &str, target: &str, facts: CdcFacts) -> Flow {
    Flow::new(target, FlowKind::AutoCdc(facts), QueryMode::Streaming).named(name)
}

fn snapshot(name: &str, target: &str, facts: CdcFacts) -> Flow {
    Flow::new(target, FlowKind::Snapshot(facts), QueryMode::Batch).named(name)
}

fn built(
    datasets: impl IntoIterator<Item = Dataset>,
    flows: impl IntoIterator<Item = Flow>,
) -> Result<Graph, Vec<GraphError>> {
    built_as(Mode::Triggered, datasets, flows)
}

fn built_as(
    mode: Mode,
    datasets: impl IntoIterator<Item = Dataset>,
    flows: impl IntoIterator<Item = Flow>,
) -> Result<Graph, Vec<GraphError>> {
    let builder = datasets.into_iter().fold(GraphBuilder::new().mode(mode), GraphBuilder::dataset);
    flows.into_iter().fold(builder, GraphBuilder::flow).build()
}

fn only_error(result: Result<Graph, Vec<GraphError>>) -> GraphError {
    let mut errors = result.expect_err("refused");
    assert_eq!(errors.len(), 1, "{errors:#?}");
    errors.remove(0)
}

fn conditions(result: Result<Graph, Vec<GraphError>>) -> Vec<Option<&'static str>> {
    result.expect_err("refused").iter().map(GraphError::condition).collect()
}

#[test]
fn duplicate_datasets_are_refused() {
    let error = only_error(built([table("t_a"), Dataset::view("t_a")], [append("a")]));
    let (first, second) = (DatasetKind::StreamingTable, DatasetKind::View);
    assert_eq!(error, GraphError::DuplicateDataset { name: "t_a".into(), first, second });
}

#[test]
fn g06_an_unnamed_flow_takes_the_targets_name_and_the_second_one_is_refused() {
    let unnamed = || Flow::new("t", FlowKind::AutoCdc(facts(&["id"])), QueryMode::Streaming);
    let graph = built([table("t")], [unnamed()]).unwrap();
    assert_eq!(graph.flow_id("t").map(FlowId::index), Some(0));
    let error = only_error(built([table("t")], [unnamed(), unnamed()]));
    assert!(matches!(error, GraphError::DuplicateFlow { ref name, unnamed: true, .. } if name == "t"));
    assert_eq!(error.condition(), Some("PIPELINE_DUPLICATE_IDENTIFIERS.FLOW"));
}

#[test]
fn g06_a_flow_cannot_take_a_views_name() {
    let error = only_error(built([table("t_a"), Dataset::view("a")], [append("a")]));
    assert!(matches!(error, GraphError::DuplicateFlow { unnamed: false, .. }));
}

#[test]
fn g07_an_unknown_target_is_refused_with_a_hint_and_order_of_declaration_is_free() {
    let flow = || Flow::new("event", FlowKind::Append, QueryMode::Streaming).named("f");
    let error = only_error(built([Dataset::sink("events")], [flow()]));
    let (flow_name, target, similar) = ("f".into(), "event".into(), vec!["events".into()]);
    assert_eq!(error, GraphError::UnknownTarget { flow: flow_name, target, similar });

    let late = GraphBuilder::new().flow(flow()).dataset(table("event")).build().unwrap();
    let early = GraphBuilder::new().dataset(table("event")).flow(flow()).build().unwrap();
    assert_eq!(late, early);
}

#[test]
fn unknown_reads_of_flows_and_views_are_refused() {
    let view = Dataset::view("v").reads(["gone"]);
    let errors = built([table("t_a"), view], [append("a").reads(["missing"])]).unwrap_err();
    let unknown = |reader: &str, dataset: &str| GraphError::UnknownRead {
        reader: reader.into(),
        dataset: dataset.into(),
        similar: vec![],
    };
    assert_eq!(errors, [unknown("a", "missing"), unknown("v", "gone")]);
}

#[test]
fn a33_names_ignore_case_only_where_that_is_unambiguous() {
    let graph = built([table("T_a")], [append("a")]).unwrap();
    assert_eq!(graph.flow(FlowId(0)).unwrap().target(), "T_a");
    let error = only_error(built(
        [table("t_a"), Dataset::view("Ref"), Dataset::view("ref")],
        [append("a").reads(["REF"])],
    ));
    assert!(
        matches!(error, GraphError::AmbiguousName { ref candidates, .. } if candidates == &["Ref", "ref"])
    );
}

#[test]
fn g08_append_and_change_flows_do_not_share_a_target() {
    let plain = || Flow::new("t", FlowKind::Append, QueryMode::Streaming).named("plain");
    let cdc = || change("cdc", "t", facts(&["id"]));
    for (flows, first, second) in [([cdc(), plain()], "cdc", "plain"), ([plain(), cdc()], "plain", "cdc")] {
        let error = only_error(built([table("t")], flows));
        let GraphError::MixedTarget { first: left, second: right, .. } = error else { panic!("{error}") };
        assert_eq!((left.as_str(), right.as_str()), (first, second));
    }
    // An append ONCE into a CDC target is no exception (2.11).
    let error = only_error(built([table("t")], [cdc(), backfill("seed", "t")]));
    assert!(matches!(error, GraphError::MixedTarget { .. }));
}

#[test]
fn g16_once_wants_a_batch_query_and_other_flows_a_streaming_one() {
    let flow = |once: bool, query| {
        let flow = Flow::new("t", FlowKind::Append, query);
        built([table("t")], [if once { flow.once() } else { flow }])
    };
    flow(true, QueryMode::Batch).unwrap();
    flow(false, QueryMode::Streaming).unwrap();
    let name = "INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_ONCE_FLOW";
    assert_eq!(conditions(flow(true, QueryMode::Streaming)), [Some(name)]);
    let name = "INVALID_FLOW_QUERY_TYPE.BATCH_RELATION_FOR_STREAMING_TABLE";
    assert_eq!(conditions(flow(false, QueryMode::Batch)), [Some(name)]);
    // The source of an AUTO CDC ONCE flow may be written either way.
    for query in [QueryMode::Batch, QueryMode::Streaming] {
        let seed = Flow::new("t", FlowKind::AutoCdc(facts(&["id"])), query).once();
        built([table("t")], [seed]).unwrap();
    }
}

#[test]
fn g17_an_update_flow_writes_sinks_only() {
    let update = |dataset: Dataset| {
        let flow = Flow::new(dataset.name(), FlowKind::Update, QueryMode::Streaming);
        built([dataset], [flow])
    };
    update(Dataset::sink("s")).unwrap();
    update(Dataset::foreach_batch_sink("s")).unwrap();
    assert!(matches!(only_error(update(table("t"))), GraphError::WrongTarget { .. }));
    assert!(matches!(only_error(update(Dataset::materialized_view("m"))), GraphError::WrongTarget { .. }));
}

#[test]
fn g18_a_foreach_batch_sink_takes_no_once_and_no_change_flow() {
    let into = |flow| built([Dataset::foreach_batch_sink("s")], [flow]);
    into(Flow::new("s", FlowKind::Append, QueryMode::Streaming)).unwrap();
    assert!(matches!(only_error(into(snapshot("f", "s", facts(&["id"])))), GraphError::WrongTarget { .. }));
    assert!(matches!(only_error(into(backfill("f", "s"))), GraphError::OnceNotAllowed { .. }));
    assert!(matches!(only_error(into(change("f", "s", facts(&["id"])))), GraphError::WrongTarget { .. }));
}

#[test]
fn change_flows_want_a_streaming_table_and_nothing_writes_a_view() {
    let into = |dataset: Dataset| built([dataset], [change("f", "d", facts(&["id"]))]);
    for dataset in [Dataset::sink("d"), Dataset::materialized_view("d"), Dataset::view("d")] {
        assert!(matches!(only_error(into(dataset)), GraphError::WrongTarget { .. }));
    }
}

#[test]
fn tables_need_a_flow_and_a_materialized_view_takes_one_query() {
    let query = |name: &str| Flow::new("m", FlowKind::Complete, QueryMode::Batch).named(name);
    built([Dataset::materialized_view("m"), Dataset::sink("unused")], [query("m")]).unwrap();
    let several = built([Dataset::materialized_view("m")], [query("one"), query("two")]);
    assert_eq!(conditions(several), [Some("MATERIALIZED_VIEW_WITH_MULTIPLE_QUERIES")]);
    let missing = built([table("t"), Dataset::materialized_view("m")], []);
    assert_eq!(conditions(missing), [Some("PIPELINE_DATASET_WITHOUT_FLOW"); 2]);
    let streaming =
        built([Dataset::materialized_view("m")], [Flow::new("m", FlowKind::Complete, QueryMode::Streaming)]);
    let name = "INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_MATERIALIZED_VIEW";
    assert_eq!(conditions(streaming), [Some(name)]);
}

#[test]
fn sinks_are_not_read_and_lasting_views_read_no_temporary_ones() {
    let datasets = [
        table("t_a"),
        Dataset::sink("out"),
        Dataset::temporary_view("tmp").reads(["out"]),
        Dataset::view("v").reads(["tmp"]),
    ];
    let errors = built(datasets, [append("a").reads(["out", "tmp"])]).unwrap_err();
    let sink = |reader: &str| GraphError::ReadsSink { reader: reader.into(), sink: "out".into() };
    let temporary = GraphError::ReadsTemporaryView { view: "v".into(), temporary: "tmp".into() };
    assert_eq!(errors, [sink("a"), sink("tmp"), temporary]);
}

#[test]
fn g19_equal_predecessors_collapse() {
    let graph = built([table("t_a"), table("t_b")], [append("a"), append("b").depends_on(["a", "A", "a"])]);
    let graph = graph.unwrap();
    assert_eq!(graph.edges().len(), 1);
    assert_eq!(graph.flow(FlowId(1)).unwrap().predecessor_names(), ["a"]);
}

#[test]
fn g20_an_unknown_predecessor_is_refused() {
    let error = only_error(built([table("t_a")], [append("a").depends_on(["nobody"])]));
    assert!(
        matches!(error, GraphError::UnknownPredecessor { ref predecessor, .. } if predecessor == "nobody")
    );
}

#[test]
fn g21_circles_over_data_and_order_edges_are_printed_with_their_path() {
    let error = only_error(built(
        [table("t_a"), table("t_b"), Dataset::view("v").reads(["t_a"])],
        [append("a").depends_on(["b"]), append("b").reads(["v"])],
    ));
    assert_eq!(
        error.to_string(),
        "PIPELINE_GRAPH_NOT_TOPOLOGICALLY_SORTED: a -> v -> b -> a wait for each other in a circle: \
         v reads t_a, which a writes; b reads the view v; a depends on b; remove one of these edges"
    );
}

#[test]
fn g21_a_flow_that_waits_for_itself_is_a_circle() {
    for flow in [append("a").depends_on(["a"]), append("a").reads(["t_a"])] {
        let GraphError::Cycle { steps } = only_error(built([table("t_a")], [flow])) else { panic!() };
        assert_eq!((steps[0].from.as_str(), steps[0].to.as_str(), steps.len()), ("a", "a", 1));
    }
}

#[test]
fn g21_each_knot_is_reported_once_and_views_can_form_one() {
    let names = ["a", "b", "c", "d", "e"];
    let flows = [
        append("a").depends_on(["b"]),
        append("b").depends_on(["a"]),
        append("c").depends_on(["b", "e"]),
        append("d").depends_on(["c"]),
        append("e").depends_on(["d", "c"]),
    ];
    let views = [Dataset::view("v").reads(["w"]), Dataset::view("w").reads(["v"])];
    let errors = built(names.map(|name| table(&format!("t_{name}"))).into_iter().chain(views), flows);
    let paths: Vec<_> = errors
        .unwrap_err()
        .into_iter()
        .map(|error| {
            let GraphError::Cycle { steps } = error else { panic!("{error}") };
            steps.into_iter().map(|step| step.from).collect::<String>()
        })
        .collect();
    assert_eq!(paths, ["ab", "ce", "vw"]);
}

#[test]
fn g22_depending_on_a_view_is_refused() {
    let error = only_error(built([table("t_a"), Dataset::view("v")], [append("a").depends_on(["v"])]));
    assert!(matches!(error, GraphError::DependsOnView { .. }));
    let errors = built(
        [table("t_a"), Dataset::view("v")],
        [append("a").depends_on(["f"]), Flow::new("v", FlowKind::Append, QueryMode::Streaming).named("f")],
    );
    assert!(errors.unwrap_err().iter().any(|error| matches!(error, GraphError::DependsOnView { .. })));
}

#[test]
fn g23_g24_in_continuous_mode_predecessors_are_once() {
    let flows = |predecessor: Flow| [predecessor, append("live").depends_on(["first"])];
    let datasets =
        || [table("t_live"), table("t"), Dataset::foreach_batch_sink("user"), Dataset::sink("out")];
    let seed = || Flow::new("t", FlowKind::Append, QueryMode::Streaming).named("seed");
    for target in ["t", "out"] {
        let once = flows(backfill("first", target)).into_iter().chain([seed()]);
        built_as(Mode::Continuous, datasets(), once).unwrap();
    }
    // Triggered, a flow into any sink or table may come first.
    for target in ["t_live", "user", "out"] {
        let first = || Flow::new(target, FlowKind::Append, QueryMode::Streaming).named("first");
        built(datasets(), flows(first()).into_iter().chain([seed()])).unwrap();
        let refused = built_as(Mode::Continuous, datasets(), flows(first()).into_iter().chain([seed()]));
        assert_eq!(conditions(refused), [Some("DEPENDS_ON_PREDECESSOR_MUST_BE_ONCE")]);
    }
}

#[test]
fn g25_order_edges_may_lead_across_targets() {
    let graph = built([table("t_a"), table("t_b")], [append("a").depends_on(["b"]), append("b")]).unwrap();
    assert_eq!(graph.topological_order(), [FlowId(1), FlowId(0)]);
    assert_eq!(graph.edge_list().to_string(), "b -> a (depends on)\n");
}

#[test]
fn g26_readers_follow_all_writers_through_views_and_a_diamond_has_each_flow_once() {
    let datasets = [
        Dataset::materialized_view("sum"),
        table("t_left"),
        table("t_right"),
        table("raw"),
        Dataset::temporary_view("v").reads(["t_left", "t_right"]),
        Dataset::view("w").reads(["raw"]),
        Dataset::temporary_view("x").reads(["w"]),
    ];
    let flows = [
        Flow::new("sum", FlowKind::Complete, QueryMode::Batch).reads(["v"]),
        append("left").reads(["raw"]),
        append("right").reads(["x", "w"]),
        Flow::new("raw", FlowKind::Append, QueryMode::Streaming),
        backfill("old", "raw"),
    ];
    let graph = built(datasets, flows).unwrap();
    assert_eq!(
        graph.edge_list().to_string(),
        "left -> sum (reads t_left through v)\n\
         right -> sum (reads t_right through v)\n\
         raw -> left (reads raw)\n\
         old -> left (reads raw)\n\
         raw -> right (reads raw through w)\n\
         old -> right (reads raw through w)\n"
    );
    assert_eq!(
        graph.to_string(),
        "raw -> raw (append)\n\
         old -> raw (append, once)\n\
         left -> t_left (append), after raw, old\n\
         right -> t_right (append), after raw, old\n\
         sum -> sum (complete), after left, right\n"
    );
    let through = EdgeKind::Data { dataset: "raw".into(), views: vec!["w".into(), "x".into()] };
    assert_eq!(through.to_string(), "reads raw through w, x");
    assert_eq!(graph.successors(FlowId(3)), [FlowId(1), FlowId(2)]);
    assert_eq!(graph.writers("raw").count(), 2);
}

#[test]
fn g27_all_errors_are_reported_at_once() {
    let errors = built_as(
        Mode::Continuous,
        [table("t"), table("t"), table("lonely")],
        [
            Flow::new("t", FlowKind::Append, QueryMode::Batch).named("a").depends_on(["b", "nobody"]),
            Flow::new("t", FlowKind::Update, QueryMode::Streaming).named("b").depends_on(["a"]),
            Flow::new("nowhere", FlowKind::Append, QueryMode::Streaming).named("a"),
        ],
    );
    assert_eq!(errors.as_ref().unwrap_err().len(), 10, "{errors:#?}");
}
