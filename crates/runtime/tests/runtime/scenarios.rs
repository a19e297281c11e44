//! Every scenario file as a user would meet it: change files, a pipeline in SQL, a table, on every format.

use std::{collections::BTreeMap, sync::Arc};

use object_store::memory::InMemory;
use serde_json::{Value as Json, json};
use strandline_testkit::{
    fault::{Fault, FaultStore, Rule},
    reference::{Row, Value},
    scenario::{self, Batch, Scenario, Selection, StoredAs, Subject, Type},
};

use crate::pipeline::{Bench, FORMATS, Format, JsonRow};

struct Pipeline {
    bench: Bench,
    store: FaultStore<InMemory>,
    runtime: tokio::runtime::Runtime,
    scenario: Scenario,
    format: Format,
    deliveries: usize,
}

fn sql_type(data_type: &Type) -> String {
    match data_type {
        Type::Bool => "BOOLEAN".to_owned(),
        Type::Int => "BIGINT".to_owned(),
        Type::Float => "DOUBLE".to_owned(),
        Type::Text => "STRING".to_owned(),
        Type::Bytes => "BINARY".to_owned(),
        Type::Struct(fields) => {
            let fields: Vec<String> = fields.iter().map(|(n, t)| format!("{n}: {}", sql_type(t))).collect();
            format!("STRUCT<{}>", fields.join(", "))
        }
        Type::List(item) => format!("ARRAY<{}>", sql_type(item)),
        Type::Map(key, value) => format!("MAP<{}, {}>", sql_type(key), sql_type(value)),
    }
}

fn to_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(flag) => json!(flag),
        Value::Int(number) => json!(number),
        Value::Float(number) => json!(number),
        Value::Text(text) => json!(text),
        Value::List(items) => items.iter().map(to_json).collect(),
        Value::Struct(fields) => Json::Object(fields.iter().map(|(n, v)| (n.clone(), to_json(v))).collect()),
        Value::Bytes(_) | Value::Map(_) => panic!("not met in these scenarios"),
    }
}

fn from_json(value: &Json, data_type: &Type) -> Value {
    match (value, data_type) {
        (Json::Null, _) => Value::Null,
        (Json::Bool(flag), _) => Value::Bool(*flag),
        (Json::Number(number), Type::Float) => Value::Float(number.as_f64().unwrap()),
        (Json::Number(number), _) => Value::Int(number.as_i64().unwrap()),
        (Json::String(text), _) => Value::Text(text.clone()),
        (Json::Array(items), Type::List(item)) => {
            Value::List(items.iter().map(|i| from_json(i, item)).collect())
        }
        (Json::Object(object), Type::Struct(fields)) => {
            Value::Struct(fields.iter().map(|(n, t)| (n.clone(), from_json(&object[n], t))).collect())
        }
        other => panic!("{other:?} is not met in these scenarios"),
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        other => to_json(other).to_string(),
    }
}

fn clause(name: &str, selection: &Selection) -> String {
    match selection {
        Selection::All => String::new(),
        Selection::Only(columns) => format!("{name} ({})", columns.join(", ")),
        Selection::Except(columns) => format!("{name} * EXCEPT ({})", columns.join(", ")),
    }
}

