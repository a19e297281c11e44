//! Images that code of a Rust program gives.

use std::sync::{Arc, Mutex};

use arrow_array::ArrayRef;
use async_trait::async_trait;

use super::Gallery;
use crate::{
    error::{Error, ErrorKind, Result},
    snapshots::{Snapshot, SnapshotProvider, SnapshotVersion},
    sources::SourceStream,
};

/// `FROM SNAPSHOT CALLBACK`.
pub(super) struct Called {
    provider: Arc<dyn SnapshotProvider>,
    /// What was given and not read yet.
    given: Mutex<Option<Snapshot>>,
}

impl Called {
    pub(super) fn new(provider: Arc<dyn SnapshotProvider>) -> Self {
        Self { provider, given: Mutex::default() }
    }

    fn keep(&self, snapshot: Option<Snapshot>) -> Option<Snapshot> {
        let mut given = self.given.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        std::mem::replace(&mut *given, snapshot)
    }
}

#[async_trait]
impl Gallery for Called {
    async fn next(&self, last: Option<&SnapshotVersion>) -> Result<Option<ArrayRef>> {
        let snapshot = self.provider.next(last.cloned()).await?;
        let version = snapshot.as_ref().map(|snapshot| Arc::clone(snapshot.version.value()));
        self.keep(snapshot);
        Ok(version)
    }

    async fn read(&self, version: &SnapshotVersion) -> Result<SourceStream> {
        let snapshot = self.keep(None).ok_or_else(|| {
            Error::new(ErrorKind::Internal, "an image is read that was not given").with("version", version)
        })?;
        Ok(snapshot.rows)
    }
}
