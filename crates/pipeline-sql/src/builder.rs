//! How does a Rust program define a pipeline?
//!
//! With the same fragments of SQL for queries and expressions, and values for the rest. The builder writes the pipeline
//! down and parses it, so both ways give the same definitions and the same errors (G-05).

mod changes;
mod flows;
mod head;
mod tables;

use crate::{
    DatasetDefinition, PipelineDefinition, SinkDefinition, SourceFile, SqlError, Support,
    name::{literal, qualified},
    parse_pipeline_with,
};
pub use changes::AutoCdcFlow;
pub use flows::{AppendFlow, SnapshotFlow, UpdateFlow};
pub use head::FlowNames;
pub use tables::Table;

/// Collects the parts of a pipeline.
///
/// ```
/// use strandline_pipeline_sql::{AppendFlow, AutoCdcFlow, PipelineBuilder};
///
/// let pipeline = PipelineBuilder::new()
///     .streaming_table("raw")
///     .streaming_table("customers")
///     .append_flow(AppendFlow::new("raw", "SELECT * FROM STREAM read_files('in', format => 'json')"))
///     .auto_cdc_flow(AutoCdcFlow::new("customers", "STREAM(raw)").keys(["id"]).sequence_by("ts"))
///     .build()
///     .expect("a valid pipeline");
/// assert_eq!(pipeline.flows[1].name, "customers");
/// ```
#[derive(Debug, Clone, Default)]
pub struct PipelineBuilder {
    files: Vec<SourceFile>,
}

impl PipelineBuilder {
    /// A pipeline without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// `SET key = value`.
    #[must_use]
    pub fn set(self, key: &str, value: &str) -> Self {
        self.part(format!("setting {key}"), format!("SET {key} = {}", literal(value)))
    }

    /// A streaming table of which nothing but the name is declared.
    #[must_use]
    pub fn streaming_table(self, name: &str) -> Self {
        self.table(name)
    }

    /// A streaming table.
    #[must_use]
    pub fn table(self, table: impl Into<Table>) -> Self {
        let table = table.into();
        self.part(format!("table {}", table.name()), table.sql("STREAMING TABLE"))
    }

    /// A table that is the result of a query: `table` is its name, or more of its declaration.
    #[must_use]
    pub fn materialized_view(self, table: impl Into<Table>, query: &str) -> Self {
        let table = table.into();
        let text = format!("{}\nAS {query}", table.sql("MATERIALIZED VIEW"));
        self.part(format!("materialized view {}", table.name()), text)
    }

    /// A place outside of the pipeline that flows write.
    #[must_use]
    pub fn sink(self, sink: SinkDefinition) -> Self {
        let name = format!("sink {}", sink.name);
        let datasets = vec![DatasetDefinition::Sink(sink)];
        self.part(name, PipelineDefinition { datasets, ..PipelineDefinition::default() }.to_sql())
    }

    /// A sink made of code of the program, which is given to the runtime under the same name.
    #[must_use]
    pub fn foreach_batch_sink(self, name: &str) -> Self {
        self.sink(SinkDefinition::new(name, SinkDefinition::FOREACH_BATCH))
    }

    /// A view over a query.
    #[must_use]
    pub fn view(self, name: &str, query: &str) -> Self {
        self.part(format!("view {name}"), format!("CREATE VIEW {} AS {query}", qualified(name)))
    }

    /// A view that only this pipeline sees.
    #[must_use]
    pub fn temporary_view(self, name: &str, query: &str) -> Self {
        self.part(format!("view {name}"), format!("CREATE TEMPORARY VIEW {} AS {query}", qualified(name)))
    }

    /// A flow that appends rows.
    #[must_use]
    pub fn append_flow(self, flow: AppendFlow) -> Self {
        self.flow(flow.into_statement())
    }

    /// A flow that writes what changed into a sink.
    #[must_use]
    pub fn update_flow(self, flow: UpdateFlow) -> Self {
        self.flow(flow.into_statement())
    }

    /// A flow that applies changes.
    #[must_use]
    pub fn auto_cdc_flow(self, flow: AutoCdcFlow) -> Self {
        self.flow(flow.into_statement())
    }

    /// A flow that compares snapshots.
    #[must_use]
    pub fn snapshot_flow(self, flow: SnapshotFlow) -> Self {
        self.flow(flow.into_statement())
    }

    fn flow(self, (name, text): (String, String)) -> Self {
        self.part(format!("flow {name}"), text)
    }

    /// Parts written as SQL statements.
    #[must_use]
    pub fn sql(self, name: &str, text: &str) -> Self {
        self.part(name.to_owned(), text.to_owned())
    }

    fn part(mut self, name: String, text: String) -> Self {
        self.files.push(SourceFile::new(name, text));
        self
    }

    /// The definition of all parts, for what this release executes.
    ///
    /// # Errors
    /// As [`crate::parse_pipeline`]; the file of an error is the part that it is about.
    pub fn build(self) -> Result<PipelineDefinition, Vec<SqlError>> {
        self.build_with(&Support::released())
    }

    /// The definition of all parts, refusing what `support` lacks.
    ///
    /// # Errors
    /// As [`PipelineBuilder::build`].
    pub fn build_with(self, support: &Support) -> Result<PipelineDefinition, Vec<SqlError>> {
        parse_pipeline_with(&self.files, support)
    }
}
