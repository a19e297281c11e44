//! What does an update ask for, and what has been done before?

use std::collections::BTreeSet;

/// What one update is to do.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct UpdateRequest {
    targets: Option<BTreeSet<String>>,
}

impl UpdateRequest {
    /// A plain refresh of every target.
    pub fn refresh_all() -> Self {
        Self::default()
    }

    /// A plain refresh of these targets; flows of other targets are excluded. A name that is not in the graph
    /// selects nothing: check it with [`Graph::dataset`](crate::Graph::dataset).
    pub fn refresh<N: Into<String>>(targets: impl IntoIterator<Item = N>) -> Self {
        Self { targets: Some(targets.into_iter().map(Into::into).collect()) }
    }

    /// Whether flows into that target take part.
    pub fn selects(&self, target: &str) -> bool {
        self.targets.as_ref().is_none_or(|targets| targets.contains(target))
    }
}

/// The `ONCE` flows whose completion is durable, by name: the name is a flow's identity.
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
