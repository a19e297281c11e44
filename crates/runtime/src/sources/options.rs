//! What do the options of `read_files` mean?
//!
//! The names are those of Auto Loader and of Spark's readers, without regard to case and with or without the prefix
//! `cloudFiles.`. An option that is not known is refused with the one that may have been meant; one that has no meaning here
//! is listed in `known`, and either has no effect or is refused with what to do instead.

mod instant;
mod known;
mod values;

use strandline_pipeline_sql::{ColumnDef, ReadFiles};

use self::values::Values;
use super::{
    Envelope,
    bytes::Compression,
    columns::Look,
    csv::CsvDialect,
    records::{Malformed, RecordOptions, Unknown},
    scalars::{self, Formats},
};
use crate::error::{Error, ErrorKind, Result};

/// How the files are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// JSON: one object a line, or with `multiLine` one value or list a file.
    Json,
    /// Delimited values.
    Csv,
    /// Apache Parquet.
    Parquet,
    /// Apache Avro, object container files.
    Avro,
    /// Lines of text, each a value of the column `value`.
    Text,
}

/// What becomes of fields that the schema does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evolution {
    /// The schema is widened, and the flow goes on with it.
    AddNewColumns,
    /// They go to the rescue column.
    Rescue,
    /// The flow fails.
    FailOnNewColumns,
    /// They are left out, or go to the rescue column where one is named.
    None,
}

/// Options of `read_files`, checked.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option that the user sets to true or false")]
pub struct FileOptions {
    /// Encoding.
    pub(crate) format: FileFormat,
    /// JSON: a record may go over lines.
    pub(crate) multi_line: bool,
    /// Text formats: how they are packed, where their names do not tell.
    pub(crate) compression: Option<Compression>,
    /// CSV.
    pub(crate) csv: CsvDialect,
    /// Most files in a batch.
    pub(crate) max_files: usize,
    /// Most bytes in a batch; one file at least is taken.
    pub(crate) max_bytes: u64,
    /// Only files whose names match.
    pub(crate) name_filter: Option<String>,
    /// Only files that were changed after this, in milliseconds since 1970.
    pub(crate) modified_after: Option<i64>,
    /// Only files that were changed before this.
    pub(crate) modified_before: Option<i64>,
    /// A file that has changed is taken again.
    pub(crate) allow_overwrites: bool,
    /// Files that are there when the flow first runs are taken.
    pub(crate) include_existing: bool,
    /// Columns that the folders name; `None` for those that they are found to name.
    pub(crate) partition_columns: Option<Vec<String>>,
    /// Types are found out; else every value without a type is text.
    pub(crate) infer_types: bool,
    /// Types of some columns.
    pub(crate) hints: Vec<ColumnDef>,
    /// The columns, where they are declared.
    pub(crate) declared: Option<Vec<ColumnDef>>,
    /// Fields that the schema does not have.
    pub(crate) evolution: Evolution,
    /// How records are read.
    pub(crate) records: RecordOptions,
    /// JSON: what each record is wrapped in.
    pub(crate) envelope: Option<Envelope>,
}

/// Files in a batch where the user says nothing, as Auto Loader has it.
const MAX_FILES: usize = 1000;
/// Bytes in a batch where the user says nothing: a batch is held in memory.
const MAX_BYTES: u64 = 256 << 20;
/// Name of the rescue column where the user says nothing.
const RESCUED_DATA: &str = "_rescued_data";

