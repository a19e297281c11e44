//! Statistics: of a whole file for its table's metadata, of row groups and pages for pruning.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{Array, ArrayRef, Scalar, UInt64Array};
use arrow_ord::cmp::{gt, lt};
use arrow_schema::SchemaRef;
use arrow_select::zip::zip;
use parquet::{
    arrow::arrow_reader::statistics::StatisticsConverter, file::metadata::ParquetMetaData,
    schema::types::SchemaDescriptor,
};

use crate::{contract::Result, keys::ColumnKeys, metadata::ColumnStats};

/// Minimum, maximum and number of NULLs of a column in each row group of a file, or in each page of a row group. What is
/// NULL in here is not known.
#[derive(Debug)]
pub(crate) struct Stats {
    pub(super) min: ArrayRef,
    pub(super) max: ArrayRef,
    pub(super) nulls: UInt64Array,
}

impl Stats {
    /// For each, whether it may hold one of the values.
    pub(crate) fn may_hold(&self, keys: &ColumnKeys) -> Result<Vec<bool>> {
        let nulls: Vec<_> = self.nulls.iter().collect();
        keys.within(&self.min, &self.max, &nulls)
    }

    /// For each, whether a value may be NULL or not below the (single) bound.
    pub(crate) fn may_reach(&self, bound: &ArrayRef) -> Result<Vec<bool>> {
        if self.max.data_type() != bound.data_type() {
            return Ok(vec![true; self.max.len()]);
        }
        let below = lt(&self.max, &Scalar::new(Arc::clone(bound)))?;
        Ok((0..below.len())
            .map(|i| {
                let some_null = !self.nulls.is_valid(i) || self.nulls.value(i) > 0;
                some_null || !below.is_valid(i) || !below.value(i)
            })
            .collect())
    }

    /// Smallest and greatest value of one, each in an array of one.
    pub(crate) fn bounds(&self, i: usize) -> (ArrayRef, ArrayRef) {
        (self.min.slice(i, 1), self.max.slice(i, 1))
    }
}

/// Statistics by row group; `None` when the column has none.
pub(super) fn of_groups(
    column: &str,
    schema: &SchemaRef,
    descriptor: &SchemaDescriptor,
    metadata: &ParquetMetaData,
) -> Option<Stats> {
    let converter = converter(column, schema, descriptor)?;
    let groups = metadata.row_groups();
    Some(Stats {
        min: converter.row_group_mins(groups).ok()?,
        max: converter.row_group_maxes(groups).ok()?,
        nulls: converter.row_group_null_counts(groups).ok()?,
    })
}

/// Statistics by page of a row group, and the first row of each page; `None` when the file has none of the column.
pub(super) fn of_pages(
    column: &str,
    schema: &SchemaRef,
    descriptor: &SchemaDescriptor,
    metadata: &ParquetMetaData,
    group: usize,
) -> Option<(Stats, Vec<u64>)> {
    let converter = converter(column, schema, descriptor)?;
    let leaf = converter.parquet_column_index()?;
    let (columns, offsets) = (metadata.column_index()?, metadata.offset_index()?);
    columns.get(group)?.get(leaf)?;
    let starts = page_starts(metadata, group, leaf)?;
    let stats = Stats {
        min: converter.data_page_mins(columns, offsets, [&group]).ok()?,
        max: converter.data_page_maxes(columns, offsets, [&group]).ok()?,
        nulls: converter.data_page_null_counts(columns, offsets, [&group]).ok()?,
    };
    // Two indexes of one file may contradict each other.
    let lengths = [stats.min.len(), stats.max.len(), stats.nulls.len()];
    lengths.iter().all(|length| *length == starts.len()).then_some((stats, starts))
}

/// The first row of each page, from the row group's first on; `None` when the index has none, or can't be right.
pub(super) fn page_starts(metadata: &ParquetMetaData, group: usize, leaf: usize) -> Option<Vec<u64>> {
    let rows = u64::try_from(metadata.row_groups().get(group)?.num_rows()).ok()?;
    let pages = metadata.offset_index()?.get(group)?.get(leaf)?.page_locations();
    let starts =
        pages.iter().map(|page| u64::try_from(page.first_row_index).ok()).collect::<Option<Vec<_>>>()?;
    let ascending = starts.is_sorted() && starts.last().is_some_and(|last| *last < rows.max(1));
    (starts.first() == Some(&0) && ascending).then_some(starts)
}

fn converter<'a>(
    column: &str,
    schema: &'a SchemaRef,
    descriptor: &'a SchemaDescriptor,
) -> Option<StatisticsConverter<'a>> {
    let converter = StatisticsConverter::try_new(column, schema, descriptor).ok()?;
    converter.parquet_column_index()?;
    Some(converter.with_missing_null_counts_as_zero(false))
}

/// Statistics of a file's columns.
pub(super) fn of_file(
    schema: &SchemaRef,
    metadata: &ParquetMetaData,
) -> Result<BTreeMap<String, ColumnStats>> {
    let descriptor = metadata.file_metadata().schema_descr();
    let mut all = BTreeMap::new();
    for field in schema.fields() {
        if let Some(groups) = of_groups(field.name(), schema, descriptor, metadata) {
            let nulls = (groups.nulls.null_count() == 0).then(|| groups.nulls.values().iter().sum());
            let known = !field.data_type().is_floating();
            let stats = ColumnStats {
                min: if known { extreme(&groups.min, false)? } else { None },
                max: if known { extreme(&groups.max, true)? } else { None },
                nulls,
            };
            all.insert(field.name().clone(), stats);
        }
    }
    Ok(all)
}

/// The smallest or greatest value; `None` unless every row group knows its own. A row group whose values are all NULL
/// knows none, so such a column has no bounds.
fn extreme(values: &ArrayRef, greatest: bool) -> Result<Option<ArrayRef>> {
    if values.is_empty() || values.null_count() > 0 {
        return Ok(None);
    }
    let mut best = values.slice(0, 1);
    for i in 1..values.len() {
        let next = values.slice(i, 1);
        let better = if greatest { gt(&next, &best)? } else { lt(&next, &best)? };
        best = zip(&better, &next, &best)?;
    }
    Ok(Some(best))
}
