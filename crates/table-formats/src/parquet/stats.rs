//! Statistics: of a whole file for its table's metadata, of row groups for pruning.

use std::collections::BTreeMap;

use arrow_array::{Array, ArrayRef, UInt64Array};
use arrow_ord::cmp::{gt, lt};
use arrow_schema::SchemaRef;
use arrow_select::zip::zip;
use parquet::{
    arrow::arrow_reader::statistics::StatisticsConverter, file::metadata::ParquetMetaData,
    schema::types::SchemaDescriptor,
};

use crate::{contract::Result, metadata::ColumnStats};

/// Minimum, maximum and number of NULLs of a column in each row group.
pub(super) struct GroupStats {
    pub(super) min: ArrayRef,
    pub(super) max: ArrayRef,
    pub(super) nulls: UInt64Array,
}

/// Statistics by row group; `None` when the column has none.
pub(super) fn of_groups(
    column: &str,
    schema: &SchemaRef,
    descriptor: &SchemaDescriptor,
    metadata: &ParquetMetaData,
) -> Option<GroupStats> {
    let converter = StatisticsConverter::try_new(column, schema, descriptor)
        .ok()?
        .with_missing_null_counts_as_zero(false);
    converter.parquet_column_index()?;
    let groups = metadata.row_groups();
    Some(GroupStats {
        min: converter.row_group_mins(groups).ok()?,
        max: converter.row_group_maxes(groups).ok()?,
        nulls: converter.row_group_null_counts(groups).ok()?,
    })
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
