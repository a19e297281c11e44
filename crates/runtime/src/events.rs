//! What happened, for machines: one JSON object a line, with the names of Lakeflow's event log.
//!
//! An update has a file of its own below the storage. It is written as a whole when the update starts, and again when it
//! ends.

use std::sync::{Arc, Mutex};

use object_store::{ObjectStore, ObjectStoreExt};
use serde_json::{Value, json};

use crate::{
    clock::{Clock, rfc3339},
    error::{Result, store_error},
    report::{FlowReport, FlowStatus, Observer, UpdateReport},
    state::engine_path,
};

/// The event log of one update; passes what it sees on to another observer.
pub(crate) struct EventLog {
    store: Arc<dyn ObjectStore>,
    clock: Arc<dyn Clock>,
    epoch: u64,
    lines: Mutex<Vec<u8>>,
    next: Arc<dyn Observer>,
}

impl EventLog {
    pub(crate) fn new(
        store: Arc<dyn ObjectStore>,
        clock: Arc<dyn Clock>,
        epoch: u64,
        next: Arc<dyn Observer>,
    ) -> Self {
        Self { store, clock, epoch, lines: Mutex::default(), next }
    }

    fn note(&self, event_type: &str, level: &str, details: &Value) {
        let line = json!({
            "timestamp": rfc3339(self.clock.now()),
            "update_id": self.epoch,
            "event_type": event_type,
            "level": level,
            "details": { event_type: details },
        });
        if let Ok(mut lines) = self.lines.lock() {
            lines.extend_from_slice(line.to_string().as_bytes());
            lines.push(b'\n');
        }
    }

    /// Notes that the update began.
    pub(crate) async fn begin(&self, pipeline: &str) -> Result<()> {
        self.note("update_progress", "INFO", &json!({ "state": "RUNNING", "pipeline": pipeline }));
        self.flush().await
    }

    /// Notes how the update ended.
    pub(crate) async fn end(&self, report: &UpdateReport) -> Result<()> {
        let (state, level) = if report.is_success() { ("COMPLETED", "INFO") } else { ("FAILED", "ERROR") };
        self.note(
            "update_progress",
            level,
            &json!({ "state": state, "seconds": report.elapsed.as_secs_f64() }),
        );
        self.flush().await
    }

    async fn flush(&self) -> Result<()> {
        let lines = self.lines.lock().map(|lines| lines.clone()).unwrap_or_default();
        let path = engine_path(&["events", &format!("{:020}.jsonl", self.epoch)]);
        self.store.put(&path, lines.into()).await.map_err(|e| store_error(e, &path))?;
        Ok(())
    }
}

fn metrics(report: &FlowReport) -> Value {
    json!({
        "batches": report.batches,
        "num_input_rows": report.rows_in,
        "num_upserted_rows": report.upserted,
        "num_deleted_rows": report.deleted,
        "num_late_events": report.late,
        "num_tied_events": report.tied,
        "num_tombstone_defeated_events": report.tombstone_defeated,
        "num_barrier_defeated_events": report.barrier_defeated,
        "num_horizon_dropped_events": report.horizon_dropped,
        "num_past_beliefs_rewritten": report.past_beliefs_rewritten,
        "num_conflicts": report.conflicts,
        "bytes_written": report.bytes_written,
    })
}

impl Observer for EventLog {
    fn started(&self, flow: &str) {
        self.note("flow_progress", "INFO", &json!({ "flow_name": flow, "status": "RUNNING" }));
        self.next.started(flow);
    }

    fn progressed(&self, report: &FlowReport) {
        self.note(
            "flow_progress",
            "METRICS",
            &json!({
                "flow_name": report.flow,
                "status": "RUNNING",
                "metrics": metrics(report),
                "data_quality": report.data_quality,
            }),
        );
        self.next.progressed(report);
    }

    fn ended(&self, report: &FlowReport) {
        let level = if report.status == FlowStatus::Failed { "ERROR" } else { "INFO" };
        self.note(
            "flow_progress",
            level,
            &json!({
                "flow_name": report.flow,
                "status": report.status,
                "metrics": metrics(report),
                "data_quality": report.data_quality,
                "notice": report.notice,
                "reason": report.reason,
            }),
        );
        self.next.ended(report);
    }
}
