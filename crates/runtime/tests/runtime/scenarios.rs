//! Every scenario file as a user would meet it: change files and exports, a pipeline in SQL, a table, on every format.

mod cells;
mod sql;

use std::{fs, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema};
use object_store::{ObjectStore, memory::InMemory};
use strandline_runtime::definition::{SourceFile, parse_pipeline};
use strandline_testkit::{
    fault::{Fault, FaultStore, Rule},
    reference::{Row, Value},
    scenario::{self, Batch, BatchKind, ColumnType, Physical, Scenario, Subject},
};

use crate::pipeline::{ALL_FORMATS, Bench, Format};

struct Pipeline {
    bench: Bench,
    store: FaultStore<Arc<dyn ObjectStore>>,
    runtime: tokio::runtime::Runtime,
    scenario: Scenario,
    format: Format,
    deliveries: usize,
    /// The greatest version of a snapshot that was taken.
    taken: Option<Value>,
}

impl Pipeline {
    fn new(scenario: &Scenario, format: Format) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self::over(scenario, format, Arc::new(InMemory::new()), runtime)
    }

    fn over(
        scenario: &Scenario,
        format: Format,
        store: Arc<dyn ObjectStore>,
        runtime: tokio::runtime::Runtime,
    ) -> Self {
        let store = FaultStore::new(store);
        let bench = Bench::over(format, Arc::new(store.clone()));
        Self { bench, store, runtime, scenario: scenario.clone(), format, deliveries: 0, taken: None }
    }

    /// Delivers the rows in a new file and runs the pipeline. A refused file is taken away again.
    fn deliver(&mut self, scenario: &Scenario, batch: &Batch) -> Result<(), String> {
        let number = self.deliveries;
        self.deliveries += 1;
        let mut files = Vec::new();
        let columns = columns(scenario, batch);
        match &batch.kind {
            BatchKind::Changes => files.push((format!("in/{number:05}.parquet"), columns, batch.clone())),
            BatchKind::Snapshot(version) => {
                // The export, and a line that says that there is one: it may have no row.
                let kind = sql::version_type(scenario);
                let with_version = |columns: &[(String, ColumnType)], batch: &Batch| {
                    let mut batch = batch.clone();
                    batch.table.columns.push(sql::VERSION.to_owned());
                    batch.table.rows.iter_mut().for_each(|row| row.push(version.clone()));
                    let version = (sql::VERSION.to_owned(), kind.clone());
                    (columns.iter().cloned().chain([version]).collect::<Vec<_>>(), batch)
                };
                let (columns, rows) = with_version(&columns, batch);
                files.push((format!("snap/{number:05}.parquet"), columns, rows));
                let mut none = batch.clone();
                (none.table.columns, none.table.rows) = (Vec::new(), vec![Vec::new()]);
                let (columns, rows) = with_version(&[], &none);
                files.push((format!("versions/{number:05}.parquet"), columns, rows));
            }
        }
        for folder in ["in", "snap", "versions"] {
            fs::create_dir_all(self.bench.path().join(folder)).unwrap();
        }
        for (file, columns, batch) in &files {
            write(&self.bench.path().join(file), columns, batch);
        }
        let result = self.run(&self.pipeline(scenario, batch));
        if let (BatchKind::Snapshot(version), Ok(())) = (&batch.kind, &result) {
            self.taken = Some(version.clone());
        }
        if result.is_err() {
            for (file, ..) in files {
                fs::remove_file(self.bench.path().join(file)).unwrap();
            }
        }
        result
    }

    /// The pipeline while `batch` is what is new: a flow for each kind of batch that the scenario has.
    fn pipeline(&self, scenario: &Scenario, batch: &Batch) -> String {
        let of = |is_snapshot: bool| {
            let is_of = |other: &&Batch| matches!(other.kind, BatchKind::Snapshot(_)) == is_snapshot;
            let first = scenario.batches().find(is_of)?;
            Some(columns(scenario, if is_of(&batch) { batch } else { first }))
        };
        let changes = of(false).map(|columns| sql::changes(scenario, &columns));
        // A query that asks for versions above the last one never gives an older one; one that doesn't ask does.
        let is_stale =
            matches!((&batch.kind, &self.taken), (BatchKind::Snapshot(now), Some(taken)) if now <= taken);
        let newest = self.deliveries.saturating_sub(1);
        let offered = if is_stale { format!("versions/{newest:05}.parquet") } else { "versions".to_owned() };
        let snapshots = of(true).map(|columns| sql::snapshots(scenario, &columns, &offered, is_stale));
        [Some(sql::HEAD.to_owned()), changes, snapshots].into_iter().flatten().collect()
    }

    fn run(&mut self, sql: &str) -> Result<(), String> {
        parse_pipeline(&[SourceFile::new("pipeline.sql", sql)])
            .map_err(|errors| errors.iter().map(|error| error.render(sql)).collect::<String>())?;
        let report = self.runtime.block_on(self.bench.run(sql)).map_err(|errors| {
            errors.iter().map(strandline_runtime::Error::full_text).collect::<Vec<_>>().join("; ")
        })?;
        report.flows.into_iter().find_map(|flow| flow.reason).map_or(Ok(()), Err)
    }
}

/// The columns of a batch's source, by the names that the scenario declares.
fn columns(scenario: &Scenario, batch: &Batch) -> Vec<(String, ColumnType)> {
    let column = |name: &String| {
        let name = scenario.declared(name);
        let declared =
            || (scenario.type_of(name).expect("a declared column").clone(), scenario.physical_of(name));
        (name.to_owned(), batch.types.get(name).cloned().unwrap_or_else(declared))
    };
    batch.table.columns.iter().map(column).collect()
}

