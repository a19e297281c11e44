//! Level 2 on a Delta log.

use std::{collections::BTreeMap, sync::Arc};

use arrow_schema::SchemaRef;
use async_trait::async_trait;
use deltalake_core::{
    DeltaTable, checkpoints,
    kernel::{
        Action, Add, Metadata, MetadataExt, Remove,
        transaction::{CommitBuilder, CommitProperties},
    },
    logstore::{LogStoreRef, get_actions},
    protocol::{DeltaOperation, SaveMode},
    table::state::DeltaTableState,
};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use roaring::RoaringBitmap;
use tokio::sync::Mutex;

use super::{
    KEYS, RETENTION, WRITERS, deletion_vector, error,
    file::Named,
    protocol, schema,
    stamp::{self, Marks},
    stats,
};
use crate::{
    contract::{CommitStamp, Result, TableDefinition, TableVersion},
    error::{Error, ErrorKind},
    metadata::{
        DataFile, DeletedPlace, FileChanges, FileCommit, MetadataOutcome, Operation, TableHead, TableMetadata,
    },
    parquet::file_path,
    time::wall_clock_millis,
};

/// A checkpoint is written with every so many versions.
const CHECKPOINT_EVERY: u64 = 20;
/// Features of tables of others that are read. Column mapping is one only while it is off; columns that got wider are read
/// in their wider type.
const READ_FEATURES: [&str; 6] = [
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "v2Checkpoint",
    "vacuumProtocolCheck",
];
/// Property of tables of others that record their changes.
const CHANGE_FEED: &str = "delta.enableChangeDataFeed";

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
}

impl DeltaMetadata {
    pub(super) fn new(store: Arc<dyn ObjectStore>, root: Path, log: LogStoreRef) -> Self {
        Self { store, root, log, foreign: false, newest: Mutex::new(None) }
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
        let mut apps = writers(&state)?;
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
        head_of(state, marks, &BTreeMap::new())
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
        let files = known.files.iter().map(|f| (f.path.clone(), Arc::clone(f))).collect();
        head_of(state, marks, &files)
    }

    fn actions(base: &TableHead, change: &FileChanges, stamp: Option<&CommitStamp>) -> Result<Vec<Action>> {
        let now = wall_clock_millis();
        let (schema, keys) = match &change.definition {
            Some(new) => (&new.schema, &new.keys),
            None => (change.schema.as_ref().unwrap_or(&base.schema), &base.keys),
        };
        let data_change = change.operation != Operation::Compact;
        let mut actions = Vec::new();
        if schema != &base.schema {
            actions.extend(protocol::upgraded(state_of(base)?.protocol(), schema)?.map(Action::Protocol));
        }
        actions.extend(Self::metadata_action(base, change, stamp)?);
        actions.extend(change.remove.iter().map(|file| {
            Action::Remove(Remove {
                path: file.path.clone(),
                data_change,
                deletion_timestamp: Some(now),
                extended_file_metadata: Some(true),
                partition_values: Some(std::iter::empty().collect()),
                size: i64::try_from(file.size).ok(),
                ..Remove::default()
            })
        }));
        for file in &change.add {
            actions.push(Action::Add(Add {
                path: file.path.clone(),
                size: i64::try_from(file.size).unwrap_or(i64::MAX),
                modification_time: now,
                data_change,
                stats: Some(stats::to_json(file, schema, keys)?),
                ..Add::default()
            }));
        }
        Ok(actions)
    }

    /// Metadata that changes: a new schema, or a writer that the table does not know yet.
    fn metadata_action(
        base: &TableHead,
        change: &FileChanges,
        stamp: Option<&CommitStamp>,
    ) -> Result<Option<Action>> {
        let state = state_of(base)?;
        let mut metadata = state.metadata().clone();
        let mut apps = writers(state)?;
        let unknown = stamp.map(|stamp| stamp::app(&stamp.writer)).filter(|app| !apps.contains(app));
        let known = unknown.is_none();
        let failed = |e| Error::new(ErrorKind::Internal, "the metadata can't be changed").because(e);
        if let Some(app) = unknown {
            apps.push(app);
            let list = serde_json::json!(apps).to_string();
            metadata = metadata.add_config_key(WRITERS.to_owned(), list).map_err(failed)?;
        }
        if let Some(new) = &change.schema {
            metadata = metadata.with_schema(&schema::to_delta(new)?).map_err(failed)?;
        }
        if let Some(new) = &change.definition {
            metadata = replaced(&metadata, new, &apps)?;
        }
        let changed = !known || change.schema.is_some() || change.definition.is_some();
        Ok(changed.then_some(Action::Metadata(metadata)))
    }

