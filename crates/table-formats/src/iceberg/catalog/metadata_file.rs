//! A table's metadata in a file of its warehouse: reading it, and writing the one that comes next.
//!
//! For catalogs that keep nothing but a pointer to it. A metadata file is written once and never changed.

use std::{io::Read, str::FromStr, sync::Arc};

use bytes::Bytes;
use flate2::read::GzDecoder;
use iceberg::{
    MetadataLocation, TableRequirement, TableUpdate,
    spec::{FormatVersion, SortOrder, TableMetadata, TableMetadataBuilder},
};
use object_store::{ObjectStoreExt, path::Path};

use super::{Creation, Loaded};
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
    iceberg::{Warehouse, error, storage},
};

/// The most that a metadata file may say, in bytes: one of a million snapshots stays below it.
const MOST_BYTES: u64 = 512 << 20;

/// Set when files of older metadata are to be removed as they leave the log of metadata files. The format's name for it.
const DELETE_AFTER_COMMIT: &str = "write.metadata.delete-after-commit.enabled";

/// The property by which a table is created in a version of the format. It is none of the table's own.
const FORMAT_VERSION: &str = "format-version";

/// Metadata that are not in a file yet.
#[derive(Debug)]
pub(super) struct Draft {
    /// What the file will say.
    pub metadata: TableMetadata,
    /// Its name.
    pub location: MetadataLocation,
    /// Files that need not stay when it is the newest.
    pub expired: Vec<String>,
}

/// Reads a metadata file, gzipped or not.
///
/// # Errors
/// `NotFound`, `Corrupt`, else the store's.
pub(super) async fn read(warehouse: &Warehouse, url: &str) -> Result<Loaded> {
    let path = warehouse.path(url)?;
    let found = warehouse.store().get(&path).await.map_err(|e| Error::from(e).with("file", url))?;
    let (size, bytes) = (found.meta.size, found.bytes());
    if size > MOST_BYTES {
        return Err(too_large(url));
    }
    let bytes = bytes.await.map_err(|e| Error::from(e).with("file", url))?;
    let metadata = parse(&bytes, url)?;
    Ok(Loaded { metadata: Arc::new(metadata), metadata_location: url.to_owned() })
}

fn parse(bytes: &Bytes, url: &str) -> Result<TableMetadata> {
    let corrupt = |e: Box<dyn std::error::Error + Send + Sync>| {
        Error::new(ErrorKind::Corrupt, "a metadata file is not one").with("file", url).because(e)
    };
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return serde_json::from_slice(bytes).map_err(|e| corrupt(e.into()));
    }
    // A few bytes may say that they unpack to any number.
    let mut unpacked = Vec::new();
    let mut reader = GzDecoder::new(bytes.as_ref()).take(MOST_BYTES + 1);
    reader.read_to_end(&mut unpacked).map_err(|e| corrupt(e.into()))?;
    if unpacked.len() as u64 > MOST_BYTES {
        return Err(too_large(url));
    }
    serde_json::from_slice(&unpacked).map_err(|e| corrupt(e.into()))
}

/// True while every requirement holds of a table's metadata.
pub(super) fn hold(requirements: &[TableRequirement], base: &TableMetadata) -> bool {
    requirements.iter().all(|requirement| requirement.check(Some(base)).is_ok())
}

/// The metadata that a table begins with.
///
/// # Errors
/// `Invalid` when they make no table.
pub(super) fn first(location: String, creation: Creation) -> Result<Draft> {
    let Creation { schema, partitioning, sort_order, mut properties } = creation;
    let version = format_version(properties.remove(FORMAT_VERSION).as_deref())?;
    let built = TableMetadataBuilder::new(schema, partitioning, sort_order, location, version, properties)
        // Known beside the table's own order: Spark's rewriting in another one looks it up.
        .and_then(|table| table.add_sort_order(SortOrder::unsorted_order()))
        .and_then(TableMetadataBuilder::build)
        .map_err(|e| Error::new(ErrorKind::Invalid, "no table can be made like this").because(e))?;
    let location = MetadataLocation::new_with_metadata(built.metadata.location(), &built.metadata);
    Ok(Draft { metadata: built.metadata, location, expired: Vec::new() })
}

fn format_version(property: Option<&str>) -> Result<FormatVersion> {
    match property {
        None | Some("2") => Ok(FormatVersion::V2),
        Some("1") => Ok(FormatVersion::V1),
        Some("3") => Ok(FormatVersion::V3),
        Some(other) => {
            let message = "there is no such version of Iceberg's format: give 1, 2 or 3";
            Err(Error::new(ErrorKind::Invalid, message).with(FORMAT_VERSION, other))
        }
    }
}

/// The metadata that updates make of a table's.
///
/// # Errors
/// `Invalid` when they make no table.
pub(super) fn next(base: &Loaded, updates: Vec<TableUpdate>) -> Result<Draft> {
    let invalid = |e| Error::new(ErrorKind::Invalid, "these updates make no table").because(e);
    let from = TableMetadata::clone(&base.metadata).into_builder(Some(base.metadata_location.clone()));
    let changed = updates.into_iter().try_fold(from, |builder, update| update.apply(builder));
    let built = changed.and_then(TableMetadataBuilder::build).map_err(invalid)?;
    // Other writers name their files in other ways: after one of those the count begins anew.
    let before = MetadataLocation::from_str(&base.metadata_location)
        .unwrap_or_else(|_| MetadataLocation::new_with_metadata(built.metadata.location(), &built.metadata));
    let location = before.with_next_version().with_new_metadata(&built.metadata);
    let deletes = built.metadata.properties().get(DELETE_AFTER_COMMIT);
    let deletes = deletes.is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let expired = built.expired_metadata_logs.into_iter().filter(|_| deletes).map(|log| log.metadata_file);
    let expired = expired.collect();
    Ok(Draft { metadata: built.metadata, location, expired })
}

/// Writes a draft to its file.
///
/// # Errors
/// The store's.
pub(super) async fn write(warehouse: &Warehouse, draft: &Draft) -> Result<Loaded> {
    let url = draft.location.to_string();
    let written = draft.metadata.write_to(&storage::file_io(warehouse), &draft.location).await;
    written.map_err(|e| error::of(e, "a metadata file could not be written").with("file", &url))?;
    Ok(Loaded { metadata: Arc::new(draft.metadata.clone()), metadata_location: url })
}

/// Removes metadata files that nothing names any more. What can't be removed stays: it is in nobody's way.
pub(super) async fn remove(warehouse: &Warehouse, urls: &[String]) {
    for url in urls {
        let removed = match warehouse.path(url) {
            Ok(path) => warehouse.store().delete(&path).await.map_err(Error::from),
            Err(e) => Err(e),
        };
        if let Err(e) = removed {
            tracing::debug!(file = url, error = %e, "a metadata file that is not needed any more stays");
        }
    }
}

/// The URL of a table's folder, below that of its namespace.
///
/// # Errors
/// `Invalid` when the name can't be one of a folder.
pub(super) fn table_folder(namespace_folder: &str, table: &str) -> Result<String> {
    let is_folder = Path::parse(table).is_ok_and(|path| path.as_ref() == table && path.parts().count() == 1);
    if is_folder {
        return Ok(format!("{}/{table}", namespace_folder.trim_end_matches('/')));
    }
    let message = "a table of this name can't have a folder: give it another name";
    Err(Error::new(ErrorKind::Invalid, message).with("table", table))
}

fn too_large(url: &str) -> Error {
    let message = "a metadata file is larger than one can be";
    Error::new(ErrorKind::Corrupt, message).with("file", url).with("most", MOST_BYTES)
}
