//! Which columns do files have, when nobody says?
//!
//! Parquet and Avro files carry their schema. Records of the others are looked at: some of the first files when a flow first
//! runs, all of a batch when it brings a field that is no column yet.

use std::{collections::BTreeSet, sync::Arc};

use arrow_schema::{DataType, Field, FieldRef, Schema};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use parquet::arrow::ParquetRecordBatchStreamBuilder;
use strandline_table_formats::parquet::Input;

use super::{
    FileFormat, FileOptions, bytes, columnar,
    csv::CsvRecords,
    debezium,
    decode::{self, Reading},
    files::FileRef,
    kinds::{Fields, Kind},
    lines::{Lines, Values},
};
use crate::{
    error::{Error, ErrorKind, Result},
    types::{is_lossless, storable},
};

const LOOK_AT_FILES: usize = 50;
const LOOK_AT_RECORDS: usize = 10_000;

/// How much is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Enough to begin with.
    Sample,
    /// All of the files given.
    All,
}

impl Depth {
    fn records(self) -> usize {
        if self == Self::Sample { LOOK_AT_RECORDS } else { usize::MAX }
    }
}

/// Columns of the given files.
pub(super) async fn columns(
    store: &Arc<dyn ObjectStore>,
    files: impl Iterator<Item = (&FileRef, String)>,
    options: &Arc<FileOptions>,
    depth: Depth,
) -> Result<Vec<FieldRef>> {
    let mut known = Fields::default();
    let mut typed: Vec<FieldRef> = Vec::new();
    let ignore_case = options.records.look.ignore_case;
    let most = if depth == Depth::Sample { LOOK_AT_FILES } else { usize::MAX };
    for (file, name) in files.take(most) {
        let path = Path::parse(&file.path)
            .map_err(|e| Error::new(ErrorKind::Internal, "a listed path is none").because(e))?;
        let reading = Reading {
            name,
            options: Arc::clone(options),
            schema: Arc::new(Schema::empty()),
            given: Vec::new(),
        };
        match options.format {
            FileFormat::Text => return Ok(vec![Arc::new(Field::new("value", DataType::Utf8, true))]),
            FileFormat::Parquet => {
                unite(&mut typed, &parquet(store, path, &reading.name).await?, ignore_case);
            }
            FileFormat::Avro => {
                let content = bytes::open(store, &path, &reading.name).await?;
                let schema = blocking(move || {
                    Ok(columnar::avro_reader(content, &reading.name)?.schema().as_ref().clone())
                });
                unite(&mut typed, &schema.await?, ignore_case);
            }
            FileFormat::Json if options.envelope.is_some() => {
                let packed = bytes::open(store, &path, &reading.name).await?;
                let found = blocking(move || enveloped(packed, &reading, known, depth.records()));
                let (told, seen) = found.await?;
                unite(&mut typed, &told, ignore_case);
                known = seen;
            }
            FileFormat::Json | FileFormat::Csv => {
                let packed = bytes::open(store, &path, &reading.name).await?;
                known = blocking(move || records(packed, &reading, known, depth.records())).await?;
            }
        }
    }
    if depth == Depth::All {
        known.0.retain(|(_, kind)| kind.is_typed());
    }
    if ignore_case {
        known = known.folded();
    }
    let is_told = |field: &FieldRef| typed.iter().any(|own| is_same(own.name(), field.name(), ignore_case));
    let more: Vec<FieldRef> = known.columns(options.infer_types).filter(|field| !is_told(field)).collect();
    typed.extend(more);
    if options.records.rescue.is_some() {
        // Of names that differ in case only one can become a column; the others are rescued.
        let mut names = BTreeSet::new();
        typed.retain(|field| names.insert(field.name().to_ascii_lowercase()));
    }
    Ok(typed)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|e| Error::new(ErrorKind::Internal, "a decoder ended abnormally").because(e))?
}

async fn parquet(store: &Arc<dyn ObjectStore>, path: Path, name: &str) -> Result<Schema> {
    let meta = store.head(&path).await.map_err(|e| bytes::gone(e, name))?;
    let input = Input::new(Arc::clone(store), path, meta.size);
    let builder = ParquetRecordBatchStreamBuilder::new(input).await.map_err(|e| {
        Error::new(ErrorKind::Data, format!("the file is no readable Parquet: {e}")).with("file", name)
    })?;
    Ok(builder.schema().as_ref().clone())
}

