//! What is left of the events of a key once those at one position are settled?
//!
//! At one position there is one event, or two: an upsert of a whole row, the larger one if there were several, and an
//! upsert of some leaves, of which each has its largest value (R-TIE, A-2).

use super::{
    super::payload::RowRef,
    sources::Sources,
    stored::{Event, Origin},
};
use crate::{
    algebra::{
        order::{Op, Ordinal},
        step::{Write, merged},
    },
    spec::CdcSpec,
};

/// The events at one position.
#[derive(Debug, Clone)]
pub(super) struct Settled {
    pub(super) at: Ordinal,
    pub(super) system: Ordinal,
    pub(super) op: Op,
    /// Where the sequences are.
    pub(super) sequence: RowRef,
    /// What they write together.
    pub(super) write: Option<Write<RowRef>>,
    /// What must be known of them.
    pub(super) parts: Vec<Part>,
    /// Whether an event of the batch is among them.
    of_batch: bool,
}

/// An event that must be known.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) what: What,
    /// Where it is stored; [`Origin::Batch`] for nowhere.
    pub(super) origin: Origin,
}

/// What an event says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// Nothing but what it does.
    Bare,
    Whole(RowRef),
    Leaves(Vec<(usize, RowRef)>),
}

impl Settled {
    /// True when the batch says something here that is not stored yet. (Stored events may be told in other side rows from
    /// now on; that is no news.)
    pub(super) fn is_new(&self) -> bool {
        self.of_batch && self.parts.iter().any(|part| part.origin == Origin::Batch)
    }
}

/// Settles the events of a key, in place ordered. `lost` gets the number of upserts that another one of their position
/// kept from being shown, where one of the two is new, and one of those.
pub(super) fn settle(
    spec: &CdcSpec,
    sources: &Sources<'_>,
    events: &mut [Event],
    lost: &mut impl FnMut(u64, RowRef),
) -> Vec<Settled> {
    events.sort_by_key(|event| (event.at, event.system, event.given, event.op, event.origin));
    let position = |event: &Event| (event.at, event.system, event.given, event.op);
    let same = |a: &Event, b: &Event| position(a) == position(b);
    events.chunk_by(same).filter_map(|events| settle_one(spec, sources, events, lost)).collect()
}

fn settle_one(
    spec: &CdcSpec,
    sources: &Sources<'_>,
    events: &[Event],
    lost: &mut impl FnMut(u64, RowRef),
) -> Option<Settled> {
    let first = events.first()?;
    let settled = |write, parts| Settled {
        at: first.at,
        system: first.system,
        op: first.op,
        sequence: first.sequence,
        write,
        parts,
        of_batch: events.iter().any(|event| event.origin == Origin::Batch),
    };
    if first.write.is_none() {
        return Some(settled(None, vec![Part { what: What::Bare, origin: first.origin }]));
    }
    let mut whole: Option<(RowRef, Origin)> = None;
    let mut leaves: Option<Vec<(usize, RowRef)>> = None;
    let larger = |leaf: usize, old: RowRef, new: RowRef| {
        if sources.compare(leaf, new, old).is_gt() { new } else { old }
    };
    for event in events {
        let Some(write) = &event.write else { continue };
        match write.whole {
            Some(row) if whole.is_none_or(|(best, _)| sources.compare_rows(row, best).is_gt()) => {
                whole = Some((row, event.origin));
            }
            Some(_) => {}
            None => {
                leaves = Some(
                    leaves.map_or_else(|| write.leaves.clone(), |old| merged(&old, &write.leaves, larger)),
                );
            }
        }
    }
    if let (Some((row, _)), Some(over), true) = (whole, &leaves, spec.partial.is_some()) {
        // Under partial updates a whole row is a row that sets every leaf.
        let every: Vec<(usize, RowRef)> = (0..sources.leaves.len()).map(|leaf| (leaf, row)).collect();
        let both = merged(&every, over, larger);
        (whole, leaves) = if both == every { (whole, None) } else { (None, Some(both)) };
    }
    let mut parts: Vec<Part> =
        whole.iter().map(|&(row, origin)| Part { what: What::Whole(row), origin }).collect();
    if let Some(leaves) = &leaves {
        parts.push(partial_part(spec, sources, events, leaves));
    }
    let over = leaves.unwrap_or_default();
    let over = over
        .into_iter()
        .filter(|&(leaf, row)| whole.is_none_or(|(whole, _)| sources.compare(leaf, row, whole).is_gt()));
    let write = Write { whole: whole.map(|(row, _)| row), leaves: over.collect() };
    count_lost(sources, events, &write, lost);
    Some(settled(Some(write), parts))
}

/// Leaves that were merged, as the event that they are: a stored one if it says just that, a whole row if it is one.
fn partial_part(spec: &CdcSpec, sources: &Sources<'_>, events: &[Event], leaves: &[(usize, RowRef)]) -> Part {
    let alike =
        |event: &&Event| event.write.as_ref().is_some_and(|w| w.whole.is_none() && w.leaves == leaves);
    let origin = events.iter().find(alike).map_or(Origin::Batch, |event| event.origin);
    let one_row = leaves.first().filter(|(_, row)| leaves.iter().all(|(_, other)| other == row));
    match one_row {
        // Under partial updates rows are merged leaf by leaf anyway, so that one that sets all of them is a whole row.
        Some(&(_, row))
            if spec.partial.is_some() && origin == Origin::Batch && leaves.len() == sources.leaves.len() =>
        {
            Part { what: What::Whole(row), origin }
        }
        _ => Part { what: What::Leaves(leaves.to_vec()), origin },
    }
}

fn count_lost(
    sources: &Sources<'_>,
    events: &[Event],
    write: &Write<RowRef>,
    lost: &mut impl FnMut(u64, RowRef),
) {
    let Some(new) = events.iter().find(|event| event.origin == Origin::Batch).filter(|_| events.len() > 1)
    else {
        return;
    };
    let shown = |leaf: usize| {
        let over = write.leaves.iter().find(|(other, _)| *other == leaf).map(|(_, row)| *row);
        over.or(write.whole)
    };
    let differs =
        |leaf: usize, row: RowRef| shown(leaf).is_some_and(|shown| sources.compare(leaf, row, shown).is_ne());
    let lose = |event: &&Event| {
        event.write.as_ref().is_some_and(|own| match own.whole {
            Some(row) => (0..sources.leaves.len()).any(|leaf| differs(leaf, row)),
            None => own.leaves.iter().any(|&(leaf, row)| differs(leaf, row)),
        })
    };
    let count = events.iter().filter(lose).count() as u64;
    if count > 0 {
        lost(count, new.sequence);
    }
}
