//! Which small histories make ties, late events, duplicates and early deletes likely?
//!
//! The worlds are small on purpose: with a handful of keys, sequences and values nearly every event meets another one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;

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
    /// Names of the columns of whole numbers that are not keys.
    pub columns: Vec<String>,
    /// Names of the columns that are structs of two whole numbers, `x` and `y`; now and then such a struct is NULL.
    pub structs: Vec<String>,
    /// Numbers are NULL and `0..values`.
    pub values: i64,
    /// What an upsert sets.
    pub authoring: Authoring,
    /// Truncates happen.
    pub truncates: bool,
    /// Retractions happen.
    pub retractions: bool,
}

/// What an upsert sets. What it does not set has a value nevertheless, which must not be looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Authoring {
    /// The whole row.
    #[default]
    Whole,
    /// Any leaves, none of them and all of them included: a list of columns to update, values that were not sent.
    Leaves,
    /// The leaves that are not NULL: ignore null updates.
    NonNull,
    /// The whole row, or any columns of it: a source whose columns come and go.
    Columns,
}

impl Default for Domain {
    /// Two keys, eight sequences, the columns `a` and `b` of two values and NULL; upserts and deletes.
    fn default() -> Self {
        Self {
            keys: 2,
            sequences: 8,
            systems: None,
            columns: vec!["a".to_owned(), "b".to_owned()],
            structs: vec![],
            values: 2,
            authoring: Authoring::Whole,
            truncates: false,
            retractions: false,
        }
    }
}

impl Domain {
    /// Three keys, six sequences; one event in ten is a truncate.
    pub fn truncated() -> Self {
        Self { keys: 3, sequences: 6, truncates: true, ..Self::default() }
    }

    /// Two keys, five sequences, the column `a` and the struct `s`, set in parts: three leaves that are often set at one
    /// sequence, often across a delete.
    pub fn partial(authoring: Authoring) -> Self {
        let (columns, structs) = (vec!["a".to_owned()], vec!["s".to_owned()]);
        Self { sequences: 5, columns, structs, authoring, ..Self::default() }
    }

    /// Two keys, four sequences, four system sequences: most histories correct something, and many do so twice. One event
    /// in ten is a retraction.
    pub fn two_clocks() -> Self {
        Self { sequences: 4, systems: Some(4), retractions: true, ..Self::default() }
    }

    /// The world of [`Domain::partial`] seen by two clocks.
    pub fn partial_two_clocks(authoring: Authoring) -> Self {
        Self { sequences: 4, systems: Some(4), retractions: true, ..Self::partial(authoring) }
    }

    /// Three keys, six sequences, which are the versions of snapshots as well.
    pub fn snapshots() -> Self {
        Self { keys: 3, sequences: 6, ..Self::default() }
    }
}

/// Histories over the domain; keys are the texts `k0`, `k1`, .. in one key column.
pub fn history(domain: &Domain, length: Range<usize>) -> impl Strategy<Value = Vec<Event>> + use<> {
    let systems = domain.systems.unwrap_or(1);
    let leaves = domain.columns.len() + 2 * domain.structs.len();
    let chosen = (vec(any::<bool>(), leaves), proptest::bool::weighted(0.3));
    let place = (0..domain.keys, 0..domain.sequences, 0..systems);
    let domain = domain.clone();
    let event = (place, 0..10_u8, payload(&domain), chosen).prop_map(
        move |((key, seq, sys), chance, values, (chosen, whole))| {
            let op = op(chance, &domain);
            let upsert = op == Op::Upsert;
            let authored = if upsert { authored(&domain, &values, &chosen, whole) } else { None };
            Event {
                key: if op == Op::Truncate { vec![] } else { vec![Value::Text(format!("k{key}"))] },
                seq: Value::Int(seq),
                op,
                values: if upsert { values } else { BTreeMap::new() },
                authored,
                sys: domain.systems.map(|_| Value::Int(sys)),
            }
        },
    );
    vec(event, length)
}

