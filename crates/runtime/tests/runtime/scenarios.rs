//! Every scenario file as a user would meet it: change files, a pipeline in SQL, a table, on every format.

mod cells;
mod sql;

use std::{fs, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema};
use object_store::memory::InMemory;
use strandline_runtime::definition::{SourceFile, parse_pipeline};
use strandline_testkit::{
    fault::{Fault, FaultStore, Rule},
    reference::{Row, Value},
    scenario::{self, Batch, BatchKind, ColumnType, Physical, Scenario, Step, Subject},
};

use crate::pipeline::{Bench, FORMATS, Format};

struct Pipeline {
    bench: Bench,
    store: FaultStore<InMemory>,
    runtime: tokio::runtime::Runtime,
    scenario: Scenario,
    format: Format,
    deliveries: usize,
}

impl Pipeline {
    fn new(scenario: &Scenario, format: Format) -> Self {
        let store = FaultStore::new(InMemory::new());
        let bench = Bench::over(format, Arc::new(store.clone()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { bench, store, runtime, scenario: scenario.clone(), format, deliveries: 0 }
    }

    /// Delivers the rows in a new file and runs the pipeline. A refused file is taken away again.
    fn deliver(&mut self, scenario: &Scenario, batch: &Batch) -> Result<(), String> {
        assert_eq!(batch.kind, BatchKind::Changes);
        let columns = columns(scenario, batch);
        let file = self.bench.path().join(format!("in/{:05}.parquet", self.deliveries));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        write(&file, &columns, batch);
        self.deliveries += 1;
        let result = self.run(&sql::pipeline(scenario, &columns));
        if result.is_err() {
            fs::remove_file(file).unwrap();
        }
        result
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
        if self.format != Format::Delta {
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

/// Scenarios that SQL has no words for yet, and those whose columns no table here holds: tables keep microseconds, and the
/// type that a column has at first.
fn is_of_a_later_release(scenario: &Scenario) -> bool {
    let snapshots = scenario.batches().any(|batch| batch.kind != BatchKind::Changes);
    let is_fine =
        |physical: &Physical| matches!(physical, Physical::Timestamp(scenario::Unit::Nanosecond, _));
    let refused = scenario.steps.iter().any(|step| matches!(step, Step::ExpectError(_)));
    let widened = !refused && scenario.batches().any(|batch| !batch.types.is_empty());
    snapshots || widened || scenario.unavailable.is_some() || scenario.physical.values().any(is_fine)
}

/// Whether the case holds in any arrival here: a target is created with the columns of its first batch, and what is small
/// enough to be delivered row by row.
fn can_be_permuted(scenario: &Scenario) -> bool {
    let mut headers: Vec<_> = scenario.batches().map(|batch| &batch.table.columns).collect();
    headers.dedup();
    let rows: usize = scenario.batches().map(|batch| batch.table.rows.len()).sum();
    scenario.permute && headers.len() == 1 && rows <= if cfg!(slow) { 1000 } else { 20 }
}

fn run_folder(folder: &str, at_least: usize) {
    let scenarios = scenario::load_dir(&scenario::directory(folder)).unwrap();
    let mut failures = Vec::new();
    let mut ran = 0;
    for scenario in scenarios.iter().filter(|scenario| !is_of_a_later_release(scenario)) {
        ran += 1;
        for format in FORMATS {
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

#[test]
fn worked_tables_come_out_of_pipelines_on_every_format() {
    run_folder("worked", 32);
}

#[test]
fn spark_cases_come_out_of_pipelines_on_every_format() {
    run_folder("spark", 75);
}

#[test]
fn reported_cases_come_out_of_pipelines_on_every_format() {
    run_folder("reports", 100);
}
