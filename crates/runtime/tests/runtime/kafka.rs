//! Topics of a real broker into tables. `tests/kafka/run` starts the broker and says where it is.

use std::{
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use object_store::memory::InMemory;
use rdkafka::{
    ClientConfig, Offset, TopicPartitionList,
    admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication},
    client::DefaultClientContext,
    producer::{BaseProducer, BaseRecord, Producer},
};
use serde_json::{Value as Json, json};
use strandline_runtime::FlowStatus;
use strandline_testkit::fault::{Fault, FaultStore, Rule};

use crate::pipeline::{Bench, FORMATS, Format, JsonRow};

const WAIT: Duration = Duration::from_secs(20);

#[expect(clippy::disallowed_methods, reason = "the script that starts the broker says where it is")]
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run tests/kafka/run"))
}

fn config() -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", variable("STRANDLINE_KAFKA"));
    config
}

/// A topic of its own for each test.
struct Topic {
    name: String,
    producer: BaseProducer,
    admin: AdminClient<DefaultClientContext>,
}

static TOPICS: AtomicU32 = AtomicU32::new(0);

impl Topic {
    async fn new(partitions: i32) -> Self {
        let number = TOPICS.fetch_add(1, Ordering::Relaxed);
        let name = format!("topic-{}-{number}", std::process::id());
        let admin: AdminClient<DefaultClientContext> = config().create().unwrap();
        let topic = NewTopic::new(&name, partitions, TopicReplication::Fixed(1));
        let made = admin.create_topics(&[topic], &AdminOptions::new()).await.unwrap();
        assert!(made.iter().all(Result::is_ok), "{made:?}");
        Self { name, producer: config().create().unwrap(), admin }
    }

    /// Sends a record, and waits until the broker has it.
    fn send(&self, partition: i32, key: Option<&str>, value: Option<&[u8]>, at: i64) {
        let mut record = BaseRecord::<str, [u8]>::to(&self.name).partition(partition).timestamp(at);
        if let Some(key) = key {
            record = record.key(key);
        }
        if let Some(value) = value {
            record = record.payload(value);
        }
        self.producer.send(record).map_err(|(error, _)| error).unwrap();
        self.producer.flush(WAIT).unwrap();
    }

    /// Sends `{"n": n}` for each number, round the partitions, at the second after `n`.
    fn numbers(&self, partitions: i32, numbers: std::ops::Range<i64>) {
        for n in numbers {
            let partition = i32::try_from(n).unwrap() % partitions;
            self.send(partition, None, Some(json!({ "n": n }).to_string().as_bytes()), (n + 1) * 1000);
        }
    }

    fn pipeline(&self, options: &str) -> String {
        format!(
            "SET pipelines.maxFlowRetryAttempts = 0;
             CREATE STREAMING TABLE t;
             CREATE FLOW f AS INSERT INTO t BY NAME SELECT n, _kafka.offset AS at, _kafka.partition AS part FROM STREAM {};",
            self.source(&format!("schema => 'n BIGINT', {options}"))
        )
    }

    fn source(&self, options: &str) -> String {
        format!(
            "read_kafka(bootstrapServers => '{}', subscribe => '{}', {options})",
            variable("STRANDLINE_KAFKA"),
            self.name
        )
    }
}

async fn numbers(bench: &Bench) -> Vec<i64> {
    let rows = bench.rows("SELECT n FROM t ORDER BY n").await;
    rows.iter().map(|row| row["n"].as_i64().unwrap()).collect()
}

fn range(numbers: std::ops::Range<i64>) -> Vec<i64> {
    numbers.collect()
}

