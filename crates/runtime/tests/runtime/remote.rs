//! The same promises over the protocols of clouds, on real servers: `tests/s3/run` and `tests/azure/run` start one, make a
//! bucket, and run these.
//!
//! `STRANDLINE_STORE` is the URL of the bucket; how the server is reached is said by the usual variables.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use object_store::ObjectStore;
use serde_json::json;
use strandline_runtime::{
    ErrorKind, Location, StoreOptions,
    clock::Clock,
    state::{Lease, Register, engine_path},
};
use strandline_table_formats::{
    DeltaFormat, LakeOptions, MemoryFormat, TableFormat, WriteMode, conformance,
    iceberg::{CatalogOptions, IcebergFormat, Warehouse},
};

use crate::{
    pipeline::{Bench, Format},
    scenarios::run_folder_on,
};

const MODES: [WriteMode; 2] = [WriteMode::CopyOnWrite, WriteMode::MergeOnRead];

/// A prefix of the bucket that nothing else uses.
fn location(name: &str) -> Location {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let bucket = std::env::vars_os().find(|(name, _)| name == "STRANDLINE_STORE");
    let bucket = bucket
        .expect("STRANDLINE_STORE is not set: run tests/s3/run or tests/azure/run")
        .1
        .into_string()
        .unwrap();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let url = format!("{bucket}/{name}-{}-{number}", std::process::id());
    let variables =
        std::env::vars_os().filter_map(|(n, v)| Some((n.into_string().ok()?, v.into_string().ok()?)));
    Location::open(&url, &StoreOptions::new().with_environment(variables)).unwrap()
}

fn store(name: &str) -> Arc<dyn ObjectStore> {
    location(name).store
}

async fn keeps_the_contract(format: &dyn TableFormat) {
    if let Err(e) = conformance::all(format).await {
        panic!("{}: {e}, {e:?}", format.name());
    }
}

#[tokio::test]
#[ignore = "needs a server: tests/s3/run, tests/azure/run"]
async fn remote_t21_delta_keeps_the_contract() {
    for write_mode in MODES {
        let options = LakeOptions { write_mode, ..LakeOptions::default() };
        let format = DeltaFormat::new(store("delta"), "lake house".into()).with_options(options);
        keeps_the_contract(&format).await;
    }
}

/// Data and metadata on the server; the catalog is a file of this machine.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a server: tests/s3/run, tests/azure/run"]
async fn remote_t21_iceberg_keeps_the_contract() {
    for write_mode in MODES {
        let (location, folder) = (location("iceberg"), tempfile::tempdir().unwrap());
        let warehouse = Warehouse::new(Arc::clone(&location.store), location.url.as_deref().unwrap());
        let catalog = CatalogOptions::default().open(&warehouse, Some(folder.path())).await.unwrap();
        let options = LakeOptions { write_mode, ..LakeOptions::default() };
        keeps_the_contract(&IcebergFormat::new(catalog, warehouse).with_options(options)).await;
    }
}

#[tokio::test]
#[ignore = "needs a server: tests/s3/run, tests/azure/run"]
async fn remote_t21_files_keep_the_contract() {
    keeps_the_contract(&MemoryFormat::with_store(store("files"), LakeOptions::default())).await;
}

/// A log entry of Delta is created once, however many try: there is no rename that could decide.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a server: tests/s3/run, tests/azure/run"]
async fn remote_t21_of_many_that_create_one_succeeds() {
    let store = store("race");
    let register = Register::new(Arc::clone(&store), engine_path(&["race"]));
    for round in 1..=20 {
        let tries = (0..16).map(|who| {
            let register = register.clone();
            tokio::spawn(async move {
                register.create(round, &json!({ "who": who })).await.unwrap().then_some(who)
            })
        });
        let won: Vec<i32> =
            futures::future::join_all(tries).await.into_iter().filter_map(Result::unwrap).collect();
        assert_eq!(won.len(), 1, "round {round}");
        let record: serde_json::Value = register.read(round).await.unwrap().unwrap();
        assert_eq!(record["who"], won[0], "what is read is what the one wrote");
    }
    assert_eq!(register.numbers().await.unwrap(), (1..=20).collect::<Vec<_>>());
    register.prune_below(19).await.unwrap();
    assert_eq!(register.newest::<serde_json::Value>().await.unwrap().unwrap().0, 20);
    assert_eq!(register.numbers().await.unwrap(), [19, 20]);
    assert!(register.read::<serde_json::Value>(3).await.unwrap().is_none());
}

