//! Which events do the stored rows stand for, and which of them can the batch touch?
//!
//! | stored | event |
//! | --- | --- |
//! | version, no tail row within it | an upsert at its `__START_AT` |
//! | version with a tail row | an upsert at the tail's sequence |
//! | `__END_AT` where no version of the key starts | a delete there |
//! | interior row | an upsert |
//! | delete row | a delete |
//!
//! A batch can touch a version of a key only if that ends at or after the batch's first event of the key; what lies
//! before is left alone, whether it was read or not.

use std::{cell::OnceCell, collections::BTreeMap};

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::Field;

use super::super::{
    column,
    gather::{Column, column_or_null},
    invalid,
    keys::{KeyIndex, UNKNOWN},
    kind_of, kinds,
    ordinals::ordinals,
    payload::{PayloadOrder, RowRef},
    row_number,
};
use crate::{
    algebra::order::{Op, Ordinal},
    batch::{ChangeBatch, Counts, Prior},
    error::CdcError,
    names,
    side::SideKind,
    spec::CdcSpec,
};

/// Where an event comes from. In this order they settle when they are the same event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// A side row.
    Hidden,
    /// A target row: the upsert whose values it shows.
    Visible,
    /// A target row: the delete that ends it.
    VisibleEnd,
    /// A change.
    Batch,
}

/// Numbers of the payload sources, see [`Sources::columns`].
const HIDDEN: usize = 0;
pub(super) const VISIBLE: usize = 1;
const BATCH: usize = 2;
/// And of the further sequence source.
const VISIBLE_END: usize = 3;

/// An event of some key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) group: u32,
    pub(super) at: Ordinal,
    pub(super) op: Op,
    pub(super) source: Source,
    /// Row in its source.
    pub(super) row: u32,
    /// For a target row whose run has a tail row: that side row, which holds the event's sequence.
    pub(super) tail: Option<u32>,
}

impl Entry {
    /// Where its values are.
    pub(super) fn payload(&self) -> RowRef {
        let source = match self.source {
            Source::Hidden => HIDDEN,
            Source::Visible | Source::VisibleEnd => VISIBLE,
            Source::Batch => BATCH,
        };
        RowRef { source, row: self.row as usize }
    }

    /// Where its sequence is.
    pub(super) fn sequence(&self) -> RowRef {
        match (self.source, self.tail) {
            (Source::Visible, Some(tail)) => RowRef { source: HIDDEN, row: tail as usize },
            (Source::VisibleEnd, _) => RowRef { source: VISIBLE_END, row: self.row as usize },
            _ => self.payload(),
        }
    }
}

/// The inputs, column by column.
pub(super) struct Sources<'a> {
    pub(super) prior: &'a Prior,
    pub(super) changes: &'a ChangeBatch,
    /// Kept columns, each with its sources hidden, visible, batch.
    pub(super) columns: Vec<Column>,
    /// Sequences: hidden, visible start, batch, visible end.
    pub(super) sequences: Column,
    /// Payload columns in comparison order, per source.
    pub(super) payloads: Vec<Vec<ArrayRef>>,
    /// Ordinals of [`Sources::sequences`].
    pub(super) hidden_at: Vec<Ordinal>,
    pub(super) start_at: Vec<Ordinal>,
    pub(super) batch_at: Vec<Ordinal>,
    end_at: Vec<Ordinal>,
    hidden_sequences: ArrayRef,
    starts: ArrayRef,
    ends: ArrayRef,
    payload_order: OnceCell<PayloadOrder>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(spec: &CdcSpec, prior: &'a Prior, changes: &'a ChangeBatch) -> Result<Self, CdcError> {
        let (hidden, visible) = (&prior.hidden.batch, &prior.visible.batch);
        let sequence = |name: &str| Field::new(name, spec.sequence_type.clone(), true);
        let hidden_sequence = column(hidden, &sequence(names::SEQUENCE_AT), "side rows")?;
        let starts = column(visible, &sequence(names::START_AT), "target rows")?;
        let ends = column(visible, &sequence(names::END_AT), "target rows")?;
        let mut all = ordinals(&[&hidden_sequence, &starts, &changes.sequence, &ends])?.into_iter();
        let mut next = || all.next().unwrap_or_default();
        let (hidden_at, start_at, batch_at, end_at) = (next(), next(), next(), next());
        let per_source = |field: &Field| -> Result<Vec<ArrayRef>, CdcError> {
            let of = |rows: &RecordBatch| column_or_null(rows, field);
            Ok(vec![of(hidden)?, of(visible)?, of(&changes.rows)?])
        };
        let columns = spec
            .kept
            .fields()
            .iter()
            .map(|field| Ok(Column::new(per_source(field)?, field.data_type())))
            .collect::<Result<Vec<_>, CdcError>>()?;
        let payloads = (HIDDEN..=BATCH)
            .map(|source| {
                let ordered = spec.payload_by_name.iter().filter_map(|&i| columns.get(i));
                ordered.filter_map(|column| column.sources().get(source)).cloned().collect()
            })
            .collect();
        let sequence_sources =
            [&hidden_sequence, &starts, &changes.sequence, &ends].map(ArrayRef::clone).to_vec();
        let sequences = Column::new(sequence_sources, &spec.sequence_type);
        Ok(Self { prior, changes, columns, sequences, payloads, hidden_at, start_at, batch_at, end_at, hidden_sequences: hidden_sequence, starts, ends, payload_order: OnceCell::new() })
    }

    /// The order of payloads, made when it is first asked for.
    pub(super) fn payload_order(&self) -> Result<&PayloadOrder, CdcError> {
        if let Some(order) = self.payload_order.get() {
            return Ok(order);
        }
        let order = PayloadOrder::new(&self.payloads)?;
        Ok(self.payload_order.get_or_init(|| order))
    }

    /// Where a version ends, `None` while it is current.
    pub(super) fn end_of(&self, visible: u32) -> Option<Ordinal> {
        self.ends.is_valid(visible as usize).then(|| at(&self.end_at, visible))
    }
}

