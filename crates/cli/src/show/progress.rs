//! What is said while an update runs? Bars on a terminal, plain lines in a pipe; always on standard error.

use std::{collections::BTreeMap, io::IsTerminal, sync::Mutex, time::Duration};

use indicatif::{HumanCount, MultiProgress, ProgressBar, ProgressStyle};
use strandline_runtime::{FlowReport, FlowStatus, Observer};

use super::say_err;

/// Shows the progress of an update on standard error: bars on a terminal, plain lines otherwise.
pub(crate) struct Progress {
    bars: Option<MultiProgress>,
    running: Mutex<BTreeMap<String, ProgressBar>>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let bars = std::io::stderr().is_terminal().then(MultiProgress::new);
        Self { bars, running: Mutex::default() }
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
        if let Some(reason) = &report.reason {
            self.line(&format!("{}: {} because {reason}", report.flow, report.status));
            if let Some(help) = &report.help {
                self.line(&format!("  help: {help}"));
            }
        }
    }

    fn entered(&self, flow: &str, status: FlowStatus) {
        if let Some(bar) = self.running.lock().ok().and_then(|running| running.get(flow).cloned()) {
            bar.set_message(status.to_string().to_lowercase());
        }
    }

    fn retries(&self, report: &FlowReport) {
        if let Some(bar) = self.running.lock().ok().and_then(|mut running| running.remove(&report.flow)) {
            bar.finish_and_clear();
        }
        let reason = report.reason.as_deref().unwrap_or("of an error");
        self.line(&format!(
            "{}: an attempt failed and there will be another one, because {reason}",
            report.flow
        ));
    }
}
