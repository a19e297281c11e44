//! Which events are too old for a key whose tombstone may have been collected?

use arrow_array::ArrayRef;

use super::ordinals::ordinals;
use crate::{algebra::order::Ordinal, barriers::BarrierKind, batch::Prior, error::CdcError};

/// The greatest sequence of a collected tombstone, against the sequences of a batch.
pub(super) struct Horizon {
    /// Per event, whether it is not newer than the horizon; empty without a horizon.
    covered: Vec<bool>,
}

impl Horizon {
    pub(super) fn new(prior: &Prior, sequence: &ArrayRef) -> Result<Self, CdcError> {
        let Some(horizon) = prior.barriers.greatest(BarrierKind::Horizon) else {
            return Ok(Self { covered: Vec::new() });
        };
        let at = ordinals(&[sequence, &horizon])?;
        let [events, horizon] = at.as_slice() else { return Ok(Self { covered: Vec::new() }) };
        let horizon: Option<Ordinal> = horizon.first().copied();
        Ok(Self { covered: events.iter().map(|at| horizon.is_some_and(|horizon| *at <= horizon)).collect() })
    }

    /// True for an event that is dropped unless its key has a current row.
    pub(super) fn covers(&self, event: u32) -> bool {
        self.covered.get(event as usize) == Some(&true)
    }
}
