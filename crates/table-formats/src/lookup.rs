//! Rows of given keys, or of all, in Parquet files: prune, read key columns, match, and only then read the rest where it matched.

mod pruning;

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_ord::ord::make_comparator;
use arrow_schema::{DataType, SchemaRef, SortOptions};
use arrow_select::{concat::concat, take::take_record_batch};
use futures::{StreamExt, TryStreamExt, stream};
use roaring::RoaringBitmap;
use strandline_cdc_core::{Bound, Rows};

use crate::{
    contract::{LookupPlan, Result, RowStream},
    error::{Error, ErrorKind},
    keys::{self, ColumnKeys, KeyIndex, Matches},
    metadata::ColumnStats,
    parquet::{FileReader, GroupRows, Read, Readers, selection},
    rows::{self, Positions},
    schema::{adapt, completed, projected},
};

/// A file to look into.
#[derive(Debug, Clone)]
pub(crate) struct Candidate {
    /// Its place in the snapshot's list.
    pub(crate) ordinal: usize,
    /// Where it is.
    pub(crate) path: object_store::path::Path,
    /// Its size.
    pub(crate) size: u64,
    /// Rows of it that don't count any more.
    pub(crate) deleted: Option<Arc<RoaringBitmap>>,
    /// Columns that it leaves out, of one value.
    pub(crate) constants: Arc<BTreeMap<String, ArrayRef>>,
}

/// A lookup, prepared once and run on every file.
#[derive(Debug)]
pub(crate) struct Lookup {
    /// `None` when every key is wanted.
    index: Option<KeyIndex>,
    /// Columns of the table.
    table: SchemaRef,
    key_names: Vec<String>,
    key_schema: SchemaRef,
    /// Columns of the result.
    output: SchemaRef,
    /// Key columns, bound column, and the wanted ones if they are read in the first pass too.
    first: SchemaRef,
    one_pass: bool,
    bound: Option<Bound>,
    /// The smallest bound, for pruning.
    floor: Option<ArrayRef>,
    filters: pruning::Filters,
}

/// So many columns beside keys and bound are read with them; more are read only where keys matched.
const NARROW: usize = 2;
/// Row groups that one task reads.
const GROUPS_PER_TASK: usize = 2;
/// Tasks at a time.
const TASKS: usize = 4;

