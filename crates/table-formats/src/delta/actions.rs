//! The log entry of a commit, action by action.

use std::collections::{BTreeMap, BTreeSet};

use deltalake_core::{
    kernel::{Action, Add, AddCDCFile, LogicalFileView, Metadata, MetadataExt, Remove},
    protocol::{DeltaOperation, SaveMode},
    table::state::DeltaTableState,
};

use super::{
    KEYS, WRITERS, features,
    file::descriptor,
    head::{state_of, writers},
    mask,
    metadata::CHANGE_FEED,
    protocol::{self, Needs},
    schema, stamp, stats,
};
use crate::{
    contract::{CommitStamp, Result, TableDefinition},
    error::{Error, ErrorKind},
    metadata::{DataFile, FileChanges, Operation, TableHead},
};

/// A commit that is being written.
pub(super) struct Entry<'a> {
    base: &'a TableHead,
    state: &'a DeltaTableState,
    change: &'a FileChanges,
    /// Files of the base that go, as its log has them.
    gone: BTreeMap<String, LogicalFileView>,
    data_change: bool,
    now: i64,
}

impl<'a> Entry<'a> {
    /// A change of a version, at a moment in milliseconds since 1970, UTC.
    pub(super) fn new(base: &'a TableHead, change: &'a FileChanges, now: i64) -> Result<Self> {
        let state = state_of(base)?;
        let paths: BTreeSet<&str> = change.remove.iter().map(|file| file.path.as_str()).collect();
        let mut gone = BTreeMap::new();
        if !paths.is_empty() {
            let views = state.log_data().into_iter().filter(|view| paths.contains(view.path().as_ref()));
            gone.extend(views.map(|view| (view.path().into_owned(), view)));
        }
        let data_change = change.operation != Operation::Compact;
        Ok(Self { base, state, change, gone, data_change, now })
    }

    /// Its actions, but for those of the stamp.
    pub(super) fn actions(&self, stamp: Option<&CommitStamp>) -> Result<Vec<Action>> {
        let change = self.change;
        if self.data_change && !change.remove.is_empty() {
            features::check_removal(self.state.metadata())?;
        }
        let mut actions = Vec::new();
        actions.extend(self.protocol()?.map(Action::Protocol));
        actions.extend(self.metadata(stamp)?.map(Action::Metadata));
        actions.extend(change.remove.iter().map(|file| Action::Remove(self.remove(file))));
        for file in &change.add {
            actions.push(Action::Add(self.add(file)?));
        }
        actions.extend(change.changed.iter().map(|file| {
            Action::Cdc(AddCDCFile { path: file.path.clone(), size: size(file), ..AddCDCFile::default() })
        }));
        Ok(actions)
    }

    /// True when the commit marks rows beside their files.
    fn masks(&self) -> bool {
        self.change.add.iter().any(|file| file.deleted.is_some())
    }

    fn protocol(&self) -> Result<Option<deltalake_core::kernel::Protocol>> {
        let needs = match (&self.change.definition, &self.change.schema) {
            (Some(new), _) => Needs {
                vectors: is_on(&new.properties, mask::ENABLED),
                changes: is_on(&new.properties, CHANGE_FEED),
                ..Needs::of(&new.schema)
            },
            (None, Some(schema)) => Needs::of(schema),
            (None, None) => Needs::default(),
        };
        let needs = Needs { vectors: needs.vectors || self.masks(), ..needs };
        protocol::upgraded(self.state.protocol(), &needs)
    }

    /// Metadata that change: a new schema, a property, or a writer that the table does not know yet.
    fn metadata(&self, stamp: Option<&CommitStamp>) -> Result<Option<Metadata>> {
        let mut metadata = self.state.metadata().clone();
        let mut apps = writers(&metadata)?;
        let unknown = stamp.map(|stamp| stamp::app(&stamp.writer)).filter(|app| !apps.contains(app));
        let enables = self.masks() && !self.base.properties.contains_key(mask::ENABLED);
        let is_same =
            unknown.is_none() && !enables && self.change.schema.is_none() && self.change.definition.is_none();
        if is_same {
            return Ok(None);
        }
        let failed = |e| Error::new(ErrorKind::Internal, "the metadata can't be changed").because(e);
        if let Some(app) = unknown {
            apps.push(app);
            let list = serde_json::json!(apps).to_string();
            metadata = metadata.add_config_key(WRITERS.to_owned(), list).map_err(failed)?;
        }
        if enables {
            let on = "true".to_owned();
            metadata = metadata.add_config_key(mask::ENABLED.to_owned(), on).map_err(failed)?;
        }
        if let Some(new) = &self.change.schema {
            metadata = metadata.with_schema(&schema::to_delta(new)?).map_err(failed)?;
        }
        if let Some(new) = &self.change.definition {
            metadata = replaced(&metadata, new, &apps)?;
        }
        Ok(Some(metadata))
    }

    fn remove(&self, file: &DataFile) -> Remove {
        // Which of a path's files goes, its deletion vector says.
        let named = self.gone.get(&file.path).map(|view| view.remove_action(self.data_change));
        let named = named.unwrap_or_else(|| Remove {
            path: file.path.clone(),
            data_change: self.data_change,
            extended_file_metadata: Some(true),
            partition_values: Some(std::iter::empty().collect()),
            size: Some(size(file)),
            ..Remove::default()
        });
        Remove { deletion_timestamp: Some(self.now), ..named }
    }

    fn add(&self, file: &DataFile) -> Result<Add> {
        let (schema, keys) = match &self.change.definition {
            Some(new) => (&new.schema, &new.keys),
            None => (self.change.schema.as_ref().unwrap_or(&self.base.schema), &self.base.keys),
        };
        let own_stats = || stats::to_json(file, schema, keys);
        if let Some(view) = self.gone.get(&file.path) {
            // The same file, with more of its rows deleted: what else its writer said of it stays.
            let kept = view.stats().and_then(|json| stats::widened(&json));
            return Ok(Add {
                data_change: self.data_change,
                stats: Some(kept.map_or_else(own_stats, Ok)?),
                deletion_vector: file.deleted.as_deref().map(descriptor).transpose()?,
                ..named(view)
            });
        }
        if self.is_partitioned() {
            return Err(partitioned());
        }
        Ok(Add {
            path: file.path.clone(),
            size: size(file),
            modification_time: self.now,
            data_change: self.data_change,
            stats: Some(own_stats()?),
            deletion_vector: file.deleted.as_deref().map(descriptor).transpose()?,
            ..Add::default()
        })
    }

    /// True when new files would have to be told apart by values of partition columns. A table that is replaced as a whole
    /// has none.
    fn is_partitioned(&self) -> bool {
        self.change.definition.is_none() && !self.state.metadata().partition_columns().is_empty()
    }
}

/// A file as a log names it.
#[expect(deprecated, reason = "nothing else gives tags and row numbers of other writers")]
fn named(view: &LogicalFileView) -> Add {
    view.add_action()
}

fn size(file: &DataFile) -> i64 {
    i64::try_from(file.size).unwrap_or(i64::MAX)
}

fn is_on(properties: &BTreeMap<String, String>, name: &str) -> bool {
    properties.get(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// Why rows can't be written to a table of partitions.
pub(super) fn partitioned() -> Error {
    let message = "the table has partition columns, to which this adapter writes no rows: it deletes some, and replaces the \
                   table as a whole by one without them";
    Error::new(ErrorKind::Unsupported, message)
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

/// What the table's history says; conflicts are not decided by it.
pub(super) fn operation(operation: Operation) -> DeltaOperation {
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
