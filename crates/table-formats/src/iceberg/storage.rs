//! The crate's files in our store: it reads and writes manifests, manifest lists and metadata through [`file_io`].

use std::{mem, ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use iceberg::io::{
    FileIO, FileIOBuilder, FileMetadata, FileRead, FileWrite, InputFile, OutputFile, Storage, StorageConfig,
    StorageFactory,
};
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, path::Path};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

use super::{Warehouse, error::ours};
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// The most that is read of one file at once: manifests and metadata are far below it.
const MOST_BYTES: u64 = 1 << 30;

/// The warehouse's files for the crate: nothing but its store is asked, and a URL outside of it is refused.
///
/// Files of Iceberg are written once, under names that nobody else takes. A second one of the same name is refused where
/// the store can tell, unless it has the same bytes: then it is an answer that got lost.
pub fn file_io(warehouse: &Warehouse) -> FileIO {
    FileIOBuilder::new(Arc::new(Files { warehouse: warehouse.clone() })).build()
}

#[derive(Debug, Clone)]
struct Files {
    warehouse: Warehouse,
}

impl Files {
    fn place(&self, url: &str) -> iceberg::Result<Path> {
        self.warehouse.path(url).map_err(ours)
    }

    fn store(&self) -> &dyn ObjectStore {
        self.warehouse.store().as_ref()
    }
}

#[async_trait]
#[typetag::serde(name = "StrandlineFiles")]
impl Storage for Files {
    async fn exists(&self, url: &str) -> iceberg::Result<bool> {
        match self.store().head(&self.place(url)?).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(e) => Err(failed(e, url)),
        }
    }

    async fn metadata(&self, url: &str) -> iceberg::Result<FileMetadata> {
        let meta = self.store().head(&self.place(url)?).await.map_err(|e| failed(e, url))?;
        Ok(FileMetadata { size: meta.size })
    }

    async fn read(&self, url: &str) -> iceberg::Result<Bytes> {
        let found = self.store().get(&self.place(url)?).await.map_err(|e| failed(e, url))?;
        check_size(found.meta.size, url).map_err(ours)?;
        found.bytes().await.map_err(|e| failed(e, url))
    }

    async fn reader(&self, url: &str) -> iceberg::Result<Box<dyn FileRead>> {
        Ok(Box::new(Reader { files: self.clone(), path: self.place(url)?, url: url.to_owned() }))
    }

    async fn write(&self, url: &str, bytes: Bytes) -> iceberg::Result<()> {
        let path = self.place(url)?;
        put_new(self.store(), &path, bytes).await.map_err(|e| ours(e.with("file", url)))
    }

    async fn writer(&self, url: &str) -> iceberg::Result<Box<dyn FileWrite>> {
        self.place(url)?;
        Ok(Box::new(Writer { files: self.clone(), url: url.to_owned(), bytes: BytesMut::new(), open: true }))
    }

    async fn delete(&self, url: &str) -> iceberg::Result<()> {
        match self.store().delete(&self.place(url)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(failed(e, url)),
        }
    }

    async fn delete_prefix(&self, url: &str) -> iceberg::Result<()> {
        let found = self.store().list(Some(&self.place(url.trim_end_matches('/'))?));
        let paths = found.map_ok(|meta| meta.location).boxed();
        let deleted = self.store().delete_stream(paths).try_for_each(|_| async { Ok(()) });
        deleted.await.map_err(|e| failed(e, url))
    }

    async fn delete_stream(&self, mut urls: BoxStream<'static, String>) -> iceberg::Result<()> {
        while let Some(url) = urls.next().await {
            self.delete(&url).await?;
        }
        Ok(())
    }

    fn new_input(&self, url: &str) -> iceberg::Result<InputFile> {
        Ok(InputFile::new(Arc::new(self.clone()), url.to_owned()))
    }

    fn new_output(&self, url: &str) -> iceberg::Result<OutputFile> {
        Ok(OutputFile::new(Arc::new(self.clone()), url.to_owned()))
    }
}

