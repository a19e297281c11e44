//! What do the brokers say? All that blocks: it is called on threads that may wait.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rdkafka::{
    ClientConfig, Message, Offset, Timestamp, TopicPartitionList,
    consumer::{BaseConsumer, Consumer},
    error::{KafkaError, RDKafkaErrorCode as Code},
    message::Headers,
};

use super::{
    offsets::{Offsets, Range, Ranges, lost},
    options::{EARLIEST, KafkaOptions, LATEST, Starting, Topics},
    payload::Record,
};
use crate::error::{Error, ErrorKind, Result};

/// How long one look for a record takes at most.
const POLL: Duration = Duration::from_millis(100);

/// A client of the brokers.
pub(super) struct Broker {
    consumer: BaseConsumer,
    timeout: Duration,
}

impl Broker {
    pub(super) fn connect(options: &KafkaOptions) -> Result<Self> {
        let mut config = ClientConfig::new();
        config.set("group.id", "strandline").set("client.id", "strandline");
        for (name, value) in &options.client {
            config.set(name, value);
        }
        config
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("auto.offset.reset", "error")
            .set("enable.partition.eof", "true");
        let consumer = config.create().map_err(|error| told(error, "the client of Kafka can't be made"))?;
        Ok(Self { consumer, timeout: options.timeout })
    }

    /// The id of the cluster; `None` where brokers are too old to say.
    pub(super) fn cluster(&self) -> Option<String> {
        self.consumer.client().fetch_cluster_id(self.timeout)
    }

    /// What each partition of the topics holds.
    pub(super) fn held(&self, topics: &Topics) -> Result<Ranges> {
        let mut held = Ranges::new();
        for (topic, partitions) in self.partitions(topics)? {
            let mut ranges = BTreeMap::new();
            for partition in partitions {
                ranges.insert(partition, self.range(&topic, partition)?);
            }
            held.insert(topic, ranges);
        }
        Ok(held)
    }

    fn partitions(&self, topics: &Topics) -> Result<BTreeMap<String, Vec<i32>>> {
        let metadata = |topic| {
            self.consumer
                .fetch_metadata(topic, self.timeout)
                .map_err(|error| told(error, "the brokers don't say which topics there are"))
        };
        let mut found = BTreeMap::new();
        let mut take = |topic: &rdkafka::metadata::MetadataTopic| {
            let partitions =
                topic.partitions().iter().map(rdkafka::metadata::MetadataPartition::id).collect();
            found.insert(topic.name().to_owned(), partitions);
        };
        match topics {
            Topics::Named(names) => {
                for name in names {
                    let metadata = metadata(Some(name))?;
                    let topic = metadata.topics().iter().find(|topic| topic.name() == name);
                    match topic.filter(|topic| topic.error().is_none() && !topic.partitions().is_empty()) {
                        Some(topic) => take(topic),
                        None => {
                            return Err(Error::new(ErrorKind::NotFound, "there is no such topic")
                                .with("topic", name)
                                .help("make it before a flow reads it; topics are not made by reading"));
                        }
                    }
                }
            }
            Topics::Pattern(pattern) => {
                let metadata = metadata(None)?;
                let visible = metadata.topics().iter().filter(|topic| !topic.name().starts_with("__"));
                visible.filter(|topic| pattern.is_match(topic.name())).for_each(&mut take);
            }
        }
        Ok(found)
    }

    fn range(&self, topic: &str, partition: i32) -> Result<Range> {
        self.consumer.fetch_watermarks(topic, partition, self.timeout).map_err(|error| {
            told(error, "the brokers don't say what a partition holds")
                .with("topic", topic)
                .with("partition", partition)
        })
    }

    /// Where a flow begins that has read nothing yet.
    pub(super) fn start(&self, starting: &Starting, held: &Ranges) -> Result<Offsets> {
        let times = match starting {
            Starting::Time(instant) => Some(self.at_time(*instant, held)?),
            Starting::Earliest | Starting::Latest | Starting::At(_) => None,
        };
        let of = |topic: &String, partition: &i32, (low, high): Range| {
            let named = |offsets: &Offsets| offsets.get(topic)?.get(partition).copied();
            let offset = match starting {
                Starting::Earliest => low,
                Starting::Latest => high,
                Starting::At(offsets) => named(offsets).unwrap_or(EARLIEST),
                // A partition without a record of that time or later begins at its end.
                Starting::Time(_) => times.as_ref().and_then(named).unwrap_or(high),
            };
            match offset {
                EARLIEST => low,
                LATEST => high,
                offset => offset,
            }
        };
        let starts = held.iter().map(|(topic, partitions)| {
            let starts =
                partitions.iter().map(|(partition, range)| (*partition, of(topic, partition, *range)));
            (topic.clone(), starts.collect())
        });
        Ok(starts.collect())
    }

