//! What did an update do, or would it do, for people?

use indicatif::{HumanBytes, HumanCount};
use strandline_runtime::{
    FlowReport, UpdateReport,
    project::{Asked, DryRun},
};

use super::table;

/// A counter that is shown where some flow has something to count.
type Counter = (&'static str, fn(&FlowReport) -> u64);

const RARE: [Counter; 6] = [
    ("defeated by deletes", |flow| flow.tombstone_defeated),
    ("before a barrier", |flow| flow.barrier_defeated),
    ("before the horizon", |flow| flow.horizon_dropped),
    ("past beliefs rewritten", |flow| flow.past_beliefs_rewritten),
    ("dropped", |flow| flow.data_quality.as_ref().map_or(0, |quality| quality.dropped_records)),
    ("conflicts", |flow| flow.conflicts),
];

/// The closing table of an update, and what a person should know beyond it.
pub(crate) fn report(report: &UpdateReport) -> String {
    let rare: Vec<&Counter> =
        RARE.iter().filter(|(_, count)| report.flows.iter().any(|flow| count(flow) > 0)).collect();
    let mut header = vec!["flow", "status", "batches", "rows in", "upserted", "deleted", "late", "tied"];
    header.extend(rare.iter().map(|(name, _)| *name));
    header.extend(["read", "written", "seconds"]);
    let rows = report.flows.iter().map(|flow| {
        let ran = flow.status.ran();
        let number = |n: u64| if ran { HumanCount(n).to_string() } else { String::new() };
        let counts = [flow.batches, flow.rows_in, flow.upserted, flow.deleted, flow.late, flow.tied];
        let mut row = vec![flow.flow.clone(), flow.status.to_string()];
        row.extend(counts.into_iter().chain(rare.iter().map(|(_, count)| count(flow))).map(number));
        let bytes = |n: u64| if ran { HumanBytes(n).to_string() } else { String::new() };
        row.extend([bytes(flow.bytes_read), bytes(flow.bytes_written)]);
        row.push(if ran { format!("{:.2}", flow.elapsed.as_secs_f64()) } else { String::new() });
        row
    });
    let mut text = table(&header, &rows.collect::<Vec<_>>(), 2);
    let more: Vec<String> = report.flows.iter().flat_map(remarks).collect();
    if !more.is_empty() {
        text.push_str("\n\n");
        text.push_str(&more.join("\n"));
    }
    text
}

/// Notices, and constraints that rows violated.
fn remarks(flow: &FlowReport) -> Vec<String> {
    let mut remarks: Vec<String> =
        flow.notice.iter().map(|notice| format!("{}: {notice}", flow.flow)).collect();
    for found in flow.data_quality.iter().flat_map(|quality| &quality.expectations) {
        if found.failed_records > 0 {
            let all = found.passed_records + found.failed_records;
            remarks.push(format!(
                "{}: {} of {} rows violate {} of {}",
                flow.flow,
                HumanCount(found.failed_records),
                HumanCount(all),
                found.name,
                found.dataset
            ));
        }
    }
    remarks
}

/// What a dry run found.
pub(crate) fn dry_run(dry: &DryRun) -> String {
    let mut lines = vec![dry.graph.trim_end().to_owned()];
    for flow in &dry.flows {
        let keys =
            if flow.keys.is_empty() { String::new() } else { format!(", keys {}", flow.keys.join(", ")) };
        let asked = match flow.asked {
            Asked::Refresh => "",
            Asked::FullRefresh => ": would be refreshed fully",
            Asked::ResetCheckpoint => ": would read its source anew",
            Asked::Exclude => ": would not run",
        };
        lines.push(format!("\n{} -> {} ({}{keys}){asked}", flow.flow, flow.target, flow.kind));
        lines.extend(flow.columns.iter().map(|(name, data_type)| format!("    {name}  {data_type}")));
    }
    lines.join("\n")
}
