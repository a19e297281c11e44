//! Do pipelines of thousands of flows work, however deep or broad?
//!
//! Nothing recurses along edges, so depth costs no stack: each test runs in a thread with a small one.

#![expect(clippy::expect_used, reason = "a test fails by panicking, helpers included")]

use std::sync::Arc;

use strandline_flow_graph::{
    Action, Completions, Dataset, Flow, FlowKind, FlowState, Graph, GraphBuilder, GraphError, Input, Outcome,
    QueryMode, ResolvedRequest, Scheduler, Settings, Timestamp,
};

const FLOWS: usize = 2_000;

fn table(flow: usize) -> String {
    format!("t{flow}")
}

fn builder(reads: impl Fn(usize) -> Vec<usize>) -> GraphBuilder {
    (0..FLOWS).rev().fold(GraphBuilder::new(), |builder, place| {
        let flow = Flow::new(table(place), FlowKind::Append, QueryMode::Streaming)
            .reads(reads(place).into_iter().map(table));
        builder.dataset(Dataset::streaming_table(table(place))).flow(flow)
    })
}

fn chain() -> GraphBuilder {
    builder(|place| place.checked_sub(1).into_iter().collect())
}

fn on_a_small_stack(test: fn()) {
    let thread = std::thread::Builder::new().stack_size(256 * 1024).spawn(test).expect("a thread");
    thread.join().expect("the test passes");
}

fn start(graph: Graph) -> Scheduler {
    let (all, none) = (ResolvedRequest::refresh_all(), Completions::none());
    Scheduler::start(Arc::new(graph), &all, &none, Settings::default())
}

/// How many flows it launches, and how many run at once at most.
fn run(graph: Graph) -> (usize, usize) {
    let (mut update, mut running, mut launched, mut most) = (start(graph), Vec::new(), 0, 0);
    while !update.is_done() {
        while let Some(action) = update.next_action() {
            if let Action::Launch { flow, .. } = action {
                running.push(flow);
                launched += 1;
                most = most.max(running.len());
            }
        }
        if let Some(flow) = running.pop() {
            let input = Input::Finished { flow, outcome: Outcome::Succeeded };
            update.handle(Timestamp(0), input).expect("it runs");
        }
    }
    (launched, most)
}

#[test]
fn g26_a_chain_of_two_thousand_flows_runs_one_by_one() {
    on_a_small_stack(|| {
        let graph = chain().build().expect("a valid pipeline");
        assert_eq!(graph.edges().len(), FLOWS - 1);
        assert_eq!(graph.topological_order().first().map(|flow| flow.index()), Some(FLOWS - 1));
        assert_eq!(run(graph), (FLOWS, 1));
    });
}

#[test]
fn g26_r12_layers_of_a_hundred_flows_run_side_by_side_within_the_permits() {
    on_a_small_stack(|| {
        let graph = builder(|place| match place.checked_sub(100) {
            None => Vec::new(),
            Some(above) => (0..10).map(|next| above / 100 * 100 + (above + 13 * next) % 100).collect(),
        });
        let graph = graph.build().expect("a valid pipeline");
        assert_eq!(graph.edges().len(), (FLOWS - 100) * 10);
        assert_eq!(run(graph), (FLOWS, 16));
    });
}

#[test]
fn r13_the_first_failure_of_a_long_chain_skips_all_the_rest() {
    on_a_small_stack(|| {
        let mut update = start(chain().build().expect("a valid pipeline"));
        let Some(Action::Launch { flow, .. }) = update.next_action() else { panic!("the first flow starts") };
        let outcome = Outcome::Failed { retryable: false };
        update.handle(Timestamp(0), Input::Finished { flow, outcome }).expect("it runs");
        let states = update.graph().flows().filter_map(|(id, _)| update.state(id));
        let skipped = states.filter(|state| *state == FlowState::Skipped { failed: flow }).count();
        assert_eq!(skipped, FLOWS - 1);
    });
}

#[test]
fn g21_a_circle_of_two_thousand_flows_is_found() {
    on_a_small_stack(|| {
        let errors = builder(|place| vec![(place + 1) % FLOWS]).build().expect_err("a circle");
        let [GraphError::Cycle { steps }] = errors.as_slice() else { panic!("{errors:?}") };
        assert_eq!(steps.len(), FLOWS);
    });
}
