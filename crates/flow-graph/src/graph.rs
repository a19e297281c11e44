//! Which flows must have ended before this one may start?
//!
//! Invariant: a [`Graph`] is acyclic, every name in it is resolved, and it never changes.
//! Only [`GraphBuilder::build`](crate::GraphBuilder::build) makes one.

use std::fmt;

use crate::{Dataset, Flow, Mode};

/// A flow of one graph: its place in declaration order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub(crate) usize);

impl FlowId {
    /// The flow's place in declaration order, from 0.
    pub fn index(self) -> usize {
        self.0
    }
}

/// Why one flow waits for another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeKind {
    /// The later flow reads what the earlier one writes.
    Data {
        /// The dataset that the earlier flow writes.
        dataset: String,
        /// The views between that dataset and the later flow, nearest to the dataset first.
        views: Vec<String>,
    },
    /// The later flow names the earlier one in `depends_on`.
    Order,
}

impl fmt::Display for EdgeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data { dataset, views } if views.is_empty() => write!(f, "reads {dataset}"),
            Self::Data { dataset, views } => write!(f, "reads {dataset} through {}", views.join(", ")),
            Self::Order => f.write_str("depends on"),
        }
    }
}

/// An edge of the graph: `from` must have ended before `to` may start.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// The flow that comes first.
    pub from: FlowId,
    /// The flow that waits.
    pub to: FlowId,
    /// Why it waits.
    pub kind: EdgeKind,
}

/// A validated pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Graph {
    pub(crate) mode: Mode,
    pub(crate) datasets: Vec<Dataset>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) edges: Vec<Edge>,
    pub(crate) predecessors: Vec<Vec<FlowId>>,
    pub(crate) successors: Vec<Vec<FlowId>>,
    pub(crate) order: Vec<FlowId>,
    /// By flow: its place in that order.
    ranks: Vec<usize>,
}

impl Graph {
    /// Lays out checked flows and edges. `order` is a topological order of all flows.
    pub(crate) fn new(
        mode: Mode,
        datasets: Vec<Dataset>,
        flows: Vec<Flow>,
        edges: Vec<Edge>,
        order: Vec<FlowId>,
    ) -> Self {
        let neighbours = |pick: fn(&Edge) -> (FlowId, FlowId)| {
            let mut lists = vec![Vec::new(); flows.len()];
            for (of, other) in edges.iter().map(pick) {
                if let Some(list) = lists.get_mut(of.0) {
                    list.push(other);
                }
            }
            for list in &mut lists {
                list.sort_unstable();
                list.dedup();
            }
            lists
        };
        let predecessors = neighbours(|edge| (edge.to, edge.from));
        let successors = neighbours(|edge| (edge.from, edge.to));
        let mut ranks = vec![0; flows.len()];
        for (rank, flow) in order.iter().enumerate() {
            if let Some(place) = ranks.get_mut(flow.0) {
                *place = rank;
            }
        }
        Self { mode, datasets, flows, edges, predecessors, successors, order, ranks }
    }

    /// How updates of this pipeline run.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The datasets, in declaration order.
    pub fn datasets(&self) -> &[Dataset] {
        &self.datasets
    }

    /// The dataset of that exact name.
    pub fn dataset(&self, name: &str) -> Option<&Dataset> {
        self.datasets.iter().find(|dataset| dataset.name() == name)
    }

    /// The flows with their ids, in declaration order.
    pub fn flows(&self) -> impl ExactSizeIterator<Item = (FlowId, &Flow)> {
        self.flows.iter().enumerate().map(|(index, flow)| (FlowId(index), flow))
    }

    /// The flow of that id; `None` for an id of another graph.
    pub fn flow(&self, id: FlowId) -> Option<&Flow> {
        self.flows.get(id.0)
    }

    /// The id of the flow of that exact name.
    pub fn flow_id(&self, name: &str) -> Option<FlowId> {
        self.flows.iter().position(|flow| flow.name() == name).map(FlowId)
    }

    /// The flows that write the dataset of that name, in declaration order.
    pub fn writers<'a>(&'a self, dataset: &'a str) -> impl Iterator<Item = FlowId> + 'a {
        self.flows().filter(move |(_, flow)| flow.target() == dataset).map(|(id, _)| id)
    }

    /// All flows, each after all its predecessors, and otherwise in declaration order.
    pub fn topological_order(&self) -> &[FlowId] {
        &self.order
    }

    /// A flow's place in topological order; 0 for one of another graph.
    pub(crate) fn rank(&self, flow: FlowId) -> usize {
        self.ranks.get(flow.0).copied().unwrap_or_default()
    }

    /// The flows that must have ended before `flow` may start, in declaration order: those that write what it
    /// reads, directly or through views, and those in its `depends_on`.
    pub fn predecessors(&self, flow: FlowId) -> &[FlowId] {
        self.predecessors.get(flow.0).map_or(&[], Vec::as_slice)
    }

    /// The flows that wait for `flow`, in declaration order.
    pub fn successors(&self, flow: FlowId) -> &[FlowId] {
        self.successors.get(flow.0).map_or(&[], Vec::as_slice)
    }

    /// The edges, sorted by the flow that waits, then by the flow that comes first, then by kind.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The edges as text, one a line: `from -> to (why)`.
    pub fn edge_list(&self) -> impl fmt::Display + '_ {
        fmt::from_fn(|f| {
            self.edges.iter().try_for_each(|edge| {
                writeln!(f, "{} -> {} ({})", self.name(edge.from), self.name(edge.to), edge.kind)
            })
        })
    }

    fn name(&self, id: FlowId) -> &str {
        self.flow(id).map_or("?", Flow::name)
    }
}

/// One line for each flow, in topological order: `name -> target (kind[, once])[, after its predecessors]`.
impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (id, flow) in self.order.iter().filter_map(|id| Some((*id, self.flow(*id)?))) {
            write!(f, "{} -> {} ({}", flow.name(), flow.target(), flow.kind())?;
            f.write_str(if flow.is_once() { ", once)" } else { ")" })?;
            for (place, predecessor) in self.predecessors(id).iter().enumerate() {
                f.write_str(if place == 0 { ", after " } else { ", " })?;
                f.write_str(self.name(*predecessor))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
