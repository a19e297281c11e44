//! How do the values of records become rows?
//!
//! A value is one JSON object, or one datum of Avro. A record without a value, a tombstone, is a row whose columns are NULL but for
//! its frame; with an envelope it is no row.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};
use arrow_avro::{
    reader::ReaderBuilder,
    schema::{AvroSchema, Fingerprint, FingerprintAlgorithm, SchemaStore},
};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use arrow_select::take::take;

use super::{
    columns,
    options::{Format, Framing, KafkaOptions},
};
use crate::{
    error::{Error, ErrorKind, Result},
    sources::{Envelope, debezium::Rows, decode, json::Json},
    types::{conform, storable},
};

const SAMPLE: usize = 160;
/// The id under which the schema of values is known to the decoder.
const SCHEMA_ID: u32 = 0;

/// A record as the broker gave it.
#[derive(Debug, Clone)]
pub(super) struct Record {
    pub(super) topic: Arc<str>,
    pub(super) partition: i32,
    pub(super) offset: i64,
    /// Milliseconds since 1970.
    pub(super) timestamp: Option<i64>,
    /// 0: made by the producer; 1: by the broker.
    pub(super) timestamp_type: i32,
    pub(super) key: Option<Vec<u8>>,
    pub(super) value: Option<Vec<u8>>,
    pub(super) headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Record {
    /// Says of an error which record it is about.
    fn name(&self, error: Error) -> Error {
        error.with("topic", &self.topic).with("partition", self.partition).with("offset", self.offset)
    }

    fn sample(&self) -> String {
        let value = self.value.as_deref().unwrap_or_default();
        String::from_utf8_lossy(value).chars().take(SAMPLE).collect()
    }
}

/// How values are decoded, and into which columns.
#[derive(Debug, Clone)]
pub(super) struct Payload {
    format: Format,
    envelope: Option<Envelope>,
    avro: Option<Avro>,
    /// Columns of values; none where they are not looked at.
    values: SchemaRef,
    /// All columns.
    pub(super) schema: SchemaRef,
}

/// Values that were decoded: the rows, and which record each row of the result is of and which row it has, if any.
struct Decoded {
    rows: RecordBatch,
    records: Vec<u64>,
    places: Vec<Option<u64>>,
}

impl Payload {
    /// `declared` are the columns of values in JSON, those of the envelope included.
    pub(super) fn new(options: &KafkaOptions, declared: Option<SchemaRef>) -> Result<Self> {
        let avro = options.avro_schema.as_deref().map(Avro::new).transpose()?;
        let values = match (options.format, &avro, declared) {
            (Format::Avro(_), Some(avro), _) => Arc::new(storable(&avro.schema)),
            (Format::Json, _, Some(declared)) => declared,
            _ => Arc::new(Schema::empty()),
        };
        let schema = if options.format == Format::Raw { columns::raw() } else { columns::beside(&values)? };
        Ok(Self { format: options.format, envelope: options.envelope.clone(), avro, values, schema })
    }

