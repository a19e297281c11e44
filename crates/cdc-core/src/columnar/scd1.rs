//! SCD1: which event of a key is the newest?
//!
//! The state of a key is its newest event: a target row when that is an upsert, a side row when it is a delete (a
//! tombstone). A batch is folded to its winner a key, and that is related to the stored event.
//!
//! Keys whose columns may have several authors are folded event by event instead, see [`authors`]. A truncate is an event
//! of every key there is: those of the target join the batch for it.

mod authors;
mod effects;
mod floor;

use arrow_array::{Array, ArrayRef, Int8Array, RecordBatch};
use arrow_schema::FieldRef;

use self::{
    effects::{Effects, both},
    floor::Floor,
};
use super::{
    Ties,
    canonical::{Role, canonical},
    column,
    gather::{by_group, column_or_null},
    horizon::Horizon,
    ids, invalid,
    keys::{KeyIndex, UNKNOWN},
    kind_of, kinds,
    ordinals::ordinals,
    payload::{PayloadOrder, RowRef},
    row_number, side_schema, unchanged,
};
use crate::{
    algebra::order::{Event, Op, Ordinal, Position, Relation, relate},
    batch::{ChangeBatch, Counts, Lookup, Prior, Reconciled, Reconciliation},
    error::CdcError,
    names,
    side::SideKind,
    spec::CdcSpec,
};

const BATCH: usize = 0;
const VISIBLE: usize = 1;

/// What is stored of a key: rows of the prior, by number.
#[derive(Debug, Clone, Copy, Default)]
struct Stored {
    visible: Option<u32>,
    tombstone: Option<u32>,
    /// The side row that says that a change wrote the row, not the snapshot of its version.
    change: Option<u32>,
    /// Whether the key has author rows.
    authored: bool,
}

/// The newest event of a key in the batch.
#[derive(Debug, Clone, Copy)]
struct Winner {
    event: Event<RowRef>,
    /// Ties met at its sequence.
    ties: u32,
}

/// Author rows of the batch's keys: key and row, by key.
type AuthorRows = Vec<(u32, u32)>;

struct Input<'a> {
    changes: &'a ChangeBatch,
    prior: &'a Prior,
    index: KeyIndex,
    /// Per key of the batch.
    stored: Vec<Stored>,
    batch_at: Vec<Ordinal>,
    /// `None` for a row that has no sequence (written by hand): older than everything.
    visible_at: Vec<Option<Ordinal>>,
    hidden_at: Vec<Ordinal>,
    hidden_kinds: Int8Array,
    floor: Floor,
    /// Changes that a barrier or the horizon defeats; empty when there is none.
    skipped: Vec<bool>,
    visible_sequence: ArrayRef,
    hidden_sequence: ArrayRef,
    author_rows: AuthorRows,
    payload: PayloadOrder,
    /// Whether the prior has values to compare, or keys and sequences only.
    wide: bool,
}

pub(super) fn reconcile(
    spec: &CdcSpec,
    prior: &Prior,
    changes: &ChangeBatch,
) -> Result<Reconciliation, CdcError> {
    let everyone = changes.with_barrier(spec, [&prior.visible.batch, &prior.hidden.batch])?;
    let mut counts = Counts { events: changes.len() as u64, ..Counts::default() };
    let changes = everyone.as_ref().unwrap_or(changes);
    let input = Input::new(spec, prior, changes, &mut counts)?;
    let barriers = floor::after(spec, &prior.barriers, changes)?;
    let mut ties = Ties::default();
    let winners = input.winners();
    input.count_late(&mut counts);
    let mut effects = Effects::default();
    let mut by_column: Vec<u32> = Vec::new();
    for (group, winner) in winners.iter().enumerate() {
        let Some(winner) = winner else { continue };
        let stored = input.stored.get(group).copied().unwrap_or_default();
        let verdict = if spec.is_partial() || stored.authored {
            by_column.push(row_number(group));
            if stored.visible.is_some() && !input.wide { Verdict::NeedsValues } else { Verdict::Decided }
        } else {
            input.apply(row_number(group), winner, &mut ties, &mut effects)
        };
        match verdict {
            Verdict::Decided => {}
            Verdict::NeedsValues => {
                let mut plan = spec.read_plan(changes)?;
                plan.visible = Lookup { columns: None, bound: None };
                return Ok(Reconciliation::ReadMore(plan));
            }
        }
    }
    let authors = authors::resolve(spec, &input, &by_column, &mut ties)?;
    ties.check(spec, &input.index, changes)?;
    counts.tied = ties.count;
    counts.upserted = (effects.upserts.len() as u64).saturating_add(authors.upserted());
    counts.deleted = effects.deleted.saturating_add(authors.deleted);
    if effects.is_empty() && authors.is_empty() && barriers == prior.barriers {
        return Ok(unchanged(spec, prior, counts));
    }
    let side_schema = side_schema(spec, prior);
    let mut target = effects.target(spec, &input)?;
    let mut side = effects.side(spec, &side_schema, &input)?;
    if !authors.is_empty() {
        target = both(&target, &authors.target(spec, &input)?)?;
        side = both(&side, &authors.side(spec, &side_schema, &input)?)?;
    }
    Ok(Reconciliation::Done(Reconciled { target, side, barriers, counts }))
}

