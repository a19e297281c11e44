//! Columns that come and go, in every shape: each event comes from a source that has some of the columns.
//!
//! Where no clause makes updates partial, rows of the complete source are settled as whole rows before they are merged with
//! rows of a source that lacks something: the reference model does so for `authored: None`.

use proptest::{collection::vec, prelude::*};
use strandline_cdc_core::StoredAs;
use strandline_testkit::{
    generate::{Authoring, Domain, arrivals, every_arrival, history},
    reference::{Event, Op, Row, Value},
};

use crate::{
    flow::upsert,
    shapes::{Shape, is_nothing, rows},
};

/// An event and the columns that its source lacks.
#[derive(Debug, Clone, PartialEq)]
struct Sent {
    event: Event,
    lacks: Vec<String>,
}

impl Sent {
    /// The event as it is when its source has those columns only.
    fn new(event: Event, lacks: Vec<String>) -> Self {
        let absent = |path: &String| {
            let column = path.split('.').next().unwrap();
            lacks.iter().any(|name| name == column)
        };
        let all = || event.values.keys().cloned().collect();
        let authored = match &event.authored {
            None if lacks.is_empty() => None,
            known => {
                Some(known.clone().unwrap_or_else(all).into_iter().filter(|path| !absent(path)).collect())
            }
        };
        Self { event: Event { authored: authored.filter(|_| event.op == Op::Upsert), ..event }, lacks }
    }
}

fn events(sent: &[Sent]) -> Vec<Event> {
    sent.iter().map(|sent| sent.event.clone()).collect()
}

/// Applies a batch as the batches of the sources that it came from; true when nothing changes.
fn apply(flow: &mut Shape, batch: &[Sent]) -> bool {
    let mut unchanged = true;
    for part in batch.chunk_by(|a, b| a.lacks == b.lacks) {
        flow.source_lacks(&part[0].lacks);
        unchanged &= is_nothing(&flow.apply(&events(part)));
    }
    unchanged
}

fn deliver(mut flow: Shape, batches: &[Vec<Sent>]) {
    let mut known: Vec<Sent> = Vec::new();
    for batch in batches {
        let replay = batch.iter().all(|sent| known.contains(sent));
        known.extend(batch.iter().cloned());
        let unchanged = apply(&mut flow, batch);
        let side = || rows(&flow.store.side.batch);
        assert_eq!(flow.target(), flow.expected(&events(&known)), "of {known:#?}\nside {:#?}", side());
        assert!(!replay || unchanged, "C-08: a replay changes nothing");
    }
    assert!(apply(&mut flow, &known), "C-08: the whole history again changes nothing");
}

/// Histories of which each event comes from a source that may lack any of the columns.
fn histories(
    domain: &Domain,
    may_lack: &'static [&'static str],
    longest: usize,
) -> impl Strategy<Value = Vec<Vec<Sent>>> + use<> {
    let lacking = vec(vec(proptest::bool::weighted(0.35), may_lack.len()), longest);
    (history(domain, 0..longest), lacking)
        .prop_map(|(events, lacking)| {
            let name = |(name, lacks): (&&str, bool)| lacks.then(|| (*name).to_owned());
            let sent = |(event, lacks): (Event, Vec<bool>)| {
                Sent::new(event, may_lack.iter().zip(lacks).filter_map(name).collect())
            };
            events.into_iter().zip(lacking).map(sent).collect::<Vec<_>>()
        })
        .prop_flat_map(arrivals)
}

/// Two keys, five sequences, two columns and a struct of two fields.
fn domain(authoring: Authoring) -> Domain {
    Domain { columns: vec!["a".to_owned(), "b".to_owned()], ..Domain::partial(authoring) }
}

fn two_clocks() -> Domain {
    let columns = vec!["a".to_owned(), "b".to_owned()];
    Domain { keys: 1, columns, ..Domain::partial_two_clocks(Authoring::Whole) }
}

/// Cases of each property.
const CASES: u32 = if cfg!(slow) { 3000 } else { 300 };