    /// The rows of records.
    pub(super) fn rows(&self, records: &[Record]) -> Result<RecordBatch> {
        let decoded = match (self.format, &self.avro, &self.envelope) {
            (Format::Raw, ..) => return columns::unread(records),
            (Format::Avro(framing), Some(avro), _) => self.avro(avro, framing, records)?,
            (_, _, Some(envelope)) => self.enveloped(envelope, records)?,
            _ => self.json(records)?,
        };
        let places = UInt64Array::from(decoded.places);
        let mut all = decoded
            .rows
            .columns()
            .iter()
            .map(|column| take(column, &places, None))
            .collect::<Result<Vec<ArrayRef>, ArrowError>>()?;
        all.push(take(&columns::frames(records)?, &UInt64Array::from(decoded.records), None)?);
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), all)?)
    }

    fn json(&self, records: &[Record]) -> Result<Decoded> {
        let mut text = String::new();
        let (mut lines, mut places) = (Vec::new(), Vec::new());
        for record in records {
            let Some(value) = &record.value else {
                places.push(None);
                continue;
            };
            match std::str::from_utf8(value).map(Json::of) {
                Ok(Ok(node @ Json::Object(..))) => node.write(&mut text),
                Ok(Ok(Json::Null)) => {
                    places.push(None);
                    continue;
                }
                _ => return Err(broken(record, "the value is no JSON object")),
            }
            text.push('\n');
            places.push(Some(index(lines.len())));
            lines.push(record);
        }
        let rows = self.decode(&text, &lines)?;
        Ok(Decoded { rows, records: (0..index(records.len())).collect(), places })
    }

    fn enveloped(&self, envelope: &Envelope, records: &[Record]) -> Result<Decoded> {
        let mut reader = Rows::new(envelope, &self.values);
        let mut text = String::new();
        let (mut lines, mut of) = (Vec::new(), Vec::new());
        for (at, record) in records.iter().enumerate() {
            let Some(value) = &record.value else { continue };
            let value =
                std::str::from_utf8(value).map_err(|_| broken(record, "the value is no UTF-8 text"))?;
            let key = record.key.as_deref().and_then(|key| std::str::from_utf8(key).ok());
            let rows = reader
                .message(&mut text, key, value)
                .map_err(|problem| record.name(problem.error(value.as_bytes())))?;
            for _ in 0..rows {
                of.push(index(at));
                lines.push(record);
            }
            if rows > 0 {
                text.push('\n');
            }
        }
        let rows = self.decode(&text, &lines)?;
        let places = (0..index(lines.len())).map(Some).collect();
        Ok(Decoded { rows, records: of, places })
    }

    /// Decodes rows in JSON. `lines` are the records that they are of, for messages.
    fn decode(&self, text: &str, lines: &[&Record]) -> Result<RecordBatch> {
        match decode::json_rows(text, &self.values) {
            Ok(rows) if rows.num_rows() == lines.len() => Ok(rows),
            Ok(_) => Err(Error::new(ErrorKind::Internal, "values of records have been lost")),
            Err(error) => {
                let bad = text.lines().zip(lines).find_map(|(line, record)| {
                    let error = decode::json_rows(line, &self.values).err()?;
                    Some(broken(record, "the value does not fit the columns").because(error))
                });
                Err(bad.unwrap_or(error))
            }
        }
    }

    fn avro(&self, avro: &Avro, framing: Framing, records: &[Record]) -> Result<Decoded> {
        let valued: Vec<&Record> = records.iter().filter(|record| record.value.is_some()).collect();
        let mut decoder = avro.builder(valued.len().max(1))?.build_decoder()?;
        let mut framed = Vec::new();
        for record in &valued {
            let datum = avro.datum(framing, record)?;
            framed.clear();
            framed.push(0);
            framed.extend_from_slice(&SCHEMA_ID.to_be_bytes());
            framed.extend_from_slice(datum);
            let taken = decoder
                .decode(&framed)
                .map_err(|error| broken(record, &format!("the value is no such datum of Avro: {error}")))?;
            if taken != framed.len() {
                return Err(broken(record, "the value is not as long as a datum of the schema of Avro"));
            }
        }
        let rows = match decoder.flush().map_err(ArrowError::from)? {
            Some(rows) => conform(&rows, &self.values)?,
            None => RecordBatch::new_empty(Arc::clone(&self.values)),
        };
        let mut taken = 0;
        let places = records.iter().map(|record| {
            record.value.as_ref()?;
            taken += 1;
            Some(taken - 1)
        });
        Ok(Decoded { rows, places: places.collect(), records: (0..index(records.len())).collect() })
    }
}

fn index(at: usize) -> u64 {
    u64::try_from(at).unwrap_or(u64::MAX)
}

fn broken(record: &Record, why: &str) -> Error {
    record.name(Error::new(ErrorKind::Data, why)).with("sample", record.sample())
}

/// The schema that values were written with.
#[derive(Debug, Clone)]
struct Avro {
    text: String,
    rabin: Option<u64>,
    schema: SchemaRef,
}

impl Avro {
    fn new(text: &str) -> Result<Self> {
        let wrong = |error: ArrowError| {
            Error::new(ErrorKind::Definition, "avroSchema is no schema of Avro that rows can be made of")
                .because(error)
        };
        let rabin =
            match AvroSchema::new(text.to_owned()).fingerprint(FingerprintAlgorithm::Rabin).map_err(wrong)? {
                Fingerprint::Rabin(rabin) => Some(rabin),
                _ => None,
            };
        let avro = Self { text: text.to_owned(), rabin, schema: Arc::new(Schema::empty()) };
        let schema = avro.builder(1)?.build_decoder().map_err(wrong)?.schema();
        Ok(Self { schema, ..avro })
    }

    fn builder(&self, rows: usize) -> Result<ReaderBuilder> {
        let mut store = SchemaStore::new_with_type(FingerprintAlgorithm::Id);
        let id = Fingerprint::Id(SCHEMA_ID);
        store.set(id, AvroSchema::new(self.text.clone()))?;
        Ok(ReaderBuilder::new()
            .with_batch_size(rows)
            .with_writer_schema_store(store)
            .with_active_fingerprint(id))
    }

    /// What of a value is the datum.
    fn datum<'a>(&self, framing: Framing, record: &'a Record) -> Result<&'a [u8]> {
        let value = record.value.as_deref().unwrap_or_default();
        match framing {
            Framing::Bare => Ok(value),
            Framing::Registry => match value.split_first_chunk::<5>() {
                Some(([0, ..], datum)) => Ok(datum),
                _ => Err(broken(record, "the value does not begin with a zero and an id of four bytes")),
            },
            Framing::SingleObject => match value.split_first_chunk::<10>() {
                Some(([0xc3, 0x01, print @ ..], datum)) if Some(u64::from_le_bytes(*print)) == self.rabin => {
                    Ok(datum)
                }
                Some(([0xc3, 0x01, ..], _)) => {
                    Err(broken(record, "the value was written with another schema than avroSchema"))
                }
                _ => Err(broken(record, "the value does not begin as Avro's single-object encoding does")),
            },
        }
    }
}

#[cfg(test)]
#[path = "payload_tests.rs"]
mod tests;
