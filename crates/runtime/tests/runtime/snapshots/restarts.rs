//! Kills at any moment, refreshes, resets, and flows that go on.

use std::sync::{Arc, atomic::Ordering};

use object_store::memory::InMemory;
use serde_json::json;
use strandline_runtime::{FlowStatus, Mode, UpdateRequest};
use strandline_testkit::fault::{Fault, FaultStore, Rule};

use super::{export, exports, flow, history_after_three, refused, scd1, scd2, worked};
use crate::pipeline::{Bench, FORMATS, Format};

#[tokio::test]
async fn r22_a_crash_between_two_versions_resumes_at_the_second() {
    let store = FaultStore::new(InMemory::new());
    let bench = Bench::over(Format::Delta, Arc::new(store.clone()));
    worked(&bench, 1..=3);
    store.faults().add(Rule::nth(2, Fault::Before).of("put").on("/plan/").and_dies());
    drop(bench.run(&exports("SCD TYPE 2")).await);
    store.faults().revive();
    let taken = bench.rows("SELECT DISTINCT __START_AT AS s FROM t").await;
    assert_eq!(json!(taken), json!([{"s": 1}]), "the first version is there");
    assert_eq!(flow(&bench.succeed(&exports("SCD TYPE 2")).await).batches, 2);
    assert_eq!(scd2(&bench).await, history_after_three());
}

#[tokio::test]
async fn t04_killing_the_process_at_any_store_operation_changes_nothing_of_snapshots() {
    for stored_as in ["SCD TYPE 1", "SCD TYPE 2"] {
        let killed = |n: Option<(usize, Fault)>| {
            let store = FaultStore::new(InMemory::new());
            let bench = Bench::over(Format::Delta, Arc::new(store.clone()));
            worked(&bench, 1..=3);
            if let Some((n, fault)) = n {
                store.faults().add(Rule::nth(n, fault).and_dies());
            }
            (bench, store)
        };
        let shown = async |bench: &Bench| {
            if stored_as == "SCD TYPE 1" { scd1(bench).await } else { scd2(bench).await }
        };
        let (undisturbed, store) = killed(None);
        undisturbed.succeed(&exports(stored_as)).await;
        let (operations, expected) = (store.faults().count(), shown(&undisturbed).await);
        assert_eq!(expected.as_array().unwrap().len(), if stored_as == "SCD TYPE 1" { 4 } else { 6 });
        for fault in [Fault::Before, Fault::After] {
            let every = if stored_as == "SCD TYPE 1" || cfg!(slow) { 1 } else { 3 };
            for n in (1..=operations).step_by(every) {
                let (bench, store) = killed(Some((n, fault)));
                drop(bench.run(&exports(stored_as)).await);
                store.faults().revive();
                bench.succeed(&exports(stored_as)).await;
                assert_eq!(
                    shown(&bench).await,
                    expected,
                    "killed {fault:?} at operation {n}: {:?}",
                    store.faults().trace()
                );
            }
        }
    }
}

#[tokio::test]
async fn r07_a_full_refresh_takes_every_version_again_and_takes_up_what_changed() {
    let all = UpdateRequest::full_refresh_all();
    for format in FORMATS {
        let bench = Bench::new(format);
        worked(&bench, 1..=3);
        bench.succeed(&exports("SCD TYPE 2")).await;
        std::fs::remove_file(bench.path().join("in/1.json")).unwrap();
        // The versions become texts.
        let texts = exports("SCD TYPE 2").replace("SELECT min(v) AS v", "SELECT CAST(min(v) AS STRING) AS v");
        let texts = texts.replace("WHERE v = (SELECT v", "WHERE CAST(v AS STRING) = (SELECT v");
        let texts = texts.replace(
            "WHERE v > (SELECT coalesce(max(v), 0)",
            "WHERE CAST(v AS STRING) > (SELECT coalesce(max(v), '')",
        );
        assert!(refused(&bench, &texts).await.contains("VERSION_SCHEMA_CHANGED"));
        let report = bench.request(&texts, &all).await;
        assert_eq!((flow(&report).status, flow(&report).batches), (FlowStatus::Completed, 2), "{report:#?}");
        assert_eq!(
            scd2(&bench).await,
            json!([
                {"id": 1, "tier": "gold", "s": "2", "e": null}, {"id": 2, "tier": "basic", "s": "3", "e": null},
                {"id": 3, "tier": "basic", "s": "2", "e": null}, {"id": 4, "tier": "basic", "s": "3", "e": null},
            ]),
            "{format:?}"
        );
        assert_eq!(flow(&bench.succeed(&texts).await).batches, 0);
    }
}

