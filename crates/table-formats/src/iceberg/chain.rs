//! Which snapshots led to a version?

use iceberg::spec::{SnapshotRef, TableMetadata};

use crate::{
    contract::{Result, TableVersion},
    error::{Error, ErrorKind},
};

/// A snapshot and those that it came from, newest first, as far as they are known.
pub(super) fn of(metadata: &TableMetadata, from: Option<i64>) -> impl Iterator<Item = &SnapshotRef> {
    let known = move |id: Option<i64>| id.and_then(|id| metadata.snapshot_by_id(id));
    // Metadata of others could go in circles: numbers of versions fall from child to parent.
    std::iter::successors(known(from), move |child| {
        known(child.parent_snapshot_id()).filter(|parent| parent.sequence_number() < child.sequence_number())
    })
}

/// The version that a snapshot is; 0 before the first.
pub(super) fn version(snapshot: Option<&SnapshotRef>) -> TableVersion {
    TableVersion(snapshot.and_then(|s| u64::try_from(s.sequence_number()).ok()).unwrap_or(0))
}

/// The snapshot of a version; `None` for the one before the first.
pub(super) fn at(metadata: &TableMetadata, at: TableVersion) -> Result<Option<SnapshotRef>> {
    let gone = || Error::new(ErrorKind::NotFound, format!("version {at} is not retained"));
    let mut oldest = None;
    for snapshot in of(metadata, metadata.current_snapshot_id()) {
        if version(Some(snapshot)) == at {
            return Ok(Some(std::sync::Arc::clone(snapshot)));
        }
        oldest = Some(snapshot);
    }
    let newest = version(metadata.current_snapshot());
    if at > newest {
        return Err(Error::new(ErrorKind::NotFound, format!("there is no version {at} yet")));
    }
    let from_nothing = oldest.is_none_or(|oldest| oldest.parent_snapshot_id().is_none());
    if at.0 == 0 && from_nothing { Ok(None) } else { Err(gone()) }
}
