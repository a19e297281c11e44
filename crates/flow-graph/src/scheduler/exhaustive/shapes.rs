//! Which graphs are there, names apart?
//!
//! Flows are numbered so that every edge leads from a smaller number to a greater one: each graph without circles can
//! be. Of the numberings of one graph only the first is kept.

use std::collections::BTreeSet;

use crate::{Dataset, Flow, FlowKind, Graph, GraphBuilder, Mode, QueryMode};

/// The edge of a pair.
pub(super) const NONE: u8 = 0;
pub(super) const DATA: u8 = 1;
pub(super) const ORDER: u8 = 2;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// Flows that are `ONCE` or not, and the edge from each to each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    once: Vec<bool>,
    edges: Vec<Vec<u8>>,
}

/// All graphs of so many flows, one for each class of isomorphic ones.
pub(super) fn shapes(flows: usize, kinds: &[u8]) -> Vec<Shape> {
    let pairs: Vec<(usize, usize)> =
        (0..flows).flat_map(|from| (from + 1..flows).map(move |to| (from, to))).collect();
    let orders = permutations(flows);
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for once in 0..1_usize << flows {
        for number in 0..kinds.len().pow(u32::try_from(pairs.len()).expect("few")) {
            let mut shape = Shape {
                once: (0..flows).map(|flow| once >> flow & 1 == 1).collect(),
                edges: vec![vec![NONE; flows]; flows],
            };
            let mut rest = number;
            for (from, to) in &pairs {
                shape.edges[*from][*to] = kinds[rest % kinds.len()];
                rest /= kinds.len();
            }
            let least = orders.iter().map(|order| shape.code(order)).min().expect("at least one order");
            if seen.insert(least) {
                found.push(shape);
            }
        }
    }
    found
}

fn permutations(flows: usize) -> Vec<Vec<usize>> {
    let Some(last) = flows.checked_sub(1) else { return vec![Vec::new()] };
    let shorter = permutations(last);
    let inserted = shorter.iter().flat_map(|order| {
        (0..flows).map(|place| {
            let mut order = order.clone();
            order.insert(place, last);
            order
        })
    });
    inserted.collect()
}

impl Shape {
    pub(super) fn flows(&self) -> usize {
        self.once.len()
    }

    /// What is left of the graph when flow `order[n]` is called `n`.
    fn code(&self, order: &[usize]) -> Vec<u8> {
        let once = order.iter().map(|flow| u8::from(self.once[*flow]));
        let edges = order.iter().flat_map(|from| order.iter().map(|to| self.edges[*from][*to]));
        once.chain(edges).collect()
    }

    /// G-23: what a continuous pipeline may have.
    pub(super) fn orders_once_flows_only(&self) -> bool {
        self.once
            .iter()
            .zip(&self.edges)
            .all(|(once, edges)| *once || edges.iter().all(|kind| kind & ORDER == 0))
    }

    /// The graph; flows are declared in an order that `turn` rotates. Flow `n` writes the table of its name.
    pub(super) fn graph(&self, mode: Mode, turn: usize) -> Graph {
        let mut builder = GraphBuilder::new().mode(mode);
        for place in 0..self.flows() {
            let to = (place + turn) % self.flows();
            let query = if self.once[to] { QueryMode::Batch } else { QueryMode::Streaming };
            let from = |wanted: u8| {
                let edges = self.edges.iter().enumerate().filter(move |(_, edges)| edges[to] & wanted != 0);
                edges.map(|(from, _)| NAMES[from]).collect::<Vec<_>>()
            };
            let flow =
                Flow::new(NAMES[to], FlowKind::Append, query).reads(from(DATA)).depends_on(from(ORDER));
            let flow = if self.once[to] { flow.once() } else { flow };
            builder = builder.dataset(Dataset::streaming_table(NAMES[to])).flow(flow);
        }
        builder.build().expect("edges lead forward")
    }
}

/// With one kind of edge and without `ONCE`, the counts are those of unlabelled acyclic graphs (OEIS A003087).
#[test]
fn no_graph_is_missing_and_none_is_there_twice() {
    let plain =
        |flows| shapes(flows, &[NONE, DATA]).iter().filter(|shape| !shape.once.contains(&true)).count();
    assert_eq!([1, 2, 3, 4].map(plain), [1, 2, 6, 31]);
    // One flow: once or not. Two: no edge, three pairs; each kind of edge, four ordered pairs.
    assert_eq!([1, 2].map(|flows| shapes(flows, &[NONE, DATA, ORDER]).len()), [2, 3 + 2 * 4]);
}
