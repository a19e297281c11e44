//! SCD2 under partial updates: what must a key show, and what must be hidden beside it?
//!
//! | event | where it is kept |
//! | --- | --- |
//! | the only event of a version, of a whole row | in the target row |
//! | the last event of a version, of a whole row | in the target row, its sequence in a tail row |
//! | another upsert of a whole row | in an interior row |
//! | an upsert of some columns | in an author row, with its own values |
//! | a delete that ends a version | in the target row |
//! | a delete beside an upsert of some columns, or one that ends nothing | in a delete row |
//! | a delete beside an upsert of a whole row | nowhere: it changes nothing |

use super::{
    super::payload::RowRef,
    Effects, Event, Key, Origin, Row, Sources, count_late,
    output::Values,
    settle,
    settled::{Settled, What},
    sources::{HIDDEN, NULL, VISIBLE, batch_row},
};
use crate::{
    algebra::{
        order::{Op, Ordinal},
        step::{Filled, Step, Write},
        timeline::{Found, Version, fold},
    },
    error::CdcError,
    side::SideKind,
    spec::CdcSpec,
};

pub(super) fn reconcile(
    spec: &CdcSpec,
    sources: &Sources<'_>,
    mut key: Key,
    effects: &mut Effects,
    lost: &mut impl FnMut(u64, RowRef),
) -> Result<(), CdcError> {
    let mut events = key.versions_as_events(spec, sources)?;
    let is_current = key.visible.iter().any(|&row| sources.end_of(row).is_none());
    let dropped = key.changes.len();
    key.changes.retain(|&row| is_current || !sources.horizon.covers(row));
    let dropped = dropped.saturating_sub(key.changes.len());
    effects.counts.horizon_dropped = effects.counts.horizon_dropped.saturating_add(dropped as u64);
    let Some(&any) = key.changes.first() else { return Ok(()) };
    let new: Vec<Event> = key.new_events(sources).collect();
    count_late(&events, &new, |event| event.at, &mut effects.counts);
    events.extend(new);
    let settled = settle(spec, sources, &mut events, lost);
    let history = History::new(sources, &settled);
    let mut found = Vec::new();
    fold(0..history.moments.len(), |i| history.op(i), |i| history.repeats(i), |what| found.push(what));
    let mut changes = Changes { sources, history: &history, key: &key, any: batch_row(any), effects };
    changes.put_out(&found);
    Ok(())
}

/// The moments of a key, and the row after each.
struct History<'s> {
    sources: &'s Sources<'s>,
    moments: Vec<Moment<'s>>,
}

struct Moment<'s> {
    at: Ordinal,
    events: &'s [Settled],
    step: Step<RowRef>,
    filled: Option<Filled<RowRef>>,
}

impl<'s> History<'s> {
    fn new(sources: &'s Sources<'s>, settled: &'s [Settled]) -> Self {
        let mut moments: Vec<Moment<'s>> = Vec::new();
        for events in settled.chunk_by(|a, b| a.at == b.at) {
            let Some(first) = events.first() else { continue };
            let mut step = Step::default();
            for event in events {
                step.take(event.op, event.write.as_ref());
            }
            let before = moments.last().and_then(|moment| moment.filled.as_ref());
            let filled = step.apply(before, sources.leaves.len(), NULL);
            moments.push(Moment { at: first.at, events, step, filled });
        }
        Self { sources, moments }
    }

    fn op(&self, i: usize) -> Op {
        let shows = self.moments.get(i).is_some_and(|moment| moment.filled.is_some());
        if shows { Op::Upsert } else { Op::Delete }
    }

    fn repeats(&self, i: usize) -> bool {
        let row = |i: usize| self.moments.get(i).and_then(|moment| moment.filled.as_ref());
        match (i.checked_sub(1).and_then(row), row(i)) {
            (Some(before), Some(after)) => self.sources.repeats(before, after),
            _ => false,
        }
    }
}

impl Moment<'_> {
    fn sequence(&self) -> Option<RowRef> {
        self.events.first().map(|event| event.sequence)
    }

    /// True when all that must be known of this moment is one upsert of a whole row.
    fn is_whole(&self) -> bool {
        let mut parts =
            self.events.iter().filter(|event| event.op == Op::Upsert).flat_map(|event| &event.parts);
        matches!((parts.next(), parts.next()), (Some(part), None) if matches!(part.what, What::Whole(_)))
    }
}

/// A side row that must be there.
struct Wanted<'w> {
    at: Ordinal,
    sequence: Option<RowRef>,
    kind: SideKind,
    what: &'w What,
    /// Where its event is stored; `None` for a row that is found by its place.
    origin: Option<Origin>,
}

struct Changes<'c, 's> {
    sources: &'c Sources<'s>,
    history: &'c History<'c>,
    key: &'c Key,
    /// A row of the key.
    any: RowRef,
    effects: &'c mut Effects,
}

impl Changes<'_, '_> {
    fn put_out(&mut self, found: &[Found]) {
        let mut kept_hidden: Vec<u32> = Vec::new();
        let mut kept_visible: Vec<u32> = Vec::new();
        for what in found {
            match *what {
                Found::UnmatchedDelete(i) => self.hide_deletes(i, &mut kept_hidden),
                Found::Version(version) => {
                    kept_visible.extend(self.show(version));
                    for i in version.first..=version.tail {
                        self.hide(i, version, &mut kept_hidden);
                    }
                    self.count_delete(version);
                }
            }
        }
        kept_visible.sort_unstable();
        let gone = self.key.visible.iter().filter(|row| kept_visible.binary_search(row).is_err());
        self.effects.visible_gone.extend(gone);
        kept_hidden.sort_unstable();
        let gone = self.key.hidden.iter().filter(|(row, _)| kept_hidden.binary_search(row).is_err());
        self.effects.hidden_gone.extend(gone.map(|(row, _)| row));
    }

