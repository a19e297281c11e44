//! What must the rows be, computed from all events, by the shortest possible argument?
//!
//! The model keeps every event and recomputes everything. Per key it walks the sequences upwards; at each sequence one
//! `Step` says whether the past is forgotten and what is written. The rows after each step are the key's timeline:
//! SCD1 is its last state, SCD2 its runs of equal states, and bitemporal is SCD2 once per system time.
//!
//! Invariant: the result is a function of the *set* of events (Law 1). Nothing here is shared with the engine.

use std::collections::{BTreeMap, BTreeSet};

mod leaves;
mod value;

#[cfg(test)]
mod tests;

pub use value::Value;

use leaves::{authored_leaves, set_leaves, widen_shape};

/// A row of a target: column name to value.
pub type Row = BTreeMap<String, Value>;

/// What an event does. At one sequence the later variant comes after the earlier one (R-TIE).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    /// Removes all rows of all keys that are older. Its key is ignored.
    Truncate,
    /// A row of a snapshot; see [`snapshot`].
    SnapshotRow,
    /// Bitemporal only: at this business sequence nothing happened, as believed from the event's system time on.
    Retract,
    /// Ends the key's row.
    Delete,
    /// Writes the columns that the event authors.
    Upsert,
}

/// One change of one key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// Values of the key columns.
    pub key: Vec<Value>,
    /// Where the event stands in the order of changes (business time in bitemporal targets).
    pub seq: Value,
    /// What the event does.
    pub op: Op,
    /// Kept non-key columns; ignored unless `op` writes.
    pub values: BTreeMap<String, Value>,
    /// Columns, or `column.field` paths, that the event sets. `None`: the whole row.
    pub authored: Option<BTreeSet<String>>,
    /// When the fact became known; bitemporal only.
    pub sys: Option<Value>,
}

/// The events of a snapshot: everything older is gone, and these rows are there.
pub fn snapshot(version: &Value, rows: Vec<(Vec<Value>, BTreeMap<String, Value>)>) -> Vec<Event> {
    let event = |key, op, values| Event { key, seq: version.clone(), op, values, authored: None, sys: None };
    let barrier = event(vec![], Op::Truncate, BTreeMap::new());
    let rows = rows.into_iter().map(|(key, values)| event(key, Op::SnapshotRow, values));
    std::iter::once(barrier).chain(rows).collect()
}

/// The SCD type 1 target: per key the last state, with the sequence that wrote it as `__SEQUENCE_AT`.
pub fn scd1(keys: &[impl AsRef<str>], events: &[Event]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (key, timeline) in timelines(events.iter().collect(), &columns(events)) {
        if let Some(State { row: Some(mut row), written_at, .. }) = timeline.into_iter().next_back() {
            row.insert("__SEQUENCE_AT".to_owned(), written_at);
            rows.push(with_key(keys, &key, row));
        }
    }
    rows
}

/// The SCD type 2 target: per key the runs of states that are equal on the tracked columns (`None`: on all).
pub fn scd2(keys: &[impl AsRef<str>], events: &[Event], tracked: Option<&BTreeSet<String>>) -> Vec<Row> {
    versions(keys, events.iter().collect(), &columns(events), tracked)
}

/// The bitemporal target: each row of each belief, with the longest system interval in which it was believed.
pub fn bitemporal(keys: &[impl AsRef<str>], events: &[Event]) -> Vec<Row> {
    let columns = columns(events);
    let mut by_key: BTreeMap<Vec<Value>, Vec<&Event>> = BTreeMap::new();
    for event in events {
        by_key.entry(event.key.iter().map(Value::as_key).collect()).or_default().push(event);
    }
    by_key.into_values().flat_map(|events| beliefs(keys, &events, &columns)).collect()
}

