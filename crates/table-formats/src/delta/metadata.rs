//! Level 2 on a Delta log.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use deltalake_core::{
    DeltaTableError,
    kernel::{Action, transaction::CommitData},
    logstore::{CommitOrBytes, LogStoreRef, get_actions},
    table::state::DeltaTableState,
};
use object_store::{ObjectStore, path::Path};
use roaring::RoaringBitmap;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::{
    WRITERS,
    actions::{self, Entry},
    error,
    head::{foreign_head, lost_writers, state_of, table_properties, writers},
    mask, schema,
    stamp::{self, Marks},
};
use crate::{
    contract::{CommitStamp, Result, TableDefinition, TableVersion},
    error::{Error, ErrorKind},
    metadata::{DataFile, FileChanges, FileCommit, Mask, MetadataOutcome, TableHead, TableMetadata},
    time::wall_clock_millis,
};

/// A checkpoint is written with every so many versions.
const CHECKPOINT_EVERY: u64 = 20;
/// Property of tables that record their changes.
pub(super) const CHANGE_FEED: &str = "delta.enableChangeDataFeed";
/// Where recorded changes lie.
const CHANGE_FOLDER: &str = "_change_data";

/// Metadata of one Delta table.
#[derive(Debug)]
pub struct DeltaMetadata {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) root: Path,
    pub(super) log: LogStoreRef,
    /// Whether it is maintained by somebody else, and only read.
    foreign: bool,
    /// The newest version seen: the next is read on top of it.
    newest: Mutex<Option<TableHead>>,
    /// Rows of files whose number the log does not say.
    pub(super) counts: Mutex<BTreeMap<String, u64>>,
}

impl DeltaMetadata {
    pub(super) fn new(store: Arc<dyn ObjectStore>, root: Path, log: LogStoreRef) -> Self {
        Self { store, root, log, foreign: false, newest: Mutex::new(None), counts: Mutex::default() }
    }

    /// Metadata of a table that somebody else maintains.
    pub(super) fn foreign(self) -> Self {
        Self { foreign: true, ..self }
    }

    async fn newest(&self) -> Result<TableHead> {
        let mut newest = self.newest.lock().await;
        let head = match newest.as_ref() {
            None => self.load(None).await?,
            Some(known) => self.refreshed(known).await?,
        };
        *newest = Some(head.clone());
        Ok(head)
    }

    async fn load(&self, version: Option<u64>) -> Result<TableHead> {
        let state = Box::pin(DeltaTableState::try_new(&self.log, version)).await;
        let state = state.map_err(|e| error::of(e, "the table's log can't be read"))?;
        if self.foreign {
            return foreign_head(state);
        }
        let mut marks = Marks::default();
        let mut apps = writers(state.metadata())?;
        apps.extend([stamp::STATE.to_owned(), stamp::EPOCH.to_owned()]);
        for app in apps {
            let version = state.transaction_version(&self.log, &app).await;
            if let Some(version) = version.map_err(|e| error::of(e, "the table's marks can't be read"))? {
                if app == stamp::EPOCH && !state.metadata().configuration().contains_key(WRITERS) {
                    return Err(lost_writers());
                }
                marks.apply(&app, version)?;
            }
        }
        self.own_head(state, marks, &[]).await
    }

    /// The newest version, read on top of a known one.
    async fn refreshed(&self, known: &TableHead) -> Result<TableHead> {
        let mut state = state_of(known)?.clone();
        Box::pin(state.update(&self.log, None))
            .await
            .map_err(|e| error::of(e, "the table's log can't be read"))?;
        if state.version() == known.version.0 {
            return Ok(TableHead { adapter: Arc::new(state), ..known.clone() });
        }
        if self.foreign {
            return foreign_head(state);
        }
        let mut marks = Marks { batches: known.batches.clone(), state: known.state, epoch: known.epoch };
        for version in known.version.0 + 1..=state.version() {
            let entry = self.log.read_commit_entry(version).await;
            let Some(entry) = entry.map_err(|e| error::of(e, "a log entry can't be read"))? else {
                // Cleaned up behind a checkpoint: the marks are in there.
                return self.load(Some(state.version())).await;
            };
            for action in
                get_actions(version, &entry).map_err(|e| error::of(e, "a log entry can't be read"))?
            {
                if let Action::Txn(transaction) = action {
                    marks.apply(&transaction.app_id, transaction.version)?;
                }
            }
        }
        // Columns and partitions may have changed: then files are read anew.
        let kept = known.schema == schema::from_delta(state.schema().as_ref())?;
        self.own_head(state, marks, if kept { &known.files } else { &[] }).await
    }
}

impl DeltaMetadata {
    /// Writes a log entry after a version; the newest version, when that is another one already.
    async fn write(&self, base: TableVersion, entry: &CommitData) -> Result<Option<TableVersion>> {
        let newest = async || {
            let latest = self.log.get_latest_version(base.0).await;
            latest.map_err(|e| error::of(e, "the newest version can't be found"))
        };
        // Not only whether the next entry is free: those of old versions are removed behind checkpoints.
        let latest = newest().await?;
        if latest > base.0 {
            return Ok(Some(TableVersion(latest)));
        }
        let bytes = entry.get_bytes().map_err(|e| error::of(e.into(), "the log entry can't be written"))?;
        let written = self.log.write_commit_entry(base.0 + 1, CommitOrBytes::LogBytes(bytes), Uuid::new_v4());
        match written.await.map_err(DeltaTableError::from) {
            Ok(()) => Ok(None),
            Err(e) if error::is_conflict(&e) => Ok(Some(TableVersion(newest().await?))),
            Err(e) => Err(error::of(e, "the commit's outcome is not known")),
        }
    }
}

