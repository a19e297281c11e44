//! The core as the subject of a scenario: a flow is defined by the columns that its batch carries, as a source would.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use strandline_cdc_core::{
    Barriers, CdcOptions, CdcSpec, ChangeBatch, ChangeInput, ColumnSelection, SequenceTypes, SnapshotBatch,
    SnapshotRules, StoredAs,
};
use strandline_testkit::{
    reference::{Row, Value},
    scenario::{
        self, Batch, BatchKind, ColumnType, Condition, Physical, Scenario, Selection, Subject, Table, Type,
        Unit, Zone,
    },
};

use crate::{
    convert::{array, data_type, value},
    store::{Reading, Store},
};

#[derive(Debug, Default, Clone)]
pub(super) struct Core {
    flow: Option<(CdcSpec, Store)>,
}

impl Core {
    /// A target that is there before anything arrives, with every column that the source may carry. Only so is what an
    /// event sets the same in any arrival: a column that a target does not have yet cannot be unset in its rows.
    pub(super) fn declared(scenario: &Scenario) -> Self {
        let columns = scenario.types.iter().map(|(name, _)| name.clone()).collect();
        let batch = Batch {
            number: 0,
            kind: BatchKind::Changes,
            table: Table { columns, rows: vec![] },
            types: BTreeMap::new(),
            crash: false,
        };
        let spec = Source::new(scenario, &batch).spec().unwrap();
        let store = Store::new(&spec);
        Self { flow: Some((spec, store)) }
    }
}

impl Subject for Core {
    fn apply(&mut self, scenario: &Scenario, batch: &Batch) -> Result<(), String> {
        let source = Source::new(scenario, batch);
        let spec = source.spec()?;
        let spec = match &self.flow {
            None => spec,
            Some((made, store)) => {
                made.definition().check(&spec.definition()).map_err(|e| e.to_string())?;
                spec.with_target_columns(&store.target.batch.schema()).map_err(|e| e.to_string())?
            }
        };
        // What is refused leaves everything as it is.
        let mut store = self.flow.as_ref().map_or_else(|| Store::new(&spec), |(_, store)| store.clone());
        store.target.widen(spec.target_schema());
        store.side.widen(spec.side_schema());
        match &batch.kind {
            BatchKind::Changes => {
                let changes = source.changes(&spec)?;
                store.apply(&spec, &changes, batch.number as u64).map_err(|e| e.to_string())?;
            }
            BatchKind::Snapshot(version) => {
                let version = array(spec.sequence_type(), std::slice::from_ref(version));
                let image = SnapshotBatch::new(&spec, &source.rows(), &version).map_err(|e| e.to_string())?;
                let prior = store.prior(&spec.snapshot_plan(&image), Reading::Exact);
                let done = spec.reconcile_snapshot(&prior, &image, &SnapshotRules::default());
                store.keep(&done.map_err(|e| e.to_string())?);
            }
        }
        self.flow = Some((spec, store));
        Ok(())
    }

    /// Everything is worked out, and lost.
    fn crash(&mut self, scenario: &Scenario, batch: &Batch) -> Result<(), String> {
        self.clone().apply(scenario, batch)
    }

