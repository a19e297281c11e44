//! Which rows of a file don't count: files of positions, and deletion vectors, beside it.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use arrow_array::{Array, Int64Array, RecordBatch, StringArray, cast::AsArray, types::Int64Type};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use futures::TryStreamExt;
use object_store::{ObjectStoreExt, path::Path};
use parquet::arrow::{
    ArrowWriter, PARQUET_FIELD_ID_META_KEY, ParquetRecordBatchStreamBuilder, ProjectionMask,
};
use roaring::{RoaringBitmap, RoaringTreemap};

use super::{Warehouse, files::relative};
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
    metadata::DeletedPlace,
    parquet::{Input, file_path},
};

/// Columns of a file of positions, and their numbers. Source: the format's specification, "Position Delete Files".
const FILE: (&str, i32) = ("file_path", FILE_NUMBER);
const POSITION: (&str, i32) = ("pos", 2_147_483_545);
/// Number of the column that names the file.
pub(super) const FILE_NUMBER: i32 = 2_147_483_546;
/// So many positions are written at a time: each comes with the file's name.
const ROWS: usize = 64 << 10;
/// So many files of deletes are remembered.
const REMEMBERED: usize = 64;
/// What a deletion vector begins with. Source: the Puffin specification, "deletion-vector-v1".
const MAGIC: [u8; 4] = [0xd1, 0xd3, 0x39, 0x64];

/// Positions by the path of their file within the table's folder.
type Positions = BTreeMap<String, RoaringBitmap>;

/// Reads and writes deletes of one table.
#[derive(Debug)]
pub(super) struct Deletes {
    warehouse: Warehouse,
    root: Path,
    read: Mutex<VecDeque<(String, Arc<Positions>)>>,
}

impl Deletes {
    pub(super) fn new(warehouse: Warehouse, root: Path) -> Self {
        Self { warehouse, root, read: Mutex::default() }
    }

    /// Writes the positions of one file, and gives the path within the table's folder and the size.
    pub(super) async fn write(&self, file: &str, deleted: &RoaringBitmap) -> Result<(String, u64)> {
        let url = self.warehouse.url(&file_path(&self.root, file)?);
        let bytes = encoded(&url, deleted)?;
        let name = format!("deletes-{}.parquet", uuid::Uuid::new_v4());
        let size = bytes.len() as u64;
        let put = self.warehouse.store().put(&file_path(&self.root, &name)?, bytes.into()).await;
        put.map_err(|e| Error::from(e).with("file", &name))?;
        Ok((name, size))
    }

    /// The positions that a place has for a file.
    pub(super) async fn of_file(&self, file: &str, place: &DeletedPlace) -> Result<RoaringBitmap> {
        let DeletedPlace::File { path, offset, size } = place else {
            return Err(Error::new(ErrorKind::Internal, "deletes of an Iceberg table lie in files"));
        };
        // A deletion vector lies behind the first bytes of its file.
        let read = if *offset > 0 {
            self.vector(path, *offset, *size).await
        } else {
            self.positions(path, *size).await.map(|all| all.get(file).cloned().unwrap_or_default())
        };
        read.map_err(|e| e.with("file", path))
    }

    async fn vector(&self, path: &str, offset: u64, size: u64) -> Result<RoaringBitmap> {
        let end = offset.checked_add(size).ok_or_else(|| corrupt("lies behind the end of its file"))?;
        let path = file_path(&self.root, path)?;
        decoded(&self.warehouse.store().get_range(&path, offset..end).await?)
    }

    async fn positions(&self, path: &str, size: u64) -> Result<Arc<Positions>> {
        let known = self.lock().iter().find(|(known, _)| known == path).map(|(_, found)| Arc::clone(found));
        if let Some(known) = known {
            return Ok(known);
        }
        let read = Arc::new(self.load(path, size).await?);
        let mut known = self.lock();
        known.push_back((path.to_owned(), Arc::clone(&read)));
        if known.len() > REMEMBERED {
            known.pop_front();
        }
        Ok(read)
    }

    async fn load(&self, path: &str, size: u64) -> Result<Positions> {
        let input = Input::new(Arc::clone(self.warehouse.store()), file_path(&self.root, path)?, size);
        let builder = ParquetRecordBatchStreamBuilder::new(input).await?;
        let (file, position) = (place(builder.schema(), FILE)?, place(builder.schema(), POSITION)?);
        let mask = ProjectionMask::roots(builder.parquet_schema(), [file, position]);
        let mut batches = builder.with_projection(mask).build()?;
        let (file, position) = if file < position { (0, 1) } else { (1, 0) };
        let mut all = Positions::new();
        while let Some(batch) = batches.try_next().await? {
            self.add(&mut all, batch.column(file), batch.column(position))?;
        }
        Ok(all)
    }

