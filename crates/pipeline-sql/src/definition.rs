//! What does a pipeline consist of?
//!
//! Plain values without behaviour. Two definitions are equal when they say the same, wherever they were written: a
//! [`Span`] never makes a difference.

use std::collections::BTreeMap;

use strandline_cdc_core::spec::CdcOptions;

use crate::{ColumnDef, FlowQuery, SqlExpr};

/// All that a pipeline's text defines, in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PipelineDefinition {
    /// Tables, views and sinks.
    pub datasets: Vec<DatasetDefinition>,
    /// Flows, those written inside a table's statement included.
    pub flows: Vec<FlowDefinition>,
    /// `SET key = value`; the last one of a key counts.
    pub settings: BTreeMap<String, String>,
}

/// Something that flows write to or read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DatasetDefinition {
    /// A table that flows write.
    StreamingTable(TableDeclaration),
    /// A table that is the result of one query: a flow of kind [`FlowKind::Complete`] that has its name.
    MaterializedView(TableDeclaration),
    /// A named query.
    View(ViewDefinition),
    /// A place outside of the pipeline that flows write.
    Sink(SinkDefinition),
}

impl DatasetDefinition {
    /// The dataset's name; the parts of a qualified name are joined by dots.
    pub fn name(&self) -> &str {
        match self {
            Self::StreamingTable(table) | Self::MaterializedView(table) => &table.name,
            Self::View(view) => &view.name,
            Self::Sink(sink) => &sink.name,
        }
    }

    /// Where it was written.
    pub fn span(&self) -> Span {
        match self {
            Self::StreamingTable(table) | Self::MaterializedView(table) => table.span,
            Self::View(view) => view.span,
            Self::Sink(sink) => sink.span,
        }
    }

    /// What is declared of it, where it is a table that the pipeline keeps.
    pub fn table(&self) -> Option<&TableDeclaration> {
        match self {
            Self::StreamingTable(table) | Self::MaterializedView(table) => Some(table),
            Self::View(_) | Self::Sink(_) => None,
        }
    }
}

/// `CREATE STREAMING TABLE` or `CREATE MATERIALIZED VIEW`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableDeclaration {
    /// Name; the parts of a qualified name are joined by dots.
    pub name: String,
    /// Declared columns; empty when the flows decide.
    pub columns: Vec<ColumnDef>,
    /// `CONSTRAINT .. EXPECT ..`.
    pub expectations: Vec<Expectation>,
    /// `USING format`.
    pub format: Option<String>,
    /// `PARTITIONED BY (..)`.
    pub partitioned_by: Vec<String>,
    /// `CLUSTER BY (..)`.
    pub cluster_by: Vec<String>,
    /// `COMMENT '..'`.
    pub comment: Option<String>,
    /// `TBLPROPERTIES (..)`, keys as written.
    pub properties: BTreeMap<String, String>,
    /// Where it was written.
    pub span: Span,
}

/// `CREATE VIEW`: a named query that holds no rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewDefinition {
    /// Name; the parts of a qualified name are joined by dots.
    pub name: String,
    /// The query.
    pub query: FlowQuery,
    /// `TEMPORARY` (or the older `LIVE`): seen by this pipeline only.
    pub temporary: bool,
    /// `COMMENT '..'`.
    pub comment: Option<String>,
    /// Where it was written.
    pub span: Span,
}

/// `CREATE SINK name USING format [OPTIONS (..)] [COMMENT '..']`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkDefinition {
    /// Name; the parts of a qualified name are joined by dots.
    pub name: String,
    /// What is written, in lower case: `json`, `parquet`, `delta`, or [`SinkDefinition::FOREACH_BATCH`] for code of a
    /// Rust program.
    pub format: String,
    /// `OPTIONS (..)`, keys as written.
    pub options: BTreeMap<String, String>,
    /// `COMMENT '..'`.
    pub comment: Option<String>,
    /// Where it was written.
    pub span: Span,
}

impl SinkDefinition {
    /// The format of a sink made of user code.
    pub const FOREACH_BATCH: &str = "foreachbatch";
}

/// `CONSTRAINT name EXPECT (condition) [ON VIOLATION ..]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    /// Name, unique in its table.
    pub name: String,
    /// The condition that a row should meet.
    pub condition: SqlExpr,
    /// What becomes of a row that does not.
    pub on_violation: OnViolation,
}

/// What becomes of a row that violates an expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnViolation {
    /// It is kept and counted.
    #[default]
    Keep,
    /// `DROP ROW`.
    DropRow,
    /// `FAIL UPDATE`.
    FailUpdate,
}

/// One flow: a query whose rows go into a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowDefinition {
    /// Name; the target's where the text gives none.
    pub name: String,
    /// The dataset that it writes.
    pub target: String,
    /// `ONCE`.
    pub once: bool,
    /// `DEPENDS ON (..)`: flows that must have ended first; each name once.
    pub depends_on: Vec<String>,
    /// What it does with its rows.
    pub kind: FlowKind,
    /// `COMMENT '..'`.
    pub comment: Option<String>,
    /// Where it was written.
    pub span: Span,
}