    fn at_time(&self, instant: i64, held: &Ranges) -> Result<Offsets> {
        let mut asked = TopicPartitionList::new();
        for (topic, partitions) in held {
            for partition in partitions.keys() {
                asked
                    .add_partition_offset(topic, *partition, Offset::Offset(instant))
                    .map_err(|error| told(error, "startingTimestamp can't be asked for"))?;
            }
        }
        let answer = self
            .consumer
            .offsets_for_times(asked, self.timeout)
            .map_err(|error| told(error, "the brokers don't say which records are of a time"))?;
        let mut offsets = Offsets::new();
        for element in answer.elements() {
            if let Offset::Offset(offset) = element.offset() {
                offsets.entry(element.topic().to_owned()).or_default().insert(element.partition(), offset);
            }
        }
        Ok(offsets)
    }

    /// Gives `take` the records of a range, in their order. Offsets without a record, as compaction and transactions leave them,
    /// are passed over.
    pub(super) fn read(
        &self,
        topic: &str,
        partition: i32,
        (mut from, to): Range,
        fail_on_data_loss: bool,
        take: &mut dyn FnMut(Record) -> Result<()>,
    ) -> Result<()> {
        let (low, high) = self.range(topic, partition)?;
        if from < low || high < to {
            if fail_on_data_loss {
                return Err(lost(topic, partition, from, format!("holds {low} to {high}")));
            }
            from = from.max(low);
        }
        let to = to.min(high);
        if from >= to {
            return Ok(());
        }
        let mut assigned = TopicPartitionList::new();
        let failed = |error| {
            told(error, "a partition can't be read").with("topic", topic).with("partition", partition)
        };
        assigned.add_partition_offset(topic, partition, Offset::Offset(from)).map_err(failed)?;
        self.consumer.assign(&assigned).map_err(failed)?;
        let name: Arc<str> = topic.into();
        let mut silent = Duration::ZERO;
        while silent < self.timeout {
            match self.consumer.poll(POLL) {
                None => silent += POLL,
                Some(Err(KafkaError::PartitionEOF(_))) => return Ok(()),
                Some(Err(error)) if is_gone(&error) && fail_on_data_loss => {
                    return Err(lost(topic, partition, from, "does not have it any more").because(error));
                }
                Some(Err(error)) => return Err(failed(error)),
                Some(Ok(message)) => {
                    silent = Duration::ZERO;
                    if message.offset() >= to {
                        return Ok(());
                    }
                    let last = message.offset() + 1 == to;
                    take(record(&name, &message))?;
                    if last {
                        return Ok(());
                    }
                }
            }
        }
        Err(Error::new(ErrorKind::Unavailable, "the brokers are silent")
            .with("topic", topic)
            .with("partition", partition)
            .with("milliseconds", self.timeout.as_millis()))
    }
}

fn record(topic: &Arc<str>, message: &rdkafka::message::BorrowedMessage<'_>) -> Record {
    let (timestamp, timestamp_type) = match message.timestamp() {
        Timestamp::NotAvailable => (None, -1),
        Timestamp::CreateTime(at) => (Some(at), 0),
        Timestamp::LogAppendTime(at) => (Some(at), 1),
    };
    let headers = message.headers().into_iter().flat_map(Headers::iter);
    Record {
        topic: Arc::clone(topic),
        partition: message.partition(),
        offset: message.offset(),
        timestamp,
        timestamp_type,
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().map(<[u8]>::to_vec),
        headers: headers.map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec))).collect(),
    }
}

fn is_gone(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            Code::AutoOffsetReset
                | Code::OffsetOutOfRange
                | Code::UnknownTopicOrPartition
                | Code::UnknownTopic
                | Code::UnknownPartition
        )
    )
}

/// An error of the client: what it was about, and whether another try may help.
fn told(error: KafkaError, what: &str) -> Error {
    let kind = match (&error, error.rdkafka_error_code()) {
        (KafkaError::ClientConfig(..) | KafkaError::ClientCreation(_), _) => ErrorKind::Definition,
        (_, Some(Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::UnknownPartition)) => {
            ErrorKind::NotFound
        }
        (
            _,
            Some(
                Code::Authentication
                | Code::SaslAuthenticationFailed
                | Code::TopicAuthorizationFailed
                | Code::GroupAuthorizationFailed
                | Code::ClusterAuthorizationFailed
                | Code::InvalidArgument
                | Code::UnsupportedFeature
                | Code::UnsupportedVersion,
            ),
        ) => ErrorKind::State,
        // Brokers that are away, that elect a leader, that are too slow: all of it passes.
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, what).because(error)
}
