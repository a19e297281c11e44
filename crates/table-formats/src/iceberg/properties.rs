//! A table's properties at a version.
//!
//! Iceberg keeps them for the newest version only. A table that was replaced as a whole was another one before: so the snapshot
//! that replaces it says which properties it had.

use std::collections::BTreeMap;

use iceberg::spec::TableMetadata;

use super::{KEYS, chain, marks::MARKS};
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// Line of a summary with the properties of before, as JSON.
pub(super) const REPLACED: &str = "strandline.replaced-properties";

/// The properties at a version, but for the marks, which are ours alone.
pub(super) fn at(metadata: &TableMetadata, snapshot: Option<i64>) -> Result<BTreeMap<String, String>> {
    let newest = metadata.current_snapshot_id();
    let later = chain::of(metadata, newest).take_while(|later| Some(later.snapshot_id()) != snapshot);
    let replaced = later.filter_map(|later| later.summary().additional_properties.get(REPLACED)).last();
    if let Some(text) = replaced {
        return serde_json::from_str(text).map_err(|e| {
            let message = format!("`{REPLACED}` of a snapshot is no JSON object");
            Error::new(ErrorKind::Corrupt, message).because(e)
        });
    }
    let all = metadata.properties().iter().filter(|(name, _)| name.as_str() != MARKS);
    Ok(all.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// The properties as a snapshot has them that replaces the table.
pub(super) fn to_text(properties: &BTreeMap<String, String>) -> Result<String> {
    serde_json::to_string(properties)
        .map_err(|e| Error::new(ErrorKind::Internal, "properties can't be written").because(e))
}

/// The key columns that properties name.
pub(super) fn keys(properties: &BTreeMap<String, String>) -> Result<Vec<String>> {
    match properties.get(KEYS) {
        None => Ok(Vec::new()),
        Some(keys) => serde_json::from_str(keys)
            .map_err(|e| Error::new(ErrorKind::Corrupt, format!("`{KEYS}` is no JSON list")).because(e)),
    }
}