    fn moment(&self, i: usize) -> Option<&Moment<'_>> {
        self.history.moments.get(i)
    }

    /// Shows a version: the stored row that shows it already, or a new one.
    fn show(&mut self, version: Version) -> Option<u32> {
        let (first, tail) = (self.moment(version.first)?, self.moment(version.tail)?);
        let end = version.end.and_then(|end| self.moment(end));
        let values = tail.filled.clone()?;
        let start_of = |row: u32| self.sources.sequence.at(RowRef { source: VISIBLE, row: row as usize });
        // Target rows are in order of their start.
        let at = self.key.visible.partition_point(|&row| start_of(row) < first.at);
        let stored = self.key.visible.get(at).copied().filter(|&row| start_of(row) == first.at);
        if let Some(row) = stored {
            let shown = Filled::Whole(RowRef { source: VISIBLE, row: row as usize });
            if self.sources.end_of(row) == end.map(|end| end.at) && self.sources.same(&values, &shown) {
                return Some(row);
            }
        }
        let row = Row {
            key: self.any,
            values: Values::Filled(values),
            sequence: first.sequence()?,
            end: end.and_then(Moment::sequence),
            system: None,
            system_end: None,
            kind: None,
            authored: None,
        };
        self.effects.visible.push(row);
        None
    }

    /// Keeps what must be known of a moment within a version.
    fn hide(&mut self, i: usize, version: Version, kept: &mut Vec<u32>) {
        let Some(moment) = self.history.moments.get(i) else { return };
        if i == version.tail && moment.is_whole() {
            if version.first != version.tail {
                self.keep_or_add(
                    &Wanted {
                        at: moment.at,
                        sequence: moment.sequence(),
                        kind: SideKind::Tail,
                        what: &What::Bare,
                        origin: None,
                    },
                    kept,
                );
            }
            return;
        }
        for event in moment.events {
            for part in &event.parts {
                let kind = match part.what {
                    What::Whole(_) => SideKind::Interior,
                    What::Leaves(_) => SideKind::Author,
                    What::Bare => continue,
                };
                self.keep_or_add(
                    &Wanted {
                        at: moment.at,
                        sequence: Some(event.sequence),
                        kind,
                        what: &part.what,
                        origin: Some(part.origin),
                    },
                    kept,
                );
            }
        }
        // Beside an upsert of some columns a delete cuts off what they would inherit.
        let leaves = self.sources.leaves.len();
        let some_only = |write: &Write<RowRef>| write.whole.is_none() && write.leaves.len() < leaves;
        let cuts = moment.step.reset && moment.step.write.as_ref().is_some_and(some_only);
        if cuts {
            self.hide_deletes(i, kept);
        }
    }

    fn hide_deletes(&mut self, i: usize, kept: &mut Vec<u32>) {
        let Some(moment) = self.history.moments.get(i) else { return };
        for event in moment.events.iter().filter(|event| event.op == Op::Delete) {
            let origin = event.parts.first().map(|part| part.origin);
            self.keep_or_add(
                &Wanted {
                    at: moment.at,
                    sequence: Some(event.sequence),
                    kind: SideKind::Delete,
                    what: &What::Bare,
                    origin,
                },
                kept,
            );
        }
    }

    /// Keeps the side row that says this already, or adds one.
    fn keep_or_add(&mut self, wanted: &Wanted<'_>, kept: &mut Vec<u32>) {
        if let Some(row) = self.stored(wanted) {
            kept.push(row);
            return;
        }
        let Some(sequence) = wanted.sequence else { return };
        let (values, authored) = match wanted.what {
            What::Bare => (Values::None, None),
            What::Whole(row) => (Values::Filled(Filled::Whole(*row)), None),
            What::Leaves(leaves) => {
                (Values::Leaves(leaves.clone()), Some(leaves.iter().map(|(leaf, _)| *leaf).collect()))
            }
        };
        self.effects.hidden.push(Row {
            key: self.any,
            values,
            sequence,
            end: None,
            system: None,
            system_end: None,
            kind: Some(wanted.kind),
            authored,
        });
    }

    /// The side row that says what is wanted.
    fn stored(&self, wanted: &Wanted<'_>) -> Option<u32> {
        let hidden_at = |row: u32| self.sources.sequence.at(RowRef { source: HIDDEN, row: row as usize });
        let from = self.key.hidden.partition_point(|&(row, _)| hidden_at(row) < wanted.at);
        let mut here = self.key.hidden.iter().skip(from).take_while(|&&(row, _)| hidden_at(row) == wanted.at);
        let stored = match wanted.origin {
            Some(Origin::Hidden(row)) => here.find(|(hidden, _)| *hidden == row),
            // A tail row says where it stands, and nothing else.
            None => here.find(|(_, stored)| *stored == wanted.kind),
            Some(Origin::Visible { .. } | Origin::VisibleEnd(_) | Origin::Batch) => None,
        };
        stored.filter(|(_, stored)| *stored == wanted.kind).map(|(row, _)| *row)
    }

    /// Counts a delete of the batch that ends a version.
    fn count_delete(&mut self, version: Version) {
        let end = version.end.and_then(|end| self.moment(end)).filter(|end| end.filled.is_none());
        let new = end.is_some_and(|end| end.events.iter().any(Settled::is_new));
        let deleted = &mut self.effects.counts.deleted;
        *deleted = deleted.saturating_add(u64::from(new));
    }
}