impl FlowDefinition {
    /// The query that the flow's rows come from; none where they come from a callback.
    pub fn query(&self) -> Option<&FlowQuery> {
        match &self.kind {
            FlowKind::Append { query } | FlowKind::Update { query } | FlowKind::Complete { query } => {
                Some(query)
            }
            FlowKind::AutoCdc(cdc) => Some(&cdc.source),
            FlowKind::Snapshot(snapshot) => match &snapshot.source {
                SnapshotSource::Query { image, .. } => Some(image),
                SnapshotSource::Callback => None,
            },
        }
    }

    /// All queries of the flow: that of its rows, and that of a snapshot's version.
    pub fn queries(&self) -> impl Iterator<Item = &FlowQuery> {
        let version = match &self.kind {
            FlowKind::Snapshot(snapshot) => snapshot.version(),
            FlowKind::Append { .. }
            | FlowKind::Update { .. }
            | FlowKind::Complete { .. }
            | FlowKind::AutoCdc(_) => None,
        };
        self.query().into_iter().chain(version)
    }

    /// As [`FlowDefinition::queries`].
    pub fn queries_mut(&mut self) -> impl Iterator<Item = &mut FlowQuery> {
        let (query, version) = match &mut self.kind {
            FlowKind::Append { query } | FlowKind::Update { query } | FlowKind::Complete { query } => {
                (Some(query), None)
            }
            FlowKind::AutoCdc(cdc) => (Some(&mut cdc.source), None),
            FlowKind::Snapshot(snapshot) => match &mut snapshot.source {
                SnapshotSource::Query { image, version } => (Some(image), version.as_mut()),
                SnapshotSource::Callback => (None, None),
            },
        };
        query.into_iter().chain(version)
    }
}

/// What a flow does with its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowKind {
    /// `INSERT INTO .. BY NAME query`: rows are appended, columns matched by name.
    Append {
        /// The rows.
        query: FlowQuery,
    },
    /// `UPDATE INTO .. BY NAME query`, of a sink: the rows that changed.
    Update {
        /// The rows.
        query: FlowQuery,
    },
    /// The query of a materialized view, computed as a whole in each update.
    Complete {
        /// The rows.
        query: FlowQuery,
    },
    /// `AUTO CDC INTO`: rows are changes.
    AutoCdc(Box<AutoCdc>),
    /// `AUTO CDC INTO .. FROM SNAPSHOT`: rows are complete images.
    Snapshot(Box<SnapshotCdc>),
}

/// `AUTO CDC INTO .. FROM source KEYS (..) ..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutoCdc {
    /// The change rows.
    pub source: FlowQuery,
    /// Keys, shape, kept and tracked columns, partial updates; what has no clause has its default.
    pub options: CdcOptions,
    /// `SEQUENCE BY expr`.
    pub sequence_by: SqlExpr,
    /// `APPLY AS DELETE WHEN condition`.
    pub apply_as_delete: Option<SqlExpr>,
    /// `APPLY AS TRUNCATE WHEN condition`.
    pub apply_as_truncate: Option<SqlExpr>,
    /// `APPLY AS RETRACT WHEN condition`.
    pub apply_as_retract: Option<SqlExpr>,
    /// `SYSTEM SEQUENCE BY expr`.
    pub system_sequence_by: Option<SqlExpr>,
    /// `VALID TO expr`, of a ONCE flow into SCD type 2: where this is not NULL, the row's version ends there, as if a
    /// delete had come at that sequence.
    pub valid_to: Option<SqlExpr>,
}

/// `AUTO CDC INTO .. FROM SNAPSHOT (query) [WITH VERSION (query)] KEYS (..) ..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotCdc {
    /// Where images come from.
    pub source: SnapshotSource,
    /// Keys, shape and tracked columns.
    pub options: CdcOptions,
}

impl SnapshotCdc {
    /// The query of the next snapshot's version.
    pub fn version(&self) -> Option<&FlowQuery> {
        match &self.source {
            SnapshotSource::Query { version, .. } => version.as_ref(),
            SnapshotSource::Callback => None,
        }
    }
}

/// Where the complete images of a snapshot flow come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotSource {
    /// `FROM SNAPSHOT (query) [WITH VERSION (query)]`.
    Query {
        /// One complete image of the source.
        image: FlowQuery,
        /// The version of the next snapshot.
        version: Option<FlowQuery>,
    },
    /// `FROM SNAPSHOT CALLBACK`: code of a Rust program gives each image with its version.
    Callback,
}

/// A place in one of the files given to the parser. Any two spans are equal, so that equal definitions compare equal.
#[derive(Debug, Clone, Copy, Default)]
pub struct Span {
    /// Index of the file among those given.
    pub file: usize,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl PartialEq for Span {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Span {}
