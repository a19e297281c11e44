//! Flows of one column `v`, fed with rows that have all that a source can give, and tables of numbers to compare.

mod horizon;
mod monotonic;
mod null_fields;
mod past_beliefs;
mod valid_to;

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use strandline_cdc_core::{
    CdcOptions, CdcSpec, ChangeBatch, ChangeInput, Reconciled, SequenceTypes, StoredAs,
};
use strandline_testkit::reference::{Op, Value};

use crate::{convert::value, shapes::is_nothing, store::Store};

/// A row of a source.
#[derive(Debug, Clone, Copy)]
struct Sent {
    key: &'static str,
    seq: i64,
    v: Option<i64>,
    op: Op,
    sys: Option<i64>,
    valid_to: Option<i64>,
}

fn up(key: &'static str, seq: i64, v: i64) -> Sent {
    Sent { key, seq, v: Some(v), op: Op::Upsert, sys: None, valid_to: None }
}

fn down(key: &'static str, seq: i64) -> Sent {
    Sent { v: None, op: Op::Delete, ..up(key, seq, 0) }
}

impl Sent {
    /// The row as it is known from a system sequence on.
    fn known(self, sys: i64) -> Self {
        Self { sys: Some(sys), ..self }
    }

    fn until(self, valid_to: i64) -> Self {
        Self { valid_to: Some(valid_to), ..self }
    }
}

/// What holds for a batch as a whole.
#[derive(Debug, Clone, Default)]
struct Moment {
    applied_at: Option<i64>,
    system_floor: Option<i64>,
}

#[derive(Debug, Clone)]
struct Small {
    spec: CdcSpec,
    store: Store,
}

impl Small {
    fn new(stored_as: StoredAs, options: CdcOptions) -> Self {
        let options = CdcOptions { keys: vec!["k".to_owned()], stored_as, ..options };
        let columns = [("k", DataType::Utf8), ("v", DataType::Int64)];
        let schema = Schema::new(columns.map(|(name, kind)| Field::new(name, kind, true)).to_vec());
        let system = (stored_as == StoredAs::Bitemporal).then_some(DataType::Int64);
        let sequences = SequenceTypes { sequence: DataType::Int64, system };
        let spec = CdcSpec::new(&options, &schema, sequences).unwrap();
        Self { store: Store::new(&spec), spec }
    }

    fn batch(&self, rows: &[Sent], moment: &Moment) -> ChangeBatch {
        let ints = |of: &dyn Fn(&Sent) -> Option<i64>| -> ArrayRef {
            Arc::new(rows.iter().map(of).collect::<Int64Array>())
        };
        let flags = |op: Op| -> BooleanArray { rows.iter().map(|row| Some(row.op == op)).collect() };
        let keys: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.key)));
        let source = RecordBatch::try_from_iter([("k", keys), ("v", ints(&|row| row.v))]).unwrap();
        let (sequence, system) = (ints(&|row| Some(row.seq)), ints(&|row| row.sys));
        let valid_to = ints(&|row| row.valid_to);
        let floor = moment.system_floor.map(|floor| -> ArrayRef { Arc::new(Int64Array::from(vec![floor])) });
        let (deletes, truncates, retracts) = (flags(Op::Delete), flags(Op::Truncate), flags(Op::Retract));
        let input = ChangeInput {
            system_sequence: self.spec.system_sequence_type().map(|_| &system),
            deletes: Some(&deletes),
            truncates: Some(&truncates),
            retracts: Some(&retracts),
            valid_to: Some(&valid_to),
            applied_at: moment.applied_at,
            system_floor: floor.as_ref(),
            ..ChangeInput::new(&source, &sequence)
        };
        ChangeBatch::of(&self.spec, &input).unwrap()
    }

    fn send_once(&mut self, rows: &[Sent], moment: &Moment) -> Reconciled {
        let batch = self.batch(rows, moment);
        self.store.apply(&self.spec, &batch, rows.len() as u64).unwrap()
    }

    fn send_at(&mut self, rows: &[Sent], moment: &Moment) -> Reconciled {
        let done = self.send_once(rows, moment);
        let again = self.send_once(rows, moment);
        assert!(is_nothing(&again), "C-08: a replay changes nothing");
        done
    }

    fn send(&mut self, rows: &[Sent]) -> Reconciled {
        self.send_at(rows, &Moment::default())
    }

    /// The rows of the target in these columns, as numbers, in order; NULL is `None`.
    fn shown<const N: usize>(&self, columns: [&str; N]) -> Vec<[Option<i64>; N]> {
        numbers(&self.store.target.batch, columns)
    }

    /// `v`, start and end of the versions.
    fn versions(&self) -> Vec<[Option<i64>; 3]> {
        self.shown(["v", "__START_AT", "__END_AT"])
    }

    /// `v`, and the bounds in business and in system time.
    fn beliefs(&self) -> Vec<[Option<i64>; 5]> {
        self.shown(["v", "__START_AT", "__END_AT", "__SYSTEM_START_AT", "__SYSTEM_END_AT"])
    }
}

fn numbers<const N: usize>(rows: &RecordBatch, columns: [&str; N]) -> Vec<[Option<i64>; N]> {
    let cell = |row: usize| {
        move |name: &str| match value(rows.column_by_name(name).unwrap(), row) {
            Value::Int(int) => Some(int),
            Value::Null => None,
            other => panic!("{other:?} is no number"),
        }
    };
    let mut shown: Vec<_> = (0..rows.num_rows()).map(|row| columns.map(cell(row))).collect();
    shown.sort_unstable();
    shown
}
