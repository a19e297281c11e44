//! What does a pipeline consist of?
//!
//! Plain values without behaviour. Two definitions are equal when they say the same, wherever they were written: a
//! [`Span`] never makes a difference.

use std::collections::BTreeMap;

use strandline_cdc_core::spec::{CdcOptions, ColumnSelection};

use crate::{ColumnDef, FlowQuery, SqlExpr};

/// All that a pipeline's text defines, in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PipelineDefinition {
    /// Tables and views.
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
    StreamingTable(StreamingTable),
    /// A named query.
    View(ViewDefinition),
}

impl DatasetDefinition {
    /// The dataset's name; the parts of a qualified name are joined by dots.
    pub fn name(&self) -> &str {
        match self {
            Self::StreamingTable(table) => &table.name,
            Self::View(view) => &view.name,
        }
    }

    /// Where it was written.
    pub fn span(&self) -> Span {
        match self {
            Self::StreamingTable(table) => table.span,
            Self::View(view) => view.span,
        }
    }
}

/// `CREATE STREAMING TABLE`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamingTable {
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
    /// The query that the flow's rows come from.
    pub fn query(&self) -> &FlowQuery {
        match &self.kind {
            FlowKind::Append { query } => query,
            FlowKind::AutoCdc(cdc) => &cdc.source,
            FlowKind::Snapshot(snapshot) => &snapshot.source,
        }
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
    /// Keys, shape, kept and tracked columns. For `STORED AS BITEMPORAL` see [`AutoCdc::bitemporal`].
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
    /// `STORED AS BITEMPORAL`; `options.stored_as` then has its default.
    pub bitemporal: bool,
    /// `IGNORE NULL UPDATES [ON ..]`: the columns in which NULL means "not provided".
    pub ignore_null_updates: Option<ColumnSelection>,
    /// `COLUMNS TO UPDATE column`: the column that says, row by row, which columns the row sets.
    pub columns_to_update: Option<String>,
    /// `VALID TO expr`, of a ONCE flow into SCD type 2: where this is not NULL, the row's version ends there, as if a
    /// delete had come at that sequence.
    pub valid_to: Option<SqlExpr>,
}

/// `AUTO CDC INTO .. FROM SNAPSHOT (query) [WITH VERSION (query)] KEYS (..) ..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotCdc {
    /// One complete image of the source.
    pub source: FlowQuery,
    /// The version of the next snapshot.
    pub version: Option<FlowQuery>,
    /// Keys, shape and tracked columns.
    pub options: CdcOptions,
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
