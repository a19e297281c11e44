//! How does each batch become one file, exactly once?
//!
//! The file's name tells flow, incarnation and batch, so a batch that is written again takes the place of itself. It is
//! written beside the folder's files, under `_staged`, and renamed once it is complete: nobody sees a part of it.

use std::{
    fmt::Write as _,
    sync::{Arc, Mutex},
};

use arrow_schema::SchemaRef;
use futures::StreamExt;
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use strandline_table_formats::{DurableLocal, contract::WriterId};

use super::{Options, encode::Encoder};
use crate::{
    error::{Error, ErrorKind, Result, store_error},
    sources::SourceStream,
};

/// How a file is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Parquet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    None,
    Gzip,
    Bzip2,
    Zstd,
    Snappy,
}

/// Options of a file sink, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileSinkOptions {
    path: String,
    encoding: Encoding,
    compression: Compression,
}

impl FileSinkOptions {
    /// Reads the options of a sink of format `json` or `parquet`.
    ///
    /// # Errors
    /// `Definition` for a missing path or an unknown compression.
    pub(super) fn new(format: &str, options: &mut Options<'_>) -> Result<Self> {
        let path = options.path()?;
        if path.contains("://") {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "files of a sink can only be written to a local folder",
            )
            .with("path", path));
        }
        let encoding = if format == "parquet" { Encoding::Parquet } else { Encoding::Json };
        let written = options.take("compression").map(str::to_lowercase);
        let compression = match (encoding, written.as_deref()) {
            (Encoding::Json, None) | (_, Some("none" | "uncompressed")) => Compression::None,
            (_, Some("zstd")) => Compression::Zstd,
            (Encoding::Json, Some("gzip")) => Compression::Gzip,
            (Encoding::Json, Some("bzip2")) => Compression::Bzip2,
            (Encoding::Parquet, None | Some("snappy")) => Compression::Snappy,
            (_, Some(other)) => {
                let known = match encoding {
                    Encoding::Json => "none, gzip, bzip2, zstd",
                    Encoding::Parquet => "none, snappy, zstd",
                };
                return Err(Error::new(
                    ErrorKind::Definition,
                    format!("a sink USING {format} can't be compressed so"),
                )
                .with("compression", other)
                .help(format!("known are: {known}")));
            }
        };
        Ok(Self { path, encoding, compression })
    }

    fn extension(&self) -> &'static str {
        match (self.encoding, self.compression) {
            (Encoding::Parquet, _) => "parquet",
            (Encoding::Json, Compression::Gzip) => "json.gz",
            (Encoding::Json, Compression::Bzip2) => "json.bz2",
            (Encoding::Json, Compression::Zstd) => "json.zst",
            (Encoding::Json, Compression::None | Compression::Snappy) => "json",
        }
    }
}

/// A folder, and the flow that writes files to it.
#[derive(Debug)]
pub(crate) struct FileSink {
    store: Arc<dyn ObjectStore>,
    options: FileSinkOptions,
    /// Beginning of the names of the flow's files.
    prefix: String,
    known: Mutex<Known>,
}

/// What is known of the folder's files.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// Whether the folder was listed.
    is_listed: bool,
    /// The newest batch that has a file.
    newest: Option<u64>,
}

/// What a batch wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Written {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl FileSink {
    /// Opens the folder; it is made where it does not exist.
    ///
    /// # Errors
    /// The store's.
    pub(crate) fn open(options: &FileSinkOptions, writer: &WriterId) -> Result<Self> {
        let store = DurableLocal::new(&options.path).map_err(|e| {
            Error::new(ErrorKind::Unavailable, "the folder of a sink can't be made").because(e)
        })?;
        Ok(Self::over(Arc::new(store), options, writer))
    }

    fn over(store: Arc<dyn ObjectStore>, options: &FileSinkOptions, writer: &WriterId) -> Self {
        let prefix = format!("{}-{}-", plain(&writer.flow), writer.incarnation);
        Self { store, options: options.clone(), prefix, known: Mutex::default() }
    }

    fn name(&self, number: u64) -> String {
        format!("{}{number:020}.{}", self.prefix, self.options.extension())
    }

    /// The newest batch that has a file. A batch without rows has none.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn newest(&self) -> Result<Option<u64>> {
        if let Some(known) = self.known.lock().ok().filter(|known| known.is_listed) {
            return Ok(known.newest);
        }
        let root = Path::default();
        let listed = self.store.list_with_delimiter(None).await.map_err(|e| store_error(e, &root))?;
        let names = listed.objects.iter().filter_map(|object| object.location.filename());
        let numbers =
            names.filter_map(|name| name.strip_prefix(&self.prefix)?.split_once('.')?.0.parse().ok());
        let newest = numbers.max();
        self.note(newest);
        Ok(newest)
    }

    fn note(&self, number: Option<u64>) {
        if let Ok(mut known) = self.known.lock() {
            *known = Known { is_listed: true, newest: number.max(known.newest) };
        }
    }

    /// Writes a batch, in the place of what an earlier attempt wrote of it.
    ///
    /// # Errors
    /// Those of the rows, or the store's.
    pub(crate) async fn write(
        &self,
        number: u64,
        schema: &SchemaRef,
        mut rows: SourceStream,
    ) -> Result<Written> {
        let name = self.name(number);
        let (staged, path) = (Path::from_iter(["_staged", name.as_str()]), Path::from(name.as_str()));
        let mut written = Written::default();
        let mut file: Option<Encoder> = None;
        while let Some(batch) = rows.next().await.transpose()? {
            if batch.num_rows() == 0 {
                continue;
            }
            let encoder = if let Some(encoder) = &mut file {
                encoder
            } else {
                let how = (self.options.encoding, self.options.compression);
                file.insert(Encoder::new(&self.store, &staged, how, schema)?)
            };
            encoder.write(&batch).await?;
            written.rows += batch.num_rows() as u64;
        }
        let Some(file) = file else { return Ok(written) };
        file.finish().await?;
        written.bytes = self.store.head(&staged).await.map_err(|e| store_error(e, &staged))?.size;
        self.store.rename(&staged, &path).await.map_err(|e| store_error(e, &path))?;
        self.note(Some(number));
        Ok(written)
    }
}

/// A flow's name as part of a file's: what is neither letter, digit nor one of `_-.` is written as `=` and two
/// hexadecimal digits.
fn plain(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for (at, byte) in name.bytes().enumerate() {
        // Names that begin with a dot or an underscore are hidden to readers.
        let hides = at == 0 && matches!(byte, b'_' | b'.');
        if byte.is_ascii_alphanumeric() || (matches!(byte, b'_' | b'-' | b'.') && !hides) {
            text.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(text, "={byte:02x}");
        }
    }
    text
}

#[cfg(test)]
mod tests;
