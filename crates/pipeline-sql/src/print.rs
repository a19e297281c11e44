//! Which text says what a definition says?
//!
//! Invariant: parsing the text gives the same definition.

use std::{collections::BTreeMap, fmt::Write as _};

use strandline_cdc_core::spec::{CdcOptions, ColumnSelection, StoredAs};

use crate::{
    AutoCdc, DatasetDefinition, Expectation, FlowDefinition, FlowKind, FlowQuery, OnViolation,
    PipelineDefinition, SinkDefinition, SnapshotCdc, SnapshotSource, TableDeclaration, ViewDefinition,
    name::{list, literal, qualified, quoted},
};

impl PipelineDefinition {
    /// The definition as SQL. Parsing it gives the same definition; flows stand on their own, not within tables.
    pub fn to_sql(&self) -> String {
        let mut statements = Vec::new();
        for (key, value) in &self.settings {
            statements.push(format!("SET {key} = {}", literal(value)));
        }
        let (mut datasets, mut flows) = (self.datasets.iter().peekable(), self.flows.iter().peekable());
        // Tables and flows keep their order, and a materialized view is one of each.
        loop {
            while let Some(dataset) = datasets.next_if(|dataset| materialized(dataset).is_none()) {
                statements.extend(dataset_sql(dataset));
            }
            while let Some(flow) = flows.next_if(|flow| complete(flow).is_none()) {
                statements.extend(flow_sql(flow));
            }
            let Some(view) = datasets.next().and_then(materialized) else { break };
            let own = |flow: &&FlowDefinition| complete(flow).is_some() && flow.target == view.name;
            let flow = flows.next_if(own).or_else(|| self.flows.iter().find(own));
            let mut out = table_sql("MATERIALIZED VIEW", view, &[]);
            if let Some(query) = flow.and_then(complete) {
                line(&mut out, &format!("AS {}", query.text));
            }
            statements.push(out);
        }
        statements.extend(flows.filter_map(flow_sql));
        statements.iter().fold(String::new(), |mut out, statement| {
            out.push_str(statement);
            out.push_str(";\n");
            out
        })
    }
}

fn line(out: &mut String, text: &str) {
    out.push('\n');
    out.push_str(text);
}

fn sink_sql(sink: &SinkDefinition) -> String {
    let mut out = format!("CREATE SINK {} USING {}", qualified(&sink.name), quoted(&sink.format));
    if !sink.options.is_empty() {
        line(&mut out, &format!("OPTIONS {}", pairs_sql(&sink.options)));
    }
    if let Some(comment) = &sink.comment {
        line(&mut out, &format!("COMMENT {}", literal(comment)));
    }
    out
}

fn pairs_sql(pairs: &BTreeMap<String, String>) -> String {
    let pairs = pairs.iter().map(|(key, value)| format!("{} = {}", literal(key), literal(value)));
    format!("({})", pairs.collect::<Vec<_>>().join(", "))
}

/// A table's statement without a query; `more` are constraints beside its own.
pub(crate) fn table_sql(kind: &str, table: &TableDeclaration, more: &[String]) -> String {
    let mut out = format!("CREATE OR REFRESH {kind} {}", qualified(&table.name));
    let columns = table.columns.iter().map(ToString::to_string);
    let constraints = table.expectations.iter().map(expectation_sql);
    let elements: Vec<String> = columns.chain(constraints).chain(more.iter().cloned()).collect();
    if !elements.is_empty() {
        out.push_str(" (\n    ");
        out.push_str(&elements.join(",\n    "));
        out.push_str("\n)");
    }
    if let Some(format) = &table.format {
        line(&mut out, &format!("USING {}", quoted(format)));
    }
    if !table.partitioned_by.is_empty() {
        line(&mut out, &format!("PARTITIONED BY {}", list(&table.partitioned_by)));
    }
    if !table.cluster_by.is_empty() {
        line(&mut out, &format!("CLUSTER BY {}", list(&table.cluster_by)));
    }
    if let Some(comment) = &table.comment {
        line(&mut out, &format!("COMMENT {}", literal(comment)));
    }
    if !table.properties.is_empty() {
        line(&mut out, &format!("TBLPROPERTIES {}", pairs_sql(&table.properties)));
    }
    out
}

fn expectation_sql(expectation: &Expectation) -> String {
    constraint_sql(&quoted(&expectation.name), expectation.condition.text(), expectation.on_violation)
}

pub(crate) fn constraint_sql(name: &str, condition: &str, on_violation: OnViolation) -> String {
    let action = match on_violation {
        OnViolation::Keep => "",
        OnViolation::DropRow => " ON VIOLATION DROP ROW",
        OnViolation::FailUpdate => " ON VIOLATION FAIL UPDATE",
    };
    format!("CONSTRAINT {name} EXPECT ({condition}){action}")
}

fn view_sql(view: &ViewDefinition) -> String {
    let kind = if view.temporary { "TEMPORARY VIEW" } else { "VIEW" };
    let mut out = format!("CREATE {kind} {}", qualified(&view.name));
    if let Some(comment) = &view.comment {
        line(&mut out, &format!("COMMENT {}", literal(comment)));
    }
    line(&mut out, &format!("AS {}", view.query.text));
    out
}