fn op(chance: u8, domain: &Domain) -> Op {
    match chance {
        0 if domain.truncates => Op::Truncate,
        1 if domain.retractions => Op::Retract,
        0..=3 => Op::Delete,
        _ => Op::Upsert,
    }
}

/// Values of all columns that are not keys.
pub(super) fn payload(domain: &Domain) -> impl Strategy<Value = BTreeMap<String, Value>> + use<> {
    let values = domain.values;
    let number = move || prop_oneof![1 => Just(Value::Null), 3 => (0..values).prop_map(Value::Int)];
    let pair = (number(), number()).prop_map(|(x, y)| Value::fields([("x", x), ("y", y)]));
    let pair = prop_oneof![1 => Just(Value::Null), 7 => pair];
    let names: Vec<String> = domain.columns.iter().chain(&domain.structs).cloned().collect();
    (vec(number(), domain.columns.len()), vec(pair, domain.structs.len())).prop_map(
        move |(numbers, pairs)| names.iter().cloned().zip(numbers.into_iter().chain(pairs)).collect(),
    )
}

fn authored(
    domain: &Domain,
    values: &BTreeMap<String, Value>,
    chosen: &[bool],
    whole: bool,
) -> Option<BTreeSet<String>> {
    let chosen = leaves(domain).into_iter().zip(chosen);
    let kept = chosen.filter(|((column, field), chosen)| match domain.authoring {
        Authoring::Whole => false,
        Authoring::Leaves | Authoring::Columns => **chosen,
        Authoring::NonNull => !leaf(values, column, *field).is_null(),
    });
    // A struct that is NULL has no leaves to name, only itself.
    let path = |((column, field), _): ((String, Option<&str>), _)| match field {
        Some(field) if domain.authoring != Authoring::Columns && !values[&column].is_null() => {
            format!("{column}.{field}")
        }
        _ => column,
    };
    let paths = kept.map(path).collect();
    match domain.authoring {
        Authoring::Whole => None,
        Authoring::Columns if whole => None,
        Authoring::Columns | Authoring::Leaves | Authoring::NonNull => Some(paths),
    }
}

fn leaves(domain: &Domain) -> Vec<(String, Option<&'static str>)> {
    let columns = domain.columns.iter().map(|column| (column.clone(), None));
    let fields = ["x", "y"].map(Some);
    let structs = domain.structs.iter().flat_map(|column| fields.map(|field| (column.clone(), field)));
    columns.chain(structs).collect()
}

fn leaf(values: &BTreeMap<String, Value>, column: &str, field: Option<&str>) -> Value {
    let value = values.get(column).cloned().unwrap_or(Value::Null);
    match (value, field) {
        (Value::Struct(fields), Some(name)) => {
            fields.into_iter().find(|(field, _)| field == name).map_or(Value::Null, |(_, value)| value)
        }
        (value, _) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest! {
        #[test]
        fn an_upsert_names_leaves_that_exist(events in history(&Domain::partial(Authoring::Leaves), 1..20)) {
            for event in events.iter().filter(|event| event.op == Op::Upsert) {
                for path in event.authored.as_ref().unwrap() {
                    let known =
                        if event.values["s"].is_null() { vec!["a", "s"] } else { vec!["a", "s.x", "s.y"] };
                    prop_assert!(known.contains(&path.as_str()), "{path} in {event:?}");
                }
            }
        }

        #[test]
        fn who_ignores_null_sets_no_null(events in history(&Domain::partial(Authoring::NonNull), 1..20)) {
            for event in &events {
                for path in event.authored.iter().flatten() {
                    let (column, field) = path.split_once('.').map_or((path.as_str(), None), |(c, f)| (c, Some(f)));
                    prop_assert!(!leaf(&event.values, column, field).is_null(), "{path} in {event:?}");
                }
            }
        }
    }
}
