//! Which event authored each column of a row (each leaf, where columns are structs), and which events must be known for
//! that to stay true?
//!
//! An event authors a whole row, or some columns of it. After the newest delete each column has the value of its newest
//! author; an event of a whole row authors them all. At one sequence the larger whole row wins as a whole (R-TIE); beside
//! it, and among events of some columns, a column has the largest value of its authors there.
//!
//! An event matters as long as the row shows a column of it. Nothing that comes later can bring back what it has lost:
//! that would take an event fewer.

use std::cmp::Ordering;

use super::order::{Op, Ordinal, Position};

/// The columns that an event authors: all, or those at these places, in ascending order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authored<'a> {
    Whole,
    Columns(&'a [usize]),
}

/// When an event happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum When {
    /// Before everything that has a sequence. Such an event is never stored.
    First,
    At(Position),
}

/// An event of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'a, Row> {
    /// What it does stands there too; one before everything is an upsert.
    pub(crate) at: When,
    pub(crate) authored: Authored<'a>,
    /// Where its sequence is.
    pub(crate) row: Row,
    /// Where its values are.
    pub(crate) values: Row,
    /// True for an event of the batch.
    pub(crate) new: bool,
}

/// A key after all its events.
#[derive(Debug)]
pub(crate) enum State<Row> {
    /// The newest event is a barrier.
    Empty,
    /// The newest event is this delete.
    Gone(Known<Row>),
    Live(Live<Row>),
}

/// A sequence, and a row that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known<Row> {
    pub(crate) at: Ordinal,
    pub(crate) row: Row,
}

/// A row, and what must be kept beside it.
#[derive(Debug)]
pub(crate) struct Live<Row> {
    /// The newest upsert.
    pub(crate) newest: Known<Row>,
    /// Where it stands.
    pub(crate) newest_at: When,
    /// The value of each column, `None` where nobody authored it.
    pub(crate) values: Vec<Option<Row>>,
    pub(crate) authors: Vec<Author<Row>>,
    /// The newest delete, when nobody authored some column after it.
    pub(crate) delete: Option<Known<Row>>,
    /// Upserts that another of their sequence kept from being shown, and one of the sequence that is new.
    pub(crate) ties: u64,
    pub(crate) tied: Option<Row>,
}

/// Upserts at one sequence that must be known.
#[derive(Debug)]
pub(crate) struct Author<Row> {
    pub(crate) known: Known<Row>,
    /// [`Op::Snapshot`] for the row of a snapshot.
    pub(crate) op: Op,
    /// The columns; `None` for the upsert of a whole row.
    pub(crate) columns: Option<Vec<usize>>,
    /// The values that the row itself does not tell, by column.
    pub(crate) values: Vec<(usize, Row)>,
}

/// How the events of a flow are folded.
pub(crate) struct Fold<Compare> {
    pub(crate) columns: usize,
    /// Whether whole rows at one sequence are merged column by column too, so that a row of which every column was
    /// authored at one sequence is a whole row.
    pub(crate) by_column: bool,
    /// Compares a column of two rows.
    pub(crate) compare: Compare,
}

impl<Row> Entry<'_, Row> {
    fn op(&self) -> Op {
        match self.at {
            When::First => Op::Upsert,
            When::At(position) => position.op,
        }
    }

    fn resets(&self) -> bool {
        matches!(self.op(), Op::Barrier | Op::Delete)
    }
}