impl Lookup {
    /// Prepares a lookup on a table of this schema.
    pub(crate) fn new(plan: &LookupPlan, schema: &SchemaRef) -> Result<Self> {
        let key_names = plan.keys.as_ref().map(names_of).unwrap_or_default();
        let key_schema = projected(schema, Some(&key_names))?;
        let index = plan.keys.as_ref().map(|keys| index_of(keys, &key_schema)).transpose()?;
        let bound = plan.bound.clone().filter(|b| {
            let known = schema.field_with_name(&b.column).ok();
            known.is_some_and(|f| f.data_type() == b.at_least.data_type())
        });
        let bounds = plan.keys.as_ref().map_or(1, RecordBatch::num_rows);
        if bound.as_ref().is_some_and(|b| b.at_least.len() != bounds) {
            let message = "a bound must have one value a key, or one for all where no keys are given";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let output = projected(schema, plan.columns.as_deref())?;
        let mut first = key_names.clone();
        let column = bound.as_ref().map(|b| &b.column).filter(|c| !key_names.contains(c));
        first.extend(column.cloned());
        let rest: Vec<_> =
            output.fields().iter().map(|f| f.name()).filter(|c| !first.contains(c)).cloned().collect();
        // Without keys and bound every row matches, so that looking at some columns first spares nothing.
        let one_pass = rest.len() <= NARROW || (index.is_none() && bound.is_none());
        if one_pass {
            first.extend(rest);
        }
        Ok(Self {
            index,
            table: Arc::clone(schema),
            key_names,
            key_schema,
            output,
            first: projected(schema, Some(&first))?,
            one_pass,
            floor: bound.as_ref().map(smallest).transpose()?.flatten(),
            bound,
            filters: pruning::Filters::default(),
        })
    }

    /// The key columns with the keys' values in them; none when every key is wanted.
    fn key_columns(&self) -> impl Iterator<Item = (&String, &ColumnKeys)> {
        self.key_names.iter().zip(self.index.iter().flat_map(KeyIndex::columns))
    }

    /// Whether a file with these statistics may hold rows that are wanted.
    pub(crate) fn may_hold(&self, stats: impl Fn(&str) -> Option<ColumnStats>) -> Result<bool> {
        for (name, keys) in self.key_columns() {
            if let Some(ColumnStats { min: Some(min), max: Some(max), nulls }) = stats(name)
                && !keys.within(&min, &max, &[nulls])?.contains(&true)
            {
                return Ok(false);
            }
        }
        let Some((bound, floor)) = self.bound.as_ref().zip(self.floor.as_ref()) else { return Ok(true) };
        if let Some(ColumnStats { max: Some(max), nulls: Some(0), .. }) = stats(&bound.column)
            && max.data_type() == floor.data_type()
        {
            let compare = make_comparator(&max, floor, SortOptions::default())?;
            return Ok(compare(0, 0).is_ge());
        }
        Ok(true)
    }

    /// Runs the lookup on files.
    pub(crate) fn run(self, readers: Arc<Readers>, files: Vec<Candidate>) -> RowStream {
        if self.index.as_ref().is_some_and(|index| index.len() == 0) {
            return stream::empty().boxed();
        }
        let lookup = Arc::new(self);
        let opened = stream::iter(files).map(move |file| {
            let (lookup, readers) = (Arc::clone(&lookup), Arc::clone(&readers));
            async move {
                let reader = readers.open(file.path.clone(), file.size).await?.named_by(&lookup.table);
                let parts = lookup.wanted(&reader).await?;
                let tasks: Vec<_> = parts
                    .chunks(GROUPS_PER_TASK)
                    .map(|chunk| {
                        Ok::<_, Error>((Arc::clone(&lookup), reader.clone(), file.clone(), chunk.to_vec()))
                    })
                    .collect();
                Ok::<_, Error>(stream::iter(tasks))
            }
        });
        opened
            .buffered(TASKS)
            .try_flatten()
            .map_ok(|(lookup, reader, file, parts)| async move {
                let task = tokio::spawn(async move { lookup.part(&reader, &file, &parts).await });
                let found = task
                    .await
                    .map_err(|e| Error::new(ErrorKind::Internal, "a lookup task failed").because(e))??;
                Ok(stream::iter(found.into_iter().map(Ok)))
            })
            .try_buffered(TASKS)
            .try_flatten()
            .boxed()
    }

    /// Rows of some row groups of a file.
    async fn part(&self, reader: &FileReader, file: &Candidate, parts: &[GroupRows]) -> Result<Vec<Rows>> {
        let group_rows = reader.group_rows();
        let columns = self.first.fields().iter().map(|f| f.name().clone()).collect();
        let read = Read {
            columns: Some(columns),
            groups: Some(parts.iter().map(|part| part.group).collect()),
            selection: selection(parts, &group_rows),
        };
        let mut batches = std::pin::pin!(reader.read(read)?);
        let mut places = Positions::of_parts(&group_rows, parts);
        let mut found = Vec::new();
        let mut selected = Vec::new();
        while let Some(batch) = batches.next().await {
            let batch = completed(&batch?, &self.first, &file.constants)?;
            let positions = places.next(batch.num_rows())?;
            let hits = self.hits(&batch, &positions, file.deleted.as_deref())?;
            let hit = hits.iter().map(|i| positions[*i as usize]);
            if !self.one_pass {
                selected.extend(hit);
            } else if !hits.is_empty() {
                let ids = rows::ids(file.ordinal, hit);
                let taken = take_record_batch(&batch, &UInt32Array::from(hits))?;
                found.push(Rows { batch: adapt(&taken, &self.output)?, ids });
            }
        }
        if !selected.is_empty() {
            found = self.rest(reader, file, &selected).await?;
        }
        Ok(found)
    }

    /// The second pass: the wanted columns of the rows that matched, by their positions in the file.
    async fn rest(&self, reader: &FileReader, file: &Candidate, selected: &[u32]) -> Result<Vec<Rows>> {
        let mut found = Vec::new();
        let parts = rows::at_positions(&reader.group_rows(), selected);
        let read = Read {
            columns: Some(self.output.fields().iter().map(|f| f.name().clone()).collect()),
            groups: Some(parts.iter().map(|part| part.group).collect()),
            selection: selection(&parts, &reader.group_rows()),
        };
        let mut batches = std::pin::pin!(reader.read(read)?);
        let mut left = selected;
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            let (these, after) = left.split_at_checked(batch.num_rows()).ok_or_else(|| {
                Error::new(ErrorKind::Corrupt, "more rows than were selected").with("file", &file.path)
            })?;
            left = after;
            let ids = rows::ids(file.ordinal, these.iter().copied());
            found.push(Rows { batch: completed(&batch, &self.output, &file.constants)?, ids });
        }
        if left.is_empty() {
            return Ok(found);
        }
        Err(Error::new(ErrorKind::Corrupt, "fewer rows than were selected").with("file", &file.path))
    }

