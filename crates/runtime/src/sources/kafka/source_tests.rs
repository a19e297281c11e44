//! Where a flow begins and goes on, by what the topics hold each time that it is opened.

use std::collections::BTreeMap;

use strandline_pipeline_sql::{FlowQuery, InputKind};

use super::*;

/// The topics of a pattern as they are found; a flow that begins with what comes from now on.
fn latest(held: &[(&str, Range)]) -> KafkaSource {
    let text = "SELECT * FROM STREAM read_kafka(bootstrapServers => 'a:1', subscribePattern => 'orders.*')";
    let query = FlowQuery::parse(text).unwrap();
    let InputKind::ReadKafka(call) = &query.inputs[0].kind else { panic!("{query:?}") };
    let options = KafkaOptions::new(call).unwrap();
    let payload = Payload::new(&options, None).unwrap();
    let held: Ranges =
        held.iter().map(|(topic, range)| ((*topic).to_owned(), BTreeMap::from([(0, *range)]))).collect();
    let end = |(topic, _): (&String, &BTreeMap<i32, Range>)| {
        (topic.clone(), held[topic].iter().map(|(partition, (_, high))| (*partition, *high)).collect())
    };
    let start: Offsets = held.iter().map(end).collect();
    KafkaSource {
        options: Arc::new(options),
        payload: Arc::new(payload),
        cluster: None,
        once: start.clone(),
        start,
        held,
    }
}

async fn taken(source: &KafkaSource, progress: &mut Value) -> Option<Ranges> {
    let slice = source.next(progress).await.unwrap()?;
    *progress = source.advance(progress.take(), &slice).unwrap();
    Some(decode::<Slice>(&slice).unwrap().ranges)
}

fn ranges(topic: &str, range: Range) -> Ranges {
    [(topic.to_owned(), [(0, range)].into())].into()
}

#[tokio::test]
async fn a_topic_that_comes_after_the_flow_is_read_from_its_start() {
    let nothing = latest(&[]);
    let mut progress = nothing.start();
    assert_eq!(taken(&nothing, &mut progress).await, Some(Ranges::new()), "the beginning is recorded");
    assert_eq!(taken(&nothing, &mut progress).await, None, "once");
    let later = latest(&[("orders.eu", (0, 5))]);
    assert_eq!(taken(&later, &mut progress).await, Some(ranges("orders.eu", (0, 5))));
    assert_eq!(taken(&later, &mut progress).await, None);
}

#[tokio::test]
async fn a_topic_that_is_there_is_read_from_its_end() {
    let source = latest(&[("orders.eu", (0, 5))]);
    let mut progress = source.start();
    assert_eq!(taken(&source, &mut progress).await, Some(ranges("orders.eu", (5, 5))));
    let later = latest(&[("orders.eu", (0, 7))]);
    assert_eq!(taken(&later, &mut progress).await, Some(ranges("orders.eu", (5, 7))));
    // A progress that was recorded before it said whether it had begun.
    let mut old = serde_json::json!({"cluster": null, "next": {"orders.eu": {"0": 6}}});
    assert_eq!(taken(&later, &mut old).await, Some(ranges("orders.eu", (6, 7))));
}
