//! What is one event? A line of JSON in the shape of Lakeflow's event log.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use strandline_pipeline_sql::{DatasetDefinition, FlowDefinition, FlowKind};

use crate::report::{FlowReport, FlowStatus};

/// An event of an update.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The update's id and the event's number.
    pub id: String,
    /// Number of the event within its update, from 1.
    pub sequence: u64,
    /// When, as RFC 3339 text in UTC.
    pub timestamp: String,
    /// What kind of event: `create_update`, `update_progress`, `dataset_definition`, `flow_definition`, `flow_progress`.
    pub event_type: String,
    /// `INFO`, `METRICS`, `WARN` or `ERROR`.
    pub level: String,
    /// In words.
    pub message: String,
    /// Of what.
    pub origin: Origin,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<EventError>,
    /// An object with one field, which has the name of the event's kind.
    pub details: Value,
}

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Origin {
    /// The pipeline.
    pub pipeline_name: String,
    /// The update: a number that grows.
    pub update_id: u64,
    /// The flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_name: Option<String>,
    /// The dataset: the flow's target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset_name: Option<String>,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventError {
    /// The name of the error condition, where it has one: `AUTOCDC_INVALID_STATE.KEY_SCHEMA_DRIFT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The message, with its causes.
    pub message: String,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl EventError {
    pub(crate) fn new(message: &str, help: Option<&str>) -> Self {
        Self {
            condition: condition(message).map(str::to_owned),
            message: message.to_owned(),
            help: help.map(str::to_owned),
        }
    }
}

/// The name of the error condition that a message begins with, or a cause within it.
fn condition(message: &str) -> Option<&str> {
    let named = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_uppercase())
            && word.contains('_')
            && word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || matches!(c, '_' | '.'))
    };
    message.split_whitespace().filter_map(|word| word.strip_suffix(':')).find(|word| named(word))
}

/// What a flow of an update is to the log.
#[derive(Debug, Clone)]
pub(super) struct KnownFlow {
    pub(super) target: String,
    /// The rows of its target are changed by events: AUTO CDC, but not from snapshots.
    pub(super) is_change: bool,
}

impl KnownFlow {
    pub(super) fn of(flow: &FlowDefinition) -> Self {
        Self { target: flow.target.clone(), is_change: matches!(flow.kind, FlowKind::AutoCdc(_)) }
    }
}

/// The details of a flow's definition.
pub(super) fn flow_definition(flow: &FlowDefinition) -> Value {
    let inputs: Vec<&str> =
        flow.queries().flat_map(strandline_pipeline_sql::FlowQuery::dataset_names).collect();
    let keys = match &flow.kind {
        FlowKind::AutoCdc(cdc) => Some(&cdc.options),
        FlowKind::Snapshot(snapshot) => Some(&snapshot.options),
        FlowKind::Append { .. } | FlowKind::Update { .. } | FlowKind::Complete { .. } => None,
    };
    json!({
        "output_dataset": flow.target,
        "input_datasets": inputs,
        "flow_type": flow_type(&flow.kind),
        "once": flow.once,
        "depends_on": flow.depends_on,
        "keys": keys.map(|options| &options.keys),
        "stored_as": keys.map(|options| options.stored_as.to_string()),
        "comment": flow.comment,
    })
}

/// The word for what a flow does with its rows.
fn flow_type(kind: &FlowKind) -> &'static str {
    match kind {
        FlowKind::Append { .. } => "APPEND",
        FlowKind::Update { .. } => "UPDATE",
        FlowKind::Complete { .. } => "COMPLETE",
        FlowKind::AutoCdc(_) => "CHANGE",
        FlowKind::Snapshot(_) => "SNAPSHOT",
    }
}

/// The details of a dataset's definition.
pub(super) fn dataset_definition(dataset: &DatasetDefinition) -> Value {
    let kind = match dataset {
        DatasetDefinition::StreamingTable(_) => "STREAMING_TABLE",
        DatasetDefinition::MaterializedView(_) => "MATERIALIZED_VIEW",
        DatasetDefinition::View(_) => "VIEW",
        DatasetDefinition::Sink(_) => "SINK",
    };
    let table = dataset.table();
    let columns =
        table.map(|table| table.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>());
    let expectations = table.map(|table| {
        let text = |one: &strandline_pipeline_sql::Expectation| {
            json!({ "name": one.name, "constraint": one.condition.to_string(), "action": action(one.on_violation) })
        };
        table.expectations.iter().map(text).collect::<Vec<_>>()
    });
    json!({
        "dataset_type": kind,
        "declared_columns": columns.filter(|columns| !columns.is_empty()),
        "expectations": expectations.filter(|all| !all.is_empty()),
        "properties": table.map(|table| &table.properties).filter(|properties| !properties.is_empty()),
        "comment": table.and_then(|table| table.comment.as_ref()),
    })
}

fn action(on_violation: strandline_pipeline_sql::OnViolation) -> &'static str {
    match on_violation {
        strandline_pipeline_sql::OnViolation::Keep => "ALLOW",
        strandline_pipeline_sql::OnViolation::DropRow => "DROP",
        strandline_pipeline_sql::OnViolation::FailUpdate => "FAIL",
    }
}

/// The details of a flow's progress. Upserted and deleted rows are told of change flows only, output rows of others.
pub(super) fn flow_progress(report: &FlowReport, status: FlowStatus, is_change: bool) -> Value {
    let mut details = Map::new();
    details.insert("status".to_owned(), json!(status));
    if status.ran() {
        details.insert("metrics".to_owned(), metrics(report, is_change));
    }
    if let Some(quality) = &report.data_quality {
        details.insert("data_quality".to_owned(), json!(quality));
    }
    if let Some(notice) = &report.notice {
        details.insert("notice".to_owned(), json!(notice));
    }
    Value::Object(details)
}

fn metrics(report: &FlowReport, is_change: bool) -> Value {
    let mut metrics = json!({
        "num_batches": report.batches,
        "num_input_rows": report.rows_in,
        "num_conflicts": report.conflicts,
        "files_read": report.files_read,
        "bytes_read": report.bytes_read,
        "bytes_written": report.bytes_written,
        "seconds": report.elapsed.as_secs_f64(),
    });
    let rows = if is_change {
        json!({
            "num_upserted_rows": report.upserted,
            "num_deleted_rows": report.deleted,
            "num_late_events": report.late,
            "num_tied_events": report.tied,
            "num_tombstone_defeated_events": report.tombstone_defeated,
            "num_barrier_defeated_events": report.barrier_defeated,
            "num_horizon_dropped_events": report.horizon_dropped,
            "num_past_beliefs_rewritten": report.past_beliefs_rewritten,
        })
    } else {
        json!({ "num_output_rows": report.output_rows.unwrap_or(report.upserted) })
    };
    if let (Value::Object(metrics), Value::Object(mut rows)) = (&mut metrics, rows) {
        metrics.append(&mut rows);
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::condition;

    #[test]
    fn r17_the_name_of_a_condition_is_found_where_there_is_one() {
        assert_eq!(condition("AUTOCDC_EMPTY_KEYS: KEYS needs one"), Some("AUTOCDC_EMPTY_KEYS"));
        let caused = "a batch failed (flow f): AUTOCDC_INVALID_STATE.KEY_SCHEMA_DRIFT: keys differ";
        assert_eq!(condition(caused), Some("AUTOCDC_INVALID_STATE.KEY_SCHEMA_DRIFT"));
        for none in ["column __START_AT: no", "the STORE failed: why", "", "A: b"] {
            assert_eq!(condition(none), None, "{none}");
        }
    }
}
