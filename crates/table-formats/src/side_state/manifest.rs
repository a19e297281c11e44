//! What a version of the state consists of, and its bytes: a line with a checksum, then JSON.

use std::{collections::BTreeSet, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use crate::{
    contract::{Result, StateVersion},
    error::{Error, ErrorKind},
    hex::{from_hex, to_hex},
    parquet,
};

/// Format of a manifest without barriers.
const PLAIN: u32 = 1;
/// Format of one with barriers: a reader that does not know them must not take the state for one without.
const WITH_BARRIERS: u32 = 2;

/// One version of the state.
#[derive(Debug, Clone)]
pub(super) struct Manifest {
    pub(super) keys: Vec<String>,
    pub(super) schema: Option<SchemaRef>,
    /// What holds for every key; never without rows.
    pub(super) barriers: Option<RecordBatch>,
    pub(super) files: Vec<StateFile>,
}

/// A data file of a version.
#[derive(Debug, Clone)]
pub(super) struct StateFile {
    pub(super) path: String,
    pub(super) size: u64,
    pub(super) rows: u64,
    /// Positions of rows that don't count any more.
    pub(super) deleted: Arc<RoaringBitmap>,
}

impl StateFile {
    /// Rows that count.
    pub(super) fn live(&self) -> u64 {
        self.rows.saturating_sub(self.deleted.len())
    }
}

#[derive(Serialize, Deserialize)]
struct Record {
    format: u32,
    version: u64,
    keys: Vec<String>,
    schema: Option<Schema>,
    files: Vec<FileRecord>,
    /// A Parquet file, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    barriers: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct FileRecord {
    path: String,
    size: u64,
    rows: u64,
    /// A roaring bitmap in its portable format, in hexadecimal; empty for none.
    deleted: String,
}

impl Manifest {
    /// No rows.
    pub(super) fn empty(keys: Vec<String>) -> Self {
        Self { keys, schema: None, barriers: None, files: Vec::new() }
    }

    /// The bytes of a manifest of this version.
    pub(super) fn encode(&self, version: StateVersion) -> Result<Vec<u8>> {
        let files = self.files.iter().map(FileRecord::of).collect::<Result<_>>()?;
        let schema = self.schema.as_ref().map(|s| s.as_ref().clone());
        let barriers = self.barriers.as_ref().map(parquet::to_text).transpose()?;
        let format = if barriers.is_some() { WITH_BARRIERS } else { PLAIN };
        let keys = self.keys.clone();
        let record = Record { format, version: version.0, keys, schema, files, barriers };
        let json = serde_json::to_vec(&record)
            .map_err(|e| Error::new(ErrorKind::Internal, "a manifest can't be written").because(e))?;
        let mut bytes = format!("{:016x}\n", checksum(&json)).into_bytes();
        bytes.extend(json);
        Ok(bytes)
    }

    /// The manifest in these bytes, which nobody vouches for.
    pub(super) fn decode(bytes: &[u8], version: StateVersion) -> Result<Self> {
        let (sum, json) = bytes.split_at_checked(17).ok_or_else(|| corrupt("the manifest is cut off"))?;
        if sum != format!("{:016x}\n", checksum(json)).as_bytes() {
            return Err(corrupt("the manifest was altered: its checksum is wrong"));
        }
        let record: Record =
            serde_json::from_slice(json).map_err(|e| corrupt("the manifest can't be read").because(e))?;
        if ![PLAIN, WITH_BARRIERS].contains(&record.format) {
            let message = format!(
                "the manifest has format {}, this version reads up to {WITH_BARRIERS}",
                record.format
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        if record.version != version.0 {
            return Err(corrupt("the manifest is of another version"));
        }
        let files = record.files.into_iter().map(FileRecord::read).collect::<Result<Vec<_>>>()?;
        let names: BTreeSet<_> = files.iter().map(|f| f.path.as_str()).collect();
        if names.len() != files.len() {
            return Err(corrupt("the manifest names a file twice"));
        }
        if record.barriers.is_some() != (record.format == WITH_BARRIERS) {
            return Err(corrupt("the manifest has barriers, or lacks them, against its format"));
        }
        let barriers = record.barriers.map(|text| read_barriers(&text)).transpose()?;
        let schema = record.schema.map(Arc::new);
        let known = |key: &String| schema.as_ref().is_some_and(|s| s.field_with_name(key).is_ok());
        if !files.is_empty() && !record.keys.iter().all(known) {
            return Err(corrupt("the manifest's schema lacks a key"));
        }
        Ok(Self { keys: record.keys, schema, barriers, files })
    }
}

impl FileRecord {
    fn of(file: &StateFile) -> Result<Self> {
        let mut bytes = Vec::new();
        if !file.deleted.is_empty() {
            file.deleted
                .serialize_into(&mut bytes)
                .map_err(|e| Error::new(ErrorKind::Internal, "a manifest can't be written").because(e))?;
        }
        Ok(Self { path: file.path.clone(), size: file.size, rows: file.rows, deleted: to_hex(&bytes) })
    }

    fn read(self) -> Result<StateFile> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        if self.path.is_empty() || self.path.starts_with('.') || !self.path.chars().all(plain) {
            return Err(corrupt("the manifest names a file outside its folder"));
        }
        let bytes = from_hex(&self.deleted).ok_or_else(|| corrupt("deleted positions can't be read"))?;
        let deleted = if bytes.is_empty() {
            RoaringBitmap::new()
        } else {
            RoaringBitmap::deserialize_from(bytes.as_slice())
                .map_err(|e| corrupt("deleted positions can't be read").because(e))?
        };
        if deleted.max().is_some_and(|max| u64::from(max) >= self.rows) {
            return Err(corrupt("deleted positions lie behind the file's end").with("file", &self.path));
        }
        Ok(StateFile { path: self.path, size: self.size, rows: self.rows, deleted: Arc::new(deleted) })
    }
}

fn read_barriers(text: &str) -> Result<RecordBatch> {
    parquet::from_text(text).map_err(|e| corrupt("the state's barriers can't be read").because(e))
}

fn corrupt(message: &str) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

/// FNV-1a: against accidents, not against adversaries.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
