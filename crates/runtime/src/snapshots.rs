//! How does a Rust program give a snapshot flow its images?
//!
//! A flow `AUTO CDC INTO t FROM SNAPSHOT CALLBACK KEYS (..)` asks a [`SnapshotProvider`] for one image after another, each
//! with its version.

use std::{fmt, sync::Arc};

use arrow_array::{Array, ArrayRef, Date32Array, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow_schema::{DataType, SchemaRef};
use async_trait::async_trait;

use crate::{
    error::{Error, ErrorKind, Result},
    sources::SourceStream,
};

/// The condition of a version query that gives something else than versions.
pub(crate) const INVALID_QUERY: &str = "INVALID_AUTO_CDC_FROM_SNAPSHOT_VERSION_QUERY";
/// The condition of a version that is NULL.
pub(crate) const NULL_VERSION: &str = "APPLY_CHANGES_FROM_SNAPSHOT_ERROR.NULL_SNAPSHOT_VERSION";

/// An error by the name that users of Lakeflow know.
pub(crate) fn condition(kind: ErrorKind, name: &str, why: &str) -> Error {
    Error::new(kind, format!("{name}: {why}"))
}

/// The version of a snapshot: one value of an ordered type, not NULL.
#[derive(Debug, Clone)]
pub struct SnapshotVersion {
    value: ArrayRef,
}

impl SnapshotVersion {
    /// The only value of `value`, an array of length 1; several values in one are a struct.
    ///
    /// # Errors
    /// `Data`, by the name `NULL_SNAPSHOT_VERSION`, for NULL or another number of values.
    pub fn new(value: ArrayRef) -> Result<Self> {
        if value.len() != 1 {
            return Err(condition(ErrorKind::Data, NULL_VERSION, "a version is one value")
                .with("values", value.len()));
        }
        if value.logical_nulls().is_some_and(|nulls| nulls.null_count() > 0) {
            return Err(condition(ErrorKind::Data, NULL_VERSION, "the version of a snapshot is NULL"));
        }
        Ok(Self { value })
    }

    /// Microseconds since 1970, UTC.
    pub fn timestamp(microseconds: i64) -> Self {
        Self { value: Arc::new(TimestampMicrosecondArray::from(vec![microseconds]).with_timezone("UTC")) }
    }

    /// Days since 1970.
    pub fn date(days: i32) -> Self {
        Self { value: Arc::new(Date32Array::from(vec![days])) }
    }

    /// The value, as an array of length 1.
    pub fn value(&self) -> &ArrayRef {
        &self.value
    }
}

impl From<i64> for SnapshotVersion {
    fn from(value: i64) -> Self {
        Self { value: Arc::new(Int64Array::from(vec![value])) }
    }
}

impl From<&str> for SnapshotVersion {
    fn from(value: &str) -> Self {
        Self { value: Arc::new(StringArray::from(vec![value])) }
    }
}

impl fmt::Display for SnapshotVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match arrow_cast::display::array_value_to_string(&self.value, 0) {
            Ok(text) => f.write_str(&text),
            Err(_) => write!(f, "a value of type {}", self.value.data_type()),
        }
    }
}

/// One complete image of a source.
pub struct Snapshot {
    /// Its version.
    pub version: SnapshotVersion,
    /// Its rows, with the columns of [`SnapshotProvider::schema`]. No row means that the source is empty, which deletes
    /// every key.
    pub rows: SourceStream,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("version", &self.version).finish_non_exhaustive()
    }
}

/// Code that gives a snapshot flow its images, see [`crate::Project::with_snapshots`].
///
/// # Contract
/// 1. `next` gives a version that is above `last`, of the type [`SnapshotProvider::version_type`]; or `None` when there is
///    nothing new. `last` is `None` until a snapshot was committed, and after a full refresh.
/// 2. It gives the same rows whenever it gives a version. After a crash it is asked again with the same `last`; should it
///    give another version then, that one is taken, since nothing of the first was.
/// 3. Schema and type stay the same during an update.
/// 4. It may be called several times with one `last`: giving an image is no promise that it is committed.
#[async_trait]
pub trait SnapshotProvider: Send + Sync {
    /// Columns of the images.
    fn schema(&self) -> SchemaRef;
    /// Type of the versions.
    fn version_type(&self) -> DataType;
    /// The image after `last`, the version that was committed last.
    ///
    /// # Errors
    /// What the flow is to fail with; `Unavailable` for what may succeed when it is tried again.
    async fn next(&self, last: Option<SnapshotVersion>) -> Result<Option<Snapshot>>;
}
