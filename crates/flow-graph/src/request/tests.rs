use super::*;
use crate::{Dataset, DatasetKind, Flow, FlowKind, GraphBuilder, QueryMode};

/// Tables `raw`, `Orders`, `kept` (which refuses a full refresh), the view `v`, the sink `out`.
fn graph() -> Graph {
    let flow =
        |target: &str, name: &str| Flow::new(target, FlowKind::Append, QueryMode::Streaming).named(name);
    let seed = Flow::new("Orders", FlowKind::Append, QueryMode::Batch).named("seed").once();
    GraphBuilder::new()
        .dataset(Dataset::streaming_table("raw"))
        .dataset(Dataset::streaming_table("Orders"))
        .dataset(Dataset::view("v").reads(["raw"]))
        .dataset(Dataset::sink("out"))
        .flow(flow("raw", "raw"))
        .flow(flow("Orders", "live").reads(["v"]))
        .flow(seed)
        .flow(flow("out", "export").reads(["Orders"]))
        .build()
        .expect("a valid graph")
}

fn check(request: &UpdateRequest) -> ResolvedRequest {
    request.check(&graph()).expect("a valid request")
}

fn errors(request: &UpdateRequest) -> Vec<RequestError> {
    request.check(&graph()).expect_err("refused")
}

fn selected(request: &ResolvedRequest) -> Vec<&'static str> {
    ["raw", "Orders", "out"].into_iter().filter(|name| request.selects(name)).collect()
}

fn cleared(request: &ResolvedRequest) -> Vec<String> {
    graph().flows().filter(|(_, flow)| request.clears(flow)).map(|(_, flow)| flow.name().to_owned()).collect()
}

#[test]
fn r08_without_a_selection_all_take_part_and_with_one_only_the_named() {
    let none: [&str; 0] = [];
    for all in [UpdateRequest::refresh_all(), UpdateRequest::refresh(none), UpdateRequest::default()] {
        assert_eq!(check(&all), ResolvedRequest::refresh_all());
    }
    assert_eq!(selected(&check(&UpdateRequest::refresh(["raw", "out"]))), ["raw", "out"]);
    let both = check(&UpdateRequest::refresh(["raw"]).with_full_refresh(["Orders"]));
    assert_eq!(
        (selected(&both), cleared(&both)),
        (vec!["raw", "Orders"], vec!["live".into(), "seed".into()])
    );
    assert!(both.empties("Orders") && !both.empties("raw"));
}

#[test]
fn r08_a_full_refresh_of_a_target_that_is_also_refreshed_is_one() {
    let request = check(&UpdateRequest::refresh(["raw", "Orders"]).with_full_refresh(["raw"]));
    assert_eq!((selected(&request), cleared(&request)), (vec!["raw", "Orders"], vec!["raw".to_owned()]));
}

#[test]
fn r09_a_reset_selects_nothing_by_itself_and_its_target_takes_part_in_any_case() {
    let alone = check(&UpdateRequest::refresh_all().with_checkpoint_reset(["live"]));
    assert_eq!((selected(&alone), cleared(&alone)), (vec!["raw", "Orders", "out"], vec!["live".to_owned()]));
    let beside = check(&UpdateRequest::refresh(["raw"]).with_checkpoint_reset(["live"]));
    assert_eq!((selected(&beside), cleared(&beside)), (vec!["raw", "Orders"], vec!["live".to_owned()]));
    assert!(!beside.empties("Orders"), "the target keeps its rows");
}

#[test]
fn r07_a_full_refresh_covers_the_resets_of_its_flows() {
    let request =
        check(&UpdateRequest::default().with_full_refresh(["Orders"]).with_checkpoint_reset(["seed"]));
    let graph = graph();
    let seed = graph.flow(graph.flow_id("seed").unwrap()).unwrap();
    assert!(request.clears(seed) && !request.resets(seed));
    assert_eq!(request.without_clearing(), check(&UpdateRequest::refresh(["Orders"])));
}

#[test]
fn r07_a_full_refresh_of_all_empties_tables_and_lets_flows_of_sinks_begin_anew() {
    let request = check(&UpdateRequest::full_refresh_all());
    assert_eq!(cleared(&request), ["raw", "live", "seed", "export"]);
    assert_eq!(["raw", "Orders", "out"].map(|name| request.empties(name)), [true, true, false]);
    assert_eq!(selected(&request).len(), 3);
}

