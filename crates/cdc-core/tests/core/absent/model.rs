//! What must target and side rows be, computed from all events?

use std::collections::{BTreeMap, BTreeSet};

use strandline_cdc_core::side::SideKind;
use strandline_testkit::reference::{self, Event, Op, Row, Value};

use super::PAYLOAD;
use crate::flow::sorted;

/// Events of whole rows at one sequence of a key are one: the larger (R-TIE). The model merges them leaf by leaf as soon
/// as an event of some columns stands beside them, which nobody can who has kept the larger one only.
fn settled(events: &[Event]) -> Vec<Event> {
    let is_whole = |event: &&Event| event.op == Op::Upsert && event.authored.is_none();
    let mut wholes: BTreeMap<(Vec<Value>, Value), Event> = BTreeMap::new();
    for event in events.iter().filter(is_whole) {
        let best = wholes.entry((event.key.clone(), event.seq.clone())).or_insert_with(|| event.clone());
        if event.values > best.values {
            *best = event.clone();
        }
    }
    let rest = events.iter().filter(|event| !is_whole(event)).cloned();
    rest.chain(wholes.into_values()).collect()
}

/// The target.
pub(super) fn expected_target(events: &[Event]) -> Vec<Row> {
    let mut rows = reference::scd1(&["k"], &settled(events));
    for row in &mut rows {
        for name in PAYLOAD {
            row.entry(name.to_owned()).or_insert(Value::Null);
        }
    }
    sorted(rows)
}

/// The side rows that the events need: no fewer, no more.
pub(super) fn expected_side(events: &[Event]) -> Vec<Row> {
    let mut by_key: BTreeMap<Value, Vec<Event>> = BTreeMap::new();
    for event in settled(events) {
        by_key.entry(event.key[0].clone()).or_default().push(event);
    }
    sorted(by_key.into_iter().flat_map(|(key, events)| side_of(&key, &events)).collect())
}

fn side_of(key: &Value, events: &[Event]) -> Vec<Row> {
    let side = |kind: SideKind, seq: &Value, authored: Value, value: &dyn Fn(&str) -> Value| {
        let mut row: Row = PAYLOAD.iter().map(|name| ((*name).to_owned(), value(name))).collect();
        row.insert("k".to_owned(), key.clone());
        row.insert("__SEQUENCE_AT".to_owned(), seq.clone());
        row.insert("__strandline_kind".to_owned(), Value::Int(kind.code().into()));
        row.insert("__strandline_authored".to_owned(), authored);
        row
    };
    let nothing = |_: &str| Value::Null;
    let deleted = events.iter().filter(|event| event.op == Op::Delete).map(|event| &event.seq).max();
    let live: Vec<&Event> = events
        .iter()
        .filter(|event| event.op == Op::Upsert && deleted.is_none_or(|deleted| event.seq >= *deleted))
        .collect();
    let Some(newest) = live.iter().map(|event| &event.seq).max() else {
        return deleted.map(|seq| side(SideKind::Delete, seq, Value::Null, &nothing)).into_iter().collect();
    };
    let authors = |event: &Event, name: &str| event.authored.as_ref().is_none_or(|set| set.contains(name));
    // Per column the sequence of its newest author.
    let newest_author: BTreeMap<&str, &Value> = PAYLOAD
        .iter()
        .filter_map(|name| {
            let seqs = live.iter().filter(|event| authors(event, name)).map(|event| &event.seq);
            Some((*name, seqs.max()?))
        })
        .collect();
    let mut rows = Vec::new();
    if let (Some(deleted), true) = (deleted, newest_author.len() < PAYLOAD.len()) {
        rows.push(side(SideKind::Delete, deleted, Value::Null, &nothing));
    }
    let whole = live.iter().filter(|event| event.authored.is_none()).max_by_key(|event| &event.seq);
    let shown_whole = whole.filter(|whole| newest_author.values().any(|seq| **seq == whole.seq));
    let mut seqs: BTreeSet<&Value> = live.iter().map(|event| &event.seq).collect();
    seqs.retain(|seq| *seq == newest || newest_author.values().any(|other| other == seq));
    for seq in seqs {
        let partial: Vec<_> =
            live.iter().filter(|event| event.seq == *seq && event.authored.is_some()).collect();
        let shown: Vec<&str> = PAYLOAD
            .into_iter()
            .filter(|name| newest_author.get(name) == Some(&seq))
            .filter(|name| partial.iter().any(|event| authors(event, name)))
            .collect();
        let beside_whole = whole.is_some_and(|whole| whole.seq == *seq);
        if partial.is_empty() || (shown.is_empty() && beside_whole) {
            continue;
        }
        let value = |name: &str| {
            let authors = partial.iter().filter(|event| authors(event, name));
            let largest = authors.map(|event| event.values[name].clone()).max();
            largest.filter(|_| beside_whole && shown.contains(&name)).unwrap_or(Value::Null)
        };
        let list = Value::List(shown.iter().map(|name| Value::text(*name)).collect());
        rows.push(side(SideKind::Author, seq, list, &value));
    }
    let plain = whole.is_some_and(|whole| whole.seq == *newest) && rows.is_empty();
    if let (Some(whole), false) = (shown_whole, plain) {
        let value = |name: &str| whole.values[name].clone();
        rows.push(side(SideKind::Author, &whole.seq, Value::Null, &value));
    }
    rows
}