#[tokio::test]
async fn a17_r10_after_a_reset_of_its_checkpoint_a_flow_reads_its_versions_again_and_nothing_changes() {
    let reset = UpdateRequest::default().with_checkpoint_reset(["f"]);
    for format in FORMATS {
        for stored_as in ["SCD TYPE 1", "SCD TYPE 2"] {
            let bench = Bench::new(format);
            worked(&bench, 1..=3);
            bench.succeed(&exports(stored_as)).await;
            let (before, version) =
                (bench.rows("SELECT * FROM t ORDER BY id, tier").await, bench.version("t").await);
            let report = bench.request(&exports(stored_as), &reset).await;
            assert_eq!(
                (flow(&report).status, flow(&report).batches),
                (FlowStatus::Completed, 3),
                "{report:#?}"
            );
            assert_eq!(
                bench.rows("SELECT * FROM t ORDER BY id, tier").await,
                before,
                "{format:?} {stored_as}"
            );
            assert_eq!(bench.version("t").await, version, "nothing is committed");
            export(&bench, 4, &[(1, "last")]);
            assert_eq!(flow(&bench.succeed(&exports(stored_as)).await).batches, 1);
            let last = json!(bench.rows("SELECT id, tier FROM t ORDER BY id DESC, tier DESC").await);
            assert!(last.to_string().contains("last"), "{last}");
        }
    }
}

#[tokio::test]
async fn r01_in_continuous_mode_a_flow_waits_for_the_next_version() {
    let bench = Bench::new(Format::Delta);
    worked(&bench, 1..=1);
    let sql = format!("SET pipelines.trigger.interval = '50 milliseconds'; {}", exports("SCD TYPE 2"));
    let project = bench.project(&sql).in_mode(Mode::Continuous);
    let stop = project.stop_flag();
    let running = tokio::spawn(async move { project.run().await });
    // Exports come whole, as a rename brings them.
    let staging = Bench::new(Format::Delta);
    worked(&staging, 2..=3);
    for (versions, rows) in [(2..2, 3), (2..4, 6)] {
        for version in versions {
            let name = format!("in/{version}.json");
            std::fs::rename(staging.path().join(&name), bench.path().join(&name)).unwrap();
        }
        let arrived = async {
            loop {
                if bench.storage.format.open("t").await.unwrap().is_some()
                    && bench.rows("SELECT * FROM t").await.len() == rows
                {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_mins(1), arrived).await.expect("the version is taken");
    }
    stop.store(true, Ordering::Relaxed);
    let report = running.await.unwrap().unwrap();
    assert_eq!((flow(&report).status, flow(&report).batches), (FlowStatus::Stopped, 3), "{report:#?}");
    assert_eq!(scd2(&bench).await, history_after_three());
}

#[tokio::test]
async fn a_single_image_that_was_taken_is_not_asked_for_again_whenever_the_process_is_killed() {
    let sql = "SET pipelines.maxFlowRetryAttempts = 0;
        CREATE STREAMING TABLE t;
        CREATE FLOW f AS AUTO CDC ONCE INTO t
          FROM SNAPSHOT (SELECT * FROM read_files('in/*.json', format => 'json', schema => 'id INT')) KEYS (id);";
    let fresh = || {
        let store = FaultStore::new(InMemory::new());
        let bench = Bench::over(Format::Delta, Arc::new(store.clone()));
        bench.file("in/1.json", &[json!({ "id": 1 }), json!({ "id": 2 })]);
        (bench, store)
    };
    let (undisturbed, store) = fresh();
    undisturbed.succeed(sql).await;
    let operations = store.faults().count();
    for fault in [Fault::Before, Fault::After] {
        for n in 1..=operations {
            let (bench, store) = fresh();
            store.faults().add(Rule::nth(n, fault).and_dies());
            drop(bench.run(sql).await);
            store.faults().revive();
            bench.succeed(sql).await;
            assert_eq!(bench.rows("SELECT id FROM t").await.len(), 2, "killed {fault:?} at operation {n}");
            let report = bench.succeed(sql).await;
            assert_eq!(flow(&report).status, FlowStatus::Idle, "killed {fault:?} at operation {n}");
        }
    }
}
