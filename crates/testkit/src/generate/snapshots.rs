//! In which series of snapshots, and between which changes, can a source be delivered?

use std::collections::BTreeMap;
use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, subsequence};

use super::history::payload;
use super::{Domain, arrivals, history};
use crate::reference::{self, Event, Value};

/// The complete source at one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The version.
    pub version: Value,
    /// Keys, each once, and the values of the columns that are not keys.
    pub rows: Vec<(Vec<Value>, BTreeMap<String, Value>)>,
}

impl Image {
    /// The image as events of the reference model.
    pub fn events(&self) -> Vec<Event> {
        reference::snapshot(&self.version, self.rows.clone())
    }
}

/// What arrives at once on a target that has both kinds of flows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Change events.
    Changes(Vec<Event>),
    /// The next snapshot.
    Snapshot(Image),
}

impl Delivery {
    /// The delivery as events of the reference model.
    pub fn events(&self) -> Vec<Event> {
        match self {
            Self::Changes(events) => events.clone(),
            Self::Snapshot(image) => image.events(),
        }
    }
}

/// Series of snapshots with rising versions from the sequences of the domain. A key is missing in two of five images, and
/// a fresh row often equals the one before.
pub fn snapshots(domain: &Domain, length: Range<usize>) -> impl Strategy<Value = Vec<Image>> + use<> {
    let versions: Vec<i64> = (0..domain.sequences).collect();
    let length = length.start..length.end.min(versions.len() + 1);
    let domain = domain.clone();
    subsequence(versions, length).prop_flat_map(move |versions| {
        let rows = vec(proptest::option::weighted(0.6, payload(&domain)), domain.keys);
        vec(rows, versions.len()).prop_map(move |images| {
            versions.iter().zip(images).map(|(version, rows)| image(*version, rows)).collect()
        })
    })
}

fn image(version: i64, rows: Vec<Option<BTreeMap<String, Value>>>) -> Image {
    let row = |(key, row): (usize, Option<_>)| Some((vec![Value::Text(format!("k{key}"))], row?));
    Image { version: Value::Int(version), rows: rows.into_iter().enumerate().filter_map(row).collect() }
}

/// Series of snapshots beside histories, with the same keys, columns and sequences: an event at the version of a snapshot is
/// frequent, and so is a key that only one side knows.
pub fn hybrid(
    domain: &Domain,
    versions: Range<usize>,
    length: Range<usize>,
) -> impl Strategy<Value = (Vec<Image>, Vec<Event>)> + use<> {
    (snapshots(domain, versions), history(domain, length))
}

/// Arrivals of snapshots and changes: the changes as in [`arrivals`], the snapshots once, in their order, between any two
/// batches.
pub fn deliveries(images: Vec<Image>, events: Vec<Event>) -> impl Strategy<Value = Vec<Delivery>> {
    let places = vec(any::<Index>(), images.len());
    (arrivals(events), places).prop_map(move |(batches, places)| {
        let mut delivered: Vec<_> = batches.into_iter().map(Delivery::Changes).collect();
        let mut places: Vec<usize> = places.iter().map(|place| place.index(delivered.len() + 1)).collect();
        places.sort_unstable();
        // From the last one on, so that the places before it stay where they are.
        for (place, image) in places.into_iter().zip(images.clone()).rev() {
            delivered.insert(place, Delivery::Snapshot(image));
        }
        delivered
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivered() -> impl Strategy<Value = (Vec<Image>, Vec<Event>, Vec<Delivery>)> {
        hybrid(&Domain::snapshots(), 0..4, 0..8).prop_flat_map(|(images, events)| {
            (Just(images.clone()), Just(events.clone()), deliveries(images, events))
        })
    }

    proptest! {
        #[test]
        fn versions_rise_and_nothing_is_lost((images, events, delivered) in delivered()) {
            prop_assert!(images.windows(2).all(|pair| pair[0].version < pair[1].version));
            let (mut snapshots, mut changes) = (Vec::new(), Vec::new());
            for delivery in delivered {
                match delivery {
                    Delivery::Snapshot(image) => snapshots.push(image),
                    Delivery::Changes(batch) => changes.extend(batch),
                }
            }
            prop_assert_eq!(snapshots, images);
            prop_assert!(events.iter().all(|event| changes.contains(event)));
            prop_assert!(changes.iter().all(|event| events.contains(event)));
        }
    }
}
