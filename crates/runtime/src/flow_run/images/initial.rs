//! The one image of a flow without versions: its version is the time at which it was planned.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use arrow_array::ArrayRef;
use async_trait::async_trait;

use super::{
    Gallery,
    queried::{WholeQuery, stream_of},
};
use crate::{
    clock::Clock,
    error::{Error, ErrorKind, Result},
    snapshots::SnapshotVersion,
    sources::SourceStream,
};

/// `FROM SNAPSHOT (image)`.
pub(super) struct Initial {
    image: WholeQuery,
    clock: Arc<dyn Clock>,
    /// Whether its image was given or read since it was opened: there is one an update.
    given: AtomicBool,
}

impl Initial {
    pub(super) fn new(image: WholeQuery, clock: Arc<dyn Clock>) -> Self {
        Self { image, clock, given: AtomicBool::new(false) }
    }
}

#[async_trait]
impl Gallery for Initial {
    async fn next(&self, _: Option<&SnapshotVersion>) -> Result<Option<ArrayRef>> {
        if self.given.swap(true, Ordering::Relaxed) {
            return Ok(None);
        }
        let now = i64::try_from(self.clock.now().as_micros())
            .map_err(|e| Error::new(ErrorKind::Internal, "the clock is out of range").because(e))?;
        Ok(Some(Arc::clone(SnapshotVersion::timestamp(now).value())))
    }

    async fn read(&self, _: &SnapshotVersion) -> Result<SourceStream> {
        self.given.store(true, Ordering::Relaxed);
        stream_of(self.image.rows(|inputs| inputs).await?).await
    }

    fn is_fixed(&self) -> bool {
        true
    }
}
