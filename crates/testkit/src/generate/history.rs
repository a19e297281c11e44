//! Which small histories make ties, late events, duplicates and early deletes likely?

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::subsequence;

use crate::reference::{Event, Op, Value};

/// How small the world of a history is, and what may happen in it.
#[derive(Clone, Debug)]
pub struct Domain {
    /// How many keys there are.
    pub keys: usize,
    /// Sequences are `0..sequences`.
    pub sequences: i64,
    /// System sequences are `0..systems`; `None` unless bitemporal.
    pub systems: Option<i64>,
    /// Names of the columns that are not keys.
    pub columns: Vec<String>,
    /// Values are NULL and `0..values`.
    pub values: i64,
    /// Upserts set some columns only.
    pub partial: bool,
    /// Truncates happen.
    pub truncates: bool,
    /// Retractions happen.
    pub retractions: bool,
}

impl Default for Domain {
    /// Two keys, eight sequences, the columns `a` and `b` of two values and NULL; upserts and deletes.
    fn default() -> Self {
        Self {
            keys: 2,
            sequences: 8,
            systems: None,
            columns: vec!["a".to_owned(), "b".to_owned()],
            values: 2,
            partial: false,
            truncates: false,
            retractions: false,
        }
    }
}

/// Histories over the domain; keys are the texts `k0`, `k1`, .. in one key column.
pub fn history(domain: &Domain, length: Range<usize>) -> impl Strategy<Value = Vec<Event>> + use<> {
    fn op(chosen: u8, domain: &Domain) -> Op {
        match chosen {
            0 if domain.truncates => Op::Truncate,
            1 if domain.retractions => Op::Retract,
            0..=3 => Op::Delete,
            _ => Op::Upsert,
        }
    }
    let value = prop_oneof![1 => Just(Value::Null), 3 => (0..domain.values).prop_map(Value::Int)];
    let values = vec(value, domain.columns.len());
    let authored = subsequence(domain.columns.clone(), 0..=domain.columns.len());
    let systems = domain.systems.unwrap_or(1);
    let domain = domain.clone();
    let event = (0..domain.keys, 0..domain.sequences, 0..systems, 0..10_u8, values, authored).prop_map(
        move |(key, seq, sys, chosen, values, authored)| {
            let op = op(chosen, &domain);
            let upsert = op == Op::Upsert;
            let columns: BTreeMap<_, _> = domain.columns.iter().cloned().zip(values).collect();
            let authored: BTreeSet<_> = authored.into_iter().collect();
            Event {
                key: if op == Op::Truncate { vec![] } else { vec![Value::Text(format!("k{key}"))] },
                seq: Value::Int(seq),
                op,
                values: if upsert { columns } else { BTreeMap::new() },
                authored: (upsert && domain.partial).then_some(authored),
                sys: domain.systems.map(|_| Value::Int(sys)),
            }
        },
    );
    vec(event, length)
}