enum Verdict {
    Decided,
    NeedsValues,
}

impl<'a> Input<'a> {
    fn new(
        spec: &CdcSpec,
        prior: &'a Prior,
        changes: &'a ChangeBatch,
        counts: &mut Counts,
    ) -> Result<Self, CdcError> {
        let index = KeyIndex::new(&spec.key_columns(&changes.rows)?)?;
        let sequence_field =
            arrow_schema::Field::new(spec.sequence_column_name(), spec.sequence_type.clone(), true);
        let visible_sequence = column(&prior.visible.batch, &sequence_field, "target rows")?;
        // A kept column that is the sequence has the sign of zero that the event had.
        let visible_sequence = canonical(&visible_sequence, Role::Identity)?;
        let side_field = arrow_schema::Field::new(names::SEQUENCE_AT, spec.sequence_type.clone(), true);
        let hidden_sequence = column(&prior.hidden.batch, &side_field, "side rows")?;
        let [truncate, snapshot, new_snapshot] = floor::greatest(&prior.barriers, changes)?;
        let sequences =
            [&changes.sequence, &visible_sequence, &hidden_sequence, &truncate, &snapshot, &new_snapshot];
        let mut all = ordinals(&sequences)?.into_iter();
        let mut next = || all.next().unwrap_or_default();
        let (batch_at, visible_words, hidden_at) = (next(), next(), next());
        let mut barrier = || next().first().copied();
        let floor = Floor::new(barrier(), barrier(), barrier());
        let visible_at = visible_words
            .into_iter()
            .enumerate()
            .map(|(row, at)| visible_sequence.is_valid(row).then_some(at))
            .collect();
        let payload_fields: Vec<_> =
            spec.payload_by_name.iter().filter_map(|&i| spec.kept.fields().get(i)).collect();
        // Rows from before a column came lack it, whatever was asked for; the sequence is asked for anyway.
        let mut others =
            payload_fields.iter().filter(|field| field.name() != spec.sequence_column_name()).peekable();
        let has = |field: &&FieldRef| prior.visible.batch.column_by_name(field.name()).is_some();
        let wide = others.peek().is_none() || others.any(has);
        let values = |rows: &RecordBatch| -> Result<Vec<ArrayRef>, CdcError> {
            payload_fields.iter().map(|f| column_or_null(rows, f)).collect()
        };
        let mut payloads = vec![values(&changes.rows)?];
        if wide {
            payloads.push(values(&prior.visible.batch)?);
        }
        let payload = PayloadOrder::new(&payloads)?;
        let (stored, author_rows) = stored(spec, prior, &hidden_sequence, &index)?;
        let skipped = skipped(prior, changes, &index, &stored, (&batch_at, floor), counts)?;
        Ok(Self {
            changes,
            prior,
            index,
            stored,
            batch_at,
            visible_at,
            hidden_at,
            hidden_kinds: kinds(&prior.hidden.batch)?,
            floor,
            skipped,
            visible_sequence,
            hidden_sequence,
            author_rows,
            payload,
            wide,
        })
    }

