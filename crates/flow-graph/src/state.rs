//! Where does a flow stand within its update, and where can it go from there?
//!
//! Invariant: [`FlowState::on`] is total. It answers every pair of state and event, and a pair that makes no sense
//! gets `None`; from a final state nothing leads away.

use std::fmt;

use crate::{FlowId, Timestamp};

/// The state of one flow within an update.
///
/// `Display` writes the word that progress events use, with `WAITING` for a flow that waits for its next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FlowState {
    /// It has not started yet.
    Queued,
    /// It runs; starting and planning are part of that.
    Running {
        /// Which attempt this is, from 1.
        attempt: u32,
    },
    /// An attempt failed, and the next one comes later.
    Waiting {
        /// Which attempt comes next.
        attempt: u32,
        /// Not before this moment.
        due: Timestamp,
    },
    /// It runs, but has been told to stop.
    Stopping {
        /// Which attempt this is, from 1.
        attempt: u32,
    },
    /// It succeeded as a `ONCE` flow, and its completion is being made durable.
    Persisting,
    /// It succeeded.
    Completed,
    /// It failed for good.
    Failed,
    /// It did not start, since it could only have come after a flow that failed.
    Skipped {
        /// The flow at whose failure (or incompleteness, if it was excluded) this began.
        failed: FlowId,
    },
    /// The update was cancelled before it ended.
    Stopped,
    /// A `ONCE` flow that was complete before this update.
    Idle,
    /// The update does not ask for it.
    Excluded,
}

/// What can befall a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FlowEvent {
    Launched,
    Succeeded { once: bool },
    Failed { retry: Option<Timestamp> },
    Aborted,
    Persisted,
    NotPersisted,
    Cancelled,
    PredecessorFailed { failed: FlowId },
}

impl FlowState {
    /// Whether the flow is done with this update.
    pub fn is_final(self) -> bool {
        match self {
            Self::Completed
            | Self::Failed
            | Self::Skipped { .. }
            | Self::Stopped
            | Self::Idle
            | Self::Excluded => true,
            Self::Queued
            | Self::Running { .. }
            | Self::Waiting { .. }
            | Self::Stopping { .. }
            | Self::Persisting => false,
        }
    }

    /// Whether the flow occupies a permit.
    pub fn is_running(self) -> bool {
        matches!(self, Self::Running { .. } | Self::Stopping { .. })
    }

    /// Whether flows that wait for this one may start.
    pub fn satisfies_edges(self) -> bool {
        matches!(self, Self::Completed | Self::Idle | Self::Excluded)
    }

    /// The state after an event; `None` if the event cannot happen here.
    #[expect(clippy::match_same_arms, reason = "grouped by state, as in the table of the crate's docs")]
    pub(crate) fn on(self, event: FlowEvent) -> Option<Self> {
        use FlowEvent as E;
        Some(match (self, event) {
            (Self::Queued, E::Launched) => Self::Running { attempt: 1 },
            (Self::Waiting { attempt, .. }, E::Launched) => Self::Running { attempt },

            (Self::Running { .. } | Self::Stopping { .. }, E::Succeeded { once: true }) => Self::Persisting,
            (Self::Running { .. } | Self::Stopping { .. }, E::Succeeded { once: false }) => Self::Completed,
            (Self::Running { attempt }, E::Failed { retry: Some(due) }) => {
                Self::Waiting { attempt: attempt.saturating_add(1), due }
            }
            (Self::Stopping { .. }, E::Failed { retry: Some(_) } | E::Aborted) => Self::Stopped,
            (Self::Running { .. } | Self::Stopping { .. }, E::Failed { retry: None }) => Self::Failed,

            (Self::Persisting, E::Persisted) => Self::Completed,
            (Self::Persisting, E::NotPersisted) => Self::Failed,

            (Self::Queued | Self::Waiting { .. }, E::Cancelled) => Self::Stopped,
            (Self::Running { attempt }, E::Cancelled) => Self::Stopping { attempt },
            (state, E::Cancelled) => state,

            (Self::Queued, E::PredecessorFailed { failed }) => Self::Skipped { failed },
            _ => return None,
        })
    }
}

impl fmt::Display for FlowState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queued => "QUEUED",
            Self::Waiting { .. } => "WAITING",
            Self::Running { .. } | Self::Stopping { .. } | Self::Persisting => "RUNNING",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Skipped { .. } => "SKIPPED",
            Self::Stopped => "STOPPED",
            Self::Idle => "IDLE",
            Self::Excluded => "EXCLUDED",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [FlowState; 11] = [
        FlowState::Queued,
        FlowState::Running { attempt: 1 },
        FlowState::Waiting { attempt: 2, due: Timestamp(9) },
        FlowState::Stopping { attempt: 1 },
        FlowState::Persisting,
        FlowState::Completed,
        FlowState::Failed,
        FlowState::Skipped { failed: FlowId(7) },
        FlowState::Stopped,
        FlowState::Idle,
        FlowState::Excluded,
    ];

    const EVENTS: [FlowEvent; 10] = [
        FlowEvent::Launched,
        FlowEvent::Succeeded { once: false },
        FlowEvent::Succeeded { once: true },
        FlowEvent::Failed { retry: Some(Timestamp(9)) },
        FlowEvent::Failed { retry: None },
        FlowEvent::Aborted,
        FlowEvent::Persisted,
        FlowEvent::NotPersisted,
        FlowEvent::Cancelled,
        FlowEvent::PredecessorFailed { failed: FlowId(7) },
    ];

    fn name(state: FlowState) -> String {
        let name = format!("{state:?}");
        name.split([' ', '{']).next().unwrap_or_default().to_owned()
    }

    /// The table in the crate's docs is what the function does.
    #[test]
    fn the_documented_transition_table_is_the_implemented_one() {
        let written: Vec<&str> =
            include_str!("lib.rs").lines().filter_map(|line| line.strip_prefix("//! | ")).skip(2).collect();
        let rows = STATES.iter().filter(|state| !state.is_final()).map(|state| {
            let cells = EVENTS.map(|event| state.on(event).map_or_else(|| "-".into(), name));
            format!("{} | {} |", name(*state), cells.join(" | "))
        });
        assert_eq!(rows.collect::<Vec<_>>(), written);
    }

    #[test]
    fn nothing_leads_out_of_a_final_state() {
        for state in STATES.into_iter().filter(|state| state.is_final()) {
            for event in EVENTS {
                let expected = (event == FlowEvent::Cancelled).then_some(state);
                assert_eq!(state.on(event), expected, "{state:?} {event:?}");
            }
        }
    }

    #[test]
    fn r17_states_are_written_in_the_words_of_progress_events() {
        let words = STATES.map(|state| state.to_string());
        assert_eq!(
            words.join(" "),
            "QUEUED RUNNING WAITING RUNNING RUNNING COMPLETED FAILED SKIPPED STOPPED IDLE EXCLUDED"
        );
    }
}