    /// What holds for the whole table goes through its stored form.
    fn restart(&mut self) -> Result<(), String> {
        let Some((spec, store)) = &mut self.flow else { return Ok(()) };
        if let Some(rows) = store.barriers.rows() {
            store.barriers = Barriers::from_rows(spec, rows).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    fn target(&mut self) -> Result<Vec<Row>, String> {
        let Some((_, store)) = &self.flow else { return Ok(vec![]) };
        let rows = &store.target.batch;
        let schema = rows.schema();
        let row = |i| {
            schema.fields().iter().zip(rows.columns()).map(|(f, c)| (f.name().clone(), value(c, i))).collect()
        };
        Ok((0..rows.num_rows()).map(row).collect())
    }
}

fn arrow_type((kind, physical): &ColumnType) -> DataType {
    match physical {
        None => data_type(kind),
        Some(Physical::Int32) => DataType::Int32,
        Some(Physical::Timestamp(unit, zone)) => {
            let unit = match unit {
                Unit::Millisecond => TimeUnit::Millisecond,
                Unit::Microsecond => TimeUnit::Microsecond,
                Unit::Nanosecond => TimeUnit::Nanosecond,
            };
            let zone = match zone {
                Zone::Utc => Some("UTC".into()),
                Zone::None => None,
            };
            DataType::Timestamp(unit, zone)
        }
        Some(Physical::Decimal(precision, scale)) => {
            DataType::Decimal128(*precision, i8::try_from(*scale).unwrap())
        }
    }
}

/// A batch as its source has it: the declared columns that it carries, in declared order.
struct Source<'a> {
    scenario: &'a Scenario,
    batch: &'a Batch,
    columns: Vec<(String, DataType)>,
}

impl<'a> Source<'a> {
    fn new(scenario: &'a Scenario, batch: &'a Batch) -> Self {
        let carried: BTreeSet<&str> =
            batch.table.columns.iter().map(|column| scenario.declared(column)).collect();
        let declared = scenario.types.iter().filter(|(name, _)| carried.contains(name.as_str()));
        let columns = declared.map(|(name, kind)| {
            let declared = (kind.clone(), scenario.physical_of(name));
            (name.clone(), arrow_type(batch.types.get(name).unwrap_or(&declared)))
        });
        Self { scenario, batch, columns: columns.collect() }
    }

    /// The cells of a column; NULL where the batch lacks it.
    fn cells(&self, name: &str) -> Vec<Value> {
        let mut columns = self.batch.table.columns.iter();
        let at = columns.position(|column| self.scenario.declared(column) == name);
        self.batch.table.rows.iter().map(|row| at.map_or(Value::Null, |at| row[at].clone())).collect()
    }

    fn type_of(&self, name: &str) -> DataType {
        let carried = self.columns.iter().find(|(column, _)| column == name);
        let declared = || self.scenario.type_of(name).cloned().unwrap_or(Type::Int);
        carried.map_or_else(
            || arrow_type(&(declared(), self.scenario.physical_of(name))),
            |(_, kind)| kind.clone(),
        )
    }

    fn rows(&self) -> RecordBatch {
        let fields = self.columns.iter().map(|(name, kind)| Field::new(name, kind.clone(), true));
        let arrays = self.columns.iter().map(|(name, kind)| array(kind, &self.cells(name))).collect();
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let options = RecordBatchOptions::new().with_row_count(Some(self.batch.table.rows.len()));
        RecordBatch::try_new_with_options(schema, arrays, &options).unwrap()
    }

    /// The sequence of these columns: one, a struct of several, or the greatest of them.
    fn sequence(&self, columns: &[String], greatest: bool) -> ArrayRef {
        let cells: Vec<Vec<Value>> = columns.iter().map(|name| self.cells(name)).collect();
        let arrays = columns.iter().zip(&cells).map(|(name, cells)| array(&self.type_of(name), cells));
        match columns {
            [column] => array(&self.type_of(column), &cells[0]),
            [column, ..] if greatest => {
                let row = |row: usize| cells.iter().map(|column| column[row].clone()).max().unwrap();
                let rows = self.batch.table.rows.len();
                array(&self.type_of(column), &(0..rows).map(row).collect::<Vec<_>>())
            }
            several => {
                let fields = several.iter().map(|name| Field::new(name, self.type_of(name), true));
                Arc::new(StructArray::new(fields.collect(), arrays.collect(), None))
            }
        }
    }

    fn sequence_type(&self, columns: &[String]) -> DataType {
        if columns.is_empty() {
            return data_type(&self.scenario.sequence_type());
        }
        self.sequence(columns, self.scenario.greatest).data_type().clone()
    }

