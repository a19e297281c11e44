//! Bitemporal: what must the target show of a key, from the smallest system sequence on that the batch touches?
//!
//! Target rows that ceased to be believed before stay as they are, and are not read. Every event is kept in a side row: an
//! event that shows nothing now can show later, when another one is taken back or corrected.

use std::collections::BTreeMap;

use super::{
    super::{invalid, payload::RowRef},
    Effects, Event, Key, Origin, Row, Sources, count_late,
    output::Values,
    settle,
    settled::{Settled, What},
    sources::{NULL, VISIBLE, VISIBLE_END, batch_row},
};
use crate::{
    algebra::{
        belief::{self, Belief, Since, Told, beliefs},
        order::{Op, Ordinal},
        step::Filled,
    },
    error::CdcError,
    side::SideKind,
    spec::{CdcSpec, SystemTime},
};

pub(super) fn reconcile(
    spec: &CdcSpec,
    sources: &Sources<'_>,
    key: &Key,
    effects: &mut Effects,
    lost: &mut impl FnMut(u64, RowRef),
) -> Result<(), CdcError> {
    let mut events: Vec<Event> = key.logged_events(sources).collect();
    let mut new: Vec<Event> = key.new_events(sources).collect();
    if spec.system_time == SystemTime::Monotonic {
        drop_known(sources, &events, &mut new);
    }
    count_late(&events, &new, |event| event.system, &mut effects.counts);
    let newest_known = events.iter().map(|event| event.system).max();
    events.extend(new);
    let settled = settle(spec, sources, &mut events, lost);
    let Some(from) = settled.iter().filter(|event| event.is_new()).map(|event| event.system).min() else {
        return Ok(());
    };
    let Some(&any) = key.changes.first() else { return Ok(()) };
    log(key, &settled, batch_row(any), effects);
    let mut told: Vec<Told<RowRef>> = settled
        .iter()
        .map(|event| Told { at: event.at, system: event.system, op: event.op, write: event.write.clone() })
        .collect();
    // What is known at one system sequence stays in the order of business sequence, then of position.
    told.sort_by_key(|event| event.system);
    let values =
        belief::Values { leaves: sources.leaves.len(), null: NULL, same: |a: &_, b: &_| sources.same(a, b) };
    let table = Table::new(sources, key, &settled, from);
    table.change(spec, beliefs(&told, from, &values), newest_known, batch_row(any), effects)?;
    let deletes = settled.iter().filter(|event| event.op == Op::Delete && event.is_new()).count() as u64;
    effects.counts.deleted = effects.counts.deleted.saturating_add(deletes);
    Ok(())
}

/// With monotonic system time an event received again comes with a later system sequence: it is known by the one that it
/// was given.
fn drop_known(sources: &Sources<'_>, known: &[Event], new: &mut Vec<Event>) {
    let says_no_more = |new: &Event, old: &Event| match (&new.write, &old.write) {
        (None, None) => true,
        (Some(new), Some(old)) => match (new.whole, old.whole) {
            (Some(new), Some(old)) => sources.compare_rows(new, old).is_le(),
            (None, whole) => new.leaves.iter().all(|&(leaf, row)| {
                let stored =
                    old.leaves.iter().find(|(other, _)| *other == leaf).map(|(_, row)| *row).or(whole);
                stored.is_some_and(|stored| sources.compare(leaf, row, stored).is_le())
            }),
            (Some(_), None) => false,
        },
        _ => false,
    };
    let mut by_origin: BTreeMap<(Ordinal, Ordinal, Op), Vec<&Event>> = BTreeMap::new();
    for event in known {
        by_origin.entry((event.at, event.given, event.op)).or_default().push(event);
    }
    new.retain(|event| {
        let same = by_origin.get(&(event.at, event.given, event.op)).into_iter().flatten();
        !same.into_iter().any(|old| says_no_more(event, old))
    });
}

