//! What is a flow, as far as order is concerned?
//!
//! A flow writes one target and reads some datasets. What its rows mean is no matter of this crate: facts that
//! flows of one target must agree on come as opaque text.

use std::fmt;

/// How an update runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Mode {
    /// Each flow processes what is there at its start, then ends.
    #[default]
    Triggered,
    /// Flows go on until they are stopped.
    Continuous,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Triggered => "triggered",
            Self::Continuous => "continuous",
        })
    }
}

/// Whether a flow's query reads its source as a stream or as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueryMode {
    /// Reads what is new since the last time.
    Streaming,
    /// Reads everything that is there.
    Batch,
}

/// What the change flows of one target must agree on, and what keeps a snapshot flow from joining them.
///
/// The text is compared, not understood; write each fact in one canonical spelling.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct CdcFacts {
    /// The key columns, in their declared order.
    pub keys: Vec<String>,
    /// The shape of the target, such as `SCD TYPE 1`.
    pub stored_as: String,
    /// The type of the sequence (of the version, for a snapshot flow); `None` while it is not known, which agrees
    /// with every type.
    pub sequence_type: Option<String>,
    /// The written `TRACK HISTORY` clause; `None` when there is none.
    pub track_history: Option<String>,
    /// Whether the flow sets only some columns of a row (`IGNORE NULL UPDATES`, `COLUMNS TO UPDATE`).
    pub partial_updates: bool,
    /// Whether the target's expectations are judged on the flow's rows.
    pub expectations: bool,
}

impl CdcFacts {
    /// The only [`stored_as`](Self::stored_as) of a target that a snapshot flow shares with change flows.
    pub const SCD1: &str = "SCD TYPE 1";
}

/// What a flow does to its target.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FlowKind {
    /// Appends the rows of its query.
    Append,
    /// Applies change events (`AUTO CDC`).
    AutoCdc(CdcFacts),
    /// Applies whole images of the source (`AUTO CDC ... FROM SNAPSHOT`).
    Snapshot(CdcFacts),
    /// Writes only the rows that changed in the batch; for sinks.
    Update,
    /// Replaces the target by the result of its query; the query of a materialized view.
    Complete,
}

impl FlowKind {
    /// The facts to agree on, for a flow that applies changes.
    pub fn cdc_facts(&self) -> Option<&CdcFacts> {
        match self {
            Self::AutoCdc(facts) | Self::Snapshot(facts) => Some(facts),
            Self::Append | Self::Update | Self::Complete => None,
        }
    }
}

impl fmt::Display for FlowKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Append => "append",
            Self::AutoCdc(_) => "AUTO CDC",
            Self::Snapshot(_) => "AUTO CDC FROM SNAPSHOT",
            Self::Update => "update",
            Self::Complete => "complete",
        })
    }
}

/// A flow of the pipeline, by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Flow {
    pub(crate) name: Option<String>,
    pub(crate) target: String,
    pub(crate) kind: FlowKind,
    pub(crate) query: QueryMode,
    pub(crate) once: bool,
    pub(crate) reads: Vec<String>,
    pub(crate) depends_on: Vec<String>,
}

impl Flow {
    /// A flow into `target`. It bears the target's name until [`named`](Self::named) gives it its own.
    pub fn new(target: impl Into<String>, kind: FlowKind, query: QueryMode) -> Self {
        let (name, once) = (None, false);
        Self { name, target: target.into(), kind, query, once, reads: Vec::new(), depends_on: Vec::new() }
    }

    /// Gives the flow a name of its own.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Makes it a `ONCE` flow: after one success it stays idle.
    #[must_use]
    pub fn once(mut self) -> Self {
        self.once = true;
        self
    }

    /// Adds datasets of the pipeline that the query reads. Sources outside the pipeline are not named here.
    #[must_use]
    pub fn reads<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.reads.extend(names.into_iter().map(Into::into));
        self
    }

    /// Adds flows that must have succeeded before this one starts.
    #[must_use]
    pub fn depends_on<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.depends_on.extend(names.into_iter().map(Into::into));
        self
    }

    /// The flow's name: its own, or else its target's.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.target)
    }

    /// Whether the name was given, and not taken from the target.
    pub fn is_named(&self) -> bool {
        self.name.is_some()
    }

    /// The name of the dataset that it writes.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// What it does to the target.
    pub fn kind(&self) -> &FlowKind {
        &self.kind
    }

    /// How its query reads.
    pub fn query(&self) -> QueryMode {
        self.query
    }

    /// Whether it runs one time only.
    pub fn is_once(&self) -> bool {
        self.once
    }

    /// The datasets of the pipeline that its query reads.
    pub fn read_names(&self) -> &[String] {
        &self.reads
    }

    /// The flows that must have succeeded before it starts.
    pub fn predecessor_names(&self) -> &[String] {
        &self.depends_on
    }
}
