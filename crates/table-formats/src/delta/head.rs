//! A version's metadata: of a table that is maintained here, and of one that somebody else maintains.

use std::{collections::BTreeMap, sync::Arc};

use arrow_schema::SchemaRef;
use deltalake_core::{
    kernel::{LogicalFileView, Metadata},
    table::state::DeltaTableState,
};
use futures::{StreamExt, TryStreamExt, stream};

use super::{KEYS, WRITERS, features, file::Named, metadata::DeltaMetadata, schema, stamp::Marks};
use crate::{
    contract::{Result, StateVersion, TableVersion},
    error::{Error, ErrorKind},
    metadata::{DataFile, TableHead},
    parquet::{Readers, file_path},
};

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
/// Footers that are read at once.
const COUNTED_AT_ONCE: usize = 8;

/// What the adapter keeps of a version to commit on it.
pub(super) fn state_of(head: &TableHead) -> Result<&DeltaTableState> {
    let state = head.adapter.downcast_ref::<DeltaTableState>();
    state.ok_or_else(|| Error::new(ErrorKind::Invalid, "the base is no version of a Delta table"))
}

impl DeltaMetadata {
    /// A table that is maintained here. Files that are known need not be read from the log again.
    pub(super) async fn own_head(
        &self,
        state: DeltaTableState,
        marks: Marks,
        known: &[Arc<DataFile>],
    ) -> Result<TableHead> {
        let metadata = state.metadata();
        let schema = schema::from_delta(state.schema().as_ref())?;
        features::check(&state, &schema)?;
        if !metadata.configuration().contains_key(WRITERS) && !marks.batches.is_empty() {
            return Err(lost_writers());
        }
        let properties = table_properties(metadata);
        let keys = match properties.get(KEYS) {
            None => Vec::new(),
            Some(keys) => serde_json::from_str(keys).map_err(|e| {
                Error::new(ErrorKind::Corrupt, format!("`{KEYS}` is no JSON list")).because(e)
            })?,
        };
        let files = self.own_files(state.log_data(), &schema, known).await?;
        Ok(TableHead {
            version: TableVersion(state.version()),
            schema,
            keys,
            properties,
            batches: marks.batches,
            state: marks.state,
            epoch: marks.epoch,
            files: Arc::new(files),
            identity: metadata.id().into(),
            adapter: Arc::new(state),
        })
    }

    async fn own_files(
        &self,
        views: impl IntoIterator<Item = LogicalFileView>,
        schema: &SchemaRef,
        known: &[Arc<DataFile>],
    ) -> Result<Vec<Arc<DataFile>>> {
        let known: BTreeMap<&str, &Arc<DataFile>> = known.iter().map(|f| (f.path.as_str(), f)).collect();
        let (mut files, mut uncounted) = (Vec::new(), Vec::new());
        for view in views {
            let named = Named::from(&view);
            let same = known.get(named.path()).copied();
            match same {
                Some(file) if file.deleted == named.deleted()? => files.push(Arc::clone(file)),
                _ => match named.ours(schema)? {
                    (file, true) => files.push(Arc::new(file)),
                    (file, false) => uncounted.push(file),
                },
            }
        }
        files.extend(self.counted(uncounted).await?);
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    /// Files of other writers, of which the log does not say how many rows they have: the files themselves do.
    async fn counted(&self, files: Vec<DataFile>) -> Result<Vec<Arc<DataFile>>> {
        let readers = Readers::new(Arc::clone(&self.store));
        let counts = files.into_iter().map(async |mut file| {
            let known = self.counts.lock().await.get(&file.path).copied();
            file.rows = match known {
                Some(rows) => rows,
                None => readers.open(file_path(&self.root, &file.path)?, file.size).await?.rows(),
            };
            self.counts.lock().await.insert(file.path.clone(), file.rows);
            Ok(Arc::new(file))
        });
        Box::pin(stream::iter(counts).buffer_unordered(COUNTED_AT_ONCE).try_collect()).await
    }
}

/// A table that somebody else maintains. What can't be read right is refused by name.
pub(super) fn foreign_head(state: DeltaTableState) -> Result<TableHead> {
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
        state: StateVersion(0),
        epoch: 0,
        files: Arc::new(files),
        identity,
        adapter: Arc::new(state),
    })
}

/// Properties of a table, but for the list of its writers, which is ours alone.
pub(super) fn table_properties(metadata: &Metadata) -> BTreeMap<String, String> {
    let all = metadata.configuration().iter().filter(|(key, _)| key.as_str() != WRITERS);
    all.map(|(key, value)| (key.clone(), value.clone())).collect()
}

pub(super) fn lost_writers() -> Error {
    let message =
        format!("batches were committed, but the property `{WRITERS}`, which says by whom, is gone");
    Error::new(ErrorKind::Corrupt, message)
}

/// The applications of the table's writers.
pub(super) fn writers(metadata: &Metadata) -> Result<Vec<String>> {
    match metadata.configuration().get(WRITERS) {
        None => Ok(Vec::new()),
        Some(list) => serde_json::from_str(list)
            .map_err(|e| Error::new(ErrorKind::Corrupt, format!("`{WRITERS}` is no JSON list")).because(e)),
    }
}
