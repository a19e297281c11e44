//! How do reports look? Tables for people, lines for pipes.

use std::{io::IsTerminal, time::Duration};

use indicatif::{HumanCount, MultiProgress, ProgressBar, ProgressStyle};
use strandline_runtime::{
    FlowReport, FlowStatus, HandoffReport, HandoffSample, Observer, UpdateReport,
    project::{DryRun, Status},
};

/// Shows the progress of an update on standard error: bars on a terminal, plain lines otherwise.
pub(crate) struct Progress {
    bars: Option<MultiProgress>,
    running: std::sync::Mutex<std::collections::BTreeMap<String, ProgressBar>>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let bars = std::io::stderr().is_terminal().then(MultiProgress::new);
        Self { bars, running: std::sync::Mutex::default() }
    }

    fn line(&self, text: &str) {
        match &self.bars {
            // A bar that is gone must not take the message with it.
            Some(bars) => drop(bars.println(text)),
            None => say_err(text),
        }
    }
}

impl Observer for Progress {
    fn started(&self, flow: &str) {
        let Some(bars) = &self.bars else { return };
        let bar = bars.add(ProgressBar::new_spinner());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}  {msg}  {elapsed}") {
            bar.set_style(style);
        }
        bar.set_prefix(flow.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        if let Ok(mut running) = self.running.lock() {
            running.insert(flow.to_owned(), bar);
        }
    }

    fn progressed(&self, report: &FlowReport) {
        let text = format!("batch {}, {} rows", report.batches, HumanCount(report.rows_in));
        match self.running.lock().ok().and_then(|running| running.get(&report.flow).cloned()) {
            Some(bar) => bar.set_message(text),
            None => say_err(&format!("{}: {text}", report.flow)),
        }
    }

    fn ended(&self, report: &FlowReport) {
        if let Some(bar) = self.running.lock().ok().and_then(|mut running| running.remove(&report.flow)) {
            bar.finish_and_clear();
        }
        if let Some(notice) = &report.notice {
            self.line(&format!("{}: {notice}", report.flow));
        }
        if let Some(reason) = &report.reason {
            self.line(&format!("{}: {} because {reason}", report.flow, report.status));
            if let Some(help) = &report.help {
                self.line(&format!("  help: {help}"));
            }
        }
    }
}

/// Prints to standard output; a reader that has gone away (`| head`) is no error.
pub(crate) fn say(text: &str) {
    use std::io::Write as _;
    drop(writeln!(std::io::stdout().lock(), "{text}"));
}

pub(crate) fn say_err(text: &str) {
    use std::io::Write as _;
    drop(writeln!(std::io::stderr().lock(), "{text}"));
}

/// The closing table of an update.
pub(crate) fn report(report: &UpdateReport) -> String {
    let header = ["flow", "status", "batches", "rows in", "upserted", "deleted", "late", "tied", "seconds"];
    let rows = report.flows.iter().map(|flow| {
        let ran = !matches!(flow.status, FlowStatus::Idle | FlowStatus::Skipped);
        let number = |n: u64| if ran { HumanCount(n).to_string() } else { String::new() };
        vec![
            flow.flow.clone(),
            flow.status.to_string(),
            number(flow.batches),
            number(flow.rows_in),
            number(flow.upserted),
            number(flow.deleted),
            number(flow.late),
            number(flow.tied),
            if ran { format!("{:.2}", flow.elapsed.as_secs_f64()) } else { String::new() },
        ]
    });
    table(&header, &rows.collect::<Vec<_>>(), 2)
}

/// What a dry run found.
pub(crate) fn dry_run(dry: &DryRun) -> String {
    let mut lines = vec![dry.graph.trim_end().to_owned()];
    for flow in &dry.flows {
        let keys =
            if flow.keys.is_empty() { String::new() } else { format!(", keys {}", flow.keys.join(", ")) };
        lines.push(format!("\n{} -> {} ({}{keys})", flow.flow, flow.target, flow.kind));
        lines.extend(flow.columns.iter().map(|(name, data_type)| format!("    {name}  {data_type}")));
    }
    lines.join("\n")
}

/// Where flows and tables stand.
pub(crate) fn status(status: &Status) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let flows = status.flows.iter().map(|flow| {
        vec![flow.flow.clone(), flow.batches.to_string(), text(&flow.last_done_at), text(&flow.completed_at)]
    });
    let tables = status.tables.iter().map(|table| {
        vec![
            table.table.clone(),
            table.version.to_string(),
            table.state_version.to_string(),
            table.columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", "),
        ]
    });
    format!(
        "{}\n\n{}",
        table(&["flow", "batches", "last batch", "completed"], &flows.collect::<Vec<_>>(), 1),
        table(&["table", "version", "state", "columns"], &tables.collect::<Vec<_>>(), 1)
    )
}

/// How seeds and live feeds meet.
pub(crate) fn handoff(reports: &[HandoffReport]) -> String {
    let parts = reports.iter().map(|report| {
        let mut lines = vec![
            format!(
                "{}: seed {}, live {}",
                report.target,
                report.seed_flows.join(", "),
                report.live_flows.join(", ")
            ),
            format!("    seeded keys          {}", HumanCount(report.seeded_keys)),
            format!("    live keys            {}", HumanCount(report.live_keys)),
            format!("    keys of both         {}", HumanCount(report.keys_of_both)),
            format!(
                "    keys that overlap    {}; live changes not after the last seeded one: {}",
                HumanCount(report.offending_keys),
                HumanCount(report.offending_changes)
            ),
        ];
        if report.unusable_rows > 0 {
            let rows = HumanCount(report.unusable_rows);
            lines.push(format!("    rows without key or sequence {rows}: an update will refuse them"));
        }
        if !report.samples.is_empty() {
            let rows: Vec<Vec<String>> = report.samples.iter().map(sample).collect();
            let header = ["key", "last seeded", "first live", "changes"];
            lines.push(format!("\n{}", table(&header, &rows, 1)));
        }
        lines.join("\n")
    });
    parts.collect::<Vec<_>>().join("\n\n")
}

fn sample(sample: &HandoffSample) -> Vec<String> {
    let plain = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let key = sample.key.iter().map(|(name, value)| format!("{name} = {}", plain(value)));
    vec![
        key.collect::<Vec<_>>().join(", "),
        plain(&sample.last_seeded),
        plain(&sample.first_live),
        sample.changes.to_string(),
    ]
}

/// A plain table: the first `left` columns are text, the rest are numbers.
fn table(header: &[&str], rows: &[Vec<String>], left: usize) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(header.get(column).map(|name| name.len())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let numeric = |column: usize| {
        column >= left
            && rows
                .iter()
                .filter_map(|row| row.get(column))
                .all(|c| c.chars().all(|c| "0123456789.,".contains(c)))
    };
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded = cells.zip(&widths).enumerate().map(|(i, (cell, &width))| {
            if numeric(i) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let rule: String = widths.iter().map(|&width| "-".repeat(width)).collect::<Vec<_>>().join("  ");
    let mut lines = vec![line(&mut header.iter().copied()), rule];
    lines.extend(rows.iter().map(|row| line(&mut row.iter().map(String::as_str))));
    lines.join("\n")
}
