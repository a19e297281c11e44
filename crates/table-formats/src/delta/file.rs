//! A file as the log names it, as a [`DataFile`].

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{ArrayRef, StringArray, new_null_array};
use arrow_cast::cast;
use arrow_schema::SchemaRef;
use deltalake_core::kernel::{
    Add, AddCDCFile, DeletionVectorDescriptor, LogicalFileView, Remove, StorageType,
};

use super::{deletion_vector, stats, z85};
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
    metadata::{ColumnStats, DataFile, DeletedPlace, DeletedRows},
};

/// Where nobody says how many rows a file has: bytes of one row.
const ROW_BYTES: u64 = 64;

/// What the log says of a file.
pub(super) struct Named {
    path: String,
    size: Option<i64>,
    stats: Option<String>,
    partition: Vec<(String, Option<String>)>,
    deletions: Option<DeletionVectorDescriptor>,
}

impl From<&LogicalFileView> for Named {
    fn from(view: &LogicalFileView) -> Self {
        Self {
            path: view.path().into_owned(),
            size: Some(view.size()),
            stats: view.stats(),
            partition: view.partition_values_map().into_iter().collect(),
            deletions: view.deletion_vector_descriptor(),
        }
    }
}

impl From<Add> for Named {
    fn from(add: Add) -> Self {
        Self {
            path: add.path,
            size: Some(add.size),
            stats: add.stats,
            partition: add.partition_values.into_iter().collect(),
            deletions: add.deletion_vector,
        }
    }
}

impl From<Remove> for Named {
    fn from(remove: Remove) -> Self {
        Self {
            path: remove.path,
            size: remove.size,
            stats: None,
            partition: remove.partition_values.into_iter().flatten().collect(),
            deletions: remove.deletion_vector,
        }
    }
}

impl From<AddCDCFile> for Named {
    fn from(cdc: AddCDCFile) -> Self {
        Self {
            path: cdc.path,
            size: Some(cdc.size),
            stats: None,
            partition: cdc.partition_values.into_iter().collect(),
            deletions: None,
        }
    }
}

impl Named {
    /// A file of a table that this adapter maintains, and whether the log says how many rows it has.
    pub(super) fn ours(self, schema: &SchemaRef) -> Result<(DataFile, bool)> {
        let (rows, mut stats) = match &self.stats {
            Some(json) => stats::from_json(json, schema).map_err(|e| e.with("file", &self.path))?,
            None => (None, BTreeMap::new()),
        };
        let constants = self.constants(schema)?;
        for (name, value) in &constants {
            let nulls = if value.is_null(0) { rows } else { Some(0) };
            let bound = value.is_valid(0).then(|| Arc::clone(value));
            stats.insert(name.clone(), ColumnStats { min: bound.clone(), max: bound, nulls });
        }
        let file = DataFile {
            size: self.bytes().unwrap_or(0),
            rows: rows.unwrap_or(0),
            stats,
            constants: Arc::new(constants),
            deleted: self.deleted()?,
            path: self.path,
        };
        Ok((file, rows.is_some()))
    }

    /// Which rows of the file don't count.
    pub(super) fn deleted(&self) -> Result<Option<Arc<DeletedRows>>> {
        Ok(self.deletions.as_ref().map(deleted).transpose()?.map(Arc::new))
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    fn constants(&self, schema: &SchemaRef) -> Result<BTreeMap<String, ArrayRef>> {
        self.partition
            .iter()
            .filter_map(|(name, value)| Some((name, value, schema.field_with_name(name).ok()?)))
            .map(|(name, value, field)| Ok((name.clone(), constant(value.as_deref(), field)?)))
            .collect()
    }

    /// A file of anybody's table, to read. `size` is asked for where the log does not say it; a file that is gone has none.
    pub(super) fn any(self, schema: &SchemaRef) -> Result<DataFile> {
        let size = self.bytes().unwrap_or(0);
        let rows = match &self.stats {
            Some(json) => stats::from_json(json, schema).map_err(|e| e.with("file", &self.path))?.0,
            None => None,
        };
        let (constants, deleted) = (self.constants(schema)?, self.deleted()?);
        Ok(DataFile {
            path: self.path,
            size,
            rows: rows.unwrap_or(size / ROW_BYTES + 1),
            stats: BTreeMap::new(),
            constants: Arc::new(constants),
            deleted,
        })
    }

    fn bytes(&self) -> Option<u64> {
        self.size.and_then(|size| u64::try_from(size).ok())
    }
}

/// The value of a partition column in every row of a file.
fn constant(text: Option<&str>, field: &arrow_schema::Field) -> Result<ArrayRef> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(new_null_array(field.data_type(), 1));
    };
    let value: ArrayRef = Arc::new(StringArray::from(vec![text]));
    let read = cast(&value, field.data_type())?;
    if read.is_null(0) {
        let message = format!("`{text}` is no value of the partition column `{}`", field.name());
        return Err(Error::new(ErrorKind::Corrupt, message).with("type", field.data_type()));
    }
    Ok(read)
}

fn deleted(descriptor: &DeletionVectorDescriptor) -> Result<DeletedRows> {
    let text = &descriptor.path_or_inline_dv;
    let place = match descriptor.storage_type {
        StorageType::Inline => DeletedPlace::Inline(z85::decoded(text)?),
        StorageType::UuidRelativePath => DeletedPlace::File {
            path: deletion_vector::relative_path(text)?,
            offset: descriptor.offset.and_then(|offset| u64::try_from(offset).ok()).unwrap_or(1),
            size: u64::try_from(descriptor.size_in_bytes).unwrap_or(0),
        },
        StorageType::AbsolutePath => {
            let message = "a table's deletion vector lies outside the table's folder, which can't be read";
            return Err(Error::new(ErrorKind::Unsupported, message).with("path", text));
        }
    };
    Ok(DeletedRows { count: u64::try_from(descriptor.cardinality).ok(), places: vec![place] })
}

/// How the log names which rows of a file don't count.
pub(super) fn descriptor(deleted: &DeletedRows) -> Result<DeletionVectorDescriptor> {
    let [place] = deleted.places.as_slice() else {
        let message = "a file of a Delta table has one deletion vector at most";
        return Err(Error::new(ErrorKind::Internal, message));
    };
    let too_great =
        |what: &str| Error::new(ErrorKind::Unsupported, format!("a deletion vector's {what} is too great"));
    let number = |n: u64, what: &str| i32::try_from(n).map_err(|_| too_great(what));
    let count = deleted
        .count
        .and_then(|count| i64::try_from(count).ok())
        .ok_or_else(|| too_great("number of rows"))?;
    Ok(match place {
        DeletedPlace::Inline(bytes) => DeletionVectorDescriptor {
            storage_type: StorageType::Inline,
            path_or_inline_dv: z85::encoded(bytes),
            offset: None,
            size_in_bytes: number(deletion_vector::plain_size(bytes) as u64, "size")?,
            cardinality: count,
        },
        DeletedPlace::File { path, offset, size } => DeletionVectorDescriptor {
            storage_type: StorageType::UuidRelativePath,
            path_or_inline_dv: deletion_vector::path_text(path)?,
            offset: Some(number(*offset, "place")?),
            size_in_bytes: number(*size, "size")?,
            cardinality: count,
        },
    })
}
