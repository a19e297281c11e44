//! Bytes as snapshots with rising versions, and changes between them.

use arbitrary::Arbitrary;
use strandline_testkit::{
    generate::{Delivery, Domain, Image},
    reference::Value,
};

use crate::feed::{Told, key_of, values};

const LONGEST: usize = 16;

/// Snapshots, alone or among batches of changes.
#[derive(Debug, Clone, Arbitrary)]
pub struct Deliveries {
    pub(crate) setting: u8,
    items: Vec<Item>,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
struct Item {
    what: u8,
    told: Told,
    /// For a snapshot: of each key whether it is there and what it has.
    rows: [u8; 4],
}

impl Deliveries {
    /// The snapshots alone, in order.
    pub(crate) fn images(&self, domain: &Domain) -> Vec<Image> {
        let snapshots = self.deliveries(domain).into_iter().filter_map(|delivery| match delivery {
            Delivery::Snapshot(image) => Some(image),
            Delivery::Changes(_) => None,
        });
        snapshots.collect()
    }

    /// All of it. A batch of changes ends where a snapshot stands, or where a bit says so.
    pub(crate) fn deliveries(&self, domain: &Domain) -> Vec<Delivery> {
        let mut all: Vec<Delivery> = Vec::new();
        let mut version = -1;
        for item in self.items.iter().take(LONGEST) {
            if item.what & 3 == 0 {
                version += 1 + i64::from(item.what >> 2 & 1);
                all.push(Delivery::Snapshot(item.image(domain, version)));
                continue;
            }
            let event = item.told.event(domain);
            match all.last_mut() {
                Some(Delivery::Changes(batch)) if item.what & 8 == 0 => batch.push(event),
                _ => all.push(Delivery::Changes(vec![event])),
            }
        }
        all
    }
}

impl Item {
    fn image(self, domain: &Domain, version: i64) -> Image {
        let keys = (0_u8..).zip(self.rows).take(domain.keys);
        let present = keys.filter(|(_, bits)| bits & 3 != 0);
        let rows = present.map(|(key, bits)| (vec![key_of(domain, key)], values(domain, [bits >> 2, 0])));
        Image { version: Value::Int(version), rows: rows.collect() }
    }
}
