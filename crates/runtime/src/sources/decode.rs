//! How does the content of a file become rows?
//!
//! Text is read as a stream, record by record; Parquet and Avro batch by batch. What a record is worth that is not as
//! expected is said in `records`, for rows that come with types in `columnar`.

use std::{
    io::{self, BufRead},
    sync::Arc,
};

#[cfg(feature = "kafka")]
use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use object_store::{ObjectStore, path::Path};

#[cfg(feature = "kafka")]
use super::records::RecordOptions;
use super::{
    FileFormat, FileOptions, SourceStream,
    bytes::{self, Consumer},
    columnar,
    csv::CsvRecords,
    debezium,
    files::FileRef,
    lines::{Lines, Values, skip_mark},
    records::{Place, RecordDecoder},
};
use crate::error::{Error, ErrorKind, Result};

/// A file to read.
#[derive(Debug, Clone)]
pub(super) struct Reading {
    /// What messages call it.
    pub(super) name: String,
    pub(super) options: Arc<FileOptions>,
    /// The columns that its records have, the rescue column included.
    pub(super) schema: SchemaRef,
    /// Columns that rows have from elsewhere: fields of these names are left out.
    pub(super) given: Vec<String>,
}

impl Reading {
    /// Whether a field of a record is left out.
    pub(super) fn leaves_out(&self, name: &str) -> bool {
        let ignore_case = self.options.records.look.ignore_case;
        self.given.iter().any(|own| own == name || (ignore_case && own.eq_ignore_ascii_case(name)))
    }
}

/// The rows of one file.
pub(super) async fn read(
    store: &Arc<dyn ObjectStore>,
    file: &FileRef,
    reading: Reading,
) -> Result<SourceStream> {
    let path = Path::parse(&file.path)
        .map_err(|e| Error::new(ErrorKind::State, "a recorded path is none").because(e))?;
    if reading.options.format == FileFormat::Parquet {
        return columnar::parquet(store, path, reading).await;
    }
    let packed = bytes::open(store, &path, &reading.name).await?;
    Ok(bytes::decoded(move |consumer| {
        if reading.options.format == FileFormat::Avro {
            return columnar::avro(packed, &reading, consumer);
        }
        let name = reading.name.clone();
        let mut text = text(packed, &reading).map_err(|e| bytes::broken(e, &name))?;
        match reading.options.format {
            FileFormat::Csv => csv(text.as_mut(), &reading, consumer),
            FileFormat::Text => lines_of_text(text.as_mut(), &reading, consumer),
            _ if reading.options.multi_line => json_values(text.as_mut(), &reading, consumer),
            _ => json_lines(text.as_mut(), &reading, consumer),
        }
    }))
}

/// The text of a file: unpacked, without a byte-order mark.
pub(super) fn text(
    packed: Box<dyn BufRead + Send>,
    reading: &Reading,
) -> io::Result<Box<dyn BufRead + Send>> {
    let mut text = reading.options.compression_of(&reading.name).unpack(packed)?;
    skip_mark(text.as_mut())?;
    Ok(text)
}

/// Gathers the records of one file and hands their rows on.
struct Rows<'a> {
    decoder: RecordDecoder,
    /// What takes records out of their envelopes.
    envelope: Option<debezium::Rows<'a>>,
    reading: &'a Reading,
    consumer: &'a Consumer,
}

impl<'a> Rows<'a> {
    fn new(reading: &'a Reading, consumer: &'a Consumer) -> Result<Self> {
        let decoder = RecordDecoder::new(&reading.schema, reading.options.records.clone())?;
        let decoder = decoder.without(reading.given.clone());
        let envelope = reading.options.envelope.as_ref();
        let envelope = envelope.map(|envelope| debezium::Rows::new(envelope, &reading.schema));
        Ok(Self { decoder, envelope, reading, consumer })
    }

    /// Takes the text of a record: its own, or that of the rows in its envelope.
    fn push(&mut self, record: &[u8], line: u64) -> Result<()> {
        let place = self.place(line);
        let Some(envelope) = &mut self.envelope else { return self.decoder.push(record, place) };
        let mut rows = String::new();
        let taken = match std::str::from_utf8(record) {
            Ok(text) => envelope.record(&mut rows, text.trim()),
            Err(_) => Err(debezium::Problem::not_utf8()),
        };
        taken.map_err(|problem| problem.error(record).with("file", &self.reading.name).with("line", line))?;
        rows.lines().try_for_each(|row| self.decoder.push(row.as_bytes(), place))
    }

