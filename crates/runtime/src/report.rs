//! What did an update do, flow by flow?

use std::{fmt, time::Duration};

use serde::Serialize;
use strandline_cdc_core::Counts;

/// Where a flow stands in an update, in the words of Lakeflow's event log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum FlowStatus {
    /// It waits for its turn.
    Queued,
    /// It was started.
    Starting,
    /// Its source and target are being opened.
    Planning,
    /// It takes batches.
    Running,
    /// It took all that was there.
    Completed,
    /// It failed; what it committed before stays.
    Failed,
    /// A flow that it needs failed.
    Skipped,
    /// A ONCE flow that completed in an earlier update.
    Idle,
    /// The update was stopped.
    Stopped,
    /// The update was for other targets.
    Excluded,
}

impl FlowStatus {
    /// True for a flow that ran in the update: what it did can be told.
    pub fn ran(self) -> bool {
        !matches!(self, Self::Queued | Self::Idle | Self::Skipped | Self::Excluded)
    }
}

impl fmt::Display for FlowStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Queued => "QUEUED",
            Self::Starting => "STARTING",
            Self::Planning => "PLANNING",
            Self::Running => "RUNNING",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Skipped => "SKIPPED",
            Self::Idle => "IDLE",
            Self::Stopped => "STOPPED",
            Self::Excluded => "EXCLUDED",
        })
    }
}

/// What the constraints of a table found, in the words of Lakeflow's event log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct DataQuality {
    /// Rows that were not written because they violate a constraint `ON VIOLATION DROP ROW`, each once.
    pub dropped_records: u64,
    /// Constraints, in the order of the table's text.
    pub expectations: Vec<ExpectationCounts>,
}

impl DataQuality {
    pub(crate) fn add(&mut self, more: &Self) {
        self.dropped_records += more.dropped_records;
        for count in &more.expectations {
            match self.expectations.iter_mut().find(|known| known.name == count.name) {
                Some(known) => {
                    known.passed_records += count.passed_records;
                    known.failed_records += count.failed_records;
                }
                None => self.expectations.push(count.clone()),
            }
        }
    }
}

/// How many rows met a constraint. Rows of batches that did not land are not counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExpectationCounts {
    /// The constraint.
    pub name: String,
    /// Its table.
    pub dataset: String,
    /// Rows that meet it, or were not asked.
    pub passed_records: u64,
    /// Rows that violate it.
    pub failed_records: u64,
}

/// What a flow did in an update.
#[derive(Debug, Clone, Serialize)]
pub struct FlowReport {
    /// The flow.
    pub flow: String,
    /// Its target.
    pub target: String,
    /// How it ended.
    pub status: FlowStatus,
    /// Batches taken.
    pub batches: u64,
    /// Rows that came out of its query.
    pub rows_in: u64,
    /// Target rows inserted or rewritten.
    pub upserted: u64,
    /// Deletes that removed a row or ended a version.
    pub deleted: u64,
    /// Events older than what was known of their key.
    pub late: u64,
    /// Upserts that met a different upsert at their own sequence.
    pub tied: u64,
    /// Upserts that a newer delete kept out.
    pub tombstone_defeated: u64,
    /// Events older than a truncate or a snapshot.
    pub barrier_defeated: u64,
    /// Events that were dropped because old tombstones of the target were collected.
    pub horizon_dropped: u64,
    /// Rows of a bitemporal target whose past belief a late event changed.
    pub past_beliefs_rewritten: u64,
    /// Commits that another writer forced to be made again.
    pub conflicts: u64,
    /// Rows given to the target, by flows that append or recompute; of a snapshot flow, rows that it changed or removed. AUTO
    /// CDC flows have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_rows: Option<u64>,
    /// What the target's constraints found; `None` where it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_quality: Option<DataQuality>,
    /// Data files of the target, and of what is remembered beside it, that were read.
    pub files_read: u64,
    /// Bytes read of them: footers, and the parts that may hold rows of the batches' keys.
    pub bytes_read: u64,
    /// Bytes of data files written.
    pub bytes_written: u64,
    /// Time taken.
    #[serde(serialize_with = "seconds")]
    pub elapsed: Duration,
    /// Something that a person should know of a flow that went on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// Why it failed or was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

fn seconds<S: serde::Serializer>(elapsed: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(elapsed.as_secs_f64())
}

impl FlowReport {
    pub(crate) fn new(flow: &str, target: &str, status: FlowStatus) -> Self {
        Self {
            flow: flow.to_owned(),
            target: target.to_owned(),
            status,
            batches: 0,
            rows_in: 0,
            upserted: 0,
            deleted: 0,
            late: 0,
            tied: 0,
            tombstone_defeated: 0,
            barrier_defeated: 0,
            horizon_dropped: 0,
            past_beliefs_rewritten: 0,
            conflicts: 0,
            output_rows: None,
            data_quality: None,
            files_read: 0,
            bytes_read: 0,
            bytes_written: 0,
            elapsed: Duration::ZERO,
            notice: None,
            reason: None,
            help: None,
        }
    }