impl FileOptions {
    /// Reads the options of a `read_files` call.
    ///
    /// # Errors
    /// `Definition` for an option that is unknown or has a value that does not fit.
    pub fn new(call: &ReadFiles) -> Result<Self> {
        let mut values = Values::new(call)?;
        let format = match values.text("format") {
            Some(name) => parse_format(&name)?,
            None => format_of_path(&call.path)?,
        };
        let evolution = evolution(&mut values, call.schema.is_some())?;
        let hints = match values.text("schemahints") {
            Some(text) => ColumnDef::parse(&text).map_err(|e| {
                Error::new(ErrorKind::Definition, "schemaHints is no list of columns")
                    .with("schemaHints", &text)
                    .because(e)
            })?,
            None => Vec::new(),
        };
        let read = Self {
            format,
            multi_line: values.flag("multiline")?.unwrap_or(false),
            compression: compression(&mut values)?,
            csv: csv(&mut values)?,
            max_files: values
                .number("maxfilespertrigger")?
                .map_or(MAX_FILES, |n| usize::try_from(n).unwrap_or(usize::MAX)),
            max_bytes: values.bytes("maxbytespertrigger")?.unwrap_or(MAX_BYTES),
            name_filter: values.text("pathglobfilter"),
            modified_after: instant::option(&mut values, "modifiedafter", "modifiedAfter")?,
            modified_before: instant::option(&mut values, "modifiedbefore", "modifiedBefore")?,
            allow_overwrites: values.flag("allowoverwrites")?.unwrap_or(false),
            include_existing: values.flag("includeexistingfiles")?.unwrap_or(true),
            partition_columns: values.text("partitioncolumns").map(|list| {
                let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
                names.map(str::to_owned).collect()
            }),
            infer_types: {
                let inferred = values.flag("infercolumntypes")?;
                let as_text = values.flag("primitivesasstring")?.map(|flag| !flag);
                inferred.or(values.flag("inferschema")?).or(as_text).unwrap_or(true)
            },
            hints,
            declared: call.schema.clone(),
            evolution,
            records: records(&mut values, evolution, call.schema.is_some())?,
            envelope: Envelope::new(|name| values.text(name))?,
        };
        values.finish()?;
        read.check()?;
        Ok(read)
    }

    fn check(&self) -> Result<()> {
        let wrong = |text: &str| Err(Error::new(ErrorKind::Definition, text.to_owned()));
        if self.max_files == 0 {
            return wrong("maxFilesPerTrigger must be at least 1");
        }
        if self.envelope.is_some() && self.format != FileFormat::Json {
            return wrong("envelopes are read from JSON only: write format => 'json'");
        }
        if self.declared.is_some() && !self.hints.is_empty() {
            return wrong("schemaHints go with an inferred schema; this one is declared");
        }
        if self.declared.is_some() && self.evolution == Evolution::AddNewColumns {
            return Err(Error::new(
                ErrorKind::Definition,
                "schemaEvolutionMode addNewColumns goes with an inferred schema; this one is declared",
            )
            .help("give the columns as schemaHints, or take the mode rescue, failOnNewColumns or none"));
        }
        if self.records.malformed == Malformed::Keep && self.records.rescue.is_none() {
            return Err(Error::new(
                ErrorKind::Definition,
                "mode PERMISSIVE keeps records that can't be read, and there is no column for them",
            )
            .help("name one: rescuedDataColumn => '_rescued_data'"));
        }
        Ok(())
    }

    /// For files that are read whole, as they are now: there is no next batch that would have the new columns of this one, and
    /// no flow that began after some of them.
    #[must_use]
    pub(crate) fn of_whole(mut self) -> Self {
        self.include_existing = true;
        if self.records.unknown == Unknown::Evolve {
            self.records.unknown = Unknown::Rest;
        }
        self
    }

    /// How a file of this path is packed.
    pub(crate) fn compression_of(&self, path: &str) -> Compression {
        self.compression.unwrap_or_else(|| Compression::of_path(path))
    }
}

fn parse_format(name: &str) -> Result<FileFormat> {
    match name.to_lowercase().as_str() {
        "json" | "jsonl" | "ndjson" => Ok(FileFormat::Json),
        "csv" | "tsv" => Ok(FileFormat::Csv),
        "parquet" => Ok(FileFormat::Parquet),
        "avro" => Ok(FileFormat::Avro),
        "text" => Ok(FileFormat::Text),
        _ => Err(Error::new(ErrorKind::Definition, format!("read_files can't read the format `{name}`"))
            .help("known are json, csv, parquet, avro and text")),
    }
}

fn format_of_path(path: &str) -> Result<FileFormat> {
    let unpacked =
        [".gz", ".gzip", ".bz2", ".zst", ".zstd"].iter().find_map(|ending| path.strip_suffix(ending));
    let extension = unpacked.unwrap_or(path).rsplit_once('.').map_or("", |(_, e)| e);
    let extension = if extension == "txt" { "text" } else { extension };
    parse_format(extension).map_err(|_| {
        Error::new(ErrorKind::Definition, "read_files does not say which format the files have")
            .with("path", path)
            .help("add format => 'json', 'csv', 'parquet', 'avro' or 'text'")
    })
}

