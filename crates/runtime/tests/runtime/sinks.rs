//! Rows that leave the pipeline: files and tables get each of them once, code gets each batch under one id.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use object_store::{memory::InMemory, path::Path as StorePath};
use serde_json::{Value as Json, json};
use strandline_runtime::{
    Error, ErrorKind, FlowStatus, Project, Storage,
    sinks::{BatchSink, foreach_batch},
};
use strandline_table_formats::{DeltaFormat, DurableLocal};
use strandline_testkit::fault::{Fault, FaultStore, Rule};

use crate::pipeline::{Bench, FORMATS, Format, rows};

const SOURCE: &str = "STREAM read_files('in/*.json', format => 'json', schema => 'k STRING, v BIGINT', maxFilesPerTrigger => 2)";

fn files_into(sink: &str) -> String {
    format!(
        "SET pipelines.maxFlowRetryAttempts = 0;
         CREATE SINK out {sink};
         CREATE FLOW leave AS INSERT INTO out BY NAME SELECT * FROM {SOURCE} WHERE v > 0;"
    )
}

fn fill(bench: &Bench) {
    for n in 1..=5 {
        let rows = [json!({"k": "a", "v": n}), json!({"k": "b", "v": n * 10}), json!({"k": "c", "v": -n})];
        bench.file(&format!("in/{n}.json"), &rows);
    }
    // A batch of which nothing is left.
    bench.file("in/6.json", &[json!({"k": "z", "v": -1})]);
}

/// What lies in a folder for all to see, with its bytes.
fn visible(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let Ok(files) = fs::read_dir(folder) else { return BTreeMap::new() };
    let files = files.map(|file| file.unwrap()).filter(|file| file.file_type().unwrap().is_file());
    files.map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap())).collect()
}

fn lines(folder: &Path) -> Vec<Json> {
    let text: String = visible(folder).into_values().map(|bytes| String::from_utf8(bytes).unwrap()).collect();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_file_sink_has_a_file_a_batch_with_each_row_once() {
    for format in FORMATS {
        let bench = Bench::new(format);
        fill(&bench);
        let sql = files_into("USING json OPTIONS ('path' = './out/rows')");
        let report = bench.succeed(&sql).await;
        let flow = &report.flows[0];
        assert_eq!((flow.batches, flow.rows_in, flow.output_rows), (3, 10, Some(10)), "{flow:?}");
        let folder = bench.path().join("out/rows");
        let names: Vec<String> = visible(&folder).into_keys().collect();
        assert_eq!(
            names,
            [1, 2, 3].map(|n| format!("leave-0-{n:020}.json")),
            "relative to the pipeline's file, named by flow, incarnation and batch"
        );
        let mut found = lines(&folder);
        assert_eq!(found.len(), 10);
        assert_eq!(found.remove(0), json!({"k": "a", "v": 1}));
        // Nothing is new.
        assert_eq!(bench.succeed(&sql).await.flows[0].batches, 0);
        assert_eq!(visible(&folder).len(), 3);
        assert!(bench.storage.format.list().await.unwrap().is_empty(), "a sink is no table");
    }
}

#[tokio::test]
async fn files_of_a_sink_can_be_read_back_in_every_encoding() {
    for (written, extension, magic) in [
        ("USING json OPTIONS ('path' = 'out', 'compression' = 'gzip')", "json.gz", &b"\x1f\x8b"[..]),
        ("USING json OPTIONS ('path' = 'out', 'compression' = 'bzip2')", "json.bz2", b"BZh"),
        ("USING json OPTIONS ('path' = 'out', 'compression' = 'zstd')", "json.zst", b"\x28\xb5\x2f\xfd"),
        ("USING parquet OPTIONS ('path' = 'out')", "parquet", b"PAR1"),
        ("USING parquet OPTIONS ('path' = 'out', 'compression' = 'zstd')", "parquet", b"PAR1"),
    ] {
        let bench = Bench::new(Format::Memory);
        fill(&bench);
        bench.succeed(&files_into(written)).await;
        let files = visible(&bench.path().join("out"));
        assert!(
            files.iter().all(|(name, bytes)| name.ends_with(extension) && bytes.starts_with(magic)),
            "{written}"
        );
        if extension == "json.gz" {
            let mut text = String::new();
            for bytes in files.values() {
                std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut text)
                    .unwrap();
            }
            assert_eq!(text.lines().count(), 10);
        }
        if extension == "parquet" {
            let sql = "CREATE STREAMING TABLE back AS SELECT * FROM STREAM read_files('out', format => 'parquet', schema => 'k STRING, v BIGINT');";
            bench.succeed(sql).await;
            assert_eq!(
                json!(bench.rows("SELECT sum(v) AS s, count(*) AS n FROM back").await),
                json!([{"s": 165, "n": 10}])
            );
        }
    }
}