fn write(file: &std::path::Path, columns: &[(String, ColumnType)], batch: &Batch) {
    let cells = |at: usize| -> Vec<Value> { batch.table.rows.iter().map(|row| row[at].clone()).collect() };
    let arrays: Vec<_> =
        columns.iter().enumerate().map(|(at, (_, kind))| cells::column(kind, &cells(at))).collect();
    let fields =
        columns.iter().zip(&arrays).map(|((n, _), array)| Field::new(n, array.data_type().clone(), true));
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields.collect::<Vec<_>>())), arrays).unwrap();
    let file = fs::File::create(file).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, rows.schema(), None).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
}

impl Subject for Pipeline {
    fn apply(&mut self, scenario: &Scenario, batch: &Batch) -> Result<(), String> {
        self.deliver(scenario, batch)
    }

    /// Dies at the target's commit, which is then made by the next run, from the plan.
    fn crash(&mut self, scenario: &Scenario, batch: &Batch) -> Result<(), String> {
        if !self.format.is_delta() {
            return Ok(());
        }
        self.store.faults().add(Rule::nth(1, Fault::Before).of("put").on("_delta_log/").and_dies());
        let died = self.deliver(scenario, batch);
        self.store.faults().revive();
        if died.is_err() {
            self.deliveries -= 1;
        }
        Ok(())
    }

    fn restart(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn target(&mut self) -> Result<Vec<Row>, String> {
        let storage = &self.bench.storage;
        let batches = self.runtime.block_on(async {
            match storage.format.open("t").await.unwrap() {
                Some(_) => strandline_runtime::query(storage, "SELECT * FROM t").await.unwrap().1,
                None => Vec::new(),
            }
        });
        let physical = |name: &str| self.scenario.physical_of(name);
        let row = |batch: &RecordBatch, row| -> Row {
            let schema = batch.schema();
            let columns = schema.fields().iter().zip(batch.columns());
            let cell = |(field, column): (&Arc<Field>, _)| {
                (field.name().clone(), cells::value(field.name(), column, row, &physical))
            };
            columns.map(cell).collect()
        };
        Ok(batches
            .iter()
            .flat_map(|batch| (0..batch.num_rows()).map(|i| row(batch, i)).collect::<Vec<_>>())
            .collect())
    }
}

/// Scenarios that SQL has no words for yet, and those whose columns no table here holds: tables keep microseconds.
fn is_of_a_later_release(scenario: &Scenario) -> bool {
    let is_fine =
        |physical: &Physical| matches!(physical, Physical::Timestamp(scenario::Unit::Nanosecond, _));
    scenario.unavailable.is_some() || scenario.physical.values().any(is_fine)
}

/// Whether the case holds in any arrival here: a target is created with the columns of its first batch, and what is small
/// enough to be delivered row by row.
fn can_be_permuted(scenario: &Scenario) -> bool {
    let headers = |is_snapshot: bool| {
        let of_kind =
            scenario.batches().filter(|batch| matches!(batch.kind, BatchKind::Snapshot(_)) == is_snapshot);
        let mut headers: Vec<_> = of_kind.map(|batch| &batch.table.columns).collect();
        headers.dedup();
        headers.len()
    };
    let rows: usize = scenario.batches().map(|batch| batch.table.rows.len()).sum();
    scenario.permute
        && headers(false) <= 1
        && headers(true) <= 1
        && rows <= if cfg!(slow) { 1000 } else { 20 }
}

fn run_folder(folder: &str, at_least: usize) {
    let scenarios = scenario::load_dir(&scenario::directory(folder)).unwrap();
    let mut failures = Vec::new();
    let mut ran = 0;
    for scenario in scenarios.iter().filter(|scenario| !is_of_a_later_release(scenario)) {
        ran += 1;
        for format in ALL_FORMATS {
            if let Err(failure) = scenario::run(scenario, &mut Pipeline::new(scenario, format)) {
                failures.push(format!("{format:?}: {failure}"));
            }
        }
        if can_be_permuted(scenario) {
            let mut subject = Pipeline::new(scenario, Format::Memory);
            failures.extend(scenario::run_permuted(scenario, 1, &mut subject).err().map(|f| f.to_string()));
        }
    }
    assert!(failures.is_empty(), "{} failures of {ran}\n{}", failures.len(), failures.join("\n\n"));
    assert!(ran >= at_least, "{folder} holds {ran} scenarios");
}

/// The scenarios of a folder, each as it is written, on a store of its own; with their number.
pub(crate) fn run_folder_on(folder: &str, format: Format, store: &dyn Fn() -> Arc<dyn ObjectStore>) -> usize {
    let scenarios = scenario::load_dir(&scenario::directory(folder)).unwrap();
    let scenarios: Vec<_> = scenarios.iter().filter(|scenario| !is_of_a_later_release(scenario)).collect();
    for scenario in &scenarios {
        // Connections to a server are driven between two runs too.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let mut subject = Pipeline::over(scenario, format, store(), runtime.unwrap());
        if let Err(failure) = scenario::run(scenario, &mut subject) {
            panic!("{format:?}: {failure}");
        }
    }
    scenarios.len()
}

#[test]
fn worked_tables_come_out_of_pipelines_on_every_format() {
    run_folder("worked", 39);
}

#[test]
fn spark_cases_come_out_of_pipelines_on_every_format() {
    run_folder("spark", 75);
}

#[test]
fn reported_cases_come_out_of_pipelines_on_every_format() {
    run_folder("reports", 110);
}
