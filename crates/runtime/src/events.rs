//! What happens while an update runs, for machines: one JSON object a line, with the names of Lakeflow's event log.
//!
//! Events are written while the update runs, each within about a second, so that a process that is killed leaves what
//! happened until then. They can be read with `SELECT .. FROM events()`; see [`table`] for the columns, [`segments`] for
//! how they lie there.

mod event;
pub(crate) mod segments;
pub(crate) mod table;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use object_store::ObjectStore;
use serde_json::{Value, json};
use strandline_flow_graph::{Mode, UpdateRequest};
use strandline_pipeline_sql::PipelineDefinition;

pub use event::{Event, EventError, Origin};

use crate::{
    clock::{Clock, rfc3339},
    error::{Error, Result},
    report::{FlowReport, FlowStatus, Observer, UpdateReport},
};
use event::KnownFlow;
use segments::Segments;

/// Events are written when the oldest that is not is this old.
const CADENCE: Duration = Duration::from_secs(1);

/// The event log of one update; passes what it sees on to another observer.
pub(crate) struct EventLog {
    clock: Arc<dyn Clock>,
    pipeline: String,
    update: u64,
    flows: BTreeMap<String, KnownFlow>,
    pending: Mutex<Pending>,
    segments: tokio::sync::Mutex<Segments>,
    store: Arc<dyn ObjectStore>,
    next: Arc<dyn Observer>,
}

/// Events that are not written yet.
#[derive(Debug, Default)]
struct Pending {
    lines: Vec<u8>,
    /// When the first of them happened.
    since: Duration,
    /// How many events there were before them.
    written: u64,
    /// How many there were with them.
    noted: u64,
}

/// What an event says; the log adds when, and in which update.
struct Note<'a> {
    event_type: &'static str,
    level: &'static str,
    message: String,
    flow: Option<&'a str>,
    dataset: Option<&'a str>,
    details: Value,
    error: Option<EventError>,
}

impl<'a> Note<'a> {
    fn new(event_type: &'static str, level: &'static str, message: String, details: Value) -> Self {
        Self { event_type, level, message, flow: None, dataset: None, details, error: None }
    }

    fn of_flow(self, flow: &'a str, target: &'a str) -> Self {
        Self { flow: Some(flow), dataset: Some(target), ..self }
    }
}

/// A request in the words of Lakeflow's updates.
pub(crate) fn asked(request: &UpdateRequest) -> Value {
    json!({
        "full_refresh": request.is_full_refresh_all(),
        "refresh_selection": request.refresh_names().collect::<Vec<_>>(),
        "full_refresh_selection": request.full_refresh_names().collect::<Vec<_>>(),
        "reset_checkpoint_selection": request.checkpoint_reset_names().collect::<Vec<_>>(),
    })
}

impl EventLog {
    pub(crate) fn new(
        store: Arc<dyn ObjectStore>,
        clock: Arc<dyn Clock>,
        (pipeline, update): (&str, u64),
        definition: &PipelineDefinition,
        next: Arc<dyn Observer>,
    ) -> Self {
        let flows = definition.flows.iter().map(|flow| (flow.name.clone(), KnownFlow::of(flow))).collect();
        let segments = tokio::sync::Mutex::new(Segments::new(Arc::clone(&store), update));
        let pipeline = pipeline.to_owned();
        Self { clock, pipeline, update, flows, pending: Mutex::default(), segments, store, next }
    }

    fn note(&self, note: Note<'_>) {
        let Ok(mut pending) = self.pending.lock() else { return };
        let sequence = pending.noted + 1;
        let now = self.clock.now();
        let event = Event {
            id: format!("{}-{sequence}", self.update),
            sequence,
            timestamp: rfc3339(now),
            event_type: note.event_type.to_owned(),
            level: note.level.to_owned(),
            message: note.message,
            origin: Origin {
                pipeline_name: self.pipeline.clone(),
                update_id: self.update,
                flow_name: note.flow.map(str::to_owned),
                dataset_name: note.dataset.map(str::to_owned),
            },
            error: note.error,
            details: json!({ note.event_type: note.details }),
        };
        let Ok(line) = serde_json::to_vec(&event) else { return };
        if pending.lines.is_empty() {
            pending.since = now;
        }
        pending.noted = sequence;
        pending.lines.extend_from_slice(&line);
        pending.lines.push(b'\n');
    }

    /// Notes that the update was made, and of what the pipeline consists.
    pub(crate) async fn begin(
        &self,
        definition: &PipelineDefinition,
        asked: Value,
        mode: Mode,
    ) -> Result<()> {
        segments::forget_old_updates(&self.store).await?;
        let details = json!({ "request": asked, "continuous": mode == Mode::Continuous });
        let message = format!("Update {} of {} was created.", self.update, self.pipeline);
        self.note(Note::new("create_update", "INFO", message, details));
        self.state("INITIALIZING");
        for dataset in &definition.datasets {
            let name = dataset.name();
            let message = format!("Dataset {name} is defined.");
            let note = Note::new("dataset_definition", "INFO", message, event::dataset_definition(dataset));
            self.note(Note { dataset: Some(name), ..note });
        }
        for flow in &definition.flows {
            let message = format!("Flow {} is defined.", flow.name);
            let note = Note::new("flow_definition", "INFO", message, event::flow_definition(flow));
            self.note(note.of_flow(&flow.name, &flow.target));
        }
        self.flush().await
    }

