//! A file as the log names it, as a [`DataFile`].

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{ArrayRef, StringArray, new_null_array};
use arrow_cast::cast;
use arrow_schema::SchemaRef;
use deltalake_core::kernel::{
    Add, AddCDCFile, DeletionVectorDescriptor, LogicalFileView, Remove, StorageType,
};

use super::{deletion_vector, stats};
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
    metadata::{DataFile, DeletedPlace, DeletedRows},
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
    /// A file of a table that this adapter maintains.
    pub(super) fn ours(self, schema: &SchemaRef) -> Result<DataFile> {
        if self.deletions.is_some() {
            return Err(super::metadata::unsupported("deletion vectors"));
        }
        let (rows, stats) = match &self.stats {
            Some(json) => stats::from_json(json, schema).map_err(|e| e.with("file", &self.path))?,
            None => (None, BTreeMap::new()),
        };
        let rows = rows.ok_or_else(|| {
            super::metadata::unsupported("files without statistics").with("file", &self.path)
        })?;
        let size = self.bytes().unwrap_or(0);
        Ok(DataFile { path: self.path, size, rows, stats, constants: Arc::default(), deleted: None })
    }

    /// A file of anybody's table, to read. `size` is asked for where the log does not say it; a file that is gone has none.
    pub(super) fn any(self, schema: &SchemaRef) -> Result<DataFile> {
        let size = self.bytes().unwrap_or(0);
        let rows = match &self.stats {
            Some(json) => stats::from_json(json, schema).map_err(|e| e.with("file", &self.path))?.0,
            None => None,
        };
        let constants = self
            .partition
            .iter()
            .filter_map(|(name, value)| Some((name, value, schema.field_with_name(name).ok()?)))
            .map(|(name, value, field)| Ok((name.clone(), constant(value.as_deref(), field)?)))
            .collect::<Result<_>>()?;
        Ok(DataFile {
            path: self.path,
            size,
            rows: rows.unwrap_or(size / ROW_BYTES + 1),
            stats: BTreeMap::new(),
            constants: Arc::new(constants),
            deleted: self.deletions.as_ref().map(deleted).transpose()?.map(Arc::new),
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
        StorageType::Inline => DeletedPlace::Inline(deletion_vector::decoded(text)?),
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