#[tokio::test]
async fn a_batch_that_fails_midway_leaves_no_part_of_a_file_to_be_seen() {
    let bench = Bench::new(Format::Delta);
    bench.file("in/1.json", &[json!({"k": "a", "v": 1})]);
    bench.raw_file("in/2.json", "{\"k\": oops}");
    let sql = files_into("USING json OPTIONS ('path' = 'out')");
    let report = bench.run(&sql).await.unwrap();
    assert_eq!(report.flows[0].status, FlowStatus::Failed);
    assert_eq!(visible(&bench.path().join("out")).len(), 0);
    bench.file("in/2.json", &[json!({"k": "b", "v": 2})]);
    bench.succeed(&sql).await;
    assert_eq!(lines(&bench.path().join("out")), [json!({"k": "a", "v": 1}), json!({"k": "b", "v": 2})]);
}

#[tokio::test]
async fn killing_the_process_at_any_store_operation_gives_the_same_files() {
    let over = |store: &FaultStore<InMemory>| {
        let bench = Bench::over(Format::Delta, Arc::new(store.clone()));
        fill(&bench);
        bench
    };
    let sql = files_into("USING json OPTIONS ('path' = 'out')");
    let store = FaultStore::new(InMemory::new());
    let undisturbed = over(&store);
    undisturbed.succeed(&sql).await;
    let operations = store.faults().count();
    let expected = visible(&undisturbed.path().join("out"));
    for fault in [Fault::Before, Fault::After] {
        for n in 1..=operations {
            let store = FaultStore::new(InMemory::new());
            let bench = over(&store);
            store.faults().add(Rule::nth(n, fault).and_dies());
            drop(bench.run(&sql).await);
            store.faults().revive();
            bench.succeed(&sql).await;
            assert_eq!(visible(&bench.path().join("out")), expected, "killed {fault:?} at operation {n}");
        }
    }
}

/// The rows of a Delta table in a folder.
async fn table(folder: &Path, sql: &str) -> Json {
    let store: Arc<dyn object_store::ObjectStore> = Arc::new(DurableLocal::new(folder).unwrap());
    let format = Arc::new(DeltaFormat::new(Arc::clone(&store), StorePath::default()));
    json!(rows(&Storage { store, format, folder: None, url: None }, sql).await)
}

#[tokio::test]
async fn a_table_sink_has_each_row_once_wherever_the_process_dies() {
    let sql = files_into("USING delta OPTIONS ('path' = 'lake/out')");
    let over = |store: &FaultStore<InMemory>| {
        let bench = Bench::over(Format::Delta, Arc::new(store.clone()));
        fill(&bench);
        bench
    };
    let store = FaultStore::new(InMemory::new());
    let bench = over(&store);
    let report = bench.succeed(&sql).await;
    assert_eq!((report.flows[0].output_rows, report.flows[0].batches), (Some(10), 3));
    let all = "SELECT k, v FROM \"out\" ORDER BY k, v";
    let expected = table(&bench.path().join("lake"), all).await;
    assert_eq!(expected.as_array().unwrap().len(), 10);
    for fault in [Fault::Before, Fault::After] {
        for n in 1..=store.faults().count() {
            let store = FaultStore::new(InMemory::new());
            let bench = over(&store);
            store.faults().add(Rule::nth(n, fault).and_dies());
            drop(bench.run(&sql).await);
            store.faults().revive();
            bench.succeed(&sql).await;
            let found = table(&bench.path().join("lake"), all).await;
            assert_eq!(found, expected, "killed {fault:?} at operation {n}");
        }
    }
}

