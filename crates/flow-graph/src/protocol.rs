//! What do the driver and the scheduler say to each other?
//!
//! The driver reports [`Input`]s and obeys [`Action`]s. An input that does not fit is a [`ProtocolError`] and
//! changes nothing.

use std::fmt;

use crate::{FlowId, FlowState};

/// How an attempt of a flow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Everything it had to do is committed.
    Succeeded,
    /// It ended with an error.
    Failed {
        /// Whether another attempt may help.
        retryable: bool,
    },
    /// It ended because of an [`Action::Abort`], with work left to do.
    Stopped,
}

/// What the driver reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Input {
    /// An attempt of a flow ended.
    Finished {
        /// The flow.
        flow: FlowId,
        /// How it ended.
        outcome: Outcome,
    },
    /// The completion of a `ONCE` flow is durable.
    Persisted {
        /// The flow.
        flow: FlowId,
    },
    /// The completion of a `ONCE` flow could not be made durable; the flow counts as failed.
    NotPersisted {
        /// The flow.
        flow: FlowId,
        /// Whether another attempt of the update may help.
        retryable: bool,
    },
    /// A flow of a continuous pipeline has taken in all that there was; flows that read from it may start. Reporting
    /// it again does no harm.
    Progress {
        /// The flow, which is no `ONCE` flow.
        flow: FlowId,
    },
    /// What was to be cleared is, durably.
    Cleared,
    /// What was to be cleared is not, or not all of it; no flow will start.
    NotCleared {
        /// Whether another attempt of the update may help.
        retryable: bool,
    },
    /// The update is to end early. Asking twice, or after the end, does no harm.
    Cancel,
    /// Time has passed.
    Wake,
}

/// What the driver must do, in the order in which it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[must_use]
#[non_exhaustive]
pub enum Action {
    /// Clear what [`Scheduler::clearing`](crate::Scheduler::clearing) lists; answer with [`Input::Cleared`] or
    /// [`Input::NotCleared`]. If it is asked for at all, it is the first action, and the only one until the answer.
    ///
    /// Record what is to be cleared first, and finish an open record before the next update reads its history: then
    /// no crash can leave a table half cleared.
    Clear,
    /// Start an attempt of a flow; answer with [`Input::Finished`].
    Launch {
        /// The flow.
        flow: FlowId,
        /// Which attempt this is, from 1.
        attempt: u32,
    },
    /// Make the completion of a `ONCE` flow durable; answer with [`Input::Persisted`] or [`Input::NotPersisted`].
    Persist {
        /// The flow.
        flow: FlowId,
    },
    /// Stop a running flow; it still answers with [`Input::Finished`].
    Abort {
        /// The flow.
        flow: FlowId,
    },
    /// The update is over: every flow is in a final state. This is the last action.
    Done {
        /// How it ended.
        outcome: UpdateOutcome,
    },
}

/// How an update ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UpdateOutcome {
    /// No flow failed, was skipped or was stopped.
    Completed,
    /// At least one flow failed or was skipped, or what was to be cleared is not.
    Failed,
    /// It was cancelled before all flows had ended.
    Canceled,
}

impl fmt::Display for UpdateOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Canceled => "CANCELED",
        })
    }
}

/// An input that does not fit the state of the update. The state is as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The id belongs to another graph.
    #[error("flow number {} is not in this graph; take ids from the graph of this update", .flow.index())]
    UnknownFlow {
        /// The id.
        flow: FlowId,
    },
    /// A flow that was not launched, or has ended already, is reported as finished.
    #[error("flow number {} is {state} and cannot finish; report each launch once", .flow.index())]
    NotRunning {
        /// The flow.
        flow: FlowId,
        /// Its state.
        state: FlowState,
    },
    /// A flow that was not told to stop is reported as stopped.
    #[error("flow number {} is {state} and was not told to stop; report success or failure", .flow.index())]
    NotAborted {
        /// The flow.
        flow: FlowId,
        /// Its state.
        state: FlowState,
    },
    /// Progress of a flow that ends by itself: of a `ONCE` flow, or in a triggered pipeline.
    #[error("flow number {} is {state} and ends by itself; report its end", .flow.index())]
    NotContinuous {
        /// The flow.
        flow: FlowId,
        /// Its state.
        state: FlowState,
    },
    /// A clearing that was not asked for, or is over, is reported.
    #[error("nothing is being cleared; wait for the action, and answer it once")]
    NotClearing,
    /// A completion that was not asked for is reported.
    #[error("flow number {} is {state} and has no completion to persist; wait for the action", .flow.index())]
    NotPersisting {
        /// The flow.
        flow: FlowId,
        /// Its state.
        state: FlowState,
    },
}
