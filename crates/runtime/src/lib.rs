//! The place where things happen: what does a pipeline need besides definitions?
//!
//! | room | what it knows |
//! | --- | --- |
//! | [`project`] | a pipeline with its storage: run, dry run, query |
//! | `analysis` | columns, types and meaning of every flow, before anything runs |
//! | `checkpoint` | where a flow's reading stands, to begin from elsewhere |
//! | `update` | the driver that obeys the scheduler |
//! | `flow_run` | one flow, batch by batch, from where it stopped |
//! | `batch` | one micro-batch into its target, exactly once |
//! | [`handoff`] | how a target's seed and its live feed meet, key by key |
//! | [`sinks`] | where rows go that leave the pipeline |
//! | [`sources`] | replayable input: files, tables |
//! | [`snapshots`] | complete images that a Rust program gives |
//! | `query`, `relation` | a flow's query over one slice of its source, run by `DataFusion`; questions asked of tables |
//! | `target`, `properties`, `settings` | opening and creating targets, drift, `TBLPROPERTIES`, `SET` |
//! | `expectations` | which rows keep what their table promises, and where the others go |
//! | `refresh` | what a full refresh clears, and how that survives a crash |
//! | `retention` | how long tombstones are kept |
//! | [`standing`] | where a pipeline stands between two updates |
//! | [`state`] | what outlives the process: plans, done marks, completions, lease |
//! | [`storage`] | where a pipeline keeps its tables: folders, and object stores by URL |
//! | [`report`], `events` | what an update did, for people and for machines |
//!
//! # One micro-batch, exactly once
//! The plan of batch n is written before its input is read; the target's commit carries (flow, incarnation, n) and the
//! version of the side state in the same step as the rows. After a crash n runs again from its plan; if the target
//! carries n it is done, if not nothing of it happened.

#![deny(missing_docs)]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the enums matched here are those of other crates, which grow"
)]

mod analysis;
mod batch;
mod checkpoint;
pub mod clock;
pub mod error;
mod events;
mod expectations;
mod flow_run;
pub mod handoff;
pub mod maintenance;
pub mod project;
mod properties;
mod query;
mod recorded;
mod refresh;
mod relation;
pub mod report;
mod retention;
mod settings;
pub mod sinks;
pub mod snapshots;
pub mod sources;
pub mod standing;
pub mod state;
pub mod storage;
mod target;
pub mod types;
mod update;

/// Definitions of pipelines, from SQL text or built in Rust: the crate `strandline-pipeline-sql`.
pub use strandline_pipeline_sql as definition;

/// How an update runs, and what it is asked for.
pub use strandline_flow_graph::{Mode, UpdateRequest};

pub use checkpoint::Checkpoint;
pub use error::{Error, ErrorKind, Result};
pub use events::{Event, EventError, Origin};
pub use handoff::{HandoffReport, HandoffSample};
pub use project::{Project, query};
pub use query::as_of::{AsOf, History};
pub use report::{DataQuality, ExpectationCounts, FlowReport, FlowStatus, Observer, UpdateReport};
pub use snapshots::{Snapshot, SnapshotProvider, SnapshotVersion};
pub use standing::{Status, status};
pub use storage::{Location, Storage, StoreOptions};
