//! How do rows become the bytes of a file, batch by batch?

use std::{io::Write, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use object_store::{ObjectStore, buffered::BufWriter, path::Path};
use parquet::{
    arrow::AsyncArrowWriter,
    basic::{Compression as Codec, ZstdLevel},
    file::properties::WriterProperties,
};
use tokio::io::AsyncWriteExt;

use super::files::{Compression, Encoding};
use crate::error::{Error, ErrorKind, Result};

/// A file that is being written. It is there, as a whole, once [`Encoder::finish`] returned.
pub(super) enum Encoder {
    Json { lines: Box<Lines>, upload: Box<BufWriter> },
    Parquet(Box<AsyncArrowWriter<BufWriter>>),
}

impl Encoder {
    pub(super) fn new(
        store: &Arc<dyn ObjectStore>,
        path: &Path,
        (encoding, compression): (Encoding, Compression),
        schema: &SchemaRef,
    ) -> Result<Self> {
        let upload = BufWriter::new(Arc::clone(store), path.clone());
        match encoding {
            Encoding::Json => {
                Ok(Self::Json { lines: Box::new(Lines::new(compression)?), upload: Box::new(upload) })
            }
            Encoding::Parquet => {
                let codec = match compression {
                    Compression::None => Codec::UNCOMPRESSED,
                    Compression::Zstd => Codec::ZSTD(ZstdLevel::default()),
                    Compression::Snappy | Compression::Gzip | Compression::Bzip2 => Codec::SNAPPY,
                };
                let properties = WriterProperties::builder().set_compression(codec).build();
                let writer = AsyncArrowWriter::try_new(upload, Arc::clone(schema), Some(properties));
                Ok(Self::Parquet(Box::new(writer.map_err(|e| failed(&e))?)))
            }
        }
    }

    pub(super) async fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        match self {
            Self::Json { lines, upload } => {
                let bytes = lines.encode(rows)?;
                upload.write_all(&bytes).await.map_err(|e| unwritten(&e))
            }
            Self::Parquet(writer) => writer.write(rows).await.map_err(|e| failed(&e)),
        }
    }

    pub(super) async fn finish(self) -> Result<()> {
        match self {
            Self::Json { lines, mut upload } => {
                let bytes = lines.finish()?;
                upload.write_all(&bytes).await.map_err(|e| unwritten(&e))?;
                upload.shutdown().await.map_err(|e| unwritten(&e))
            }
            Self::Parquet(mut writer) => writer.finish().await.map(drop).map_err(|e| failed(&e)),
        }
    }
}

fn unwritten(error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "a file of a sink can't be written").because(error.to_string())
}

fn failed(error: &parquet::errors::ParquetError) -> Error {
    Error::new(ErrorKind::Unavailable, "a file of a sink can't be written").because(error.to_string())
}

/// JSON objects, one a line, perhaps compressed. Columns that are NULL are left out, as Spark does it.
pub(super) enum Lines {
    Plain,
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Bzip2(bzip2::write::BzEncoder<Vec<u8>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Lines {
    fn new(compression: Compression) -> Result<Self> {
        Ok(match compression {
            Compression::None | Compression::Snappy => Self::Plain,
            // No time of writing in the header: a batch that is written again gives the same bytes.
            Compression::Gzip => Self::Gzip(
                flate2::GzBuilder::new().mtime(0).write(Vec::new(), flate2::Compression::default()),
            ),
            Compression::Bzip2 => {
                Self::Bzip2(bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default()))
            }
            Compression::Zstd => Self::Zstd(
                zstd::stream::write::Encoder::new(Vec::new(), zstd::DEFAULT_COMPRESSION_LEVEL)
                    .map_err(|e| unwritten(&e))?,
            ),
        })
    }

    /// The bytes that are ready after these rows.
    fn encode(&mut self, rows: &RecordBatch) -> Result<Vec<u8>> {
        let mut writer = arrow_json::LineDelimitedWriter::new(Vec::new());
        writer.write(rows)?;
        writer.finish()?;
        let text = writer.into_inner();
        let ready = match self {
            Self::Plain => return Ok(text),
            Self::Gzip(encoder) => encoder.write_all(&text).map(|()| encoder.get_mut()),
            Self::Bzip2(encoder) => encoder.write_all(&text).map(|()| encoder.get_mut()),
            Self::Zstd(encoder) => encoder.write_all(&text).map(|()| encoder.get_mut()),
        };
        ready.map(std::mem::take).map_err(|e| unwritten(&e))
    }

    fn finish(self) -> Result<Vec<u8>> {
        let rest = match self {
            Self::Plain => Ok(Vec::new()),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Bzip2(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        };
        rest.map_err(|e| unwritten(&e))
    }
}
