//! What is wrong with a pipeline, and what should its author do?
//!
//! Every error names the things that clash, both sides of the clash, and the remedy. Where users know a condition
//! name from other systems, the text begins with it and [`GraphError::condition`] gives it alone.

use crate::{DatasetKind, FlowKind};

mod facts;
mod steps;
mod text;

pub use facts::{CdcFact, HybridRule};
pub use steps::{CycleStep, StepReason};
pub(crate) use text::Similar;
use text::{Path, Steps, Tag, wrong_target_remedy};

/// A mistake in the definitions of a pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// Two datasets bear one name.
    #[error("{}the name {name} is given to a {first} and to a {second}; rename one of them", Tag(self))]
    DuplicateDataset {
        /// The name.
        name: String,
        /// The kind of the dataset declared first.
        first: DatasetKind,
        /// The kind of the later one.
        second: DatasetKind,
    },
    /// Two flows bear one name (G-06).
    #[error(
        "{}two flows are named {name}, one into {first_target} and one into {second_target}; {}", Tag(self),
        if *.unnamed { "a flow without a name takes its target's name, so give this one a name of its own" }
        else { "rename one of them" }
    )]
    DuplicateFlow {
        /// The name.
        name: String,
        /// The target of the flow (or the view) declared first.
        first_target: String,
        /// The target of the later one.
        second_target: String,
        /// Whether the later one took its name from the target.
        unnamed: bool,
    },
    /// A flow writes a dataset that is not in the pipeline (G-07).
    #[error("flow {flow} writes {target}, which is not in the pipeline{}; declare it, or correct the name", Similar(.similar))]
    UnknownTarget {
        /// The flow.
        flow: String,
        /// The missing dataset.
        target: String,
        /// Datasets with a similar name.
        similar: Vec<String>,
    },
    /// A flow or view reads a dataset that is not in the pipeline.
    #[error("{reader} reads {dataset}, which is not in the pipeline{}; declare it, or correct the name", Similar(.similar))]
    UnknownRead {
        /// The flow or view.
        reader: String,
        /// The missing dataset.
        dataset: String,
        /// Datasets with a similar name.
        similar: Vec<String>,
    },
    /// A flow depends on a flow that is not in the pipeline (G-20).
    #[error("flow {flow} depends on {predecessor}, but no flow has that name{}; correct the name, or remove it from depends_on", Similar(.similar))]
    UnknownPredecessor {
        /// The flow.
        flow: String,
        /// The missing flow.
        predecessor: String,
        /// Flows with a similar name.
        similar: Vec<String>,
    },
    /// A name fits several things that differ only in case.
    #[error("{user} names {name}, which fits {} when case is ignored; write one of them exactly", .candidates.join(" and "))]
    AmbiguousName {
        /// The flow or view that uses the name.
        user: String,
        /// The name as written.
        name: String,
        /// What it may mean.
        candidates: Vec<String>,
    },
    /// Flows and views wait for each other (G-21).
    #[error("{}{} wait for each other in a circle: {}; remove one of these edges", Tag(self), Path(.steps), Steps(.steps))]
    Cycle {
        /// The edges, each starting where the one before it ends.
        steps: Vec<CycleStep>,
    },
    /// A flow depends on something that writes a view (G-22).
    #[error(
        "flow {flow} depends on {predecessor}, which defines the view {view}; a view holds no rows and never ends, so depend on the flows that write what it reads"
    )]
    DependsOnView {
        /// The flow.
        flow: String,
        /// The flow, or the view itself, as written.
        predecessor: String,
        /// The view.
        view: String,
    },
    /// A flow reads a sink.
    #[error(
        "{reader} reads {sink}, which is a sink; a sink can only be written, so read what its flows read"
    )]
    ReadsSink {
        /// The flow or view.
        reader: String,
        /// The sink.
        sink: String,
    },
    /// A view that outlives the pipeline reads one that does not.
    #[error(
        "{}the view {view} reads the temporary view {temporary}; make {temporary} a view, or {view} temporary",
        Tag(self)
    )]
    ReadsTemporaryView {
        /// The view.
        view: String,
        /// The temporary view that it reads.
        temporary: String,
    },
    /// A flow's kind does not fit the kind of its target (G-17, G-18).
    #[error("{kind} flow {flow} cannot write {target}, which is a {target_kind}; {}", wrong_target_remedy(.kind, *.target_kind))]
    WrongTarget {
        /// The flow.
        flow: String,
        /// The flow's kind.
        kind: Box<FlowKind>,
        /// The target.
        target: String,
        /// The target's kind.
        target_kind: DatasetKind,
    },
    /// Appending and change-applying flows share a target (G-08).
    #[error(
        "{target} is written by the {first_kind} flow {first} and by the {second_kind} flow {second}; a table takes either append flows or AUTO CDC flows, so give {second} a target of its own or make both apply changes"
    )]
    MixedTarget {
        /// The target.
        target: String,
        /// The flow declared first.
        first: String,
        /// Its kind.
        first_kind: Box<FlowKind>,
        /// The flow that does not fit.
        second: String,
        /// Its kind.
        second_kind: Box<FlowKind>,
    },
    /// A second snapshot flow on a target (G-10).
    #[error(
        "{}{target} has two snapshot flows, {first} and {second}; a target takes one, so remove one of them",
        Tag(self)
    )]
    SecondSnapshotFlow {
        /// The target.
        target: String,
        /// The flow declared first.
        first: String,
        /// The later one.
        second: String,
    },
    /// A snapshot flow shares its target with a change flow where it must not (G-11).
    #[error(
        "{}{target} is written by the snapshot flow {snapshot} and by the AUTO CDC flow {change}, but {rule}",
        Tag(self)
    )]
    Hybrid {
        /// The target.
        target: String,
        /// The snapshot flow.
        snapshot: String,
        /// The change flow.
        change: String,
        /// What stands against it.
        rule: HybridRule,
    },
    /// Change flows of one target disagree (G-09).
    #[error(
        "{}flows {first} and {second} of {target} disagree on {fact}: {first} has {first_value}, {second} has {second_value}; make them equal, or give one of them a target of its own",
        Tag(self)
    )]
    DisagreeingFlows {
        /// The target.
        target: String,
        /// What they disagree on.
        fact: CdcFact,
        /// The flow declared first.
        first: String,
        /// Its value.
        first_value: String,
        /// The flow that differs.
        second: String,
        /// Its value.
        second_value: String,
        /// Whether one of them is a snapshot flow and the other is not (G-11).
        hybrid: bool,
    },
    /// A `ONCE` append flow has a streaming query (G-16).
    #[error(
        "{}ONCE flow {flow} into {target} has a streaming query; read its source without STREAM, or drop ONCE",
        Tag(self)
    )]
    StreamingOnce {
        /// The flow.
        flow: String,
        /// Its target.
        target: String,
    },
    /// A flow that goes on for ever has a batch query (G-16).
    #[error("{}flow {flow} into {target} has a batch query; read its source with STREAM, or {}", Tag(self),
        if matches!(**.kind, FlowKind::Update) { "use a materialized view" } else { "make it a ONCE flow" })]
    BatchNotOnce {
        /// The flow.
        flow: String,
        /// Its kind.
        kind: Box<FlowKind>,
        /// Its target.
        target: String,
    },
    /// The query of a materialized view is streaming.
    #[error(
        "{}the query {flow} of the materialized view {target} is streaming; read its source without STREAM, or make {target} a streaming table",
        Tag(self)
    )]
    StreamingMaterializedView {
        /// The flow.
        flow: String,
        /// The materialized view.
        target: String,
    },
    /// A flow that cannot be `ONCE` is (G-18).
    #[error("{kind} flow {flow} into the {target_kind} {target} cannot be ONCE; drop ONCE")]
    OnceNotAllowed {
        /// The flow.
        flow: String,
        /// Its kind.
        kind: Box<FlowKind>,
        /// Its target.
        target: String,
        /// The target's kind.
        target_kind: DatasetKind,
    },
    /// In continuous mode a flow depends on one that never ends (G-23, G-24).
    #[error(
        "{}in continuous mode {flow} depends on {predecessor}, which is not a ONCE flow and so never ends; make {predecessor} ONCE, remove it from depends_on, or run the pipeline triggered",
        Tag(self)
    )]
    PredecessorMustBeOnce {
        /// The flow.
        flow: String,
        /// The predecessor.
        predecessor: String,
    },
    /// A table that nothing writes.
    #[error("{}no flow writes the {kind} {dataset}; add a flow into it, or remove it", Tag(self))]
    DatasetWithoutFlow {
        /// The dataset.
        dataset: String,
        /// Its kind.
        kind: DatasetKind,
    },
    /// A materialized view with several queries.
    #[error("{}the materialized view {dataset} has the queries {}; keep one, or make it a streaming table", Tag(self), .flows.join(" and "))]
    MultipleQueries {
        /// The materialized view.
        dataset: String,
        /// The flows that write it.
        flows: Vec<String>,
    },
}

