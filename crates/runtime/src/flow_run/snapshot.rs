//! What becomes of the image of a snapshot flow? It is compared with what the target shows; the core decides which rows of
//! the target go and come.

use async_trait::async_trait;
use futures::TryStreamExt;
use strandline_cdc_core::{BarrierKind, OnStale, SnapshotBatch, SnapshotRules, StoredAs};
use strandline_pipeline_sql::{SnapshotCdc, SnapshotSource};

use super::{
    Input, Pin, Taker, Turn,
    change::{Change, one_batch},
    images,
};
use crate::{
    batch::{self, BatchOutcome},
    error::{Error, ErrorKind, Result},
    snapshots::condition,
    state::PlannedBatch,
};

/// The target of a snapshot flow.
pub(super) struct Snapshot<'a> {
    of: Change<'a>,
    rules: SnapshotRules,
    /// A flow without versions only fills an empty target.
    initial: bool,
}

impl<'a> Snapshot<'a> {
    pub(super) fn new(of: Change<'a>, flow: &SnapshotCdc, rules: SnapshotRules, incarnation: u64) -> Self {
        // That versions rise is seen to where they are planned. What the target has above a version that was planned all
        // the same is a version that was taken before the flow's checkpoint was reset: it is there already.
        let on_stale = if incarnation == 0 { rules.on_stale } else { OnStale::Skip };
        let initial = flow.version().is_none() && flow.source != SnapshotSource::Callback;
        Self { of, rules: SnapshotRules { on_stale, ..rules }, initial }
    }

    /// G-14.
    async fn check_empty(&self) -> Result<()> {
        let target = self.of.target();
        let mut is_empty = batch::barriers(target).await?.greatest(BarrierKind::Snapshot).is_none();
        let mut rows = target.table.snapshot().await?.scan(None).await?;
        while is_empty && let Some(batch) = rows.try_next().await? {
            is_empty = batch.num_rows() == 0;
        }
        if is_empty {
            return Ok(());
        }
        Err(condition(
            ErrorKind::Data,
            "AUTO_CDC_FROM_SNAPSHOT_NON_EMPTY_TARGET_WITHOUT_VERSION",
            "a snapshot without a version only fills an empty target, and this one has been filled",
        )
        .with("table", self.of.name())
        .help("add WITH VERSION (..) to take one snapshot after another; or make the flow ONCE"))
    }
}

#[async_trait]
impl Taker for Snapshot<'_> {
    async fn landed(&self) -> Result<Option<u64>> {
        self.of.landed().await
    }

    async fn pin(&self) -> Result<Pin> {
        if !self.initial {
            return Ok(Pin::default());
        }
        let turn = self.of.turn().await;
        self.check_empty().await?;
        Ok(Pin { turn: Some(turn), ..Pin::default() })
    }

    async fn take(
        &self,
        input: &Input<'_>,
        planned: &PlannedBatch,
        turn: Option<Turn>,
    ) -> Result<BatchOutcome> {
        let target = self.of.target();
        let read =
            input.analysis.snapshot.as_deref().ok_or_else(|| {
                Error::new(ErrorKind::Internal, "a flow that is no snapshot flow has images")
            })?;
        let version = images::version_of(read, &planned.plan.slice)?;
        let rows: Vec<_> = input.source.read(&planned.plan.slice).await?.try_collect().await?;
        let rows = one_batch(&rows, &input.analysis.rows)?;
        let told = |error: Error| error.with("version", &version);
        let image = SnapshotBatch::new(target.spec, &rows, version.value()).map_err(|e| told(e.into()))?;
        let turn = match turn {
            Some(turn) => turn,
            None => self.of.turn().await,
        };
        let outcome = batch::apply_snapshot(target, planned.number, &image, &self.rules).await;
        drop(turn);
        let mut outcome = outcome.map_err(told)?;
        if outcome.landed_before {
            return Ok(outcome);
        }
        // Users know these flows by the rows that they write; which of them are upserts is a matter of change flows.
        let counts = &mut outcome.counts;
        outcome.output_rows = Some(match target.spec.stored_as() {
            StoredAs::Scd1 => counts.upserted.saturating_add(counts.deleted),
            StoredAs::Scd2 | StoredAs::Bitemporal => counts.upserted,
        });
        (counts.upserted, counts.deleted) = (0, 0);
        Ok(outcome)
    }
}
