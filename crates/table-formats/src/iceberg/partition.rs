//! Which partition does a row belong to? Files of a partitioned table have rows of one partition each.
//!
//! A partition's files lie in a folder of their own; the adapter remembers which partition a folder is, so that a file's
//! path tells it when the file is committed.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::Schema;
use iceberg::{
    spec::{Datum, Literal, PartitionSpec, PrimitiveType, Schema as IcebergSchema, Struct, Transform},
    transform::{BoxedTransformFunction, create_transform_function},
};

use super::{error, values};
use crate::{
    contract::Result,
    error::{Error, ErrorKind},
    metadata::Partitioner,
};

/// Where files of partitions lie.
const FOLDER: &str = "data";
/// A folder's name is cut behind so many characters.
const LONGEST: usize = 120;

/// The partitions of a table that were written to, by their folder: with the number of their spec.
#[derive(Debug, Default)]
pub(super) struct Partitions(Mutex<BTreeMap<String, (i32, Struct)>>);

impl Partitions {
    /// The partition that a file was written for; `None` for a file of no partition.
    pub(super) fn of_file(&self, path: &str) -> Option<(i32, Struct)> {
        let (folder, _) = path.rsplit_once('/')?;
        self.lock().get(folder).cloned()
    }

    /// The folder of a partition.
    fn folder(&self, spec: &PartitionSpec, partition: &Struct) -> String {
        let mut known = self.lock();
        let is = |found: Option<&(i32, Struct)>| {
            found.is_none_or(|(id, of)| *id == spec.spec_id() && of == partition)
        };
        let name = name(spec, partition);
        let numbered = |n: usize| if n == 0 { name.clone() } else { format!("{name}.{n}") };
        // Names are for people: two partitions may have one, and get folders apart.
        let folder = (0..=known.len()).map(numbered).find(|folder| is(known.get(folder))).unwrap_or_default();
        known.entry(folder.clone()).or_insert_with(|| (spec.spec_id(), partition.clone()));
        folder
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, (i32, Struct)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A folder's name, as other engines name them: `data/day=2024-01-01`.
fn name(spec: &PartitionSpec, partition: &Struct) -> String {
    let one = |(field, value): (&iceberg::spec::PartitionField, Option<&Literal>)| {
        let value = match value {
            None => "null".to_owned(),
            Some(Literal::Primitive(value)) => text(value),
            Some(Literal::Struct(_) | Literal::List(_) | Literal::Map(_)) => "value".to_owned(),
        };
        let segment = format!("{}={value}", field.name);
        let plain = |c: char| if c.is_ascii_alphanumeric() || "=-_.".contains(c) { c } else { '_' };
        segment.chars().take(LONGEST).map(plain).collect::<String>()
    };
    let segments = spec.fields().iter().zip(partition.iter()).map(one);
    std::iter::once(FOLDER.to_owned()).chain(segments).collect::<Vec<_>>().join("/")
}

fn text(value: &iceberg::spec::PrimitiveLiteral) -> String {
    use iceberg::spec::PrimitiveLiteral as Value;
    match value {
        Value::Boolean(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Long(value) => value.to_string(),
        Value::String(value) => value.clone(),
        Value::Int128(value) => value.to_string(),
        Value::UInt128(value) => value.to_string(),
        Value::Binary(value) => crate::hex::to_hex(value),
        Value::Float(_) | Value::Double(_) | Value::AboveMax | Value::BelowMin => "value".to_owned(),
    }
}

/// One field of a partition: where its column is, and what is made of its values.
struct Part {
    column: usize,
    of: PrimitiveType,
    transform: BoxedTransformFunction,
}

/// Tells rows apart by their partition.
pub(super) struct Split {
    spec: Arc<PartitionSpec>,
    /// `None` for a field that is always NULL.
    parts: Vec<Option<Part>>,
    partitions: Arc<Partitions>,
}

impl fmt::Debug for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Split").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl Split {
    /// The partitions of a spec, of rows in these columns.
    pub(super) fn new(
        spec: &Arc<PartitionSpec>,
        schema: &IcebergSchema,
        columns: &Schema,
        partitions: &Arc<Partitions>,
    ) -> Result<Self> {
        let part = |field: &iceberg::spec::PartitionField| {
            if field.transform == Transform::Void {
                return Ok(None);
            }
            let refused = |why: &str| {
                let message = format!("the table is partitioned by `{}`, {why}", field.name);
                Error::new(ErrorKind::Unsupported, message)
            };
            let source = schema.as_struct().field_by_id(field.source_id);
            let source =
                source.ok_or_else(|| refused("which is of no column: rows can't be written to it"))?;
            let of = source.field_type.as_primitive_type().cloned();
            let of = of.filter(|of| !matches!(of, PrimitiveType::Float | PrimitiveType::Double));
            let of = of.ok_or_else(|| refused("by whose type rows can't be told apart"))?;
            let column = columns.index_of(&source.name)?;
            let transform = create_transform_function(&field.transform);
            let transform =
                transform.map_err(|e| error::of(e, "rows can't be told apart by their partitions"))?;
            Ok(Some(Part { column, of, transform }))
        };
        let parts = spec.fields().iter().map(part).collect::<Result<_>>()?;
        Ok(Self { spec: Arc::clone(spec), parts, partitions: Arc::clone(partitions) })
    }

    /// What each row has in one field.
    fn values(part: Option<&Part>, rows: &RecordBatch) -> Result<Vec<Option<Literal>>> {
        let Some(part) = part else { return Ok(vec![None; rows.num_rows()]) };
        let failed = |e| error::of(e, "a row's partition can't be told");
        let column = rows.column(part.column);
        let mut last: Option<(Datum, Option<Literal>)> = None;
        let mut all = Vec::with_capacity(rows.num_rows());
        for row in 0..rows.num_rows() {
            let Some(value) = values::datum(&column.slice(row, 1), &part.of)? else {
                all.push(None);
                continue;
            };
            let made = match last.take() {
                Some((known, made)) if known == value => made,
                _ => {
                    let made = part.transform.transform_literal(&value).map_err(failed)?;
                    made.map(|made| Literal::Primitive(made.literal().clone()))
                }
            };
            all.push(made.clone());
            last = Some((value, made));
        }
        Ok(all)
    }
}

impl Partitioner for Split {
    fn split(&self, rows: &RecordBatch) -> Result<Vec<(String, UInt32Array)>> {
        let fields = self.parts.iter().map(|part| Self::values(part.as_ref(), rows));
        let fields = fields.collect::<Result<Vec<_>>>()?;
        let mut groups: BTreeMap<String, (Struct, Vec<u32>)> = BTreeMap::new();
        for (row, number) in (0..rows.num_rows()).zip(0_u32..) {
            let of = fields.iter().map(|values| values.get(row).cloned().flatten());
            let partition: Struct = of.collect();
            let group = groups.entry(format!("{partition:?}")).or_insert_with(|| (partition, Vec::new()));
            group.1.push(number);
        }
        let named = |(partition, rows): (Struct, Vec<u32>)| {
            (self.partitions.folder(&self.spec, &partition), UInt32Array::from(rows))
        };
        Ok(groups.into_values().map(named).collect())
    }
}

#[cfg(test)]
mod tests {
    use iceberg::spec::{NestedField, Type};

    use super::*;

    #[test]
    fn partitions_of_one_name_have_folders_of_their_own() {
        let field = NestedField::optional(1, "text", Type::Primitive(PrimitiveType::String));
        let schema = IcebergSchema::builder().with_fields([Arc::new(field)]).build().unwrap();
        let spec = PartitionSpec::builder(schema).add_partition_field("text", "text", Transform::Identity);
        let spec = spec.unwrap().build().unwrap();
        let partitions = Partitions::default();
        let of = |text: Option<&str>| Struct::from_iter([text.map(Literal::string)]);
        let values = [Some("null"), None, Some("a/b"), Some("a_b"), Some("..")];
        let folders: Vec<_> = values.map(|text| partitions.folder(&spec, &of(text))).to_vec();
        assert_eq!(
            folders,
            ["data/text=null", "data/text=null.1", "data/text=a_b", "data/text=a_b.1", "data/text=.."]
        );
        for (text, folder) in values.iter().zip(&folders) {
            assert_eq!(&partitions.folder(&spec, &of(*text)), folder, "always the same one");
            assert_eq!(partitions.of_file(&format!("{folder}/x.parquet")).unwrap().1, of(*text));
        }
        assert_eq!(partitions.of_file("x.parquet"), None);
    }
}
