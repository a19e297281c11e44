//! Which targets take part in an update, and what is cleared before it?
//!
//! Invariant: names are spelled as the graph spells them. Only [`UpdateRequest::check`](crate::UpdateRequest::check)
//! makes a request that names anything.

use std::collections::BTreeSet;

use crate::Flow;

/// A request whose names are those of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ResolvedRequest {
    /// `None`: all.
    pub(super) targets: Option<BTreeSet<String>>,
    /// Tables.
    pub(super) emptied: BTreeSet<String>,
    /// Flows, none of which writes an emptied table.
    pub(super) reset: BTreeSet<String>,
}

impl ResolvedRequest {
    /// A plain refresh of every target, of any graph.
    pub fn refresh_all() -> Self {
        Self::default()
    }

    /// Whether flows into that target take part.
    pub fn selects(&self, target: &str) -> bool {
        self.targets.as_ref().is_none_or(|targets| targets.contains(target))
    }

    /// Whether that table is refreshed fully.
    pub fn empties(&self, table: &str) -> bool {
        self.emptied.contains(table)
    }

    /// Whether the flow reads its source anew while its target keeps its rows.
    pub fn resets(&self, flow: &Flow) -> bool {
        self.reset.contains(flow.name())
    }

    /// Whether what is known of the flow is forgotten: its checkpoint, and that it is complete.
    pub fn clears(&self, flow: &Flow) -> bool {
        self.empties(flow.target()) || self.resets(flow)
    }

    /// Whether anything is cleared.
    pub fn needs_clearing(&self) -> bool {
        !self.emptied.is_empty() || !self.reset.is_empty()
    }

    /// The same targets, as a plain refresh: what is left to do once everything is cleared.
    #[must_use]
    pub fn without_clearing(&self) -> Self {
        Self { targets: self.targets.clone(), ..Self::default() }
    }
}
