//! Committing: which manifests change, what the snapshot says, and what the catalog is asked to swap.

mod draft;
mod shape;

use std::{collections::HashMap, sync::Arc};

use iceberg::{
    TableRequirement, TableUpdate,
    spec::{
        DataContentType, DataFileBuilder, DataFileFormat, Datum, MAIN_BRANCH, ManifestEntry, ManifestStatus,
        Snapshot, SnapshotReference, SnapshotRetention, TableMetadata as IcebergTable,
    },
};
use object_store::ObjectStoreExt;

use super::{
    catalog::{Loaded, Swap},
    chain,
    manifest::{self, Manifest},
    marks::{self, MARKS, Marks, STAMP},
    metadata::{IcebergMetadata, State, state_of},
    position_deletes::FILE_NUMBER,
    properties,
    summary::{self, Counts},
    values::Metrics,
};
use crate::{
    contract::{CommitStamp, Result},
    error::{Error, ErrorKind},
    metadata::{DataFile, DeletedPlace, FileChanges, MetadataOutcome, TableHead},
    parquet::file_path,
    time::wall_clock_millis,
};

pub(super) use draft::Draft;
pub(super) use shape::{Shape, lacks_source, numbered, sort_order};

/// So often a swap is tried that was lost to somebody who left the rows alone.
const TRIES: usize = 16;

/// A snapshot that was written, and that nobody sees yet.
struct Attempt {
    snapshot: Snapshot,
    manifests: Vec<Arc<Manifest>>,
    /// URLs of what was written for it.
    written: Vec<String>,
}

impl IcebergMetadata {
    /// Commits a change on a base, which the newest snapshot must still be.
    pub(super) async fn swap(
        &self,
        base: &TableHead,
        change: &FileChanges,
        stamp: Option<&CommitStamp>,
    ) -> Result<MetadataOutcome> {
        let state = state_of(base)?;
        let mut loaded = state.loaded.clone();
        for _ in 0..TRIES {
            let shape = Shape::of(&loaded.metadata, base, change)?;
            if !self.fits(change, &shape).await? {
                return Ok(MetadataOutcome::Conflict { latest: base.version });
            }
            let draft = Draft::of(self, state, change, &shape)?;
            let attempt = self.write(&loaded, state, (base, change, stamp), (draft, &shape)).await?;
            let updates = Self::updates(&loaded.metadata, base, (change, stamp), (&attempt, &shape))?;
            let requirements = requirements(&loaded.metadata, state, &shape);
            match self.catalog().commit(self.name(), &loaded, requirements, updates).await? {
                Swap::Swapped(swapped) => {
                    return self.landed(swapped, attempt).await.map(MetadataOutcome::Committed);
                }
                Swap::Lost => loaded = self.load().await?,
            }
            let id = attempt.snapshot.snapshot_id();
            if loaded.metadata.snapshot_by_id(id).is_some() {
                // An answer that was lost, and a client that asked again: it is ours that is in the way.
                return self.landed(loaded, attempt).await.map(MetadataOutcome::Committed);
            }
            if !carries(&loaded.metadata, stamp)? {
                self.remove(&attempt.written).await;
            }
            if !is_untouched(&loaded.metadata, state) {
                let latest = chain::version(loaded.metadata.current_snapshot());
                return Ok(MetadataOutcome::Conflict { latest });
            }
        }
        Ok(MetadataOutcome::Conflict { latest: base.version })
    }

    /// The table after our snapshot, be it that others came on top of it meanwhile.
    async fn landed(&self, loaded: Loaded, attempt: Attempt) -> Result<TableHead> {
        let snapshot = loaded.metadata.snapshot_by_id(attempt.snapshot.snapshot_id()).cloned();
        let snapshot = snapshot.ok_or_else(|| {
            Error::new(ErrorKind::Internal, "the catalog swapped, but the snapshot is not in the table")
        })?;
        self.remember(State { loaded, snapshot: Some(snapshot), manifests: attempt.manifests }).await
    }

