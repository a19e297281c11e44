//! How a file is laid out, so that a look-up of some keys reads little of it.
//!
//! Statistics of every column by row group, for every reader. Statistics by page only of the columns that look-ups are
//! bounded by: rows are sorted by key, so that other columns' pages all hold about the same values, and each reader of the
//! file would load them. A filter for a key whose values are wider than their share of it.

use arrow_schema::{DataType, SchemaRef};
use parquet::{
    basic::{Compression, ZstdLevel},
    file::properties::{EnabledStatistics, WriterProperties},
    schema::types::ColumnPath,
};

use super::{WriteOptions, bloom, foreign};

/// A column of more distinct values than this holds gains little from a dictionary, and pays for it: whoever reads one page
/// of it reads the dictionary too.
const DICTIONARY_BYTES: usize = 32 << 10;
/// Bytes of a page, at most: of wide rows, fewer make a page.
const PAGE_BYTES: usize = 256 << 10;
/// Of so many values that a row group lacks, a filter lets one pass.
const FALSE_POSITIVES: f64 = 0.01;
/// A file of fewer rows is read as soon as its filter.
const FILTERED_ROWS: u64 = 4 << 10;
/// Columns beside the keys that look-ups in a table with history are bounded by.
const BOUNDS: [&str; 4] = ["__START_AT", "__END_AT", "__SYSTEM_START_AT", "__SYSTEM_END_AT"];

/// Properties of a file of this schema with these keys.
pub(super) fn of(schema: &SchemaRef, keys: &[String], options: WriteOptions) -> WriterProperties {
    let group_rows = options.group_rows.max(1);
    let page_rows = options.page_rows.clamp(1, group_rows);
    let mut builder = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_dictionary_page_size_limit(DICTIONARY_BYTES)
        .set_data_page_size_limit(PAGE_BYTES)
        .set_data_page_row_count_limit(page_rows)
        // Limits of pages are looked at after so many rows.
        .set_write_batch_size(page_rows.min(1 << 10))
        .set_max_row_group_row_count(Some(group_rows))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by([foreign::WRITER, env!("CARGO_PKG_VERSION")].concat());
    let bounds = schema.fields().iter().map(|f| f.name().as_str()).filter(|name| BOUNDS.contains(name));
    for column in keys.iter().map(String::as_str).chain(bounds) {
        builder = builder.set_column_statistics_enabled(path(column), EnabledStatistics::Page);
    }
    let most = u64::try_from(group_rows).unwrap_or(u64::MAX).min(options.file_rows.max(1));
    for (place, key) in keys.iter().enumerate().filter(|_| most >= FILTERED_ROWS) {
        if schema.field_with_name(key).is_ok_and(|field| gains_by_filter(place, field.data_type())) {
            builder = builder
                .set_column_bloom_filter_fpp(path(key), FALSE_POSITIVES)
                .set_column_bloom_filter_max_ndv(path(key), most);
        }
    }
    builder.build()
}

/// A top-level column, whatever its name.
fn path(column: &str) -> ColumnPath {
    ColumnPath::new(vec![column.to_owned()])
}

/// Whether a key is worth ten bits a value more. Sorted numbers are not: the page that may hold one is a few kilobytes.
fn gains_by_filter(place: usize, data_type: &DataType) -> bool {
    let narrow = data_type.primitive_width().is_some_and(|bytes| bytes <= 8);
    bloom::is_probed(data_type) && (place > 0 || !narrow)
}