/// Every settled event has a side row: one that is new gets one, one that is no more loses it.
fn log(key: &Key, settled: &[Settled], any: RowRef, effects: &mut Effects) {
    let mut kept: Vec<u32> = Vec::new();
    for event in settled {
        for part in &event.parts {
            if let Origin::Hidden(row) = part.origin {
                kept.push(row);
                continue;
            }
            let (kind, values, authored) = match (&part.what, event.op) {
                (What::Bare, Op::Retract) => (SideKind::Retract, Values::None, None),
                (What::Bare, _) => (SideKind::Delete, Values::None, None),
                (What::Whole(row), _) => (SideKind::Upsert, Values::Filled(Filled::Whole(*row)), None),
                (What::Leaves(leaves), _) => {
                    let listed = leaves.iter().map(|(leaf, _)| *leaf).collect();
                    (SideKind::Author, Values::Leaves(leaves.clone()), Some(listed))
                }
            };
            effects.hidden.push(Row {
                key: any,
                values,
                sequence: event.sequence,
                end: None,
                system: Some(event.sequence),
                system_end: None,
                kind: Some(kind),
                authored,
            });
        }
    }
    kept.sort_unstable();
    let gone = key.hidden.iter().map(|(row, _)| *row).filter(|row| kept.binary_search(row).is_err());
    effects.hidden_gone.extend(gone);
}

/// The target rows of a key that were believed at the first touched system sequence, or are younger.
struct Table<'t, 's> {
    sources: &'t Sources<'s>,
    /// By start and system start. At most one row of a key has both.
    stored: BTreeMap<(Ordinal, Ordinal), u32>,
    /// By start, those that were believed before.
    before: BTreeMap<Ordinal, u32>,
    /// An event at each business and system sequence.
    at: BTreeMap<Ordinal, RowRef>,
    system_at: BTreeMap<Ordinal, RowRef>,
}

impl<'t, 's> Table<'t, 's> {
    fn new(sources: &'t Sources<'s>, key: &Key, settled: &[Settled], from: Ordinal) -> Self {
        let mut table = Self {
            sources,
            stored: BTreeMap::new(),
            before: BTreeMap::new(),
            at: settled.iter().map(|event| (event.at, event.sequence)).collect(),
            system_at: settled.iter().map(|event| (event.system, event.sequence)).collect(),
        };
        for &row in &key.visible {
            let (start, until) = (table.start(row), table.until(row));
            if until.is_some_and(|until| until < from) {
                continue;
            }
            table.stored.insert(start, row);
            if start.1 < from {
                table.before.insert(start.0, row);
            }
        }
        table
    }

    /// Start and system start.
    fn start(&self, row: u32) -> (Ordinal, Ordinal) {
        let place = RowRef { source: VISIBLE, row: row as usize };
        (self.sources.sequence.at(place), self.sources.system.as_ref().map_or(0, |system| system.at(place)))
    }

    /// When it ceased to be believed.
    fn until(&self, row: u32) -> Option<Ordinal> {
        let place = RowRef { source: VISIBLE_END, row: row as usize };
        self.sources.system.as_ref().filter(|system| !system.is_null(place)).map(|system| system.at(place))
    }

    /// The rows become those of `beliefs`.
    fn change(
        mut self,
        spec: &CdcSpec,
        beliefs: Vec<Belief<RowRef>>,
        newest_known: Option<Ordinal>,
        any: RowRef,
        effects: &mut Effects,
    ) -> Result<(), CdcError> {
        for belief in beliefs {
            let since = match belief.since {
                Since::At(system) => Some(system),
                Since::Before => self.before.get(&belief.start).map(|&row| self.start(row).1),
            };
            let Some(since) = since else {
                let why = "its events say what the target does not show";
                return Err(invalid(spec, &self.sources.changes.rows, any.row, why));
            };
            let stored = self.stored.remove(&(belief.start, since));
            if let Some(row) = stored {
                let shown = Filled::Whole(RowRef { source: VISIBLE, row: row as usize });
                let same =
                    self.sources.end_of(row) == belief.end && self.sources.same(&belief.values, &shown);
                if same && self.until(row) == belief.until {
                    continue;
                }
                effects.visible_gone.push(row);
                // A row that only ends now, at a system sequence that is news, was no past belief.
                let ends_now = same && self.until(row).is_none() && belief.until > newest_known;
                effects.count_past_beliefs(u64::from(!ends_now));
            }
            let since = match belief.since {
                Since::At(system) => self.system_at.get(&system).copied(),
                Since::Before => stored.map(|row| RowRef { source: VISIBLE, row: row as usize }),
            };
            effects.visible.push(Row {
                key: any,
                values: Values::Filled(belief.values),
                sequence: self.at.get(&belief.start).copied().unwrap_or(any),
                end: belief.end.and_then(|end| self.at.get(&end)).copied(),
                system: since,
                system_end: belief.until.and_then(|until| self.system_at.get(&until)).copied(),
                kind: None,
                authored: None,
            });
        }
        effects.count_past_beliefs(self.stored.len() as u64);
        effects.visible_gone.extend(self.stored.into_values());
        Ok(())
    }
}
