//! Which Arrow types have the columns of a file that another program wrote?
//!
//! A file may carry the Arrow schema of its writer, and that names encodings as types: string views, large strings,
//! dictionaries, a time zone of its own. What Parquet itself says of a column is the same whoever wrote it. One type
//! needs help: the 96-bit instants, which Spark still writes, are of no unit and no zone; tables hold microseconds in UTC.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, TimeUnit};
use parquet::{
    arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions},
    basic::Type as Physical,
    schema::types::SchemaDescriptor,
};

use crate::contract::Result;

/// What the footers of our own files say of who wrote them; the version follows.
pub(super) const WRITER: &str = "strandline ";

/// The footer with types that don't depend on who wrote the file. Files of ours keep the types that they were given.
///
/// # Errors
/// [`ErrorKind::Corrupt`](crate::error::ErrorKind::Corrupt) for a schema that Arrow can't say.
pub(super) fn plainly(
    footer: ArrowReaderMetadata,
    options: &ArrowReaderOptions,
) -> Result<ArrowReaderMetadata> {
    let writer = footer.metadata().file_metadata().created_by();
    if writer.is_some_and(|writer| writer.starts_with(WRITER)) {
        return Ok(footer);
    }
    let parquet = Arc::clone(footer.metadata());
    let plain = options.clone().with_skip_arrow_metadata(true);
    let footer = ArrowReaderMetadata::try_new(Arc::clone(&parquet), plain.clone())?;
    let mut leaves = Leaves { of: footer.parquet_schema(), next: 0 };
    let fields = leaves.fields(footer.schema().fields());
    if &fields == footer.schema().fields() {
        return Ok(footer);
    }
    let schema = Schema::new_with_metadata(fields, footer.schema().metadata().clone());
    Ok(ArrowReaderMetadata::try_new(parquet, plain.with_schema(Arc::new(schema)))?)
}

/// The leaves of a file's schema, in order.
struct Leaves<'a> {
    of: &'a SchemaDescriptor,
    next: usize,
}

impl Leaves<'_> {
    fn fields(&mut self, fields: &Fields) -> Fields {
        fields.iter().map(|field| self.field(field)).collect()
    }

    fn field(&mut self, field: &FieldRef) -> FieldRef {
        let data_type = self.data_type(field.data_type());
        Arc::new(Field::clone(field).with_data_type(data_type))
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "what is not nested is a leaf")]
    fn data_type(&mut self, data_type: &DataType) -> DataType {
        match data_type {
            DataType::Struct(fields) => DataType::Struct(self.fields(fields)),
            DataType::List(item) => DataType::List(self.field(item)),
            DataType::Map(entries, sorted) => DataType::Map(self.field(entries), *sorted),
            leaf => {
                let place = self.next;
                self.next += 1;
                let old =
                    place < self.of.num_columns() && self.of.column(place).physical_type() == Physical::INT96;
                if old {
                    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
                } else {
                    leaf.clone()
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{
        ArrayRef, DictionaryArray, LargeStringArray, RecordBatch, StringArray, StringViewArray, StructArray,
        cast::AsArray,
        types::{Int32Type, TimestampMicrosecondType},
    };
    use bytes::Bytes;
    use parquet::{
        arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder},
        data_type::{Int32Type as ParquetInt32, Int96, Int96Type},
        file::{properties::WriterProperties, writer::SerializedFileWriter},
        schema::parser::parse_message_type,
    };

    use super::*;

    fn read(bytes: &Bytes) -> RecordBatch {
        let options = ArrowReaderOptions::new();
        let footer = plainly(ArrowReaderMetadata::load(bytes, options.clone()).unwrap(), &options).unwrap();
        let mut rows =
            ParquetRecordBatchReaderBuilder::new_with_metadata(bytes.clone(), footer).build().unwrap();
        rows.next().unwrap().unwrap()
    }

    fn encodings() -> RecordBatch {
        let texts = || ["a", "b"];
        let inner: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts()));
        let field = Arc::new(Field::new("inner", DataType::Utf8View, true));
        RecordBatch::try_from_iter([
            ("view", Arc::clone(&inner)),
            ("large", Arc::new(LargeStringArray::from_iter_values(texts()))),
            ("dictionary", Arc::new(DictionaryArray::<Int32Type>::from_iter(texts()))),
            ("nested", Arc::new(StructArray::from(vec![(field, inner)]))),
        ])
        .unwrap()
    }

    fn written(rows: &RecordBatch, by: &str) -> Bytes {
        let properties = WriterProperties::builder().set_created_by(by.to_owned()).build();
        let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties)).unwrap();
        writer.write(rows).unwrap();
        Bytes::from(writer.into_inner().unwrap())
    }

    #[test]
    fn the_encodings_of_other_writers_are_read_as_plain_types() {
        let rows = read(&written(&encodings(), "somebody else"));
        let plain = StringArray::from(vec!["a", "b"]);
        for column in ["view", "large", "dictionary"] {
            assert_eq!(rows.column_by_name(column).unwrap().as_string::<i32>(), &plain, "{column}");
        }
        let nested = rows.column_by_name("nested").unwrap().as_struct();
        assert_eq!(nested.column(0).as_string::<i32>(), &plain);
    }

    #[test]
    fn files_of_ours_keep_their_types() {
        let rows = encodings();
        assert_eq!(read(&written(&rows, &[WRITER, "0.0.0"].concat())).schema(), rows.schema());
    }

    #[test]
    fn instants_of_96_bits_are_microseconds_in_utc_wherever_they_stand() {
        let text =
            "message m { required int32 n; required int96 at; required group s { required int96 inner; } }";
        let schema = Arc::new(parse_message_type(text).unwrap());
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
        let mut group = writer.next_row_group().unwrap();
        // The day 2026-01-02 in the count of Julian days, and 1.5 microseconds: what is finer is cut off.
        let mut instant = Int96::new();
        instant.set_data(1_500, 0, 2_461_043);
        let mut number = group.next_column().unwrap().unwrap();
        number.typed::<ParquetInt32>().write_batch(&[7], None, None).unwrap();
        number.close().unwrap();
        while let Some(mut column) = group.next_column().unwrap() {
            column.typed::<Int96Type>().write_batch(&[instant], None, None).unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
        let rows = read(&Bytes::from(writer.into_inner().unwrap()));
        let micros = |column: &ArrayRef| column.as_primitive::<TimestampMicrosecondType>().value(0);
        assert_eq!(micros(rows.column(1)), 1_767_312_000_000_001);
        assert_eq!(micros(rows.column(2).as_struct().column(0)), 1_767_312_000_000_001);
        assert_eq!(
            rows.schema().field(1).data_type(),
            &DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
        );
    }
}
