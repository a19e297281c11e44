//! A few rows as text: a Parquet file in hexadecimal, which keeps every type exactly. For records that are JSON and hold
//! values of a user's type.

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use parquet::arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder};

use crate::{
    contract::Result,
    error::{Error, ErrorKind},
    hex::{from_hex, to_hex},
};

/// Rows as text.
///
/// # Errors
/// `Internal` when Parquet can't hold a column's type.
pub fn to_text(rows: &RecordBatch) -> Result<String> {
    let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), None)?;
    writer.write(rows)?;
    Ok(to_hex(&writer.into_inner()?))
}

/// The rows in text that [`to_text`] made, if nobody altered it.
///
/// # Errors
/// `Corrupt` for other text.
pub fn from_text(text: &str) -> Result<RecordBatch> {
    let corrupt = || Error::new(ErrorKind::Corrupt, "this text is no rows");
    let bytes = from_hex(text).ok_or_else(corrupt)?;
    let read = || {
        let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes))?;
        let schema = std::sync::Arc::clone(builder.schema());
        let batches = builder.build()?.collect::<Result<Vec<_>, _>>()?;
        Ok::<_, Error>(concat_batches(&schema, &batches)?)
    };
    read().map_err(|e| corrupt().because(e))
}
