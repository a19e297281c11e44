//! Processes that meet on a storage which other machines reach: one at a time, and who lost its lease commits nothing.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::FutureExt;
use object_store::memory::InMemory;
use serde_json::json;
use strandline_runtime::{ErrorKind, FlowStatus, Project, Storage, clock::Clock};
use strandline_table_formats::layer::{FaultyFormat, TableFault};
use tokio::sync::Notify;

use crate::pipeline::{Bench, FORMATS, Format, rows};

const PIPELINE: &str = "
    SET pipelines.maxFlowRetryAttempts = 0;
    SET strandline.leaseDuration = 3 seconds;
    SET spark.sql.pipelines.execution.maxConcurrentFlows = 1;
    CREATE STREAMING TABLE t;
    CREATE FLOW t AS AUTO CDC INTO t FROM STREAM
      read_files('in', format => 'json', schema => 'k BIGINT, seq BIGINT, v BIGINT', maxFilesPerTrigger => 1)
      KEYS (k) SEQUENCE BY seq STORED AS SCD TYPE 2;
    CREATE STREAMING TABLE raw AS SELECT * FROM STREAM
      read_files('in', format => 'json', schema => 'k BIGINT, seq BIGINT, v BIGINT', maxFilesPerTrigger => 1);";

/// A clock that all processes of a test share, and that the test moves.
#[derive(Debug, Default)]
struct SharedClock(Mutex<Duration>);

impl SharedClock {
    fn pass(&self, seconds: u64) {
        *self.0.lock().unwrap() += Duration::from_secs(seconds);
    }
}

impl Clock for SharedClock {
    fn now(&self) -> Duration {
        Duration::from_secs(1_700_000_000) + *self.0.lock().unwrap()
    }
}

/// A pipeline with three files, in a storage with a URL.
fn bench(format: Format) -> Bench {
    let mut bench = Bench::over(format, Arc::new(InMemory::new()));
    bench.storage = Storage { url: Some("s3://bucket/lake".to_owned()), ..bench.storage };
    for n in 1..=3 {
        bench.file(
            &format!("in/{n}.json"),
            &[json!({"k": 1, "seq": n, "v": n}), json!({"k": n + 1, "seq": 1, "v": 0})],
        );
    }
    bench
}

/// The same as an undisturbed run leaves it.
async fn as_if_undisturbed(disturbed: &Bench, format: Format) {
    let alone = bench(format);
    alone.succeed(PIPELINE).await;
    for sql in ["SELECT * FROM t ORDER BY k, __START_AT", "SELECT * FROM raw ORDER BY k, seq"] {
        assert_eq!(json!(disturbed.rows(sql).await), json!(alone.rows(sql).await), "{format:?}");
    }
}

