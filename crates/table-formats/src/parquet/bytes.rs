//! A few rows as the bytes of a Parquet file, which keeps every type exactly: for records that hold values of a user's type.

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use parquet::arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder};

use crate::{
    contract::Result,
    error::{Error, ErrorKind},
};

/// Rows as bytes.
///
/// # Errors
/// `Internal` when Parquet can't hold a column's type.
pub fn to_bytes(rows: &RecordBatch) -> Result<Vec<u8>> {
    let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), None)?;
    writer.write(rows)?;
    Ok(writer.into_inner()?)
}

/// The rows in bytes that [`to_bytes`] made, if nobody altered them.
///
/// # Errors
/// `Corrupt` for other bytes.
pub fn from_bytes(bytes: Vec<u8>) -> Result<RecordBatch> {
    let corrupt = |e: Error| Error::new(ErrorKind::Corrupt, "these bytes are no rows").because(e);
    let read = || {
        let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes))?;
        let schema = std::sync::Arc::clone(builder.schema());
        let batches = builder.build()?.collect::<Result<Vec<_>, _>>()?;
        Ok::<_, Error>(concat_batches(&schema, &batches)?)
    };
    read().map_err(corrupt)
}
