//! How long is a delete remembered that nothing shows, and what follows when it is forgotten?
//!
//! For ever, unless the target's property gives an age. Then tombstones of that age are collected at the end of an
//! update, and the state records the *horizon*: the greatest sequence that was collected. From then on an older event of a
//! key without a row can't be told from one that the tombstone would have kept out, and is dropped. So a flow that brings
//! a history must not start any more, unless that is accepted by name.

use strandline_cdc_core::BarrierKind;

use crate::{
    batch::{self, Target},
    error::{Error, ErrorKind, Result},
    properties::ACCEPT_HORIZON,
};

/// Refuses a target whose old tombstones were collected, for a ONCE flow.
pub(crate) async fn check_no_horizon(target: Target<'_>) -> Result<()> {
    let barriers = batch::barriers(target).await?;
    let Some(horizon) = barriers.greatest(BarrierKind::Horizon) else { return Ok(()) };
    Err(Error::new(
        ErrorKind::Definition,
        "old tombstones of the target were collected, so that what a ONCE flow brings of keys without a row would vanish",
    )
    .with("horizon", arrow_cast::display::array_value_to_string(&horizon, 0)?)
    .help(format!("set the table property {ACCEPT_HORIZON} to true if that is meant")))
}
