//! Where are the constraints of a target applied to the rows of a flow?
//!
//! Between its query and its target. What they find counts when the batch has landed.

use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use arrow_select::filter::filter_record_batch;
use futures::{StreamExt, stream};
use strandline_cdc_core::{CdcSpec, Proposal};
use strandline_pipeline_sql::DatasetDefinition;

use super::Input;
use crate::{
    analysis::SEQUENCE,
    batch::{Pinned, Writer, change_input},
    error::Result,
    expectations::{Dropped, Expectations, Quarantine, quarantine_columns},
    report::DataQuality,
    sources::SourceStream,
    state::PlannedBatch,
    types::conform,
};

/// The constraints of a target, and where rows go that they drop.
#[derive(Debug, Clone)]
pub(super) struct Checks {
    expectations: Expectations,
    quarantine: Option<Quarantine>,
}

/// Change rows that passed, and what else there is to know.
pub(super) struct Checked {
    pub(super) rows: RecordBatch,
    pub(super) quality: DataQuality,
    pub(super) dropped: Option<Dropped>,
}

/// What was found in a stream of rows, complete once the stream has ended.
#[derive(Debug, Clone)]
pub(super) struct Tally(Arc<Mutex<DataQuality>>);

impl Tally {
    pub(super) fn found(&self) -> DataQuality {
        self.0.lock().map(|found| found.clone()).unwrap_or_default()
    }
}

impl Checks {
    /// The constraints of the flow's target, over these of its columns; `None` where it has none. `sequence` is the type
    /// of what orders the rows of an AUTO CDC flow.
    pub(super) async fn open(
        input: &Input<'_>,
        columns: &SchemaRef,
        sequence: Option<&DataType>,
        writer: &Writer,
    ) -> Result<Option<Self>> {
        let Input { context, flow, analysis, .. } = input;
        let mut tables = context.definition.datasets.iter().filter_map(DatasetDefinition::table);
        let Some(table) = tables.find(|table| table.name == flow.target) else { return Ok(None) };
        let expectations = Expectations::new(&table.name, &table.expectations, columns)?;
        if expectations.is_empty() {
            return Ok(None);
        }
        let quarantine = match &analysis.properties.quarantine {
            None => None,
            Some(name) => {
                let columns = quarantine_columns(columns, sequence)?;
                let format = context.format.as_ref();
                Some(Quarantine::open(format, name, &table.name, columns, writer.clone()).await?)
            }
        };
        Ok(Some(Self { expectations, quarantine }))
    }

    /// Judges change rows. What is dropped is no event any more, whatever is wrong with it.
    pub(super) fn events(
        &self,
        spec: &CdcSpec,
        rows: &RecordBatch,
        pinned: &Pinned,
        planned: &PlannedBatch,
    ) -> Result<Checked> {
        let events = Proposal::of(spec, &change_input(rows, pinned)?)?;
        let judged = conform(events.rows(), self.expectations.schema())?;
        let verdict = self.expectations.judge(&judged, Some(&events))?;
        let dropped = match &self.quarantine {
            Some(quarantine) if verdict.quality.dropped_records > 0 => {
                let judgement = (&self.expectations, &verdict);
                let dropped = quarantine.rows(judgement, &judged, rows.column_by_name(SEQUENCE), planned)?;
                Some(Dropped { quarantine: quarantine.clone(), rows: vec![dropped] })
            }
            _ => None,
        };
        let rows = filter_record_batch(rows, &verdict.keep)?;
        Ok(Checked { rows, quality: verdict.quality, dropped })
    }

    /// The rows that pass, in columns of their own. Once all rows were judged, and before the stream ends, what was dropped
    /// is in quarantine: a target that commits when its rows have ended commits after that.
    pub(super) fn stream(&self, rows: SourceStream, planned: &PlannedBatch) -> (SourceStream, Tally) {
        let tally = Tally(Arc::new(Mutex::new(self.expectations.no_counts())));
        let found = Arc::clone(&tally.0);
        let checks = Arc::new((self.clone(), planned.clone()));
        let dropped: Arc<Mutex<Vec<RecordBatch>>> = Arc::default();
        let kept = {
            let (checks, dropped) = (Arc::clone(&checks), Arc::clone(&dropped));
            rows.map(move |rows| {
                let (checks, planned) = checks.as_ref();
                let rows = rows?;
                let judged = conform(&rows, checks.expectations.schema())?;
                let verdict = checks.expectations.judge(&judged, None)?;
                if let Ok(mut found) = found.lock() {
                    found.add(&verdict.quality);
                }
                if let Some(quarantine) =
                    checks.quarantine.as_ref().filter(|_| verdict.quality.dropped_records > 0)
                {
                    let more = quarantine.rows((&checks.expectations, &verdict), &judged, None, planned)?;
                    if let Ok(mut dropped) = dropped.lock() {
                        dropped.push(more);
                    }
                }
                Ok(filter_record_batch(&rows, &verdict.keep)?)
            })
        };
        let at_the_end = stream::once(async move {
            let (checks, planned) = checks.as_ref();
            let rows = dropped.lock().map(|mut dropped| std::mem::take(&mut *dropped)).unwrap_or_default();
            if let Some(quarantine) = checks.quarantine.clone().filter(|_| !rows.is_empty()) {
                Dropped { quarantine, rows }.commit(planned.number).await?;
            }
            Ok(None)
        });
        let rows = kept.map(|rows| rows.map(Some)).chain(at_the_end);
        (rows.filter_map(|rows| async { rows.transpose() }).boxed(), tally)
    }
}
