//! Do the flows of one target mean the same table, and which columns does it get from all of them?
//!
//! A target is a function of the events of all of its flows, so they must agree on what an event's place is and on what
//! opens a version. Their columns may differ: each flow leaves alone what only others have.

use std::{collections::BTreeMap, sync::Arc};

use arrow_schema::{Field, Schema, SchemaRef};
use strandline_cdc_core::{CdcSpec, FlowTerms, Target, names};
use strandline_pipeline_sql::{FlowDefinition, FlowKind, PipelineDefinition, TableDeclaration};

use super::{FlowAnalysis, Work, table_of, union};
use crate::{
    error::{Error, ErrorKind, Result},
    types::schema_of,
};

/// Flows by name, each understood or with the reason why not.
type Flows = BTreeMap<String, Result<FlowAnalysis>>;

/// Checks the CDC flows of each target against each other (G-09) and against its declared columns (G-15), and gives each
/// of them the columns of all.
pub(super) fn agree(definition: &PipelineDefinition, flows: &mut Flows) {
    let mut targets: Vec<&str> = Vec::new();
    for flow in definition.flows.iter().filter(|flow| is_cdc(flow)) {
        if !targets.contains(&flow.target.as_str()) {
            targets.push(&flow.target);
        }
    }
    for target in targets {
        let writers: Vec<_> =
            definition.flows.iter().filter(|flow| flow.target == target && is_cdc(flow)).collect();
        let table = table_of(definition, target);
        if writers.len() > 1 {
            share(&writers, table, flows);
        }
        for writer in writers {
            let checked = match flows.get(&writer.name) {
                Some(Ok(FlowAnalysis { work: Work::Cdc(cdc), target, .. })) => {
                    // Columns of a flow that could not be understood are not known.
                    let all_known = cdc.unknown_peer.is_none();
                    check_declared(table, cdc.spec.sequence_column_name(), target, all_known)
                }
                _ => Ok(()),
            };
            if let Err(error) = checked {
                flows.insert(writer.name.clone(), Err(error.with("flow", &writer.name)));
            }
        }
    }
}

fn is_cdc(flow: &FlowDefinition) -> bool {
    matches!(flow.kind, FlowKind::AutoCdc(_) | FlowKind::Snapshot(_))
}

/// Gives the flows of a target the columns of all of them, or an error to each that disagrees with one before it.
fn share(writers: &[&FlowDefinition], table: Option<&TableDeclaration>, flows: &mut Flows) {
    let mut refused = disagreements(writers, table, flows);
    name_keys(writers, flows);
    let unknown =
        writers.iter().find(|flow| !matches!(flows.get(&flow.name), Some(Ok(_)))).map(|f| f.name.clone());
    let mut columns: Option<SchemaRef> = None;
    for writer in writers {
        if let Some(spec) = spec_of(flows, &writer.name) {
            let own = spec.kept_schema();
            columns = Some(columns.map_or_else(|| Arc::clone(own), |known| union(&known, own)));
        }
    }
    let Some(columns) = columns else { return };
    let mut created: Option<SchemaRef> = None;
    for writer in writers {
        let Some(own) = spec_of(flows, &writer.name).cloned() else { continue };
        let agreed = refused
            .remove(&writer.name)
            .map_or(Ok(()), Err)
            .and_then(|()| check_types(writers, flows, writer, &own))
            .and_then(|()| Ok(own.with_target_columns(&columns)?));
        match agreed {
            Err(error) => drop(flows.insert(writer.name.clone(), Err(error))),
            Ok(spec) => {
                let created = created.get_or_insert_with(|| Arc::clone(spec.target_schema()));
                if let Some(Ok(analysis)) = flows.get_mut(&writer.name) {
                    analysis.target = Arc::clone(created);
                    if let Work::Cdc(work) = &mut analysis.work {
                        work.spec = spec;
                        work.shared = Some(Arc::clone(&columns));
                        work.unknown_peer.clone_from(&unknown);
                    }
                }
            }
        }
    }
}

fn spec_of<'a>(flows: &'a Flows, name: &str) -> Option<&'a CdcSpec> {
    match flows.get(name) {
        Some(Ok(FlowAnalysis { work: Work::Cdc(cdc), .. })) => Some(&cdc.spec),
        _ => None,
    }
}

