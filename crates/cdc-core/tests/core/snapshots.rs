//! Snapshots, alone and beside changes, against the reference model.

use proptest::prelude::*;
use strandline_cdc_core::{CdcError, Prior, Reconciled, SnapshotBatch, SnapshotRules, StoredAs};
use strandline_testkit::{
    generate::{Delivery, Domain, Image, deliveries, hybrid, snapshots},
    reference::{Event, Op, Row, Value},
};

use crate::{
    convert::array,
    flow::sorted,
    shapes::{Shape, is_nothing, source},
};

/// Rules under which every snapshot counts.
const ANY: SnapshotRules = SnapshotRules {
    max_delete_fraction: 1.0,
    guard_from_rows: 0,
    accept_horizon: false,
    on_stale: strandline_cdc_core::OnStale::Refuse,
};

impl Shape {
    pub(crate) fn snapshot(&mut self, image: &Image, rules: &SnapshotRules) -> Result<Reconciled, CdcError> {
        let rows = image.events();
        let rows: Vec<Event> = rows.into_iter().filter(|event| event.op == Op::SnapshotRow).collect();
        let version = array(self.spec.sequence_type(), std::slice::from_ref(&image.version));
        let batch = SnapshotBatch::new(&self.spec, &source(&self.columns, &rows), &version)?;
        let prior: Prior = self.store.prior(&self.spec.snapshot_plan(&batch), crate::store::Reading::Exact);
        let done = self.spec.reconcile_snapshot(&prior, &batch, rules)?;
        self.store.keep(&done);
        Ok(done)
    }
}

fn domain() -> Domain {
    Domain::snapshots()
}

fn without_sequence(rows: Vec<Row>) -> Vec<Row> {
    let strip = |mut row: Row| {
        row.remove("__SEQUENCE_AT");
        row
    };
    sorted(rows.into_iter().map(strip).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn c55_c56_a_series_of_snapshots(images in snapshots(&domain(), 0..6)) {
        for (stored_as, tracked) in [(StoredAs::Scd1, None), (StoredAs::Scd2, None), (StoredAs::Scd2, Some(&["a"][..]))] {
            let mut flow = Shape::new(stored_as, &domain(), tracked);
            let mut known = Vec::new();
            for image in &images {
                known.extend(image.events());
                flow.snapshot(image, &ANY).unwrap();
                prop_assert_eq!(without_sequence(flow.target()), without_sequence(flow.expected(&known)));
                prop_assert_eq!(flow.store.side.batch.num_rows(), 0, "a snapshot flow needs no side rows");
                let stale = flow.snapshot(image, &ANY);
                let refused = matches!(stale, Err(CdcError::OutOfOrderSnapshot { .. }));
                prop_assert!(refused);
                let skip = SnapshotRules { on_stale: strandline_cdc_core::OnStale::Skip, ..ANY };
                prop_assert!(is_nothing(&flow.snapshot(image, &skip).unwrap()));
            }
        }
    }

    #[test]
    fn c59_c60_c61_c62_changes_beside_snapshots(
        delivered in hybrid(&domain(), 0..4, 0..9).prop_flat_map(|(images, events)| deliveries(images, events))
    ) {
        let mut flow = Shape::new(StoredAs::Scd1, &domain(), None);
        let mut known = Vec::new();
        for delivery in &delivered {
            known.extend(delivery.events());
            match delivery {
                Delivery::Changes(events) => drop(flow.apply(events)),
                Delivery::Snapshot(image) => drop(flow.snapshot(image, &ANY).unwrap()),
            }
            prop_assert_eq!(
                without_sequence(flow.target()), without_sequence(flow.expected(&known)),
                "{:#?}", delivered
            );
        }
        let changes: Vec<Event> = delivered.iter().filter_map(|delivery| match delivery {
            Delivery::Changes(events) => Some(events.clone()),
            Delivery::Snapshot(_) => None,
        }).flatten().collect();
        prop_assert!(is_nothing(&flow.apply(&changes)), "C-08: all changes again change nothing");
    }
}

fn image(version: i64, keys: std::ops::Range<i64>) -> Image {
    let row = |key: i64| {
        (
            vec![Value::text(format!("k{key}"))],
            [("a", key), ("b", 1)].map(|(n, v)| (n.to_owned(), Value::Int(v))).into(),
        )
    };
    Image { version: Value::Int(version), rows: keys.map(row).collect() }
}

#[test]
fn c58_an_empty_snapshot_deletes_all_unless_the_guard_refuses_it() {
    for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
        let mut flow = Shape::new(stored_as, &domain(), None);
        flow.snapshot(&image(1, 0..200), &SnapshotRules::default()).unwrap();
        let before = flow.target();
        for refused in [image(2, 0..0), image(2, 0..19)] {
            let error = flow.snapshot(&refused, &SnapshotRules::default()).unwrap_err();
            assert!(matches!(error, CdcError::SnapshotDeletesTooMuch { rows: 200, .. }), "{error}");
            assert_eq!(flow.target(), before, "nothing of it is applied");
        }
        flow.snapshot(&image(2, 0..20), &SnapshotRules::default()).unwrap();
        flow.snapshot(&image(3, 0..0), &SnapshotRules::default()).unwrap();
        let open = flow.target().into_iter().filter(|row| row.get("__END_AT").is_none_or(Value::is_null));
        assert_eq!(open.count(), 0, "fewer than a hundred deletes are never refused");
    }
}

#[test]
fn c57_a_snapshot_with_a_key_twice_or_null_fails_whole() {
    let mut flow = Shape::new(StoredAs::Scd1, &domain(), None);
    let twice = Image { rows: [image(1, 0..2).rows, image(1, 1..3).rows].concat(), ..image(1, 0..0) };
    let error = flow.snapshot(&twice, &ANY).unwrap_err();
    assert_eq!(error, CdcError::DuplicateKey { what: "the snapshot", key: "k=k1".to_owned(), count: 1 });
    let null = Image { rows: vec![(vec![Value::Null], image(1, 0..1).rows[0].1.clone())], ..image(1, 0..0) };
    assert!(matches!(flow.snapshot(&null, &ANY), Err(CdcError::NullKey { .. })));
    assert_eq!(flow.target(), Vec::<Row>::new());
}

#[test]
fn c55_rows_that_a_snapshot_leaves_as_they_are_are_not_rewritten() {
    for stored_as in [StoredAs::Scd1, StoredAs::Scd2] {
        let mut flow = Shape::new(stored_as, &domain(), None);
        flow.snapshot(&image(1, 0..50), &ANY).unwrap();
        let done = flow.snapshot(&image(2, 0..51), &ANY).unwrap();
        assert_eq!((done.target.deletes.len(), done.target.inserts.num_rows()), (0, 1));
    }
}
