//! What can a flow write to or read from?
//!
//! Invariant: a view has no flow of its own. It holds no rows, so it only passes edges on, from the flows that write
//! what it reads to the flows that read it.

use std::fmt;

/// The kind of a dataset: it decides which flows may write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DatasetKind {
    /// A table that append flows, or AUTO CDC and snapshot flows, maintain.
    StreamingTable,
    /// A table that is the result of one query.
    MaterializedView,
    /// A named query without rows of its own, visible outside the pipeline.
    View,
    /// A named query without rows of its own, visible inside the pipeline only.
    TemporaryView,
    /// An external target of append and update flows.
    Sink,
    /// An external target made of user code that is called once per micro-batch.
    ForeachBatchSink,
}

impl DatasetKind {
    /// Whether this is a table, whose rows are the pipeline's.
    pub fn is_table(self) -> bool {
        matches!(self, Self::StreamingTable | Self::MaterializedView)
    }

    /// Whether this is a view, temporary or not.
    pub fn is_view(self) -> bool {
        matches!(self, Self::View | Self::TemporaryView)
    }

    /// Whether this is a sink, of any make.
    pub fn is_sink(self) -> bool {
        matches!(self, Self::Sink | Self::ForeachBatchSink)
    }
}

impl fmt::Display for DatasetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StreamingTable => "streaming table",
            Self::MaterializedView => "materialized view",
            Self::View => "view",
            Self::TemporaryView => "temporary view",
            Self::Sink => "sink",
            Self::ForeachBatchSink => "foreachBatch sink",
        })
    }
}

/// A dataset of the pipeline, by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Dataset {
    pub(crate) name: String,
    pub(crate) kind: DatasetKind,
    pub(crate) reads: Vec<String>,
    pub(crate) allows_reset: bool,
}

impl Dataset {
    fn new(name: impl Into<String>, kind: DatasetKind) -> Self {
        Self { name: name.into(), kind, reads: Vec::new(), allows_reset: true }
    }

    /// A streaming table; its flows are declared beside it.
    pub fn streaming_table(name: impl Into<String>) -> Self {
        Self::new(name, DatasetKind::StreamingTable)
    }

    /// A materialized view; its query is a flow of kind [`Complete`](crate::FlowKind::Complete).
    pub fn materialized_view(name: impl Into<String>) -> Self {
        Self::new(name, DatasetKind::MaterializedView)
    }

    /// A view; name the datasets that its query reads with [`reads`](Self::reads).
    pub fn view(name: impl Into<String>) -> Self {
        Self::new(name, DatasetKind::View)
    }

    /// A temporary view; name the datasets that its query reads with [`reads`](Self::reads).
    pub fn temporary_view(name: impl Into<String>) -> Self {
        Self::new(name, DatasetKind::TemporaryView)
    }

    /// A sink with a format of its own.
    pub fn sink(name: impl Into<String>) -> Self {
        Self::new(name, DatasetKind::Sink)
    }

    /// A sink made of user code that is called once per micro-batch.
    pub fn foreach_batch_sink(name: impl Into<String>) -> Self {
        Self::new(name, DatasetKind::ForeachBatchSink)
    }

    /// Adds datasets of the pipeline that this view's query reads. Only a view reads; on other kinds the names are
    /// ignored, since their flows do the reading.
    #[must_use]
    pub fn reads<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        if self.kind.is_view() {
            self.reads.extend(names.into_iter().map(Into::into));
        }
        self
    }

    /// Sets whether a table may be refreshed fully (`pipelines.reset.allowed`); true unless set.
    #[must_use]
    pub fn reset_allowed(mut self, allowed: bool) -> Self {
        self.allows_reset = allowed;
        self
    }

    /// Whether it may be refreshed fully.
    pub fn allows_reset(&self) -> bool {
        self.allows_reset
    }

    /// The dataset's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The dataset's kind.
    pub fn kind(&self) -> DatasetKind {
        self.kind
    }

    /// The datasets that a view's query reads; empty for other kinds.
    pub fn read_names(&self) -> &[String] {
        &self.reads
    }
}