pub(super) fn at(ordinals: &[Ordinal], row: u32) -> Ordinal {
    ordinals.get(row as usize).copied().unwrap_or_default()
}

/// The stored rows that the batch can touch.
#[derive(Debug, Default)]
pub(super) struct Region {
    /// Target rows, by key and start.
    pub(super) visible: Vec<Place>,
    pub(super) hidden: Vec<u32>,
    /// Those of the side rows that say where a run's last upsert lies, by key and sequence.
    pub(super) tails: Vec<Place>,
}

/// Where a stored row stands among those of its key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) group: u32,
    pub(super) at: Ordinal,
    pub(super) row: u32,
}

/// Events of the batch's keys, and the stored rows that some of them were read from.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) entries: Vec<Entry>,
    pub(super) region: Region,
}

/// Stored rows of one key that the batch can touch.
#[derive(Debug, Default)]
struct StoredKey {
    visible: Vec<u32>,
    interiors: Vec<u32>,
    tails: Vec<u32>,
    deletes: Vec<u32>,
}

pub(super) fn collect(
    spec: &CdcSpec,
    sources: &Sources<'_>,
    index: &KeyIndex,
    counts: &mut Counts,
) -> Result<Events, CdcError> {
    let mut events = Events::default();
    let mut newest: BTreeMap<u32, Ordinal> = BTreeMap::new();
    for (group, stored) in stored_keys(spec, sources, index)? {
        let from = events.entries.len();
        stored.read_back(spec, group, sources, &mut events)?;
        let known = events.entries.get(from..).into_iter().flatten().map(|entry| entry.at).max();
        newest.extend(known.map(|at| (group, at)));
    }
    for (row, &group) in index.groups().iter().enumerate() {
        let row = row_number(row);
        let op = if sources.changes.deletes.value(row as usize) { Op::Delete } else { Op::Upsert };
        let at = at(&sources.batch_at, row);
        counts.late += u64::from(newest.get(&group).is_some_and(|known| at < *known));
        events.entries.push(Entry { group, at, op, source: Source::Batch, row, tail: None });
    }
    Ok(events)
}

