//! How do the shapes follow from one another? Laws 2 to 4, and what partial updates have to do with whole rows.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use strandline_cdc_core::StoredAs;
use strandline_testkit::{
    generate::{Authoring, Domain, arrivals, history},
    reference::{Event, Op, Row, Value},
};

use crate::{
    compare::{arrived, open, without},
    flow::sorted,
    shapes::Shape,
};

const CASES: u32 = if cfg!(slow) { 5000 } else { 500 };

const SYSTEM: [&str; 2] = ["__SYSTEM_START_AT", "__SYSTEM_END_AT"];

/// Whether a half-open interval holds a moment.
fn holds(row: &Row, [start, end]: [&str; 2], at: i64) -> bool {
    row[start] <= Value::Int(at) && (row[end].is_null() || row[end] > Value::Int(at))
}

/// A flow that has received the batches.
fn fed(stored_as: StoredAs, domain: &Domain, batches: &[Vec<Event>]) -> Shape {
    let mut flow = Shape::new(stored_as, domain, None);
    for batch in batches {
        flow.apply(batch);
    }
    flow
}

/// One clock: per key and sequence what is left of the events with the greatest system sequence. Under partial updates
/// they are merged leaf by leaf, what was learned later over what was learned earlier.
fn learned_last(events: &[Event]) -> Vec<Event> {
    let mut groups: BTreeMap<(&Vec<Value>, &Value), Vec<&Event>> = BTreeMap::new();
    for event in events {
        groups.entry((&event.key, &event.seq)).or_default().push(event);
    }
    let mut left = Vec::new();
    for ((key, seq), mut group) in groups {
        let (mut deleted, mut row): (bool, Option<(Row, BTreeSet<String>)>) = (false, None);
        let mut whole = false;
        group.sort_by_key(|event| &event.sys);
        for group in group.chunk_by(|earlier, later| earlier.sys == later.sys) {
            if group.iter().any(|event| event.op == Op::Retract) {
                (deleted, row) = (false, None);
            }
            if group.iter().any(|event| event.op == Op::Delete) {
                (deleted, row) = (true, None);
            }
            let upserts = group.iter().filter(|event| event.op == Op::Upsert);
            whole |= upserts.clone().any(|event| event.authored.is_none());
            let larger =
                upserts.clone().filter(|event| event.authored.is_none()).map(|event| &event.values).max();
            let mut leaves: Row = larger.cloned().unwrap_or_default();
            for event in upserts.clone() {
                for name in event.authored.iter().flatten() {
                    let value = event.values[name].clone();
                    let largest = leaves.entry(name.clone()).or_insert(Value::Null);
                    *largest = value.max(largest.clone());
                }
            }
            if upserts.count() > 0 {
                let (values, authored) = row.get_or_insert_default();
                authored.extend(leaves.keys().cloned());
                values.extend(leaves);
            }
        }
        let event = |op, values: Row, authored| Event {
            key: key.clone(),
            seq: seq.clone(),
            op,
            values,
            authored,
            sys: None,
        };
        left.extend(deleted.then(|| event(Op::Delete, Row::new(), None)));
        left.extend(row.map(|(values, authored)| event(Op::Upsert, values, (!whole).then_some(authored))));
    }
    left
}

fn known_at(events: &[Event], system: i64) -> Vec<Event> {
    events.iter().filter(|event| event.sys <= Some(Value::Int(system))).cloned().collect()
}

/// Two columns without structs, seen by two clocks.
fn two_clocks(authoring: Authoring) -> Domain {
    Domain { authoring, ..Domain::two_clocks() }
}

fn one_clock(authoring: Authoring) -> Domain {
    Domain { authoring, ..Domain::default() }
}

/// What is believed now is the SCD2 target, and its current rows are the SCD1 target.
fn check_open_beliefs(authoring: Authoring, batches: &[Vec<Event>]) {
    let table = fed(StoredAs::Bitemporal, &two_clocks(authoring), batches).target();
    let last = [learned_last(&batches.concat())];
    let believed = without(open(table, "__SYSTEM_END_AT"), &SYSTEM);
    assert_eq!(believed, fed(StoredAs::Scd2, &one_clock(authoring), &last).target(), "{batches:#?}");
    let current = without(open(believed, "__END_AT"), &["__START_AT", "__END_AT"]);
    let scd1 = fed(StoredAs::Scd1, &one_clock(authoring), &last).target();
    assert_eq!(current, without(scd1, &["__SEQUENCE_AT"]), "{batches:#?}");
}

