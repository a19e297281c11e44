//! In which order may the flows of a definition run?

use strandline_cdc_core::spec::CdcOptions;
use strandline_flow_graph::{
    CdcFacts, Dataset, Flow, FlowKind as Kind, Graph, GraphBuilder, GraphError, Mode, QueryMode,
};

use crate::{
    DatasetDefinition, FlowDefinition, FlowKind, FlowQuery, PipelineDefinition, SinkDefinition,
    print::selection_sql,
};

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
        self.flows.iter().map(flow).fold(builder, GraphBuilder::flow).build()
    }
}

fn dataset(definition: &DatasetDefinition) -> Dataset {
    match definition {
        DatasetDefinition::StreamingTable(table) => Dataset::streaming_table(&table.name),
        DatasetDefinition::MaterializedView(table) => Dataset::materialized_view(&table.name),
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

fn flow(definition: &FlowDefinition) -> Flow {
    let kind = match &definition.kind {
        FlowKind::Append { .. } => Kind::Append,
        FlowKind::Update { .. } => Kind::Update,
        FlowKind::Complete { .. } => Kind::Complete,
        FlowKind::AutoCdc(cdc) => Kind::AutoCdc(facts(&cdc.options)),
        FlowKind::Snapshot(snapshot) => Kind::Snapshot(facts(&snapshot.options)),
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

fn facts(options: &CdcOptions) -> CdcFacts {
    CdcFacts {
        keys: options.keys.clone(),
        stored_as: options.stored_as.to_string(),
        sequence_type: None,
        track_history: selection_sql(&options.track_history),
    }
}
