//! The files of a version, as the shared middle wants them: data files, each with the deletes that apply to it.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{ArrayRef, new_null_array};
use arrow_schema::SchemaRef;
use iceberg::spec::{
    DataContentType, DataFileFormat, Literal, ManifestContentType, ManifestEntry, PartitionField,
    Schema as IcebergSchema, Transform,
};
use object_store::path::Path;

use super::{Warehouse, manifest::Manifest, values};
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
    metadata::{DataFile, DeletedPlace, DeletedRows},
};

/// Where a table's files lie, and which columns they are read in.
pub(super) struct Place<'a> {
    pub(super) warehouse: &'a Warehouse,
    pub(super) root: &'a Path,
    pub(super) schema: &'a IcebergSchema,
    pub(super) columns: &'a SchemaRef,
    /// Whether somebody else maintains the table, whose files may leave out what they are partitioned by.
    pub(super) foreign: bool,
}

impl Place<'_> {
    /// The path of a file within the table's folder.
    pub(super) fn relative(&self, url: &str) -> Result<String> {
        relative(self.warehouse, self.root, url)
    }
}

/// The path, within the table's folder, of the file at a URL.
pub(super) fn relative(warehouse: &Warehouse, root: &Path, url: &str) -> Result<String> {
    let path = warehouse.path(url)?;
    let parts: Option<Vec<_>> = path.prefix_match(root).map(Iterator::collect);
    let parts = parts.filter(|parts| !parts.is_empty()).ok_or_else(|| {
        let message = "a file of the table lies outside of the table's folder, where it can't be read";
        Error::new(ErrorKind::Unsupported, message).with("file", url)
    })?;
    Ok(parts.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join("/"))
}

