//! Does every key's live feed begin after its seed ends?
//!
//! A target that a ONCE flow seeds with legacy rows and a live flow goes on with is right for any overlap of the two, but it
//! is not always what was meant: a live change that is not after the last seeded change of its key goes into history
//! (SCD type 2), or is ignored (type 1). The cut-over must hold *per key*, and this says for which keys it does not.
//!
//! Both sides are read anew, as the flows would read them; nothing is written, and no progress is looked at. Memory grows
//! with the number of keys.

mod changes;
mod overlap;

use arrow_schema::{DataType, FieldRef};
use serde::Serialize;
use serde_json::{Map, Value};
use strandline_pipeline_sql::{AutoCdc, FlowDefinition, FlowKind};

use crate::{
    analysis::{Analysis, FlowAnalysis, Work},
    error::{Error, ErrorKind, Result},
    project::Project,
};
use changes::ChangeReader;
use overlap::Overlap;

/// How seed and live feed of one target meet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HandoffReport {
    /// The target.
    pub target: String,
    /// Its ONCE flows.
    pub seed_flows: Vec<String>,
    /// Its flows that go on.
    pub live_flows: Vec<String>,
    /// Keys that the seed has.
    pub seeded_keys: u64,
    /// Keys that the live feed has changes of.
    pub live_keys: u64,
    /// Keys that both have.
    pub keys_of_both: u64,
    /// Keys of both whose first live change is not after their last seeded one.
    pub offending_keys: u64,
    /// Live changes of those keys that are not after their key's last seeded one.
    pub offending_changes: u64,
    /// Rows on either side that have no key or no sequence: an update will refuse them.
    pub unusable_rows: u64,
    /// Some of the offending keys, the lowest ones.
    pub samples: Vec<HandoffSample>,
}

/// A key whose first live change is not after its last seeded one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HandoffSample {
    /// Key columns with their values.
    pub key: Map<String, Value>,
    /// Greatest sequence of the seed.
    pub last_seeded: Value,
    /// Least sequence of the live feed.
    pub first_live: Value,
    /// Live changes that are not after the last seeded one.
    pub changes: u64,
}

impl HandoffReport {
    /// Every live change comes after what was seeded of its key.
    pub fn is_clean(&self) -> bool {
        self.offending_keys == 0
    }
}

/// Samples in a report.
const SAMPLES: usize = 10;

impl Project {
    /// Reports for every target that has both, or for the one named, how its ONCE seed and its live feed meet. Changes
    /// nothing.
    ///
    /// # Errors
    /// `Definition` when there is no such target, or when its flows can't be understood; else those of the sources.
    pub async fn handoff(&self, target: Option<&str>) -> Result<Vec<HandoffReport>, Vec<Error>> {
        let (_, mut analysis) = self.analyse().await?;
        let targets = self.seeded_targets(target).map_err(|error| vec![error])?;
        let mut reports = Vec::new();
        for target in targets {
            let flows = self.definition().flows.iter().filter(|flow| flow.target == target);
            let sides = flows.filter_map(change_flow).map(|(flow, cdc)| Side::take(flow, cdc, &mut analysis));
            let mut understood = Vec::new();
            let mut errors = Vec::new();
            for side in sides {
                match side {
                    Ok(side) => understood.push(side),
                    Err(error) => errors.push(error),
                }
            }
            if !errors.is_empty() {
                return Err(errors);
            }
            let report = self.compare(&target, &understood).await;
            reports.push(report.map_err(|error| vec![error.with("target", &target)])?);
        }
        Ok(reports)
    }

    /// Targets with a ONCE and a live change flow, in the order of the definition.
    fn seeded_targets(&self, wanted: Option<&str>) -> Result<Vec<String>> {
        let seeded: Vec<String> = self
            .definition()
            .datasets
            .iter()
            .map(|dataset| dataset.name().to_owned())
            .filter(|name| {
                let flows = self.definition().flows.iter().filter(|flow| flow.target == *name);
                let once: Vec<bool> = flows.filter_map(change_flow).map(|(flow, _)| flow.once).collect();
                once.contains(&true) && once.contains(&false)
            })
            .collect();
        let found: Vec<String> =
            seeded.iter().filter(|name| wanted.is_none_or(|wanted| wanted == *name)).cloned().collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let error = match wanted {
            Some(wanted) => {
                Error::new(ErrorKind::Definition, "the target has no seed and live feed to compare")
                    .with("target", wanted)
            }
            None => Error::new(ErrorKind::Definition, "no target has a seed and a live feed to compare"),
        };
        let all = if seeded.is_empty() { "none".to_owned() } else { seeded.join(", ") };
        Err(error.help(format!(
            "a target needs one AUTO CDC ONCE flow at least, and one without ONCE; targets that have both: {all}"
        )))
    }

