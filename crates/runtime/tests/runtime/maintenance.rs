//! Maintenance of a storage: answers stay, streams go on, and what nobody names goes.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use strandline_runtime::{
    ErrorKind,
    clock::{Clock, SystemClock},
    maintenance::{MaintenanceRequest, TableMaintenance, maintain},
};

use crate::pipeline::{ALL_FORMATS, Bench};

/// A table of every shape, and one that follows another's appended rows.
const PIPELINE: &str = "
    CREATE STREAMING TABLE raw AS SELECT * FROM STREAM read_files('in/*.json', format => 'json',
      schema => 'k STRING, seq BIGINT, sys BIGINT, op STRING, v BIGINT');
    CREATE STREAMING TABLE copy AS SELECT * FROM STREAM(raw);
    CREATE STREAMING TABLE now;
    CREATE FLOW now AS AUTO CDC INTO now FROM STREAM(raw) KEYS (k)
      APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS (k, v) STORED AS SCD TYPE 1;
    CREATE STREAMING TABLE history;
    CREATE FLOW history AS AUTO CDC INTO history FROM STREAM(raw) KEYS (k)
      APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq COLUMNS (k, v) STORED AS SCD TYPE 2;
    CREATE STREAMING TABLE beliefs;
    CREATE FLOW beliefs AS AUTO CDC INTO beliefs FROM STREAM(raw) KEYS (k)
      APPLY AS DELETE WHEN op = 'D' SEQUENCE BY seq SYSTEM SEQUENCE BY sys COLUMNS (k, v) STORED AS BITEMPORAL;";

const QUESTIONS: [&str; 7] = [
    "SELECT * FROM raw ORDER BY k, seq, sys",
    "SELECT * FROM copy ORDER BY k, seq, sys",
    "SELECT * FROM now ORDER BY k",
    "SELECT * FROM history ORDER BY k, __START_AT",
    "SELECT k, v FROM as_of(history, 12) ORDER BY k",
    "SELECT * FROM beliefs ORDER BY k, __START_AT, __SYSTEM_START_AT",
    "SELECT k, v FROM as_of(beliefs, business => 9, system => 30) ORDER BY k",
];

/// A file of changes, some of them late.
fn input(bench: &Bench, number: i64) {
    let changes: Vec<Value> = (0..8)
        .map(|i| {
            let seq = if i % 3 == 2 { number - 2 } else { number };
            let op = if (number + i) % 7 == 0 { "D" } else { "U" };
            let key = format!("k{}", (number * 3 + i) % 11);
            json!({ "k": key, "seq": seq, "sys": number * 2, "op": op, "v": number * 100 + i })
        })
        .collect();
    bench.file(&format!("in/{number:02}.json"), &changes);
}

async fn answers(bench: &Bench) -> Vec<Value> {
    let mut all = Vec::new();
    for question in QUESTIONS {
        all.push(json!(bench.rows(question).await));
    }
    all
}

/// Everything goes that may go, whatever its age.
fn at_once() -> MaintenanceRequest {
    MaintenanceRequest { retain: Duration::ZERO, force: true, ..MaintenanceRequest::default() }
}

async fn maintained(bench: &Bench, request: &MaintenanceRequest) -> Vec<TableMaintenance> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    // What happened in this very millisecond is not before it.
    tokio::time::sleep(Duration::from_millis(5)).await;
    maintain(&bench.storage, request, &clock).await.unwrap()
}

fn sum(done: &[TableMaintenance], of: fn(&TableMaintenance) -> u64) -> u64 {
    done.iter().map(of).sum()
}

#[tokio::test]
async fn t20_maintenance_between_batches_changes_no_answer_and_streams_go_on() {
    for format in ALL_FORMATS {
        let (bench, undisturbed) = (Bench::new(format), Bench::new(format));
        for number in 1..=9 {
            input(&bench, number);
            input(&undisturbed, number);
            bench.succeed(PIPELINE).await;
            undisturbed.succeed(PIPELINE).await;
            let before = answers(&bench).await;
            if number % 3 == 0 {
                let dry = MaintenanceRequest { dry_run: true, ..MaintenanceRequest::default() };
                let would = maintained(&bench, &dry).await;
                assert!(sum(&would, |done| done.files_compacted) > 0, "{format:?} {would:?}");
                let done = maintained(&bench, &MaintenanceRequest::default()).await;
                assert_eq!(sum(&done, |done| done.files_removed), 0, "{format:?} {done:?}");
                assert!(
                    sum(&done, |done| done.files_after) < sum(&done, |done| done.files_before),
                    "{format:?} {done:?}"
                );
                assert_eq!(answers(&bench).await, before, "{format:?} {number}");
            }
            if number % 4 == 0 {
                let done = maintained(&bench, &at_once()).await;
                assert!(sum(&done, |done| done.versions_expired) > 0, "{format:?} {done:?}");
                assert!(sum(&done, |done| done.files_removed) > 0, "{format:?} {done:?}");
                assert!(sum(&done, |done| done.state_versions_removed) > 0, "{format:?} {done:?}");
                assert!(done.iter().all(|done| done.notices.is_empty()), "{format:?} {done:?}");
                assert_eq!(answers(&bench).await, before, "{format:?} {number}");
            }
            assert_eq!(answers(&bench).await, answers(&undisturbed).await, "{format:?} {number}");
        }
        // Streams are done with commits that only moved rows, and then there is nothing left.
        let passed = bench.succeed(PIPELINE).await;
        assert!(passed.flows.iter().all(|flow| flow.rows_in == 0), "{format:?} {passed:?}");
        assert_eq!(answers(&bench).await, answers(&undisturbed).await, "{format:?}");
        let again = bench.succeed(PIPELINE).await;
        assert!(again.flows.iter().all(|flow| flow.batches == 0), "{format:?} {again:?}");
    }
}

#[tokio::test]
async fn a_short_retention_is_refused_unless_it_is_forced_and_tables_are_known_by_name() {
    let bench = Bench::new(ALL_FORMATS[0]);
    input(&bench, 1);
    bench.succeed(PIPELINE).await;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let short = MaintenanceRequest { force: false, ..at_once() };
    let unknown = MaintenanceRequest { tables: vec!["nix".into()], ..MaintenanceRequest::default() };
    for (request, named) in [(short, "7 days"), (unknown, "`nix`")] {
        let error = maintain(&bench.storage, &request, &clock).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Definition);
        assert!(error.to_string().contains(named), "{error}");
    }
    let one = MaintenanceRequest { tables: vec!["now".into()], ..MaintenanceRequest::default() };
    let done = maintained(&bench, &one).await;
    assert_eq!(done.iter().map(|done| done.table.as_str()).collect::<Vec<_>>(), ["now"]);
}

/// Flows and maintenance at the same time, as a schedule has them.
#[tokio::test(flavor = "multi_thread")]
async fn t20_an_update_beside_maintenance_ends_as_without_it() {
    for format in ALL_FORMATS {
        let (bench, undisturbed) = (Bench::new(format), Bench::new(format));
        for number in 1..=6 {
            input(&bench, number);
            input(&undisturbed, number);
            let maintenance = async {
                for _ in 0..4 {
                    let _done = maintained(&bench, &MaintenanceRequest::default()).await;
                }
            };
            tokio::join!(bench.succeed(PIPELINE), maintenance);
            undisturbed.succeed(PIPELINE).await;
        }
        assert_eq!(answers(&bench).await, answers(&undisturbed).await, "{format:?}");
    }
}