    fn batch_event(&self, row: usize) -> Event<RowRef> {
        let op = self.changes.ops.get(row).copied().unwrap_or(Op::Upsert);
        Event { at: at(&self.batch_at, row), op, row: RowRef { source: BATCH, row } }
    }

    /// The sequence of a row, of any source.
    fn at_of(&self, row: RowRef) -> Ordinal {
        match row.source {
            BATCH => at(&self.batch_at, row.row),
            VISIBLE => self.visible_at.get(row.row).copied().flatten().unwrap_or_default(),
            _ => at(&self.hidden_at, row.row),
        }
    }

    /// True for a change that a barrier or the horizon defeats.
    fn is_skipped(&self, row: usize) -> bool {
        self.skipped.get(row) == Some(&true)
    }

    /// The winner of each key of the batch. Ties at older sequences are superseded and not counted.
    fn winners(&self) -> Vec<Option<Winner>> {
        let mut winners: Vec<Option<Winner>> = vec![None; self.index.len()];
        for (row, &group) in self.index.groups().iter().enumerate() {
            if self.is_skipped(row) {
                continue;
            }
            let event = self.batch_event(row);
            let Some(slot) = winners.get_mut(group as usize) else { continue };
            let Some(best) = slot else {
                *slot = Some(Winner { event, ties: 0 });
                continue;
            };
            let (relation, tie) = relate(event, best.event, |a, b| self.payload.compare(a, b));
            if event.at > best.event.at {
                best.ties = 0;
            }
            best.ties = best.ties.saturating_add(u32::from(tie));
            if relation == Relation::After {
                best.event = event;
            }
        }
        winners
    }

    /// Counts the events that are older than what is stored of their key.
    fn count_late(&self, counts: &mut Counts) {
        for (row, &group) in self.index.groups().iter().enumerate() {
            let stored = self.stored.get(group as usize).copied().unwrap_or_default();
            let event = self.batch_event(row);
            let (event_at, is_delete) = (event.at, event.op == Op::Delete);
            if matches!(event.op, Op::Barrier | Op::Snapshot) || self.is_skipped(row) {
                continue;
            }
            let row_at = stored.visible.and_then(|v| self.visible_at.get(v as usize).copied().flatten());
            let tombstone_at = stored.tombstone.map(|h| at(&self.hidden_at, h as usize));
            if row_at.max(tombstone_at).is_some_and(|known| event_at < known) {
                counts.late = counts.late.saturating_add(1);
            }
            if !is_delete && tombstone_at.is_some_and(|known| event_at < known) {
                counts.tombstone_defeated = counts.tombstone_defeated.saturating_add(1);
            }
        }
    }

    /// Relates a key's winner to what is stored of the key, and notes what follows.
    fn apply(&self, group: u32, winner: &Winner, ties: &mut Ties, effects: &mut Effects) -> Verdict {
        let (winner, met) = (winner.event, u64::from(winner.ties));
        let stored = self.stored.get(group as usize).copied().unwrap_or_default();
        if let Some(tombstone) = stored.tombstone {
            let event =
                Event { at: at(&self.hidden_at, tombstone as usize), op: Op::Delete, row: winner.row };
            let (relation, _) = relate(winner, event, |_, _| std::cmp::Ordering::Equal);
            if relation != Relation::After {
                return Verdict::Decided;
            }
        }
        let row_at = stored.visible.map(|row| (row, self.visible_at.get(row as usize).copied().flatten()));
        if let Some((row, Some(row_at))) = row_at {
            let written = self.floor.written_at(row_at, stored.change.is_some());
            let event =
                Event { at: written.at, op: written.op, row: RowRef { source: VISIBLE, row: row as usize } };
            let tie = winner.op == Op::Upsert && winner.position() == written;
            if (tie || winner.op == Op::Snapshot) && !self.wide {
                return Verdict::NeedsValues;
            }
            let (relation, tie) = relate(winner, event, |a, b| self.payload.compare(a, b));
            if winner.at >= written.at {
                ties.note(met.saturating_add(u64::from(tie)), group, &self.changes.sequence, winner.row.row);
            }
            if relation != Relation::After {
                let needs_change_row = self.floor.needs_change_row() == Some(written);
                if needs_change_row && stored.change.is_none() && winner.at == written.at {
                    effects.hidden.push((row_number(winner.row.row), SideKind::Change));
                }
                return Verdict::Decided;
            }
            if winner.op == Op::Snapshot && self.payload.compare(winner.row, event.row).is_eq() {
                // The snapshot leaves the row as it is; it keeps its sequence, below the barrier.
                effects.hidden_gone.extend(stored.tombstone.into_iter().chain(stored.change));
                return Verdict::Decided;
            }
        } else {
            ties.note(met, group, &self.changes.sequence, winner.row.row);
        }
        effects.replace(stored, winner, &self.floor);
        Verdict::Decided
    }
}

