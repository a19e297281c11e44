//! Which events do the rows of a key stand for?
//!
//! | SCD2 row | event |
//! | --- | --- |
//! | delete row | a delete |
//! | interior row | an upsert of a whole row |
//! | author row | an upsert of the columns that it lists |
//! | target row with a tail row | an upsert of what the row shows, at the tail |
//! | target row at whose start no side row stands | an upsert of what it shows, at its start |
//! | target row that ends where no other starts | a delete |
//!
//! Interior, author and tail rows outside every version belonged to one that somebody deleted by hand: they are no events
//!
//!
//! Every event of a bitemporal target has a side row; its target rows stand for none.

use super::{
    super::{
        invalid,
        keys::{KeyIndex, UNKNOWN},
        kind_of, kinds,
        payload::RowRef,
        row_number,
    },
    sources::{BATCH, HIDDEN, Sources, VISIBLE, VISIBLE_END},
};
use crate::{
    algebra::{
        order::{Op, Ordinal},
        step::Write,
    },
    columnar::column,
    error::CdcError,
    names,
    side::SideKind,
    spec::{CdcSpec, StoredAs},
};

/// Where an event is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// In this side row.
    Hidden(u32),
    /// In this target row alone, or with this tail row.
    Visible { row: u32, tail: Option<u32> },
    /// In the end of this target row.
    VisibleEnd(u32),
    /// It is new.
    Batch,
}

/// An event of a key.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub(super) at: Ordinal,
    /// System sequence, and the one that it came with; 0 in an SCD2 target.
    pub(super) system: Ordinal,
    pub(super) given: Ordinal,
    pub(super) op: Op,
    pub(super) write: Option<Write<RowRef>>,
    /// Where its sequences are.
    pub(super) sequence: RowRef,
    pub(super) origin: Origin,
}

/// A key: what is stored of it, and the changes.
#[derive(Debug, Clone, Default)]
pub(super) struct Key {
    /// Target rows.
    pub(super) visible: Vec<u32>,
    /// Side rows, and what they stand for.
    pub(super) hidden: Vec<(u32, SideKind)>,
    pub(super) changes: Vec<u32>,
}

/// The rows of each key of the batch.
pub(super) fn keys(spec: &CdcSpec, sources: &Sources<'_>, index: &KeyIndex) -> Result<Vec<Key>, CdcError> {
    let mut keys = vec![Key::default(); index.len()];
    for (row, &group) in index.groups().iter().enumerate() {
        if let Some(key) = keys.get_mut(group as usize) {
            key.changes.push(row_number(row));
        }
    }
    let visible = &sources.prior.visible.batch;
    for (row, group) in index.probe(&spec.key_columns(visible)?)?.into_iter().enumerate() {
        let Some(key) = keys.get_mut(group as usize).filter(|_| group != UNKNOWN) else { continue };
        let start = RowRef { source: VISIBLE, row };
        let missing = sources.system.as_ref().is_some_and(|system| system.is_null(start));
        if sources.sequence.is_null(start) || missing {
            return Err(invalid(spec, visible, row, "a version has no start"));
        }
        key.visible.push(row_number(row));
    }
    let hidden = &sources.prior.hidden.batch;
    let (kinds, sequence) = (kinds(hidden)?, hidden_sequence(spec, sources)?);
    for (row, group) in index.probe(&spec.key_columns(hidden)?)?.into_iter().enumerate() {
        let Some(key) = keys.get_mut(group as usize).filter(|_| group != UNKNOWN) else { continue };
        let kind = kind_of(spec, hidden, &kinds, &sequence, row)?;
        let fits = match kind {
            SideKind::Delete | SideKind::Author => true,
            SideKind::Interior | SideKind::Tail => spec.stored_as == StoredAs::Scd2,
            SideKind::Upsert | SideKind::Retract => spec.stored_as == StoredAs::Bitemporal,
            SideKind::Change | SideKind::Snapshot => false,
        };
        let place = RowRef { source: HIDDEN, row };
        let missing = sources.system.as_ref().is_some_and(|system| system.is_null(place));
        if !fits || missing {
            let why = "a side row is of a kind that a target of this shape does not have";
            return Err(invalid(spec, hidden, row, why));
        }
        key.hidden.push((row_number(row), kind));
    }
    Ok(keys)
}

fn hidden_sequence(spec: &CdcSpec, sources: &Sources<'_>) -> Result<arrow_array::ArrayRef, CdcError> {
    let field = arrow_schema::Field::new(names::SEQUENCE_AT, spec.sequence_type.clone(), true);
    column(&sources.prior.hidden.batch, &field, "side rows")
}

