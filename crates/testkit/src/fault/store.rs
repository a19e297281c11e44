//! Does every operation of an object store pass through the rules?
//!
//! Invariant: no method of the trait is left to its default, so that none slips past the rules.

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, RenameTargetMode,
    Result, UploadPart,
};

use super::{Fault, Faults};

/// An object store whose operations fail by rule.
#[derive(Debug)]
pub struct FaultStore<S> {
    inner: Arc<S>,
    faults: Arc<Faults>,
}

impl<S> Clone for FaultStore<S> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), faults: Arc::clone(&self.faults) }
    }
}

impl<S: ObjectStore> FaultStore<S> {
    /// Wraps a store; nothing fails yet.
    pub fn new(inner: S) -> Self {
        Self { inner: Arc::new(inner), faults: Arc::default() }
    }

    /// The rules and the trace.
    pub fn faults(&self) -> Arc<Faults> {
        Arc::clone(&self.faults)
    }

    /// The store itself, past all rules.
    pub fn inner(&self) -> &S {
        &self.inner
    }
}

impl<S: ObjectStore> fmt::Display for FaultStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultStore({})", self.inner)
    }
}

/// Does the operation as the rules say. Nothing is torn here.
async fn guard<T>(
    faults: &Faults,
    name: &'static str,
    path: Option<&Path>,
    operation: impl Future<Output = Result<T>> + Send,
) -> Result<T> {
    match faults.meet(name, path) {
        None => operation.await,
        Some(injected) if injected.fault == Some(Fault::After) => {
            drop(operation.await?);
            Err(injected.into())
        }
        Some(injected) => Err(injected.into()),
    }
}

fn guard_list(
    faults: &Faults,
    name: &'static str,
    prefix: Option<&Path>,
    list: impl FnOnce() -> BoxStream<'static, Result<ObjectMeta>>,
) -> BoxStream<'static, Result<ObjectMeta>> {
    match faults.meet(name, prefix) {
        None => list(),
        Some(injected) => {
            let seen = if injected.fault == Some(Fault::After) { list() } else { stream::empty().boxed() };
            seen.chain(stream::once(async { Err(injected.into()) })).boxed()
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<S: ObjectStore> ObjectStore for FaultStore<S> {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        guard(&self.faults, "put", Some(location), self.inner.put_opts(location, payload, opts)).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let start = self.inner.put_multipart_opts(location, opts);
        let upload = guard(&self.faults, "put_multipart", Some(location), start).await?;
        Ok(Box::new(FaultUpload { inner: upload, faults: Arc::clone(&self.faults), path: location.clone() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        guard(&self.faults, "get", Some(location), self.inner.get_opts(location, options)).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        guard(&self.faults, "get_ranges", Some(location), self.inner.get_ranges(location, ranges)).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let store = self.clone();
        let delete = move |location: Result<Path>| {
            let store = store.clone();
            async move {
                let location = location?;
                guard(&store.faults, "delete", Some(&location), store.inner.delete(&location)).await?;
                Ok(location)
            }
        };
        locations.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        guard_list(&self.faults, "list", prefix, || self.inner.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        guard_list(&self.faults, "list_with_offset", prefix, || self.inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        guard(&self.faults, "list_with_delimiter", prefix, self.inner.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        guard(&self.faults, "copy", Some(to), self.inner.copy_opts(from, to, options)).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        match self.faults.meet("rename", Some(to)) {
            None => self.inner.rename_opts(from, to, options).await,
            Some(injected) => {
                match injected.fault {
                    Some(Fault::After) => self.inner.rename_opts(from, to, options).await?,
                    Some(Fault::Torn) => {
                        let mode = match options.target_mode {
                            RenameTargetMode::Overwrite => CopyMode::Overwrite,
                            RenameTargetMode::Create => CopyMode::Create,
                        };
                        self.inner.copy_opts(from, to, CopyOptions::new().with_mode(mode)).await?;
                    }
                    Some(Fault::Before) | None => {}
                }
                Err(injected.into())
            }
        }
    }
}

/// A multipart upload whose parts and completion fail by rule.
#[derive(Debug)]
struct FaultUpload {
    inner: Box<dyn MultipartUpload>,
    faults: Arc<Faults>,
    path: Path,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl MultipartUpload for FaultUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let Some(injected) = self.faults.meet("put_part", Some(&self.path)) else {
            return self.inner.put_part(data);
        };
        let landing = match injected.fault {
            Some(Fault::After) => Some(self.inner.put_part(data)),
            Some(Fault::Torn) => {
                let whole = Bytes::from(data);
                Some(self.inner.put_part(whole.slice(..whole.len() / 2).into()))
            }
            Some(Fault::Before) | None => None,
        };
        Box::pin(async move {
            if let Some(part) = landing {
                part.await?;
            }
            Err(injected.into())
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        guard(&self.faults, "complete", Some(&self.path), self.inner.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        guard(&self.faults, "abort", Some(&self.path), self.inner.abort()).await
    }
}
