//! Which flow of a pipeline may start now?
//!
//! A pipeline is a set of datasets and of flows that write them. [`GraphBuilder`] takes the definitions in any
//! order and either makes a [`Graph`] or reports every mistake it finds. The graph then answers which flows must
//! have ended before another one may start: data edges (a flow reads what another one writes, directly or through
//! views) and order edges (`depends_on`).
//!
//! Nothing here reads a clock, starts a thread or touches a file.
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

#![deny(missing_docs)]
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod builder;
mod dataset;
mod error;
mod flow;
mod graph;

pub use builder::GraphBuilder;
pub use dataset::{Dataset, DatasetKind};
pub use error::{CdcFact, CycleStep, GraphError, StepReason};
pub use flow::{CdcFacts, Flow, FlowKind, Mode, QueryMode};
pub use graph::{Edge, EdgeKind, FlowId, Graph};