    /// Rows of a batch that have one of the keys, are not deleted, and lie within the key's bound.
    fn hits(
        &self,
        batch: &RecordBatch,
        positions: &[u32],
        deleted: Option<&RoaringBitmap>,
    ) -> Result<Vec<u32>> {
        let mut found = match &self.index {
            Some(index) => {
                let keys = adapt(&keys_of(batch, &self.key_names)?, &self.key_schema)?;
                index.matches(keys.columns())?
            }
            None => Matches::all(batch.num_rows()),
        };
        if let Some(deleted) = deleted {
            let live: Vec<_> = found.rows.iter().map(|i| !deleted.contains(positions[*i as usize])).collect();
            retain(&mut found.rows, &live);
            retain(&mut found.keys, &live);
        }
        if let Some(bound) = self.bound.as_ref().filter(|b| is_exact(b.at_least.data_type())) {
            let column = keys::columns(batch, std::slice::from_ref(&bound.column))?.remove(0);
            let compare = make_comparator(&column, &bound.at_least, SortOptions::default())?;
            let kept: Vec<_> = found
                .rows
                .iter()
                .zip(&found.keys)
                .map(|(row, key)| {
                    let (row, key) = (*row as usize, *key as usize);
                    column.is_null(row) || bound.at_least.is_null(key) || compare(row, key).is_ge()
                })
                .collect();
            retain(&mut found.rows, &kept);
        }
        Ok(found.rows)
    }
}

fn retain(values: &mut Vec<u32>, keep: &[bool]) {
    let mut keep = keep.iter();
    values.retain(|_| keep.next().copied().unwrap_or(false));
}

fn names_of(keys: &RecordBatch) -> Vec<String> {
    keys.schema().fields().iter().map(|field| field.name().clone()).collect()
}

fn index_of(keys: &RecordBatch, key_schema: &SchemaRef) -> Result<KeyIndex> {
    let index = KeyIndex::new(&adapt(keys, &nullable(key_schema))?)?;
    if index.len() == keys.num_rows() {
        return Ok(index);
    }
    // Bounds go by row, and a key that comes twice would have the bound of one row only.
    Err(Error::new(ErrorKind::Invalid, "the keys of a lookup must be distinct"))
}

fn keys_of(batch: &RecordBatch, names: &[String]) -> Result<RecordBatch> {
    let schema = projected(batch.schema_ref(), Some(names))?;
    Ok(RecordBatch::try_new(schema, keys::columns(batch, names)?)?)
}

fn nullable(schema: &SchemaRef) -> SchemaRef {
    let fields: Vec<_> = schema.fields().iter().map(|f| f.as_ref().clone().with_nullable(true)).collect();
    Arc::new(arrow_schema::Schema::new(fields))
}

/// True for types whose order here is the order of sequences everywhere; others are bounded by nothing, which returns
/// more rows than needed.
fn is_exact(data_type: &DataType) -> bool {
    !data_type.is_nested() && !data_type.is_floating()
}

/// The smallest bound, as an array of one; `None` when some key has no bound, or when it can't be known.
fn smallest(bound: &Bound) -> Result<Option<ArrayRef>> {
    let values = &bound.at_least;
    if values.is_empty() || values.null_count() > 0 || !is_exact(values.data_type()) {
        return Ok(None);
    }
    let compare = make_comparator(values, values, SortOptions::default())?;
    let least = (1..values.len()).fold(0, |best, i| if compare(i, best).is_lt() { i } else { best });
    Ok(Some(concat(&[values.slice(least, 1).as_ref()])?))
}