/// The bitemporal rows of one key: its versions once per system time, and when each of them came and went.
fn beliefs(keys: &[impl AsRef<str>], events: &[&Event], columns: &BTreeSet<String>) -> Vec<Row> {
    let mut believed: BTreeMap<Row, Value> = BTreeMap::new();
    let mut rows = Vec::new();
    for sys in events.iter().map(|event| &event.sys).collect::<BTreeSet<_>>() {
        let now = sys.clone().unwrap_or(Value::Null);
        let known = events.iter().copied().filter(|event| event.sys <= *sys).collect();
        let belief: BTreeSet<Row> = versions(keys, known, columns, None).into_iter().collect();
        let (kept, ended) = believed.into_iter().partition(|(row, _)| belief.contains(row));
        believed = kept;
        rows.extend(BTreeMap::into_iter(ended).map(|(row, since)| with_system(row, since, now.clone())));
        for row in belief {
            believed.entry(row).or_insert_with(|| now.clone());
        }
    }
    rows.extend(believed.into_iter().map(|(row, since)| with_system(row, since, Value::Null)));
    rows
}

/// What one sequence of one key does: perhaps the past is forgotten, perhaps something is written.
#[derive(Default)]
struct Step {
    reset: bool,
    write: Option<Write>,
}

enum Write {
    /// The whole row.
    Whole(Row),
    /// Some leaves; the rest is inherited. The row only shows the shape of the structs in which the leaves lie.
    Leaves(BTreeMap<Vec<String>, Value>, Row),
}

/// A key after one of its steps.
struct State {
    seq: Value,
    row: Option<Row>,
    written_at: Value,
}

/// Every column that some event mentions.
fn columns(events: &[Event]) -> BTreeSet<String> {
    events.iter().flat_map(|event| event.values.keys().cloned()).collect()
}

/// The states of each key in sequence order. A truncate belongs to every key.
fn timelines(events: Vec<&Event>, columns: &BTreeSet<String>) -> BTreeMap<Vec<Value>, Vec<State>> {
    let (truncates, changes): (Vec<_>, Vec<_>) =
        events.into_iter().partition(|event| event.op == Op::Truncate);
    let mut by_key: BTreeMap<Vec<Value>, Vec<&Event>> = BTreeMap::new();
    for event in changes {
        by_key.entry(event.key.iter().map(Value::as_key).collect()).or_default().push(event);
    }
    by_key.into_iter().map(|(key, own)| (key, timeline([own, truncates.clone()].concat(), columns))).collect()
}

fn timeline(events: Vec<&Event>, columns: &BTreeSet<String>) -> Vec<State> {
    let mut by_seq: BTreeMap<&Value, Vec<&Event>> = BTreeMap::new();
    for event in events {
        by_seq.entry(&event.seq).or_default().push(event);
    }
    let (mut row, mut written_at) = (None, Value::Null);
    let mut states = Vec::new();
    for (seq, group) in by_seq {
        let upserted = group.iter().any(|event| event.op == Op::Upsert);
        let before = row.clone();
        row = step(group).apply(row, columns);
        if upserted || row != before {
            written_at = seq.clone();
        }
        states.push(State { seq: seq.clone(), row: row.clone(), written_at: written_at.clone() });
    }
    states
}

/// Folds the events at one sequence of one key: by system time, then by rank, then by payload.
fn step(events: Vec<&Event>) -> Step {
    let mut by_rank: BTreeMap<(&Option<Value>, Op), Vec<&Event>> = BTreeMap::new();
    for event in events {
        by_rank.entry((&event.sys, event.op)).or_default().push(event);
    }
    let mut step = Step::default();
    for ((_, op), group) in by_rank {
        match op {
            Op::Retract => step = Step::default(),
            Op::Truncate | Op::Delete => step = Step { reset: true, write: None },
            Op::SnapshotRow | Op::Upsert => step.write = Some(write(step.write, &group)),
        }
    }
    step
}