impl Pipeline {
    fn new(scenario: &Scenario, format: Format) -> Self {
        let store = FaultStore::new(InMemory::new());
        let bench = Bench::over(format, Arc::new(store.clone()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { bench, store, runtime, scenario: scenario.clone(), format, deliveries: 0 }
    }

    fn sql(&self, columns: &[String]) -> String {
        let scenario = &self.scenario;
        let schema: Vec<String> = columns
            .iter()
            .map(|name| format!("`{name}` {}", sql_type(scenario.type_of(name).expect("a declared column"))))
            .collect();
        let sequence = match scenario.sequence.as_slice() {
            [one] => one.clone(),
            several => {
                let parts: Vec<String> = several.iter().map(|name| format!("'{name}', {name}")).collect();
                format!("named_struct({})", parts.join(", "))
            }
        };
        let delete = scenario.delete_when.as_ref().map_or_else(String::new, |condition| {
            format!("APPLY AS DELETE WHEN {} = {}", condition.column, literal(&condition.value))
        });
        let stored_as = match scenario.stored_as {
            StoredAs::Scd1 => "SCD TYPE 1",
            StoredAs::Scd2 => "SCD TYPE 2",
            StoredAs::Bitemporal => panic!("not met in these scenarios"),
        };
        // Only columns that the source has can be named.
        let kept = match &scenario.columns {
            Selection::Only(list) => {
                Selection::Only(list.iter().filter(|c| columns.contains(c)).cloned().collect())
            }
            other => other.clone(),
        };
        format!(
            "SET pipelines.maxFlowRetryAttempts = 0;
             CREATE STREAMING TABLE t;
             CREATE FLOW f AS AUTO CDC INTO t
             FROM STREAM read_files('in/*.json', format => 'json', schema => '{}')
             KEYS ({}) {delete} SEQUENCE BY {sequence} {} STORED AS {stored_as} {};",
            schema.join(", "),
            scenario.keys.join(", "),
            clause("COLUMNS", &kept),
            clause("TRACK HISTORY ON", &scenario.track_history),
        )
    }

    /// Delivers the rows in a new file and runs the pipeline. A refused file is taken away again.
    fn deliver(&mut self, batch: &Batch) -> Result<(), String> {
        let lines: Vec<Json> = batch
            .table
            .rows
            .iter()
            .map(|row| {
                let cells =
                    batch.table.columns.iter().zip(row).map(|(name, value)| (name.clone(), to_json(value)));
                Json::Object(cells.collect())
            })
            .collect();
        let name = format!("in/{:05}.json", self.deliveries);
        self.deliveries += 1;
        self.bench.file(&name, &lines);
        let result = self.run(&batch.table.columns);
        if result.is_err() {
            // The batch stays planned; an empty file is what becomes of it.
            self.bench.raw_file(&name, "");
        }
        result
    }

    fn run(&mut self, columns: &[String]) -> Result<(), String> {
        let sql = self.sql(columns);
        let report = self.runtime.block_on(self.bench.run(&sql)).map_err(|errors| {
            errors.iter().map(strandline_runtime::Error::full_text).collect::<Vec<_>>().join("; ")
        })?;
        report.flows.into_iter().find_map(|flow| flow.reason).map_or(Ok(()), Err)
    }
}

impl Subject for Pipeline {
    fn apply(&mut self, _: &Scenario, batch: &Batch) -> Result<(), String> {
        self.deliver(batch)
    }

    /// Dies at the target's commit, which is then made by the next run, from the plan.
    fn crash(&mut self, _: &Scenario, batch: &Batch) -> Result<(), String> {
        if self.format != Format::Delta {
            return Ok(());
        }
        self.store.faults().add(Rule::nth(1, Fault::Before).of("put").on("_delta_log/").and_dies());
        let died = self.deliver(batch);
        self.store.faults().revive();
        match died {
            Err(_) => {
                let name = format!("in/{:05}.json", self.deliveries - 1);
                std::fs::remove_file(self.bench.path().join(name)).map_err(|e| e.to_string())?;
                self.deliveries -= 1;
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn restart(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn target(&mut self) -> Result<Vec<Row>, String> {
        let rows: Vec<JsonRow> = self.runtime.block_on(self.bench.rows("SELECT * FROM t"));
        let types: BTreeMap<String, Type> = self.scenario.target_columns().into_iter().collect();
        let to_row = |row: JsonRow| {
            row.into_iter().map(|(name, value)| {
                let data_type = types.get(&name).cloned().unwrap_or_else(|| self.scenario.sequence_type());
                let value = from_json(&value, &data_type);
                (name, value)
            })
        };
        Ok(rows.into_iter().map(|row| to_row(row).collect()).collect())
    }
}

fn run_folder(folder: &str) {
    let scenarios = scenario::load_dir(&scenario::directory(folder)).unwrap();
    assert!(scenarios.len() > 5, "{folder} holds scenarios");
    let mut failures = Vec::new();
    for scenario in &scenarios {
        for format in FORMATS {
            if let Err(failure) = scenario::run(scenario, &mut Pipeline::new(scenario, format)) {
                failures.push(format!("{format:?}: {failure}"));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n\n"));
}

#[test]
fn worked_tables_come_out_of_pipelines_on_every_format() {
    run_folder("worked");
}

#[test]
fn spark_cases_come_out_of_pipelines_on_every_format() {
    run_folder("spark");
}
