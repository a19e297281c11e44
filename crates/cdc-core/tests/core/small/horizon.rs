//! Tombstones that expire, and the horizon that they leave (A-4, C-71).

use std::collections::BTreeSet;

use arrow_array::{UInt64Array, cast::AsArray, types::Int64Type};
use arrow_schema::{DataType, Field, Schema};
use proptest::{collection::vec, prelude::*};
use strandline_cdc_core::{BarrierKind, CdcOptions, CdcSpec, Rows, StoredAs};
use strandline_testkit::reference::{Op, Row, Value};

use super::{Moment, Sent, Small, down, numbers, up};

fn table(stored_as: StoredAs) -> Small {
    Small::new(stored_as, CdcOptions { tombstones_expire: true, ..CdcOptions::default() })
}

fn applied(applied_at: i64) -> Moment {
    Moment { applied_at: Some(applied_at), ..Moment::default() }
}

fn horizon(table: &Small) -> Option<i64> {
    let horizon = table.store.barriers.greatest(BarrierKind::Horizon)?;
    Some(horizon.as_primitive::<Int64Type>().value(0))
}

/// Sequences of the side rows.
fn kept(table: &Small) -> Vec<[Option<i64>; 1]> {
    numbers(&table.store.side.batch, ["__SEQUENCE_AT"])
}

/// Collects what was applied before a moment; gives the number of tombstones that went.
fn collect(table: &mut Small, before: i64) -> u64 {
    let side = &table.store.side;
    let hidden = Rows { batch: side.batch.clone(), ids: UInt64Array::from(side.ids.clone()) };
    let collected = table.spec.collect_tombstones(&hidden, &table.store.barriers, before).unwrap();
    table.store.side.apply(&collected.side);
    table.store.barriers = collected.barriers;
    collected.tombstones
}

const SHAPES: [StoredAs; 2] = [StoredAs::Scd1, StoredAs::Scd2];

/// Deletes of `a` at 5 and of `b` at 9, neither of which removes a row.
fn two_tombstones(stored_as: StoredAs) -> Small {
    let mut table = table(stored_as);
    table.send_at(&[down("a", 5)], &applied(1000));
    table.send_at(&[down("b", 9)], &applied(2000));
    assert_eq!(kept(&table), [[Some(5)], [Some(9)]]);
    table
}

#[test]
fn c71_only_tombstones_past_retention_go() {
    for stored_as in SHAPES {
        let mut table = two_tombstones(stored_as);
        assert_eq!(collect(&mut table, 1000), 0, "one that was applied at that moment is not older");
        assert_eq!((collect(&mut table, 1500), kept(&table)), (1, vec![[Some(9)]]));
        assert_eq!(horizon(&table), Some(5));
        assert_eq!((collect(&mut table, 1500), horizon(&table)), (0, Some(5)), "again");
        assert_eq!((collect(&mut table, 9000), horizon(&table)), (1, Some(9)));
    }
}

#[test]
fn c71_a4_a_late_event_of_a_collected_key_is_dropped_and_counted() {
    for stored_as in SHAPES {
        let mut table = two_tombstones(stored_as);
        collect(&mut table, 1500);
        let done = table.send(&[up("a", 4, 1), up("a", 5, 1)]);
        assert_eq!((done.counts.horizon_dropped, table.shown(["v"])), (2, vec![]), "{stored_as}");
        let done = table.send(&[up("a", 6, 1)]);
        assert_eq!((done.counts.horizon_dropped, table.shown(["v"])), (0, vec![[Some(1)]]));
    }
}

#[test]
fn a4_an_event_of_a_new_key_that_is_older_than_the_horizon_is_lost_too() {
    for stored_as in SHAPES {
        let mut table = two_tombstones(stored_as);
        collect(&mut table, 1500);
        let done = table.send(&[up("new", 3, 1), down("other", 2), up("third", 6, 3)]);
        assert_eq!((done.counts.horizon_dropped, table.shown(["v"])), (2, vec![[Some(3)]]), "{stored_as}");
    }
}

