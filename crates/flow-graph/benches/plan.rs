//! How long does it take to plan a pipeline of 200 flows?
//!
//! `build` checks the definitions and makes the graph; `start` begins an update of it and takes what may start; `update`
//! runs it to its end. `layers` has ten layers of twenty flows, each of which reads four tables of the layer before it;
//! `chain` is one flow after the other; `apart` has no edges.

#![expect(clippy::expect_used, reason = "a bench that cannot be set up has nothing to say")]

use std::{hint::black_box, sync::Arc};

use criterion::{BatchSize, Criterion};
use strandline_flow_graph::{
    Action, Completions, Dataset, Flow, FlowKind, Graph, GraphBuilder, Input, Outcome, QueryMode,
    ResolvedRequest, Scheduler, Settings, Timestamp,
};

const FLOWS: usize = 200;

fn table(flow: usize) -> String {
    format!("catalog.schema.table_{flow:03}")
}

/// Each flow writes a table of its own and reads those that `reads` gives.
fn pipeline(reads: impl Fn(usize) -> Vec<usize>) -> GraphBuilder {
    (0..FLOWS).fold(GraphBuilder::new(), |builder, place| {
        let flow = Flow::new(table(place), FlowKind::Append, QueryMode::Streaming)
            .reads(reads(place).into_iter().map(table));
        builder.dataset(Dataset::streaming_table(table(place))).flow(flow)
    })
}

fn start(graph: &Arc<Graph>) -> Scheduler {
    let request = ResolvedRequest::refresh_all();
    Scheduler::start(Arc::clone(graph), &request, &Completions::none(), Settings::default())
}

fn update(graph: &Arc<Graph>) -> usize {
    let (mut update, mut launched) = (start(graph), 0);
    while let Some(action) = update.next_action() {
        if let Action::Launch { flow, .. } = action {
            launched += 1;
            let input = Input::Finished { flow, outcome: Outcome::Succeeded };
            update.handle(Timestamp(0), input).expect("it runs");
        }
    }
    launched
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let layers = pipeline(|place| match place.checked_sub(20) {
        None => Vec::new(),
        Some(above) => (0..4).map(|next| above / 20 * 20 + (above + 7 * next) % 20).collect(),
    });
    let chain = pipeline(|place| place.checked_sub(1).into_iter().collect());
    let apart = pipeline(|_| Vec::new());
    for (name, builder) in [("layers", layers), ("chain", chain), ("apart", apart)] {
        let mut group = criterion.benchmark_group(name);
        let graph = Arc::new(builder.clone().build().expect("a valid pipeline"));
        assert_eq!(update(&graph), FLOWS);
        group.bench_function("build", |bencher| {
            bencher.iter_batched(
                || builder.clone(),
                |builder| black_box(builder.build()),
                BatchSize::SmallInput,
            );
        });
        group.bench_function("start", |bencher| {
            bencher.iter(|| {
                let mut update = start(&graph);
                while let Some(action) = update.next_action() {
                    let _ = black_box(action);
                }
                update
            });
        });
        group.bench_function("update", |bencher| bencher.iter(|| update(&graph)));
        group.finish();
    }
    criterion.final_summary();
}