/// What code was given: flow, incarnation and id with the rows, in the order of the calls.
#[derive(Clone, Default)]
struct Given(Arc<Mutex<Vec<GivenBatch>>>);

type GivenBatch = (u64, u64, Vec<String>);

impl Given {
    fn sink(&self) -> Arc<dyn BatchSink> {
        let given = self.clone();
        foreach_batch(move |batch| {
            let given = given.clone();
            async move {
                let (incarnation, id) = (batch.incarnation, batch.batch_id);
                assert_eq!(batch.flow, "leave");
                let mut writer = arrow_json::LineDelimitedWriter::new(Vec::new());
                for rows in batch.collect().await? {
                    writer.write(&rows)?;
                }
                writer.finish()?;
                let text = String::from_utf8(writer.into_inner()).unwrap();
                given.0.lock().unwrap().push((incarnation, id, text.lines().map(str::to_owned).collect()));
                Ok(())
            }
        })
    }

    /// Batches by their id; a batch that came again must have come with the same rows, and ids must grow by one.
    fn batches(&self) -> BTreeMap<(u64, u64), Vec<String>> {
        let mut batches = BTreeMap::new();
        let mut newest = 0;
        for (incarnation, id, rows) in self.0.lock().unwrap().iter() {
            assert!(*id == newest + 1 || *id == newest, "{id} after {newest}");
            newest = *id;
            let known = batches.entry((*incarnation, *id)).or_insert_with(|| rows.clone());
            assert_eq!(known, rows, "batch {id}");
        }
        batches
    }
}

const CODE: &str = "USING foreachBatch";

fn with_code(bench: &Bench, given: &Given) -> Project {
    bench.project(&files_into(CODE)).with_sink("out", given.sink())
}

#[tokio::test]
async fn r25_code_gets_a_batch_again_under_its_id_wherever_the_process_dies() {
    let over = |store: &FaultStore<InMemory>| {
        let bench = Bench::over(Format::Delta, Arc::new(store.clone()));
        fill(&bench);
        bench
    };
    let store = FaultStore::new(InMemory::new());
    let (bench, given) = (over(&store), Given::default());
    let report = with_code(&bench, &given).run().await.unwrap();
    assert!(report.is_success(), "{report:?}");
    assert_eq!((report.flows[0].batches, report.flows[0].output_rows), (3, Some(10)));
    let expected = given.batches();
    assert_eq!(expected.keys().copied().collect::<Vec<_>>(), [(0, 1), (0, 2), (0, 3)]);
    assert_eq!(expected.values().map(Vec::len).collect::<Vec<_>>(), [4, 4, 2]);
    let mut again = 0;
    for fault in [Fault::Before, Fault::After] {
        for n in 1..=store.faults().count() {
            let store = FaultStore::new(InMemory::new());
            let (bench, given) = (over(&store), Given::default());
            store.faults().add(Rule::nth(n, fault).and_dies());
            drop(with_code(&bench, &given).run().await);
            store.faults().revive();
            assert!(with_code(&bench, &given).run().await.unwrap().is_success());
            assert_eq!(given.batches(), expected, "killed {fault:?} at operation {n}");
            again += given.0.lock().unwrap().len() - expected.len();
        }
    }
    assert!(again > 0, "no crash made a batch come again");
}