#[async_trait]
impl TableMetadata for DeltaMetadata {
    fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    fn root(&self) -> &Path {
        &self.root
    }

    fn check_schema(&self, schema: &SchemaRef) -> Result<()> {
        schema::check(schema)
    }

    fn check_definition(&self, definition: &TableDefinition) -> Result<()> {
        super::check_definition(definition)
    }

    async fn head(&self, at: Option<TableVersion>) -> Result<TableHead> {
        let newest = self.newest().await?;
        match at {
            None => Ok(newest),
            Some(version) if version == newest.version => Ok(newest),
            Some(version) if version > newest.version => {
                Err(Error::new(ErrorKind::NotFound, format!("there is no version {version} yet")))
            }
            Some(version) => match self.load(Some(version.0)).await {
                Err(e)
                    if e.kind() != ErrorKind::Unavailable
                        && !self.is_retained(version, newest.version).await? =>
                {
                    Err(Error::new(ErrorKind::NotFound, format!("version {version} is not retained"))
                        .because(e))
                }
                loaded => loaded,
            },
        }
    }

    async fn commit(
        &self,
        base: &TableHead,
        change: FileChanges,
        stamp: Option<&CommitStamp>,
    ) -> Result<MetadataOutcome> {
        if self.foreign {
            return Err(only_read());
        }
        let entry = Entry::new(base, &change, wall_clock_millis())?.actions(stamp)?;
        let transactions = stamp.map(|stamp| stamp::transactions(stamp, base.epoch)).transpose()?;
        let told = stamp.map(|stamp| ("strandline".to_owned(), stamp::json(stamp))).into_iter().collect();
        let operation = actions::operation(change.operation);
        let entry = CommitData::new(entry, operation, told, transactions.unwrap_or_default());
        if let Some(latest) = self.write(base.version, &entry).await? {
            return Ok(MetadataOutcome::Conflict { latest });
        }
        let mut state = state_of(base)?.clone();
        let version = base.version.0 + 1;
        Box::pin(state.update(&self.log, Some(version)))
            .await
            .map_err(|e| error::of(e, "the table's log can't be read"))?;
        if version.is_multiple_of(CHECKPOINT_EVERY)
            && let Err(error) = self.checkpoint(&state).await
        {
            // The commit has landed; a checkpoint only makes the next reading faster.
            tracing::warn!(%error, version, "no checkpoint was written");
        }
        let mut head = base.after(change, stamp);
        head.properties = table_properties(state.metadata());
        head.adapter = Arc::new(state);
        let mut newest = self.newest.lock().await;
        if newest.as_ref().is_none_or(|known| known.version < head.version) {
            *newest = Some(head.clone());
        }
        Ok(MetadataOutcome::Committed(head))
    }

    async fn commits(&self, after: Option<TableVersion>, until: TableVersion) -> Result<Vec<FileCommit>> {
        self.history(after, until).await
    }

    async fn first_since(&self, millis: i64) -> Result<Option<TableVersion>> {
        self.first_since(millis).await
    }

    fn check_changes(&self, head: &TableHead) -> Result<()> {
        if !self.foreign || records_changes(head) {
            return Ok(());
        }
        let message = format!(
            "the table does not record its changes: its property `{CHANGE_FEED}` is not true; set it, and read the versions from then on"
        );
        Err(Error::new(ErrorKind::Unsupported, message).with("version", head.version))
    }

    async fn deleted_rows(&self, file: &DataFile) -> Result<RoaringBitmap> {
        self.deleted_in(file).await
    }

    fn check_masks(&self, head: &TableHead) -> Result<()> {
        mask::check(head)
    }

    fn masks_unasked(&self, head: &TableHead) -> bool {
        // Several readers refuse a table with the feature, whether it has deletion vectors or not.
        mask::is_on(head)
    }

    async fn mask(&self, base: &TableHead, masks: Vec<Mask>) -> Result<Vec<DataFile>> {
        mask::check(base)?;
        self.masked(masks).await
    }

    fn change_folder(&self, head: &TableHead) -> Option<&'static str> {
        records_changes(head).then_some(CHANGE_FOLDER)
    }

    async fn expire(&self, before: i64) -> Result<u64> {
        if self.foreign {
            return Err(only_read());
        }
        self.forget(before).await
    }

    async fn named_files(&self, since: i64) -> Result<BTreeSet<String>> {
        if self.foreign {
            return Err(only_read());
        }
        self.needed_since(since).await
    }
}

fn records_changes(head: &TableHead) -> bool {
    head.properties.get(CHANGE_FEED).is_some_and(|on| on.eq_ignore_ascii_case("true"))
}

fn only_read() -> Error {
    Error::new(ErrorKind::Unsupported, "a table by its path is read, not changed")
}
