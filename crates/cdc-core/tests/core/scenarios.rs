//! Does the core do what the scenario files say?

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use strandline_cdc_core::{CdcOptions, CdcSpec, ChangeBatch, ColumnSelection, StoredAs};
use strandline_testkit::{
    reference::{Row, Value},
    scenario::{self, Batch, BatchKind, Scenario, Selection, Subject},
};

use crate::{
    convert::{array, data_type, value},
    store::Store,
};

#[derive(Debug, Default)]
struct Core {
    store: Option<Store>,
}

impl Subject for Core {
    fn apply(&mut self, scenario: &Scenario, batch: &Batch) -> Result<(), String> {
        assert_eq!(batch.kind, BatchKind::Changes);
        let columns = &batch.table.columns;
        let column = |name: &String| -> Vec<Value> {
            let at = columns.iter().position(|column| column == name);
            batch.table.rows.iter().map(|row| at.map_or(Value::Null, |at| row[at].clone())).collect()
        };
        let carried = scenario.types.iter().filter(|(name, _)| columns.contains(name));
        let (fields, arrays): (Vec<FieldRef>, Vec<ArrayRef>) = carried
            .map(|(name, kind)| {
                let data_type = data_type(kind);
                let values = array(&data_type, &column(name));
                (Arc::new(Field::new(name, data_type, true)), values)
            })
            .unzip();
        let source = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
        let mut spec = spec(scenario, &source.schema());
        if let Some(store) = self.store.as_ref().filter(|_| spec.stored_as() == StoredAs::Scd1) {
            spec = spec.with_target_columns(&store.target.batch.schema()).map_err(|e| e.to_string())?;
        }
        let store = self.store.get_or_insert_with(|| Store::new(&spec));
        store.target.widen(spec.target_schema());
        store.side.widen(spec.side_schema());
        let deletes: Option<BooleanArray> = scenario.delete_when.as_ref().map(|condition| {
            let equal = |value: &Value| (!value.is_null()).then(|| *value == condition.value);
            column(&condition.column).iter().map(equal).collect()
        });
        let parts: Vec<ArrayRef> =
            scenario.sequence.iter().map(|name| Arc::clone(source.column_by_name(name).unwrap())).collect();
        let sequence = match spec.sequence_type() {
            DataType::Struct(fields) => Arc::new(StructArray::new(fields.clone(), parts, None)),
            _ => Arc::clone(&parts[0]),
        };
        let changes =
            ChangeBatch::new(&spec, &source, &sequence, deletes.as_ref()).map_err(|e| e.to_string())?;
        store.apply(&spec, &changes, batch.number as u64).map_err(|e| e.to_string())?;
        Ok(())
    }

    fn restart(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn target(&mut self) -> Result<Vec<Row>, String> {
        let Some(store) = &self.store else { return Ok(vec![]) };
        let rows = &store.target.batch;
        let schema = rows.schema();
        let row = |i| {
            schema.fields().iter().zip(rows.columns()).map(|(f, c)| (f.name().clone(), value(c, i))).collect()
        };
        Ok((0..rows.num_rows()).map(row).collect())
    }
}

fn spec(scenario: &Scenario, source: &Schema) -> CdcSpec {
    let stored_as = match scenario.stored_as {
        scenario::StoredAs::Scd1 => StoredAs::Scd1,
        scenario::StoredAs::Scd2 => StoredAs::Scd2,
        scenario::StoredAs::Bitemporal => panic!("a bitemporal scenario"),
    };
    let selection = |selection: &Selection| match selection {
        Selection::All => ColumnSelection::All,
        Selection::Only(names) => ColumnSelection::Only(names.clone()),
        Selection::Except(names) => ColumnSelection::Except(names.clone()),
    };
    let sequence = match scenario.sequence_type() {
        scenario::Type::Struct(parts) if scenario.sequence.len() > 1 => DataType::Struct(
            parts.iter().map(|(n, kind)| Field::new(n, data_type(kind), true)).collect::<Fields>(),
        ),
        kind => data_type(&kind),
    };
    let options = CdcOptions {
        keys: scenario.keys.clone(),
        stored_as,
        columns: selection(&scenario.columns),
        track_history: selection(&scenario.track_history),
        ..CdcOptions::default()
    };
    CdcSpec::new(&options, source, &sequence).unwrap()
}

fn run(folder: &str) -> usize {
    let scenarios = scenario::load_dir(&scenario::directory(folder)).unwrap();
    let mut failures = Vec::new();
    let mut ran = 0;
    for scenario in &scenarios {
        ran += 1;
        failures
            .extend(scenario::run(scenario, &mut Core::default()).err().map(|failure| failure.to_string()));
    }
    assert!(failures.is_empty(), "{} of {ran} fail:\n{}", failures.len(), failures.join("\n"));
    ran
}

#[test]
fn the_worked_tables() {
    assert!(run("worked") >= 22);
}

#[test]
fn the_cases_that_agree_with_spark() {
    assert!(run("spark") >= 70);
}
