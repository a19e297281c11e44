//! Which flow of a pipeline may start now?
//!
//! A pipeline is a set of datasets and of flows that write them. [`GraphBuilder`] takes the definitions in any
//! order and either makes a [`Graph`] or reports every mistake it finds. The graph then answers which flows must
//! have ended before another one may start: data edges (a flow reads what another one writes, directly or through
//! views) and order edges (`depends_on`).
//!
//! A [`Scheduler`] runs one update of a graph. It is a state machine: the driver reports [`Input`]s, takes
//! [`Action`]s and obeys them. Time is an input, too: nothing here reads a clock, starts a thread or touches a file.
//!
//! ```
//! use strandline_flow_graph::{Dataset, Flow, FlowKind, GraphBuilder, QueryMode};
//!
//! let graph = GraphBuilder::new()
//!     .dataset(Dataset::streaming_table("events"))
//!     .flow(Flow::new("events", FlowKind::Append, QueryMode::Streaming).named("live").depends_on(["history"]))
//!     .flow(Flow::new("events", FlowKind::Append, QueryMode::Batch).named("history").once())
//!     .build()
//!     .expect("a valid pipeline");
//! assert_eq!(graph.to_string(), "history -> events (append, once)\nlive -> events (append), after history\n");
//! ```
//!
//! # States of a flow
//!
//! Columns are events, cells the state that follows, and `-` means that the event cannot happen there: as an input
//! it is refused with a [`ProtocolError`] and changes nothing.
//!
//! | State | launch | caught up | succeeded | succeeded, ONCE | failed, tries left | failed | aborted | persisted | not persisted | cancel | predecessor failed | not cleared |
//! | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
//! | Queued | Running | - | - | - | - | - | - | - | - | Stopped | Skipped | `NotCleared` |
//! | Running | - | Live | Completed | Persisting | Waiting | Failed | - | - | - | Stopping | - | - |
//! | Live | - | Live | Completed | - | Waiting | Failed | - | - | - | Stopping | - | - |
//! | Waiting | Running | - | - | - | - | - | - | - | - | Stopped | - | - |
//! | Stopping | - | Stopping | Completed | Persisting | Stopped | Failed | Stopped | - | - | Stopping | - | - |
//! | Persisting | - | - | - | - | - | - | - | Completed | Failed | Persisting | - | - |
//!
//! Completed, Failed, Skipped, Stopped, Idle, Excluded and `NotCleared` are final: no event but a cancellation, which
//! changes nothing, can happen there. An update begins with each flow in Queued, Idle (a `ONCE` flow that is complete),
//! Excluded (not selected) or Skipped (it depends on an excluded `ONCE` flow that is not complete). Flows that wait
//! for one in Completed, Idle or Excluded may start.
//!
//! # Continuous mode
//!
//! In [`Mode::Continuous`] a flow goes on until the update is cancelled, unless it is `ONCE` or its source ends. It
//! begins in Running and becomes Live when it has taken in all that there was. From then on, and for the rest of the
//! update, flows that read from it run beside it. A Live flow that fails goes through Waiting and Running like any other,
//! with the count of its attempts begun anew; flows that read from it don't notice. If it fails for good, those of them
//! that have not started are skipped, those that have go on. `depends_on` waits for durable completion, as ever: that is
//! why its predecessors must be `ONCE` flows here.
//!
//! # Clearing
//!
//! A request with a full refresh or a checkpoint reset has something to clear before any flow starts. `handed out` is
//! that the driver took [`Action::Clear`].
//!
//! | Clearing | handed out | cleared | not cleared | cancel |
//! | --- | --- | --- | --- | --- |
//! | `NotNeeded` | - | - | - | `NotNeeded` |
//! | Due | Asked | - | - | `NotNeeded` |
//! | Asked | - | Cleared | `NotCleared` | Asked |
//! | Cleared | - | - | - | Cleared |
//! | `NotCleared` | - | - | - | `NotCleared` |
//!
//! While it is Due or Asked, no flow is launched and the update does not end: a cancellation stops every flow and then
//! waits for the answer. After `NotCleared` every queued flow is `NotCleared`, too, and the update has failed.

#![deny(missing_docs)]
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod attempts;
mod builder;
mod clearing;
mod dataset;
mod error;
mod flow;
mod graph;
mod names;
mod protocol;
mod request;
mod scheduler;
mod settings;
mod state;
mod time;

pub use attempts::UpdateAttempts;
pub use builder::GraphBuilder;
pub use clearing::Clearing;
pub use dataset::{Dataset, DatasetKind};
pub use error::{CdcFact, CycleStep, GraphError, HybridRule, StepReason};
pub use flow::{CdcFacts, Flow, FlowKind, Mode, QueryMode};
pub use graph::{Edge, EdgeKind, FlowId, Graph};
pub use protocol::{Action, Input, Outcome, ProtocolError, UpdateOutcome};
pub use request::{Ask, Completions, RequestError, ResolvedRequest, UpdateRequest};
pub use scheduler::Scheduler;
pub use settings::Settings;
pub use state::FlowState;
pub use time::Timestamp;