const ANY: &[&str] = &["a", "b", "s"];

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a20_law_1_scd1_with_structs(batches in histories(&domain(Authoring::Whole), ANY, 10)) {
        deliver(Shape::new(StoredAs::Scd1, &domain(Authoring::Whole), None), &batches);
    }

    #[test]
    fn a20_law_1_scd1_with_truncates(
        batches in histories(&Domain { truncates: true, ..domain(Authoring::Whole) }, ANY, 10)
    ) {
        deliver(Shape::new(StoredAs::Scd1, &domain(Authoring::Whole), None), &batches);
    }

    #[test]
    fn a20_law_1_scd2(batches in histories(&domain(Authoring::Whole), ANY, 10)) {
        deliver(Shape::new(StoredAs::Scd2, &domain(Authoring::Whole), None), &batches);
    }

    #[test]
    fn a20_law_1_scd2_of_one_key(
        batches in histories(&Domain { keys: 1, sequences: 7, ..domain(Authoring::Whole) }, ANY, 12)
    ) {
        deliver(Shape::new(StoredAs::Scd2, &domain(Authoring::Whole), None), &batches);
    }

    #[test]
    fn a2_a20_law_1_scd2_with_many_ties(
        batches in histories(&Domain { keys: 1, sequences: 2, ..domain(Authoring::Whole) }, ANY, 9)
    ) {
        deliver(Shape::new(StoredAs::Scd2, &domain(Authoring::Whole), None), &batches);
    }

    #[test]
    fn a20_c21_law_1_scd2_with_a_tracked_subset(
        batches in histories(&Domain { keys: 1, ..domain(Authoring::Whole) }, &["b", "s"], 11)
    ) {
        deliver(Shape::new(StoredAs::Scd2, &domain(Authoring::Whole), Some(&["a"])), &batches);
    }

    #[test]
    fn a20_law_1_scd2_ignoring_null(batches in histories(&domain(Authoring::NonNull), ANY, 10)) {
        deliver(Shape::new(StoredAs::Scd2, &domain(Authoring::NonNull), None), &batches);
    }

    #[test]
    fn a20_law_1_scd2_with_masks(batches in histories(&domain(Authoring::Leaves), ANY, 10)) {
        deliver(Shape::new(StoredAs::Scd2, &domain(Authoring::Leaves), None), &batches);
    }

    #[test]
    fn a20_law_1_bitemporal(batches in histories(&two_clocks(), ANY, 9)) {
        deliver(Shape::new(StoredAs::Bitemporal, &two_clocks(), None), &batches);
    }
}

fn whole(seq: i64, a: i64, b: i64) -> Sent {
    Sent::new(upsert("k", seq, &[("a", a.into()), ("b", b.into()), ("s", Value::Null)]), vec![])
}

fn without_b(seq: i64, a: i64) -> Sent {
    Sent::new(
        upsert("k", seq, &[("a", a.into()), ("b", 99.into()), ("s", Value::Null)]),
        vec!["b".to_owned()],
    )
}

/// `(a, b, start, end)` of the versions, by start.
fn versions(batches: &[&[Sent]]) -> Vec<[Value; 4]> {
    let mut flow = Shape::new(StoredAs::Scd2, &domain(Authoring::Whole), None);
    for batch in batches {
        apply(&mut flow, batch);
    }
    let parts = |row: Row| ["a", "b", "__START_AT", "__END_AT"].map(|name| row[name].clone());
    let mut versions: Vec<_> = flow.target().into_iter().map(parts).collect();
    versions.sort_by(|left, right| left[2].cmp(&right[2]));
    versions
}

fn version(a: i64, b: impl Into<Value>, start: i64, end: impl Into<Value>) -> [Value; 4] {
    [a.into(), b.into(), start.into(), end.into()]
}

#[test]
fn a20_a_version_inherits_a_column_that_its_source_lacks() {
    let expected = [version(1, 7, 1, 2), version(5, 7, 2, Value::Null)];
    assert_eq!(versions(&[&[whole(1, 1, 7)], &[without_b(2, 5)]]), expected);
    assert_eq!(versions(&[&[without_b(2, 5)], &[whole(1, 1, 7)]]), expected);
    // The column comes back, and what it held meanwhile is not asked for.
    let back = [version(1, 7, 1, 2), version(5, 7, 2, 3), version(5, Value::Null, 3, Value::Null)];
    let null = Sent::new(upsert("k", 3, &[("a", 5.into()), ("b", Value::Null), ("s", Value::Null)]), vec![]);
    assert_eq!(versions(&[&[whole(1, 1, 7)], &[without_b(2, 5)], &[null]]), back);
}

#[test]
fn a20_an_equal_row_of_a_narrower_source_opens_no_version() {
    assert_eq!(versions(&[&[whole(1, 1, 7)], &[without_b(2, 1)]]), [version(1, 7, 1, Value::Null)]);
}

#[test]
fn a20_every_arrival_of_small_histories_in_scd2() {
    let gone = |seq: i64| Sent::new(crate::flow::delete("k", seq), vec!["b".to_owned()]);
    for history in [
        vec![whole(1, 1, 7), without_b(2, 1), whole(3, 1, 8), gone(2)],
        vec![whole(1, 1, 7), without_b(1, 2), gone(1), without_b(3, 0)],
        vec![whole(2, 1, 7), whole(2, 2, 0), without_b(2, 1), without_b(3, 2)],
        vec![gone(1), without_b(2, 1), whole(0, 5, 5), without_b(3, 1)],
    ] {
        for batches in every_arrival(&history) {
            deliver(Shape::new(StoredAs::Scd2, &domain(Authoring::Whole), None), &batches);
        }
    }
}
