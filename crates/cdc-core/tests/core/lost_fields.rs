//! What is inherited, and from whom, when snapshots, vanished columns and NULL structs meet.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StructArray};
use arrow_schema::{DataType, Field, Fields};
use proptest::prelude::*;
use strandline_cdc_core::{CdcError, CdcOptions, CdcSpec, OnStale, SnapshotBatch, SnapshotRules, StoredAs};
use strandline_testkit::{
    generate::{Authoring, Delivery, Domain, Image, deliveries, hybrid},
    reference::{Event, Op, Row, Value},
};

use crate::{
    compare::without,
    shapes::{Shape, is_nothing, rows, source},
};

const ANY: SnapshotRules = SnapshotRules {
    max_delete_fraction: 1.0,
    guard_from_rows: 0,
    accept_horizon: false,
    on_stale: OnStale::Refuse,
};

fn domain() -> Domain {
    Domain { columns: vec!["a".to_owned(), "b".to_owned()], ..Domain::snapshots() }
}

/// The event as a source has it that lacks some columns.
fn lacking(event: &Event, lacks: &[String]) -> Event {
    let all = event.values.keys().filter(|name| !lacks.contains(name)).cloned().collect();
    let authored = (event.op == Op::Upsert && !lacks.is_empty()).then_some(all);
    Event { authored, ..event.clone() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// Changes of sources that lack columns, beside snapshots of complete ones, at equal versions and delivered again.
    #[test]
    fn a3_a20_c61_a_change_that_sets_some_columns_at_the_version_of_a_snapshot(
        (delivered, lacks) in (
            hybrid(&domain(), 0..4, 0..9).prop_flat_map(|(images, events)| deliveries(images, events)),
            proptest::sample::select(vec![vec![], vec!["a".to_owned()], vec!["b".to_owned()]]),
        )
    ) {
        let mut flow = Shape::new(StoredAs::Scd1, &domain(), None);
        let mut known: Vec<Event> = Vec::new();
        let mut changes: Vec<Event> = Vec::new();
        for delivery in &delivered {
            match delivery {
                Delivery::Changes(events) => {
                    let events: Vec<Event> = events.iter().map(|event| lacking(event, &lacks)).collect();
                    flow.source_lacks(&lacks);
                    flow.apply(&events);
                    known.extend(events.iter().cloned());
                    changes.extend(events);
                }
                Delivery::Snapshot(image) => {
                    flow.source_lacks(&[]);
                    flow.snapshot(image, &ANY).unwrap();
                    known.extend(image.events());
                }
            }
            let side = rows(&flow.store.side.batch);
            prop_assert_eq!(
                without(flow.target(), &["__SEQUENCE_AT"]), without(flow.expected(&known), &["__SEQUENCE_AT"]),
                "{:#?} lacking {:?}, side {:#?}", delivered, lacks, side
            );
        }
        flow.source_lacks(&lacks);
        prop_assert!(is_nothing(&flow.apply(&changes)), "C-08: all changes again change nothing");
    }
}

fn image(version: i64, values: &[(&str, Value)]) -> Image {
    let row = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Image { version: version.into(), rows: vec![(vec!["k".into()], row)] }
}

#[test]
fn a20_c55_a_snapshot_flow_that_lost_a_column_leaves_unchanged_rows_alone() {
    for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
        let mut flow = Shape::new(stored_as, &domain(), None);
        flow.snapshot(&image(1, &[("a", 1.into()), ("b", 5.into())]), &ANY).unwrap();
        flow.source_lacks(&["b".to_owned()]);
        for version in 2..5 {
            let done = flow.snapshot(&image(version, &[("a", 1.into())]), &ANY).unwrap();
            assert!(done.target.is_empty(), "version {version}: {:?}", rows(&done.target.inserts));
        }
        flow.snapshot(&image(5, &[("a", 2.into())]), &ANY).unwrap();
        let newest = flow.target().into_iter().find(|row| row["a"] == 2.into()).unwrap();
        assert_eq!(newest["b"], 5.into(), "what the source lacks stays");
    }
}

/// A struct that is set to NULL takes its fields along, whoever set them: nothing is inherited under a NULL.
#[test]
fn c51_a_struct_that_becomes_null_forgets_its_fields() {
    let upsert = |seq: i64, s: Value, authored: &[&str]| Event {
        authored: Some(authored.iter().map(|&path| path.to_owned()).collect()),
        ..crate::flow::upsert("k", seq, &[("a", 0.into()), ("s", s)])
    };
    let pair = |x: i64, y: i64| Value::fields([("x", Value::Int(x)), ("y", Value::Int(y))]);
    let history = [
        upsert(3, pair(1, 5), &["a", "s.x", "s.y"]),
        upsert(5, Value::Null, &["s"]),
        upsert(6, pair(7, 0), &["s.x"]),
    ];
    for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
        let domain = Domain::partial(Authoring::Leaves);
        let one_by_one: Vec<Vec<Event>> = history.iter().map(|event| vec![event.clone()]).collect();
        for batches in [one_by_one, vec![history.to_vec()]] {
            let mut flow = Shape::new(stored_as, &domain, None);
            flow.deliver(&batches);
            let open = |row: &Row| row.get("__END_AT").is_none_or(Value::is_null);
            let newest = flow.target().into_iter().find(open).unwrap();
            let last = Value::fields([("x", Value::Int(7)), ("y", Value::Null)]);
            assert_eq!(newest["s"], last, "{stored_as}");
        }
    }
}

#[test]
fn a7_a_struct_version_with_a_null_field_is_no_version() {
    let fields = Fields::from(vec![Field::new("ts", DataType::Int64, true)]);
    let version = |ts: Option<i64>| -> ArrayRef {
        let ts: ArrayRef = Arc::new(Int64Array::from(vec![ts]));
        Arc::new(StructArray::new(fields.clone(), vec![ts], None))
    };
    let options = CdcOptions { keys: vec!["k".to_owned()], ..CdcOptions::default() };
    let rows = source(&Shape::new(StoredAs::Scd1, &domain(), None).columns, &[]);
    let spec = CdcSpec::new(&options, &rows.schema(), &DataType::Struct(fields.clone())).unwrap();
    let error = SnapshotBatch::new(&spec, &rows, &version(None)).unwrap_err();
    assert_eq!(error, CdcError::SnapshotVersion { found: "a NULL field".to_owned() });
    assert!(SnapshotBatch::new(&spec, &rows, &version(Some(1))).unwrap().is_empty());
}