/// As of any two moments the table shows what SCD2 makes of the events that were known.
fn check_as_of(authoring: Authoring, batches: &[Vec<Event>]) {
    let table = fed(StoredAs::Bitemporal, &two_clocks(authoring), batches).target();
    for system in -1..5 {
        let known = learned_last(&known_at(&batches.concat(), system));
        let versions = fed(StoredAs::Scd2, &one_clock(authoring), &[known]).target();
        for business in -1..5 {
            let valid = |row: &&Row| holds(row, ["__START_AT", "__END_AT"], business);
            let shown = table.iter().filter(valid).filter(|row| holds(row, SYSTEM, system)).cloned();
            let expected: Vec<Row> = versions.iter().filter(valid).cloned().collect();
            assert_eq!(without(shown.collect(), &SYSTEM), expected, "{business} as known at {system}");
        }
    }
}

/// Rows of one key share no moment, and each has some.
fn check_rectangles(table: &[Row]) {
    let span = |row: &Row, [start, end]: [&str; 2]| {
        let end = if let Value::Int(end) = row[end] { end } else { i64::MAX };
        let Value::Int(start) = row[start] else { panic!("{row:?} begins nowhere") };
        (start, end)
    };
    let sides = |row: &Row| [span(row, ["__START_AT", "__END_AT"]), span(row, SYSTEM)];
    for (at, row) in table.iter().enumerate() {
        assert!(sides(row).iter().all(|(start, end)| start < end), "{row:?} is empty");
        for other in table.iter().skip(at + 1).filter(|other| other["k"] == row["k"]) {
            let mut axes = sides(row).into_iter().zip(sides(other));
            let apart =
                axes.any(|((start, end), (other_start, other_end))| end <= other_start || other_end <= start);
            assert!(apart, "{row:?} and {other:?} overlap");
        }
    }
}

/// Upserts that no other one of their key meets at their moment: ties are settled as rows or leaf by leaf.
fn without_ties(events: Vec<Event>) -> Vec<Event> {
    let mut seen = BTreeSet::new();
    let fresh = |event: &Event| {
        event.op != Op::Upsert || seen.insert((event.key.clone(), event.seq.clone(), event.sys.clone()))
    };
    let mut events = events;
    events.retain(fresh);
    events
}

/// The same upserts, each with a list of all the leaves that it sets.
fn patched(batches: &[Vec<Event>]) -> Vec<Vec<Event>> {
    let patch = |event: &Event| {
        let authored = (event.op == Op::Upsert).then(|| event.values.keys().cloned().collect());
        Event { authored, ..event.clone() }
    };
    batches.iter().map(|batch| batch.iter().map(patch).collect()).collect()
}

fn untied(domain: &Domain) -> impl Strategy<Value = Vec<Vec<Event>>> + use<> {
    history(domain, 0..12).prop_map(without_ties).prop_flat_map(arrivals)
}

fn shapes() -> [(StoredAs, Domain); 3] {
    let structs = vec!["s".to_owned()];
    [StoredAs::Scd1, StoredAs::Scd2, StoredAs::Bitemporal].map(|stored_as| {
        let systems = (stored_as == StoredAs::Bitemporal).then_some(4);
        (stored_as, Domain { sequences: 6, systems, structs: structs.clone(), ..Domain::default() })
    })
}

/// Events of two clocks, as a shape with one clock takes them.
fn for_shape(stored_as: StoredAs, batches: &[Vec<Event>]) -> Vec<Vec<Event>> {
    if stored_as == StoredAs::Bitemporal {
        return batches.to_vec();
    }
    let event = |event: &Event| Event { sys: None, ..event.clone() };
    batches.iter().map(|batch| batch.iter().map(event).collect()).collect()
}