    /// True when the log still has a version's entry, and a beginning to read it from.
    async fn is_retained(&self, version: TableVersion) -> Result<bool> {
        let listed = self.store.list_with_delimiter(Some(&self.root.clone().join("_delta_log"))).await?;
        let (mut entry, mut beginning) = (false, false);
        for object in listed.objects {
            let name = object.location.filename().unwrap_or_default();
            let Some((number, kind)) = name.split_once('.') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            let is_checkpoint = kind.starts_with("checkpoint.");
            entry |= number == version.0 && (is_checkpoint || kind == "json");
            beginning |= number <= version.0 && (is_checkpoint || number == 0 && kind == "json");
        }
        Ok(entry && beginning)
    }

    async fn checkpoint(&self, state: &DeltaTableState) {
        let mut table = DeltaTable::new(Arc::clone(&self.log));
        table.state = Some(state.clone());
        // The commit has landed; a checkpoint only makes the next reading faster.
        if let Err(error) = Box::pin(checkpoints::create_checkpoint(&table, None)).await {
            tracing::warn!(%error, version = state.version(), "no checkpoint was written");
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
                Err(e) if e.kind() != ErrorKind::Unavailable && !self.is_retained(version).await? => {
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
            return Err(Error::new(ErrorKind::Unsupported, "a table by its path is read, not changed"));
        }
        let state = state_of(base)?;
        let operation = operation(change.operation);
        let properties = CommitProperties::default()
            .with_max_retries(0)
            .with_create_checkpoint(false)
            .with_cleanup_expired_logs(Some(false));
        let properties = match stamp {
            None => properties,
            Some(stamp) => properties
                .with_application_transactions(stamp::transactions(stamp, base.epoch)?)
                .with_metadata([("strandline".to_owned(), stamp::json(stamp))]),
        };
        let commit = CommitBuilder::from(properties)
            .with_actions(Self::actions(base, &change, stamp)?)
            .build(Some(state), Arc::clone(&self.log), operation);
        let landed = match commit.into_future().await {
            Ok(landed) => landed,
            Err(e) if error::is_conflict(&e) => {
                let latest = self.log.get_latest_version(base.version.0).await;
                let latest = latest.map_err(|e| error::of(e, "the newest version can't be found"))?;
                return Ok(MetadataOutcome::Conflict { latest: TableVersion(latest) });
            }
            Err(e) => return Err(error::of(e, "the commit's outcome is not known")),
        };
        if landed.version() != base.version.0 + 1 {
            let message = format!("the commit landed as version {}", landed.version());
            return Err(Error::new(ErrorKind::Internal, message));
        }
        let mut head = base.after(change, stamp);
        head.properties = table_properties(landed.snapshot.metadata());
        head.adapter = Arc::new(landed.snapshot());
        if landed.version().is_multiple_of(CHECKPOINT_EVERY) {
            self.checkpoint(&landed.snapshot).await;
        }
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
        if !self.foreign || head.properties.get(CHANGE_FEED).is_some_and(|on| on.eq_ignore_ascii_case("true"))
        {
            return Ok(());
        }
        let message = format!(
            "the table does not record its changes: its property `{CHANGE_FEED}` is not true; set it, and read the versions from then on"
        );
        Err(Error::new(ErrorKind::Unsupported, message).with("version", head.version))
    }

    async fn deleted_rows(&self, file: &DataFile) -> Result<RoaringBitmap> {
        let mut all = RoaringBitmap::new();
        for place in file.deleted.iter().flat_map(|deleted| &deleted.places) {
            all |= match place {
                DeletedPlace::Inline(bytes) => deletion_vector::plain(bytes)?,
                DeletedPlace::File { path, offset, size } => {
                    let path = file_path(&self.root, path)?;
                    let range = *offset..offset + size + deletion_vector::FRAME;
                    let bytes = self.store.get_range(&path, range).await;
                    let bytes = bytes.map_err(|e| Error::from(e).with("file", &path))?;
                    deletion_vector::framed(&bytes, *size).map_err(|e| e.with("file", &path))?
                }
            };
        }
        Ok(all)
    }
}

pub(super) fn state_of(head: &TableHead) -> Result<&DeltaTableState> {
    let state = head.adapter.downcast_ref::<DeltaTableState>();
    state.ok_or_else(|| Error::new(ErrorKind::Invalid, "the base is no version of a Delta table"))
}

fn head_of(
    state: DeltaTableState,
    marks: Marks,
    known: &BTreeMap<String, Arc<DataFile>>,
) -> Result<TableHead> {
    let metadata = state.metadata();
    if !metadata.partition_columns().is_empty() {
        return Err(unsupported("partition columns"));
    }
    let properties = table_properties(metadata);
    if properties.get("delta.columnMapping.mode").is_some_and(|mode| mode != "none") {
        return Err(unsupported("column mapping"));
    }
    if properties.contains_key(RETENTION) {
        return Err(unsupported(&format!(
            "the property `{RETENTION}`, by which committed batches are forgotten"
        )));
    }
    if !metadata.configuration().contains_key(WRITERS) && !marks.batches.is_empty() {
        return Err(lost_writers());
    }
    let keys = match properties.get(KEYS) {
        None => Vec::new(),
        Some(keys) => serde_json::from_str(keys)
            .map_err(|e| Error::new(ErrorKind::Corrupt, format!("`{KEYS}` is no JSON list")).because(e))?,
    };
    let identity: Arc<str> = metadata.id().into();
    let schema = schema::from_delta(state.schema().as_ref())?;
    let mut files = Vec::new();
    for view in state.log_data() {
        let path = view.path().into_owned();
        files.push(match known.get(&path) {
            Some(file) => Arc::clone(file),
            None => Arc::new(Named::from(&view).ours(&schema)?),
        });
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(TableHead {
        version: TableVersion(state.version()),
        schema,
        keys,
        properties,
        batches: marks.batches,
        state: marks.state,
        epoch: marks.epoch,
        files: Arc::new(files),
        identity,
        adapter: Arc::new(state),
    })
}

/// A table that somebody else maintains. What can't be read right is refused by name.
fn foreign_head(state: DeltaTableState) -> Result<TableHead> {
    let features = state.protocol().reader_features().unwrap_or_default();
    if let Some(unread) = features.iter().find(|feature| !READ_FEATURES.contains(&feature.as_ref())) {
        let message = format!("the table has the feature {}, which is not read", unread.as_ref());
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let metadata = state.metadata();
    let properties = table_properties(metadata);
    if properties.get("delta.columnMapping.mode").is_some_and(|mode| mode != "none") {
        let message = "the table has the feature columnMapping, which is not read";
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let identity: Arc<str> = metadata.id().into();
    let schema = schema::from_delta(state.schema().as_ref())?;
    let mut files = Vec::new();
    for view in state.log_data() {
        files.push(Arc::new(Named::from(&view).any(&schema)?));
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(TableHead {
        version: TableVersion(state.version()),
        schema,
        keys: Vec::new(),
        properties,
        batches: BTreeMap::new(),
        state: crate::contract::StateVersion(0),
        epoch: 0,
        files: Arc::new(files),
        identity,
        adapter: Arc::new(state),
    })
}

/// Properties of a table, but for the list of its writers, which is ours alone.
fn table_properties(metadata: &Metadata) -> BTreeMap<String, String> {
    let all = metadata.configuration().iter().filter(|(key, _)| key.as_str() != WRITERS);
    all.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The metadata of a table that became another one: only its identity stays, and who wrote it.
fn replaced(metadata: &Metadata, new: &TableDefinition, writers: &[String]) -> Result<Metadata> {
    let mut configuration = new.properties.clone();
    configuration.insert(KEYS.to_owned(), serde_json::json!(new.keys).to_string());
    configuration.insert(WRITERS.to_owned(), serde_json::json!(writers).to_string());
    let failed = |e| Error::new(ErrorKind::Internal, "the metadata can't be changed").because(e);
    let schema = serde_json::to_string(&schema::to_delta(&new.schema)?).map_err(failed)?;
    serde_json::from_value(serde_json::json!({
        "id": metadata.id(),
        "name": metadata.name(),
        "description": new.comment,
        "format": { "provider": "parquet", "options": {} },
        "schemaString": schema,
        "partitionColumns": [],
        "configuration": configuration,
        "createdTime": metadata.created_time(),
    }))
    .map_err(failed)
}

fn lost_writers() -> Error {
    let message =
        format!("batches were committed, but the property `{WRITERS}`, which says by whom, is gone");
    Error::new(ErrorKind::Corrupt, message)
}

pub(super) fn unsupported(feature: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("the table has {feature}, which this adapter can't maintain"))
}

fn writers(state: &DeltaTableState) -> Result<Vec<String>> {
    match state.metadata().configuration().get(WRITERS) {
        None => Ok(Vec::new()),
        Some(list) => serde_json::from_str(list)
            .map_err(|e| Error::new(ErrorKind::Corrupt, format!("`{WRITERS}` is no JSON list")).because(e)),
    }
}

/// What the table's history says; conflicts are not decided by it.
fn operation(operation: Operation) -> DeltaOperation {
    let write = |mode| DeltaOperation::Write { mode, partition_by: None, predicate: None };
    match operation {
        Operation::Append => write(SaveMode::Append),
        Operation::Overwrite | Operation::Replace => write(SaveMode::Overwrite),
        Operation::Compact => DeltaOperation::Optimize { predicate: None, target_size: 0 },
        Operation::Merge => DeltaOperation::Merge {
            predicate: None,
            merge_predicate: None,
            matched_predicates: Vec::new(),
            not_matched_predicates: Vec::new(),
            not_matched_by_source_predicates: Vec::new(),
        },
    }
}