    fn place(&self, line: u64) -> Place<'a> {
        Place { input: &self.reading.name, unit: "line", at: line }
    }

    /// Hands on what is gathered, if it is enough; `false` when nobody wants more.
    fn hand_on(&mut self, all: bool) -> Result<bool> {
        let batch = self.decoder.batch(all).map_err(|error| error.with("file", &self.reading.name))?;
        Ok(batch.is_none_or(|batch| self.consumer.take(batch)))
    }

    fn finish(mut self) -> Result<()> {
        if self.hand_on(true)? { self.decoder.finish() } else { Ok(()) }
    }

    fn broken(&self, error: io::Error) -> Error {
        bytes::broken(error, &self.reading.name)
    }
}

fn json_lines(text: &mut dyn BufRead, reading: &Reading, consumer: &Consumer) -> Result<()> {
    let mut rows = Rows::new(reading, consumer)?;
    let mut lines = Lines::new(text);
    loop {
        let number = lines.number + 1;
        let Some(line) = lines.next().map_err(|e| rows.broken(e))? else { return rows.finish() };
        if line.trim_ascii().is_empty() {
            continue;
        }
        rows.push(line, number)?;
        if !rows.hand_on(false)? {
            return Ok(());
        }
    }
}

/// The rows of lines of JSON.
#[cfg(feature = "kafka")]
pub(super) fn json_rows(text: &str, schema: &SchemaRef) -> Result<RecordBatch> {
    let mut decoder = RecordDecoder::new(schema, RecordOptions::default())?;
    for (at, line) in (1..).zip(text.lines()) {
        decoder.push(line.as_bytes(), Place { input: "records", unit: "record", at })?;
    }
    let rows = decoder.batch(true)?;
    decoder.finish()?;
    rows.map_or_else(
        || Ok(RecordBatch::new_empty(Arc::clone(schema))),
        |rows| Ok(RecordBatch::try_new(Arc::clone(schema), rows.columns().to_vec())?),
    )
}

fn json_values(text: &mut dyn BufRead, reading: &Reading, consumer: &Consumer) -> Result<()> {
    let mut rows = Rows::new(reading, consumer)?;
    let mut values = Values::new(text);
    loop {
        let value = values.next().map_err(|e| rows.broken(e))?.map(<[u8]>::to_vec);
        let Some(value) = value else { return rows.finish() };
        rows.push(&value, values.begins)?;
        if !rows.hand_on(false)? {
            return Ok(());
        }
    }
}

fn lines_of_text(text: &mut dyn BufRead, reading: &Reading, consumer: &Consumer) -> Result<()> {
    let mut rows = Rows::new(reading, consumer)?;
    let mut lines = Lines::new(text);
    let column = rows.decoder.names().position(|name| name == "value");
    loop {
        let number = lines.number + 1;
        let Some(line) = lines.next().map_err(|e| rows.broken(e))? else { return rows.finish() };
        let place = rows.place(number);
        if let Ok(line) = std::str::from_utf8(line) {
            rows.decoder.count(line.len());
            let value = column.map(|column| (column, Some(line)));
            rows.decoder.push_texts(value.into_iter(), std::iter::empty(), &|| line.to_owned(), place)?;
        } else {
            let text = String::from_utf8_lossy(line).into_owned();
            rows.decoder.malformed(&text, "the text is no UTF-8".to_owned(), place);
        }
        if !rows.hand_on(false)? {
            return Ok(());
        }
    }
}

/// Where the fields of a delimited record go.
struct Layout {
    /// The names of its fields: the header's, or those that Spark gives.
    names: Vec<String>,
    /// The column of each.
    places: Vec<Option<usize>>,
    /// Columns of text, by their place: an empty text is a value there.
    text: Vec<bool>,
    /// Whether the names stand in the file.
    header: bool,
}

impl Layout {
    fn new(header: Option<Vec<String>>, decoder: &RecordDecoder, reading: &Reading) -> Result<Self> {
        let columns: Vec<&str> = decoder.names().collect();
        let text = columns.iter().map(|name| {
            reading.schema.field_with_name(name).is_ok_and(|field| field.data_type() == &DataType::Utf8)
        });
        let text = text.collect();
        let Some(names) = header else {
            let places = (0..columns.len()).map(Some).collect();
            return Ok(Self { names: Vec::new(), places, text, header: false });
        };
        let ignore_case = reading.options.records.look.ignore_case;
        let place = |name: &String| {
            let exactly = columns.iter().position(|column| column == name);
            exactly.or_else(|| {
                columns.iter().position(|column| ignore_case && column.eq_ignore_ascii_case(name))
            })
        };
        let places: Vec<Option<usize>> = names.iter().map(place).collect();
        let mut seen: Vec<usize> = places.iter().flatten().copied().collect();
        let found = seen.len();
        seen.sort_unstable();
        seen.dedup();
        let problem = if seen.len() < found {
            "the header of a file names a column twice"
        } else if found == 0 && !columns.is_empty() && !names.is_empty() {
            "the header of a file has none of the columns of the schema"
        } else {
            return Ok(Self { names, places, text, header: true });
        };
        Err(Error::new(ErrorKind::Data, problem)
            .with("file", &reading.name)
            .with("header", names.join(", "))
            .with("schema", columns.join(", ")))
    }