#[typetag::serde(name = "StrandlineFiles")]
impl StorageFactory for Files {
    fn build(&self, _: &StorageConfig) -> iceberg::Result<Arc<dyn Storage>> {
        Ok(Arc::new(self.clone()))
    }
}

// The crate wants storages that can be sent to other processes. An open store can't be.
impl Serialize for Files {
    fn serialize<S: Serializer>(&self, _: S) -> std::result::Result<S::Ok, S::Error> {
        Err(ser::Error::custom("an open store can't be sent to another process"))
    }
}

impl<'de> Deserialize<'de> for Files {
    fn deserialize<D: Deserializer<'de>>(_: D) -> std::result::Result<Self, D::Error> {
        Err(de::Error::custom("an open store can't come from another process"))
    }
}

/// Writes a file under a name that nobody has taken.
///
/// # Errors
/// `Conflict` when the name is taken by other bytes, else the store's.
pub(super) async fn put_new(store: &dyn ObjectStore, path: &Path, bytes: Bytes) -> Result<()> {
    let options = PutOptions::from(PutMode::Create);
    match store.put_opts(path, bytes.clone().into(), options).await {
        Ok(_) => Ok(()),
        // Names have random parts: a store that can't refuse a second one has no second one to refuse.
        Err(object_store::Error::NotImplemented { .. } | object_store::Error::NotSupported { .. }) => {
            store.put(path, bytes.into()).await?;
            Ok(())
        }
        // Some stores try a put again whose answer got lost, and then find their own.
        Err(e @ object_store::Error::AlreadyExists { .. }) => {
            let found = store.get(path).await?;
            if found.meta.size == bytes.len() as u64 && found.bytes().await? == bytes {
                return Ok(());
            }
            Err(Error::new(ErrorKind::Conflict, "another file has this name").because(e))
        }
        Err(e) => Err(e.into()),
    }
}

struct Reader {
    files: Files,
    path: Path,
    url: String,
}

#[async_trait]
impl FileRead for Reader {
    async fn read(&self, range: Range<u64>) -> iceberg::Result<Bytes> {
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        check_size(range.end.saturating_sub(range.start), &self.url).map_err(ours)?;
        let wanted = range.end - range.start;
        let bytes =
            self.files.store().get_range(&self.path, range).await.map_err(|e| failed(e, &self.url))?;
        // A store gives less where the file ends before the range does.
        if bytes.len() as u64 != wanted {
            let message = "a file of the table is shorter than its readers were told";
            return Err(ours(Error::new(ErrorKind::Corrupt, message).with("file", &self.url)));
        }
        Ok(bytes)
    }
}

/// Gathers what is written: a file's name appears when it is closed, with all of it.
struct Writer {
    files: Files,
    url: String,
    bytes: BytesMut,
    open: bool,
}

#[async_trait]
impl FileWrite for Writer {
    async fn write(&mut self, bytes: Bytes) -> iceberg::Result<()> {
        self.check_open()?;
        self.bytes.extend_from_slice(&bytes);
        Ok(())
    }

    async fn close(&mut self) -> iceberg::Result<()> {
        self.check_open()?;
        self.open = false;
        let bytes = mem::take(&mut self.bytes).freeze();
        self.files.write(&self.url, bytes).await
    }
}

impl Writer {
    fn check_open(&self) -> iceberg::Result<()> {
        if self.open {
            return Ok(());
        }
        let message = "a file was written to after it was closed";
        Err(ours(Error::new(ErrorKind::Internal, message).with("file", &self.url)))
    }
}

fn check_size(size: u64, url: &str) -> Result<()> {
    if size <= MOST_BYTES {
        return Ok(());
    }
    let message = "a file of a table's metadata is larger than one can be";
    Err(Error::new(ErrorKind::Corrupt, message)
        .with("file", url)
        .with("bytes", size)
        .with("most", MOST_BYTES))
}

fn failed(e: object_store::Error, url: &str) -> iceberg::Error {
    ours(Error::from(e).with("file", url))
}
