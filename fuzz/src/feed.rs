//! Bytes as a history that arrives in batches.

use std::collections::{BTreeMap, BTreeSet};

use arbitrary::Arbitrary;
use strandline_testkit::{
    generate::{Authoring, Domain},
    reference::{Event, Op, Value},
};

/// As long as the reference model is still fast.
const LONGEST: usize = 20;

/// A history in an arrival, and a byte that chooses what it arrives at.
#[derive(Debug, Clone, Arbitrary)]
pub struct Feed {
    pub(crate) setting: u8,
    told: Vec<Told>,
}

/// One event. Any byte means something; few bits of each count, so that a changed byte is a small change.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub(crate) struct Told {
    arrival: u8,
    op: u8,
    place: u8,
    values: [u8; 2],
    authored: u8,
}

impl Feed {
    /// The batches in which the history arrives: some events twice at once, some batches again later.
    pub(crate) fn batches(&self, domain: &Domain) -> Vec<Vec<Event>> {
        let mut batches: Vec<Vec<Event>> = vec![vec![]];
        for told in self.told.iter().take(LONGEST) {
            if told.arrival & 3 == 0 {
                batches.push(vec![]);
            }
            let event = told.event(domain);
            let times = if told.arrival >> 2 & 7 == 1 { 2 } else { 1 };
            if let Some(batch) = batches.last_mut() {
                batch.extend(std::iter::repeat_n(event, times));
            }
            if told.arrival >> 5 == 1 {
                let again = batches.get(usize::from(told.place) % batches.len()).cloned().unwrap_or_default();
                batches.extend([again, vec![]]);
            }
        }
        batches
    }
}

impl Told {
    pub(crate) fn event(self, domain: &Domain) -> Event {
        let op = match self.op & 15 {
            0 if domain.truncates => Op::Truncate,
            1 if domain.retractions => Op::Retract,
            0..=4 => Op::Delete,
            _ => Op::Upsert,
        };
        let (key, seq, sys) = (self.place & 3, self.place >> 2 & 7, self.place >> 5);
        let upsert = op == Op::Upsert;
        let values = if upsert { values(domain, self.values) } else { BTreeMap::new() };
        Event {
            key: if op == Op::Truncate { vec![] } else { vec![key_of(domain, key)] },
            seq: Value::Int(i64::from(seq) % domain.sequences),
            op,
            authored: upsert.then(|| authored(domain, &values, self.authored)).flatten(),
            values,
            sys: domain.systems.map(|systems| Value::Int(i64::from(sys) % systems)),
        }
    }
}

pub(crate) fn key_of(domain: &Domain, number: u8) -> Value {
    Value::Text(format!("k{}", usize::from(number) % domain.keys))
}

/// Values of all columns: two bits a number, four bits a struct of two of which one choice is NULL.
pub(crate) fn values(domain: &Domain, [first, second]: [u8; 2]) -> BTreeMap<String, Value> {
    let number = |bits: u8| if bits & 3 == 0 { Value::Null } else { Value::Int(i64::from(bits & 3)) };
    let numbers = domain.columns.iter().enumerate().map(|(i, name)| (name, number(first >> (2 * i))));
    let pair = |bits: u8| match bits & 15 {
        15 => Value::Null,
        bits => Value::fields([("x", number(bits)), ("y", number(bits >> 2))]),
    };
    let pairs = domain.structs.iter().enumerate().map(|(i, name)| (name, pair(second >> (4 * i))));
    numbers.chain(pairs).map(|(name, value)| (name.clone(), value)).collect()
}

/// The leaves that an upsert sets; a struct that is NULL has none to name, only itself.
fn authored(domain: &Domain, values: &BTreeMap<String, Value>, bits: u8) -> Option<BTreeSet<String>> {
    let leaves = values.iter().flat_map(|(name, value)| match value {
        Value::Struct(fields) => {
            fields.iter().map(|(field, value)| (format!("{name}.{field}"), value)).collect()
        }
        value => vec![(name.clone(), value)],
    });
    let chosen = leaves.enumerate().filter(|(i, (_, value))| match domain.authoring {
        Authoring::Whole | Authoring::Columns => true,
        Authoring::Leaves => bits >> i & 1 == 1,
        Authoring::NonNull => !value.is_null(),
    });
    let partial = matches!(domain.authoring, Authoring::Leaves | Authoring::NonNull);
    partial.then(|| chosen.map(|(_, (path, _))| path).collect())
}