/// The stored rows that the batch can touch, by key.
fn stored_keys(
    spec: &CdcSpec,
    sources: &Sources<'_>,
    index: &KeyIndex,
) -> Result<BTreeMap<u32, StoredKey>, CdcError> {
    let mut from = vec![Ordinal::MAX; index.len()];
    for (row, &group) in index.groups().iter().enumerate() {
        if let Some(first) = from.get_mut(group as usize) {
            *first = at(&sources.batch_at, row_number(row)).min(*first);
        }
    }
    let mut keys: BTreeMap<u32, StoredKey> = BTreeMap::new();
    let visible = &sources.prior.visible.batch;
    let mut lower = from.clone();
    for (row, group) in index.probe(&spec.key_columns(visible)?)?.into_iter().enumerate() {
        let row = row_number(row);
        let Some(first) = from.get(group as usize).filter(|_| group != UNKNOWN) else { continue };
        if sources.end_of(row).is_none_or(|end| end >= *first) {
            if sources.starts.is_null(row as usize) {
                return Err(invalid(spec, visible, row as usize, "a version has no start"));
            }
            keys.entry(group).or_default().visible.push(row);
            if let Some(lower) = lower.get_mut(group as usize) {
                *lower = at(&sources.start_at, row).min(*lower);
            }
        }
    }
    let hidden = &sources.prior.hidden.batch;
    let kinds = kinds(hidden)?;
    for (row, group) in index.probe(&spec.key_columns(hidden)?)?.into_iter().enumerate() {
        let number = row_number(row);
        let Some(lower) = lower.get(group as usize).filter(|_| group != UNKNOWN) else { continue };
        let kind = kind_of(spec, hidden, &kinds, &sources.hidden_sequences, row)?;
        if at(&sources.hidden_at, number) < *lower {
            continue;
        }
        let key = keys.entry(group).or_default();
        match kind {
            SideKind::Delete => key.deletes.push(number),
            SideKind::Interior => key.interiors.push(number),
            SideKind::Tail => key.tails.push(number),
        }
    }
    Ok(keys)
}

impl StoredKey {
    /// Adds the events that the rows stand for.
    fn read_back(
        mut self,
        spec: &CdcSpec,
        group: u32,
        sources: &Sources<'_>,
        events: &mut Events,
    ) -> Result<(), CdcError> {
        self.visible.sort_unstable_by_key(|&row| at(&sources.start_at, row));
        for rows in [&mut self.interiors, &mut self.tails] {
            rows.sort_unstable_by_key(|&row| at(&sources.hidden_at, row));
        }
        let (mut interiors, mut tails) = (self.interiors.iter().peekable(), self.tails.iter().peekable());
        for (i, &row) in self.visible.iter().enumerate() {
            let (start, end) = (at(&sources.start_at, row), sources.end_of(row));
            let next_start = self.visible.get(i + 1).map(|&next| at(&sources.start_at, next));
            if end.is_some_and(|end| end <= start) || next_start.is_some_and(|next| end.is_none_or(|end| end > next)) {
                let why = "its versions overlap, or one is empty";
                return Err(invalid(spec, &sources.prior.visible.batch, row as usize, why));
            }
            let within = |at: Ordinal| at >= start && end.is_none_or(|end| at < end);
            // Side rows outside every version belonged to one that somebody deleted by hand: they are no events.
            let mut tail = None;
            while let Some(&candidate) = tails.next_if(|&&t| end.is_none_or(|end| at(&sources.hidden_at, t) < end)) {
                tail = Some(candidate).filter(|&t| within(at(&sources.hidden_at, t))).or(tail);
            }
            while let Some(&hidden) = interiors.next_if(|&&h| end.is_none_or(|end| at(&sources.hidden_at, h) < end)) {
                let at = at(&sources.hidden_at, hidden);
                if within(at) {
                    let source = Source::Hidden;
                    events.entries.push(Entry { group, at, op: Op::Upsert, source, row: hidden, tail: None });
                }
            }
            let shown_at = tail.map_or(start, |t| at(&sources.hidden_at, t));
            events.entries.push(Entry { group, at: shown_at, op: Op::Upsert, source: Source::Visible, row, tail });
            if let Some(end) = end.filter(|end| next_start != Some(*end)) {
                let source = Source::VisibleEnd;
                events.entries.push(Entry { group, at: end, op: Op::Delete, source, row, tail: None });
            }
        }
        for &hidden in &self.deletes {
            let at = at(&sources.hidden_at, hidden);
            let source = Source::Hidden;
            events.entries.push(Entry { group, at, op: Op::Delete, source, row: hidden, tail: None });
        }
        let places = |rows: &[u32], ordinals: &[Ordinal]| -> Vec<Place> {
            rows.iter().map(|&row| Place { group, at: at(ordinals, row), row }).collect()
        };
        events.region.visible.extend(places(&self.visible, &sources.start_at));
        events.region.tails.extend(places(&self.tails, &sources.hidden_at));
        events.region.hidden.extend(self.interiors.into_iter().chain(self.tails).chain(self.deletes));
        Ok(())
    }
}