    /// Adds what an earlier attempt of the flow did.
    pub(crate) fn add_attempt(&mut self, before: &Self) {
        self.batches += before.batches;
        self.rows_in += before.rows_in;
        self.upserted += before.upserted;
        self.deleted += before.deleted;
        self.late += before.late;
        self.tied += before.tied;
        self.tombstone_defeated += before.tombstone_defeated;
        self.barrier_defeated += before.barrier_defeated;
        self.horizon_dropped += before.horizon_dropped;
        self.past_beliefs_rewritten += before.past_beliefs_rewritten;
        self.conflicts += before.conflicts;
        self.files_read += before.files_read;
        self.bytes_read += before.bytes_read;
        self.bytes_written += before.bytes_written;
        if let Some(rows) = before.output_rows {
            *self.output_rows.get_or_insert(0) += rows;
        }
        if let Some(quality) = &before.data_quality {
            let later = self.data_quality.replace(quality.clone());
            if let Some(later) = &later {
                self.add_quality(later);
            }
        }
        self.elapsed += before.elapsed;
        self.notice = self.notice.take().or_else(|| before.notice.clone());
    }

    pub(crate) fn add(&mut self, counts: &Counts) {
        self.upserted += counts.upserted;
        self.deleted += counts.deleted;
        self.late += counts.late;
        self.tied += counts.tied;
        self.tombstone_defeated += counts.tombstone_defeated;
        self.barrier_defeated += counts.barrier_defeated;
        self.horizon_dropped += counts.horizon_dropped;
        self.past_beliefs_rewritten += counts.past_beliefs_rewritten;
    }

    pub(crate) fn add_quality(&mut self, more: &DataQuality) {
        self.data_quality.get_or_insert_with(DataQuality::default).add(more);
    }
}

/// What an update did.
#[derive(Debug, Clone, Serialize)]
pub struct UpdateReport {
    /// Flows, in the order of the pipeline's text.
    pub flows: Vec<FlowReport>,
    /// Time taken.
    #[serde(serialize_with = "seconds")]
    pub elapsed: Duration,
}

impl UpdateReport {
    /// Adds what an earlier attempt of the same update did.
    pub(crate) fn after(mut self, earlier: &Self) -> Self {
        for flow in &mut self.flows {
            if let Some(before) = earlier.flows.iter().find(|before| before.flow == flow.flow) {
                flow.add_attempt(before);
            }
        }
        self.elapsed += earlier.elapsed;
        self
    }

    /// True when the update was stopped before its flows were done, and none of them failed.
    pub fn is_stopped(&self) -> bool {
        let any = |status| self.flows.iter().any(|flow| flow.status == status);
        any(FlowStatus::Stopped) && !any(FlowStatus::Failed) && !any(FlowStatus::Skipped)
    }

    /// True when no flow failed, was skipped or stopped.
    pub fn is_success(&self) -> bool {
        self.flows.iter().all(|flow| {
            matches!(flow.status, FlowStatus::Completed | FlowStatus::Idle | FlowStatus::Excluded)
        })
    }
}

/// Watches an update, to show its progress.
///
/// # Contract
/// Calls come from several flows at once, and must return quickly.
pub trait Observer: Send + Sync {
    /// A flow starts.
    fn started(&self, flow: &str);
    /// A flow took a batch; the report holds its sums so far.
    fn progressed(&self, flow: &FlowReport);
    /// A flow ended, or will not run.
    fn ended(&self, flow: &FlowReport);
    /// A flow waits, plans, or begins to take batches.
    fn entered(&self, _flow: &str, _status: FlowStatus) {}
    /// An attempt of a flow failed, for the reason in the report; there will be another one.
    fn retries(&self, _flow: &FlowReport) {}
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn started(&self, _: &str) {}
    fn progressed(&self, _: &FlowReport) {}
    fn ended(&self, _: &FlowReport) {}
}
