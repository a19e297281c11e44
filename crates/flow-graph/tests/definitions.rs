//! Does any set of definitions, however wrong, become a graph or a list of errors, whatever its order?

#![expect(clippy::panic, reason = "a test fails by panicking, helpers included")]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use strandline_flow_graph::{
    CdcFacts, Dataset, Flow, FlowKind, Graph, GraphBuilder, GraphError, Mode, QueryMode,
};

type Definitions = (Vec<Dataset>, Vec<Flow>);

/// Few names, so that many of them meet; two differ in case only.
fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "A", "b", "t0", "T1", "t2"]).prop_map(str::to_owned)
}

fn names() -> impl Strategy<Value = Vec<String>> {
    prop_oneof![3 => Just(Vec::new()), 2 => prop::collection::vec(name(), 1..3)]
}

fn dataset() -> impl Strategy<Value = Dataset> {
    let makes: Vec<fn(String) -> Dataset> = vec![
        |name| Dataset::streaming_table(name),
        |name| Dataset::streaming_table(name),
        |name| Dataset::materialized_view(name),
        |name| Dataset::view(name),
        |name| Dataset::temporary_view(name),
        |name| Dataset::sink(name),
        |name| Dataset::foreach_batch_sink(name),
    ];
    (prop::sample::select(makes), name(), names()).prop_map(|(make, name, reads)| make(name).reads(reads))
}

fn kind() -> impl Strategy<Value = FlowKind> {
    let facts = (prop::sample::select(vec!["id", "ID", "k"]), any::<bool>(), any::<bool>()).prop_map(
        |(key, scd1, partial_updates)| CdcFacts {
            keys: vec![key.to_owned()],
            stored_as: if scd1 { CdcFacts::SCD1 } else { "SCD TYPE 2" }.to_owned(),
            partial_updates,
            ..CdcFacts::default()
        },
    );
    prop_oneof![
        3 => Just(FlowKind::Append),
        1 => Just(FlowKind::Update),
        1 => Just(FlowKind::Complete),
        2 => facts.clone().prop_map(FlowKind::AutoCdc),
        1 => facts.prop_map(FlowKind::Snapshot),
    ]
}

fn flow() -> impl Strategy<Value = Flow> {
    let query = prop_oneof![Just(QueryMode::Streaming), Just(QueryMode::Batch)];
    let own_name = prop::option::of("[f-k]");
    (name(), kind(), query, any::<bool>(), own_name, names(), names()).prop_map(
        |(target, kind, query, once, own_name, reads, after)| {
            let flow = Flow::new(target, kind, query).reads(reads).depends_on(after);
            let flow = if once { flow.once() } else { flow };
            match own_name {
                Some(name) => flow.named(name),
                None => flow,
            }
        },
    )
}

/// What fits together, by numbers: dataset `n` is called `tn` and reads, or is read, forward only.
fn sound() -> impl Strategy<Value = Definitions> {
    let flow = (any::<prop::sample::Index>(), any::<u8>(), any::<u8>(), any::<u8>());
    let flows = prop::collection::vec(flow, 0..4);
    (prop::collection::vec(0_u8..6, 1..5), flows).prop_map(|(kinds, more)| {
        let table = |place: usize| format!("t{place}");
        let before = |place: usize, choice: u8| -> Vec<String> {
            let read = (0..place).filter(|other| kinds[*other] < 4 && choice >> other & 1 == 1);
            read.map(table).collect()
        };
        let datasets = kinds.iter().enumerate().map(|(place, kind)| match kind {
            0 | 1 => Dataset::streaming_table(table(place)),
            2 => Dataset::materialized_view(table(place)),
            3 => Dataset::temporary_view(table(place)).reads(before(place, 0b1011)),
            4 => Dataset::sink(table(place)),
            _ => Dataset::foreach_batch_sink(table(place)),
        });
        let first = kinds.iter().enumerate().map(|(place, _)| (place, 1, 0b0110, 0));
        let more = more
            .into_iter()
            .map(|(place, once, reads, after)| (place.index(kinds.len()), once, reads, after));
        let mut flows: Vec<Flow> = Vec::new();
        for (number, (place, once, reads, after)) in first.chain(more).enumerate() {
            let once = once % 3 == 0 && kinds[place] < 2;
            let cdc = || CdcFacts {
                keys: vec!["id".to_owned()],
                stored_as: CdcFacts::SCD1.to_owned(),
                ..CdcFacts::default()
            };
            let (kind, query) = match kinds[place] {
                0 if once => (FlowKind::Append, QueryMode::Batch),
                1 => (FlowKind::AutoCdc(cdc()), QueryMode::Streaming),
                2 if flows.iter().any(|flow| flow.target() == table(place)) => continue,
                2 => (FlowKind::Complete, QueryMode::Batch),
                3 => continue,
                0 | 4 => (FlowKind::Append, QueryMode::Streaming),
                _ => (FlowKind::Update, QueryMode::Streaming),
            };
            let earlier = flows.iter().enumerate().filter(|(other, flow)| {
                after >> other & 1 == 1 && flow.is_once() && flow.target() < table(place).as_str()
            });
            let after: Vec<String> = earlier.map(|(_, flow)| flow.name().to_owned()).collect();
            let flow = Flow::new(table(place), kind, query).named(format!("flow{number}"));
            let flow = flow.reads(before(place, reads)).depends_on(after);
            flows.push(if once { flow.once() } else { flow });
        }
        (datasets.collect(), flows)
    })
}

