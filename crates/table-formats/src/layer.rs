//! What if a table misbehaves? A decorator for any format, for tests of those who write tables.
//!
//! [`FaultyFormat`] passes everything on, and at chosen commits fails before or after the commit, answers with a conflict,
//! or lets another writer commit first. Faults of single store operations are a matter of the object store underneath.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use futures::future::BoxFuture;

use crate::{
    contract::{
        BatchStream, CommitOutcome, CommitStamp, MaintainOptions, Maintained, Result, Table, TableChange,
        TableCommit, TableDefinition, TableFormat, TableSnapshot, TableVersion,
    },
    error::{Error, ErrorKind},
    parquet::ReadCounts,
};

/// Another writer: commits whatever it likes to the table that it is given.
pub type Intruder = Arc<dyn Fn(Arc<dyn Table>) -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// What happens at a commit.
#[derive(Clone)]
pub enum TableFault {
    /// It fails, and nothing of it happened.
    Before,
    /// It lands, and its answer is lost.
    AnswerLost,
    /// It is answered with a conflict, though nobody else committed.
    Conflict,
    /// Another writer commits first.
    Intruder(Intruder),
}

impl fmt::Debug for TableFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Before => "Before",
            Self::AnswerLost => "AnswerLost",
            Self::Conflict => "Conflict",
            Self::Intruder(_) => "Intruder",
        })
    }
}

/// Faults that are still to come: the commit's number, counted over all tables from 1, and what happens at it.
#[derive(Debug, Default)]
struct Plan {
    commits: u64,
    faults: Vec<(u64, TableFault)>,
}

/// A format whose tables misbehave at chosen commits.
#[derive(Debug, Clone)]
pub struct FaultyFormat {
    inner: Arc<dyn TableFormat>,
    plan: Arc<Mutex<Plan>>,
}

impl FaultyFormat {
    /// Passes everything on to `inner` until faults are added.
    pub fn new(inner: Arc<dyn TableFormat>) -> Self {
        Self { inner, plan: Arc::default() }
    }

    /// Lets `fault` happen at the `nth` commit from now on, counted from 1 over all tables of this format.
    pub fn fail(&self, nth: u64, fault: TableFault) {
        if let Ok(mut plan) = self.plan.lock() {
            let at = plan.commits.saturating_add(nth);
            plan.faults.push((at, fault));
        }
    }

    /// Commits asked for so far.
    pub fn commits(&self) -> u64 {
        self.plan.lock().map_or(0, |plan| plan.commits)
    }

    fn wrap(&self, table: Arc<dyn Table>) -> Arc<dyn Table> {
        Arc::new(FaultyTable { inner: table, plan: Arc::clone(&self.plan) })
    }
}

#[async_trait]
impl TableFormat for FaultyFormat {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn check_row_changes(&self) -> Result<()> {
        self.inner.check_row_changes()
    }

    fn check_schema(&self, schema: &SchemaRef) -> Result<()> {
        self.inner.check_schema(schema)
    }

    async fn create(&self, name: &str, definition: &TableDefinition) -> Result<Arc<dyn Table>> {
        Ok(self.wrap(self.inner.create(name, definition).await?))
    }

    async fn open(&self, name: &str) -> Result<Option<Arc<dyn Table>>> {
        Ok(self.inner.open(name).await?.map(|table| self.wrap(table)))
    }

    async fn list(&self) -> Result<Vec<String>> {
        self.inner.list().await
    }

    async fn open_path(&self, path: &str) -> Result<Option<Arc<dyn Table>>> {
        self.inner.open_path(path).await
    }

    fn in_folder(&self, folder: &std::path::Path) -> Result<Arc<dyn TableFormat>> {
        self.inner.in_folder(folder)
    }
}

#[derive(Debug)]
struct FaultyTable {
    inner: Arc<dyn Table>,
    plan: Arc<Mutex<Plan>>,
}

impl FaultyTable {
    fn next_fault(&self) -> Option<TableFault> {
        let mut plan = self.plan.lock().ok()?;
        plan.commits = plan.commits.saturating_add(1);
        let now = plan.commits;
        let at = plan.faults.iter().position(|(at, _)| *at == now)?;
        Some(plan.faults.remove(at).1)
    }
}

fn injected(what: &str) -> Error {
    Error::new(ErrorKind::Unavailable, format!("injected: {what}"))
}

#[async_trait]
impl Table for FaultyTable {
    async fn snapshot(&self) -> Result<Arc<dyn TableSnapshot>> {
        self.inner.snapshot().await
    }

    async fn at(&self, version: TableVersion) -> Result<Arc<dyn TableSnapshot>> {
        self.inner.at(version).await
    }

    async fn commits(&self, after: Option<TableVersion>, until: TableVersion) -> Result<Vec<TableCommit>> {
        self.inner.commits(after, until).await
    }

    async fn changes(&self, first: TableVersion, last: TableVersion) -> Result<BatchStream> {
        self.inner.changes(first, last).await
    }

    async fn first_since(&self, millis: i64) -> Result<Option<TableVersion>> {
        self.inner.first_since(millis).await
    }

    async fn maintain(&self, options: &MaintainOptions) -> Result<Maintained> {
        self.inner.maintain(options).await
    }

    fn read_counts(&self) -> ReadCounts {
        self.inner.read_counts()
    }

    async fn commit(
        &self,
        base: &dyn TableSnapshot,
        change: TableChange,
        stamp: &CommitStamp,
    ) -> Result<CommitOutcome> {
        match self.next_fault() {
            None => self.inner.commit(base, change, stamp).await,
            Some(TableFault::Before) => Err(injected("the commit failed")),
            Some(TableFault::AnswerLost) => {
                let landed = self.inner.commit(base, change, stamp).await?;
                Err(injected(&format!("the answer was lost: {landed:?}")))
            }
            Some(TableFault::Conflict) => {
                Ok(CommitOutcome::Conflict { latest: base.version(), left_over: Vec::new() })
            }
            Some(TableFault::Intruder(intruder)) => {
                intruder(Arc::clone(&self.inner)).await?;
                self.inner.commit(base, change, stamp).await
            }
        }
    }
}