/// The project of a process whose `nth` commit waits: it says that it came there, and goes on when it is told.
fn stuck(
    bench: &Bench,
    sql: &str,
    nth: u64,
    clock: &Arc<SharedClock>,
) -> (Project, Arc<Notify>, Arc<Notify>) {
    let (there, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let faulty = FaultyFormat::new(Arc::clone(&bench.storage.format));
    let waits = (Arc::clone(&there), Arc::clone(&go_on));
    faulty.fail(
        nth,
        TableFault::Intruder(Arc::new(move |_| {
            let (there, go_on) = (Arc::clone(&waits.0), Arc::clone(&waits.1));
            async move {
                there.notify_one();
                go_on.notified().await;
                Ok(())
            }
            .boxed()
        })),
    );
    let storage = Storage { format: Arc::new(faulty), ..bench.storage.clone() };
    let clock = Arc::clone(clock) as Arc<dyn Clock>;
    (bench.project_over(sql, storage).with_clock(clock), there, go_on)
}

#[tokio::test]
async fn r27_a_second_process_on_a_shared_storage_is_refused_and_the_first_goes_on() {
    for format in FORMATS {
        let (bench, clock) = (bench(format), Arc::new(SharedClock::default()));
        let (first, there, go_on) = stuck(&bench, PIPELINE, 2, &clock);
        let first = tokio::spawn(async move { first.run().await });
        there.notified().await;
        let second = bench.project(PIPELINE).with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
        let refused = second.run().await.unwrap_err();
        assert_eq!(refused[0].kind(), ErrorKind::Busy);
        let help = refused[0].help_text().unwrap();
        assert!(help.contains("in 3 seconds"), "{help}");
        go_on.notify_one();
        assert!(first.await.unwrap().unwrap().is_success());
        // The lease was given back: nobody waits for it to expire.
        assert!(second.run().await.unwrap().is_success());
        as_if_undisturbed(&bench, format).await;
    }
}

/// The old owner does not even notice here: its renewals are a matter of real time, and come too late. Wherever it slept, what
/// its successor did is there once, and it adds nothing.
#[tokio::test]
async fn t05_r27_an_owner_that_slept_adds_nothing_to_what_its_successor_did() {
    for format in FORMATS {
        for nth in 1..=5 {
            let (bench, clock) = (bench(format), Arc::new(SharedClock::default()));
            let sql = PIPELINE.replace("3 seconds", "1 hour");
            let (first, there, go_on) = stuck(&bench, &sql, nth, &clock);
            let first = tokio::spawn(async move { first.run().await });
            there.notified().await;
            clock.pass(4000);
            let second = bench.project(&sql).with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
            assert!(second.run().await.unwrap().is_success());
            let before = (bench.version("t").await, bench.version("raw").await);
            go_on.notify_one();
            drop(first.await.unwrap());
            assert_eq!((bench.version("t").await, bench.version("raw").await), before, "commit {nth}");
            as_if_undisturbed(&bench, format).await;
        }
    }
}

/// The fence itself: the successor does not even run the flow whose commit comes late, but it committed to the table.
#[tokio::test]
async fn r27_the_late_commit_of_an_owner_that_slept_is_refused_by_the_table() {
    const FEED: &str = "AS AUTO CDC INTO t FROM STREAM
      read_files('FOLDER', format => 'json', schema => 'k BIGINT, seq BIGINT, v BIGINT') KEYS (k) SEQUENCE BY seq;";
    const HEAD: &str = "SET pipelines.maxFlowRetryAttempts = 0; SET strandline.leaseDuration = 1 hour;
      SET spark.sql.pipelines.execution.maxConcurrentFlows = 1; CREATE STREAMING TABLE t;";
    let flow = |name: &str, folder: &str| format!("CREATE FLOW {name} {}", FEED.replace("FOLDER", folder));
    for format in FORMATS {
        let (bench, clock) = (bench(format), Arc::new(SharedClock::default()));
        bench.file("other/1.json", &[json!({"k": 100, "seq": 1, "v": 1})]);
        let both = format!("{HEAD}{}{}", flow("a", "in"), flow("b", "other"));
        let (first, there, go_on) = stuck(&bench, &both, 1, &clock);
        let first = tokio::spawn(async move { first.run().await });
        there.notified().await;
        clock.pass(4000);
        // Whichever of the two the first one is about to commit, its successor runs another.
        let third = format!("{HEAD}{}", flow("c", "other"));
        let second = bench.project(&third).with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
        assert!(second.run().await.unwrap().is_success());
        let before = bench.version("t").await;
        go_on.notify_one();
        let report = first.await.unwrap().unwrap();
        let reasons: Vec<_> = report.flows.iter().filter_map(|flow| flow.reason.clone()).collect();
        assert!(reasons.iter().any(|reason| reason.contains("fenced")), "{format:?}: {reasons:?}");
        assert!(report.flows.iter().any(|flow| flow.status == FlowStatus::Failed));
        assert_eq!(bench.version("t").await, before, "{format:?}");
        // What was planned and not committed runs again, under a new lease.
        let again = bench.project(&both).with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
        assert!(again.run().await.unwrap().is_success());
        let count = bench.rows("SELECT count(*) AS n, max(v) AS v FROM t").await;
        assert_eq!(json!(count), json!([{"n": 5, "v": 3}]), "{format:?}");
    }
}

#[tokio::test]
async fn r27_an_owner_that_lost_its_lease_stops_at_its_next_renewal() {
    let (bench, clock) = (bench(Format::Delta), Arc::new(SharedClock::default()));
    let (first, there, _go_on) = stuck(&bench, PIPELINE, 2, &clock);
    let first = tokio::spawn(async move { first.run().await });
    there.notified().await;
    clock.pass(4);
    let second = bench.project(PIPELINE).with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
    assert!(second.run().await.unwrap().is_success());
    // Nobody tells it to go on: it ends because its renewal finds that the lease was taken over.
    let ended = tokio::time::timeout(Duration::from_mins(1), first).await.expect("it stops").unwrap();
    let errors = ended.unwrap_err();
    assert_eq!(errors[0].kind(), ErrorKind::Busy);
    assert!(errors[0].to_string().contains("took over"), "{}", errors[0]);
    as_if_undisturbed(&bench, Format::Delta).await;
}

#[tokio::test]
async fn r27_an_update_that_fails_or_is_dropped_gives_its_lease_back() {
    let bench = bench(Format::Memory);
    bench.raw_file("in/2.json", "no JSON");
    let report = bench.run(PIPELINE).await.unwrap();
    assert!(!report.is_success());
    bench.file("in/2.json", &[json!({"k": 1, "seq": 2, "v": 2}), json!({"k": 3, "seq": 1, "v": 0})]);
    let clock = Arc::new(SharedClock::default());
    clock.pass(1_000_000_000);
    let (stopped, there, _go_on) = stuck(&bench, PIPELINE, 1, &clock);
    let dropped = tokio::spawn(async move { stopped.run().await });
    there.notified().await;
    dropped.abort();
    drop(dropped.await);
    // Given back by a task, soon.
    let mut last = None;
    for _ in 0..200 {
        let next = bench.project(PIPELINE).with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
        match next.run().await {
            Ok(report) => {
                assert!(report.is_success());
                as_if_undisturbed(&bench, Format::Memory).await;
                return;
            }
            Err(errors) => last = Some(errors),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the lease was not given back: {last:?}");
}

#[tokio::test]
async fn questions_are_asked_while_a_lease_is_held() {
    let (bench, clock) = (bench(Format::Delta), Arc::new(SharedClock::default()));
    let (first, there, go_on) = stuck(&bench, PIPELINE, 3, &clock);
    let first = tokio::spawn(async move { first.run().await });
    there.notified().await;
    assert!(!rows(&bench.storage, "SELECT 1 AS one FROM events() LIMIT 1").await.is_empty());
    assert!(strandline_runtime::status(&bench.storage).await.is_ok());
    go_on.notify_one();
    assert!(first.await.unwrap().unwrap().is_success());
}