#[tokio::test]
#[ignore = "needs a broker: tests/kafka/run"]
async fn kafka_where_a_flow_begins_and_how_it_goes_on() {
    let topic = Topic::new(3).await;
    topic.numbers(3, 0..30);
    let earliest = topic.pipeline("startingOffsets => 'earliest', maxOffsetsPerTrigger => 7");
    let latest = topic.pipeline("startingOffsets => 'latest'");
    let unsaid = topic.pipeline("maxOffsetsPerTrigger => 100");
    let timed = topic.pipeline("startingTimestamp => 21000");
    let instant = topic.pipeline("startingTimestamp => '1970-01-01T00:00:21Z'");
    let offsets =
        topic.pipeline(&format!("startingOffsets => '{{\"{}\":{{\"0\":9,\"1\":-1,\"2\":-2}}}}'", topic.name));
    let benches: Vec<(Bench, String, Vec<i64>)> = [
        (earliest, range(0..30)),
        (latest, vec![]),
        (unsaid, vec![]),
        (timed, range(20..30)),
        (instant, range(20..30)),
        (offsets, [27].into_iter().chain((2..30).step_by(3)).collect()),
    ]
    .into_iter()
    .map(|(sql, expected)| (Bench::new(Format::Memory), sql, expected))
    .collect();
    for (bench, sql, expected) in &benches {
        bench.succeed(sql).await;
        let mut expected = expected.clone();
        expected.sort_unstable();
        assert_eq!(numbers(bench).await, expected, "{sql}");
    }
    // What comes between updates is taken by the next, once; also where the first found nothing.
    topic.numbers(3, 30..41);
    for (bench, sql, expected) in &benches {
        let report = bench.succeed(sql).await;
        assert_eq!(report.flows[0].rows_in, 11, "{sql}: {report:?}");
        let mut expected: Vec<i64> = expected.iter().copied().chain(30..41).collect();
        expected.sort_unstable();
        assert_eq!(numbers(bench).await, expected, "{sql}");
        assert_eq!(bench.succeed(sql).await.flows[0].batches, 0);
    }
}

#[tokio::test]
#[ignore = "needs a broker: tests/kafka/run"]
async fn kafka_r05_nothing_twice_and_nothing_missing_whenever_the_process_is_killed() {
    let topic = Topic::new(2).await;
    topic.numbers(2, 0..20);
    let sql = topic.pipeline("startingOffsets => 'earliest', maxOffsetsPerTrigger => 8");
    let undisturbed = FaultStore::new(InMemory::new());
    Bench::over(Format::Delta, Arc::new(undisturbed.clone())).succeed(&sql).await;
    let operations = undisturbed.faults().count();
    for (offset, fault) in [(1, Fault::Before), (3, Fault::After)] {
        for n in (offset..=operations).step_by(5) {
            let store = FaultStore::new(InMemory::new());
            let bench = Bench::over(Format::Delta, Arc::new(store.clone()));
            store.faults().add(Rule::nth(n, fault).and_dies());
            drop(bench.run(&sql).await);
            store.faults().revive();
            bench.succeed(&sql).await;
            assert_eq!(numbers(&bench).await, range(0..20), "killed {fault:?} at operation {n}");
        }
    }
    eprintln!("{operations} operations, every fifth failed before or after it landed");
}

#[tokio::test]
#[ignore = "needs a broker: tests/kafka/run"]
async fn kafka_r05_a_once_flow_takes_what_was_there_when_it_began() {
    let topic = Topic::new(2).await;
    topic.numbers(2, 0..20);
    let sql = topic
        .pipeline("maxOffsetsPerTrigger => 5")
        .replace("INSERT INTO t", "INSERT INTO ONCE t")
        .replace("FROM STREAM", "FROM");
    let store = FaultStore::new(InMemory::new());
    let bench = Bench::over(Format::Delta, Arc::new(store.clone()));
    // It dies when the rows of its second batch are written.
    store.faults().add(Rule::nth(2, Fault::Before).on(".parquet").and_dies());
    drop(bench.run(&sql).await);
    store.faults().revive();
    topic.numbers(2, 20..30);
    bench.succeed(&sql).await;
    assert_eq!(numbers(&bench).await, range(0..20));
    let report = bench.succeed(&sql).await;
    assert_eq!(report.flows[0].status, FlowStatus::Idle);
    assert_eq!(numbers(&bench).await, range(0..20));
}

