//! Where does an event stand among the events of its key, and which of several at one place wins? (R-TIE)
//!
//! The position of an event is `(sequence, rank, payload)`; of two events the one with the greater position wins. Ranks
//! at one sequence: barrier, snapshot row, retraction, delete, upsert. So a snapshot loses to the changes of its own
//! version, and an update delivered as delete and insert with one sequence is an update and no loss. Two different upserts at one sequence are a *tie*: the larger payload wins, whatever came first.

use std::cmp::Ordering;

/// A sequence value as a number that sorts like it. Ordinals compare within one batch only.
pub(crate) type Ordinal = u64;

/// What an event does. The order of the variants is their rank at one sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Op {
    /// A truncate or a snapshot: every older event of the key is gone.
    Barrier,
    /// A row of a snapshot.
    Snapshot,
    /// Bitemporal: what was said of this business sequence so far does not count.
    Retract,
    Delete,
    Upsert,
}

/// Where an event stands among the events of its key, payload aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) at: Ordinal,
    pub(crate) op: Op,
}

/// An event as the algebra sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event<Row> {
    pub(crate) at: Ordinal,
    pub(crate) op: Op,
    /// Handle of the row that holds the event's values.
    pub(crate) row: Row,
}

impl<Row> Event<Row> {
    pub(crate) fn position(&self) -> Position {
        Position { at: self.at, op: self.op }
    }
}

/// How two events of one key relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    /// The first stands before the second.
    Before,
    /// They are the same event, received twice.
    Same,
    /// The first stands after the second.
    After,
}

/// Relates two events; `payload` compares the values of two upserts and is asked only when nothing else decides.
/// The flag tells that they are a tie: two different upserts at one sequence.
pub(crate) fn relate<Row: Copy>(
    a: Event<Row>,
    b: Event<Row>,
    payload: impl FnOnce(Row, Row) -> Ordering,
) -> (Relation, bool) {
    let relation = |ordering| match ordering {
        Ordering::Less => Relation::Before,
        Ordering::Equal => Relation::Same,
        Ordering::Greater => Relation::After,
    };
    let place = a.position().cmp(&b.position());
    if place.is_eq() && a.op == Op::Upsert {
        let ordering = payload(a.row, b.row);
        return (relation(ordering), ordering.is_ne());
    }
    (relation(place), false)
}

/// The winner of the events at one sequence of one key, and how many ties were met on the way.
///
/// Of equal events the first given wins: callers give what is stored before what is new, so that a replay changes
/// nothing.
pub(crate) fn settle<Row: Copy>(
    events: impl IntoIterator<Item = Event<Row>>,
    mut payload: impl FnMut(Row, Row) -> Ordering,
) -> Option<(Event<Row>, u64)> {
    let mut events = events.into_iter();
    let mut winner = events.next()?;
    let mut ties: u64 = 0;
    for event in events {
        let (relation, tie) = relate(event, winner, &mut payload);
        ties = ties.saturating_add(u64::from(tie));
        if relation == Relation::After {
            winner = event;
        }
    }
    Some((winner, ties))
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
