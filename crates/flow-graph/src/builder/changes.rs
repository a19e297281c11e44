//! May these change flows share a target?
//!
//! Each is compared with the first one, a change flow if there is any (G-09). A snapshot flow beside change flows makes
//! the target a hybrid one, with rules of its own (G-10, G-11).

use crate::{CdcFact, CdcFacts, Dataset, Flow, FlowKind, GraphError, HybridRule, Mode};

/// Checks the change and snapshot flows among those that write `target`.
pub(super) fn check(mode: Mode, target: &Dataset, writers: &[&Flow], errors: &mut Vec<GraphError>) {
    let flows = |snapshots: bool| {
        let flows = writers.iter().filter_map(|flow| Some((*flow, flow.kind.cdc_facts()?)));
        flows.filter(move |(flow, _)| is_snapshot(flow) == snapshots).collect::<Vec<_>>()
    };
    let (changes, snapshots) = (flows(false), flows(true));
    if let Some(((first, _), others)) = snapshots.split_first() {
        for (second, _) in others {
            errors.push(GraphError::SecondSnapshotFlow {
                target: target.name.clone(),
                first: first.name().to_owned(),
                second: second.name().to_owned(),
            });
        }
    }
    if let (Some(snapshot), false) = (snapshots.first(), changes.is_empty()) {
        check_hybrid(mode, target, *snapshot, &changes, errors);
    }
    let all: Vec<_> = changes.into_iter().chain(snapshots).collect();
    check_agreement(target, &all, errors);
}

type Terms<'a> = (&'a Flow, &'a CdcFacts);

fn is_snapshot(flow: &Flow) -> bool {
    matches!(flow.kind, FlowKind::Snapshot(_))
}

/// G-11 and A-23: what concerns the pair as a whole is said of the first change flow.
fn check_hybrid(
    mode: Mode,
    target: &Dataset,
    (snapshot, facts): Terms<'_>,
    changes: &[Terms<'_>],
    errors: &mut Vec<GraphError>,
) {
    let mut refuse = |change: &Flow, rule| {
        errors.push(GraphError::Hybrid {
            target: target.name.clone(),
            snapshot: snapshot.name().to_owned(),
            change: change.name().to_owned(),
            rule,
        });
    };
    if let Some((change, _)) = changes.first() {
        if mode == Mode::Continuous {
            refuse(change, HybridRule::Continuous);
        }
        if facts.stored_as != CdcFacts::SCD1 {
            refuse(change, HybridRule::StoredAs(facts.stored_as.clone()));
        }
        if facts.expectations {
            refuse(change, HybridRule::Expectations);
        }
    }
    for (change, _) in changes.iter().filter(|(_, facts)| facts.partial_updates) {
        refuse(change, HybridRule::PartialUpdates);
    }
}

/// G-09, and what of G-11 is a disagreement.
fn check_agreement(target: &Dataset, flows: &[Terms<'_>], errors: &mut Vec<GraphError>) {
    let Some(((first, facts), others)) = flows.split_first() else { return };
    // A flow without a known sequence type says nothing, so the first known one is the measure.
    let mut typed = facts.sequence_type.as_ref().map(|known| (*first, known));
    for (second, other) in others {
        let mut disagree = |first: &Flow, fact, first_value: String, second_value: String| {
            errors.push(GraphError::DisagreeingFlows {
                target: target.name.clone(),
                fact,
                first: first.name().to_owned(),
                first_value,
                second: second.name().to_owned(),
                second_value,
                hybrid: is_snapshot(first) != is_snapshot(second),
            });
        };
        if !keys_agree(facts, other, is_snapshot(first) != is_snapshot(second)) {
            disagree(first, CdcFact::Keys, listed(&facts.keys), listed(&other.keys));
        }
        if facts.stored_as != other.stored_as {
            disagree(first, CdcFact::StoredAs, facts.stored_as.clone(), other.stored_as.clone());
        }
        match (typed, &other.sequence_type) {
            (Some((by, known)), Some(value)) if known != value => {
                disagree(by, CdcFact::SequenceType, known.clone(), value.clone());
            }
            (None, Some(value)) => typed = Some((second, value)),
            _ => {}
        }
        if facts.track_history != other.track_history {
            let written =
                |facts: &CdcFacts| facts.track_history.clone().unwrap_or_else(|| "no such clause".into());
            disagree(first, CdcFact::TrackHistory, written(facts), written(other));
        }
    }
}

/// Key columns of a snapshot flow and of a change flow may differ in case, those of two change flows may not.
fn keys_agree(first: &CdcFacts, second: &CdcFacts, hybrid: bool) -> bool {
    if hybrid {
        let folded = |facts: &CdcFacts| facts.keys.iter().map(|key| key.to_lowercase()).collect::<Vec<_>>();
        folded(first) == folded(second)
    } else {
        first.keys == second.keys
    }
}

fn listed(keys: &[String]) -> String {
    format!("({})", keys.join(", "))
}
