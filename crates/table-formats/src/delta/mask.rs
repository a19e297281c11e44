//! Writing which rows of files don't count any more: deletion vectors.
//!
//! Those of one commit lie in one file, one after the other. None goes into the log itself, though small ones could: a file's
//! name says whose commit it was when an answer is lost.

use std::sync::Arc;

use object_store::ObjectStoreExt;
use roaring::RoaringBitmap;
use uuid::Uuid;

use super::{deletion_vector, metadata::DeltaMetadata};
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
    metadata::{DataFile, DeletedPlace, DeletedRows, Mask, TableHead},
    parquet::file_path,
};

/// Property that allows deletion vectors, or forbids them.
pub(super) const ENABLED: &str = "delta.enableDeletionVectors";
/// Vectors of so many bytes, about, go into one file: the log holds offsets of 31 bits.
const FILE_BYTES: usize = 256 << 20;

/// Refuses a table whose owner wants no deletion vectors.
pub(super) fn check(head: &TableHead) -> Result<()> {
    if is_on(head) || !head.properties.contains_key(ENABLED) {
        return Ok(());
    }
    let message = format!("the table's property `{ENABLED}` is not true");
    Err(Error::new(ErrorKind::Unsupported, message))
}

/// Whether the table has deletion vectors, or allows them.
pub(super) fn is_on(head: &TableHead) -> bool {
    head.properties.get(ENABLED).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// A file of deletion vectors that is not written yet.
struct Vectors {
    path: String,
    bytes: Vec<u8>,
}

impl Vectors {
    fn new() -> Self {
        Self { path: deletion_vector::file_name(Uuid::new_v4()), bytes: vec![deletion_vector::LAYOUT] }
    }

    fn is_empty(&self) -> bool {
        self.bytes.len() == 1
    }

    fn add(&mut self, vector: &[u8]) -> Result<DeletedPlace> {
        let (offset, size) = (self.bytes.len() as u64, vector.len() as u64);
        self.bytes.extend(deletion_vector::frame(vector)?);
        Ok(DeletedPlace::File { path: self.path.clone(), offset, size })
    }
}

impl DeltaMetadata {
    /// The files with more rows deleted.
    pub(super) async fn masked(&self, masks: Vec<Mask>) -> Result<Vec<DataFile>> {
        let mut vectors = Vectors::new();
        let mut files = Vec::with_capacity(masks.len());
        for Mask { file, deleted } in masks {
            if vectors.bytes.len() > FILE_BYTES {
                self.put(std::mem::replace(&mut vectors, Vectors::new())).await?;
            }
            let place = vectors.add(&deletion_vector::to_plain(&deleted)?)?;
            let deleted = DeletedRows { count: Some(deleted.len()), places: vec![place] };
            files.push(DataFile { deleted: Some(Arc::new(deleted)), ..DataFile::clone(&file) });
        }
        if !vectors.is_empty() {
            self.put(vectors).await?;
        }
        Ok(files)
    }

    async fn put(&self, vectors: Vectors) -> Result<()> {
        let path = file_path(&self.root, &vectors.path)?;
        let put = self.store.put(&path, vectors.bytes.into()).await;
        put.map(drop).map_err(|e| Error::from(e).with("file", &path))
    }

    /// The positions of a file's rows that don't count.
    pub(super) async fn deleted_in(&self, file: &DataFile) -> Result<RoaringBitmap> {
        let mut all = RoaringBitmap::new();
        for place in file.deleted.iter().flat_map(|deleted| &deleted.places) {
            all |= match place {
                DeletedPlace::Inline(bytes) => deletion_vector::plain(bytes)?,
                DeletedPlace::File { path, offset, size } => {
                    let path = file_path(&self.root, path)?;
                    let range = *offset..offset.saturating_add(size.saturating_add(deletion_vector::FRAME));
                    let bytes = self.store.get_range(&path, range).await;
                    let bytes = bytes.map_err(|e| Error::from(e).with("file", &path))?;
                    deletion_vector::framed(&bytes, *size).map_err(|e| e.with("file", &path))?
                }
            };
        }
        Ok(all)
    }
}
