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
//! | state | launch | succeeded | succeeded, ONCE | failed, tries left | failed | aborted | persisted | not persisted | cancel | predecessor failed |
//! | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
//! | Queued | Running | - | - | - | - | - | - | - | Stopped | Skipped |
//! | Running | - | Completed | Persisting | Waiting | Failed | - | - | - | Stopping | - |
//! | Waiting | Running | - | - | - | - | - | - | - | Stopped | - |
//! | Stopping | - | Completed | Persisting | Stopped | Failed | Stopped | - | - | Stopping | - |
//! | Persisting | - | - | - | - | - | - | Completed | Failed | Persisting | - |
//!
//! Completed, Failed, Skipped, Stopped, Idle and Excluded are final: no event but a cancellation, which changes
//! nothing, can happen there. An update begins with each flow in Queued, Idle (a `ONCE` flow that is complete),
//! Excluded (not selected) or Skipped (it depends on an excluded `ONCE` flow that is not complete). Flows that wait
//! for one in Completed, Idle or Excluded may start.

#![deny(missing_docs)]
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod builder;
mod dataset;
mod error;
mod flow;
mod graph;
mod protocol;
mod request;
mod scheduler;
mod settings;
mod state;
mod time;

pub use builder::GraphBuilder;
pub use dataset::{Dataset, DatasetKind};
pub use error::{CdcFact, CycleStep, GraphError, StepReason};
pub use flow::{CdcFacts, Flow, FlowKind, Mode, QueryMode};
pub use graph::{Edge, EdgeKind, FlowId, Graph};
pub use protocol::{Action, Input, Outcome, ProtocolError, UpdateOutcome};
pub use request::{Completions, UpdateRequest};
pub use scheduler::Scheduler;
pub use settings::Settings;
pub use state::FlowState;
pub use time::Timestamp;
