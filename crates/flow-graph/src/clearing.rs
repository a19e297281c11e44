//! What is cleared before the first flow starts, and how far is that?
//!
//! Invariant: while a clearing is due or asked for, no flow is launched and the update does not end.
//! [`ClearPhase::on`] is total, as [`FlowState::on`](crate::FlowState) is.

use crate::{FlowId, Graph, ResolvedRequest};

/// What an update clears before its first flow starts: the work behind [`Action::Clear`](crate::Action::Clear).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Clearing {
    /// The tables to empty, in declaration order: rows, side state, versions.
    pub targets: Vec<String>,
    /// The flows into these tables, in declaration order: checkpoints, completions, snapshot versions.
    pub flows: Vec<FlowId>,
    /// The flows whose checkpoint and completion are forgotten while their target keeps its rows, in declaration order.
    pub resets: Vec<FlowId>,
}

impl Clearing {
    /// What the request clears in the graph; `None` if that is nothing.
    pub(crate) fn of(request: &ResolvedRequest, graph: &Graph) -> Option<Self> {
        if !request.needs_clearing() {
            return None;
        }
        let tables = graph.datasets().iter().map(crate::Dataset::name);
        let flows = |wanted: &dyn Fn(&crate::Flow) -> bool| {
            graph.flows().filter(|(_, flow)| wanted(flow)).map(|(id, _)| id).collect()
        };
        Some(Self {
            targets: tables.filter(|name| request.empties(name)).map(ToOwned::to_owned).collect(),
            flows: flows(&|flow| request.empties(flow.target())),
            resets: flows(&|flow| request.resets(flow)),
        })
    }
}

/// How far the clearing of an update is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum ClearPhase {
    /// There is nothing to clear, or no more since the update was cancelled before.
    #[default]
    NotNeeded,
    /// The action has not been handed out yet.
    Due,
    /// The action has been handed out.
    Asked,
    /// It is durable that everything is cleared.
    Cleared,
    /// It is not, and no flow of this update will start.
    NotCleared,
}

/// What can befall a clearing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ClearEvent {
    HandedOut,
    Cleared,
    NotCleared,
    Cancelled,
}

impl ClearPhase {
    /// Whether flows may start, and the update may end.
    pub(crate) fn is_over(self) -> bool {
        match self {
            Self::NotNeeded | Self::Cleared | Self::NotCleared => true,
            Self::Due | Self::Asked => false,
        }
    }

    /// The phase after an event; `None` if the event cannot happen here.
    pub(crate) fn on(self, event: ClearEvent) -> Option<Self> {
        use ClearEvent as E;
        Some(match (self, event) {
            (Self::Due, E::HandedOut) => Self::Asked,
            (Self::Due, E::Cancelled) => Self::NotNeeded,
            (Self::Asked, E::Cleared) => Self::Cleared,
            (Self::Asked, E::NotCleared) => Self::NotCleared,
            (phase, E::Cancelled) => phase,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::documented_table;

    /// The table in the crate's docs is what the function does.
    #[test]
    fn the_documented_phases_are_the_implemented_ones() {
        use ClearPhase as P;
        let events =
            [ClearEvent::HandedOut, ClearEvent::Cleared, ClearEvent::NotCleared, ClearEvent::Cancelled];
        let rows = [P::NotNeeded, P::Due, P::Asked, P::Cleared, P::NotCleared].map(|phase| {
            let cells = events.map(|event| phase.on(event).map_or("-".into(), |next| format!("{next:?}")));
            format!("{phase:?} | {} |", cells.join(" | "))
        });
        assert_eq!(rows.to_vec(), documented_table("Clearing"));
    }
}
