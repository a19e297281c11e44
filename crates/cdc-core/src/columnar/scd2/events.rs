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
//! Interior and tail rows outside every version belonged to one that somebody deleted by hand: they are no events.
//!
//! A batch can touch a version of a key only if that ends at or after the batch's first event of the key, and starts before
//! its last one or is the next after it. What lies before or after is left alone, whether it was read or not.

use arrow_array::Array;

use super::{
    super::{
        gather::by_group,
        invalid,
        keys::{KeyIndex, UNKNOWN},
        kind_of, kinds,
        payload::RowRef,
        row_number,
    },
    sources::{BATCH, HIDDEN, Sources, VISIBLE, VISIBLE_END, at},
};
use crate::{
    algebra::order::{Op, Ordinal},
    batch::Counts,
    error::CdcError,
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

/// An event of some key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) at: Ordinal,
    pub(super) group: u32,
    /// Row in its source.
    pub(super) row: u32,
    /// The target row whose run a stored upsert belongs to.
    version: u32,
    /// For a target row whose run has a tail row: that side row, which holds the event's sequence.
    tail: u32,
    pub(super) op: Op,
    pub(super) source: Source,
}

/// No row.
const NONE: u32 = u32::MAX;

impl Entry {
    fn new(group: u32, at: Ordinal, op: Op, source: Source, row: u32) -> Self {
        Self { at, group, row, version: NONE, tail: NONE, op, source }
    }

    /// The tail row of a target row's run.
    pub(super) fn tail(&self) -> Option<u32> {
        (self.tail != NONE).then_some(self.tail)
    }

    /// Whether both are stored, and if so, whether one run holds both.
    pub(super) fn stored_in_one_run(&self, other: &Self) -> Option<bool> {
        let stored = self.source != Source::Batch && other.source != Source::Batch;
        stored.then_some(self.version == other.version && self.version != NONE)
    }

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
        match (self.source, self.tail()) {
            (Source::Visible, Some(tail)) => RowRef { source: HIDDEN, row: tail as usize },
            (Source::VisibleEnd, _) => RowRef { source: VISIBLE_END, row: self.row as usize },
            _ => self.payload(),
        }
    }
}

/// Where a stored row stands among those of its key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) group: u32,
    pub(super) at: Ordinal,
    pub(super) row: u32,
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

/// Events of the batch's keys, and the stored rows that some of them were read from.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) entries: Vec<Entry>,
    pub(super) region: Region,
}

/// What a stored row is. At one sequence a version is met before the side rows within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Version,
    Interior,
    Tail,
    Delete,
}

/// A stored row that the batch can touch.
#[derive(Debug, Clone, Copy)]
struct Stored {
    at: Ordinal,
    group: u32,
    row: u32,
    what: What,
}

pub(super) fn collect(
    spec: &CdcSpec,
    sources: &Sources<'_>,
    index: &KeyIndex,
    counts: &mut Counts,
) -> Result<Events, CdcError> {
    let stored = stored_rows(spec, sources, index)?;
    let mut events = Events::default();
    events.entries.reserve(stored.len().saturating_add(sources.changes.len()));
    let mut newest: Vec<Option<Ordinal>> = vec![None; index.len()];
    for rows in stored.chunk_by(|a, b| a.group == b.group) {
        let from = events.entries.len();
        read_back(spec, rows, sources, &mut events)?;
        let known = events.entries.get(from..).into_iter().flatten();
        if let (Some(first), Some(known)) = (rows.first(), known.map(|entry| entry.at).max())
            && let Some(newest) = newest.get_mut(first.group as usize)
        {
            *newest = Some(known);
        }
    }
    for (row, &group) in index.groups().iter().enumerate() {
        let op = sources.changes.ops.get(row).copied().unwrap_or(Op::Upsert);
        let row = row_number(row);
        let at = at(&sources.batch_at, row);
        let known = newest.get(group as usize).copied().flatten();
        counts.late = counts.late.saturating_add(u64::from(known.is_some_and(|known| at < known)));
        events.entries.push(Entry::new(group, at, op, Source::Batch, row));
    }
    Ok(events)
}

/// What of a key the batch can touch: from the first version that ends at or after its first event, to the first that
/// starts after its last.
#[derive(Debug, Clone, Copy)]
struct Reach {
    first: Ordinal,
    last: Ordinal,
    /// Where that first version starts, if it starts before the first event.
    from: Ordinal,
    /// Where the last version starts and ends.
    next: Option<(Ordinal, Option<Ordinal>)>,
}

impl Reach {
    fn covers_version(&self, start: Ordinal) -> bool {
        self.next.is_none_or(|(next, _)| start <= next)
    }

    fn covers_side_row(&self, at: Ordinal) -> bool {
        at >= self.from && self.next.is_none_or(|(_, end)| end.is_none_or(|end| at < end))
    }
}

