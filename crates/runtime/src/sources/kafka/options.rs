//! What do the options of `read_kafka` mean?

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;
use strandline_pipeline_sql::{OptionValue, ReadKafka};

use super::offsets::Offsets;
use crate::{
    error::{Error, ErrorKind, Result},
    sources::Envelope,
};

/// Which topics are read.
#[derive(Debug, Clone)]
pub(super) enum Topics {
    /// These, which must exist.
    Named(Vec<String>),
    /// All whose whole name fits.
    Pattern(regex::Regex),
}

/// Where a flow begins that has read nothing yet.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Starting {
    Earliest,
    Latest,
    /// At these offsets; [`EARLIEST`] and [`LATEST`] stand for what they say. Partitions that are not named begin at their start.
    At(Offsets),
    /// At the first record of this time or later, in milliseconds since 1970.
    Time(i64),
}

/// Stands for the start of a partition.
pub(super) const EARLIEST: i64 = -2;
/// Stands for the end of a partition.
pub(super) const LATEST: i64 = -1;

/// How a record's value is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Not looked at.
    Raw,
    /// One JSON object.
    Json,
    /// One datum of Avro, framed so.
    Avro(Framing),
}

/// What stands before a datum of Avro.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Nothing.
    Bare,
    /// Avro's single-object encoding: two bytes, and the fingerprint of the schema.
    SingleObject,
    /// A zero and the four bytes of an id, as schema registries have it. The id is not looked up.
    Registry,
}

/// Options of `read_kafka`, checked.
#[derive(Debug, Clone)]
pub(super) struct KafkaOptions {
    pub(super) topics: Topics,
    pub(super) starting: Option<Starting>,
    pub(super) format: Format,
    pub(super) avro_schema: Option<String>,
    pub(super) envelope: Option<Envelope>,
    /// Most records in a batch.
    pub(super) max_offsets: u64,
    pub(super) fail_on_data_loss: bool,
    /// How long the broker may be silent.
    pub(super) timeout: Duration,
    /// Properties of the client, `bootstrap.servers` among them.
    pub(super) client: BTreeMap<String, String>,
}

/// Records in a batch where the user says nothing: a batch is held in memory.
const MAX_OFFSETS: u64 = 1_000_000;
const TIMEOUT: Duration = Duration::from_secs(30);
const KNOWN: &str = "bootstrapServers, subscribe, subscribePattern, startingOffsets, startingTimestamp, format, schema, avroSchema, \
     avroFraming, maxOffsetsPerTrigger, failOnDataLoss, kafkaConsumer.pollTimeoutMs, kafka.* for the client";
/// Properties of the client that decide what is read, and so are the source's own.
const OWN: [&str; 5] = [
    "enable.auto.commit",
    "enable.auto.offset.store",
    "auto.offset.reset",
    "enable.partition.eof",
    "group.instance.id",
];

impl KafkaOptions {
    /// Reads the options of a call.
    ///
    /// # Errors
    /// `Definition` for an option that is unknown, missing, or has a value that does not fit.
    pub(super) fn new(call: &ReadKafka) -> Result<Self> {
        let mut left = Left(call.options.clone());
        let envelope = Envelope::new(|name| left.text(name))?;
        let mut client = left.client()?;
        if let Some(servers) = left.text("bootstrapservers") {
            client.insert("bootstrap.servers".to_owned(), servers);
        }
        if !client.contains_key("bootstrap.servers") {
            return Err(Error::new(ErrorKind::Definition, "read_kafka does not say where the brokers are")
                .help("add bootstrapServers => 'host:9092'"));
        }
        let topics = topics(&mut left)?;
        let starting = starting(&mut left)?;
        let avro_schema = left.text("avroschema");
        let read = Self {
            topics,
            starting,
            format: format(&mut left, call, avro_schema.as_deref(), envelope.as_ref())?,
            avro_schema,
            envelope,
            max_offsets: left.number("maxoffsetspertrigger")?.unwrap_or(MAX_OFFSETS),
            fail_on_data_loss: left.flag("failondataloss")?.unwrap_or(true),
            timeout: left.number("kafkaconsumer.polltimeoutms")?.map_or(TIMEOUT, Duration::from_millis),
            client,
        };
        if let Some(name) = left.0.into_keys().next() {
            return Err(Error::new(
                ErrorKind::Definition,
                format!("read_kafka does not know the option `{name}`"),
            )
            .help(format!("known are {KNOWN}, {}", Envelope::OPTIONS)));
        }
        if read.max_offsets == 0 {
            return Err(Error::new(ErrorKind::Definition, "maxOffsetsPerTrigger must be at least 1"));
        }
        Ok(read)
    }
}

fn topics(left: &mut Left) -> Result<Topics> {
    match (left.text("subscribe"), left.text("subscribepattern")) {
        (Some(list), None) => {
            let names: Vec<String> =
                list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
            if names.is_empty() {
                return Err(wrong("subscribe", &list, "the names of topics, with commas between them"));
            }
            Ok(Topics::Named(names))
        }
        (None, Some(pattern)) => match regex::Regex::new(&format!("^(?:{pattern})$")) {
            Ok(regex) => Ok(Topics::Pattern(regex)),
            Err(error) => Err(wrong("subscribePattern", &pattern, "a regular expression").because(error)),
        },
        (Some(_), Some(_)) => {
            Err(Error::new(ErrorKind::Definition, "read_kafka takes subscribe or subscribePattern, not both"))
        }
        (None, None) => {
            Err(Error::new(ErrorKind::Definition, "read_kafka does not say which topics to read")
                .help("add subscribe => 'topic'"))
        }
    }
}

