//! How is a key reconciled whose columns may have several authors (partial updates, A-20)?
//!
//! The events that its stored rows stand for and those of the batch are folded ([`crate::algebra::authorship`]); what
//! comes out is compared with what is stored, so that a replay changes nothing.
//!
//! | stored | event |
//! | --- | --- |
//! | author row without a list | an upsert of a whole row |
//! | author row with a list | an upsert of these columns; its values are shown by the target row, unless a whole row stands at its sequence |
//! | target row at whose sequence no author row stands | an upsert of a whole row |
//! | target row otherwise | the view of the others. Columns without an author keep their value: older than everything |
//! | delete row | a delete |
//! | author row without a list, or target row, at or below a snapshot and without a change row | the snapshot's row |
//! | change row | nothing: it says that an upsert at the version of a snapshot is a change |
//!
//! Author rows of a key that has no target row belonged to one that somebody deleted by hand: they are no events.

mod effects;
mod values;

use super::{super::gather::by_group, BATCH, Input, Stored, Ties, VISIBLE, at};
use crate::{
    algebra::{
        authorship::{Authored, Entry, Fold, Live, State, When, fold},
        order::{Op, Ordinal, Position},
    },
    columnar::{payload::RowRef, row_number},
    error::CdcError,
    side::SideKind,
    spec::CdcSpec,
};

pub(super) use effects::Effects;
use effects::{Row, SideRow};
use values::Values;

/// The side rows of the prior, as a source of values.
const HIDDEN: usize = 2;
/// A row of NULLs.
const NULL: RowRef = RowRef { source: 3, row: 0 };

/// What is to change for the keys `groups`.
pub(super) fn resolve(
    spec: &CdcSpec,
    input: &Input<'_>,
    groups: &[u32],
    ties: &mut Ties,
) -> Result<Effects, CdcError> {
    let mut effects = Effects::default();
    if groups.is_empty() {
        return Ok(effects);
    }
    let values = Values::new(spec, input)?;
    let mut rows: Vec<(u32, u32)> =
        input.index.groups().iter().enumerate().map(|(row, &group)| (group, row_number(row))).collect();
    rows.retain(|(group, _)| groups.binary_search(group).is_ok());
    let rows = by_group(&rows, input.index.len(), |(group, _)| *group);
    for changes in rows.chunk_by(|a, b| a.0 == b.0) {
        let Some(&(group, _)) = changes.first() else { continue };
        let key = Key::new(input, group);
        let mut entries = key.stored_events(input, &values);
        let counting = changes.iter().filter(|(_, row)| !input.is_skipped(*row as usize));
        entries.extend(counting.map(|&(_, row)| {
            let event = input.batch_event(row as usize);
            Entry {
                at: When::At(event.position()),
                authored: values.batch_authored(row as usize),
                row: event.row,
                values: event.row,
                new: true,
            }
        }));
        let how = Fold {
            columns: values.len(),
            by_column: spec.partial.is_some(),
            compare: |column, a, b| values.order.compare_column(column, a, b),
        };
        let state = fold(&entries, &how);
        if let Some(state) = state {
            if let State::Live(Live { ties: count, tied: Some(row), .. }) = &state {
                ties.note(*count, group, &input.changes.sequence, row.row);
            }
            key.change(&state, input, &values, &mut effects);
        }
    }
    effects.values = Some(values);
    Ok(effects)
}

/// A key and what is stored of it.
struct Key {
    /// A change of the key.
    row: u32,
    stored: Stored,
    /// Its author rows.
    authors: Vec<u32>,
}

impl Key {
    fn new(input: &Input<'_>, group: u32) -> Self {
        let from = input.author_rows.partition_point(|(other, _)| *other < group);
        let own = input.author_rows.iter().skip(from).take_while(|(other, _)| *other == group);
        Self {
            row: row_number(input.index.first_row(group)),
            stored: input.stored.get(group as usize).copied().unwrap_or_default(),
            authors: own.map(|(_, row)| *row).collect(),
        }
    }

