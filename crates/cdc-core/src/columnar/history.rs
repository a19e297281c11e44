//! How is a key reconciled of which all events must be known: bitemporal targets, SCD2 under partial updates or with a horizon?
//!
//! 1. [`stored`]: the rows of each key of the batch are read back as the events that they stand for; the changes join.
//! 2. [`settled`]: one event, or two, are left at each position.
//! 3. [`versions`] or [`beliefs`]: the algebra folds them into what the target must show, and into what must be hidden
//!    beside it. Only the difference to what is stored is put out.

mod beliefs;
mod output;
mod settled;
pub(super) mod sources;
mod stored;
mod versions;

use arrow_array::{Array, cast::AsArray};

use self::{
    output::Row,
    settled::settle,
    sources::Sources,
    stored::{Event, Key, Origin},
};
use super::{Ties, ids, keys::KeyIndex, side_schema, unchanged};
use crate::{
    barriers::{BarrierKind, Barriers, Keep},
    batch::{ChangeBatch, Counts, Prior, Reconciled, Reconciliation, RowChanges},
    error::CdcError,
    names,
    spec::{CdcSpec, StoredAs, SystemTime},
};

/// Whether the stored side rows, or the flow, need this way to reconcile.
pub(super) fn is_needed(spec: &CdcSpec, prior: &Prior) -> bool {
    let lists = prior.hidden.batch.column_by_name(names::AUTHORED);
    spec.stored_as == StoredAs::Bitemporal
        || spec.is_partial()
        // Whether a key has a current row is only known once all of its rows are read.
        || prior.barriers.greatest(BarrierKind::Horizon).is_some()
        || lists
            .and_then(|lists| lists.as_list_opt::<i32>())
            .is_some_and(|lists| lists.null_count() < lists.len())
}

/// What is to change: rows of the prior that go, rows that come.
#[derive(Debug, Default)]
struct Effects {
    visible_gone: Vec<u32>,
    hidden_gone: Vec<u32>,
    visible: Vec<Row>,
    hidden: Vec<Row>,
    counts: Counts,
}

impl Effects {
    fn count_past_beliefs(&mut self, rewritten: u64) {
        let count = &mut self.counts.past_beliefs_rewritten;
        *count = count.saturating_add(rewritten);
    }
}

pub(super) fn reconcile(
    spec: &CdcSpec,
    prior: &Prior,
    changes: &ChangeBatch,
) -> Result<Reconciliation, CdcError> {
    let index = KeyIndex::new(&spec.key_columns(&changes.rows)?)?;
    let sources = Sources::new(spec, prior, changes)?;
    let mut ties = Ties::default();
    let mut effects = Effects::default();
    for (group, key) in (0_u32..).zip(stored::keys(spec, &sources, &index)?) {
        let mut lost = |count: u64, row: super::payload::RowRef| {
            if let Some(sequences) = sources.sequence.values.sources().get(row.source) {
                ties.note(count, group, sequences, row.row);
            }
        };
        match spec.stored_as {
            StoredAs::Bitemporal => {
                beliefs::reconcile(spec, &sources, &key, &mut effects, &mut lost)?;
            }
            StoredAs::Scd1 | StoredAs::Scd2 => {
                versions::reconcile(spec, &sources, key, &mut effects, &mut lost)?;
            }
        }
    }
    ties.check(spec, &index, changes)?;
    let counts = Counts {
        events: changes.len() as u64,
        tied: ties.count,
        upserted: effects.visible.len() as u64,
        ..effects.counts
    };
    let barriers = system_time(spec, prior, changes)?;
    let nothing = effects.visible.is_empty()
        && effects.hidden.is_empty()
        && effects.visible_gone.is_empty()
        && effects.hidden_gone.is_empty();
    if nothing && barriers == prior.barriers {
        return Ok(unchanged(spec, prior, counts));
    }
    let side_schema = side_schema(spec, prior);
    Ok(Reconciliation::Done(Reconciled {
        target: RowChanges {
            deletes: ids(&prior.visible.ids, &effects.visible_gone),
            inserts: output::gather(spec, &sources, &spec.target, &effects.visible)?,
        },
        side: RowChanges {
            deletes: ids(&prior.hidden.ids, &effects.hidden_gone),
            inserts: output::gather(spec, &sources, &side_schema, &effects.hidden)?,
        },
        barriers,
        counts,
    }))
}

/// With monotonic system time the target remembers the greatest system sequence that it received.
fn system_time(spec: &CdcSpec, prior: &Prior, changes: &ChangeBatch) -> Result<Barriers, CdcError> {
    match &changes.system {
        Some(system) if spec.system_time == SystemTime::Monotonic => {
            prior.barriers.with(spec, BarrierKind::SystemTime, &system.at, Keep::Greatest)
        }
        _ => Ok(prior.barriers.clone()),
    }
}

/// Counts the changes that are older than what is known of their key.
fn count_late(known: &[Event], new: &[Event], axis: impl Fn(&Event) -> u64, counts: &mut Counts) {
    let Some(newest) = known.iter().map(&axis).max() else { return };
    let late = new.iter().filter(|event| axis(event) < newest).count();
    counts.late = counts.late.saturating_add(late as u64);
}