    fn spec(&self) -> Result<CdcSpec, String> {
        let scenario = self.scenario;
        // A clause can name only what the source has.
        let carried = |name: &&String| self.columns.iter().any(|(column, _)| column == *name);
        let list = |names: &[String]| -> Vec<String> { names.iter().filter(carried).cloned().collect() };
        let selection = |selection: &Selection| match selection {
            Selection::All => ColumnSelection::All,
            Selection::Only(names) => ColumnSelection::Only(list(names)),
            Selection::Except(names) => ColumnSelection::Except(list(names)),
        };
        let options = CdcOptions {
            keys: scenario.keys.clone(),
            stored_as: match scenario.stored_as {
                scenario::StoredAs::Scd1 => StoredAs::Scd1,
                scenario::StoredAs::Scd2 => StoredAs::Scd2,
                scenario::StoredAs::Bitemporal => StoredAs::Bitemporal,
            },
            columns: selection(&scenario.columns),
            track_history: selection(&scenario.track_history),
            ignore_null_updates: scenario.ignore_null_updates.as_ref().map(selection),
            columns_to_update: scenario.columns_to_update.clone(),
            authored_masks: scenario.unavailable.is_some(),
            ..CdcOptions::default()
        };
        let system = &scenario.system_sequence;
        let sequences = SequenceTypes {
            sequence: self.sequence_type(&scenario.sequence),
            system: (!system.is_empty()).then(|| self.sequence_type(system)),
        };
        CdcSpec::new(&options, &self.rows().schema(), sequences).map_err(|e| e.to_string())
    }

    fn flags(&self, condition: Option<&Condition>) -> Option<BooleanArray> {
        let condition = condition?;
        let equal = |value: &Value| (!value.is_null()).then(|| *value == condition.value);
        Some(self.cells(&condition.column).iter().map(equal).collect())
    }

    fn changes(&self, spec: &CdcSpec) -> Result<ChangeBatch, String> {
        let scenario = self.scenario;
        let rows = self.rows();
        let sequence = self.sequence(&scenario.sequence, scenario.greatest);
        let system = &scenario.system_sequence;
        let system = (!system.is_empty()).then(|| self.sequence(system, false));
        let [deletes, truncates, retracts] =
            [&scenario.delete_when, &scenario.truncate_when, &scenario.retract_when]
                .map(|condition| self.flags(condition.as_ref()));
        let masks = self.masks();
        let input = ChangeInput {
            system_sequence: system.as_ref(),
            deletes: deletes.as_ref(),
            truncates: truncates.as_ref(),
            retracts: retracts.as_ref(),
            authored: &masks,
            ..ChangeInput::new(&rows, &sequence)
        };
        ChangeBatch::of(spec, &input).map_err(|e| e.to_string())
    }

    /// Which rows set a leaf: those that do not hold the value that stands for "not sent".
    fn masks(&self) -> Vec<(String, BooleanArray)> {
        let Some(marker) = self.scenario.unavailable.as_ref().map(Value::text) else { return vec![] };
        let kept: Vec<&str> = self.scenario.kept().map(|(name, _)| name.as_str()).collect();
        let payload = self
            .columns
            .iter()
            .filter(|(name, _)| kept.contains(&name.as_str()) && !self.scenario.keys.contains(name));
        let leaves = payload.flat_map(|(name, kind)| leaves(name.clone(), kind, self.cells(name)));
        let sent = |cells: Vec<Value>| cells.iter().map(|cell| Some(*cell != marker)).collect();
        leaves.map(|(path, cells)| (path, sent(cells))).collect()
    }
}

/// The leaves of a column, by path, with their cells.
fn leaves(path: String, kind: &DataType, cells: Vec<Value>) -> Vec<(String, Vec<Value>)> {
    let DataType::Struct(fields) = kind else { return vec![(path, cells)] };
    let field = |(at, field): (usize, &Arc<Field>)| {
        let part = |cell: &Value| match cell {
            Value::Struct(parts) => parts[at].1.clone(),
            _ => Value::Null,
        };
        leaves(format!("{path}.{}", field.name()), field.data_type(), cells.iter().map(part).collect())
    };
    fields.iter().enumerate().flat_map(field).collect()
}