    fn stored_events<'v>(&self, input: &Input<'_>, values: &'v Values) -> Vec<Entry<'v, RowRef>> {
        let hidden = |row: u32| RowRef { source: HIDDEN, row: row as usize };
        let hidden_at = |row: u32| at(&input.hidden_at, row as usize);
        let event = |position: Position, authored: Authored<'v>, row: RowRef, values: RowRef| Entry {
            at: When::At(position),
            authored,
            row,
            values,
            new: false,
        };
        let mut entries = Vec::new();
        if let Some(barrier) = input.floor.barrier() {
            entries.push(event(barrier, Authored::Whole, NULL, NULL));
        }
        if let Some(row) = self.stored.tombstone {
            let position = Position { at: hidden_at(row), op: Op::Delete };
            entries.push(event(position, Authored::Whole, hidden(row), hidden(row)));
        }
        let Some(row) = self.stored.visible else { return entries };
        let visible = RowRef { source: VISIBLE, row: row as usize };
        let visible_at = input.visible_at.get(row as usize).copied().flatten();
        let written_at = |at: Ordinal| input.floor.written_at(at, self.stored.change.is_some());
        let is_snapshot = |row: u32| input.hidden_kinds.value(row as usize) == SideKind::Snapshot.code();
        // The row of a snapshot stands at its version, whatever sequence it kept.
        let position = |row: u32| {
            if is_snapshot(row) {
                return input.floor.written_at(hidden_at(row), false);
            }
            Position { at: hidden_at(row), op: Op::Upsert }
        };
        let stands_at = |at: Ordinal, whole: bool| {
            let mut authors = self.authors.iter();
            authors.any(|&row| position(row).at == at && (values.listed(row).is_none() || !whole))
        };
        let by_snapshot = visible_at.map(written_at).filter(|position| position.op == Op::Snapshot);
        // Below a snapshot, what was known before does not count any more. At its version, author rows tell.
        if let (Some(snapshot), Some(at)) = (by_snapshot, visible_at)
            && (at < snapshot.at || !stands_at(at, false))
        {
            entries.push(event(snapshot, Authored::Whole, visible, visible));
            return entries;
        }
        for &author in &self.authors {
            let position = position(author);
            let (authored, shown) = match values.listed(author) {
                None if is_snapshot(author) => (Authored::Whole, hidden(author)),
                None => (values.whole(), hidden(author)),
                Some(list) if stands_at(position.at, true) => (Authored::Columns(list), hidden(author)),
                Some(list) => (Authored::Columns(list), visible),
            };
            entries.push(event(position, authored, hidden(author), shown));
        }
        let own_at = visible_at.filter(|&at| !stands_at(at, false)).map(written_at);
        let authored = if own_at.is_some() { values.whole() } else { Authored::Whole };
        let at = own_at.map_or(When::First, When::At);
        entries.push(Entry { at, authored, row: visible, values: visible, new: false });
        entries
    }

    /// Notes what must change for the key to be in `state`.
    fn change(&self, state: &State<RowRef>, input: &Input<'_>, values: &Values, effects: &mut Effects) {
        let mut side: Vec<SideRow> = Vec::new();
        let delete = |known: &crate::algebra::authorship::Known<RowRef>| SideRow {
            row: Row { key: self.row, at: known.at, sequence: known.row, values: vec![NULL; values.len()] },
            kind: SideKind::Delete,
            authored: None,
        };
        match state {
            State::Empty | State::Gone(_) => {
                if let State::Gone(known) = state {
                    side.push(delete(known));
                }
                effects.visible_gone.extend(self.stored.visible);
                effects.deleted = effects.deleted.saturating_add(u64::from(self.stored.visible.is_some()));
            }
            State::Live(live) => {
                side.extend(live.delete.iter().map(delete));
                side.extend(live.authors.iter().map(|author| {
                    let mut shown = vec![NULL; values.len()];
                    for &(column, value) in &author.values {
                        // What is around a leaf that is there, is there.
                        for leaf in values.leaves.around(column).chain([column]) {
                            if let Some(slot) = shown.get_mut(leaf) {
                                *slot = value;
                            }
                        }
                    }
                    let known = author.known;
                    SideRow {
                        row: Row {
                            key: self.row,
                            at: input.at_of(known.row),
                            sequence: known.row,
                            values: shown,
                        },
                        kind: if author.op == Op::Snapshot { SideKind::Snapshot } else { SideKind::Author },
                        authored: author.columns.clone(),
                    }
                }));
                let at_snapshot = input.floor.needs_change_row().map(When::At);
                let is_change = live.authors.is_empty() && at_snapshot == Some(live.newest_at);
                side.extend(is_change.then(|| SideRow { kind: SideKind::Change, ..delete(&live.newest) }));
                let row = Row {
                    key: self.row,
                    at: live.newest.at,
                    sequence: live.newest.row,
                    values: live.values.iter().map(|value| value.unwrap_or(NULL)).collect(),
                };
                let by_snapshot = matches!(live.newest_at, When::At(position) if position.op == Op::Snapshot);
                self.show(row, by_snapshot && side.is_empty(), input, values, effects);
            }
        }
        self.keep(side, input, values, effects);
    }

    /// The target row of the key becomes `row`. One that a snapshot leaves as it is keeps the sequence that it has.
    fn show(
        &self,
        row: Row,
        keeps_sequence: bool,
        input: &Input<'_>,
        values: &Values,
        effects: &mut Effects,
    ) {
        if let Some(old) = self.stored.visible {
            let place = RowRef { source: VISIBLE, row: old as usize };
            let same_at = input.visible_at.get(old as usize).copied().flatten() == Some(row.at);
            if (same_at || keeps_sequence || row.sequence == place) && values.same(&row.values, place) {
                return;
            }
            effects.visible_gone.push(old);
        }
        effects.rows.push(row);
    }

    /// The side rows of the key become `side`.
    fn keep(&self, mut side: Vec<SideRow>, input: &Input<'_>, values: &Values, effects: &mut Effects) {
        let kind = |row: u32| SideKind::from_code(input.hidden_kinds.value(row as usize));
        let authors = self.authors.iter().map(|&row| (row, kind(row).unwrap_or(SideKind::Author)));
        let tombstone = self.stored.tombstone.map(|row| (row, SideKind::Delete));
        let change = self.stored.change.map(|row| (row, SideKind::Change));
        for (old, kind) in tombstone.into_iter().chain(change).chain(authors) {
            let is_author = matches!(kind, SideKind::Author | SideKind::Snapshot);
            let listed = if is_author { values.listed(old) } else { None };
            let same = side.iter().position(|new| {
                new.kind == kind
                    && new.row.at == at(&input.hidden_at, old as usize)
                    && new.authored.as_ref().map(|own| values.leaves.read_back(own)).as_deref() == listed
                    && (!is_author
                        || values.same(&new.row.values, RowRef { source: HIDDEN, row: old as usize }))
            });
            match same {
                Some(same) => drop(side.remove(same)),
                None => effects.hidden_gone.push(old),
            }
        }
        effects.side.extend(side);
    }
}