/// The changes that a barrier or the horizon of collected tombstones defeats; empty when there is none.
fn skipped(
    prior: &Prior,
    changes: &ChangeBatch,
    index: &KeyIndex,
    stored: &[Stored],
    (batch_at, floor): (&[Ordinal], Floor),
    counts: &mut Counts,
) -> Result<Vec<bool>, CdcError> {
    if prior.barriers.is_empty() && changes.barrier().is_none() {
        return Ok(Vec::new());
    }
    let horizon = Horizon::new(prior, &changes.sequence)?;
    let skip = |(row, &group): (usize, &u32)| {
        let is_there = stored.get(group as usize).is_some_and(|stored| stored.visible.is_some());
        let op = changes.ops.get(row).copied().unwrap_or(Op::Upsert);
        if op == Op::Barrier {
            return false;
        }
        if floor.defeats(Position { at: at(batch_at, row), op }) {
            counts.barrier_defeated = counts.barrier_defeated.saturating_add(1);
            return true;
        }
        let too_old = !is_there && op != Op::Snapshot && horizon.covers(row_number(row));
        counts.horizon_dropped = counts.horizon_dropped.saturating_add(u64::from(too_old));
        too_old
    };
    Ok(index.groups().iter().enumerate().map(skip).collect())
}

fn at(ordinals: &[Ordinal], row: usize) -> Ordinal {
    ordinals.get(row).copied().unwrap_or_default()
}

/// The stored rows of each key of the batch, and the author rows by key. More than one row a key is a damaged target.
fn stored(
    spec: &CdcSpec,
    prior: &Prior,
    hidden_sequence: &ArrayRef,
    index: &KeyIndex,
) -> Result<(Vec<Stored>, AuthorRows), CdcError> {
    let mut authors = Vec::new();
    let mut stored = vec![Stored::default(); index.len()];
    for (row, group) in index.probe(&spec.key_columns(&prior.visible.batch)?)?.into_iter().enumerate() {
        let Some(slot) = stored.get_mut(group as usize).filter(|_| group != UNKNOWN) else { continue };
        if slot.visible.replace(row_number(row)).is_some() {
            return Err(invalid(spec, &prior.visible.batch, row, "the key has several target rows"));
        }
    }
    let kinds = kinds(&prior.hidden.batch)?;
    for (row, group) in index.probe(&spec.key_columns(&prior.hidden.batch)?)?.into_iter().enumerate() {
        let Some(slot) = stored.get_mut(group as usize).filter(|_| group != UNKNOWN) else { continue };
        match kind_of(spec, &prior.hidden.batch, &kinds, hidden_sequence, row)? {
            SideKind::Author | SideKind::Snapshot => {
                slot.authored = true;
                authors.push((group, row_number(row)));
            }
            SideKind::Delete if slot.tombstone.replace(row_number(row)).is_some() => {
                return Err(invalid(spec, &prior.hidden.batch, row, "the key has several tombstones"));
            }
            SideKind::Delete => {}
            SideKind::Change => slot.change = Some(row_number(row)),
            SideKind::Interior | SideKind::Tail | SideKind::Upsert | SideKind::Retract => {
                let why = "a side row is of a kind that an SCD TYPE 1 target does not have";
                return Err(invalid(spec, &prior.hidden.batch, row, why));
            }
        }
    }
    Ok((stored, by_group(&authors, index.len(), |(group, _)| *group)))
}