fn compression(values: &mut Values<'_>) -> Result<Option<Compression>> {
    let Some(name) = values.text("compression").or(values.text("codec")) else { return Ok(None) };
    Ok(Some(match name.to_lowercase().as_str() {
        "none" | "uncompressed" => Compression::None,
        "gzip" | "gz" => Compression::Gzip,
        "bzip2" | "bz2" => Compression::Bzip2,
        "zstd" | "zst" => Compression::Zstd,
        _ => {
            return Err(Error::new(ErrorKind::Definition, "files packed so can't be read")
                .with("compression", name)
                .help("known are none, gzip, bzip2 and zstd"));
        }
    }))
}

fn csv(values: &mut Values<'_>) -> Result<CsvDialect> {
    let quote = match values.text_of("quote") {
        Some(text) if text.is_empty() || text == "\\u0000" => {
            values.text("quote");
            None
        }
        _ => Some(values.byte("quote")?.unwrap_or(b'"')),
    };
    Ok(CsvDialect {
        header: values.flag("header")?.unwrap_or(false),
        delimiter: values.byte("sep")?.or(values.byte("delimiter")?).unwrap_or(b','),
        quote,
        // A quote that is escaped by a quote is understood anyway.
        escape: values.byte("escape")?.filter(|escape| Some(*escape) != quote),
        comment: values.byte("comment")?,
        skip_rows: values.number("skiprows")?.unwrap_or(0),
        trim_start: values.flag("ignoreleadingwhitespace")?.unwrap_or(false),
        trim_end: values.flag("ignoretrailingwhitespace")?.unwrap_or(false),
        null_value: values.text("nullvalue"),
    })
}

fn evolution(values: &mut Values<'_>, declared: bool) -> Result<Evolution> {
    match values.text("schemaevolutionmode") {
        None if declared => Ok(Evolution::None),
        None => Ok(Evolution::AddNewColumns),
        Some(mode) => match mode.to_lowercase().as_str() {
            "addnewcolumns" => Ok(Evolution::AddNewColumns),
            "rescue" => Ok(Evolution::Rescue),
            "failonnewcolumns" => Ok(Evolution::FailOnNewColumns),
            "none" => Ok(Evolution::None),
            _ => Err(Error::new(ErrorKind::Definition, "a schemaEvolutionMode that is not known")
                .with("mode", mode)
                .help("known are addNewColumns, rescue, failOnNewColumns and none")),
        },
    }
}

fn records(values: &mut Values<'_>, evolution: Evolution, declared: bool) -> Result<RecordOptions> {
    let rescue = values.text("rescueddatacolumn");
    let by_default = match evolution {
        Evolution::Rescue => true,
        Evolution::AddNewColumns | Evolution::FailOnNewColumns => !declared,
        Evolution::None => false,
    };
    let rescue = rescue.or_else(|| by_default.then(|| RESCUED_DATA.to_owned()));
    let malformed = match values.text("mode") {
        None => Malformed::Fail,
        Some(mode) => match mode.to_uppercase().as_str() {
            "FAILFAST" => Malformed::Fail,
            "DROPMALFORMED" => Malformed::Drop,
            "PERMISSIVE" => Malformed::Keep,
            _ => {
                return Err(Error::new(ErrorKind::Definition, "a mode that is not known")
                    .with("mode", mode)
                    .help("known are FAILFAST, DROPMALFORMED and PERMISSIVE"));
            }
        },
    };
    let mut pattern = |name: &str, written: &str| {
        values.text(name).map(|pattern| scalars::pattern(written, &pattern)).transpose()
    };
    let formats = Formats {
        date: pattern("dateformat", "dateFormat")?,
        timestamp: {
            let with_zone = pattern("timestampformat", "timestampFormat")?;
            with_zone.or(pattern("timestampntzformat", "timestampNTZFormat")?)
        },
    };
    let ignore_case = !values.flag("readercasesensitive")?.unwrap_or(true);
    Ok(RecordOptions {
        look: Look { ignore_case, formats, left_out: Vec::new() },
        rescue: rescue.filter(|name| !name.is_empty()),
        unknown: match evolution {
            Evolution::AddNewColumns => Unknown::Evolve,
            Evolution::FailOnNewColumns => Unknown::Refuse,
            Evolution::Rescue | Evolution::None => Unknown::Rest,
        },
        malformed,
    })
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