/// The data files of these manifests, sorted by path. Those that are known in the same columns are not made again.
pub(super) fn of(
    manifests: &[Arc<Manifest>],
    place: &Place<'_>,
    known: &BTreeMap<&str, &Arc<DataFile>>,
) -> Result<Vec<Arc<DataFile>>> {
    let deletes = Deletes::of(manifests, place)?;
    let mut files = Vec::new();
    for manifest in manifests.iter().filter(|m| m.file.content == ManifestContentType::Data) {
        for entry in manifest.live() {
            let path = place.relative(entry.file_path())?;
            let deleted = deletes.of_file(manifest, entry, &path)?;
            let same = known.get(path.as_str()).filter(|file| {
                file.deleted.as_ref().map(|d| &d.places) == deleted.as_ref().map(|d| &d.places)
            });
            files.push(match same {
                Some(file) => Arc::clone(file),
                None => Arc::new(data_file((manifest, entry), path, deleted, place)?),
            });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    if let Some([twice, _]) = files.windows(2).find(|pair| matches!(pair, [a, b] if a.path == b.path)) {
        let message = "a version of the table names a file twice";
        return Err(Error::new(ErrorKind::Corrupt, message).with("file", &twice.path));
    }
    Ok(files)
}

fn data_file(
    (manifest, entry): (&Manifest, &ManifestEntry),
    path: String,
    deleted: Option<DeletedRows>,
    place: &Place<'_>,
) -> Result<DataFile> {
    if entry.file_format() != DataFileFormat::Parquet {
        let message =
            format!("a file of the table has the format {}, which is not read", entry.file_format());
        return Err(Error::new(ErrorKind::Unsupported, message).with("file", path));
    }
    let constants = if place.foreign { constants(manifest, entry, place) } else { BTreeMap::new() };
    Ok(DataFile {
        path,
        size: entry.file_size_in_bytes(),
        rows: entry.record_count(),
        stats: values::stats(entry.data_file(), place.schema, place.columns).into_iter().collect(),
        constants: Arc::new(constants),
        deleted: deleted.map(Arc::new),
    })
}

/// Columns by whose very values a file is partitioned. Tables that were taken over from Hive have them nowhere else.
fn constants(manifest: &Manifest, entry: &ManifestEntry, place: &Place<'_>) -> BTreeMap<String, ArrayRef> {
    let fields = manifest.spec.fields().iter().zip(entry.data_file().partition().iter());
    let one = |(field, value): (&PartitionField, Option<&Literal>)| {
        let name = place.schema.as_struct().field_by_id(field.source_id)?.name.clone();
        let column = place.columns.field_with_name(&name).ok()?;
        let value = match value {
            None => new_null_array(column.data_type(), 1),
            Some(Literal::Primitive(value)) => values::array(value, column.data_type())?,
            Some(Literal::Struct(_) | Literal::List(_) | Literal::Map(_)) => return None,
        };
        (field.transform == Transform::Identity).then_some((name, value))
    };
    fields.filter_map(one).collect()
}

/// A file of deletes that are of the version.
struct Delete {
    sequence: i64,
    spec: i32,
    /// The partition, as text: partitions have no order.
    partition: String,
    count: u64,
    /// Whether it is a deletion vector, which stands for all deletes of its file.
    vector: bool,
    place: DeletedPlace,
}

/// The deletes of a version.
#[derive(Default)]
struct Deletes {
    /// Those of one file, by its path.
    of_one: BTreeMap<String, Vec<Delete>>,
    /// Those of any file of a partition.
    of_many: Vec<Delete>,
    /// Equality deletes.
    by_value: Vec<ByValue>,
}

/// Sequence number, partition unless it is of all, and path of an equality delete.
type ByValue = (i64, Option<(i32, String)>, String);

impl Deletes {
    fn of(manifests: &[Arc<Manifest>], place: &Place<'_>) -> Result<Self> {
        let mut all = Self::default();
        for manifest in manifests.iter().filter(|m| m.file.content == ManifestContentType::Deletes) {
            for entry in manifest.live() {
                all.add(manifest, entry, place)?;
            }
        }
        // As each file has them in order, the same deletes always give the same list.
        for some in all.of_one.values_mut().chain([&mut all.of_many]) {
            some.sort_by_key(|delete| delete.sequence);
        }
        Ok(all)
    }

    fn add(&mut self, manifest: &Manifest, entry: &ManifestEntry, place: &Place<'_>) -> Result<()> {
        let file = entry.data_file();
        let sequence = entry.sequence_number().unwrap_or(0);
        let partition = partition(entry);
        if file.content_type() == DataContentType::EqualityDeletes {
            let within =
                (!manifest.spec.is_unpartitioned()).then_some((manifest.file.partition_spec_id, partition));
            self.by_value.push((sequence, within, file.file_path().to_owned()));
            return Ok(());
        }
        let path = place.relative(file.file_path())?;
        let vector = file.file_format() == DataFileFormat::Puffin;
        let place_of = |offset: Option<i64>, size: Option<i64>| {
            let number = |n: Option<i64>| n.and_then(|n| u64::try_from(n).ok());
            Some(DeletedPlace::File { path: path.clone(), offset: number(offset)?, size: number(size)? })
        };
        let found = match file.file_format() {
            DataFileFormat::Puffin => place_of(file.content_offset(), file.content_size_in_bytes()),
            DataFileFormat::Parquet => {
                Some(DeletedPlace::File { path: path.clone(), offset: 0, size: file.file_size_in_bytes() })
            }
            DataFileFormat::Avro | DataFileFormat::Orc => {
                let message = "a file of deletes is no Parquet file: a compaction by its writer removes it";
                return Err(Error::new(ErrorKind::Unsupported, message).with("file", path));
            }
        };
        let found = found.ok_or_else(|| {
            Error::new(ErrorKind::Corrupt, "a deletion vector has no place in its file").with("file", &path)
        })?;
        let spec = manifest.file.partition_spec_id;
        let delete = Delete { sequence, spec, partition, count: file.record_count(), vector, place: found };
        match file.referenced_data_file() {
            Some(of) => self.of_one.entry(place.relative(&of)?).or_default().push(delete),
            None => self.of_many.push(delete),
        }
        Ok(())
    }

    /// The deletes that apply to a file. Source: the format's specification, "Scan Planning".
    fn of_file(&self, manifest: &Manifest, entry: &ManifestEntry, path: &str) -> Result<Option<DeletedRows>> {
        let since = entry.sequence_number().unwrap_or(0);
        let spec = manifest.file.partition_spec_id;
        if self.of_one.is_empty() && self.of_many.is_empty() && self.by_value.is_empty() {
            return Ok(None);
        }
        let partition = partition(entry);
        let equal = self.by_value.iter().find(|(sequence, within, _)| {
            let within = within.as_ref();
            *sequence > since && within.is_none_or(|(id, part)| *id == spec && *part == partition)
        });
        if let Some((_, _, file)) = equal {
            let message = "the table has equality deletes, which are not read: compact it with the engine \
                           that wrote them (in Spark: rewrite_data_files with delete-file-threshold 1)";
            return Err(Error::new(ErrorKind::Unsupported, message).with("file", file));
        }
        let applies = |delete: &&Delete| {
            delete.sequence >= since && delete.spec == spec && delete.partition == partition
        };
        let own: Vec<_> = self.of_one.get(path).into_iter().flatten().filter(applies).collect();
        if let Some(vector) = own.iter().rev().find(|delete| delete.vector) {
            return Ok(Some(DeletedRows { count: Some(vector.count), places: vec![vector.place.clone()] }));
        }
        let shared: Vec<_> = self.of_many.iter().filter(applies).collect();
        let count = match (own.as_slice(), shared.as_slice()) {
            ([], []) => return Ok(None),
            ([one], []) => Some(one.count),
            _ => None,
        };
        let places = shared.iter().chain(&own).map(|delete| delete.place.clone()).collect();
        Ok(Some(DeletedRows { count, places }))
    }
}

fn partition(entry: &ManifestEntry) -> String {
    format!("{:?}", entry.data_file().partition())
}
