//! Where do flows and tables stand, for people?

use indicatif::HumanCount;
use strandline_runtime::{Status, standing::FlowStanding};

use super::table;

/// Where flows and tables stand.
pub(crate) fn status(status: &Status) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let flows = status.flows.iter().map(|flow| {
        vec![
            flow.flow.clone(),
            text(&flow.state),
            text(&flow.last_done_at),
            text(&flow.completed_at),
            HumanCount(flow.batches).to_string(),
            rows_of(flow).map_or_else(String::new, |rows| HumanCount(rows).to_string()),
        ]
    });
    let tables = status.tables.iter().map(|table| {
        let columns = table.columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>();
        vec![
            table.table.clone(),
            columns.join(", "),
            table.version.to_string(),
            table.state_version.to_string(),
            HumanCount(table.rows).to_string(),
        ]
    });
    let update = status.last_update.as_ref().map_or_else(
        || "no update has run".to_owned(),
        |update| {
            format!(
                "update {}: {}, {} to {}",
                update.id, update.state, update.started_at, update.last_event_at
            )
        },
    );
    let header = ["flow", "state", "last batch", "completed", "batches", "rows of last run"];
    let mut parts = vec![
        update,
        table(&header, &flows.collect::<Vec<_>>(), 4),
        table(&["table", "columns", "version", "state", "rows"], &tables.collect::<Vec<_>>(), 2),
    ];
    let reasons = status
        .flows
        .iter()
        .filter_map(|flow| flow.reason.as_ref().map(|reason| format!("{}: {reason}", flow.flow)));
    let reasons = reasons.collect::<Vec<_>>().join("\n");
    if !reasons.is_empty() {
        parts.insert(2, reasons);
    }
    parts.join("\n\n")
}

/// Rows that came out of the flow's query when it last ran.
pub(crate) fn rows_of(flow: &FlowStanding) -> Option<u64> {
    flow.last_run.as_ref()?.metrics.get("num_input_rows")?.as_u64()
}