#[test]
fn a4_an_older_event_of_a_key_with_a_row_is_taken() {
    let mut scd2 = two_tombstones(StoredAs::Scd2);
    scd2.send(&[up("c", 7, 1)]);
    collect(&mut scd2, 1500);
    let done = scd2.send(&[up("c", 3, 2)]);
    assert_eq!(done.counts.horizon_dropped, 0);
    assert_eq!(scd2.versions(), [[Some(1), Some(7), None], [Some(2), Some(3), Some(7)]]);
    let mut scd1 = two_tombstones(StoredAs::Scd1);
    scd1.send(&[up("c", 7, 1)]);
    collect(&mut scd1, 1500);
    let done = scd1.send(&[up("c", 3, 2)]);
    assert_eq!((done.counts.horizon_dropped, done.counts.late), (0, 1));
}

#[test]
fn a4_a_tombstone_that_is_kept_still_defeats() {
    for stored_as in SHAPES {
        let mut table = two_tombstones(stored_as);
        collect(&mut table, 1500);
        table.send(&[up("b", 8, 1)]);
        let open = table.store.target.batch.num_rows();
        assert_eq!(open, usize::from(stored_as == StoredAs::Scd2), "a version from 8 to 9, or nothing");
    }
}

#[test]
fn a4_tombstones_are_kept_for_ever_unless_they_expire() {
    for stored_as in SHAPES {
        let mut table = Small::new(stored_as, CdcOptions::default());
        table.send_at(&[down("a", 5)], &applied(1000));
        assert_eq!((collect(&mut table, i64::MAX), kept(&table)), (0, vec![[Some(5)]]));
        assert_eq!(horizon(&table), None);
    }
}

#[test]
fn a4_bitemporal_never_collects() {
    let options = CdcOptions {
        keys: vec!["k".to_owned()],
        stored_as: StoredAs::Bitemporal,
        tombstones_expire: true,
        ..CdcOptions::default()
    };
    let source = Schema::new(vec![Field::new("k", DataType::Int64, true)]);
    let error = CdcSpec::new(&options, &source, (&DataType::Int64, &DataType::Int64)).unwrap_err();
    assert!(error.to_string().contains("AUTOCDC_TOMBSTONES_OF_BITEMPORAL"), "{error}");
}

#[test]
fn a4_a_tombstone_below_a_truncate_goes_without_a_trace() {
    let mut table = two_tombstones(StoredAs::Scd1);
    table.send(&[Sent { op: Op::Truncate, ..down("", 7) }]);
    assert_eq!(kept(&table), [[Some(9)]]);
    assert_eq!((collect(&mut table, 0), horizon(&table)), (0, None));
    table.send(&[up("a", 6, 1)]);
    assert_eq!(table.shown(["v"]), Vec::<[Option<i64>; 1]>::new(), "the truncate defeats it");
}

/// Batches, and after each perhaps a moment before which what was applied is collected.
fn histories() -> impl Strategy<Value = Vec<(Vec<Sent>, Option<i64>)>> {
    let event = (0..3_usize, 0..8_i64, 0..3_i64).prop_map(|(key, seq, v)| {
        let key = ["a", "b", "c"][key];
        if v == 0 { down(key, seq) } else { up(key, seq, v) }
    });
    let collected = proptest::option::weighted(0.5, 0..12_i64);
    vec((vec(event, 1..4), collected), 1..10)
}

/// The current rows that the events make when nothing is collected, without their sequence.
fn current(table: &Small) -> BTreeSet<(String, i64)> {
    let rows = crate::shapes::rows(&table.store.target.batch);
    let open = rows.into_iter().filter(|row| row.get("__END_AT").is_none_or(Value::is_null));
    let cells = |row: Row| match (&row["k"], &row["v"]) {
        (Value::Text(key), Value::Int(v)) => (key.clone(), *v),
        other => panic!("{other:?}"),
    };
    open.map(cells).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Events can be lost behind the horizon, but nothing that was deleted comes back.
    #[test]
    fn a4_a_row_beside_a_horizon_is_one_without(history in histories()) {
        for stored_as in SHAPES {
            let (mut collecting, mut keeping) = (table(stored_as), table(stored_as));
            for ((batch, collected), at) in history.iter().zip(0..) {
                // Not twice: an event that was dropped counts once its key has a current row.
                collecting.send_once(batch, &applied(at));
                keeping.send_once(batch, &applied(at));
                prop_assert!(current(&collecting).is_subset(&current(&keeping)), "{}", stored_as);
                if let Some(before) = collected {
                    collect(&mut collecting, *before);
                }
            }
        }
    }
}