    async fn write(
        &self,
        loaded: &Loaded,
        state: &State,
        (base, change, stamp): (&TableHead, &FileChanges, Option<&CommitStamp>),
        (draft, shape): (Draft, &Shape),
    ) -> Result<Attempt> {
        let metadata = &loaded.metadata;
        let (id, sequence) = (new_id(metadata), metadata.next_sequence_number());
        let name = uuid::Uuid::new_v4();
        let folder = format!("{}/metadata", metadata.location().trim_end_matches('/'));
        let mut attempt = (draft.kept, Vec::new());
        let mut fresh = Vec::new();
        for (number, new) in draft.new.into_iter().enumerate() {
            let url = format!("{folder}/{name}-m{number}.avro");
            attempt.1.push(url.clone());
            fresh.push(Arc::new(manifest::write(self.warehouse(), &url, new, (id, sequence)).await?));
        }
        fresh.append(&mut attempt.0);
        let parent = state.snapshot.as_ref().map(|snapshot| snapshot.snapshot_id());
        let list = format!("{folder}/snap-{id}-1-{name}.avro");
        attempt.1.push(list.clone());
        manifest::write_list(self.warehouse(), &list, &fresh, (id, parent, sequence)).await?;
        let all = fresh.iter().flat_map(|manifest| manifest.live()).map(AsRef::as_ref);
        let counts = (draft.came, draft.went, Counts::of(all));
        let more = lines(base, change, stamp)?;
        let last = metadata.last_updated_ms();
        let snapshot = Snapshot::builder()
            .with_snapshot_id(id)
            .with_parent_snapshot_id(parent)
            .with_sequence_number(sequence)
            .with_timestamp_ms(wall_clock_millis().max(last))
            .with_manifest_list(list)
            .with_summary(summary::of(change.operation, counts, more))
            .with_schema_id(shape.metadata.current_schema_id())
            .build();
        Ok(Attempt { snapshot, manifests: fresh, written: attempt.1 })
    }

    fn updates(
        metadata: &IcebergTable,
        base: &TableHead,
        (change, stamp): (&FileChanges, Option<&CommitStamp>),
        (attempt, shape): (&Attempt, &Shape),
    ) -> Result<Vec<TableUpdate>> {
        let mut updates = shape.updates.clone();
        let mut properties = HashMap::new();
        if stamp.is_some() {
            properties.insert(MARKS.to_owned(), marks_after(base, stamp).to_text()?);
        }
        if let Some(definition) = &change.definition {
            properties.extend(super::properties_of(definition));
            let gone = metadata.properties().keys();
            let gone = gone.filter(|name| name.as_str() != MARKS && !properties.contains_key(*name));
            let removals: Vec<_> = gone.cloned().collect();
            if !removals.is_empty() {
                updates.push(TableUpdate::RemoveProperties { removals });
            }
        }
        properties.retain(|name, value| metadata.properties().get(name) != Some(value));
        if !properties.is_empty() {
            updates.push(TableUpdate::SetProperties { updates: properties });
        }
        let id = attempt.snapshot.snapshot_id();
        updates.push(TableUpdate::AddSnapshot { snapshot: attempt.snapshot.clone() });
        let reference = SnapshotReference::new(id, retention(metadata)?);
        updates.push(TableUpdate::SetSnapshotRef { ref_name: MAIN_BRANCH.to_owned(), reference });
        Ok(updates)
    }

    /// Takes back what was written for a snapshot that nobody will ever see; what stays is only a leftover.
    async fn remove(&self, urls: &[String]) {
        for url in urls {
            let Ok(path) = self.warehouse().path(url) else { continue };
            if let Err(error) = self.warehouse().store().delete(&path).await {
                tracing::debug!(%error, "a leftover file stays");
            }
        }
    }

    /// The entry of a new data file.
    pub(super) fn data_entry(&self, file: &DataFile, shape: &Shape) -> Result<ManifestEntry> {
        let metrics = Metrics::of(file, shape.metadata.current_schema())?;
        let partition = self.partition(file, shape.metadata.default_partition_spec()).ok_or_else(|| {
            Error::new(ErrorKind::Internal, "a file's partition is not known").with("file", &file.path)
        })?;
        let mut builder = DataFileBuilder::default();
        builder
            .content(DataContentType::Data)
            .file_path(self.warehouse().url(&file_path(self.folder(), &file.path)?))
            .file_format(DataFileFormat::Parquet)
            .partition(partition)
            .partition_spec_id(shape.metadata.default_partition_spec_id())
            .record_count(file.rows)
            .file_size_in_bytes(file.size)
            .value_counts(metrics.values)
            .null_value_counts(metrics.nulls)
            .lower_bounds(metrics.lower)
            .upper_bounds(metrics.upper);
        added(&builder)
    }

    /// The entry of a new file of positions, of one data file.
    pub(super) fn delete_entry(
        &self,
        file: &DataFile,
        of: &ManifestEntry,
        spec: i32,
    ) -> Result<ManifestEntry> {
        let new = file.deleted.as_ref().and_then(|deleted| Some((deleted.count?, deleted.places.last()?)));
        let Some((count, DeletedPlace::File { path, size, .. })) = new else {
            let message = "a masked file says not where its deletes lie, or how many they are";
            return Err(Error::new(ErrorKind::Internal, message).with("file", &file.path));
        };
        let url = of.file_path().to_owned();
        let bound = HashMap::from([(FILE_NUMBER, Datum::string(&url))]);
        let mut builder = DataFileBuilder::default();
        builder
            .content(DataContentType::PositionDeletes)
            .file_path(self.warehouse().url(&file_path(self.folder(), path)?))
            .file_format(DataFileFormat::Parquet)
            .partition(of.data_file().partition().clone())
            .partition_spec_id(spec)
            .record_count(count)
            .file_size_in_bytes(*size)
            .lower_bounds(bound.clone())
            .upper_bounds(bound)
            .referenced_data_file(Some(url));
        added(&builder)
    }
}