impl GraphError {
    /// The condition name that users know from other systems, if there is one.
    pub fn condition(&self) -> Option<&'static str> {
        Some(match self {
            Self::DuplicateDataset { .. } => "PIPELINE_DUPLICATE_IDENTIFIERS.OUTPUT",
            Self::DuplicateFlow { .. } => "PIPELINE_DUPLICATE_IDENTIFIERS.FLOW",
            Self::Cycle { .. } => "PIPELINE_GRAPH_NOT_TOPOLOGICALLY_SORTED",
            Self::ReadsTemporaryView { .. } => "INVALID_TEMP_OBJ_REFERENCE",
            Self::SecondSnapshotFlow { .. } => {
                "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_SEVERAL_SNAPSHOT_FLOWS"
            }
            Self::Hybrid { rule, .. } => rule.condition(),
            Self::DisagreeingFlows { fact, hybrid, .. } => fact.condition(*hybrid),
            Self::StreamingOnce { .. } => "INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_ONCE_FLOW",
            Self::BatchNotOnce { .. } => "INVALID_FLOW_QUERY_TYPE.BATCH_RELATION_FOR_STREAMING_TABLE",
            Self::StreamingMaterializedView { .. } => {
                "INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_MATERIALIZED_VIEW"
            }
            Self::PredecessorMustBeOnce { .. } => "DEPENDS_ON_PREDECESSOR_MUST_BE_ONCE",
            Self::DatasetWithoutFlow { .. } => "PIPELINE_DATASET_WITHOUT_FLOW",
            Self::MultipleQueries { .. } => "MATERIALIZED_VIEW_WITH_MULTIPLE_QUERIES",
            Self::UnknownTarget { .. }
            | Self::UnknownRead { .. }
            | Self::UnknownPredecessor { .. }
            | Self::AmbiguousName { .. }
            | Self::DependsOnView { .. }
            | Self::ReadsSink { .. }
            | Self::WrongTarget { .. }
            | Self::MixedTarget { .. }
            | Self::OnceNotAllowed { .. } => return None,
        })
    }
}
