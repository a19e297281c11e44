//! Topics as a [`Source`].

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use async_trait::async_trait;
use serde_json::Value;
use strandline_cdc_core::CdcOptions;
use strandline_pipeline_sql::ReadKafka;

use super::{
    broker::Broker,
    offsets::{Offsets, Progress, Range, Ranges, Slice, ahead, limited, not_empty},
    options::{Format, KafkaOptions, Starting, decode},
    payload::{Payload, Record},
};
use crate::{
    error::{Error, ErrorKind, Result},
    sources::{
        Envelope, Source, SourceStream,
        bytes::{self, Consumer},
        debezium::Found,
        kinds::Fields,
    },
    types::{schema_of, storable},
};

const BATCH_ROWS: usize = 8192;
/// Records of each partition that are looked at where the columns of values were not declared.
const LOOK_AT: i64 = 1000;

/// Columns of the rows; `None` where the topics must be looked at.
pub(crate) fn columns(call: &ReadKafka) -> Result<Option<SchemaRef>> {
    let options = KafkaOptions::new(call)?;
    match (&call.schema, options.format) {
        (None, Format::Json) => Ok(None),
        (declared, _) => {
            let declared = declared.as_deref().map(|columns| with_envelope(&options, schema_of(columns)));
            Ok(Some(Payload::new(&options, declared.transpose()?)?.schema))
        }
    }
}

fn with_envelope(options: &KafkaOptions, columns: SchemaRef) -> Result<SchemaRef> {
    match &options.envelope {
        Some(envelope) => envelope.schema(&columns),
        None => Ok(columns),
    }
}

/// What records are wrapped in.
pub(crate) fn envelope(call: &ReadKafka) -> Result<Option<Envelope>> {
    Ok(KafkaOptions::new(call)?.envelope)
}

/// Opens the topics as they are now. `known` are the columns of the rows, if they are known; `changes` are the options of the
/// change flow that reads them.
pub(crate) async fn open(
    call: &ReadKafka,
    known: Option<SchemaRef>,
    changes: Option<&CdcOptions>,
) -> Result<Box<dyn Source>> {
    let mut options = KafkaOptions::new(call)?;
    if let Some(changes) = changes {
        options.envelope = options.envelope.map(|envelope| envelope.for_changes(changes));
    }
    let source = blocking(move || KafkaSource::open(options, known)).await?;
    Ok(Box::new(source))
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::new(ErrorKind::Internal, "a thread that reads topics ended").because(error))?
}

/// Records of topics.
#[derive(Debug, Clone)]
struct KafkaSource {
    options: Arc<KafkaOptions>,
    payload: Arc<Payload>,
    cluster: Option<String>,
    /// What each partition held when the source was opened: what comes later is the next update's.
    held: Ranges,
    /// Where a flow begins that has read nothing yet.
    start: Offsets,
    /// Where a ONCE flow begins.
    once: Offsets,
}

impl KafkaSource {
    fn open(options: KafkaOptions, known: Option<SchemaRef>) -> Result<Self> {
        let broker = Broker::connect(&options)?;
        let held = broker.held(&options.topics)?;
        // As Spark has it: a stream begins with what comes from now on, a batch takes what is there.
        let start = broker.start(options.starting.as_ref().unwrap_or(&Starting::Latest), &held)?;
        let once = broker.start(options.starting.as_ref().unwrap_or(&Starting::Earliest), &held)?;
        let cluster = broker.cluster();
        let declared = match (options.format, known) {
            (Format::Json, Some(known)) => Some(without_frame(&known)),
            (Format::Json, None) => Some(infer(&options, &broker, &held)?),
            _ => None,
        };
        let payload = Arc::new(Payload::new(&options, declared)?);
        Ok(Self { options: Arc::new(options), payload, cluster, held, start, once })
    }

    /// Refuses what was recorded of another cluster.
    fn check_cluster(&self, recorded: Option<&String>) -> Result<()> {
        match (recorded, &self.cluster) {
            (Some(before), Some(now)) if before != now => {
                Err(Error::new(ErrorKind::State, "the flow read another cluster of Kafka before")
                    .with("before", before)
                    .with("now", now)
                    .help("offsets mean nothing in another cluster: give the flow a new name"))
            }
            _ => Ok(()),
        }
    }
}

/// The columns of values among those of rows.
fn without_frame(rows: &SchemaRef) -> SchemaRef {
    let values = rows.fields().iter().filter(|field| field.name() != super::FRAME);
    Arc::new(Schema::new(values.cloned().collect::<Vec<_>>()))
}

/// The columns of values that nobody declared, from the records that are there.
fn infer(options: &KafkaOptions, broker: &Broker, held: &Ranges) -> Result<SchemaRef> {
    let nothing = Schema::empty();
    let mut found = Inferred::new(options, &nothing);
    for (topic, partitions) in held {
        for (partition, (low, high)) in partitions {
            let range = (*low.max(&high.saturating_sub(LOOK_AT)), *high);
            broker.read(topic, *partition, range, false, &mut |record| found.record(&record))?;
        }
    }
    let found = found.columns();
    if found.fields().is_empty() {
        return Err(Error::new(
            ErrorKind::Definition,
            "the topics hold no record, so the columns can't be found out",
        )
        .help("declare them: read_kafka(.., schema => 'id BIGINT, ..')"));
    }
    with_envelope(options, Arc::new(storable(&found)))
}

/// What values say of their columns.
enum Inferred<'e> {
    Plain(Fields),
    Enveloped(Found<'e>),
}