fn added(builder: &DataFileBuilder) -> Result<ManifestEntry> {
    let file = builder.build();
    let file = file.map_err(|e| Error::new(ErrorKind::Internal, "a file can't be named").because(e))?;
    Ok(ManifestEntry::builder().status(ManifestStatus::Added).data_file(file).build())
}

/// True when nothing moved but what a change does not depend on: properties, or other branches.
fn is_untouched(now: &IcebergTable, base: &State) -> bool {
    let then = &base.loaded.metadata;
    now.uuid() == then.uuid()
        && now.current_snapshot_id() == base.snapshot.as_ref().map(|snapshot| snapshot.snapshot_id())
        && now.current_schema_id() == then.current_schema_id()
        && now.last_column_id() == then.last_column_id()
        && now.default_partition_spec_id() == then.default_partition_spec_id()
        && now.properties().get(super::KEYS) == then.properties().get(super::KEYS)
}

/// What the swap depends on: all that the change was made from.
fn requirements(metadata: &IcebergTable, state: &State, shape: &Shape) -> Vec<TableRequirement> {
    let mut all = vec![
        TableRequirement::UuidMatch { uuid: metadata.uuid() },
        TableRequirement::RefSnapshotIdMatch {
            r#ref: MAIN_BRANCH.to_owned(),
            snapshot_id: state.snapshot.as_ref().map(|snapshot| snapshot.snapshot_id()),
        },
        TableRequirement::CurrentSchemaIdMatch { current_schema_id: metadata.current_schema_id() },
        TableRequirement::DefaultSpecIdMatch { default_spec_id: metadata.default_partition_spec_id() },
    ];
    if !shape.updates.is_empty() {
        let last_assigned_field_id = metadata.last_column_id();
        all.push(TableRequirement::LastAssignedFieldIdMatch { last_assigned_field_id });
        let default_sort_order_id = metadata.default_sort_order_id();
        all.push(TableRequirement::DefaultSortOrderIdMatch { default_sort_order_id });
    }
    all
}

fn marks_after(base: &TableHead, stamp: Option<&CommitStamp>) -> Marks {
    let marks = Marks { batches: base.batches.clone(), state: base.state, epoch: base.epoch };
    match stamp {
        Some(stamp) => marks.after(stamp),
        None => marks,
    }
}

/// What the summary says beside the counts.
fn lines(
    base: &TableHead,
    change: &FileChanges,
    stamp: Option<&CommitStamp>,
) -> Result<HashMap<String, String>> {
    let mut lines = HashMap::from([
        (MARKS.to_owned(), marks_after(base, stamp).to_text()?),
        ("engine-name".to_owned(), "strandline".to_owned()),
        ("engine-version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
    ]);
    if change.definition.is_some() {
        lines.insert(properties::REPLACED.to_owned(), properties::to_text(&base.properties)?);
    }
    if let Some(stamp) = stamp {
        lines.insert(STAMP.to_owned(), marks::stamp_text(stamp)?);
    }
    Ok(lines)
}

/// True when the table carries this batch, or a later one: then what was written for it may be needed.
fn carries(metadata: &IcebergTable, stamp: Option<&CommitStamp>) -> Result<bool> {
    let Some(stamp) = stamp else { return Ok(false) };
    let marks = Marks::at(metadata, metadata.current_snapshot_id())?;
    Ok(marks.batches.get(&stamp.writer).is_some_and(|batch| stamp.batch <= *batch))
}

/// How long the main branch keeps its snapshots, as somebody may have set it.
fn retention(metadata: &IcebergTable) -> Result<SnapshotRetention> {
    let known = super::history::references(metadata)?.remove(MAIN_BRANCH);
    let known = known.map(|reference| reference.retention);
    Ok(known.unwrap_or_else(|| SnapshotRetention::branch(None, None, None)))
}

/// A number that no snapshot of the table has.
fn new_id(metadata: &IcebergTable) -> i64 {
    loop {
        let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
        let id = i64::try_from((high ^ low) >> 1).unwrap_or(i64::MAX);
        if id > 0 && metadata.snapshot_by_id(id).is_none() {
            return id;
        }
    }
}