/// Ties. Upserts that author the whole row are settled first, as whole rows: the larger one wins, compared by values in
/// the order of the columns' names. The winner is then merged leaf by leaf with the upserts that author some leaves: an
/// author before a non-author, the larger of two authors. (Leaf by leaf at once would mix two whole rows as soon as a third
/// event authors a part, and would then not be associative.) What is known later comes over what was known earlier.
fn write(earlier: Option<Write>, group: &[&Event]) -> Write {
    let (whole, parts): (Vec<&Event>, Vec<&Event>) = group.iter().partition(|event| event.authored.is_none());
    let winner = whole.into_iter().max_by_key(|event| &event.values);
    if parts.is_empty() {
        return Write::Whole(winner.map(|event| event.values.clone()).unwrap_or_default());
    }
    let mut leaves: BTreeMap<Vec<String>, Value> = BTreeMap::new();
    let mut shape = Row::new();
    for event in winner.into_iter().chain(parts) {
        for (path, value) in authored_leaves(event) {
            let largest = leaves.entry(path).or_insert(Value::Null);
            *largest = value.max(largest.clone());
        }
        widen_shape(&mut shape, &event.values);
    }
    match earlier {
        // Who authors the whole row leaves nothing to inherit.
        _ if winner.is_some() => {
            let mut row = Row::new();
            set_leaves(&mut row, leaves, &shape);
            Write::Whole(row)
        }
        None => Write::Leaves(leaves, shape),
        Some(Write::Whole(mut row)) => {
            set_leaves(&mut row, leaves, &shape);
            Write::Whole(row)
        }
        Some(Write::Leaves(mut all, mut shapes)) => {
            // A struct that is NULL as a whole stands for all the leaves below it.
            all.retain(|path, _| !leaves.keys().any(|above| path.starts_with(above)));
            all.extend(leaves);
            widen_shape(&mut shapes, &shape);
            Write::Leaves(all, shapes)
        }
    }
}

impl Step {
    fn apply(self, before: Option<Row>, columns: &BTreeSet<String>) -> Option<Row> {
        let inherited = if self.reset { None } else { before };
        let mut row = match self.write {
            None => inherited?,
            Some(Write::Whole(row)) => row,
            Some(Write::Leaves(leaves, shape)) => {
                let mut row = inherited.unwrap_or_default();
                set_leaves(&mut row, leaves, &shape);
                row
            }
        };
        for column in columns {
            row.entry(column.clone()).or_insert(Value::Null);
        }
        Some(row)
    }
}

/// The runs of each key as rows with `__START_AT` and `__END_AT`.
fn versions(
    keys: &[impl AsRef<str>],
    events: Vec<&Event>,
    columns: &BTreeSet<String>,
    tracked: Option<&BTreeSet<String>>,
) -> Vec<Row> {
    let tracked = tracked.unwrap_or(columns);
    let same = |left: &Row, right: &Row| tracked.iter().all(|column| left.get(column) == right.get(column));
    let mut rows = Vec::new();
    for (key, timeline) in timelines(events, columns) {
        let mut open: Option<(Value, Row)> = None;
        let mut close = |(start, row), end| rows.push(with_key(keys, &key, with_interval(row, start, end)));
        for State { seq, row, .. } in timeline {
            open = match (open, row) {
                (Some((start, last)), Some(row)) if same(&last, &row) => Some((start, row)),
                (ended, row) => {
                    if let Some(version) = ended {
                        close(version, seq.clone());
                    }
                    row.map(|row| (seq, row))
                }
            };
        }
        if let Some(version) = open {
            close(version, Value::Null);
        }
    }
    rows
}

fn with_key(keys: &[impl AsRef<str>], key: &[Value], mut row: Row) -> Row {
    row.extend(keys.iter().map(|name| name.as_ref().to_owned()).zip(key.iter().cloned()));
    row
}

fn with_interval(mut row: Row, start: Value, end: Value) -> Row {
    row.extend([("__START_AT".to_owned(), start), ("__END_AT".to_owned(), end)]);
    row
}

fn with_system(mut row: Row, start: Value, end: Value) -> Row {
    row.extend([("__SYSTEM_START_AT".to_owned(), start), ("__SYSTEM_END_AT".to_owned(), end)]);
    row
}
