//! Change flows that share a target.

use super::*;
use crate::{CdcFact, HybridRule};

#[test]
fn g09_flows_that_agree_share_a_target_and_each_disagreement_names_both_values() {
    let measure = CdcFacts {
        sequence_type: Some("BIGINT".into()),
        track_history: Some("ON (plan)".into()),
        ..facts(&["id", "region"])
    };
    let two = |other: CdcFacts| {
        built([table("t")], [change("one", "t", measure.clone()), change("two", "t", other)])
    };
    two(measure.clone()).unwrap();
    two(CdcFacts { sequence_type: None, ..measure.clone() }).unwrap();
    let cases = [
        (CdcFact::Keys, CdcFacts { keys: vec!["id".into()], ..measure.clone() }, "(id, region)", "(id)"),
        (
            CdcFact::StoredAs,
            CdcFacts { stored_as: "SCD TYPE 2".into(), ..measure.clone() },
            "SCD TYPE 1",
            "SCD TYPE 2",
        ),
        (
            CdcFact::SequenceType,
            CdcFacts { sequence_type: Some("DATE".into()), ..measure.clone() },
            "BIGINT",
            "DATE",
        ),
        (
            CdcFact::TrackHistory,
            CdcFacts { track_history: None, ..measure.clone() },
            "ON (plan)",
            "no such clause",
        ),
    ];
    for (expected, other, left, right) in cases {
        let error = only_error(two(other));
        let text = error.to_string();
        assert!(matches!(error, GraphError::DisagreeingFlows { fact, .. } if fact == expected), "{text}");
        for part in ["one", "two", left, right] {
            assert!(text.contains(part), "{part} is missing in: {text}");
        }
    }
}

#[test]
fn g09_a_sequence_type_is_compared_with_the_first_known_one() {
    let typed = |name: &str, sequence_type: Option<&str>| {
        change(name, "t", CdcFacts { sequence_type: sequence_type.map(Into::into), ..facts(&["id"]) })
    };
    let flows = [typed("a", None), typed("b", Some("INT")), typed("c", Some("DATE"))];
    let error = only_error(built([table("t")], flows));
    assert!(matches!(error, GraphError::DisagreeingFlows { ref first, ref second, .. }
        if (first.as_str(), second.as_str()) == ("b", "c")));
}

#[test]
fn g10_a_second_snapshot_flow_is_refused() {
    let flows = ["one", "two"].map(|name| snapshot(name, "t", facts(&["id"])));
    let error = only_error(built([table("t")], flows));
    assert!(matches!(error, GraphError::SecondSnapshotFlow { .. }));
    assert!(
        error
            .to_string()
            .starts_with("APPLY_CHANGES_FROM_SNAPSHOT_ERROR.INTEROP_SEVERAL_SNAPSHOT_FLOWS: t has")
    );
}