fn wide() -> Domain {
    let [.., (_, domain)] = shapes();
    domain
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn c10_law_3_open_beliefs_are_the_scd2_target(batches in arrived(&two_clocks(Authoring::Whole), 14)) {
        check_open_beliefs(Authoring::Whole, &batches);
    }

    #[test]
    fn c10_a25_law_3_open_beliefs_under_ignore_null(batches in arrived(&two_clocks(Authoring::NonNull), 14)) {
        check_open_beliefs(Authoring::NonNull, &batches);
    }

    #[test]
    fn c10_a25_law_3_open_beliefs_with_masks(batches in arrived(&two_clocks(Authoring::Leaves), 14)) {
        check_open_beliefs(Authoring::Leaves, &batches);
    }

    #[test]
    fn c67_as_of_two_moments_is_scd2_of_what_was_known(batches in arrived(&two_clocks(Authoring::Whole), 12)) {
        check_as_of(Authoring::Whole, &batches);
    }

    #[test]
    fn c67_a25_as_of_two_moments_under_ignore_null(batches in arrived(&two_clocks(Authoring::NonNull), 12)) {
        check_as_of(Authoring::NonNull, &batches);
    }

    #[test]
    fn c07_c19_law_4_rectangles_never_overlap_and_are_never_empty(batches in arrived(&Domain::two_clocks(), 14)) {
        let mut flow = Shape::new(StoredAs::Bitemporal, &Domain::two_clocks(), None);
        for batch in &batches {
            flow.apply(batch);
            check_rectangles(&flow.target());
        }
    }

    #[test]
    fn c07_c19_law_4_rectangles_with_masks(batches in arrived(&Domain::partial_two_clocks(Authoring::Leaves), 12)) {
        let domain = Domain::partial_two_clocks(Authoring::Leaves);
        check_rectangles(&fed(StoredAs::Bitemporal, &domain, &batches).target());
    }

    #[test]
    fn c09_law_2_ignoring_null(batches in arrived(&Domain::partial(Authoring::NonNull), 14)) {
        let domain = Domain::partial(Authoring::NonNull);
        let current = open(fed(StoredAs::Scd2, &domain, &batches).target(), "__END_AT");
        let scd1 = fed(StoredAs::Scd1, &domain, &batches).target();
        prop_assert_eq!(without(current, &["__START_AT", "__END_AT"]), without(scd1, &["__SEQUENCE_AT"]));
    }

    /// A barrier that nothing is older than is none, so Law 2 holds for the events that outlive the truncates.
    #[test]
    fn c09_c23_law_2_of_what_truncates_leave(batches in arrived(&Domain::truncated(), 14)) {
        let all = batches.concat();
        let floor = all.iter().filter(|event| event.op == Op::Truncate).map(|event| event.seq.clone()).max();
        let lives = |event: &Event| event.op != Op::Truncate && floor.as_ref().is_none_or(|floor| event.seq >= *floor);
        let left: Vec<Event> = all.iter().filter(|event| lives(event)).cloned().collect();
        let current = open(fed(StoredAs::Scd2, &Domain::truncated(), &[left]).target(), "__END_AT");
        let scd1 = fed(StoredAs::Scd1, &Domain::truncated(), &batches).target();
        prop_assert_eq!(without(current, &["__START_AT", "__END_AT"]), without(scd1, &["__SEQUENCE_AT"]));
    }

    #[test]
    fn c46_c52_a_patch_of_all_columns_is_an_upsert(batches in untied(&wide())) {
        for (stored_as, domain) in shapes() {
            let batches = for_shape(stored_as, &[without_ties(for_shape(stored_as, &batches).concat())]);
            let masked = Domain { authoring: Authoring::Leaves, ..domain.clone() };
            let patched = fed(stored_as, &masked, &patched(&batches));
            prop_assert_eq!(patched.target(), fed(stored_as, &domain, &batches).target(), "{}", stored_as);
        }
    }

    #[test]
    fn c41_an_upsert_without_null_is_whole_under_ignore_null(batches in untied(&Domain { structs: vec![], ..wide() })) {
        let fill = |event: &Event| {
            let value = |value: &Value| if value.is_null() { Value::Int(7) } else { value.clone() };
            let values = event.values.iter().map(|(name, old)| (name.clone(), value(old))).collect();
            Event { values, ..event.clone() }
        };
        let filled: Vec<Vec<Event>> = batches.iter().map(|batch| batch.iter().map(fill).collect()).collect();
        for (stored_as, domain) in shapes() {
            let domain = Domain { structs: vec![], ..domain };
            let batches = for_shape(stored_as, &[without_ties(for_shape(stored_as, &filled).concat())]);
            let ignoring = Domain { authoring: Authoring::NonNull, ..domain.clone() };
            let ignored = fed(stored_as, &ignoring, &batches);
            prop_assert_eq!(ignored.target(), fed(stored_as, &domain, &batches).target(), "{}", stored_as);
        }
    }

    #[test]
    fn c01_c05_keys_know_nothing_of_one_another(batches in arrived(&Domain { keys: 3, ..wide() }, 14)) {
        for (stored_as, domain) in shapes() {
            let batches = for_shape(stored_as, &batches);
            let together = fed(stored_as, &domain, &batches).target();
            let apart = (0..3).flat_map(|number| {
                let key = vec![Value::Text(format!("k{number}"))];
                let own = |batch: &Vec<Event>| batch.iter().filter(|event| event.key == key).cloned().collect();
                fed(stored_as, &domain, &batches.iter().map(own).collect::<Vec<_>>()).target()
            });
            prop_assert_eq!(together, sorted(apart.collect()), "{}", stored_as);
        }
    }
}
