//! What does the SQL text of a pipeline define?
//!
//! [`parse_pipeline`] reads the dialect of Lakeflow and Spark Declarative Pipelines and answers with a
//! [`PipelineDefinition`]: datasets, flows and settings, as plain values. Nothing is looked up and nothing runs: whether
//! a table exists or a column has the right type is found out by those who have tables and columns.
//!
//! - Every query is rewritten so that an engine needs no dialect of ours: [`FlowQuery::sql`] reads placeholder tables,
//!   [`FlowQuery::inputs`] says what stands behind them.
//! - [`PipelineDefinition::to_sql`] writes a definition down such that parsing it gives the same definition.
//! - [`PipelineBuilder`] makes the same definitions from Rust.
//! - Every [`SqlError`] knows its file, line and column and can draw a caret under the offending text.
//!
//! ```
//! use strandline_pipeline_sql::{SourceFile, parse_pipeline};
//!
//! let text = "
//!     CREATE OR REFRESH STREAMING TABLE raw AS SELECT * FROM STREAM read_files('in', format => 'json');
//!     CREATE OR REFRESH STREAMING TABLE customers;
//!     CREATE FLOW live AS AUTO CDC INTO customers FROM STREAM(raw)
//!     KEYS (id) APPLY AS DELETE WHEN op = 'D' SEQUENCE BY ts STORED AS SCD TYPE 2;";
//! let pipeline = parse_pipeline(&[SourceFile::new("pipeline.sql", text)]).expect("a valid pipeline");
//! assert_eq!(pipeline.flows.len(), 2);
//! assert_eq!(pipeline.flows[1].target, "customers");
//! ```

#![deny(missing_docs)]

mod append;
mod builder;
mod cdc;
mod cursor;
mod definition;
mod dialect;
mod error;
mod expectation;
mod expr;
mod flow;
mod graph;
mod lexer;
mod name;
mod options;
mod parse;
mod print;
mod query;
mod read_files;
mod sink;
mod snapshot;
mod source;
mod suggest;
mod table;
mod types;
mod unsupported;
mod values;
mod view;

pub use builder::{AppendFlow, AutoCdcFlow, FlowNames, PipelineBuilder, SnapshotFlow, Table, UpdateFlow};
pub use definition::{
    AutoCdc, DatasetDefinition, Expectation, FlowDefinition, FlowKind, OnViolation, PipelineDefinition,
    SinkDefinition, SnapshotCdc, SnapshotSource, Span, TableDeclaration, ViewDefinition,
};
pub use error::SqlError;
pub use expr::SqlExpr;
pub use options::OptionValue;
pub use parse::{parse_pipeline, parse_pipeline_with, parse_pipeline_with_values};
pub use query::{FlowQuery, InputKind, PathTable, QueryInput};
pub use read_files::{ReadFiles, ReadKafka};
pub use source::SourceFile;
pub use types::{ColumnDef, SqlType};
pub use unsupported::{Feature, Support};
pub use values::Values;
