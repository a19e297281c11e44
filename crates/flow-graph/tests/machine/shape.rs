//! Random pipelines, and what must come before each of their flows.

use std::collections::BTreeSet;

use proptest::prelude::*;
use strandline_flow_graph::{Dataset, Flow, FlowKind, Graph, GraphBuilder, Mode, QueryMode};

/// What a flow has to do with one that comes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tie {
    None,
    Data,
    DataThroughView,
    Order,
}

/// Flow `n` is called `fn`. Flows that share a table are neighbours; it is called after the first of them.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) mode: Mode,
    pub(crate) once: Vec<bool>,
    /// Whether a flow writes the table of the flow before it.
    pub(crate) joins: Vec<bool>,
    /// By the flow that waits, then by the flow before it.
    pub(crate) ties: Vec<Vec<Tie>>,
    /// The order of declaration.
    pub(crate) order: Vec<usize>,
}

pub(crate) fn shapes() -> impl Strategy<Value = Shape> {
    let mode = prop_oneof![2 => Just(Mode::Triggered), 1 => Just(Mode::Continuous)];
    (1_usize..=6, mode).prop_flat_map(|(flows, mode)| {
        let flags = || prop::collection::vec(any::<bool>(), flows);
        let tie = prop_oneof![
            3 => Just(Tie::None),
            1 => Just(Tie::Data),
            1 => Just(Tie::DataThroughView),
            1 => Just(Tie::Order)
        ];
        let ties = prop::collection::vec(prop::collection::vec(tie, flows), flows);
        let order = Just((0..flows).collect::<Vec<_>>()).prop_shuffle();
        (flags(), flags(), ties, order).prop_map(move |(once, joins, ties, order)| Shape {
            mode,
            once,
            joins,
            ties,
            order,
        })
    })
}

pub(crate) fn flow_name(flow: usize) -> String {
    format!("f{flow}")
}

pub(crate) fn table_name(table: usize) -> String {
    format!("t{table}")
}

impl Shape {
    /// Flows that have nothing to do with each other.
    pub(crate) fn apart(flows: usize) -> Self {
        let (once, joins) = (vec![false; flows], vec![false; flows]);
        let ties = vec![vec![Tie::None; flows]; flows];
        Self { mode: Mode::Triggered, once, joins, ties, order: (0..flows).collect() }
    }

    pub(crate) fn flows(&self) -> usize {
        self.once.len()
    }

    /// The number of the table that a flow writes.
    pub(crate) fn table(&self, flow: usize) -> usize {
        (1..=flow).rev().find(|n| !self.joins[*n]).unwrap_or(0)
    }

    /// The tables, by number.
    pub(crate) fn tables(&self) -> BTreeSet<usize> {
        (0..self.flows()).map(|flow| self.table(flow)).collect()
    }

    /// A table is not read by those that write it, and in continuous mode only `ONCE` flows are depended on.
    fn tie(&self, from: usize, to: usize) -> Tie {
        match self.ties[to][from] {
            Tie::Order if self.mode == Mode::Continuous && !self.once[from] => Tie::None,
            Tie::Data | Tie::DataThroughView if self.table(from) == self.table(to) => Tie::None,
            tie @ (Tie::None | Tie::Data | Tie::DataThroughView | Tie::Order) => tie,
        }
    }

    /// The flows that must come before one, and whether that is because of its data.
    pub(crate) fn before(&self, name: &str) -> BTreeSet<(String, bool)> {
        let to = (0..self.flows()).find(|flow| flow_name(*flow) == name).expect("a known flow");
        let mut before = BTreeSet::new();
        for from in 0..to {
            match self.tie(from, to) {
                Tie::None => {}
                Tie::Order => drop(before.insert((flow_name(from), false))),
                Tie::Data | Tie::DataThroughView => {
                    let writers = (0..self.flows()).filter(|other| self.table(*other) == self.table(from));
                    before.extend(writers.map(|writer| (flow_name(writer), true)));
                }
            }
        }
        before
    }

    pub(crate) fn graph(&self) -> Graph {
        let mut builder = GraphBuilder::new().mode(self.mode);
        for table in self.tables() {
            let name = table_name(table);
            builder = builder
                .dataset(Dataset::streaming_table(&name))
                .dataset(Dataset::view(format!("view_{name}")).reads([name.clone()]));
        }
        for to in &self.order {
            let query = if self.once[*to] { QueryMode::Batch } else { QueryMode::Streaming };
            let mut flow =
                Flow::new(table_name(self.table(*to)), FlowKind::Append, query).named(flow_name(*to));
            if self.once[*to] {
                flow = flow.once();
            }
            for from in 0..*to {
                let table = table_name(self.table(from));
                flow = match self.tie(from, *to) {
                    Tie::None => flow,
                    Tie::Data => flow.reads([table]),
                    Tie::DataThroughView => flow.reads([format!("view_{table}")]),
                    Tie::Order => flow.depends_on([flow_name(from)]),
                };
            }
            builder = builder.flow(flow);
        }
        builder.build().expect("edges lead forward")
    }
}