    async fn compare(&self, target: &str, sides: &[Side<'_>]) -> Result<HandoffReport> {
        let seeds: Vec<&Side<'_>> = sides.iter().filter(|side| side.flow.once).collect();
        let lives: Vec<&Side<'_>> = sides.iter().filter(|side| !side.flow.once).collect();
        let Some(first) = seeds.first() else {
            return Err(Error::new(ErrorKind::Internal, "a seeded target has no seed"));
        };
        for other in sides {
            first.check_agreement(other)?;
        }
        let mut overlap = Overlap::new(&first.key_types(), &first.sequence)?;
        for side in &seeds {
            let mut rows = ChangeReader::open(self, side).await?;
            while let Some(batch) = rows.next().await? {
                overlap.seed(&batch.keys, &batch.sequence)?;
                if let Some(end) = &batch.valid_to {
                    overlap.seed_end(&batch.keys, end)?;
                }
            }
        }
        for side in &lives {
            let mut rows = ChangeReader::open(self, side).await?;
            while let Some(batch) = rows.next().await? {
                overlap.live(&batch.keys, &batch.sequence)?;
            }
        }
        let names = |sides: &[&Side<'_>]| sides.iter().map(|side| side.flow.name.clone()).collect();
        let counts = overlap.counts();
        Ok(HandoffReport {
            target: target.to_owned(),
            seed_flows: names(&seeds),
            live_flows: names(&lives),
            seeded_keys: counts.seeded_keys,
            live_keys: counts.live_keys,
            keys_of_both: counts.keys_of_both,
            offending_keys: counts.offending_keys,
            offending_changes: counts.offending_changes,
            unusable_rows: counts.unusable_rows,
            samples: overlap.samples(&first.keys, SAMPLES)?,
        })
    }
}

fn change_flow(flow: &FlowDefinition) -> Option<(&FlowDefinition, &AutoCdc)> {
    match &flow.kind {
        FlowKind::AutoCdc(cdc) => Some((flow, cdc)),
        _ => None,
    }
}

/// One flow of the target.
struct Side<'a> {
    flow: &'a FlowDefinition,
    cdc: &'a AutoCdc,
    analysis: FlowAnalysis,
    /// Key columns of its rows, in declared order and stored types.
    keys: Vec<FieldRef>,
    /// Type of its sequence.
    sequence: DataType,
}

impl<'a> Side<'a> {
    fn take(flow: &'a FlowDefinition, cdc: &'a AutoCdc, analysis: &mut Analysis) -> Result<Self> {
        let analysis = analysis.flows.remove(&flow.name).ok_or_else(|| {
            Error::new(ErrorKind::Internal, "a flow was not analysed").with("flow", &flow.name)
        })??;
        let Work::Cdc(work) = &analysis.work else {
            return Err(Error::new(ErrorKind::Internal, "a change flow appends").with("flow", &flow.name));
        };
        let kept = work.spec.kept_schema();
        let keys: Vec<FieldRef> = work
            .spec
            .key_names()
            .into_iter()
            .filter_map(|name| kept.fields().iter().find(|field| field.name() == name).cloned())
            .collect();
        let sequence = work.spec.sequence_type().clone();
        Ok(Self { flow, cdc, analysis, keys, sequence })
    }

    fn key_types(&self) -> Vec<DataType> {
        self.keys.iter().map(|key| key.data_type().clone()).collect()
    }

    /// Flows of one target have the same keys, in one order, and sequences of one type.
    fn check_agreement(&self, other: &Side<'_>) -> Result<()> {
        let named = |side: &Side<'_>| -> Vec<String> {
            side.keys.iter().map(|key| format!("{} {}", key.name(), key.data_type())).collect()
        };
        let differs = |what: &str, ours: String, theirs: String| {
            Err(Error::new(ErrorKind::Definition, format!("flows of one target disagree about the {what}"))
                .with("flow", &self.flow.name)
                .with("has", ours)
                .with("other flow", &other.flow.name)
                .with("which has", theirs)
                .help("cast or rename in the query of one of them"))
        };
        let (ours, theirs) = (named(self), named(other));
        if ours != theirs {
            return differs("keys", ours.join(", "), theirs.join(", "));
        }
        if self.sequence != other.sequence {
            return differs("type of SEQUENCE BY", self.sequence.to_string(), other.sequence.to_string());
        }
        Ok(())
    }
}
