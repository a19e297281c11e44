//! A local folder whose writes are on disk before they are acknowledged.
//!
//! `object_store`'s own local store does not fsync: after a power cut a commit that was acknowledged may be an empty
//! file. Here a file's bytes are on disk before its name appears, and its name before the call returns.

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    fmt,
    io::Write,
    ops::Range,
    path::{Path as FsPath, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result, UploadPart,
    local::LocalFileSystem, path::Path,
};

const NAME: &str = "DurableLocalFileSystem";

/// [`LocalFileSystem`] with fsync of files and folders.
#[derive(Debug, Clone)]
pub struct DurableLocal {
    inner: Arc<LocalFileSystem>,
}

impl DurableLocal {
    /// A store in this folder, which is created when it does not exist.
    ///
    /// # Errors
    /// When the folder can't be made.
    pub fn new(folder: impl AsRef<FsPath>) -> Result<Self> {
        make_folder(&std::path::absolute(&folder).map_err(io)?)?;
        Ok(Self::wrap(LocalFileSystem::new_with_prefix(folder)?))
    }

    /// The same for a store that exists.
    pub fn wrap(inner: LocalFileSystem) -> Self {
        Self { inner: Arc::new(inner) }
    }

    async fn make_parent(&self, location: &Path) -> Result<()> {
        let path = self.inner.path_to_filesystem(location)?;
        blocking(move || path.parent().map_or(Ok(()), make_folder)).await
    }

    async fn sync(&self, location: &Path) -> Result<()> {
        let path = self.inner.path_to_filesystem(location)?;
        blocking(move || {
            std::fs::File::open(&path).and_then(|f| f.sync_all()).map_err(io)?;
            sync_folder(&path)
        })
        .await
    }

    async fn sync_removal(&self, location: &Path) -> Result<()> {
        let path = self.inner.path_to_filesystem(location)?;
        blocking(move || sync_folder(&path)).await
    }
}

impl fmt::Display for DurableLocal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME}({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for DurableLocal {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        if matches!(opts.mode, PutMode::Update(_)) || !opts.attributes.is_empty() {
            return self.inner.put_opts(location, payload, opts).await;
        }
        let path = self.inner.path_to_filesystem(location)?;
        let create = matches!(opts.mode, PutMode::Create);
        blocking(move || put(&path, &payload, create)).await?;
        Ok(PutResult { e_tag: None, version: None })
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.make_parent(location).await?;
        let inner = self.inner.put_multipart_opts(location, opts).await?;
        Ok(Box::new(DurableUpload { inner, store: self.clone(), location: location.clone() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.make_parent(to).await?;
        self.inner.copy_opts(from, to, options).await?;
        self.sync(to).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.sync(from).await?;
        self.make_parent(to).await?;
        self.inner.rename_opts(from, to, options).await?;
        self.sync(to).await?;
        self.sync_removal(from).await
    }
}

#[derive(Debug)]
struct DurableUpload {
    inner: Box<dyn MultipartUpload>,
    store: DurableLocal,
    location: Path,
}

#[async_trait]
impl MultipartUpload for DurableUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.inner.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let result = self.inner.complete().await?;
        self.store.sync(&self.location).await?;
        Ok(result)
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}

fn put(path: &FsPath, payload: &PutPayload, create: bool) -> Result<()> {
    let (mut file, staged) = stage(path)?;
    let written = payload.iter().try_for_each(|chunk| file.write_all(chunk)).and_then(|()| file.sync_all());
    drop(file);
    let placed = written.map_err(io).and_then(|()| {
        if create {
            // A hard link fails when the name exists, and appears whole or not at all.
            std::fs::hard_link(&staged, path).map_err(|e| placed_error(path, e))
        } else {
            std::fs::rename(&staged, path).map_err(io)
        }
    });
    if create || placed.is_err() {
        // What remains of a failed clean-up is a hidden file that nobody reads.
        std::fs::remove_file(&staged).ok();
    }
    placed?;
    sync_folder(path)
}

/// A new file beside `path`, with a name that listings leave out.
fn stage(path: &FsPath) -> Result<(std::fs::File, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    if let Some(folder) = path.parent() {
        make_folder(folder)?;
    }
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("#{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        let staged = PathBuf::from(name);
        match std::fs::File::options().write(true).create_new(true).open(&staged) {
            Ok(file) => return Ok((file, staged)),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(io(e)),
        }
    }
}

fn make_folder(folder: &FsPath) -> Result<()> {
    // A new folder is durable when its parents know it. Whoever made it may not have got that far yet, so that only
    // what this process synced counts.
    let is_durable = |level: &FsPath| synced().contains(level) && level.is_dir();
    let levels: Vec<_> =
        folder.ancestors().filter(|level| level.parent().is_some()).take_while(|l| !is_durable(l)).collect();
    let existed: Vec<_> = levels.iter().map(|level| level.is_dir()).collect();
    if levels.is_empty() {
        return Ok(());
    }
    std::fs::create_dir_all(folder).map_err(io)?;
    for (level, existed) in levels.into_iter().zip(existed).rev() {
        match sync_folder(level) {
            Ok(()) => {}
            // A folder that can't be synced is not one in which others like us make folders.
            Err(e) if existed && cannot_sync(&e) => {}
            Err(e) => return Err(e),
        }
        synced().insert(level.to_path_buf());
    }
    Ok(())
}

/// Folders that are known to be in their parents on disk.
fn synced() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    static SYNCED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    SYNCED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn cannot_sync(e: &Error) -> bool {
    use std::io::ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};
    let source = std::error::Error::source(e).and_then(|e| e.downcast_ref::<std::io::Error>());
    source.is_some_and(|e| {
        matches!(e.kind(), InvalidInput | PermissionDenied | ReadOnlyFilesystem | Unsupported)
    })
}

fn sync_folder(path: &FsPath) -> Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => {
            std::fs::File::open(folder).and_then(|f| f.sync_all()).map_err(io)
        }
        Some(_) | None => Ok(()),
    }
}

fn placed_error(path: &FsPath, source: std::io::Error) -> Error {
    if source.kind() == std::io::ErrorKind::AlreadyExists {
        return Error::AlreadyExists { path: path.display().to_string(), source: Box::new(source) };
    }
    io(source)
}

fn io(source: std::io::Error) -> Error {
    Error::Generic { store: NAME, source: Box::new(source) }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(source) => Err(Error::JoinError { source }),
    }
}