    /// Notes what the update as a whole does now: `RESETTING`, `RUNNING`.
    pub(crate) fn state(&self, state: &str) {
        self.note(self.progress(state, "INFO", json!({ "state": state })));
    }

    fn progress(&self, state: &str, level: &'static str, details: Value) -> Note<'static> {
        Note::new("update_progress", level, format!("Update {} is {state}.", self.update), details)
    }

    /// Notes how the update ended.
    pub(crate) async fn end(&self, report: &UpdateReport) -> Result<()> {
        let (state, level) = match report {
            report if report.is_success() => ("COMPLETED", "INFO"),
            report if report.is_stopped() => ("CANCELED", "WARN"),
            _ => ("FAILED", "ERROR"),
        };
        let details = json!({ "state": state, "seconds": report.elapsed.as_secs_f64() });
        self.note(self.progress(state, level, details));
        self.flush().await
    }

    /// Notes why the update broke off. That its end may not be written is not worth a second error.
    pub(crate) async fn broke_off(&self, error: &Error) {
        let note = self.progress("FAILED", "ERROR", json!({ "state": "FAILED" }));
        self.note(Note { error: Some(EventError::new(&error.full_text(), error.help_text())), ..note });
        drop(self.flush().await);
    }

    /// Writes events if the oldest that is not written is due. What can't be written now is written later.
    pub(crate) async fn flush_if_due(&self) {
        let now = self.clock.now();
        let due = self
            .pending
            .lock()
            .is_ok_and(|pending| !pending.lines.is_empty() && now.saturating_sub(pending.since) >= CADENCE);
        if due {
            drop(self.flush().await);
        }
    }

    /// Writes all events: before something that may take long. What can't be written now is written later.
    pub(crate) async fn flush_now(&self) {
        drop(self.flush().await);
    }

    async fn flush(&self) -> Result<()> {
        let mut segments = self.segments.lock().await;
        let (lines, first, last) = match self.pending.lock() {
            Ok(pending) => (pending.lines.clone(), pending.written + 1, pending.noted),
            Err(_) => return Ok(()),
        };
        if lines.is_empty() {
            return Ok(());
        }
        let length = lines.len();
        segments.append(first, last, lines).await?;
        if let Ok(mut pending) = self.pending.lock() {
            let end = length.min(pending.lines.len());
            pending.lines.drain(..end);
            pending.written = last;
            pending.since = self.clock.now();
        }
        Ok(())
    }

    fn flow_progress(&self, report: &FlowReport, status: FlowStatus, level: &'static str, message: String) {
        let is_change = self.flows.get(&report.flow).is_some_and(|flow| flow.is_change);
        let note =
            Note::new("flow_progress", level, message, event::flow_progress(report, status, is_change));
        let failed = matches!(status, FlowStatus::Failed | FlowStatus::Skipped);
        let reason = report.reason.as_ref().filter(|_| failed);
        let error = reason.map(|reason| EventError::new(reason, report.help.as_deref()));
        self.note(Note { error, ..note }.of_flow(&report.flow, &report.target));
    }
}

impl Observer for EventLog {
    fn started(&self, flow: &str) {
        self.entered(flow, FlowStatus::Starting);
        self.next.started(flow);
    }

    fn progressed(&self, report: &FlowReport) {
        let message = format!("Flow {} took batch {}.", report.flow, report.batches);
        self.flow_progress(report, FlowStatus::Running, "METRICS", message);
        self.next.progressed(report);
    }

    fn ended(&self, report: &FlowReport) {
        let level = match report.status {
            FlowStatus::Failed => "ERROR",
            FlowStatus::Skipped | FlowStatus::Stopped => "WARN",
            _ => "INFO",
        };
        let message = format!("Flow {} is {}.", report.flow, report.status);
        self.flow_progress(report, report.status, level, message);
        self.next.ended(report);
    }

    fn entered(&self, flow: &str, status: FlowStatus) {
        let target = self.flows.get(flow).map_or("", |flow| flow.target.as_str());
        let details = json!({ "status": status });
        let note = Note::new("flow_progress", "INFO", format!("Flow {flow} is {status}."), details);
        self.note(note.of_flow(flow, target));
        self.next.entered(flow, status);
    }

    fn retries(&self, report: &FlowReport) {
        let message = format!("An attempt of flow {} failed; it is tried again.", report.flow);
        self.flow_progress(report, FlowStatus::Failed, "WARN", message);
        self.next.retries(report);
    }
}