/// The stored rows that the batch can touch, by key, sequence and kind.
fn stored_rows(spec: &CdcSpec, sources: &Sources<'_>, index: &KeyIndex) -> Result<Vec<Stored>, CdcError> {
    let nothing = Reach { first: Ordinal::MAX, last: 0, from: Ordinal::MAX, next: None };
    let mut reach = vec![nothing; index.len()];
    for (row, &group) in index.groups().iter().enumerate() {
        if let Some(reach) = reach.get_mut(group as usize) {
            let at = at(&sources.batch_at, row_number(row));
            (reach.first, reach.last) = (at.min(reach.first), at.max(reach.last));
            reach.from = reach.first;
        }
    }
    let mut rows = Vec::new();
    let visible = &sources.prior.visible.batch;
    for (row, group) in index.probe(&spec.key_columns(visible)?)?.into_iter().enumerate() {
        let row = row_number(row);
        let Some(reach) = reach.get_mut(group as usize).filter(|_| group != UNKNOWN) else { continue };
        let end = sources.end_of(row);
        if end.is_some_and(|end| end < reach.first) {
            continue;
        }
        if sources.starts.is_null(row as usize) {
            return Err(invalid(spec, visible, row as usize, "a version has no start"));
        }
        let at = at(&sources.start_at, row);
        reach.from = at.min(reach.from);
        if at > reach.last && reach.next.is_none_or(|(next, _)| at < next) {
            reach.next = Some((at, end));
        }
        rows.push(Stored { at, group, row, what: What::Version });
    }
    let reach_of = |group: u32| reach.get(group as usize).filter(|_| group != UNKNOWN);
    rows.retain(|row| reach_of(row.group).is_some_and(|reach| reach.covers_version(row.at)));
    let hidden = &sources.prior.hidden.batch;
    let kinds = kinds(hidden)?;
    for (row, group) in index.probe(&spec.key_columns(hidden)?)?.into_iter().enumerate() {
        let Some(reach) = reach_of(group) else { continue };
        let what = match kind_of(spec, hidden, &kinds, &sources.hidden_sequences, row)? {
            SideKind::Delete => What::Delete,
            SideKind::Interior => What::Interior,
            SideKind::Tail => What::Tail,
            SideKind::Author
            | SideKind::Upsert
            | SideKind::Retract
            | SideKind::Change
            | SideKind::Snapshot => {
                let why = "a side row is of a kind that an SCD TYPE 2 target does not have";
                return Err(invalid(spec, hidden, row, why));
            }
        };
        let row = row_number(row);
        let at = at(&sources.hidden_at, row);
        if reach.covers_side_row(at) {
            rows.push(Stored { at, group, row, what });
        }
    }
    let mut rows = by_group(&rows, index.len(), |row| row.group);
    for key in rows.chunk_by_mut(|a, b| a.group == b.group) {
        key.sort_unstable_by_key(|row| (row.at, row.what, row.row));
    }
    Ok(rows)
}

/// A version whose side rows are being read.
#[derive(Debug, Clone, Copy)]
struct Open {
    row: u32,
    start: Ordinal,
    end: Option<Ordinal>,
    tail: Option<(u32, Ordinal)>,
}

/// Adds the events that the rows of one key, in order, stand for.
fn read_back(
    spec: &CdcSpec,
    rows: &[Stored],
    sources: &Sources<'_>,
    events: &mut Events,
) -> Result<(), CdcError> {
    let mut open: Option<Open> = None;
    for &Stored { at, group, row, what } in rows {
        if what == What::Version {
            let end = sources.end_of(row);
            let overlaps = open.is_some_and(|open| open.end.is_none_or(|before| before > at));
            if overlaps || end.is_some_and(|end| end <= at) {
                let why = "its versions overlap, or one is empty";
                return Err(invalid(spec, &sources.prior.visible.batch, row as usize, why));
            }
            if let Some(before) = open {
                before.read_back(group, Some(at), &mut events.entries);
            }
            open = Some(Open { row, start: at, end, tail: None });
            events.region.visible.push(Place { group, at, row });
            continue;
        }
        events.region.hidden.push(row);
        if what == What::Tail {
            events.region.tails.push(Place { group, at, row });
        }
        if what == What::Delete {
            events.entries.push(Entry::new(group, at, Op::Delete, Source::Hidden, row));
            continue;
        }
        let Some(version) = open.as_mut().filter(|open| open.end.is_none_or(|end| at < end)) else {
            continue;
        };
        if what == What::Tail {
            version.tail = Some((row, at));
        } else {
            let entry = Entry::new(group, at, Op::Upsert, Source::Hidden, row);
            events.entries.push(Entry { version: version.row, ..entry });
        }
    }
    if let (Some(open), Some(first)) = (open, rows.first()) {
        open.read_back(first.group, None, &mut events.entries);
    }
    Ok(())
}

impl Open {
    /// Adds the upsert that the version shows, and the delete that ends it unless another version starts there.
    fn read_back(self, group: u32, next_start: Option<Ordinal>, entries: &mut Vec<Entry>) {
        let shown_at = self.tail.map_or(self.start, |(_, at)| at);
        let shown = Entry::new(group, shown_at, Op::Upsert, Source::Visible, self.row);
        entries.push(Entry { version: self.row, tail: self.tail.map_or(NONE, |(row, _)| row), ..shown });
        if let Some(end) = self.end.filter(|end| next_start != Some(*end)) {
            entries.push(Entry::new(group, end, Op::Delete, Source::VisibleEnd, self.row));
        }
    }
}