/// Whether a snapshot flow and a change flow with these facts are refused, and under which name.
fn hybrid(mode: Mode, snapshot_facts: CdcFacts, change_facts: CdcFacts) -> (GraphError, String) {
    let flows = [snapshot("full", "t", snapshot_facts), change("live", "t", change_facts)];
    let error = only_error(built_as(mode, [table("t")], flows));
    let name = error.condition().expect("a name");
    let text = error.to_string();
    assert!(text.starts_with(&format!("{name}: ")), "{text}");
    for part in ["full", "live", "t"] {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
    let name = name.strip_prefix("APPLY_CHANGES_FROM_SNAPSHOT_ERROR.").unwrap_or(name).to_owned();
    (error, name)
}

fn rule(mode: Mode, snapshot_facts: CdcFacts, change_facts: CdcFacts) -> (HybridRule, String) {
    let (error, name) = hybrid(mode, snapshot_facts, change_facts);
    let GraphError::Hybrid { rule, .. } = error else { panic!("{error}") };
    (rule, name)
}

#[test]
fn g11_a_snapshot_flow_may_share_an_scd1_target_with_change_flows() {
    let typed = CdcFacts { sequence_type: Some("BIGINT".into()), ..facts(&["id", "region"]) };
    let flows = [
        snapshot("full", "t", typed.clone()),
        change("live", "t", typed.clone()),
        change("late", "t", CdcFacts { expectations: false, ..typed }),
    ];
    built([table("t")], flows).unwrap();
}

#[test]
fn g11_a23_not_an_scd2_target() {
    let scd2 = CdcFacts { stored_as: "SCD TYPE 2".into(), ..facts(&["id"]) };
    let (rule, name) = rule(Mode::Triggered, scd2.clone(), scd2);
    assert_eq!((rule, name.as_str()), (HybridRule::StoredAs("SCD TYPE 2".into()), "INTEROP_REQUIRES_SCD1"));
}

#[test]
fn g11_a23_not_a_bitemporal_target() {
    let facts = CdcFacts { stored_as: "BITEMPORAL".into(), ..facts(&["id"]) };
    let (rule, name) = rule(Mode::Triggered, facts.clone(), facts);
    assert_eq!((rule, name.as_str()), (HybridRule::StoredAs("BITEMPORAL".into()), "INTEROP_REQUIRES_SCD1"));
}

#[test]
fn g11_not_in_continuous_mode() {
    let (rule, name) = rule(Mode::Continuous, facts(&["id"]), facts(&["id"]));
    assert_eq!((rule, name.as_str()), (HybridRule::Continuous, "INTEROP_CONTINUOUS_NOT_SUPPORTED"));
}

#[test]
fn g11_not_with_expectations_on_the_snapshot_flow() {
    let judged = CdcFacts { expectations: true, ..facts(&["id"]) };
    let (rule, name) = rule(Mode::Triggered, judged.clone(), judged.clone());
    assert_eq!((rule, name.as_str()), (HybridRule::Expectations, "INTEROP_EXPECTATIONS_NOT_SUPPORTED"));
    // A snapshot flow alone, and change flows alone, may have them.
    built([table("t")], [snapshot("full", "t", judged.clone())]).unwrap();
    built([table("t")], [change("live", "t", judged)]).unwrap();
}

#[test]
fn g11_a15_not_with_partial_updates_of_any_change_flow() {
    let partial = CdcFacts { partial_updates: true, ..facts(&["id"]) };
    let (rule, name) = rule(Mode::Triggered, facts(&["id"]), partial.clone());
    assert_eq!((rule, name.as_str()), (HybridRule::PartialUpdates, "INTEROP_IGNORE_NULL_UNSUPPORTED"));
    let flows = [
        change("whole", "t", facts(&["id"])),
        change("some", "t", partial.clone()),
        snapshot("full", "t", facts(&["id"])),
    ];
    let error = only_error(built([table("t")], flows));
    assert!(matches!(error, GraphError::Hybrid { ref change, .. } if change == "some"));
    built([table("t")], [change("some", "t", partial)]).unwrap();
}

#[test]
fn g11_keys_agree_in_number() {
    let (error, name) = hybrid(Mode::Triggered, facts(&["id", "region"]), facts(&["id"]));
    assert!(matches!(error, GraphError::DisagreeingFlows { fact: CdcFact::Keys, hybrid: true, .. }));
    assert_eq!(name, "INTEROP_KEYS_MISMATCH");
}

#[test]
fn g11_keys_agree_in_order() {
    let (_, name) = hybrid(Mode::Triggered, facts(&["id", "region"]), facts(&["region", "id"]));
    assert_eq!(name, "INTEROP_KEYS_MISMATCH");
}

#[test]
fn g11_keys_may_differ_in_case_from_a_snapshot_flow_but_not_among_change_flows() {
    let changes = || [change("a", "t", facts(&["id"])), change("b", "t", facts(&["Id"]))];
    let full = || snapshot("full", "t", facts(&["ID"]));
    let [first, second] = changes();
    built([table("t")], [full(), first.clone()]).unwrap();
    // Wherever the snapshot flow is declared.
    for flows in [vec![full(), first.clone(), second.clone()], vec![first, full(), second]] {
        let error = only_error(built([table("t")], flows));
        let GraphError::DisagreeingFlows { first, second, hybrid, .. } = error else { panic!("{error}") };
        assert_eq!((first.as_str(), second.as_str(), hybrid), ("a", "b", false));
    }
}

#[test]
fn g11_the_version_has_the_type_of_the_sequence() {
    let typed = |name: &str| CdcFacts { sequence_type: Some(name.into()), ..facts(&["id"]) };
    let (error, name) = hybrid(Mode::Triggered, typed("BIGINT"), typed("INT"));
    assert!(matches!(error, GraphError::DisagreeingFlows { fact: CdcFact::SequenceType, .. }));
    assert_eq!(name, "INTEROP_SEQUENCE_TYPE_MISMATCH");
}

#[test]
fn g11_all_that_stands_against_a_pair_is_said_at_once() {
    let bad = CdcFacts { stored_as: "SCD TYPE 2".into(), expectations: true, ..facts(&["id"]) };
    let partial = CdcFacts { partial_updates: true, ..bad.clone() };
    let flows = [snapshot("full", "t", bad), change("live", "t", partial)];
    assert_eq!(built_as(Mode::Continuous, [table("t")], flows).unwrap_err().len(), 4);
}
