//! How are a storage's tables kept small and fast, beside flows that run, without changing any answer?
//!
//! Files are compacted in commits of their own, which flows meet as they meet other writers. Then old versions are
//! forgotten, and what belongs to none any more is removed: of the tables, and of what is remembered beside them.

use std::{sync::Arc, time::Duration};

use serde::Serialize;
use strandline_table_formats::{
    contract::{FileSums, MaintainOptions, StateVersion, Table, TableVersion},
    error::ErrorKind as TableErrorKind,
    side_state::{Collected, SideState},
};

use crate::{
    clock::Clock,
    error::{Error, ErrorKind, Result},
    state::{LEASE_DURATION, Lease, engine_path},
    storage::Storage,
};

/// How long old versions are kept, at least, unless less is forced: longer than any update runs, or a reader reads.
pub const LEAST_RETENTION: Duration = Duration::from_hours(7 * 24);

/// What maintenance of a storage shall do.
#[derive(Debug, Clone)]
pub struct MaintenanceRequest {
    /// Only these tables; all, when there are none.
    pub tables: Vec<String>,
    /// How long versions are kept after they were replaced.
    pub retain: Duration,
    /// Whether they may be kept for less than [`LEAST_RETENTION`]. No update may run then.
    pub force: bool,
    /// Only tells what would be done.
    pub dry_run: bool,
}

impl Default for MaintenanceRequest {
    fn default() -> Self {
        Self { tables: Vec::new(), retain: LEAST_RETENTION, force: false, dry_run: false }
    }
}

/// What was done for a table, or would be.
#[derive(Debug, Clone, Serialize)]
pub struct TableMaintenance {
    /// The table.
    pub table: String,
    /// Its files before.
    pub files_before: u64,
    /// Their bytes.
    pub bytes_before: u64,
    /// Its files afterwards.
    pub files_after: u64,
    /// Their bytes.
    pub bytes_after: u64,
    /// Files that were compacted.
    pub files_compacted: u64,
    /// Versions of the table that were forgotten.
    pub versions_expired: u64,
    /// Versions of what is remembered beside it that were removed.
    pub state_versions_removed: u64,
    /// Files that were removed, of both.
    pub files_removed: u64,
    /// Their bytes.
    pub bytes_removed: u64,
    /// What was left undone, and why.
    pub notices: Vec<String>,
}

/// Maintains the tables of a storage.
///
/// # Errors
/// `Definition` for a table that does not exist, and for a retention that is too short; `Busy` when less is forced and an
/// update runs; else the store's. Tables before the one that failed are done.
pub async fn maintain(
    storage: &Storage,
    request: &MaintenanceRequest,
    clock: &Arc<dyn Clock>,
) -> Result<Vec<TableMaintenance>> {
    check_retention(request)?;
    let names = names(storage, request).await?;
    let is_short = request.retain < LEAST_RETENTION && !request.dry_run;
    let lease = if is_short {
        // Files of a batch that is not committed yet could be taken for nobody's.
        Some(Lease::acquire(storage, Arc::clone(clock), LEASE_DURATION).await?)
    } else {
        None
    };
    let done = all(storage, request, &names, clock).await;
    if let Some(lease) = lease {
        lease.release().await;
    }
    done
}

async fn all(
    storage: &Storage,
    request: &MaintenanceRequest,
    names: &[String],
    clock: &Arc<dyn Clock>,
) -> Result<Vec<TableMaintenance>> {
    let before = clock.now().saturating_sub(request.retain).as_millis();
    let before = i64::try_from(before).unwrap_or(i64::MAX);
    let mut done = Vec::new();
    for name in names {
        let maintained = one(storage, name, before, request.dry_run).await;
        done.extend(maintained.map_err(|error| error.with("table", name))?);
    }
    Ok(done)
}

fn check_retention(request: &MaintenanceRequest) -> Result<()> {
    if request.force || request.retain >= LEAST_RETENTION {
        return Ok(());
    }
    let days = LEAST_RETENTION.as_secs() / (24 * 3600);
    Err(Error::new(
        ErrorKind::Definition,
        format!("old versions are kept for {days} days at least: readers and updates that began before may need them"),
    )
    .with("retention, seconds", request.retain.as_secs())
    .help("keep them longer, or force it while no update runs and nobody reads older versions"))
}

async fn names(storage: &Storage, request: &MaintenanceRequest) -> Result<Vec<String>> {
    let known = storage.format.list().await?;
    if request.tables.is_empty() {
        return Ok(known);
    }
    if let Some(unknown) = request.tables.iter().find(|name| !known.contains(name)) {
        return Err(Error::new(ErrorKind::Definition, format!("there is no table `{unknown}`"))
            .with("tables", known.join(", ")));
    }
    Ok(request.tables.clone())
}

async fn one(storage: &Storage, name: &str, before: i64, dry_run: bool) -> Result<Option<TableMaintenance>> {
    let Some(table) = storage.format.open(name).await? else { return Ok(None) };
    let options = MaintainOptions { compact: true, expire_before: Some(before), dry_run };
    let done = table.maintain(&options).await?;
    let oldest = oldest_state(table.as_ref(), before).await?;
    let side = SideState::new(Arc::clone(&storage.store), engine_path(&["state", name]), Vec::new());
    let Collected { versions, files } = side.collect(oldest, before, dry_run).await?;
    let removed = [done.removed, files];
    let sum = |of: fn(&FileSums) -> u64| removed.iter().map(of).sum();
    Ok(Some(TableMaintenance {
        table: name.to_owned(),
        files_before: done.before.files,
        bytes_before: done.before.bytes,
        files_after: done.after.files,
        bytes_after: done.after.bytes,
        files_compacted: done.compacted.files,
        versions_expired: done.versions_expired,
        state_versions_removed: versions,
        files_removed: sum(|sums| sums.files),
        bytes_removed: sum(|sums| sums.bytes),
        notices: done.notices,
    }))
}

/// The state version of the oldest version of a table that was the newest at a moment, or after it.
async fn oldest_state(table: &dyn Table, before: i64) -> Result<StateVersion> {
    let newest = table.snapshot().await?;
    let Some(TableVersion(first)) = table.first_since(before).await? else {
        return Ok(newest.state_version());
    };
    // At that moment the version before was the newest, if it is still there.
    for version in [first.saturating_sub(1), first] {
        match table.at(TableVersion(version)).await {
            Ok(snapshot) => return Ok(snapshot.state_version()),
            Err(error) if error.kind() == TableErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(StateVersion(0))
}
