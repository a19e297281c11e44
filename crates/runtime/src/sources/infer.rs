//! Which columns do files have, when nobody says?
//!
//! Parquet and Avro files carry their schema. Records of the others are looked at: some of the first files when a flow first
//! runs, all of a batch when it brings a field that is no column yet.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use parquet::arrow::ParquetRecordBatchStreamBuilder;
use strandline_table_formats::parquet::Input;

use super::{
    FileFormat, FileOptions, bytes, columnar,
    csv::CsvRecords,
    decode::{self, Reading},
    files::FileRef,
    json::Json,
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
            FileFormat::Parquet => unite(&mut typed, &parquet(store, path, &reading.name).await?),
            FileFormat::Avro => {
                let content = bytes::open(store, &path, &reading.name).await?;
                let schema = blocking(move || {
                    Ok(columnar::avro_reader(content, &reading.name)?.schema().as_ref().clone())
                });
                unite(&mut typed, &schema.await?);
            }
            FileFormat::Json if options.envelope.is_some() => {
                let packed = bytes::open(store, &path, &reading.name).await?;
                let schema = blocking(move || enveloped(packed, &reading, depth.records())).await?;
                unite(&mut typed, &schema);
            }
            FileFormat::Json | FileFormat::Csv => {
                let packed = bytes::open(store, &path, &reading.name).await?;
                known = blocking(move || records(packed, &reading, known, depth.records())).await?;
            }
        }
    }
    let is_known = |kind: &Kind| depth == Depth::Sample || kind.is_typed();
    let untyped = known.0.iter().filter(|(_, kind)| is_known(kind));
    typed.extend(untyped.map(|(name, kind)| {
        Arc::new(Field::new(name, kind.data_type(options.infer_types), true)) as FieldRef
    }));
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
fn unite(known: &mut Vec<FieldRef>, schema: &Schema) {
    for field in storable(schema).fields() {
        match known.iter_mut().find(|own| own.name() == field.name()) {
            None => known.push(Arc::clone(field)),
            Some(own) if is_lossless(own.data_type(), field.data_type()) => *own = Arc::clone(field),
            Some(_) => {}
        }
    }
}

/// What the records of a file say that are in envelopes.
fn enveloped(packed: Box<dyn std::io::BufRead + Send>, reading: &Reading, most: usize) -> Result<Schema> {
    let Some(envelope) = &reading.options.envelope else { return Ok(Schema::empty()) };
    let broken = |error| bytes::broken(error, &reading.name);
    let mut text = decode::text(packed, reading).map_err(broken)?;
    let mut content = Vec::new();
    std::io::Read::read_to_end(&mut text, &mut content).map_err(broken)?;
    envelope.infer(&content, most, &reading.name)
}

/// What the records of a file say. A record that can't be read says nothing: reading it as a row tells why.
fn records(
    packed: Box<dyn std::io::BufRead + Send>,
    reading: &Reading,
    mut known: Fields,
    most: usize,
) -> Result<Fields> {
    let broken = |error| bytes::broken(error, &reading.name);
    let text = decode::text(packed, reading).map_err(broken)?;
    let mut left = most;
    let mut json = |value: &[u8], known: &mut Fields| {
        match Json::parse(value) {
            Ok(Json::List(items, _)) => {
                items.iter().filter_map(Json::fields).for_each(|fields| known.record(fields));
            }
            Ok(value) => value.fields().into_iter().for_each(|fields| known.record(fields)),
            Err(_) => {}
        }
        left = left.saturating_sub(1);
        left > 0
    };
    if reading.options.format == FileFormat::Csv {
        return csv(CsvRecords::new(text, reading.options.csv.clone()), reading, known, most);
    }
    if reading.options.multi_line {
        let mut values = Values::new(text);
        while let Some(value) = values.next().map_err(broken)? {
            if !json(value, &mut known) {
                break;
            }
        }
        return Ok(known);
    }
    let mut lines = Lines::new(text);
    while let Some(line) = lines.next().map_err(broken)? {
        if !line.trim_ascii().is_empty() && !json(line, &mut known) {
            break;
        }
    }
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
