//! Do the constraints of a table make sense of the rows that its flows give it?

use std::{collections::BTreeMap, sync::Arc};

use arrow_schema::SchemaRef;
use strandline_pipeline_sql::{FlowDefinition, FlowKind, PipelineDefinition, TableDeclaration};

use super::{FlowAnalysis, Work, union};
use crate::{
    error::{Error, ErrorKind, Result},
    expectations::{Expectations, quarantine_columns},
    properties::QUARANTINE,
};

/// Flows by name, each understood or with the reason why not.
type Flows = BTreeMap<String, Result<FlowAnalysis>>;

/// Checks the constraints of each table against the rows of all of its flows, and what becomes of rows that are dropped.
pub(super) fn check(definition: &PipelineDefinition, flows: &mut Flows) {
    for table in definition.datasets.iter().filter_map(|dataset| dataset.table()) {
        let writers: Vec<_> = definition.flows.iter().filter(|flow| flow.target == table.name).collect();
        let Some(columns) = columns(&writers, flows) else { continue };
        for writer in writers {
            let Some(Ok(analysis)) = flows.get_mut(&writer.name) else { continue };
            analysis.judged = Arc::clone(&columns);
            if let Err(error) = check_flow(definition, table, writer, analysis) {
                flows.insert(writer.name.clone(), Err(error.with("flow", &writer.name)));
            }
        }
    }
}

/// What the table keeps of the rows of all flows that could be understood.
fn columns(writers: &[&FlowDefinition], flows: &Flows) -> Option<SchemaRef> {
    let mut columns: Option<SchemaRef> = None;
    for writer in writers {
        let Some(Ok(analysis)) = flows.get(&writer.name) else { continue };
        let own = match &analysis.work {
            Work::Cdc(cdc) => cdc.spec.kept_schema(),
            Work::Append | Work::View(_) | Work::Sink(_) => &analysis.target,
        };
        columns = Some(columns.map_or_else(|| Arc::clone(own), |known| union(&known, own)));
    }
    columns
}

fn check_flow(
    definition: &PipelineDefinition,
    table: &TableDeclaration,
    flow: &FlowDefinition,
    analysis: &FlowAnalysis,
) -> Result<()> {
    if table.expectations.is_empty() && analysis.properties.quarantine.is_none() {
        return Ok(());
    }
    if matches!(flow.kind, FlowKind::Snapshot(_)) {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "ACFS_WITH_EXPECTATION_DISABLED: the target of a snapshot flow can't have constraints",
        )
        .with("table", &table.name)
        .help("check the rows in a view, or in a table that reads this one"));
    }
    Expectations::new(&table.name, &table.expectations, &analysis.judged)?;
    let Some(quarantine) = &analysis.properties.quarantine else { return Ok(()) };
    check_quarantine(definition, table, quarantine).map_err(|error| error.with("table", &table.name))?;
    let sequence = match &analysis.work {
        Work::Cdc(cdc) => Some(cdc.spec.sequence_type()),
        Work::Append | Work::View(_) | Work::Sink(_) => None,
    };
    quarantine_columns(&analysis.judged, sequence).map(drop)
}

/// A quarantine table is the engine's, and of one table alone.
fn check_quarantine(
    definition: &PipelineDefinition,
    table: &TableDeclaration,
    quarantine: &str,
) -> Result<()> {
    let refused = |why: &str| {
        Err(Error::new(ErrorKind::Definition, why.to_owned())
            .with("property", QUARANTINE)
            .with("value", quarantine))
    };
    if definition.datasets.iter().any(|dataset| dataset.name() == quarantine) {
        return refused("the quarantine table is made by the engine, so nothing else can have its name");
    }
    let mut tables = definition.datasets.iter().filter_map(|dataset| dataset.table());
    if tables.any(|other| {
        other.name != table.name && other.properties.get(QUARANTINE).is_some_and(|name| name == quarantine)
    }) {
        return refused("two tables can't have one quarantine table");
    }
    if table.expectations.is_empty() {
        return refused("a table without constraints drops nothing into quarantine");
    }
    Ok(())
}
