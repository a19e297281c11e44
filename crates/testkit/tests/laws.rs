//! Does the reference model itself obey the laws that it is the judge of?

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use strandline_testkit::generate::{
    Authoring, Delivery, Domain, Image, arrivals, bitemporal_events, deliveries, every_arrival, histories,
    history, hybrid, known_at, partial_events,
};
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

fn authoring() -> impl Strategy<Value = Authoring> {
    prop_oneof![
        Just(Authoring::Whole),
        Just(Authoring::Leaves),
        Just(Authoring::NonNull),
        Just(Authoring::Columns),
    ]
}

fn partial() -> impl Strategy<Value = Domain> {
    authoring().prop_map(Domain::partial)
}

/// Histories of a domain that is drawn as well.
fn histories_of(domain: impl Strategy<Value = Domain>) -> impl Strategy<Value = Vec<Event>> {
    domain.prop_flat_map(|domain| history(&domain, 0..12))
}

/// A history and the events of one of its arrivals.
fn arrived(domain: impl Strategy<Value = Domain>) -> impl Strategy<Value = (Vec<Event>, Vec<Event>)> {
    histories_of(domain)
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
    fn law_1_only_the_set_of_events_matters((history, arrival) in arrived(partial())) {
        prop_assert_eq!(scd1(&KEYS, &history), scd1(&KEYS, &arrival));
        prop_assert_eq!(scd2(&KEYS, &history, None), scd2(&KEYS, &arrival, None));
    }

    #[test]
    fn law_1_of_truncates((history, arrival) in arrived(Just(Domain::truncated()))) {
        prop_assert_eq!(scd1(&KEYS, &history), scd1(&KEYS, &arrival));
    }

    #[test]
    fn law_1_of_snapshots_beside_changes((all, delivered) in delivered()) {
        let arrival: Vec<Event> = delivered.iter().flat_map(Delivery::events).collect();
        prop_assert_eq!(scd1(&KEYS, &all), scd1(&KEYS, &arrival));
        prop_assert_eq!(scd2(&KEYS, &all, None), scd2(&KEYS, &arrival, None));
    }

    #[test]
    fn law_1_of_bitemporal((history, arrival) in arrived(authoring().prop_map(Domain::partial_two_clocks))) {
        prop_assert_eq!(sorted(bitemporal(&KEYS, &history)), sorted(bitemporal(&KEYS, &arrival)));
    }

    #[test]
    fn law_2_current_scd2_is_scd1(events in histories_of(partial().prop_map(|domain| Domain { truncates: true, ..domain }))) {
        prop_assert_eq!(current(&events), without_sequence(&events));
    }

    #[test]
    fn law_3_open_beliefs_are_scd2(events in history(&Domain::two_clocks(), 0..12)) {
        prop_assert_eq!(believed(&events), sorted(scd2(&KEYS, &newest_known(&events), None)));
    }

    #[test]
    fn law_4_versions_are_disjoint_and_never_empty(events in histories_of(partial())) {
        let tracked = BTreeSet::from(["a".to_owned()]);
        for rows in [scd2(&KEYS, &events, None), scd2(&KEYS, &events, Some(&tracked))] {
            prop_assert!(disjoint(&rows, &BUSINESS));
        }
    }

    #[test]
    fn law_4_rectangles_are_disjoint_and_never_empty(
        events in histories_of(authoring().prop_map(Domain::partial_two_clocks))
    ) {
        prop_assert!(disjoint(&bitemporal(&KEYS, &events), &BOTH));
    }

    #[test]
    fn an_as_of_query_is_the_belief_of_that_time(events in history(&Domain::two_clocks(), 0..12), at in 0..5_i64) {
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

/// The start and the end of each axis.
const BUSINESS: [(&str, &str); 1] = [("__START_AT", "__END_AT")];
const BOTH: [(&str, &str); 2] = [BUSINESS[0], ("__SYSTEM_START_AT", "__SYSTEM_END_AT")];

/// Whether no row is empty on an axis, and no two rows of a key meet on all axes.
fn disjoint(rows: &[Row], axes: &[(&str, &str)]) -> bool {
    let before = |end: &Value, start: &Value| !end.is_null() && end <= start;
    let apart = |left: &Row, right: &Row, (start, end): &(&str, &str)| {
        before(&left[*end], &right[*start]) || before(&right[*end], &left[*start])
    };
    rows.iter().enumerate().all(|(at, left)| {
        let filled = axes.iter().all(|(start, end)| !before(&left[*end], &left[*start]));
        let mut others = rows[at + 1..].iter().filter(|right| right["k"] == left["k"]);
        filled && others.all(|right| axes.iter().any(|axis| apart(left, right, axis)))
    })
}

/// Law 2, left side.
fn current(events: &[Event]) -> Vec<Row> {
    open(scd2(&KEYS, events, None), "__END_AT", &["__START_AT", "__END_AT"])
}

/// Law 2, right side.
fn without_sequence(events: &[Event]) -> Vec<Row> {
    let strip = |mut row: Row| {
        row.remove("__SEQUENCE_AT");
        row
    };
    sorted(scd1(&KEYS, events).into_iter().map(strip).collect())
}

/// Law 3, left side.
fn believed(events: &[Event]) -> Vec<Row> {
    open(bitemporal(&KEYS, events), "__SYSTEM_END_AT", &["__SYSTEM_START_AT", "__SYSTEM_END_AT"])
}

/// Snapshots and changes as one set of events, and as they are delivered.
fn delivered() -> impl Strategy<Value = (Vec<Event>, Vec<Delivery>)> {
    hybrid(&Domain::snapshots(), 0..4, 0..10).prop_flat_map(|(images, events)| {
        let all = images.iter().flat_map(Image::events).chain(events.clone()).collect();
        (Just::<Vec<Event>>(all), deliveries(images, events))
    })
}

#[test]
fn every_small_partial_history_obeys_the_laws() {
    for leaves in [["a", "b"], ["s.x", "s.y"]] {
        for events in histories(&partial_events(leaves, 2), 4) {
            assert_eq!(current(&events), without_sequence(&events), "{events:?}");
            assert!(disjoint(&scd2(&KEYS, &events, None), &BUSINESS), "{events:?}");
        }
    }
}

#[test]
fn every_small_bitemporal_history_obeys_the_laws() {
    for events in histories(&bitemporal_events(2, 3), 3) {
        // Columns are those that some event mentions; the newest ones alone may mention none.
        let newest = newest_known(&events);
        if newest.iter().any(|event| event.op == Op::Upsert) {
            assert_eq!(believed(&events), sorted(scd2(&KEYS, &newest, None)), "{events:?}");
        } else {
            assert!(believed(&events).is_empty(), "{events:?}");
        }
        assert!(disjoint(&bitemporal(&KEYS, &events), &BOTH), "{events:?}");
    }
}

#[test]
fn a_partial_fact_that_is_known_at_once_is_a_partial_update() {
    for events in histories(&partial_events(["a", "s.x"], 2), 3) {
        let known = known_at(&events, 1);
        assert_eq!(believed(&known), sorted(scd2(&KEYS, &events, None)), "{events:?}");
    }
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