#[tokio::test]
async fn r25_a_batch_that_code_refuses_comes_again_and_its_error_names_the_sink() {
    let bench = Bench::new(Format::Memory);
    fill(&bench);
    let refusing = foreach_batch(|batch| async move {
        Err(Error::new(ErrorKind::Data, "not today").with("id", batch.batch_id))
    });
    let report = bench.project(&files_into(CODE)).with_sink("out", refusing).run().await.unwrap();
    let reason = report.flows[0].reason.as_deref().unwrap();
    for part in ["not today", "sink out", "batch 1", "leave"] {
        assert!(reason.contains(part), "`{part}` is not in: {reason}");
    }
    let given = Given::default();
    assert!(with_code(&bench, &given).run().await.unwrap().is_success());
    assert_eq!(given.batches().len(), 3);
}

#[tokio::test]
async fn code_is_registered_for_a_sink_that_is_declared_and_the_other_way_round() {
    let bench = Bench::new(Format::Memory);
    fill(&bench);
    let errors = bench.project(&files_into(CODE)).dry_run().await.unwrap_err();
    assert!(errors[0].full_text().contains("no code is registered"), "{errors:?}");
    assert!(errors[0].help_text().unwrap().contains("with_sink(\"out\""), "{errors:?}");
    let misspelt = bench.project(&files_into(CODE)).with_sink("outt", Given::default().sink());
    let errors = misspelt.run().await.unwrap_err();
    assert!(errors[0].full_text().contains("outt"), "{errors:?}");
}

#[tokio::test]
async fn g17_g18_what_may_not_go_into_a_sink_is_refused() {
    let bench = Bench::new(Format::Memory);
    fill(&bench);
    for (sql, condition) in [
        (
            format!(
                "CREATE STREAMING TABLE t; CREATE FLOW f AS UPDATE INTO t BY NAME SELECT * FROM {SOURCE};"
            ),
            "G-17",
        ),
        (
            format!(
                "CREATE SINK s USING foreachBatch; CREATE FLOW f AS INSERT INTO ONCE s BY NAME SELECT * FROM {};",
                SOURCE.trim_start_matches("STREAM ")
            ),
            "G-18",
        ),
        (
            format!(
                "CREATE SINK s USING json OPTIONS ('path' = 'o'); CREATE FLOW f AS AUTO CDC INTO s FROM {SOURCE} KEYS (k) SEQUENCE BY v;"
            ),
            "G-18",
        ),
    ] {
        let project = bench.project(&sql);
        let project = if sql.contains("foreachBatch") {
            project.with_sink("s", Given::default().sink())
        } else {
            project
        };
        assert!(project.dry_run().await.is_err(), "{condition}: {sql}");
    }
    // An update flow into a sink, and a ONCE flow into files, are fine.
    let sql = format!(
        "CREATE SINK out USING json OPTIONS ('path' = 'out');
         CREATE FLOW f AS UPDATE INTO out BY NAME SELECT * FROM {SOURCE};
         CREATE FLOW g AS INSERT INTO ONCE out BY NAME SELECT * FROM {};",
        SOURCE.trim_start_matches("STREAM ")
    );
    bench.succeed(&sql).await;
    assert_eq!(lines(&bench.path().join("out")).len(), 32);
    let outline = bench.project(&sql).dry_run().await.unwrap();
    assert!(outline.flows.iter().all(|flow| flow.kind == "sink"), "{outline:?}");
}

#[tokio::test]
async fn r07_a_full_refresh_gives_everything_again_in_the_next_incarnation() {
    let bench = Bench::new(Format::Memory);
    fill(&bench);
    let all = strandline_runtime::UpdateRequest::full_refresh_all();
    let given = Given::default();
    assert!(with_code(&bench, &given).run().await.unwrap().is_success());
    given.0.lock().unwrap().clear();
    assert!(with_code(&bench, &given).run_request(&all).await.unwrap().is_success());
    assert_eq!(given.batches().into_keys().collect::<Vec<_>>(), [(1, 1), (1, 2), (1, 3)]);
    // Files of the incarnation before stay: what a sink holds is its owner's.
    let sql = files_into("USING json OPTIONS ('path' = 'out')");
    let bench = Bench::new(Format::Memory);
    fill(&bench);
    bench.succeed(&sql).await;
    bench.request(&sql, &all).await;
    assert_eq!(visible(&bench.path().join("out")).len(), 6);
}