#[derive(Debug, Default)]
struct SetClock(Mutex<Duration>);

impl Clock for SetClock {
    fn now(&self) -> Duration {
        Duration::from_secs(1_700_000_000) + *self.0.lock().unwrap()
    }
}

#[tokio::test]
#[ignore = "needs a server: tests/s3/run, tests/azure/run"]
async fn remote_r27_a_lease_is_held_by_one_expires_and_is_given_back() {
    let storage = location("lease").with_format(Arc::new(MemoryFormat::new()));
    let clock = Arc::new(SetClock::default());
    let take = || Lease::acquire(&storage, Arc::clone(&clock) as Arc<dyn Clock>, Duration::from_secs(3));
    let mut first = take().await.unwrap();
    assert_eq!(take().await.unwrap_err().kind(), ErrorKind::Busy);
    *clock.0.lock().unwrap() += Duration::from_secs(4);
    let second = take().await.unwrap();
    assert!(second.epoch > first.epoch);
    // Renewals come every second of real time.
    let lost = tokio::time::timeout(Duration::from_secs(30), first.lost()).await.expect("it finds out");
    assert_eq!(lost.kind(), ErrorKind::Busy);
    first.release().await;
    assert_eq!(take().await.unwrap_err().kind(), ErrorKind::Busy, "the second one still holds it");
    second.release().await;
    take().await.unwrap().release().await;
}

#[test]
#[ignore = "needs a server: tests/s3/run, tests/azure/run"]
fn remote_t21_worked_scenarios_come_out_as_on_other_stores() {
    for format in [Format::Delta, Format::DeltaMasked, Format::Iceberg, Format::IcebergMasked] {
        assert!(run_folder_on("worked", format, &|| store("worked")) >= 39);
    }
}

#[tokio::test]
#[ignore = "needs a server: tests/s3/run, tests/azure/run"]
async fn remote_r03_t21_a_pipeline_goes_on_and_its_storage_is_left_tidy() {
    const SQL: &str = "CREATE STREAMING TABLE t;
        CREATE FLOW t AS AUTO CDC INTO t FROM STREAM read_files('in', format => 'json', schema => 'k BIGINT, seq BIGINT')
        KEYS (k) SEQUENCE BY seq STORED AS SCD TYPE 2;";
    let mut bench = Bench::new(Format::Delta);
    let location = location("pipeline");
    let format = Arc::new(DeltaFormat::new(Arc::clone(&location.store), "tables".into()));
    bench.storage = location.with_format(format);
    for n in 1..=5 {
        bench.file(&format!("in/{n}.json"), &[json!({"k": n % 2, "seq": n})]);
        bench.succeed(SQL).await;
        let version = bench.version("t").await;
        bench.succeed(SQL).await;
        assert_eq!(bench.version("t").await, version, "nothing new, nothing written");
    }
    let rows = bench.rows("SELECT k, __START_AT, __END_AT FROM t WHERE __END_AT IS NULL ORDER BY k").await;
    assert_eq!(
        json!(rows),
        json!([{"k": 0, "__START_AT": 4, "__END_AT": null}, {"k": 1, "__START_AT": 5, "__END_AT": null}])
    );
    let leases = Register::new(Arc::clone(&bench.storage.store), engine_path(&["lease"]));
    assert!(leases.numbers().await.unwrap().len() <= 3, "records of leases don't pile up");
}
