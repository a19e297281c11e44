//! What do the options of `read_files` mean?

use std::collections::BTreeMap;

use strandline_pipeline_sql::{OptionValue, ReadFiles};

use crate::error::{Error, ErrorKind, Result};

/// How the files are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// One JSON object a line.
    Json,
    /// Comma-separated values.
    Csv,
    /// Apache Parquet.
    Parquet,
}

/// Options of `read_files`, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOptions {
    /// Encoding.
    pub format: FileFormat,
    /// Most files in a batch.
    pub max_files: usize,
    /// Most bytes in a batch; one file at least is taken.
    pub max_bytes: u64,
    /// CSV: the first line holds names.
    pub header: bool,
    /// CSV: between fields.
    pub delimiter: u8,
    /// CSV: around fields.
    pub quote: u8,
    /// CSV: text that stands for NULL, besides an empty field.
    pub null_value: Option<String>,
}

/// Files in a batch where the user says nothing, as Auto Loader has it.
const MAX_FILES: usize = 1000;
/// Bytes in a batch where the user says nothing: a batch is held in memory.
const MAX_BYTES: u64 = 256 << 20;

impl FileOptions {
    /// Reads the options of a `read_files` call.
    ///
    /// # Errors
    /// `Definition` for an option that is unknown or has a value that does not fit.
    pub fn new(call: &ReadFiles) -> Result<Self> {
        let mut options = Options(call.options.iter().map(|(k, v)| (normal(k), (k.as_str(), v))).collect());
        let format = match options.text("format") {
            Some(name) => parse_format(&name)?,
            None => format_of_path(&call.path)?,
        };
        let read = Self {
            format,
            max_files: options
                .number("maxfilespertrigger")?
                .map_or(MAX_FILES, |n| usize::try_from(n).unwrap_or(MAX_FILES)),
            max_bytes: options.number("maxbytespertrigger")?.unwrap_or(MAX_BYTES),
            header: options.flag("header")?.unwrap_or(false),
            delimiter: options.byte("sep")?.or(options.byte("delimiter")?).unwrap_or(b','),
            quote: options.byte("quote")?.unwrap_or(b'"'),
            null_value: options.text("nullvalue"),
        };
        options.flag("inferschema")?;
        options.flag("infercolumntypes")?;
        if let Some((name, _)) = options.0.into_values().next() {
            return Err(Error::new(ErrorKind::Definition, format!("read_files does not know the option `{name}`"))
                .help("known are format, schema, maxFilesPerTrigger, maxBytesPerTrigger, header, sep, delimiter, quote, nullValue"));
        }
        if read.max_files == 0 {
            return Err(Error::new(ErrorKind::Definition, "maxFilesPerTrigger must be at least 1"));
        }
        Ok(read)
    }
}

/// Options are named without regard to case, and with or without Auto Loader's prefix.
fn normal(name: &str) -> String {
    let name = name.to_lowercase();
    name.strip_prefix("cloudfiles.").map_or(name.clone(), str::to_owned)
}

fn parse_format(name: &str) -> Result<FileFormat> {
    match name.to_lowercase().as_str() {
        "json" | "jsonl" | "ndjson" => Ok(FileFormat::Json),
        "csv" => Ok(FileFormat::Csv),
        "parquet" => Ok(FileFormat::Parquet),
        _ => Err(Error::new(ErrorKind::Definition, format!("read_files can't read the format `{name}`"))
            .help("known are json (one object a line), csv and parquet")),
    }
}

fn format_of_path(path: &str) -> Result<FileFormat> {
    let extension = path.rsplit_once('.').map_or("", |(_, e)| e);
    parse_format(extension).map_err(|_| {
        Error::new(ErrorKind::Definition, "read_files does not say which format the files have")
            .with("path", path)
            .help("add format => 'json', 'csv' or 'parquet'")
    })
}

struct Options<'a>(BTreeMap<String, (&'a str, &'a OptionValue)>);

impl Options<'_> {
    fn text(&mut self, name: &str) -> Option<String> {
        self.0.remove(name).map(|(_, value)| value.to_string())
    }

    fn parsed<T: std::str::FromStr>(&mut self, name: &str, what: &str) -> Result<Option<T>> {
        let Some((written, value)) = self.0.remove(name) else { return Ok(None) };
        let text = value.to_string();
        text.parse().map(Some).map_err(|_| {
            Error::new(
                ErrorKind::Definition,
                format!("option `{written}` of read_files must be {what}, it is `{text}`"),
            )
        })
    }

    fn number(&mut self, name: &str) -> Result<Option<u64>> {
        self.parsed(name, "a whole number")
    }

    fn flag(&mut self, name: &str) -> Result<Option<bool>> {
        self.parsed(name, "true or false")
    }

    fn byte(&mut self, name: &str) -> Result<Option<u8>> {
        let Some((written, value)) = self.0.remove(name) else { return Ok(None) };
        let text = value.to_string();
        match (text.as_str(), text.as_bytes()) {
            ("\\t", _) => Ok(Some(b'\t')),
            (_, [one]) => Ok(Some(*one)),
            _ => Err(Error::new(
                ErrorKind::Definition,
                format!("option `{written}` of read_files must be one ASCII character, it is `{text}`"),
            )),
        }
    }
}