/// The state of a key. Of equal events the first given wins: give what is stored before what is new. `None` without an
/// event that is stored or new.
pub(crate) fn fold<Row: Copy>(
    entries: &[Entry<'_, Row>],
    how: &Fold<impl Fn(usize, Row, Row) -> Ordering>,
) -> Option<State<Row>> {
    let Fold { columns, by_column, compare } = how;
    let columns = *columns;
    let resets = entries.iter().filter(|entry| entry.resets());
    let reset = resets.reduce(|best, other| if other.at > best.at { other } else { best });
    let after = reset.map_or(When::First, |reset| reset.at);
    let live: Vec<&Entry<'_, Row>> =
        entries.iter().filter(|entry| !entry.resets() && entry.at >= after).collect();
    let delete = reset.filter(|reset| reset.op() == Op::Delete).and_then(known);
    let upserts = live.iter().filter(|entry| entry.at != When::First);
    let Some(newest) = upserts.reduce(|best, other| if other.at > best.at { other } else { best }) else {
        // A row without a sequence is older than every barrier.
        return delete.map(State::Gone).or(reset.map(|_| State::Empty));
    };
    let newest_at = newest.at;
    let newest = known(newest)?;
    let mut ties = Ties { lost: vec![false; live.len()], tied: None };
    let whole = newest_whole(&live, columns, compare, &mut ties);
    let whole_at = whole.map(|whole| whole.at);
    let shown = shown(&live, columns, whole, compare);
    let value = |(column, shown): (usize, &Shown<Row>)| match (shown.partial, whole) {
        (Some(value), Some(whole)) if Some(whole.at) == shown.at => {
            Some(if compare(column, whole.values, value).is_ge() { whole.values } else { value })
        }
        (Some(value), _) => Some(value),
        (None, whole) => whole.map(|whole| whole.values),
    };
    let values: Vec<Option<Row>> = shown.iter().enumerate().map(value).collect();
    ties.in_columns(&live, whole, &shown, &values, compare);
    let whole_is_shown = shown.iter().any(|column| column.at == whole_at);
    let all_at_newest = shown.iter().all(|column| column.at == Some(newest_at));
    let plain = all_at_newest
        && (*by_column
            || (whole_at == Some(newest_at) && shown.iter().all(|column| column.partial.is_none())));
    let mut authors = Vec::new();
    if !plain {
        let kept = whole.filter(|_| whole_is_shown);
        authors.extend(kept.and_then(|entry| known(&entry).map(|known| (known, entry))).map(
            |(known, entry)| Author {
                known,
                op: entry.op(),
                columns: None,
                values: (0..columns).map(|column| (column, entry.values)).collect(),
            },
        ));
        authors.extend(partial_authors(&live, &shown, kept.and_then(|whole| known(&whole)), newest));
    }
    Some(State::Live(Live {
        newest,
        newest_at,
        delete: delete.filter(|_| shown.iter().any(|column| column.at.is_none())),
        values,
        authors,
        ties: ties.lost.iter().filter(|lost| **lost).count() as u64,
        tied: ties.tied,
    }))
}

fn known<Row: Copy>(entry: &Entry<'_, Row>) -> Option<Known<Row>> {
    match entry.at {
        When::First => None,
        When::At(position) => Some(Known { at: position.at, row: entry.row }),
    }
}

/// Who authored what a column shows.
#[derive(Debug, Clone, Copy)]
struct Shown<Row> {
    /// The sequence of its newest author; `None` without one.
    at: Option<When>,
    /// The largest value that events of some columns have there.
    partial: Option<Row>,
}

/// The newest event of a whole row.
fn newest_whole<'a, Row: Copy>(
    live: &[&Entry<'a, Row>],
    columns: usize,
    compare: &impl Fn(usize, Row, Row) -> Ordering,
    ties: &mut Ties<Row>,
) -> Option<Entry<'a, Row>> {
    let wholes = || live.iter().enumerate().filter(|(_, entry)| entry.authored == Authored::Whole);
    let newest = wholes().map(|(_, entry)| entry.at).max()?;
    let larger = |a: &Entry<'_, Row>, b: &Entry<'_, Row>| {
        (0..columns).map(|column| compare(column, a.values, b.values)).find(|o| o.is_ne())
    };
    let here = || wholes().filter(|(_, entry)| entry.at == newest);
    let best = here()
        .map(|(_, entry)| **entry)
        .reduce(|best, other| if larger(&other, &best) == Some(Ordering::Greater) { other } else { best })?;
    if let Some((_, new)) = here().find(|(_, entry)| entry.new) {
        for (place, _) in here().filter(|(_, entry)| larger(entry, &best).is_some()) {
            ties.note(place, new.row);
        }
    }
    Some(best)
}

