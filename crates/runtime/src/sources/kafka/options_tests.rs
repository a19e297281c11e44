//! Options as users write them, and each that must be refused.

use strandline_pipeline_sql::{FlowQuery, InputKind};

use super::*;

fn options(written: &str) -> Result<KafkaOptions> {
    let query = FlowQuery::parse(&format!("SELECT * FROM STREAM read_kafka({written})")).unwrap();
    match &query.inputs[0].kind {
        InputKind::ReadKafka(call) => KafkaOptions::new(call),
        other => panic!("{other:?}"),
    }
}

const TOPIC: &str = "bootstrapServers => 'a:1', subscribe => 't'";

#[test]
fn what_users_write_is_understood() {
    let read = options(
        "bootstrapServers => 'a:1,b:1', subscribe => 'x, y', startingOffsets => 'earliest', maxOffsetsPerTrigger => 5,
         failOnDataLoss => false, 'kafka.security.protocol' => 'PLAINTEXT', 'kafkaConsumer.pollTimeoutMs' => 100",
    )
    .unwrap();
    assert!(matches!(&read.topics, Topics::Named(names) if *names == ["x", "y"]));
    assert_eq!(read.starting, Some(Starting::Earliest));
    assert_eq!((read.max_offsets, read.fail_on_data_loss, read.format), (5, false, Format::Raw));
    assert_eq!(read.timeout, Duration::from_millis(100));
    assert_eq!(read.client["bootstrap.servers"], "a:1,b:1");
    assert_eq!(read.client["security.protocol"], "PLAINTEXT");
    // Spark's spelling of the brokers.
    let read = options("'kafka.bootstrap.servers' => 'a:1', subscribePattern => 'orders\\..*'").unwrap();
    assert!(
        matches!(&read.topics, Topics::Pattern(regex) if regex.is_match("orders.eu") && !regex.is_match("my.orders.eu"))
    );
    for (written, starting) in [
        (
            "startingOffsets => '{\"t\":{\"0\":23,\"1\":-2}}'",
            Starting::At([("t".to_owned(), [(0, 23), (1, -2)].into())].into()),
        ),
        ("startingTimestamp => 1700000000000", Starting::Time(1_700_000_000_000)),
        ("startingTimestamp => '2023-11-14T22:13:20Z'", Starting::Time(1_700_000_000_000)),
        ("startingTimestamp => '2023-11-14T23:13:20.5+01:00'", Starting::Time(1_700_000_000_500)),
    ] {
        assert_eq!(options(&format!("{TOPIC}, {written}")).unwrap().starting, Some(starting), "{written}");
    }
}

#[test]
fn the_format_follows_from_what_is_said() {
    for (written, format) in [
        ("format => 'json'", Format::Json),
        ("schema => 'id INT'", Format::Json),
        ("envelope => 'debezium'", Format::Json),
        ("avroSchema => '{}'", Format::Avro(Framing::Bare)),
        ("format => 'avro', avroSchema => '{}', avroFraming => 'confluent'", Format::Avro(Framing::Registry)),
        ("avroSchema => '{}', avroFraming => 'single-object'", Format::Avro(Framing::SingleObject)),
    ] {
        assert_eq!(options(&format!("{TOPIC}, {written}")).unwrap().format, format, "{written}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    for written in [
        "subscribe => 't'",
        "bootstrapServers => 'a:1'",
        "bootstrapServers => 'a:1', subscribe => 't', subscribePattern => 't'",
        "bootstrapServers => 'a:1', subscribe => ' , '",
        "bootstrapServers => 'a:1', subscribePattern => '('",
    ] {
        assert_eq!(options(written).unwrap_err().kind(), ErrorKind::Definition, "{written}");
    }
    for written in [
        "startingOffsets => 'first'",
        "startingOffsets => '{\"t\":{\"0\":-3}}'",
        "startingOffsets => 'latest', startingTimestamp => 1",
        "startingTimestamp => 'yesterday'",
        "format => 'xml'",
        "format => 'avro'",
        "format => 'json', avroSchema => '{}'",
        "format => 'raw', envelope => 'debezium'",
        "format => 'raw', schema => 'id INT'",
        "maxOffsetsPerTrigger => 0",
        "maxOffsetsPerTrigger => 'many'",
        "failOnDataLoss => 'maybe'",
        "'kafka.auto.offset.reset' => 'latest'",
        "startingOffset => 'latest'",
    ] {
        assert_eq!(
            options(&format!("{TOPIC}, {written}")).unwrap_err().kind(),
            ErrorKind::Definition,
            "{written}"
        );
    }
}