/// Half of them are sound; to the others something is added that may or may not fit.
fn definitions() -> impl Strategy<Value = Definitions> {
    let noise = prop_oneof![
        1 => Just((Vec::new(), Vec::new())),
        1 => (prop::collection::vec(dataset(), 0..3), prop::collection::vec(flow(), 0..3)),
    ];
    let wild = (prop::collection::vec(dataset(), 0..6), prop::collection::vec(flow(), 0..6));
    let mixed = (sound(), noise).prop_map(|((mut datasets, mut flows), (more_datasets, more_flows))| {
        datasets.extend(more_datasets);
        flows.extend(more_flows);
        (datasets, flows)
    });
    prop_oneof![3 => mixed, 1 => wild]
}

fn build(mode: Mode, (datasets, flows): Definitions) -> Result<Graph, Vec<GraphError>> {
    let builder = datasets.into_iter().fold(GraphBuilder::new().mode(mode), GraphBuilder::dataset);
    flows.into_iter().fold(builder, GraphBuilder::flow).build()
}

/// The edges by name.
fn edges(graph: &Graph) -> BTreeSet<(String, String, String)> {
    let name = |id| graph.flow(id).map_or_else(|| panic!("unknown"), |flow| flow.name().to_owned());
    graph.edges().iter().map(|edge| (name(edge.from), name(edge.to), edge.kind.to_string())).collect()
}

/// How often each kind of error comes up, by the first word of its `Debug` form.
fn kinds(errors: &[GraphError]) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for error in errors {
        let text = format!("{error:?}");
        let kind = text.split([' ', '{']).next().unwrap_or_default().to_owned();
        *kinds.entry(kind).or_default() += 1;
    }
    kinds
}

/// Each set of errors that may depend on which of several things counts as the first.
const OF_THE_FIRST: [&str; 6] =
    ["DuplicateDataset", "DuplicateFlow", "AmbiguousName", "MixedTarget", "DisagreeingFlows", "Cycle"];

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(slow) { 200_000 } else { 4_000 }, failure_persistence: None,
        ..ProptestConfig::default() })]

    /// G-07, G-27: the order of definitions decides neither whether they are valid nor what they mean, and every
    /// error says something.
    #[test]
    fn g07_g27_definitions_mean_the_same_in_every_order(
        (given, shuffled) in definitions().prop_flat_map(|(datasets, flows)| {
            let given = Just((datasets.clone(), flows.clone()));
            (given, (Just(datasets).prop_shuffle(), Just(flows).prop_shuffle()))
        }),
        continuous in any::<bool>(),
    ) {
        let mode = if continuous { Mode::Continuous } else { Mode::Triggered };
        match (build(mode, given), build(mode, shuffled)) {
            (Ok(one), Ok(other)) => {
                prop_assert_eq!(edges(&one), edges(&other));
                let place: BTreeMap<_, _> =
                    one.topological_order().iter().enumerate().map(|(place, flow)| (*flow, place)).collect();
                prop_assert_eq!(place.len(), one.flows().len());
                prop_assert!(one.edges().iter().all(|edge| place[&edge.from] < place[&edge.to]));
            }
            (Err(one), Err(other)) => {
                prop_assert!(one.iter().chain(&other).all(|error| !error.to_string().is_empty()));
                let (one, other) = (kinds(&one), kinds(&other));
                if !OF_THE_FIRST.iter().any(|kind| one.contains_key(*kind) || other.contains_key(*kind)) {
                    prop_assert_eq!(one, other);
                }
            }
            (one, other) => prop_assert!(false, "{one:?}\n{other:?}"),
        }
    }
}
