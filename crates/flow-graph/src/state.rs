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
    /// It runs in continuous mode and has caught up: flows that read from it may start, it holds no permit, and its
    /// next failure counts as that of a first attempt.
    Live,
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
    /// It did not start, since what was to be cleared before is not.
    NotCleared,
}

/// What can befall a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FlowEvent {
    Launched,
    CaughtUp,
    Succeeded { once: bool },
    Failed { retry: Option<Timestamp> },
    Aborted,
    Persisted,
    NotPersisted,
    Cancelled,
    PredecessorFailed { failed: FlowId },
    NotCleared,
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
            | Self::Excluded
            | Self::NotCleared => true,
            Self::Queued
            | Self::Running { .. }
            | Self::Live
            | Self::Waiting { .. }
            | Self::Stopping { .. }
            | Self::Persisting => false,
        }
    }

    /// Whether the flow was launched and has not ended.
    pub fn is_running(self) -> bool {
        matches!(self, Self::Running { .. } | Self::Live | Self::Stopping { .. })
    }

    /// Whether the flow occupies a permit. One that stops needs none: nothing starts any more.
    pub fn holds_permit(self) -> bool {
        matches!(self, Self::Running { .. })
    }

    /// Whether flows that wait for this one may start. They may also after a flow that was [`Live`](Self::Live) once:
    /// ask [`Scheduler::frees_dependents`](crate::Scheduler::frees_dependents).
    pub fn satisfies_edges(self) -> bool {
        matches!(self, Self::Live | Self::Completed | Self::Idle | Self::Excluded)
    }

    /// Which attempt runs, if one does.
    pub(crate) fn attempt(self) -> Option<u32> {
        match self {
            Self::Running { attempt } | Self::Stopping { attempt } => Some(attempt),
            Self::Live => Some(1),
            Self::Queued
            | Self::Waiting { .. }
            | Self::Persisting
            | Self::Completed
            | Self::Failed
            | Self::Skipped { .. }
            | Self::Stopped
            | Self::Idle
            | Self::Excluded
            | Self::NotCleared => None,
        }
    }

    /// The state after an event; `None` if the event cannot happen here.
    #[expect(clippy::match_same_arms, reason = "grouped by state, as in the table of the crate's docs")]
    pub(crate) fn on(self, event: FlowEvent) -> Option<Self> {
        use FlowEvent as E;
        Some(match (self, event) {
            (Self::Queued, E::Launched) => Self::Running { attempt: 1 },
            (Self::Waiting { attempt, .. }, E::Launched) => Self::Running { attempt },

            (Self::Running { .. } | Self::Live, E::CaughtUp) => Self::Live,
            (Self::Stopping { attempt }, E::CaughtUp) => Self::Stopping { attempt },

            (Self::Running { .. } | Self::Stopping { .. }, E::Succeeded { once: true }) => Self::Persisting,
            (Self::Running { .. } | Self::Live | Self::Stopping { .. }, E::Succeeded { once: false }) => {
                Self::Completed
            }
            (Self::Running { attempt }, E::Failed { retry: Some(due) }) => {
                Self::Waiting { attempt: attempt.saturating_add(1), due }
            }
            (Self::Live, E::Failed { retry: Some(due) }) => Self::Waiting { attempt: 2, due },
            (Self::Stopping { .. }, E::Failed { retry: Some(_) } | E::Aborted) => Self::Stopped,
            (Self::Running { .. } | Self::Live | Self::Stopping { .. }, E::Failed { retry: None }) => {
                Self::Failed
            }

            (Self::Persisting, E::Persisted) => Self::Completed,
            (Self::Persisting, E::NotPersisted) => Self::Failed,

            (Self::Queued | Self::Waiting { .. }, E::Cancelled) => Self::Stopped,
            (Self::Running { attempt }, E::Cancelled) => Self::Stopping { attempt },
            (Self::Live, E::Cancelled) => Self::Stopping { attempt: 1 },
            (state, E::Cancelled) => state,

            (Self::Queued, E::PredecessorFailed { failed }) => Self::Skipped { failed },
            (Self::Queued, E::NotCleared) => Self::NotCleared,
            _ => return None,
        })
    }
}

impl fmt::Display for FlowState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queued => "QUEUED",
            Self::Waiting { .. } => "WAITING",
            Self::Running { .. } | Self::Live | Self::Stopping { .. } | Self::Persisting => "RUNNING",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Skipped { .. } => "SKIPPED",
            Self::Stopped | Self::NotCleared => "STOPPED",
            Self::Idle => "IDLE",
            Self::Excluded => "EXCLUDED",
        })
    }
}

/// The rows below the heading of a table in the crate's docs, by the word in its first column's heading.
#[cfg(test)]
pub(crate) fn documented_table(first_column: &str) -> Vec<String> {
    let lines = include_str!("lib.rs").lines().map(|line| line.strip_prefix("//! | "));
    let table = lines.skip_while(|line| !line.is_some_and(|line| line.starts_with(first_column)));
    table.map_while(|line| line).skip(2).map(|line| line.replace('`', "")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [FlowState; 13] = [
        FlowState::Queued,
        FlowState::Running { attempt: 1 },
        FlowState::Live,
        FlowState::Waiting { attempt: 2, due: Timestamp(9) },
        FlowState::Stopping { attempt: 1 },
        FlowState::Persisting,
        FlowState::Completed,
        FlowState::Failed,
        FlowState::Skipped { failed: FlowId(7) },
        FlowState::Stopped,
        FlowState::Idle,
        FlowState::Excluded,
        FlowState::NotCleared,
    ];

    const EVENTS: [FlowEvent; 12] = [
        FlowEvent::Launched,
        FlowEvent::CaughtUp,
        FlowEvent::Succeeded { once: false },
        FlowEvent::Succeeded { once: true },
        FlowEvent::Failed { retry: Some(Timestamp(9)) },
        FlowEvent::Failed { retry: None },
        FlowEvent::Aborted,
        FlowEvent::Persisted,
        FlowEvent::NotPersisted,
        FlowEvent::Cancelled,
        FlowEvent::PredecessorFailed { failed: FlowId(7) },
        FlowEvent::NotCleared,
    ];

    fn name(state: FlowState) -> String {
        let name = format!("{state:?}");
        name.split([' ', '{']).next().unwrap_or_default().to_owned()
    }

    /// The table in the crate's docs is what the function does.
    #[test]
    fn the_documented_transition_table_is_the_implemented_one() {
        let rows = STATES.iter().filter(|state| !state.is_final()).map(|state| {
            let cells = EVENTS.map(|event| state.on(event).map_or_else(|| "-".into(), name));
            format!("{} | {} |", name(*state), cells.join(" | "))
        });
        assert_eq!(rows.collect::<Vec<_>>(), documented_table("State"));
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
            "QUEUED RUNNING RUNNING WAITING RUNNING RUNNING COMPLETED FAILED SKIPPED STOPPED IDLE EXCLUDED STOPPED"
        );
    }
}
