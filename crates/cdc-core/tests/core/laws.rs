//! Do the laws hold on random histories, whatever the arrival?
//!
//! Each history is delivered shuffled, cut into batches, with duplicates within a batch and batches that come again.

use proptest::prelude::*;
use strandline_cdc_core::StoredAs;
use strandline_testkit::{
    generate::{Domain, arrivals, history},
    reference::{Event, Row, Value},
};

use crate::flow::{Columns, Flow, sorted};

const CASES: u32 = 1500;

fn arrived(domain: &Domain, longest: usize) -> impl Strategy<Value = Vec<Vec<Event>>> + use<> {
    history(domain, 0..longest).prop_flat_map(arrivals)
}

/// Delivers the batches one by one and checks the state after each.
fn deliver(flow: &mut Flow, batches: &[Vec<Event>]) {
    let mut known = Vec::new();
    for batch in batches {
        let replay = batch.iter().all(|event| known.contains(event));
        known.extend(batch.iter().cloned());
        let done = flow.apply(batch);
        flow.check(&known);
        assert!(
            !replay || (done.target.is_empty() && done.side.is_empty()),
            "C-08: a replay changes nothing"
        );
        assert_eq!(done.counts.events, batch.len() as u64);
    }
    let all: Vec<Event> = known;
    let again = flow.apply(&all);
    assert!(
        again.target.is_empty() && again.side.is_empty(),
        "C-08: the whole history again changes nothing"
    );
}

fn one_key() -> Domain {
    Domain { keys: 1, sequences: 7, ..Domain::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn c05_c08_law_1_scd1_is_a_function_of_the_set_of_events(batches in arrived(&Domain::default(), 12)) {
        deliver(&mut Flow::new(Columns::plain(), StoredAs::Scd1, None), &batches);
    }

    #[test]
    fn c06_c08_law_1_scd2_is_a_function_of_the_set_of_events(batches in arrived(&Domain::default(), 12)) {
        deliver(&mut Flow::new(Columns::plain(), StoredAs::Scd2, None), &batches);
    }

    #[test]
    fn c06_c21_c22_law_1_scd2_of_one_long_key_with_a_tracked_subset(batches in arrived(&one_key(), 14)) {
        deliver(&mut Flow::new(Columns::plain(), StoredAs::Scd2, Some(&["b"])), &batches);
    }

    #[test]
    fn c06_law_1_scd2_of_one_long_key_that_tracks_all(batches in arrived(&one_key(), 14)) {
        deliver(&mut Flow::new(Columns::plain(), StoredAs::Scd2, None), &batches);
    }

    #[test]
    fn c09_law_2_current_scd2_rows_are_the_scd1_target(batches in arrived(&Domain::default(), 14)) {
        let mut scd1 = Flow::new(Columns::plain(), StoredAs::Scd1, None);
        let mut scd2 = Flow::new(Columns::plain(), StoredAs::Scd2, None);
        for batch in &batches {
            scd1.apply(batch);
            scd2.apply(batch);
            prop_assert_eq!(without(scd1.target(), &["__SEQUENCE_AT"]), current(&scd2));
        }
    }

    #[test]
    fn c19_law_4_versions_are_half_open_disjoint_and_never_empty(batches in arrived(&one_key(), 14)) {
        for tracked in [None, Some(&["a"][..])] {
            let mut flow = Flow::new(Columns::plain(), StoredAs::Scd2, tracked);
            for batch in &batches {
                flow.apply(batch);
                let mut spans: Vec<(Value, Value)> =
                    flow.target().iter().map(|row| (row["__START_AT"].clone(), row["__END_AT"].clone())).collect();
                spans.sort();
                prop_assert!(spans.iter().all(|(start, end)| end.is_null() || start < end));
                prop_assert!(spans.windows(2).all(|w| !w[0].1.is_null() && w[0].1 <= w[1].0));
            }
        }
    }
}

fn current(flow: &Flow) -> Vec<Row> {
    let open = flow.target().into_iter().filter(|row| row["__END_AT"].is_null()).collect();
    without(open, &["__START_AT", "__END_AT"])
}

fn without(mut rows: Vec<Row>, columns: &[&str]) -> Vec<Row> {
    for row in &mut rows {
        row.retain(|name, _| !columns.contains(&name.as_str()));
    }
    sorted(rows)
}