impl<'e> Inferred<'e> {
    fn new(options: &'e KafkaOptions, nothing: &'e Schema) -> Self {
        match &options.envelope {
            Some(envelope) => Self::Enveloped(Found::new(envelope, nothing, Fields::default())),
            None => Self::Plain(Fields::default()),
        }
    }

    fn record(&mut self, record: &Record) -> Result<()> {
        // A value that is no text is none of JSON; reading it as a row tells so.
        let value = record.value.as_deref().filter(|value| std::str::from_utf8(value).is_ok());
        let Some(value) = value else { return Ok(()) };
        match self {
            Self::Plain(fields) => {
                fields.text(value);
                Ok(())
            }
            Self::Enveloped(found) => found.record(value).map_err(|error| {
                error
                    .with("topic", &record.topic)
                    .with("partition", record.partition)
                    .with("offset", record.offset)
            }),
        }
    }

    fn columns(self) -> Schema {
        match self {
            Self::Plain(fields) => Schema::new(fields.columns(true).collect::<Vec<_>>()),
            Self::Enveloped(found) => found.columns(),
        }
    }
}

#[async_trait]
impl Source for KafkaSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.payload.schema)
    }

    fn start(&self) -> Value {
        encode(&Progress { cluster: self.cluster.clone(), ..Progress::default() })
    }

    async fn next(&self, progress: &Value) -> Result<Option<Value>> {
        let progress: Progress = decode(progress)?;
        self.check_cluster(progress.cluster.as_ref())?;
        let is_first = progress.is_first();
        let start = |topic: &str, partition, (low, _): Range| {
            let first = self.start.get(topic).and_then(|starts| starts.get(&partition)).copied();
            // A partition that came later is read from its start, also one of a topic that came later.
            if is_first { first.unwrap_or(low) } else { low }
        };
        let all = ahead(&progress.next, &self.held, start, self.options.fail_on_data_loss)?;
        let taken = limited(&all, self.options.max_offsets);
        // The first slice names every partition: where the flow begins must be known, also while nothing comes, and while no
        // topic fits the pattern.
        let ranges = if is_first { taken } else { not_empty(&taken) };
        let is_slice = is_first || !ranges.is_empty();
        Ok(is_slice.then(|| encode(&Slice { cluster: self.cluster.clone(), ranges })))
    }

    fn advance(&self, progress: Value, slice: &Value) -> Result<Value> {
        let mut progress: Progress = decode(&progress)?;
        let slice: Slice = decode(slice)?;
        self.check_cluster(slice.cluster.as_ref())?;
        for (topic, partitions) in slice.ranges {
            let next = progress.next.entry(topic).or_default();
            next.extend(partitions.into_iter().map(|(partition, (_, to))| (partition, to)));
        }
        let cluster = self.cluster.clone().or(progress.cluster);
        Ok(encode(&Progress { cluster, next: progress.next, begun: true }))
    }

    async fn read(&self, slice: &Value) -> Result<SourceStream> {
        let slice: Slice = decode(slice)?;
        self.check_cluster(slice.cluster.as_ref())?;
        let (source, ranges) = (self.clone(), not_empty(&slice.ranges));
        Ok(bytes::decoded(move |consumer| read_all(&source, &ranges, consumer)))
    }

    async fn available(&self) -> Result<Value> {
        let once = |topic: &str, partition, (low, _): Range| {
            self.once.get(topic).and_then(|starts| starts.get(&partition)).copied().unwrap_or(low)
        };
        let ranges = ahead(&Offsets::new(), &self.held, once, self.options.fail_on_data_loss)?;
        Ok(encode(&Slice { cluster: self.cluster.clone(), ranges }))
    }

    fn fixed(&self, available: &Value) -> Result<Box<dyn Source>> {
        let available: Slice = decode(available)?;
        self.check_cluster(available.cluster.as_ref())?;
        let start = |(topic, partitions): (&String, &std::collections::BTreeMap<i32, Range>)| {
            (topic.clone(), partitions.iter().map(|(partition, (from, _))| (*partition, *from)).collect())
        };
        let start: Offsets = available.ranges.iter().map(start).collect();
        let fixed = Self { held: available.ranges.clone(), once: start.clone(), start, ..self.clone() };
        Ok(Box::new(fixed))
    }
}

/// Reads ranges, one after the other, a bounded number of records at a time.
fn read_all(source: &KafkaSource, ranges: &Ranges, consumer: &Consumer) -> Result<()> {
    if ranges.is_empty() {
        return Ok(());
    }
    let options = &source.options;
    let send = |records: &mut Vec<Record>| {
        let rows = source.payload.rows(records)?;
        records.clear();
        // Whoever reads may have gone away: then nobody misses the rest, nor this error.
        let wanted = consumer.take(rows);
        wanted.then_some(()).ok_or_else(|| Error::new(ErrorKind::Unavailable, "nobody reads on"))
    };
    let broker = Broker::connect(options)?;
    let mut records: Vec<Record> = Vec::new();
    for (topic, partitions) in ranges {
        for (partition, range) in partitions {
            broker.read(topic, *partition, *range, options.fail_on_data_loss, &mut |record| {
                records.push(record);
                if records.len() >= BATCH_ROWS { send(&mut records) } else { Ok(()) }
            })?;
        }
    }
    if records.is_empty() { Ok(()) } else { send(&mut records) }
}

fn encode<T: serde::Serialize>(value: &T) -> Value {
    // Texts, numbers and maps of them always encode.
    serde_json::to_value(value).unwrap_or_default()
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