fn materialized(dataset: &DatasetDefinition) -> Option<&TableDeclaration> {
    if let DatasetDefinition::MaterializedView(table) = dataset { Some(table) } else { None }
}

/// A dataset's statement; that of a materialized view has a query, too.
fn dataset_sql(dataset: &DatasetDefinition) -> Option<String> {
    match dataset {
        DatasetDefinition::StreamingTable(table) => Some(table_sql("STREAMING TABLE", table, &[])),
        DatasetDefinition::MaterializedView(_) => None,
        DatasetDefinition::Sink(sink) => Some(sink_sql(sink)),
        DatasetDefinition::View(view) => Some(view_sql(view)),
    }
}

/// The query of a materialized view's flow.
fn complete(flow: &FlowDefinition) -> Option<&FlowQuery> {
    if let FlowKind::Complete { query } = &flow.kind { Some(query) } else { None }
}

/// A flow's statement; the query of a materialized view has none of its own.
fn flow_sql(flow: &FlowDefinition) -> Option<String> {
    let mut out = header_sql(flow);
    let once = if flow.once { " ONCE" } else { "" };
    let target = qualified(&flow.target);
    match &flow.kind {
        FlowKind::Append { query } => {
            let _ = write!(out, "INSERT INTO{once} {target} BY NAME\n{}", query.text);
        }
        FlowKind::Update { query } => {
            let _ = write!(out, "UPDATE INTO{once} {target} BY NAME\n{}", query.text);
        }
        FlowKind::Complete { .. } => return None,
        FlowKind::AutoCdc(cdc) => {
            let _ = write!(out, "AUTO CDC{once} INTO {target}\nFROM ({})", cdc.source.text);
            change_sql(&mut out, cdc);
        }
        FlowKind::Snapshot(snapshot) => {
            let _ = write!(out, "AUTO CDC{once} INTO {target}\nFROM SNAPSHOT ");
            snapshot_sql(&mut out, snapshot);
        }
    }
    Some(out)
}

fn header_sql(flow: &FlowDefinition) -> String {
    let mut out = format!("CREATE FLOW {}", quoted(&flow.name));
    if let Some(comment) = &flow.comment {
        line(&mut out, &format!("COMMENT {}", literal(comment)));
    }
    if !flow.depends_on.is_empty() {
        let names: Vec<String> = flow.depends_on.iter().map(|name| qualified(name)).collect();
        line(&mut out, &format!("DEPENDS ON ({})", names.join(", ")));
    }
    line(&mut out, "AS ");
    out
}

fn change_sql(out: &mut String, cdc: &AutoCdc) {
    line(out, &format!("KEYS {}", list(&cdc.options.keys)));
    if let Some(selection) = &cdc.options.ignore_null_updates {
        let on = selection_sql(selection).map(|columns| format!(" ON {columns}")).unwrap_or_default();
        line(out, &format!("IGNORE NULL UPDATES{on}"));
    }
    let conditions = [
        ("APPLY AS DELETE WHEN", &cdc.apply_as_delete),
        ("APPLY AS TRUNCATE WHEN", &cdc.apply_as_truncate),
        ("APPLY AS RETRACT WHEN", &cdc.apply_as_retract),
    ];
    for (clause, condition) in conditions {
        if let Some(condition) = condition {
            line(out, &format!("{clause} {condition}"));
        }
    }
    line(out, &format!("SEQUENCE BY {}", cdc.sequence_by));
    if let Some(sequence) = &cdc.system_sequence_by {
        line(out, &format!("SYSTEM SEQUENCE BY {sequence}"));
    }
    if let Some(columns) = selection_sql(&cdc.options.columns) {
        line(out, &format!("COLUMNS {columns}"));
    }
    shape_sql(out, &cdc.options);
    if let Some(column) = &cdc.options.columns_to_update {
        line(out, &format!("COLUMNS TO UPDATE {}", quoted(column)));
    }
    if let Some(end) = &cdc.valid_to {
        line(out, &format!("VALID TO {end}"));
    }
}

fn snapshot_sql(out: &mut String, snapshot: &SnapshotCdc) {
    match &snapshot.source {
        SnapshotSource::Query { image, .. } => drop(write!(out, "({})", image.text)),
        SnapshotSource::Callback => out.push_str("CALLBACK"),
    }
    if let Some(version) = snapshot.version() {
        line(out, &format!("WITH VERSION ({})", version.text));
    }
    line(out, &format!("KEYS {}", list(&snapshot.options.keys)));
    shape_sql(out, &snapshot.options);
}

fn shape_sql(out: &mut String, options: &CdcOptions) {
    if options.stored_as != StoredAs::default() {
        line(out, &format!("STORED AS {}", options.stored_as));
    }
    if let Some(columns) = selection_sql(&options.track_history) {
        line(out, &format!("TRACK HISTORY ON {columns}"));
    }
}

/// A selection as its clause writes it; none for all columns.
pub(crate) fn selection_sql(selection: &ColumnSelection) -> Option<String> {
    match selection {
        ColumnSelection::All => None,
        ColumnSelection::Only(columns) => Some(list(columns)),
        ColumnSelection::Except(columns) => Some(format!("* EXCEPT {}", list(columns))),
    }
}