#[test]
fn r08_a_full_refresh_of_all_stands_alone() {
    let request = UpdateRequest::full_refresh_all().with_refresh(["raw"]).with_full_refresh(["Orders"]);
    assert_eq!(errors(&request), [RequestError::AllAndSome { named: vec!["Orders".into(), "raw".into()] }]);
    check(&UpdateRequest::full_refresh_all().with_checkpoint_reset(["live"]));
}

#[test]
fn a33_names_are_matched_exactly_then_without_regard_to_case() {
    let request = check(&UpdateRequest::refresh(["ORDERS"]).with_checkpoint_reset(["LIVE"]));
    assert_eq!((selected(&request), cleared(&request)), (vec!["Orders"], vec!["live".to_owned()]));
    let twins = ["t", "T"].iter().fold(GraphBuilder::new(), |builder, name| {
        let flow = Flow::new(*name, FlowKind::Append, QueryMode::Streaming).named(format!("into_{name}"));
        builder.dataset(Dataset::streaming_table(*name)).flow(flow)
    });
    let twins = twins.build().unwrap();
    assert!(UpdateRequest::refresh(["t"]).check(&twins).is_ok());
    let refused = UpdateRequest::default().with_checkpoint_reset(["INTO_T"]).check(&twins).unwrap_err();
    let candidates = vec!["into_t".to_owned(), "into_T".to_owned()];
    assert_eq!(
        refused,
        [RequestError::AmbiguousName { ask: Ask::ResetCheckpoint, name: "INTO_T".into(), candidates }]
    );
}

#[test]
fn r08_all_mistakes_of_a_request_are_reported_at_once() {
    let request = UpdateRequest::refresh(["rw", "v", "live"])
        .with_full_refresh(["nothing", "out", "v"])
        .with_checkpoint_reset(["sed", "Orders"]);
    let text: Vec<String> = errors(&request).iter().map(ToString::to_string).collect();
    assert_eq!(
        text,
        [
            "cannot refresh live: the pipeline has no table or sink of that name (did you mean Orders?); correct the name",
            "cannot refresh rw: the pipeline has no table or sink of that name (did you mean raw?); correct the name",
            "cannot refresh v, which is a view; a view holds no rows: name the tables that it reads, or those that read it",
            "cannot fully refresh nothing: the pipeline has no table or sink of that name; correct the name",
            "cannot fully refresh out, which is a sink; what it holds lies outside of the pipeline: empty it by its own \
             means and reset the checkpoints of its flows",
            "cannot fully refresh v, which is a view; a view holds no rows: name the tables that it reads, or those that \
             read it",
            "cannot reset the checkpoint of Orders: the pipeline has no flow of that name (did you mean live or seed?); \
             correct the name",
            "cannot reset the checkpoint of sed: the pipeline has no flow of that name (did you mean seed?); correct the name",
        ]
    );
}

#[test]
fn r08_a_sink_can_be_refreshed_but_not_fully() {
    assert_eq!(selected(&check(&UpdateRequest::refresh(["out"]))), ["out"]);
    let refused = errors(&UpdateRequest::default().with_full_refresh(["out"]));
    let (ask, name, kind) = (Ask::FullRefresh, "out".to_owned(), DatasetKind::Sink);
    assert_eq!(refused, [RequestError::WrongKind { ask, name, kind }]);
}

#[test]
fn r11_a_table_that_forbids_it_is_not_refreshed_fully() {
    let flow = Flow::new("kept", FlowKind::Append, QueryMode::Streaming);
    let dataset = Dataset::streaming_table("kept").reset_allowed(false);
    let graph = GraphBuilder::new().dataset(dataset).flow(flow).build().unwrap();
    for request in [UpdateRequest::full_refresh_all(), UpdateRequest::default().with_full_refresh(["kept"])] {
        let refused = request.check(&graph).unwrap_err();
        assert_eq!(refused, [RequestError::ResetNotAllowed { table: "kept".into() }]);
    }
    UpdateRequest::refresh(["kept"]).with_checkpoint_reset(["kept"]).check(&graph).unwrap();
}
