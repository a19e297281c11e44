//! What does an update ask for, and what has been done before?

use std::collections::BTreeSet;

use crate::Graph;

mod check;
mod error;
mod resolved;
#[cfg(test)]
mod tests;

pub use error::{Ask, RequestError};
pub use resolved::ResolvedRequest;

/// What one update is to do, by the names that the user wrote.
///
/// Asked for nothing, it refreshes every target. As soon as some targets are named, by
/// [`with_refresh`](Self::with_refresh) or [`with_full_refresh`](Self::with_full_refresh), only those take part. A
/// reset selects nothing by itself, but the target of a reset flow takes part in any case.
///
/// ```
/// use strandline_flow_graph::{Dataset, Flow, FlowKind, GraphBuilder, QueryMode, UpdateRequest};
///
/// let graph = ["a", "b", "c"].iter().fold(GraphBuilder::new(), |builder, name| {
///     let flow = Flow::new(*name, FlowKind::Append, QueryMode::Streaming);
///     builder.dataset(Dataset::streaming_table(*name)).flow(flow)
/// });
/// let graph = graph.build().expect("a valid pipeline");
/// let request = UpdateRequest::refresh(["a"]).with_full_refresh(["B"]).check(&graph).expect("known names");
/// assert!(request.selects("a") && request.selects("b") && !request.selects("c"));
/// assert!(request.empties("b") && !request.empties("a"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct UpdateRequest {
    refresh: BTreeSet<String>,
    full_refresh: BTreeSet<String>,
    full_refresh_all: bool,
    reset_checkpoint: BTreeSet<String>,
}

impl UpdateRequest {
    /// A plain refresh of every target.
    pub fn refresh_all() -> Self {
        Self::default()
    }

    /// A plain refresh of these targets; flows of other targets are excluded. Without any name it is one of all.
    pub fn refresh<N: Into<String>>(targets: impl IntoIterator<Item = N>) -> Self {
        Self::default().with_refresh(targets)
    }

    /// A full refresh of every table; of every sink, the flows begin anew.
    pub fn full_refresh_all() -> Self {
        Self { full_refresh_all: true, ..Self::default() }
    }

    /// Adds targets to refresh: tables or sinks.
    #[must_use]
    pub fn with_refresh<N: Into<String>>(mut self, targets: impl IntoIterator<Item = N>) -> Self {
        self.refresh.extend(targets.into_iter().map(Into::into));
        self
    }

    /// Adds tables to refresh fully: they are emptied, and all that is known of their flows is forgotten, before any
    /// flow starts.
    #[must_use]
    pub fn with_full_refresh<N: Into<String>>(mut self, tables: impl IntoIterator<Item = N>) -> Self {
        self.full_refresh.extend(tables.into_iter().map(Into::into));
        self
    }

    /// Adds flows that read their sources anew; their targets keep their rows. A `ONCE` flow runs again.
    #[must_use]
    pub fn with_checkpoint_reset<N: Into<String>>(mut self, flows: impl IntoIterator<Item = N>) -> Self {
        self.reset_checkpoint.extend(flows.into_iter().map(Into::into));
        self
    }

    /// The targets to refresh, as they were named; none for all.
    pub fn refresh_names(&self) -> impl Iterator<Item = &str> {
        self.refresh.iter().map(String::as_str)
    }

    /// The tables to refresh fully, as they were named.
    pub fn full_refresh_names(&self) -> impl Iterator<Item = &str> {
        self.full_refresh.iter().map(String::as_str)
    }

    /// Whether it asks for a full refresh of every table.
    pub fn is_full_refresh_all(&self) -> bool {
        self.full_refresh_all
    }

    /// The flows that read their sources anew, as they were named.
    pub fn checkpoint_reset_names(&self) -> impl Iterator<Item = &str> {
        self.reset_checkpoint.iter().map(String::as_str)
    }

    /// Finds out what the names mean: exactly first, then without regard to case where that is unambiguous (A-33).
    ///
    /// # Errors
    ///
    /// All that is wrong with the request: names that the graph does not have, views and sinks where a table is
    /// needed, tables that may not be refreshed fully (R-11), a full refresh of all beside one of some.
    pub fn check(&self, graph: &Graph) -> Result<ResolvedRequest, Vec<RequestError>> {
        check::check(self, graph)
    }
}

/// The `ONCE` flows whose completion is durable, by name: the name is a flow's identity (A-18).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Completions(BTreeSet<String>);

impl Completions {
    /// Nothing has been completed yet.
    pub fn none() -> Self {
        Self::default()
    }

    /// Whether the flow of that name is complete.
    pub fn contains(&self, flow: &str) -> bool {
        self.0.contains(flow)
    }
}

impl<N: Into<String>> FromIterator<N> for Completions {
    fn from_iter<I: IntoIterator<Item = N>>(names: I) -> Self {
        Self(names.into_iter().map(Into::into).collect())
    }
}
