//! In which order may the flows of a definition run?

use strandline_cdc_core::spec::CdcOptions;
use strandline_flow_graph::{
    CdcFacts, Dataset, Flow, FlowKind as Kind, Graph, GraphBuilder, GraphError, Mode, QueryMode,
};

use crate::{
    DatasetDefinition, FlowDefinition, FlowKind, FlowQuery, PipelineDefinition, SinkDefinition,
    TableDeclaration, print::selection_sql,
};

/// The property of a table that, being false, forbids its full refresh.
const RESET_ALLOWED: &str = "pipelines.reset.allowed";

impl PipelineDefinition {
    /// The validated graph of a triggered pipeline.
    ///
    /// # Errors
    /// All errors that can be found: unknown and duplicate names, cycles, flows that don't go together.
    pub fn graph(&self) -> Result<Graph, Vec<GraphError>> {
        self.graph_for(Mode::Triggered)
    }

    /// The validated graph of a pipeline that runs in `mode`.
    ///
    /// # Errors
    /// As [`PipelineDefinition::graph`].
    pub fn graph_for(&self, mode: Mode) -> Result<Graph, Vec<GraphError>> {
        let builder = GraphBuilder::new().mode(mode);
        let builder = self.datasets.iter().map(dataset).fold(builder, GraphBuilder::dataset);
        let flows = self.flows.iter().map(|definition| flow(definition, self.has_expectations(definition)));
        flows.fold(builder, GraphBuilder::flow).build()
    }

    /// Whether the table that the flow writes has expectations; its name may be written in another case.
    fn has_expectations(&self, flow: &FlowDefinition) -> bool {
        let tables = || self.datasets.iter().filter_map(DatasetDefinition::table);
        let exact = tables().find(|table| table.name == flow.target);
        let table =
            exact.or_else(|| tables().find(|table| table.name.to_lowercase() == flow.target.to_lowercase()));
        table.is_some_and(|table| !table.expectations.is_empty())
    }
}

fn dataset(definition: &DatasetDefinition) -> Dataset {
    match definition {
        DatasetDefinition::StreamingTable(table) => {
            Dataset::streaming_table(&table.name).reset_allowed(may_be_reset(table))
        }
        DatasetDefinition::MaterializedView(table) => {
            Dataset::materialized_view(&table.name).reset_allowed(may_be_reset(table))
        }
        DatasetDefinition::Sink(sink) if sink.format == SinkDefinition::FOREACH_BATCH => {
            Dataset::foreach_batch_sink(&sink.name)
        }
        DatasetDefinition::Sink(sink) => Dataset::sink(&sink.name),
        DatasetDefinition::View(view) => {
            let dataset =
                if view.temporary { Dataset::temporary_view(&view.name) } else { Dataset::view(&view.name) };
            dataset.reads(view.query.dataset_names())
        }
    }
}

/// only a written `false` forbids it.
fn may_be_reset(table: &TableDeclaration) -> bool {
    let value = table.properties.get(RESET_ALLOWED);
    !value.is_some_and(|value| value.trim().eq_ignore_ascii_case("false"))
}

fn flow(definition: &FlowDefinition, expectations: bool) -> Flow {
    let kind = match &definition.kind {
        FlowKind::Append { .. } => Kind::Append,
        FlowKind::Update { .. } => Kind::Update,
        FlowKind::Complete { .. } => Kind::Complete,
        FlowKind::AutoCdc(cdc) => Kind::AutoCdc(facts(&cdc.options, expectations)),
        FlowKind::Snapshot(snapshot) => Kind::Snapshot(facts(&snapshot.options, expectations)),
    };
    let reads: Vec<&str> = definition.queries().flat_map(FlowQuery::dataset_names).collect();
    let streaming = definition.query().is_some_and(|query| query.streaming);
    let mode = if streaming { QueryMode::Streaming } else { QueryMode::Batch };
    let mut flow = Flow::new(&definition.target, kind, mode).reads(reads).depends_on(&definition.depends_on);
    if definition.name != definition.target {
        flow = flow.named(&definition.name);
    }
    if definition.once { flow.once() } else { flow }
}

fn facts(options: &CdcOptions, expectations: bool) -> CdcFacts {
    CdcFacts {
        keys: options.keys.clone(),
        stored_as: options.stored_as.to_string(),
        sequence_type: None,
        track_history: selection_sql(&options.track_history),
        partial_updates: options.ignore_null_updates.is_some() || options.columns_to_update.is_some(),
        expectations,
    }
}
