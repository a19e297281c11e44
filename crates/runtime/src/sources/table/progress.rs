//! What is recorded of a flow that reads a table: where it stands, and what a batch takes.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};

/// What a batch takes: files of one version, or what some versions changed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Slice {
    pub(super) table: String,
    /// What tells the table from another one of its name; not known in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// The newest version that it takes of.
    pub(super) version: u64,
    /// Files of that version.
    pub(super) files: Vec<String>,
    /// Files of the same version that later batches take.
    pub(super) rest: Vec<(String, u64)>,
    /// Instead of files: what the versions from this one on changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<u64>,
}

/// Where a flow stands.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Progress {
    pub(super) table: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// The newest version that something was taken of.
    pub(super) version: Option<u64>,
    /// Files of that version that are still to be taken.
    pub(super) rest: Vec<(String, u64)>,
    /// The first version to take, where nothing was taken yet and not all rows are wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<u64>,
    /// The last version to take, of a ONCE flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<u64>,
}

impl Progress {
    /// The first version whose commit is still to be taken; `None` when the rows of the table are.
    pub(super) fn first(&self) -> Option<u64> {
        self.version.map_or(self.next, |version| Some(version + 1))
    }
}

impl From<Slice> for Progress {
    fn from(slice: Slice) -> Self {
        Self {
            table: slice.table,
            id: slice.id,
            version: Some(slice.version),
            rest: slice.rest,
            next: None,
            until: None,
        }
    }
}

/// A record, which somebody may have changed.
pub(super) fn decode<T: DeserializeOwned>(value: &Value) -> Result<T> {
    T::deserialize(value).map_err(|e| {
        Error::new(ErrorKind::State, "what is recorded of this flow's source is not of a table")
            .help("the flow read something else before; give it a new name")
            .because(e)
    })
}