fn disagree(
    what: &str,
    (first, theirs): (&FlowDefinition, String),
    (second, own): (&FlowDefinition, String),
) -> Result<()> {
    if theirs == own {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Definition, format!("flows of one target disagree about the {what}"))
        .with("target", &first.target)
        .with("flow", &first.name)
        .with("has", theirs)
        .with("other flow", &second.name)
        .with("which has", own)
        .help("cast or rename in the query of one of them"))
}

/// The keys of a hybrid target are called as its change flows call them; a snapshot flow may spell them in another case.
fn name_keys(writers: &[&FlowDefinition], flows: &mut Flows) {
    let leader = writers.iter().find(|flow| matches!(flow.kind, FlowKind::AutoCdc(_)));
    let Some(names) = leader
        .and_then(|leader| spec_of(flows, &leader.name))
        .map(|spec| spec.key_names().into_iter().map(str::to_owned).collect::<Vec<_>>())
    else {
        return;
    };
    for writer in writers.iter().filter(|flow| matches!(flow.kind, FlowKind::Snapshot(_))) {
        if let Some(Ok(FlowAnalysis { work: Work::Cdc(work), .. })) = flows.get_mut(&writer.name) {
            work.name_keys(&names);
        }
    }
}

/// What the flows of a target do not agree on, by the flow that comes later.
fn disagreements(
    writers: &[&FlowDefinition],
    table: Option<&TableDeclaration>,
    flows: &Flows,
) -> BTreeMap<String, Error> {
    let has_expectations = table.is_some_and(|table| !table.expectations.is_empty());
    let terms = |writer: &&FlowDefinition| {
        let spec = spec_of(flows, &writer.name)?.clone();
        let name = writer.name.clone();
        let is_snapshot = matches!(writer.kind, FlowKind::Snapshot(_));
        // In continuous mode the graph refuses a hybrid target before.
        Some(FlowTerms { name, spec, is_snapshot, has_expectations, is_continuous: false })
    };
    let terms: Vec<FlowTerms> = writers.iter().filter_map(terms).collect();
    let mut refused = BTreeMap::new();
    for problem in Target::admit(&terms).err().unwrap_or_default() {
        let Some(flow) = problem.flows.last().cloned() else { continue };
        let flows = problem.flows.join(" and ");
        let message = format!("{}: flows {flows} of one target {}", problem.condition, problem.problem);
        refused
            .entry(flow)
            .or_insert_with(|| Error::new(ErrorKind::Definition, message).help(problem.remedy));
    }
    refused
}

/// A column that several flows have is of one type.
fn check_types(
    writers: &[&FlowDefinition],
    flows: &Flows,
    second: &FlowDefinition,
    own: &CdcSpec,
) -> Result<()> {
    for first in writers.iter().take_while(|flow| flow.name != second.name) {
        let Some(theirs) = spec_of(flows, &first.name) else { continue };
        for field in own.kept_schema().fields() {
            if let Ok(other) = theirs.kept_schema().field_with_name(field.name()) {
                let what = format!("type of column `{}`", field.name());
                let types = (other.data_type().to_string(), field.data_type().to_string());
                disagree(&what, (first, types.0), (second, types.1))?;
            }
        }
    }
    Ok(())
}

/// A declared CDC target must have the columns that its flows give it, the system columns among them (G-15).
fn check_declared(
    table: Option<&TableDeclaration>,
    sequence_column: &str,
    target: &Schema,
    all_known: bool,
) -> Result<()> {
    let Some(table) = table.filter(|table| !table.columns.is_empty()) else { return Ok(()) };
    let declared = schema_of(&table.columns);
    for field in target.fields() {
        let found = declared.field_with_name(field.name()).ok().map(Field::data_type);
        let own = field.name() == names::SEQUENCE_AT && sequence_column == names::SEQUENCE_AT;
        if found == Some(field.data_type()) || own {
            continue;
        }
        let found = found.map_or_else(|| "none".to_owned(), ToString::to_string);
        return Err(Error::new(
            ErrorKind::Definition,
            "the declared columns of the target are not those of its flow",
        )
        .with("column", field.name())
        .with("declared", found)
        .with("needed", field.data_type())
        .help("declare it so, or declare no columns"));
    }
    for field in declared.fields().iter().filter(|_| all_known) {
        if target.field_with_name(field.name()).is_err() {
            return Err(Error::new(
                ErrorKind::Definition,
                "the target declares a column that its flow does not have",
            )
            .with("column", field.name()));
        }
    }
    Ok(())
}
