//! What becomes of a column that the source does not have any more? Who authored what, in any arrival?

mod errors;
mod model;
mod shapes;
mod tables;

use proptest::prelude::*;
use strandline_cdc_core::{CdcOptions, CdcSpec, StoredAs};
use strandline_testkit::{
    generate::{Domain, arrivals, every_arrival, history},
    reference::{Event, Op, Value},
};

use crate::{
    absent::model::{expected_side, expected_target},
    flow::{Columns, Flow, delete, upsert},
};

const CASES: u32 = 2000;

/// The target's columns that are no keys.
const PAYLOAD: [&str; 3] = ["a", "b", "c"];
/// Columns that some definition of the source lacks.
const SHAPES: [&[&str]; 5] = [&[], &["b"], &["a", "c"], &["b", "c"], &["a", "b", "c"]];

/// An event and the columns that its source lacks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sent {
    event: Event,
    lacks: &'static [&'static str],
}

fn sent(event: Event, lacks: &'static [&'static str]) -> Sent {
    let has = PAYLOAD.iter().filter(|name| !lacks.contains(name)).map(|name| (*name).to_owned());
    let authored = (event.op == Op::Upsert && !lacks.is_empty()).then(|| has.collect());
    Sent { event: Event { authored, ..event }, lacks }
}

fn events(sent: &[Sent]) -> Vec<Event> {
    sent.iter().map(|sent| sent.event.clone()).collect()
}

fn columns() -> Columns {
    let mut columns = Columns::plain();
    columns.payload.push(("c".to_owned(), columns.payload[0].1.clone()));
    columns
}

/// A flow into a target that has all columns.
fn flow() -> Flow {
    Flow::new(columns(), StoredAs::Scd1, None)
}

/// The spec of a source that lacks columns, into a target that has all.
fn lacking(columns: &Columns, lacks: &[&str]) -> CdcSpec {
    let full = columns.spec(StoredAs::Scd1, None);
    let options = CdcOptions { keys: columns.key_names(), ..CdcOptions::default() };
    let fields = full.kept_schema().fields().iter().filter(|field| !lacks.contains(&field.name().as_str()));
    let source = arrow_schema::Schema::new(fields.cloned().collect::<Vec<_>>());
    let spec = CdcSpec::new(&options, &source, full.sequence_type()).unwrap();
    spec.with_target_columns(full.target_schema()).unwrap()
}

/// Applies a batch as the batches of the sources that it came from; true when nothing changes.
fn apply(flow: &mut Flow, batch: &[Sent]) -> bool {
    let mut unchanged = true;
    for part in batch.chunk_by(|a, b| a.lacks == b.lacks) {
        flow.spec = lacking(&flow.columns, part[0].lacks);
        flow.store.side.widen(flow.spec.side_schema());
        let done = flow.apply(&events(part));
        assert_eq!(done.counts.events, part.len() as u64);
        assert!(done.counts.late <= done.counts.events);
        unchanged &= done.target.is_empty() && done.side.is_empty();
    }
    unchanged
}

/// The state is the one that these events determine, with no side row more or less.
fn check(flow: &Flow, known: &[Sent]) {
    assert_eq!(flow.target(), expected_target(&events(known)), "target of {known:#?}");
    let mut side = flow.side();
    for row in &mut side {
        row.entry("__strandline_authored".to_owned()).or_insert(Value::Null);
    }
    assert_eq!(side, expected_side(&events(known)), "side rows of {known:#?}");
}

fn deliver(batches: &[Vec<Sent>]) {
    let mut flow = flow();
    let mut known: Vec<Sent> = Vec::new();
    for batch in batches {
        let replay = batch.iter().all(|sent| known.contains(sent));
        known.extend(batch.iter().cloned());
        let unchanged = apply(&mut flow, batch);
        check(&flow, &known);
        assert!(!replay || unchanged, "C-08: a replay changes nothing");
    }
    assert!(apply(&mut flow, &known), "C-08: the whole history again changes nothing");
    // A whole row newer than everything leaves nothing to remember.
    let newest = known.iter().map(|sent| sent.event.key.clone()).map(|key| {
        let event = upsert("", 1000, &[("a", 1.into()), ("b", 1.into()), ("c", 1.into())]);
        sent(Event { key, ..event }, &[])
    });
    apply(&mut flow, &newest.collect::<Vec<_>>());
    assert_eq!(flow.side(), []);
}

/// Histories of which each event comes from some definition of the source.
fn histories(
    keys: usize,
    sequences: i64,
    longest: usize,
    shapes: usize,
) -> impl Strategy<Value = Vec<Vec<Sent>>> {
    let columns = PAYLOAD.map(str::to_owned).to_vec();
    let domain = Domain { keys, sequences, columns, values: 3, ..Domain::default() };
    let lacks = proptest::collection::vec(0..shapes, longest);
    (history(&domain, 0..longest), lacks)
        .prop_map(|(events, lacks)| {
            events.into_iter().zip(lacks).map(|(event, lacks)| sent(event, SHAPES[lacks])).collect()
        })
        .prop_flat_map(|history: Vec<Sent>| arrivals(history))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a20_law_1_scd1_with_one_absent_column(batches in histories(2, 8, 12, 2)) {
        deliver(&batches);
    }

    #[test]
    fn a20_law_1_scd1_with_several_sources(batches in histories(2, 10, 14, SHAPES.len())) {
        deliver(&batches);
    }

    #[test]
    fn a2_a20_law_1_scd1_of_one_key_with_many_ties(batches in histories(1, 3, 12, SHAPES.len())) {
        deliver(&batches);
    }
}

#[test]
fn a2_a20_every_arrival_of_small_histories() {
    let row = |seq: i64, a: i64, b: i64, lacks| {
        sent(upsert("k", seq, &[("a", a.into()), ("b", b.into()), ("c", 0.into())]), lacks)
    };
    let gone = |seq: i64| sent(delete("k", seq), SHAPES[1]);
    let (all, no_b, none) = (SHAPES[0], SHAPES[1], SHAPES[4]);
    for history in [
        vec![row(1, 1, 1, all), row(2, 2, 0, no_b), row(3, 3, 3, SHAPES[2]), gone(2)],
        vec![row(1, 1, 1, all), gone(1), row(1, 2, 0, no_b), row(0, 9, 9, all)],
        vec![row(2, 1, 5, all), row(2, 2, 3, all), row(2, 2, 0, no_b), row(3, 0, 0, none)],
        vec![gone(1), row(2, 1, 0, no_b), row(0, 5, 5, all), row(3, 0, 0, none)],
        vec![gone(1), gone(3), row(2, 1, 1, all), row(4, 2, 0, no_b)],
    ] {
        for batches in every_arrival(&history) {
            deliver(&batches);
        }
    }
}
