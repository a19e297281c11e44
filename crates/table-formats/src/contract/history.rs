//! What commits did, and how changed rows look.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};

use super::{Result, TableVersion};
use crate::error::{Error, ErrorKind};

/// Column that says what became of a row.
pub const CHANGE_TYPE: &str = "_change_type";
/// Column with the version of the commit.
pub const COMMIT_VERSION: &str = "_commit_version";
/// Column with the time of the commit.
pub const COMMIT_TIMESTAMP: &str = "_commit_timestamp";

/// A row that came.
pub const INSERT: &str = "insert";
/// A row that went.
pub const DELETE: &str = "delete";
/// A row that changed, as it was.
pub const UPDATE_PREIMAGE: &str = "update_preimage";
/// A row that changed, as it is.
pub const UPDATE_POSTIMAGE: &str = "update_postimage";

/// A file that an append added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendedFile {
    /// Path within the table; its identity.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// Rows; about so many where the format does not know.
    pub rows: u64,
}

/// What a commit did to rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitKind {
    /// No row came, went or changed.
    Nothing,
    /// Rows came.
    Append,
    /// Rows went.
    Delete,
    /// Rows changed, or some went and others came.
    Change,
    /// The table became one with other columns, and its rows went.
    Replace,
}

/// One commit, to readers of a table's changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableCommit {
    /// The version that it made.
    pub version: TableVersion,
    /// When, in milliseconds since 1970, UTC.
    pub timestamp: i64,
    /// What it did.
    pub kind: CommitKind,
    /// The files that it added, where rows only came.
    pub appended: Vec<AppendedFile>,
    /// True when files of before are not in this version any more, be their rows elsewhere.
    pub removes_files: bool,
    /// True when a column went or changed its type: changes from before can't be read together with those from here on.
    pub replaces_columns: bool,
    /// Rows in the files that tell its changes: what reading them costs.
    pub rows: u64,
}

/// The columns beside a changed row: [`CHANGE_TYPE`], [`COMMIT_VERSION`], [`COMMIT_TIMESTAMP`].
pub fn change_columns() -> [Field; 3] {
    [
        Field::new(CHANGE_TYPE, DataType::Utf8, false),
        Field::new(COMMIT_VERSION, DataType::Int64, false),
        Field::new(COMMIT_TIMESTAMP, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), false),
    ]
}

/// The columns of a table, then those of [`change_columns`].
///
/// # Errors
/// `Unsupported` when the table has a column of such a name.
pub fn with_change_columns(table: &Schema) -> Result<SchemaRef> {
    let more = change_columns();
    if let Some(taken) = more.iter().find(|field| table.column_with_name(field.name()).is_some()) {
        let message =
            format!("the table has a column `{}`, which its changes need for themselves", taken.name());
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let fields = table.fields().iter().cloned().chain(more.into_iter().map(Arc::new));
    Ok(Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), table.metadata().clone())))
}

/// Rows of a commit with what became of them: one word for all, or one a row.
pub(crate) fn changed_rows(
    rows: &RecordBatch,
    what: Option<ArrayRef>,
    word: &str,
    (version, millis): (TableVersion, i64),
) -> Result<RecordBatch> {
    let n = rows.num_rows();
    let version = i64::try_from(version.0)
        .map_err(|_| Error::new(ErrorKind::Unsupported, "a version is too great a number"))?;
    let micros = millis.saturating_mul(1000);
    let mut columns = rows.columns().to_vec();
    columns.push(what.unwrap_or_else(|| Arc::new(StringArray::from(vec![word; n]))));
    columns.push(Arc::new(Int64Array::from(vec![version; n])));
    columns.push(Arc::new(TimestampMicrosecondArray::from(vec![micros; n]).with_timezone("UTC")));
    Ok(RecordBatch::try_new(with_change_columns(rows.schema_ref())?, columns)?)
}
