//! What becomes of the rows of an AUTO CDC flow? They are changes: the core decides which rows of the target go and come.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use async_trait::async_trait;
use strandline_cdc_core::{CdcSpec, SystemTime};
use strandline_table_formats::{contract::Table, parquet, side_state::SideState};

use super::{
    Input, Pin, Taker, Turn,
    checks::{Checked, Checks},
};
use crate::{
    analysis::{Work, change_rows},
    batch::{self, BatchOutcome, Pinned, Writer},
    clock::milliseconds,
    error::{Error, ErrorKind, Result},
    state::{PlannedBatch, engine_path},
    types::conform,
    update::Context,
};

/// The target of a change flow.
pub(super) struct Change<'a> {
    context: &'a Context,
    name: &'a str,
    /// What the flow means for this target.
    spec: CdcSpec,
    table: Arc<dyn Table>,
    side: SideState,
    writer: Writer,
    checks: Option<Checks>,
}

impl<'a> Change<'a> {
    pub(super) fn new(
        context: &'a Context,
        name: &'a str,
        spec: CdcSpec,
        table: Arc<dyn Table>,
        writer: Writer,
        checks: Option<Checks>,
    ) -> Self {
        let side = side_state(context, name, Some(&spec));
        Self { context, name, spec, table, side, writer, checks }
    }

    pub(super) fn target(&self) -> batch::Target<'_> {
        batch::Target { spec: &self.spec, table: self.table.as_ref(), side: &self.side, writer: &self.writer }
    }

    /// The target's name.
    pub(super) fn name(&self) -> &str {
        self.name
    }

    /// Flows of one target take turns within a process, so that conflicts stay rare.
    pub(super) async fn turn(&self) -> Turn {
        self.context.turn(self.name).lock_owned().await
    }
}

#[async_trait]
impl Taker for Change<'_> {
    async fn landed(&self) -> Result<Option<u64>> {
        Ok(self.table.snapshot().await?.last_batch(&self.writer.id))
    }

    /// What a batch that is planned now may not be older than, in system time. It holds as long as no other flow takes
    /// its turn.
    async fn pin(&self) -> Result<Pin> {
        if self.spec.system_time() != SystemTime::Monotonic {
            return Ok(Pin::default());
        }
        let turn = self.turn().await;
        Ok(Pin { system_floor: batch::system_floor(self.target()).await?, turn: Some(turn) })
    }

    async fn take(
        &self,
        input: &Input<'_>,
        planned: &PlannedBatch,
        turn: Option<Turn>,
    ) -> Result<BatchOutcome> {
        let clauses = match &input.analysis.work {
            Work::Cdc(work) => work.clauses.as_ref(),
            Work::Append | Work::Sink(_) | Work::View(_) => None,
        };
        let Some(clauses) = clauses else {
            return Err(Error::new(ErrorKind::Internal, "a flow that is no change flow has changes"));
        };
        let rows = change_rows(clauses, input.rows(&planned.plan.slice).await?)?.collect().await?;
        let mut rows = one_batch(&rows, &input.analysis.rows)?;
        if let Some(envelope) = input.analysis.source.envelope()?
            && clauses.options.columns_to_update == Some(envelope.columns_name())
        {
            rows = envelope.fit_lists(rows, &self.spec)?;
        }
        let planned_at = milliseconds(&planned.plan.planned_at).ok_or_else(|| {
            Error::new(ErrorKind::State, "a plan does not say when it was made")
                .with("planned_at", &planned.plan.planned_at)
                .help("the state of the flow was changed by hand: restore it")
        })?;
        let pinned = Pinned {
            planned_at: Some(planned_at),
            system_floor: planned.plan.system_floor.as_deref().map(floor_of).transpose()?,
        };
        let (rows, quality, dropped) = match &self.checks {
            None => (rows, None, None),
            Some(checks) => {
                let Checked { rows, quality, dropped } =
                    checks.events(&self.spec, &rows, &pinned, planned)?;
                (rows, Some(quality), dropped)
            }
        };
        let turn = match turn {
            Some(turn) => turn,
            None => self.turn().await,
        };
        let outcome =
            batch::apply_changes(self.target(), planned.number, &rows, &pinned, dropped.as_ref()).await;
        drop(turn);
        let mut outcome = outcome?;
        outcome.counts.events += quality.as_ref().map_or(0, |quality| quality.dropped_records);
        Ok(BatchOutcome { quality, ..outcome })
    }
}

/// The side state of a target; of an append target there is none.
pub(crate) fn side_state(context: &Context, target: &str, spec: Option<&CdcSpec>) -> SideState {
    let keys = spec.iter().flat_map(|spec| spec.key_names()).map(str::to_owned).collect();
    SideState::new(Arc::clone(&context.store), engine_path(&["state", target]), keys)
}

/// A value of one row, as it stands in a plan.
pub(super) fn floor_text(floor: &ArrayRef) -> Result<String> {
    let rows = RecordBatch::try_from_iter_with_nullable([("floor", Arc::clone(floor), true)])?;
    Ok(parquet::to_text(&rows)?)
}

fn floor_of(text: &str) -> Result<ArrayRef> {
    let rows = parquet::from_text(text)
        .map_err(|e| Error::from(e).with("system_floor of a plan, bytes", text.len()))?;
    let floor = rows.columns().first().filter(|_| rows.num_rows() == 1).cloned();
    floor.ok_or_else(|| Error::new(ErrorKind::State, "the system_floor of a plan is no value"))
}

/// All rows as one batch in stored types.
pub(super) fn one_batch(rows: &[RecordBatch], schema: &SchemaRef) -> Result<RecordBatch> {
    let fitted = rows.iter().map(|batch| conform(batch, schema)).collect::<Result<Vec<_>>>()?;
    Ok(concat_batches(schema, &fitted)?)
}
