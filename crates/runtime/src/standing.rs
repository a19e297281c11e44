//! Where does a pipeline stand between two updates?
//!
//! What flows have taken and tables hold is read from their own records; how the last update went, from the event log.

use std::collections::BTreeMap;

use futures::TryStreamExt;
use serde::Serialize;
use serde_json::Value;
use strandline_table_formats::contract::TableSnapshot;

use crate::{
    error::Result,
    events::{
        Event, segments,
        table::{events, status as status_of},
    },
    project::columns,
    state::FlowState,
    storage::Storage,
};

/// So many updates are looked through for the last run of every flow.
const UPDATES: usize = 20;

/// Where a pipeline stands between two updates.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// The last update.
    pub last_update: Option<UpdateStanding>,
    /// Flows that have run.
    pub flows: Vec<FlowStanding>,
    /// Tables that exist.
    pub tables: Vec<TableStanding>,
}

/// An update.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UpdateStanding {
    /// Its number.
    pub id: u64,
    /// Its last state: `COMPLETED`, `FAILED` or `CANCELED` where it ended. Another one: it runs, or its process is gone.
    pub state: String,
    /// When it began.
    pub started_at: String,
    /// When its last event happened.
    pub last_event_at: String,
}

/// Where a flow stands between two updates.
#[derive(Debug, Clone, Serialize)]
pub struct FlowStanding {
    /// The flow.
    pub flow: String,
    /// Its last status, and that of its update: `IDLE` for a ONCE flow that completed earlier.
    pub state: Option<String>,
    /// Why it failed or was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Batches that are in its target.
    pub batches: u64,
    /// When the last of them was done.
    pub last_done_at: Option<String>,
    /// When a ONCE flow completed.
    pub completed_at: Option<String>,
    /// The last update in which it ran.
    pub last_run: Option<LastRun>,
}

/// What a flow did when it last ran.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LastRun {
    /// The update.
    pub update_id: u64,
    /// Sums of its counters, with the names of the event log.
    pub metrics: Value,
}

/// A table of the pipeline.
#[derive(Debug, Clone, Serialize)]
pub struct TableStanding {
    /// The table.
    pub table: String,
    /// Its version.
    pub version: u64,
    /// Version of its side state.
    pub state_version: u64,
    /// How many rows it has.
    pub rows: u64,
    /// Columns, each with its type.
    pub columns: Vec<(String, String)>,
}

/// Where the pipeline of a storage stands.
///
/// # Errors
/// The store's.
pub async fn status(storage: &Storage) -> Result<Status> {
    let mut tables = Vec::new();
    for name in storage.format.list().await? {
        if let Some(table) = storage.format.open(&name).await? {
            let snapshot = table.snapshot().await?;
            tables.push(TableStanding {
                table: name,
                version: snapshot.version().0,
                state_version: snapshot.state_version().0,
                rows: rows(snapshot.as_ref()).await?,
                columns: columns(&snapshot.schema()),
            });
        }
    }
    let names = FlowState::all(&storage.store).await?;
    let told = Told::by(storage, &names).await?;
    let mut flows = Vec::new();
    for flow in names {
        let state = FlowState::current(&storage.store, &flow).await?;
        let (batches, last_done_at) = state.last_done().await?;
        let last = told.last.get(&flow);
        flows.push(FlowStanding {
            state: last.and_then(status_of).map(str::to_owned),
            reason: last.and_then(|event| event.error.as_ref()).map(|error| error.message.clone()),
            batches,
            last_done_at,
            completed_at: state.completed_at().await?,
            last_run: told.runs.get(&flow).cloned(),
            flow,
        });
    }
    Ok(Status { last_update: told.update, flows, tables })
}

async fn rows(snapshot: &dyn TableSnapshot) -> Result<u64> {
    let mut rows = 0;
    let mut batches = snapshot.scan(Some(&[])).await?;
    while let Some(batch) = batches.try_next().await? {
        rows += batch.num_rows() as u64;
    }
    Ok(rows)
}

/// What the event log tells.
#[derive(Default)]
struct Told {
    update: Option<UpdateStanding>,
    /// The last progress of each flow.
    last: BTreeMap<String, Event>,
    runs: BTreeMap<String, LastRun>,
}

impl Told {
    async fn by(storage: &Storage, flows: &[String]) -> Result<Self> {
        let mut told = Self::default();
        for segments in segments::all(&storage.store).await?.into_values().rev().take(UPDATES) {
            for segment in segments.iter().rev() {
                for event in events(&storage.store, &segment.path).await?.into_iter().rev() {
                    told.take(event);
                }
            }
            if flows.iter().all(|flow| told.runs.contains_key(flow)) {
                break;
            }
        }
        Ok(told)
    }

    /// Takes the event before those that were taken.
    fn take(&mut self, event: Event) {
        let id = event.origin.update_id;
        let update = self.update.get_or_insert_with(|| UpdateStanding {
            id,
            state: String::new(),
            started_at: event.timestamp.clone(),
            last_event_at: event.timestamp.clone(),
        });
        if update.id == id {
            update.started_at.clone_from(&event.timestamp);
            if event.event_type == "update_progress" && update.state.is_empty() {
                status_of(&event).unwrap_or_default().clone_into(&mut update.state);
            }
        }
        let Some(flow) = event.origin.flow_name.clone().filter(|_| event.event_type == "flow_progress")
        else {
            return;
        };
        let metrics = event.details.get("flow_progress").and_then(|details| details.get("metrics"));
        if let Some(metrics) = metrics {
            let run = || LastRun { update_id: id, metrics: metrics.clone() };
            self.runs.entry(flow.clone()).or_insert_with(run);
        }
        self.last.entry(flow).or_insert(event);
    }
}
