//! Which columns does a record have, and how are those of its frame made?
//!
//! Unread values come as Spark's Kafka source gives them. Where values are decoded, their columns come first, and the frame
//! beside them as one struct, `_kafka`.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, RecordBatch, StructArray,
    builder::{
        BinaryBuilder, BooleanBuilder, Int32Builder, Int64Builder, ListBuilder, StringBuilder, StructBuilder,
        TimestampMicrosecondBuilder,
    },
};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};

use super::{FRAME, payload::Record};
use crate::error::{Error, ErrorKind, Result};

/// `key, value, topic, partition, offset, timestamp, timestampType, headers`: a record that is not looked into.
pub(super) fn raw() -> SchemaRef {
    let mut fields = frame_fields();
    fields.pop();
    fields.insert(1, field("value", DataType::Binary));
    Arc::new(Schema::new(fields))
}

/// The columns of values with the frame behind them.
///
/// # Errors
/// `Definition` for a column of that name.
pub(super) fn beside(values: &Schema) -> Result<SchemaRef> {
    if values.field_with_name(FRAME).is_ok() {
        return Err(Error::new(ErrorKind::Definition, "a column has the name of the record's frame")
            .with("column", FRAME)
            .help("leave it out of the schema"));
    }
    let frame = Field::new(FRAME, DataType::Struct(frame_fields().into()), true);
    let fields: Vec<FieldRef> = values.fields().iter().cloned().chain([Arc::new(frame)]).collect();
    Ok(Arc::new(Schema::new(fields)))
}

fn field(name: &str, data_type: DataType) -> FieldRef {
    Arc::new(Field::new(name, data_type, true))
}

fn frame_fields() -> Vec<FieldRef> {
    vec![
        field("key", DataType::Binary),
        field("topic", DataType::Utf8),
        field("partition", DataType::Int32),
        field("offset", DataType::Int64),
        field("timestamp", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
        field("timestampType", DataType::Int32),
        field("headers", DataType::List(header_item())),
        field("tombstone", DataType::Boolean),
    ]
}

fn header_item() -> FieldRef {
    Arc::new(Field::new_list_field(DataType::Struct(header_fields()), true))
}

fn header_fields() -> Fields {
    vec![field("key", DataType::Utf8), field("value", DataType::Binary)].into()
}

/// The frames of records, one row each.
pub(super) fn frames(records: &[Record]) -> Result<StructArray> {
    let mut keys = BinaryBuilder::new();
    let mut topics = StringBuilder::new();
    let mut partitions = Int32Builder::new();
    let mut offsets = Int64Builder::new();
    let mut timestamps = TimestampMicrosecondBuilder::new().with_timezone("UTC");
    let mut kinds = Int32Builder::new();
    let mut headers =
        ListBuilder::new(StructBuilder::from_fields(header_fields(), 0)).with_field(header_item());
    let mut tombstones = BooleanBuilder::new();
    for record in records {
        keys.append_option(record.key.as_deref());
        topics.append_value(&record.topic);
        partitions.append_value(record.partition);
        offsets.append_value(record.offset);
        timestamps.append_option(record.timestamp.and_then(|ms| ms.checked_mul(1000)));
        kinds.append_value(record.timestamp_type);
        for (name, value) in &record.headers {
            let item = headers.values();
            if let Some(names) = item.field_builder::<StringBuilder>(0) {
                names.append_value(name);
            }
            if let Some(values) = item.field_builder::<BinaryBuilder>(1) {
                values.append_option(value.as_deref());
            }
            item.append(true);
        }
        headers.append(!record.headers.is_empty());
        tombstones.append_value(record.value.is_none());
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(keys.finish()),
        Arc::new(topics.finish()),
        Arc::new(partitions.finish()),
        Arc::new(offsets.finish()),
        Arc::new(timestamps.finish()),
        Arc::new(kinds.finish()),
        Arc::new(headers.finish()),
        Arc::new(tombstones.finish()),
    ];
    Ok(StructArray::try_new(frame_fields().into(), columns, None)?)
}

/// Records whose values are not looked at.
pub(super) fn unread(records: &[Record]) -> Result<RecordBatch> {
    let (_, mut columns, _) = frames(records)?.into_parts();
    columns.pop();
    let mut values = BinaryBuilder::new();
    for record in records {
        values.append_option(record.value.as_deref());
    }
    columns.insert(1, Arc::new(values.finish()));
    Ok(RecordBatch::try_new(raw(), columns)?)
}
