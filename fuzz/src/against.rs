//! Is each shape what the reference model says, after every batch of every arrival?

use strandline_cdc_core::{CdcOptions, ColumnSelection, SnapshotRules, StoredAs};
use strandline_testkit::{
    generate::{Authoring, Delivery, Domain},
    reference::{Event, Row},
};

use crate::{
    Deliveries, Feed,
    flow::{Columns, Flow, sorted},
    shapes::{Shape, is_nothing},
};

/// Every snapshot counts, but a stale one.
fn any() -> SnapshotRules {
    SnapshotRules { max_delete_fraction: 1.0, guard_from_rows: 0, ..SnapshotRules::default() }
}

/// Lists of tracked columns of a domain with `a` and another column.
fn tracked(setting: u8, other: &'static str) -> Option<Vec<&'static str>> {
    match setting & 3 {
        0 | 1 => None,
        2 => Some(vec!["a"]),
        _ => Some(vec![other]),
    }
}

fn authoring(setting: u8) -> Authoring {
    if setting & 4 == 0 { Authoring::Leaves } else { Authoring::NonNull }
}

/// The world with one key to four, and as many sequences as bytes can tell.
fn of(setting: u8, domain: Domain) -> Domain {
    let systems = domain.systems.map(|_| 8);
    Domain { keys: 1 + usize::from(setting >> 6), sequences: 8, systems, ..domain }
}

/// A flow whose side rows are known exactly: no fewer, no more.
fn exactly(feed: &Feed, stored_as: StoredAs, tracked: Option<&[&str]>) {
    let domain = of(feed.setting, Domain::default());
    let mut flow = Flow::new(Columns::plain(), stored_as, tracked);
    let mut known: Vec<Event> = Vec::new();
    for batch in feed.batches(&domain) {
        known.extend(batch.iter().cloned());
        drop(flow.apply(&batch));
        flow.check(&known);
    }
    assert!(is_nothing(&flow.apply(&known)), "C-08: all again changes nothing");
}

/// SCD1: with truncates, or with exact side rows.
pub fn scd1(feed: &Feed) {
    if feed.setting & 1 == 0 {
        return exactly(feed, StoredAs::Scd1, None);
    }
    let domain = of(feed.setting, Domain::truncated());
    Shape::new(StoredAs::Scd1, &domain, None).deliver(&feed.batches(&domain));
}

/// SCD1 with masks or ignore-null, with and without truncates.
pub fn scd1_partial(feed: &Feed) {
    let truncates = feed.setting & 1 == 1;
    let domain = of(feed.setting, Domain { truncates, ..Domain::partial(authoring(feed.setting)) });
    ignoring(feed, StoredAs::Scd1, &domain, None);
}

/// SCD2, all columns tracked or some, with exact side rows.
pub fn scd2(feed: &Feed) {
    exactly(feed, StoredAs::Scd2, tracked(feed.setting, "b").as_deref());
}

/// SCD2 with masks or ignore-null, all columns tracked or some.
pub fn scd2_partial(feed: &Feed) {
    let domain = of(feed.setting, Domain::partial(authoring(feed.setting)));
    ignoring(feed, StoredAs::Scd2, &domain, tracked(feed.setting, "s").as_deref());
}

/// Bitemporal, with retractions.
pub fn bitemporal(feed: &Feed) {
    let domain = of(feed.setting, Domain::two_clocks());
    Shape::new(StoredAs::Bitemporal, &domain, None).deliver(&feed.batches(&domain));
}

/// Bitemporal with masks or ignore-null.
pub fn bitemporal_partial(feed: &Feed) {
    let domain = of(feed.setting, Domain::partial_two_clocks(authoring(feed.setting)));
    ignoring(feed, StoredAs::Bitemporal, &domain, None);
}

/// A flow with partial updates; now and then it says `ON *`, spelled as a list that names all columns.
fn ignoring(feed: &Feed, stored_as: StoredAs, domain: &Domain, tracked: Option<&[&str]>) {
    let batches = feed.batches(domain);
    if domain.authoring == Authoring::NonNull && feed.setting & 8 == 8 {
        let all = ColumnSelection::Only(["a", "s"].map(str::to_owned).to_vec());
        let options = CdcOptions { ignore_null_updates: Some(all), ..CdcOptions::default() };
        return Shape::with(stored_as, domain, tracked, options).deliver(&batches);
    }
    Shape::new(stored_as, domain, tracked).deliver(&batches);
}

/// A series of snapshots in every shape that takes them, or one beside changes.
pub fn snapshots(deliveries: &Deliveries) {
    let domain = Domain { keys: 4, sequences: 8, ..Domain::snapshots() };
    match deliveries.setting & 3 {
        0 => series(deliveries, &domain, StoredAs::Scd1, None),
        1 => series(deliveries, &domain, StoredAs::Scd2, tracked(deliveries.setting >> 2, "b").as_deref()),
        _ => hybrid(deliveries, &domain),
    }
}

fn series(deliveries: &Deliveries, domain: &Domain, stored_as: StoredAs, tracked: Option<&[&str]>) {
    let mut flow = Shape::new(stored_as, domain, tracked);
    let mut known = Vec::new();
    for image in deliveries.images(domain) {
        known.extend(image.events());
        drop(flow.snapshot(&image, &any()).expect("a new version is taken"));
        assert_eq!(unsequenced(flow.target()), unsequenced(flow.expected(&known)), "of {known:#?}");
        assert_eq!(flow.store.side.batch.num_rows(), 0, "a snapshot flow needs no side rows");
        assert!(flow.snapshot(&image, &any()).is_err(), "a version is taken once");
    }
}

fn hybrid(deliveries: &Deliveries, domain: &Domain) {
    let mut flow = Shape::new(StoredAs::Scd1, domain, None);
    let (mut known, mut changes) = (Vec::new(), Vec::new());
    let all = deliveries.deliveries(domain);
    for delivery in &all {
        known.extend(delivery.events());
        match delivery {
            Delivery::Changes(events) => {
                changes.extend(events.iter().cloned());
                drop(flow.apply(events));
            }
            Delivery::Snapshot(image) => drop(flow.snapshot(image, &any()).expect("a new version is taken")),
        }
        assert_eq!(unsequenced(flow.target()), unsequenced(flow.expected(&known)), "of {all:#?}");
    }
    assert!(is_nothing(&flow.apply(&changes)), "C-08: all changes again change nothing");
}

/// A snapshot leaves the sequence of a row that it confirms.
fn unsequenced(rows: Vec<Row>) -> Vec<Row> {
    let strip = |mut row: Row| {
        row.remove("__SEQUENCE_AT");
        row
    };
    sorted(rows.into_iter().map(strip).collect())
}
