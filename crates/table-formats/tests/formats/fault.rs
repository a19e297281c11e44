//! A store that dies at its n-th operation: before it, or right after it took effect. And one whose client repeats a put
//! whose answer was lost.

use std::{
    fmt,
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, future::BoxFuture, stream, stream::BoxStream};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result, path::Path,
};

/// Passes calls on until its time has come; from then on every call fails.
#[derive(Debug)]
pub(crate) struct Mortal {
    inner: Arc<dyn ObjectStore>,
    left: AtomicI64,
    /// Whether the last operation still takes effect, though its caller never learns.
    after: bool,
}

impl Mortal {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, operations: i64, after: bool) -> Self {
        Self { inner, left: AtomicI64::new(operations), after }
    }

    /// Operations that were still allowed; negative when it died.
    pub(crate) fn left(&self) -> i64 {
        self.left.load(Ordering::SeqCst)
    }

    fn step(&self) -> Step {
        match self.left.fetch_sub(1, Ordering::SeqCst) {
            left if left > 0 => Step::Live,
            0 if self.after => Step::LastWord,
            _ => Step::Dead,
        }
    }
}

#[derive(PartialEq)]
enum Step {
    Live,
    LastWord,
    Dead,
}

fn dead() -> Error {
    Error::Generic { store: "Mortal", source: "killed".into() }
}

impl fmt::Display for Mortal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mortal({})", self.inner)
    }
}

macro_rules! mortal {
    ($self:ident, $call:expr) => {
        match $self.step() {
            Step::Live => $call,
            Step::LastWord => {
                let _ignored = $call;
                Err(dead())
            }
            Step::Dead => Err(dead()),
        }
    };
}

#[async_trait]
impl ObjectStore for Mortal {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        mortal!(self, self.inner.put_opts(location, payload, opts).await)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        mortal!(self, self.inner.put_multipart_opts(location, opts).await)
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        mortal!(self, self.inner.get_opts(location, options).await)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        mortal!(self, self.inner.get_ranges(location, ranges).await)
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        if self.step() == Step::Live {
            return self.inner.delete_stream(locations);
        }
        stream::iter([Err(dead())]).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        if self.step() == Step::Live {
            return self.inner.list(prefix);
        }
        stream::iter([Err(dead())]).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        mortal!(self, self.inner.list_with_delimiter(prefix).await)
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        mortal!(self, self.inner.copy_opts(from, to, options).await)
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        mortal!(self, self.inner.rename_opts(from, to, options).await)
    }
}

/// When armed, does the next put of a log entry, and then answers as if somebody else had been first.
pub(crate) struct Repeating {
    inner: Arc<dyn ObjectStore>,
    armed: AtomicBool,
    /// What happens before the answer.
    meanwhile: Mutex<Option<BoxFuture<'static, ()>>>,
}

impl fmt::Debug for Repeating {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repeating").field("armed", &self.armed).finish_non_exhaustive()
    }
}

impl Repeating {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Self { inner, armed: AtomicBool::new(false), meanwhile: Mutex::default() }
    }

    pub(crate) fn arm(&self) {
        self.armed.store(true, Ordering::SeqCst);
    }

    pub(crate) fn arm_with(&self, meanwhile: BoxFuture<'static, ()>) {
        *self.meanwhile.lock().unwrap() = Some(meanwhile);
        self.arm();
    }

    pub(crate) fn is_armed(&self) -> bool {
        self.armed.load(Ordering::SeqCst)
    }
}

impl fmt::Display for Repeating {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Repeating({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Repeating {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let is_entry = location.as_ref().contains("_delta_log/") && location.extension() == Some("json");
        let done = self.inner.put_opts(location, payload, opts).await?;
        if is_entry && self.armed.swap(false, Ordering::SeqCst) {
            let meanwhile = self.meanwhile.lock().unwrap().take();
            if let Some(meanwhile) = meanwhile {
                meanwhile.await;
            }
            return Err(Error::AlreadyExists { path: location.to_string(), source: "repeated".into() });
        }
        Ok(done)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.inner.rename_opts(from, to, options).await
    }
}
