//! What can a query know of the file that a row is from? The column `_metadata`, as Spark has it.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray, StructArray, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};
use datafusion::scalar::ScalarValue;

use super::files::FileRef;
use crate::error::Result;

/// The name of the column.
pub(crate) const METADATA: &str = "_metadata";

fn fields() -> Fields {
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let field = |name: &str, data_type: DataType| Field::new(name, data_type, true);
    Fields::from(vec![
        field("file_path", DataType::Utf8),
        field("file_name", DataType::Utf8),
        field("file_size", DataType::Int64),
        field("file_block_start", DataType::Int64),
        field("file_block_length", DataType::Int64),
        field("file_modification_time", utc),
    ])
}

/// The column.
pub(crate) fn column() -> FieldRef {
    Arc::new(Field::new(METADATA, DataType::Struct(fields()), true))
}

/// Whether a column is this one, and none of the files' own.
pub(crate) fn is_metadata(field: &Field) -> bool {
    field.name() == METADATA && *field.data_type() == DataType::Struct(fields())
}

/// What is known of a file. Files are read whole, so that the block is all of it.
pub(super) fn value(file: &FileRef, path: &str) -> Result<ScalarValue> {
    let size = i64::try_from(file.size).unwrap_or(i64::MAX);
    let whole = |n: i64| Arc::new(Int64Array::from(vec![n])) as ArrayRef;
    let text = |text: &str| Arc::new(StringArray::from(vec![text])) as ArrayRef;
    let modified = file.modified.map(|millis| millis.saturating_mul(1000));
    let modified = TimestampMicrosecondArray::from(vec![modified]).with_timezone("UTC");
    let name = path.rsplit('/').next().unwrap_or(path);
    let columns =
        vec![text(path), text(name), whole(size), whole(0), whole(size), Arc::new(modified) as ArrayRef];
    Ok(ScalarValue::Struct(Arc::new(StructArray::try_new(fields(), columns, None)?)))
}