/// Adds the columns of another file; of two types of a column the one that holds the other's values counts, else the first.
fn unite(known: &mut Vec<FieldRef>, schema: &Schema, ignore_case: bool) {
    for field in storable(schema).fields() {
        match known.iter_mut().find(|own| is_same(own.name(), field.name(), ignore_case)) {
            None => known.push(Arc::clone(field)),
            Some(own) if is_lossless(own.data_type(), field.data_type()) => {
                *own = Arc::new(own.as_ref().clone().with_data_type(field.data_type().clone()));
            }
            Some(_) => {}
        }
    }
}

fn is_same(a: &str, b: &str, ignore_case: bool) -> bool {
    a == b || (ignore_case && a.eq_ignore_ascii_case(b))
}

/// What the records of a file say that are in envelopes: by their schemas, and without one by themselves.
fn enveloped(
    packed: Box<dyn std::io::BufRead + Send>,
    reading: &Reading,
    known: Fields,
    most: usize,
) -> Result<(Schema, Fields)> {
    let Some(envelope) = &reading.options.envelope else { return Ok((Schema::empty(), known)) };
    let nothing = Schema::empty();
    let mut found = debezium::Found::new(envelope, &nothing, known);
    each_record(
        packed,
        reading,
        &mut |record, line| {
            found.record(record).map_err(|error| error.with("file", &reading.name).with("line", line))
        },
        most,
    )?;
    Ok(found.end())
}

/// Shows the JSON records of a file, each with the line that it begins in: lines, or values over any number of them.
fn each_record(
    packed: Box<dyn std::io::BufRead + Send>,
    reading: &Reading,
    show: &mut dyn FnMut(&[u8], u64) -> Result<()>,
    most: usize,
) -> Result<()> {
    let broken = |error| bytes::broken(error, &reading.name);
    let text = decode::text(packed, reading).map_err(broken)?;
    if reading.options.multi_line {
        let mut values = Values::new(text);
        for _ in 0..most {
            let Some(value) = values.next().map_err(broken)?.map(<[u8]>::to_vec) else { break };
            show(&value, values.begins)?;
        }
        return Ok(());
    }
    let mut lines = Lines::new(text);
    let mut left = most;
    while left > 0 {
        let number = lines.number + 1;
        let Some(line) = lines.next().map_err(broken)? else { break };
        if !line.trim_ascii().is_empty() {
            left -= 1;
            show(line, number)?;
        }
    }
    Ok(())
}

/// What the records of a file say.
fn records(
    packed: Box<dyn std::io::BufRead + Send>,
    reading: &Reading,
    mut known: Fields,
    most: usize,
) -> Result<Fields> {
    if reading.options.format == FileFormat::Csv {
        let text = decode::text(packed, reading).map_err(|error| bytes::broken(error, &reading.name))?;
        return csv(CsvRecords::new(text, reading.options.csv.clone()), reading, known, most);
    }
    each_record(
        packed,
        reading,
        &mut |record, _| {
            known.text(record);
            Ok(())
        },
        most,
    )?;
    Ok(known)
}

fn csv<R: std::io::BufRead>(
    mut records: CsvRecords<R>,
    reading: &Reading,
    mut known: Fields,
    most: usize,
) -> Result<Fields> {
    let broken = |error| bytes::broken(error, &reading.name);
    let (dialect, formats) = (&reading.options.csv, &reading.options.records.look.formats);
    records.skip_rows().map_err(broken)?;
    let header = if dialect.header { decode::header_of(&mut records).map_err(broken)? } else { None };
    for (at, name) in header.iter().flatten().enumerate() {
        known.merge(name, Kind::Null, at);
    }
    for _ in 0..most {
        let Some(record) = records.next().map_err(broken)? else { break };
        let Some(fields) = record.fields() else { continue };
        for (at, (text, quoted)) in fields.enumerate() {
            let name = match &header {
                Some(names) => names.get(at).cloned(),
                None => Some(decode::unnamed(at)),
            };
            let is_null = (text.is_empty() && !quoted) || dialect.null_value.as_deref() == Some(text);
            let kind = if is_null { Kind::Null } else { Kind::of_text(text, formats) };
            if let Some(name) = name {
                known.merge(&name, kind, at);
            }
        }
    }
    Ok(known)
}