    fn add(&self, all: &mut Positions, files: &dyn Array, positions: &dyn Array) -> Result<()> {
        let wrong = || Error::new(ErrorKind::Corrupt, "a file of deletes has columns of other types");
        let files = files.as_string_opt::<i32>().filter(|files| files.null_count() == 0).ok_or_else(wrong)?;
        let positions =
            positions.as_primitive_opt::<Int64Type>().filter(|p| p.null_count() == 0).ok_or_else(wrong)?;
        let mut last: Option<(&str, String)> = None;
        for (url, position) in files.iter().flatten().zip(positions.values()) {
            let position = u32::try_from(*position).map_err(|_| {
                Error::new(ErrorKind::Unsupported, format!("a position of {position} in a file is not read"))
            })?;
            if last.as_ref().is_none_or(|(known, _)| *known != url) {
                // What lies elsewhere is no file of this table.
                let path = relative(&self.warehouse, &self.root, url).unwrap_or_default();
                last = Some((url, path));
            }
            let Some((_, path)) = &last else { continue };
            if let Some(known) = all.get_mut(path.as_str()) {
                known.insert(position);
            } else {
                all.insert(path.clone(), RoaringBitmap::from_iter([position]));
            }
        }
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<(String, Arc<Positions>)>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a column, by its number or else by its name.
fn place(schema: &Schema, (name, number): (&str, i32)) -> Result<usize> {
    let numbered = schema.fields().iter().position(|field| {
        field.metadata().get(PARQUET_FIELD_ID_META_KEY).is_some_and(|id| *id == number.to_string())
    });
    numbered
        .or_else(|| schema.index_of(name).ok())
        .ok_or_else(|| Error::new(ErrorKind::Corrupt, format!("a file of deletes has no `{name}`")))
}

fn columns() -> SchemaRef {
    let column = |(name, number): (&str, i32), of| {
        let number = (PARQUET_FIELD_ID_META_KEY.to_owned(), number.to_string());
        Field::new(name, of, false).with_metadata([number].into())
    };
    Arc::new(Schema::new(vec![column(FILE, DataType::Utf8), column(POSITION, DataType::Int64)]))
}

fn encoded(url: &str, deleted: &RoaringBitmap) -> Result<Vec<u8>> {
    let mut writer = ArrowWriter::try_new(Vec::new(), columns(), None)?;
    let mut positions = deleted.iter().map(i64::from).peekable();
    while positions.peek().is_some() {
        let some: Int64Array = positions.by_ref().take(ROWS).collect();
        let files = StringArray::from(vec![url; some.len()]);
        writer.write(&RecordBatch::try_new(columns(), vec![Arc::new(files), Arc::new(some)])?)?;
    }
    Ok(writer.into_inner()?)
}

/// The positions of a deletion vector: its length, what it begins with, the bitmap, and a checksum.
fn decoded(bytes: &[u8]) -> Result<RoaringBitmap> {
    let cut = || corrupt("is cut off");
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(cut)?;
    let (content, _) = rest.split_last_chunk::<4>().ok_or_else(cut)?;
    if usize::try_from(u32::from_be_bytes(*length)).ok() != Some(content.len()) {
        return Err(corrupt("has another length than it says"));
    }
    let (magic, bitmap) = content.split_first_chunk::<4>().ok_or_else(cut)?;
    if *magic != MAGIC {
        return Err(corrupt("begins with other bytes"));
    }
    let all = RoaringTreemap::deserialize_from(bitmap).map_err(|e| corrupt("can't be read").because(e))?;
    let mut positions = RoaringBitmap::new();
    for (high, bitmap) in all.bitmaps() {
        if high > 0 {
            return Err(Error::new(ErrorKind::Unsupported, "a file of over 4 billion rows"));
        }
        positions |= bitmap;
    }
    Ok(positions)
}

fn corrupt(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a deletion vector {what}"))
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    #[tokio::test]
    async fn positions_come_back_by_file() {
        let warehouse = Warehouse::new(Arc::new(InMemory::new()), "memory://");
        let deletes = Deletes::new(warehouse, Path::from("lake/t"));
        let rows: RoaringBitmap = (0..200_000).step_by(3).collect();
        let (path, size) = deletes.write("a.parquet", &rows).await.unwrap();
        let place = DeletedPlace::File { path, offset: 0, size };
        assert_eq!(deletes.of_file("a.parquet", &place).await.unwrap(), rows);
        assert!(deletes.of_file("b.parquet", &place).await.unwrap().is_empty());
    }

    #[test]
    fn deletion_vectors_come_back_and_altered_ones_are_errors() {
        let rows = RoaringTreemap::from_iter([1, 5, 70_000]);
        let mut content = MAGIC.to_vec();
        rows.serialize_into(&mut content).unwrap();
        let mut bytes = u32::try_from(content.len()).unwrap().to_be_bytes().to_vec();
        bytes.extend(&content);
        bytes.extend([0; 4]);
        assert_eq!(decoded(&bytes).unwrap(), RoaringBitmap::from_iter([1, 5, 70_000]));
        for cut in 0..bytes.len() {
            assert!(decoded(&bytes[..cut]).is_err(), "cut at {cut}");
        }
        bytes[4] ^= 1;
        assert_eq!(decoded(&bytes).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
