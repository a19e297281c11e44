//! Does the reference model itself obey the laws that it is the judge of?

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use strandline_testkit::generate::{Domain, arrivals, every_arrival, history};
use strandline_testkit::reference::{Event, Op, Row, Value, bitemporal, scd1, scd2};

const KEYS: [&str; 1] = ["k"];

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort();
    rows
}

/// The rows that are open on an axis, without the named columns.
fn open(rows: Vec<Row>, end: &str, without: &[&str]) -> Vec<Row> {
    let strip = |mut row: Row| {
        row.retain(|name, _| !without.contains(&name.as_str()));
        row
    };
    sorted(rows.into_iter().filter(|row| row[end].is_null()).map(strip).collect())
}

fn partial() -> Domain {
    Domain { partial: true, ..Domain::default() }
}

fn two_clocks() -> Domain {
    Domain { systems: Some(5), sequences: 5, retractions: true, ..Domain::default() }
}

/// A history and the events of one of its arrivals.
fn arrived(domain: &Domain) -> impl Strategy<Value = (Vec<Event>, Vec<Event>)> + use<> {
    history(domain, 0..12)
        .prop_flat_map(|history| (Just(history.clone()), arrivals(history)))
        .prop_map(|(history, batches)| (history, batches.concat()))
}

/// Per key and sequence the events with the greatest system sequence.
fn newest_known(events: &[Event]) -> Vec<Event> {
    let mut newest: BTreeMap<(&[Value], &Value), &Option<Value>> = BTreeMap::new();
    for event in events {
        let known = newest.entry((&event.key, &event.seq)).or_insert(&event.sys);
        *known = (*known).max(&event.sys);
    }
    let is_newest = |event: &&Event| newest[&(event.key.as_slice(), &event.seq)] == &event.sys;
    let kept = events.iter().filter(is_newest).cloned();
    kept.map(|event| Event { sys: None, ..event }).collect()
}

proptest! {
    #[test]
    fn law_1_only_the_set_of_events_matters((history, arrival) in arrived(&partial())) {
        prop_assert_eq!(scd1(&KEYS, &history), scd1(&KEYS, &arrival));
        prop_assert_eq!(scd2(&KEYS, &history, None), scd2(&KEYS, &arrival, None));
    }

    #[test]
    fn law_1_of_bitemporal((history, arrival) in arrived(&two_clocks())) {
        prop_assert_eq!(sorted(bitemporal(&KEYS, &history)), sorted(bitemporal(&KEYS, &arrival)));
    }

    #[test]
    fn law_2_current_scd2_is_scd1(events in history(&Domain { truncates: true, ..partial() }, 0..12)) {
        let current = open(scd2(&KEYS, &events, None), "__END_AT", &["__START_AT", "__END_AT"]);
        let strip = |mut row: Row| { row.remove("__SEQUENCE_AT"); row };
        prop_assert_eq!(current, sorted(scd1(&KEYS, &events).into_iter().map(strip).collect()));
    }

    #[test]
    fn law_3_open_beliefs_are_scd2(events in history(&two_clocks(), 0..12)) {
        let believed =
            open(bitemporal(&KEYS, &events), "__SYSTEM_END_AT", &["__SYSTEM_START_AT", "__SYSTEM_END_AT"]);
        prop_assert_eq!(believed, sorted(scd2(&KEYS, &newest_known(&events), None)));
    }

    #[test]
    fn law_4_versions_are_disjoint_and_never_empty(events in history(&partial(), 0..12)) {
        let tracked = BTreeSet::from(["a".to_owned()]);
        for rows in [scd2(&KEYS, &events, None), scd2(&KEYS, &events, Some(&tracked))] {
            for pair in sorted_by_start(&rows).windows(2) {
                prop_assert!(pair[0].0 != pair[1].0 || (!pair[0].2.is_null() && pair[0].2 <= pair[1].1));
            }
            prop_assert!(rows.iter().all(|row| row["__END_AT"].is_null() || row["__START_AT"] < row["__END_AT"]));
        }
    }

    #[test]
    fn an_as_of_query_is_the_belief_of_that_time(events in history(&two_clocks(), 0..12), at in 0..5_i64) {
        let at = Value::Int(at);
        let holds = |row: &Row| {
            let end = &row["__SYSTEM_END_AT"];
            row["__SYSTEM_START_AT"] <= at && (end.is_null() || *end > at)
        };
        let shown: Vec<Row> = bitemporal(&KEYS, &events).into_iter().filter(holds).map(|mut row| {
            row.insert("__SYSTEM_END_AT".to_owned(), Value::Null);
            row
        }).collect();
        let known: Vec<Event> = events.iter().filter(|event| event.sys.as_ref() <= Some(&at)).cloned().collect();
        let system = ["__SYSTEM_START_AT", "__SYSTEM_END_AT"];
        let believed = sorted(scd2(&KEYS, &newest_known(&known), None));
        let fill = |mut row: Row| {
            for column in ["a", "b"] {
                row.entry(column.to_owned()).or_insert(Value::Null);
            }
            row
        };
        prop_assert_eq!(
            open(shown, "__SYSTEM_END_AT", &system),
            sorted(believed.into_iter().map(fill).collect())
        );
    }
}

fn sorted_by_start(rows: &[Row]) -> Vec<(Value, Value, Value)> {
    let mut spans: Vec<_> = rows
        .iter()
        .map(|row| (row["k"].clone(), row["__START_AT"].clone(), row["__END_AT"].clone()))
        .collect();
    spans.sort();
    spans
}

#[test]
fn every_arrival_of_a_small_history_agrees() {
    let event = |seq: i64, op, a: i64| Event {
        key: vec!["k".into()],
        seq: seq.into(),
        op,
        values: BTreeMap::from([("a".to_owned(), a.into())]),
        authored: None,
        sys: None,
    };
    let history =
        [event(1, Op::Upsert, 1), event(2, Op::Upsert, 1), event(2, Op::Delete, 0), event(3, Op::Upsert, 2)];
    let expected = scd2(&KEYS, &history, None);
    assert!(every_arrival(&history).all(|batches| scd2(&KEYS, &batches.concat(), None) == expected));
}