fn starting(left: &mut Left) -> Result<Option<Starting>> {
    let known = "earliest, latest, or offsets as in {\"topic\": {\"0\": 23, \"1\": -2}}, where -2 is the earliest and -1 the latest";
    let offsets = match left.text("startingoffsets") {
        None => None,
        Some(text) => Some(match text.to_lowercase().as_str() {
            "earliest" => Starting::Earliest,
            "latest" => Starting::Latest,
            _ => {
                let offsets: Offsets = serde_json::from_str(&text)
                    .map_err(|error| wrong("startingOffsets", &text, known).because(error))?;
                if offsets.values().flat_map(BTreeMap::values).any(|offset| *offset < EARLIEST) {
                    return Err(wrong("startingOffsets", &text, known));
                }
                Starting::At(offsets)
            }
        }),
    };
    let Some(text) = left.text("startingtimestamp") else { return Ok(offsets) };
    if offsets.is_some() {
        return Err(Error::new(
            ErrorKind::Definition,
            "read_kafka takes startingOffsets or startingTimestamp, not both",
        ));
    }
    let instant = text.parse().ok().or_else(|| {
        chrono::DateTime::parse_from_rfc3339(&text).ok().map(|instant| instant.timestamp_millis())
    });
    let known = "milliseconds since 1970, or an instant with its zone, as 2026-03-01T12:00:00Z";
    instant
        .map(|instant| Some(Starting::Time(instant)))
        .ok_or_else(|| wrong("startingTimestamp", &text, known))
}

fn format(
    left: &mut Left,
    call: &ReadKafka,
    avro_schema: Option<&str>,
    envelope: Option<&Envelope>,
) -> Result<Format> {
    let (has_avro_schema, has_envelope) = (avro_schema.is_some(), envelope.is_some());
    let framing = match left.text("avroframing").map(|framing| framing.to_lowercase()).as_deref() {
        None => None,
        Some("none") => Some(Framing::Bare),
        Some("single-object") => Some(Framing::SingleObject),
        Some("confluent") => Some(Framing::Registry),
        Some(other) => return Err(wrong("avroFraming", other, "none, single-object and confluent")),
    };
    let format = match left.text("format").map(|format| format.to_lowercase()).as_deref() {
        Some("raw") => Format::Raw,
        Some("json") => Format::Json,
        Some("avro") => Format::Avro(framing.unwrap_or(Framing::Bare)),
        Some(other) => return Err(wrong("format", other, "raw, json and avro")),
        None if has_avro_schema => Format::Avro(framing.unwrap_or(Framing::Bare)),
        None if has_envelope || call.schema.is_some() => Format::Json,
        None => Format::Raw,
    };
    let needs = |what: &str| Err(Error::new(ErrorKind::Definition, what.to_owned()));
    match format {
        Format::Avro(_) if !has_avro_schema => {
            needs("format avro needs avroSchema => '{..}', the schema that records were written with")
        }
        Format::Raw | Format::Json if has_avro_schema || framing.is_some() => {
            needs("avroSchema and avroFraming go with format => 'avro'")
        }
        Format::Raw | Format::Avro(_) if has_envelope => {
            needs("envelopes are read from JSON only: write format => 'json'")
        }
        Format::Raw | Format::Avro(_) if call.schema.is_some() => needs("schema goes with format => 'json'"),
        _ => Ok(format),
    }
}

fn wrong(option: &str, value: &str, known: &str) -> Error {
    Error::new(ErrorKind::Definition, format!("option `{option}` of read_kafka can't be `{value}`"))
        .help(format!("known are {known}"))
}

/// Options that nobody took yet.
struct Left(BTreeMap<String, OptionValue>);

impl Left {
    fn text(&mut self, name: &str) -> Option<String> {
        self.0.remove(name).map(|value| value.to_string())
    }

    fn number(&mut self, name: &str) -> Result<Option<u64>> {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| wrong(name, &text, "whole numbers"))
    }

    fn flag(&mut self, name: &str) -> Result<Option<bool>> {
        let Some(value) = self.0.remove(name) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| wrong(name, &value.to_string(), "true and false"))
    }

    /// Properties of the client: options that begin with `kafka.`.
    fn client(&mut self) -> Result<BTreeMap<String, String>> {
        let (client, rest) =
            std::mem::take(&mut self.0).into_iter().partition(|(name, _)| name.starts_with("kafka."));
        self.0 = rest;
        let client: BTreeMap<String, OptionValue> = client;
        let named = client.into_iter().map(|(name, value)| {
            let name = name.trim_start_matches("kafka.").to_owned();
            if OWN.contains(&name.as_str()) {
                return Err(Error::new(ErrorKind::Definition, format!("the property `{name}` can't be set"))
                    .help("what is read is decided by the plans of the flow"));
            }
            Ok((name, value.to_string()))
        });
        named.collect()
    }
}

/// Offsets as a plan or an option writes them.
pub(super) fn decode<T: serde::de::DeserializeOwned>(value: &Value) -> Result<T> {
    T::deserialize(value).map_err(|error| {
        Error::new(ErrorKind::State, "what is recorded of this flow's source is not of topics")
            .help("the flow read something else before; give it a new name")
            .because(error)
    })
}

#[cfg(test)]
#[path = "options_tests.rs"]
mod tests;