#[tokio::test]
#[ignore = "needs a broker: tests/kafka/run"]
async fn kafka_partitions_and_topics_that_come_later_are_read_from_their_start() {
    let topic = Topic::new(1).await;
    topic.numbers(1, 0..5);
    let pattern = format!(
        "read_kafka(bootstrapServers => '{}', subscribePattern => '{}.*'",
        variable("STRANDLINE_KAFKA"),
        topic.name
    );
    let named = format!(
        "read_kafka(bootstrapServers => '{}', subscribe => '{}'",
        variable("STRANDLINE_KAFKA"),
        topic.name
    );
    let sql = topic.pipeline("startingOffsets => 'latest'").replace(&named, &pattern);
    assert!(sql.contains("subscribePattern"), "{sql}");
    let bench = Bench::new(Format::Memory);
    bench.succeed(&sql).await;
    assert_eq!(numbers(&bench).await, Vec::<i64>::new());
    let more = NewPartitions::new(&topic.name, 3);
    let made = topic.admin.create_partitions(&[more], &AdminOptions::new()).await.unwrap();
    assert!(made.iter().all(Result::is_ok), "{made:?}");
    let second = format!("{}-second", topic.name);
    let made = topic
        .admin
        .create_topics(&[NewTopic::new(&second, 1, TopicReplication::Fixed(1))], &AdminOptions::new())
        .await
        .unwrap();
    assert!(made.iter().all(Result::is_ok), "{made:?}");
    // A producer that was there before does not know the new partitions yet.
    let topic = Topic { producer: config().create().unwrap(), ..topic };
    topic.numbers(3, 5..14);
    topic
        .producer
        .send(BaseRecord::<str, [u8]>::to(&second).payload(br#"{"n":99}"#).partition(0))
        .map_err(|(error, _)| error)
        .unwrap();
    topic.producer.flush(WAIT).unwrap();
    bench.succeed(&sql).await;
    assert_eq!(numbers(&bench).await, range(5..14).into_iter().chain([99]).collect::<Vec<_>>());
}

#[tokio::test]
#[ignore = "needs a broker: tests/kafka/run"]
async fn kafka_offsets_without_records_are_passed_over() {
    let topic = Topic::new(1).await;
    let producer: BaseProducer = config().set("transactional.id", &topic.name).create().unwrap();
    producer.init_transactions(WAIT).unwrap();
    for (number, kept) in [(0, true), (1, false), (2, true), (3, false)] {
        producer.begin_transaction().unwrap();
        let text = json!({ "n": number }).to_string();
        producer
            .send(BaseRecord::<str, str>::to(&topic.name).payload(&text).partition(0))
            .map_err(|(error, _)| error)
            .unwrap();
        producer.flush(WAIT).unwrap();
        if kept {
            producer.commit_transaction(WAIT).unwrap();
        } else {
            producer.abort_transaction(WAIT).unwrap();
        }
    }
    let bench = Bench::new(Format::Memory);
    let sql = topic.pipeline("startingOffsets => 'earliest', maxOffsetsPerTrigger => 3");
    bench.succeed(&sql).await;
    assert_eq!(numbers(&bench).await, [0, 2]);
    assert_eq!(bench.succeed(&sql).await.flows[0].batches, 0);
}

#[tokio::test]
#[ignore = "needs a broker: tests/kafka/run"]
async fn kafka_records_that_retention_took_are_told_by_name() {
    let topic = Topic::new(1).await;
    topic.numbers(1, 0..10);
    let strict = topic.pipeline("startingOffsets => 'earliest', maxOffsetsPerTrigger => 4");
    let lax =
        topic.pipeline("startingOffsets => 'earliest', maxOffsetsPerTrigger => 4, failOnDataLoss => false");
    let (one, two) = (Bench::new(Format::Memory), Bench::new(Format::Memory));
    one.succeed(&strict).await;
    two.succeed(&lax).await;
    topic.numbers(1, 10..20);
    let mut gone = TopicPartitionList::new();
    gone.add_partition_offset(&topic.name, 0, Offset::Offset(15)).unwrap();
    topic.admin.delete_records(&gone, &AdminOptions::new()).await.unwrap();
    let report = one.run(&strict).await.unwrap();
    let reason = report.flows[0].reason.clone().unwrap();
    assert!(reason.contains("KAFKA_DATA_LOSS") && reason.contains("offset 10"), "{reason}");
    assert!(report.flows[0].help.as_ref().unwrap().contains("failOnDataLoss"));
    assert_eq!(numbers(&one).await, range(0..10));
    two.succeed(&lax).await;
    assert_eq!(numbers(&two).await, range(0..10).into_iter().chain(15..20).collect::<Vec<_>>());

    // The same of a batch that was planned, but not committed before its records went.
    let store = FaultStore::new(InMemory::new());
    let bench = Bench::over(Format::Delta, Arc::new(store.clone()));
    store.faults().add(Rule::nth(1, Fault::Before).on(".parquet").and_dies());
    drop(bench.run(&topic.pipeline("startingOffsets => 'earliest'")).await);
    store.faults().revive();
    gone.set_partition_offset(&topic.name, 0, Offset::Offset(17)).unwrap();
    topic.admin.delete_records(&gone, &AdminOptions::new()).await.unwrap();
    let report = bench.run(&topic.pipeline("startingOffsets => 'earliest'")).await.unwrap();
    let reason = report.flows[0].reason.clone().unwrap();
    assert!(reason.contains("KAFKA_DATA_LOSS") && reason.contains("offset 15"), "{reason}");
}

fn change(op: &str, lsn: u64, before: &Json, after: &Json) -> String {
    json!({"op": op, "before": before, "after": after, "ts_ms": lsn, "source": {"connector": "postgresql", "lsn": lsn}}).to_string()
}

#[tokio::test]
#[ignore = "needs a broker: tests/kafka/run"]
async fn kafka_a_feed_of_debezium_into_a_table() {
    let topic = Topic::new(2).await;
    let none = Json::Null;
    let row = |id: u64, name: &str, bio: &str| json!({"id": id, "name": name, "bio": bio});
    let key = |id: u64| json!({ "id": id }).to_string();
    let send = |partition, id: u64, value: Option<String>| {
        topic.send(partition, Some(&key(id)), value.as_deref().map(str::as_bytes), 0);
    };
    send(0, 1, Some(change("r", 5, &none, &row(1, "Ann", "long"))));
    send(1, 2, Some(change("r", 5, &none, &row(2, "Bob", "b"))));
    send(0, 1, Some(change("u", 10, &none, &row(1, "Anna", "__debezium_unavailable_value"))));
    send(1, 2, Some(change("d", 11, &none, &none)));
    send(1, 2, None);
    let sql = format!(
        "CREATE STREAMING TABLE t;
         CREATE FLOW f AS AUTO CDC INTO t FROM STREAM {} KEYS (id) APPLY AS DELETE WHEN _op = 'd' SEQUENCE BY _position
         COLUMNS TO UPDATE _columns COLUMNS (id, name, bio);",
        topic.source("envelope => 'debezium', startingOffsets => 'earliest', maxOffsetsPerTrigger => 2, schema => 'id BIGINT, name STRING, bio STRING'")
    );
    let benches = FORMATS.map(Bench::new);
    let shown = async |bench: &Bench| -> Json {
        let rows: Vec<JsonRow> = bench.rows("SELECT id, name, bio FROM t ORDER BY id").await;
        serde_json::to_value(rows).unwrap()
    };
    for bench in &benches {
        bench.succeed(&sql).await;
        assert_eq!(shown(bench).await, json!([{"id": 1, "name": "Anna", "bio": "long"}]));
    }
    send(1, 2, Some(change("c", 20, &none, &row(2, "Bea", "b2"))));
    // The connector was started anew and sends again what it had sent.
    send(0, 1, Some(change("u", 10, &none, &row(1, "Anna", "__debezium_unavailable_value"))));
    for bench in &benches {
        bench.succeed(&sql).await;
        assert_eq!(
            shown(bench).await,
            json!([{"id": 1, "name": "Anna", "bio": "long"}, {"id": 2, "name": "Bea", "bio": "b2"}])
        );
    }
}

#[tokio::test]
#[ignore = "needs a broker: tests/kafka/run"]
async fn kafka_records_unread_in_avro_and_with_columns_that_nobody_declared() {
    let topic = Topic::new(1).await;
    // {"n": 150} in Avro; in JSON with a column more.
    topic.send(0, Some("k"), Some(&[0xac, 0x02]), 5000);
    let schema = r#"{"type":"record","name":"r","fields":[{"name":"n","type":"long"}]}"#;
    let query = |select: &str, options: &str| {
        format!(
            "CREATE STREAMING TABLE t; CREATE FLOW f AS INSERT INTO t BY NAME SELECT {select} FROM STREAM {};",
            topic.source(&format!("startingOffsets => 'earliest', {options}"))
        )
    };
    let avro = Bench::new(Format::Memory);
    avro.succeed(&query("n", &format!("format => 'avro', avroSchema => '{schema}'"))).await;
    assert_eq!(numbers(&avro).await, [150]);
    let raw = Bench::new(Format::Delta);
    raw.succeed(&query("*", "format => 'raw'")).await;
    let rows = raw.rows("SELECT key, value, topic, partition, \"offset\", \"timestampType\" FROM t").await;
    let expected = json!([{"key": "6b", "value": "ac02", "topic": topic.name, "partition": 0, "offset": 0, "timestampType": 0}]);
    assert_eq!(serde_json::to_value(rows).unwrap(), expected);

    let other = Topic::new(1).await;
    other.numbers(1, 7..9);
    let inferred = Bench::new(Format::Memory);
    let sql = query("*", "format => 'json'").replace(&topic.name, &other.name);
    inferred.succeed(&sql).await;
    assert_eq!(numbers(&inferred).await, [7, 8]);
    // What was found out stays, also where the topic has become empty.
    other.numbers(1, 9..10);
    inferred.succeed(&sql).await;
    assert_eq!(numbers(&inferred).await, [7, 8, 9]);

    let missing = sql.replace(&other.name, "no-such-topic");
    let errors = inferred.run(&missing).await;
    let text = format!("{errors:?}");
    assert!(text.contains("there is no such topic"), "{text}");
}

/// Run alone, after the others: it stops the broker.
#[tokio::test]
#[ignore = "needs a broker, and stops it: tests/kafka/run"]
async fn broker_stopped_is_an_error_that_another_try_may_mend() {
    let topic = Topic::new(1).await;
    topic.numbers(1, 0..3);
    let bench = Bench::new(Format::Memory);
    let sql = topic.pipeline("startingOffsets => 'earliest', 'kafkaConsumer.pollTimeoutMs' => 1500");
    bench.succeed(&sql).await;
    let stopped = Command::new("kill").arg(variable("STRANDLINE_KAFKA_BROKER")).status().unwrap();
    assert!(stopped.success());
    while std::net::TcpStream::connect(variable("STRANDLINE_KAFKA")).is_ok() {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    // It is tried again as often as the flow may be, which only errors are that may pass.
    let started = tokio::time::Instant::now();
    let report =
        bench.run(&sql.replace("maxFlowRetryAttempts = 0", "maxFlowRetryAttempts = 1")).await.unwrap();
    let flow = &report.flows[0];
    assert_eq!(flow.status, FlowStatus::Failed);
    let reason = flow.reason.clone().unwrap();
    assert!(reason.contains("the brokers don't say which topics there are"), "{reason}");
    assert!(started.elapsed() >= Duration::from_secs(3), "{:?}", started.elapsed());
    assert_eq!(numbers(&bench).await, range(0..3));
}
