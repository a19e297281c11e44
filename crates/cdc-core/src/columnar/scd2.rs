//! SCD2: how do the events of a key become versions, and which stored rows must change for it?
//!
//! 1. [`events`]: the stored rows of the batch's keys are read back as the events that they stand for, from the first
//!    row that the batch can touch on; the batch's events join them, in order.
//! 2. The algebra settles each sequence and folds each key into versions.
//! 3. [`effects`]: what the fold found is compared with what is stored; only the difference is put out.

mod effects;
mod events;
mod sources;

use self::{
    effects::Effects,
    events::{Entry, Source},
    sources::Sources,
};
use super::{
    Ties,
    gather::by_group,
    keys::KeyIndex,
    payload::{Pair, equal_pairs},
    unchanged,
};
use crate::{
    algebra::{
        order::{Event, Op, settle},
        timeline::{Found, fold},
    },
    batch::{ChangeBatch, Counts, Prior, Reconciled, Reconciliation},
    error::CdcError,
    spec::CdcSpec,
};

pub(super) fn reconcile(
    spec: &CdcSpec,
    prior: &Prior,
    changes: &ChangeBatch,
) -> Result<Reconciliation, CdcError> {
    let index = KeyIndex::new(&spec.key_columns(&changes.rows)?)?;
    let sources = Sources::new(spec, prior, changes)?;
    let mut counts = Counts { events: changes.len() as u64, ..Counts::default() };
    let events = events::collect(spec, &sources, &index, &mut counts)?;

    let mut ties = Ties::default();
    let settled = settle_all(&events.entries, index.len(), &sources, &mut ties)?;
    ties.check(spec, &index, changes)?;
    counts.tied = ties.count;

    let repeated = repeated(spec, &sources, &settled)?;
    let mut effects = Effects::new(&sources, &events.region, &settled);
    for key in settled.chunk_by(|a, b| a.group == b.group).scan(0_usize, |from, key| {
        let range = *from..(*from).saturating_add(key.len());
        *from = range.end;
        Some(range)
    }) {
        fold(
            key,
            |i| settled.get(i).map_or(Op::Delete, |entry| entry.op),
            |i| repeated.get(i) == Some(&true),
            |found| match found {
                Found::Version(version) => effects.version(version),
                Found::UnmatchedDelete(i) => effects.unmatched_delete(i),
            },
        );
    }
    let (target, side) = effects.finish(spec)?;
    counts.upserted = target.inserts.num_rows() as u64;
    counts.deleted = deletes_in_effect(&settled);
    if target.is_empty() && side.is_empty() {
        return Ok(unchanged(spec, prior, counts));
    }
    Ok(Reconciliation::Done(Reconciled { target, side, barriers: prior.barriers.clone(), counts }))
}

/// Delete events of the batch that end a version: those that directly follow an upsert of their key.
fn deletes_in_effect(settled: &[Entry]) -> u64 {
    let ends = |pair: &&[Entry]| {
        matches!(pair, [before, delete]
            if before.group == delete.group
                && before.op == Op::Upsert
                && delete.op == Op::Delete
                && delete.source == Source::Batch)
    };
    settled.windows(2).filter(ends).count() as u64
}

/// Orders the events and keeps one a sequence of a key.
fn settle_all(
    entries: &[Entry],
    keys: usize,
    sources: &Sources<'_>,
    ties: &mut Ties,
) -> Result<Vec<Entry>, CdcError> {
    let mut entries = by_group(entries, keys, |entry| entry.group);
    for key in entries.chunk_by_mut(|a, b| a.group == b.group) {
        // What is stored sorts before what is new, so that an event received again changes nothing.
        key.sort_unstable_by_key(|e| (e.at, e.op, e.source, e.row));
    }
    let alike = |a: &Entry, b: &Entry| a.group == b.group && a.at == b.at;
    if !entries.windows(2).any(|pair| matches!(pair, [a, b] if alike(a, b))) {
        return Ok(entries);
    }
    let payload = sources.payload_order()?;
    let mut settled = Vec::with_capacity(entries.len());
    for same in entries.chunk_by(alike) {
        let [only] = same else {
            let events = same.iter().map(|entry| Event { at: entry.at, op: entry.op, row: entry });
            let compare = |a: &Entry, b: &Entry| payload.compare(a.payload(), b.payload());
            if let Some((winner, met)) = settle(events, compare) {
                let place = winner.row.sequence();
                if let Some(sequences) = sources.sequences.sources().get(place.source) {
                    ties.note(met, winner.row.group, sequences, place.row);
                }
                settled.push(*winner.row);
            }
            continue;
        };
        settled.push(*only);
    }
    Ok(settled)
}

/// For each settled event: does it equal the one before on the tracked columns? Of stored events that is known already:
/// those of one run do, others don't.
fn repeated(spec: &CdcSpec, sources: &Sources<'_>, settled: &[Entry]) -> Result<Vec<bool>, CdcError> {
    let mut repeated = vec![false; settled.len()];
    let mut unknown = Vec::new();
    for ((number, slot), pair) in repeated.iter_mut().enumerate().skip(1).zip(settled.windows(2)) {
        let [before, after] = pair else { continue };
        if before.group != after.group || before.op != Op::Upsert || after.op != Op::Upsert {
            continue;
        }
        match before.stored_in_one_run(after) {
            Some(known) => *slot = known,
            None => unknown.push(Pair { number, before: before.payload(), after: after.payload() }),
        }
    }
    let tracked = spec.tracked.iter().filter_map(|&i| sources.columns.get(i));
    for pair in equal_pairs(tracked, unknown)? {
        if let Some(slot) = repeated.get_mut(pair.number) {
            *slot = true;
        }
    }
    Ok(repeated)
}