    fn is_null(&self, text: &str, quoted: bool, place: usize, null_value: Option<&str>) -> bool {
        let is_text = self.text.get(place).copied().unwrap_or(false);
        null_value == Some(text) || (text.is_empty() && !(quoted && is_text))
    }
}

/// The names in the first record of a file. A field without one, as behind a comma that ends the line, has that of its place.
pub(super) fn header_of<R: BufRead>(records: &mut CsvRecords<R>) -> io::Result<Option<Vec<String>>> {
    let Some(record) = records.next()? else { return Ok(None) };
    let fields =
        record.fields().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the text is no UTF-8"))?;
    let name = |(at, (name, _)): (usize, (&str, bool))| {
        let name = name.trim();
        if name.is_empty() { unnamed(at) } else { name.to_owned() }
    };
    Ok(Some(fields.enumerate().map(name).collect()))
}

/// The name of a field that has none.
pub(super) fn unnamed(at: usize) -> String {
    format!("_c{at}")
}

fn csv(text: &mut dyn BufRead, reading: &Reading, consumer: &Consumer) -> Result<()> {
    let mut rows = Rows::new(reading, consumer)?;
    let dialect = &reading.options.csv;
    let mut records = CsvRecords::new(text, dialect.clone());
    records.skip_rows().map_err(|e| rows.broken(e))?;
    let header = if dialect.header {
        match header_of(&mut records).map_err(|e| rows.broken(e))? {
            Some(names) => Some(names),
            None => return Ok(()),
        }
    } else {
        None
    };
    let layout = Layout::new(header, &rows.decoder, reading)?;
    let keeps_further = reading.options.records.rescue.is_some();
    loop {
        let Some(record) = records.next().map_err(|e| rows.broken(e))? else { return rows.finish() };
        let place = rows.place(record.line);
        rows.decoder.count(record.size());
        let sample = || record.text(dialect.delimiter);
        let expected = layout.places.len();
        let problem = match record.len() {
            _ if record.problem.is_some() => record.problem.clone(),
            found if found < expected || (found > expected && !keeps_further) => {
                Some(format!("it has {found} fields, {expected} are expected"))
            }
            _ => None,
        };
        match (problem, record.fields()) {
            (Some(why), _) => rows.decoder.malformed(&sample(), why, place),
            (None, None) => rows.decoder.malformed(&sample(), "the text is no UTF-8".to_owned(), place),
            (None, Some(fields)) => {
                let fields: Vec<(&str, bool)> = fields.collect();
                let null = dialect.null_value.as_deref();
                let typed = fields.iter().zip(&layout.places).filter_map(|((text, quoted), place)| {
                    let place = (*place)?;
                    Some((place, (!layout.is_null(text, *quoted, place, null)).then_some(*text)))
                });
                if fields.len() == expected && layout.places.iter().all(Option::is_some) {
                    rows.decoder.push_texts(typed, std::iter::empty(), &sample, place)?;
                    if !rows.hand_on(false)? {
                        return Ok(());
                    }
                    continue;
                }
                let extra: Vec<String> = (expected..fields.len()).map(unnamed).collect();
                let names = layout.names.iter().map(String::as_str).chain(extra.iter().map(String::as_str));
                let names: Vec<&str> = if layout.header {
                    names.collect()
                } else {
                    (0..expected).map(|_| "").chain(extra.iter().map(String::as_str)).collect()
                };
                let further = names.into_iter().zip(&fields).enumerate().filter_map(|(at, (name, field))| {
                    let known = layout.places.get(at).is_some_and(Option::is_some);
                    let (text, quoted) = *field;
                    let is_value = (quoted || !text.is_empty()) && null != Some(text);
                    (!known && is_value).then_some((name, text, at < expected))
                });
                rows.decoder.push_texts(typed, further, &sample, place)?;
            }
        }
        if !rows.hand_on(false)? {
            return Ok(());
        }
    }
}
