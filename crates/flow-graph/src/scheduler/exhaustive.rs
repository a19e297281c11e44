//! Every small graph, every outcome, every interleaving, a crash at every moment.
//!
//! Graphs are all that differ in more than names (`shapes`): flows that are `ONCE` or not, pairs without an edge, with
//! a data edge or with an order edge. Each attempt may succeed, fail for good, or fail retryably (one retry); flows of
//! continuous pipelines may catch up; a cancellation may come at any moment; actions and inputs interleave freely; the
//! process may crash at any moment, after which an update begins with what is durable: all that was, and of what was
//! under way any part (`explorer`). An observer who knows actions and inputs only says what must hold (`watch`).
//! States are kept, as hashes of 128 bits, so each is explored once.

#![expect(clippy::arithmetic_side_effects, reason = "small numbers, and a test may panic")]

mod explorer;
mod shapes;
mod watch;

use super::*;
use crate::UpdateRequest;
use explorer::{Explorer, Pipeline};
use shapes::{DATA, NONE, ORDER, Shape, shapes};

/// How many flows the largest graphs have.
const FLOWS: usize = if cfg!(slow) { 4 } else { 3 };

/// `depends_on`, once and retries of triggered pipelines.
#[test]
fn r04_r12_to_r15_every_triggered_graph_in_every_interleaving_with_a_crash_at_every_moment() {
    let mut explorer = Explorer::default();
    for (place, shape) in (1..=FLOWS).flat_map(|flows| shapes(flows, &[NONE, DATA, ORDER])).enumerate() {
        explorer.graphs += 1;
        for permits in 1..=shape.flows() {
            let pipeline = Pipeline::new(shape.graph(Mode::Triggered, place), permits);
            explorer.explore(&pipeline, false);
        }
    }
    explorer.tell("triggered");
}

/// R-01, G-23, G-26: readers beside writers, `depends_on` for `ONCE` flows alone.
#[test]
fn r01_g23_every_continuous_graph_in_every_interleaving_with_a_crash_at_every_moment() {
    let mut explorer = Explorer::default();
    let all = (1..=FLOWS).flat_map(|flows| shapes(flows, &[NONE, DATA, ORDER]));
    for (place, shape) in all.filter(Shape::orders_once_flows_only).enumerate() {
        explorer.graphs += 1;
        for permits in BTreeSet::from([1, shape.flows()]) {
            let pipeline = Pipeline::new(shape.graph(Mode::Continuous, place), permits);
            explorer.explore(&pipeline, false);
        }
    }
    explorer.tell("continuous");
}

/// every request for every graph of two flows, again or plain after each crash, from every history.
#[test]
fn r07_r08_r09_every_request_for_every_graph_of_two_flows_with_a_crash_at_every_moment() {
    let mut explorer = Explorer::default();
    let subsets: [&[&str]; 4] = [&[], &["a"], &["b"], &["a", "b"]];
    let mut requests = 0;
    for (place, shape) in
        (1..=2).flat_map(|flows| shapes(flows, &[NONE, DATA, ORDER, DATA | ORDER])).enumerate()
    {
        let graph = Arc::new(shape.graph(Mode::Triggered, place));
        let combined = subsets.iter().flat_map(|refresh| {
            let request = UpdateRequest::refresh(refresh.iter().copied());
            subsets.map(|full| request.clone().with_full_refresh(full.iter().copied()))
        });
        explorer.graphs += 1;
        let mut seen = Vec::new();
        for request in combined.chain([UpdateRequest::full_refresh_all()]) {
            for reset in subsets {
                let request = request.clone().with_checkpoint_reset(reset.iter().copied()).check(&graph);
                let Some(request) = request.ok().filter(|request| !seen.contains(request)) else { continue };
                for permits in 1..=shape.flows() {
                    explorer
                        .explore(&Pipeline::new(Arc::clone(&graph), permits).asked(request.clone()), true);
                }
                seen.push(request);
            }
        }
        requests += seen.len();
    }
    explorer.tell("asked for");
    println!("{requests} requests");
    assert!(requests > 100);
}
