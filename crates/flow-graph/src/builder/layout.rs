//! In which order do the flows stand, and which edges join them?
//!
//! Runs on a draft without errors only, so every reference resolves and no circle is left.

use std::collections::{BTreeSet, VecDeque};

use super::draft::{Draft, Predecessor};
use crate::graph::{Edge, EdgeKind, FlowId, Graph};

/// Makes the graph of a draft that passed every check.
pub(super) fn lay_out(draft: Draft) -> Graph {
    let mut edges = BTreeSet::new();
    for (place, wiring) in draft.wiring.iter().enumerate() {
        let to = FlowId(place);
        data_edges(&draft, to, &wiring.reads, &mut edges);
        for predecessor in &wiring.after {
            if let Predecessor::Flow(first) = predecessor {
                edges.insert(Edge { from: FlowId(*first), to, kind: EdgeKind::Order });
            }
        }
    }
    let mut edges: Vec<Edge> = edges.into_iter().collect();
    edges.sort_by(|left, right| (left.to, left.from, &left.kind).cmp(&(right.to, right.from, &right.kind)));
    let order = topological_order(draft.flows.len(), &edges);
    Graph::new(draft.mode, draft.datasets, draft.flows, edges, order)
}

/// One edge for each flow that writes a dataset which `to` reads, over the shortest way through views.
fn data_edges(draft: &Draft, to: FlowId, reads: &[usize], edges: &mut BTreeSet<Edge>) {
    let mut seen: BTreeSet<usize> = reads.iter().copied().collect();
    let mut open: VecDeque<(usize, Vec<String>)> = reads.iter().map(|read| (*read, Vec::new())).collect();
    while let Some((read, views)) = open.pop_front() {
        let Some(dataset) = draft.datasets.get(read) else { continue };
        for from in draft.writers.get(read).into_iter().flatten() {
            let kind = EdgeKind::Data { dataset: dataset.name.clone(), views: views.clone() };
            edges.insert(Edge { from: FlowId(*from), to, kind });
        }
        for next in draft.view_reads.get(read).into_iter().flatten() {
            if seen.insert(*next) {
                let through = std::iter::once(dataset.name.clone()).chain(views.iter().cloned()).collect();
                open.push_back((*next, through));
            }
        }
    }
}

/// Of the flows whose predecessors all stand, the one declared first comes next.
fn topological_order(flows: usize, edges: &[Edge]) -> Vec<FlowId> {
    let mut waits: Vec<BTreeSet<FlowId>> = vec![BTreeSet::new(); flows];
    let mut frees: Vec<BTreeSet<FlowId>> = vec![BTreeSet::new(); flows];
    for edge in edges {
        if let (Some(waits), Some(frees)) = (waits.get_mut(edge.to.0), frees.get_mut(edge.from.0)) {
            waits.insert(edge.from);
            frees.insert(edge.to);
        }
    }
    let mut ready: BTreeSet<FlowId> = waits
        .iter()
        .enumerate()
        .filter(|(_, waits)| waits.is_empty())
        .map(|(place, _)| FlowId(place))
        .collect();
    let mut order = Vec::new();
    while let Some(flow) = ready.pop_first() {
        order.push(flow);
        for freed in frees.get(flow.0).into_iter().flatten() {
            if let Some(waits) = waits.get_mut(freed.0)
                && waits.remove(&flow)
                && waits.is_empty()
            {
                ready.insert(*freed);
            }
        }
    }
    order
}
