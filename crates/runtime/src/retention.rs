//! How long is a delete remembered that nothing shows, and what follows when it is forgotten?
//!
//! For ever, unless the target's property gives an age. Then tombstones of that age are collected at the end of an
//! update, and the state records the *horizon*: the greatest sequence that was collected. From then on an older event of a
//! key without a row can't be told from one that the tombstone would have kept out, and is dropped. So a flow that brings
//! a history must not start any more, unless that is accepted by name.

use std::time::Duration;

use strandline_cdc_core::BarrierKind;
use strandline_pipeline_sql::FlowDefinition;
use strandline_table_formats::contract::{CommitOutcome, LookupPlan, TableChange, WriterId};

use crate::{
    analysis::{FlowAnalysis, Work},
    batch::{self, Target, Writer},
    error::{Error, ErrorKind, Result},
    flow_run,
    properties::ACCEPT_HORIZON,
    target::{self, About},
    update::Context,
};

/// Who collects, in the stamps of a target. It has numbers of its own, so that no batch of a flow is taken for done: no flow
/// comes to this incarnation, whatever its name is.
const COLLECTOR: &str = "__strandline_tombstones";
const COLLECTORS: u64 = u64::MAX;

/// Collects the tombstones of the target of this flow that are older than `age`.
///
/// What is collected depends on the state that the newest version names, and goes in a commit that builds on it: done
/// twice, or again after a crash, it finds nothing left.
pub(crate) async fn collect(
    context: &Context,
    flow: &FlowDefinition,
    analysis: &FlowAnalysis,
    age: Duration,
) -> Result<()> {
    let Work::Cdc(work) = &analysis.work else { return Ok(()) };
    let format = context.format.as_ref();
    if format.open(&flow.target).await?.is_none() || history_is_missing(context, &flow.target).await? {
        return Ok(());
    }
    let (table, spec) = target::cdc_target(format, &flow.target, work, About::default()).await?;
    let side = flow_run::side_state(context, &flow.target, Some(&spec));
    let id =
        WriterId { pipeline: context.pipeline.clone(), flow: COLLECTOR.to_owned(), incarnation: COLLECTORS };
    let writer = Writer { id, epoch: context.epoch };
    let target = Target { spec: &spec, table: table.as_ref(), side: &side, writer: &writer };
    let before = context.clock.now().saturating_sub(age).as_millis();
    collect_before(target, i64::try_from(before).unwrap_or(i64::MAX)).await
}

/// Whether a flow that brings a history has not brought all of it: it would lose what the tombstones don't keep out.
async fn history_is_missing(context: &Context, target: &str) -> Result<bool> {
    for flow in context.definition.flows.iter().filter(|flow| flow.once && flow.target == target) {
        if flow_run::completed_at(context, &flow.name).await?.is_none() {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn collect_before(target: Target<'_>, applied_before: i64) -> Result<()> {
    let Target { spec, table, side, writer } = target;
    for _ in 0..batch::ATTEMPTS {
        let base = table.snapshot().await?;
        let state = side.open(base.state_version()).await?;
        let barriers = batch::stored_barriers(spec, &state)?;
        let every = LookupPlan { keys: None, columns: None, bound: None };
        let hidden = batch::rows_of(state.lookup(&every).await?, spec.side_schema()).await?;
        let collected = spec.collect_tombstones(&hidden, &barriers, applied_before)?;
        if collected.tombstones == 0 {
            return Ok(());
        }
        let version = side.write(&state, &collected.side, collected.barriers.rows()).await?;
        let number = base.last_batch(&writer.id).unwrap_or(0) + 1;
        let change = TableChange::Rows { deletes: Vec::new(), inserts: Vec::new() };
        match table.commit(base.as_ref(), change, &writer.stamp(number, version)).await? {
            CommitOutcome::Committed(_) | CommitOutcome::AlreadyApplied { .. } => return Ok(()),
            CommitOutcome::Conflict { .. } => {}
        }
    }
    // Nothing is lost by it: the next update collects.
    Ok(())
}

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