fn shown<Row: Copy>(
    live: &[&Entry<'_, Row>],
    columns: usize,
    whole: Option<Entry<'_, Row>>,
    compare: &impl Fn(usize, Row, Row) -> Ordering,
) -> Vec<Shown<Row>> {
    let mut shown = vec![Shown { at: whole.map(|whole| whole.at), partial: None }; columns];
    for entry in live {
        let Authored::Columns(authored) = entry.authored else { continue };
        for &column in authored {
            let Some(shown) = shown.get_mut(column) else { continue };
            let newer = Some(entry.at).cmp(&shown.at);
            let larger = shown.partial.is_none_or(|old| compare(column, entry.values, old).is_gt());
            if newer.is_gt() || (newer.is_eq() && larger) {
                *shown = Shown { at: Some(entry.at), partial: Some(entry.values) };
            }
        }
    }
    shown
}

/// Per sequence, the columns that events of some columns show there. The newest sequence is always among them, unless
/// the whole row that is kept stands there. Beside that one their values must be kept: the row does not tell whose they
/// are.
fn partial_authors<Row: Copy>(
    live: &[&Entry<'_, Row>],
    shown: &[Shown<Row>],
    whole: Option<Known<Row>>,
    newest: Known<Row>,
) -> Vec<Author<Row>> {
    let partial = || {
        shown.iter().enumerate().filter_map(|(column, shown)| match (shown.at, shown.partial) {
            (Some(When::At(position)), Some(value)) => Some((column, position.at, value)),
            _ => None,
        })
    };
    let mut sequences: Vec<Ordinal> = partial().map(|(_, at, _)| at).collect();
    let upsert = |at: Ordinal| When::At(Position { at, op: Op::Upsert });
    let beside = |at: Ordinal| whole.is_some_and(|whole| whole.at == at);
    if !beside(newest.at) {
        sequences.push(newest.at);
    }
    sequences.sort_unstable();
    sequences.dedup();
    let author = |at: Ordinal| {
        let here = || partial().filter(|(_, column_at, _)| *column_at == at);
        let row = live.iter().find(|entry| entry.at == upsert(at) && entry.authored != Authored::Whole)?.row;
        Some(Author {
            known: Known { at, row },
            op: Op::Upsert,
            columns: Some(here().map(|(column, _, _)| column).collect()),
            values: here().filter(|_| beside(at)).map(|(column, _, value)| (column, value)).collect(),
        })
    };
    sequences.into_iter().filter_map(author).collect()
}

/// The upserts that lost to another one of their sequence, where one of the two is new.
struct Ties<Row> {
    lost: Vec<bool>,
    tied: Option<Row>,
}

impl<Row: Copy> Ties<Row> {
    fn note(&mut self, place: usize, new: Row) {
        self.tied.get_or_insert(new);
        if let Some(lost) = self.lost.get_mut(place) {
            *lost = true;
        }
    }

    fn in_columns(
        &mut self,
        live: &[&Entry<'_, Row>],
        whole: Option<Entry<'_, Row>>,
        shown: &[Shown<Row>],
        values: &[Option<Row>],
        compare: &impl Fn(usize, Row, Row) -> Ordering,
    ) {
        for (column, (shown, value)) in shown.iter().zip(values).enumerate() {
            let (Some(at), Some(value), Some(_)) = (shown.at, *value, shown.partial) else { continue };
            let is_best = |entry: &Entry<'_, Row>| {
                let same = |best: Entry<'_, Row>| {
                    (0..values.len()).all(|c| compare(c, entry.values, best.values).is_eq())
                };
                whole.is_some_and(same)
            };
            let authors = || {
                live.iter().enumerate().filter(|(_, entry)| {
                    entry.at == at
                        && match entry.authored {
                            Authored::Whole => is_best(entry),
                            Authored::Columns(columns) => columns.contains(&column),
                        }
                })
            };
            let Some((_, new)) = authors().find(|(_, entry)| entry.new) else { continue };
            for (place, _) in authors().filter(|(_, entry)| compare(column, entry.values, value).is_ne()) {
                self.note(place, new.row);
            }
        }
    }
}

#[cfg(test)]
#[path = "authorship_tests.rs"]
mod tests;