impl Key {
    /// The changes as events.
    pub(super) fn new_events<'s>(&'s self, sources: &'s Sources<'_>) -> impl Iterator<Item = Event> + 's {
        self.changes.iter().map(|&row| {
            let place = RowRef { source: BATCH, row: row as usize };
            let op = sources.changes.ops.get(row as usize).copied().unwrap_or(Op::Upsert);
            let write = || match &sources.changes.authored {
                None => Write::whole(place),
                Some(leaves) => {
                    let set = leaves.iter().enumerate().filter(|(_, rows)| rows.value(row as usize));
                    Write { whole: None, leaves: set.map(|(leaf, _)| (leaf, place)).collect() }
                }
            };
            event(sources, op, (op == Op::Upsert).then(write), place, Origin::Batch)
        })
    }

    /// The events that the side rows of a bitemporal target stand for.
    pub(super) fn logged_events<'s>(&'s self, sources: &'s Sources<'_>) -> impl Iterator<Item = Event> + 's {
        self.hidden.iter().map(|&(row, kind)| {
            let place = RowRef { source: HIDDEN, row: row as usize };
            let (op, write) = match kind {
                SideKind::Delete => (Op::Delete, None),
                SideKind::Retract => (Op::Retract, None),
                SideKind::Author => (Op::Upsert, Some(partial(sources, row))),
                SideKind::Upsert
                | SideKind::Interior
                | SideKind::Tail
                | SideKind::Change
                | SideKind::Snapshot => (Op::Upsert, Some(Write::whole(place))),
            };
            event(sources, op, write, place, Origin::Hidden(row))
        })
    }

    /// The events that the rows of an SCD2 target stand for. Orders the target rows by start.
    pub(super) fn versions_as_events(
        &mut self,
        spec: &CdcSpec,
        sources: &Sources<'_>,
    ) -> Result<Vec<Event>, CdcError> {
        let start = |row: u32| sources.sequence.at(RowRef { source: VISIBLE, row: row as usize });
        let hidden_at = |row: u32| sources.sequence.at(RowRef { source: HIDDEN, row: row as usize });
        self.visible.sort_unstable_by_key(|&row| (start(row), row));
        self.hidden.sort_unstable_by_key(|&(row, _)| (hidden_at(row), row));
        let mut events = Vec::new();
        for &(row, _) in self.hidden.iter().filter(|(_, kind)| *kind == SideKind::Delete) {
            let place = RowRef { source: HIDDEN, row: row as usize };
            events.push(event(sources, Op::Delete, None, place, Origin::Hidden(row)));
        }
        let nexts = self.visible.iter().skip(1).map(|&row| Some(start(row))).chain([None]);
        for (&row, next) in self.visible.iter().zip(nexts) {
            let (from, to) = (start(row), sources.end_of(row));
            let overlaps = next.is_some_and(|next| to.is_none_or(|to| to > next));
            if overlaps || to.is_some_and(|to| to <= from) {
                let why = "its versions overlap, or one is empty";
                return Err(invalid(spec, &sources.prior.visible.batch, row as usize, why));
            }
            self.read_version(sources, row, (from, to), next, &mut events);
        }
        Ok(events)
    }

    /// Adds the events of one version; `next` is where another one starts.
    fn read_version(
        &self,
        sources: &Sources<'_>,
        row: u32,
        (from, to): (Ordinal, Option<Ordinal>),
        next: Option<Ordinal>,
        events: &mut Vec<Event>,
    ) {
        let hidden_at = |row: u32| sources.sequence.at(RowRef { source: HIDDEN, row: row as usize });
        let first = self.hidden.partition_point(|&(row, _)| hidden_at(row) < from);
        let own = self.hidden.iter().skip(first);
        let own = own.take_while(|&&(row, _)| to.is_none_or(|to| hidden_at(row) < to));
        let shown = RowRef { source: VISIBLE, row: row as usize };
        let (mut tail, mut stands_at_start) = (None, false);
        for &(hidden, kind) in own {
            let place = RowRef { source: HIDDEN, row: hidden as usize };
            let write = match kind {
                SideKind::Interior => Write::whole(place),
                SideKind::Author => partial(sources, hidden),
                SideKind::Tail => {
                    tail = Some(hidden);
                    continue;
                }
                SideKind::Delete
                | SideKind::Upsert
                | SideKind::Retract
                | SideKind::Change
                | SideKind::Snapshot => continue,
            };
            stands_at_start |= hidden_at(hidden) == from;
            events.push(event(sources, Op::Upsert, Some(write), place, Origin::Hidden(hidden)));
        }
        if tail.is_some() || !stands_at_start {
            let sequence = tail.map_or(shown, |tail| RowRef { source: HIDDEN, row: tail as usize });
            let origin = Origin::Visible { row, tail };
            events.push(event(sources, Op::Upsert, Some(Write::whole(shown)), sequence, origin));
        }
        if to.is_some() && next != to {
            let end = RowRef { source: VISIBLE_END, row: row as usize };
            events.push(event(sources, Op::Delete, None, end, Origin::VisibleEnd(row)));
        }
    }
}

/// What an author row writes.
fn partial(sources: &Sources<'_>, hidden: u32) -> Write<RowRef> {
    let place = RowRef { source: HIDDEN, row: hidden as usize };
    let listed = sources.listed(hidden).unwrap_or_default();
    Write { whole: None, leaves: listed.iter().map(|&leaf| (leaf, place)).collect() }
}

fn event(
    sources: &Sources<'_>,
    op: Op,
    write: Option<Write<RowRef>>,
    sequence: RowRef,
    origin: Origin,
) -> Event {
    let system = sources.system.as_ref().map_or(0, |system| system.at(sequence));
    // Ordinals of what was given are of an axis of their own: they are compared with one another only.
    let given = sources.given.as_ref().map_or(0, |given| given.at(sequence));
    Event { at: sources.sequence.at(sequence), system, given, op, write, sequence, origin }
}
