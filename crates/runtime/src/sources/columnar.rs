//! How do rows that come with types, of Parquet and Avro files, become rows of the source's schema?
//!
//! By name, and by lossless casts only. A column of another type, or one that the schema does not have, goes to the rescue
//! column row by row, where there is one.

use std::{io::BufRead, sync::Arc};

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, StringArray, new_null_array};
use arrow_schema::{Field, Schema};
use futures::{StreamExt, TryStreamExt};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use parquet::arrow::ParquetRecordBatchStreamBuilder;
use strandline_table_formats::parquet::Input;

use super::{
    SourceStream,
    bytes::{self, Consumer},
    decode::Reading,
    records::{self, Unknown},
};
use crate::{
    error::{Error, ErrorKind, Result},
    types::{cast_exactly, is_lossless},
};

const BATCH_ROWS: usize = 8192;

fn unreadable(name: &str, format: &str, why: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Data, format!("the file is no readable {format}: {why}"))
        .with("file", name)
        .help("mend or remove the file and run again: nothing of its batch was written")
}

/// Rows of a Parquet file.
pub(super) async fn parquet(
    store: &Arc<dyn ObjectStore>,
    path: Path,
    reading: Reading,
) -> Result<SourceStream> {
    let name = reading.name.clone();
    let meta = store.head(&path).await.map_err(|e| bytes::gone(e, &name))?;
    let input = Input::new(Arc::clone(store), path, meta.size);
    let builder =
        ParquetRecordBatchStreamBuilder::new(input).await.map_err(|e| unreadable(&name, "Parquet", &e))?;
    let stream = builder.with_batch_size(BATCH_ROWS).build().map_err(|e| unreadable(&name, "Parquet", &e))?;
    Ok(stream
        .map_err(move |e| unreadable(&name, "Parquet", &e))
        .and_then(move |batch| {
            let fitted = fit(&batch, &reading);
            async move { fitted }
        })
        .boxed())
}

/// A reader of an Avro object container file.
pub(super) fn avro_reader<R: BufRead>(content: R, name: &str) -> Result<arrow_avro::reader::Reader<R>> {
    arrow_avro::reader::ReaderBuilder::new()
        .with_batch_size(BATCH_ROWS)
        .build(content)
        .map_err(|e| unreadable(name, "Avro", &e))
}

/// Rows of an Avro object container file.
pub(super) fn avro(content: Box<dyn BufRead + Send>, reading: &Reading, consumer: &Consumer) -> Result<()> {
    for batch in avro_reader(content, &reading.name)? {
        let batch = batch.map_err(|e| unreadable(&reading.name, "Avro", &e))?;
        if !consumer.take(fit(&batch, reading)?) {
            break;
        }
    }
    Ok(())
}

/// Brings rows to the source's schema: by name, missing columns are NULL, lossless casts only.
pub(super) fn fit(batch: &RecordBatch, reading: &Reading) -> Result<RecordBatch> {
    let options = &reading.options.records;
    let given = batch.schema_ref().fields();
    let mut used = vec![false; given.len()];
    let mut columns: Vec<ArrayRef> = Vec::new();
    let mut fields = Vec::new();
    for field in reading.schema.fields() {
        if options.rescue.as_ref() == Some(field.name()) {
            continue;
        }
        let at = given.iter().position(|own| own.name() == field.name()).or_else(|| {
            given
                .iter()
                .position(|own| options.look.ignore_case && own.name().eq_ignore_ascii_case(field.name()))
        });
        let column = at.and_then(|at| batch.columns().get(at));
        let fitted = match column {
            Some(column) if is_lossless(column.data_type(), field.data_type()) => {
                if let Some(used) = at.and_then(|at| used.get_mut(at)) {
                    *used = true;
                }
                cast_exactly(column, field).map_err(|error| error.with("file", &reading.name))?
            }
            Some(column) if options.rescue.is_none() => {
                return Err(Error::new(ErrorKind::Data, "a column has another type than before")
                    .with("file", &reading.name)
                    .with("column", field.name())
                    .with("type", column.data_type())
                    .with("expected", field.data_type()));
            }
            Some(_) | None => new_null_array(field.data_type(), batch.num_rows()),
        };
        fields.push(Arc::clone(field));
        columns.push(fitted);
    }
    let rest: Vec<usize> = used.iter().enumerate().filter(|(_, used)| !**used).map(|(at, _)| at).collect();
    let is_wanted = |at: &usize| given.get(*at).is_some_and(|field| !reading.leaves_out(field.name()));
    let rest: Vec<usize> = rest.into_iter().filter(is_wanted).collect();
    check_unknown(batch, &rest, reading)?;
    if let Some(name) = &options.rescue {
        let at = reading.schema.index_of(name).unwrap_or(columns.len());
        fields.insert(at, Arc::new(Field::new(name, arrow_schema::DataType::Utf8, true)));
        columns.insert(at, rescue(&batch.project(&rest)?, &reading.name)?);
    }
    let row_count = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    records::check_nulls(&reading.schema, &columns).map_err(|error| error.with("file", &reading.name))?;
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &row_count)?)
}

/// What a file's further columns mean for the schema.
fn check_unknown(batch: &RecordBatch, rest: &[usize], reading: &Reading) -> Result<()> {
    for &at in rest {
        let (Some(field), Some(column)) = (batch.schema_ref().fields().get(at), batch.columns().get(at))
        else {
            continue;
        };
        if column.null_count() == column.len() {
            continue;
        }
        let records = &reading.options.records;
        let mut known = reading.schema.fields().iter().map(|field| field.name()).chain(&reading.given);
        let is_new = !known.any(|known| known.eq_ignore_ascii_case(field.name()));
        match records.unknown {
            Unknown::Evolve if is_new => return Err(records::new_field(field.name(), &reading.name)),
            Unknown::Refuse if is_new || records.rescue.is_none() => {
                return Err(records::refused_field(field.name(), &reading.name));
            }
            _ => {}
        }
    }
    Ok(())
}

/// What fits no column, as JSON, row by row.
fn rescue(rest: &RecordBatch, name: &str) -> Result<ArrayRef> {
    if rest.num_columns() == 0 {
        return Ok(new_null_array(&arrow_schema::DataType::Utf8, rest.num_rows()));
    }
    let mut writer = arrow_json::LineDelimitedWriter::new(Vec::new());
    writer.write(rest).and_then(|()| writer.finish()).map_err(|e| {
        Error::new(ErrorKind::Unsupported, "a column that is not in the schema can't be kept as JSON")
            .with("file", name)
            .because(e)
    })?;
    let text = String::from_utf8_lossy(&writer.into_inner()).into_owned();
    let rows = text.lines().map(|line| {
        let fields = line.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default();
        (!fields.is_empty()).then(|| records::rescued(fields, name))
    });
    let rows: StringArray = rows.collect();
    if rows.len() == rest.num_rows() {
        return Ok(Arc::new(rows));
    }
    Err(Error::new(ErrorKind::Internal, "rows that were kept as JSON are not as many as they were")
        .with("file", name))
}
