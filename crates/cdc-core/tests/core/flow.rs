//! A change flow that is fed with events of the reference model, and what its rows must then be.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use arrow_array::{Array, ArrayRef, BooleanArray, Int8Array, RecordBatch, RecordBatchOptions, cast::AsArray};
use arrow_schema::{DataType, Field, Schema};
use strandline_cdc_core::{
    CdcError, CdcOptions, CdcSpec, ChangeBatch, ColumnSelection, Reconciled, StoredAs, names, side::SideKind,
};
use strandline_testkit::reference::{self, Event, Op, Row, Value};

use crate::{
    convert::{self, Codec},
    store::{Store, Table},
};

/// How a flow's columns are written.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    pub(crate) keys: Vec<(String, Codec)>,
    pub(crate) payload: Vec<(String, Codec)>,
    pub(crate) sequence: Codec,
}

impl Columns {
    /// Key `k` text, payload `a`, `b` int, sequence int: the world of `testkit::generate::history`.
    pub(crate) fn plain() -> Self {
        let column = |name: &str, kind: DataType| (name.to_owned(), Codec::Plain(kind));
        Self {
            keys: vec![column("k", DataType::Utf8)],
            payload: vec![column("a", DataType::Int64), column("b", DataType::Int64)],
            sequence: Codec::Plain(DataType::Int64),
        }
    }

    pub(crate) fn schema(&self) -> Schema {
        let columns = self.keys.iter().chain(&self.payload);
        Schema::new(
            columns
                .map(|(name, codec)| Field::new(name, codec.data_type().clone(), true))
                .collect::<Vec<_>>(),
        )
    }

    pub(crate) fn key_names(&self) -> Vec<String> {
        self.keys.iter().map(|(name, _)| name.clone()).collect()
    }

    /// A spec of these columns.
    pub(crate) fn spec(&self, stored_as: StoredAs, tracked: Option<&[&str]>) -> CdcSpec {
        let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect();
        let options = CdcOptions {
            keys: self.key_names(),
            stored_as,
            track_history: tracked.map_or(ColumnSelection::All, |list| ColumnSelection::Only(names(list))),
            ..CdcOptions::default()
        };
        CdcSpec::new(&options, &self.schema(), self.sequence.data_type()).unwrap()
    }

    /// Events as the rows of a batch.
    pub(crate) fn source(&self, events: &[Event]) -> (RecordBatch, ArrayRef, BooleanArray) {
        let keys = self.keys.iter().enumerate().map(|(i, (_, codec))| {
            codec.array(&events.iter().map(|event| event.key[i].clone()).collect::<Vec<_>>())
        });
        let payload = self.payload.iter().map(|(name, codec)| {
            let value = |event: &Event| event.values.get(name).cloned().unwrap_or(Value::Null);
            codec.array(&events.iter().map(value).collect::<Vec<_>>())
        });
        let options = RecordBatchOptions::new().with_row_count(Some(events.len()));
        let rows = RecordBatch::try_new_with_options(
            Arc::new(self.schema()),
            keys.chain(payload).collect(),
            &options,
        )
        .unwrap();
        let sequence = self.sequence.array(&events.iter().map(|event| event.seq.clone()).collect::<Vec<_>>());
        let deletes = events.iter().map(|event| Some(event.op == Op::Delete)).collect();
        (rows, sequence, deletes)
    }

    pub(crate) fn batch(&self, spec: &CdcSpec, events: &[Event]) -> Result<ChangeBatch, CdcError> {
        let (rows, sequence, deletes) = self.source(events);
        ChangeBatch::new(spec, &rows, &sequence, Some(&deletes))
    }

    /// Rows of a target or side rows as the reference writes them.
    pub(crate) fn rows(&self, batch: &RecordBatch) -> Vec<Row> {
        let mut rows = vec![Row::new(); batch.num_rows()];
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            let named = self.keys.iter().chain(&self.payload).find(|(name, _)| name == field.name());
            let values = match named {
                Some((_, codec)) => codec.values(column),
                None if field.name() == names::SIDE_KIND => {
                    let kinds: &Int8Array = column.as_primitive();
                    kinds.iter().map(|kind| Value::Int(kind.unwrap().into())).collect()
                }
                None if field.name() == names::AUTHORED => {
                    (0..column.len()).map(|row| convert::value(column, row)).collect()
                }
                None => self.sequence.values(column),
            };
            for (row, value) in rows.iter_mut().zip(values) {
                row.insert(field.name().clone(), value);
            }
        }
        rows
    }
}

/// A flow and what it has written.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    pub(crate) columns: Columns,
    pub(crate) spec: CdcSpec,
    pub(crate) store: Store,
}

impl Flow {
    pub(crate) fn new(columns: Columns, stored_as: StoredAs, tracked: Option<&[&str]>) -> Self {
        let spec = columns.spec(stored_as, tracked);
        let store = Store::new(&spec);
        Self { columns, spec, store }
    }

    /// Applies events as one batch, and checks that no row is rewritten as it was.
    pub(crate) fn apply(&mut self, events: &[Event]) -> Reconciled {
        let before = self.store.clone();
        let batch = self.columns.batch(&self.spec, events).unwrap();
        let done = self.store.apply(&self.spec, &batch, seed(events)).unwrap();
        for (table, changes) in [(&before.target, &done.target), (&before.side, &done.side)] {
            self.no_row_is_rewritten_as_it_was(table, changes);
        }
        done
    }

    fn no_row_is_rewritten_as_it_was(&self, table: &Table, changes: &strandline_cdc_core::RowChanges) {
        let gone: BTreeSet<Row> = self.columns.rows(&table.going(changes)).into_iter().collect();
        let come: BTreeSet<Row> = self.columns.rows(&changes.inserts).into_iter().collect();
        let both: Vec<_> = gone.intersection(&come).collect();
        assert!(both.is_empty(), "rows go and come unchanged: {both:?}");
    }

    pub(crate) fn target(&self) -> Vec<Row> {
        sorted(self.columns.rows(&self.store.target.batch))
    }

    pub(crate) fn side(&self) -> Vec<Row> {
        sorted(self.columns.rows(&self.store.side.batch))
    }

    fn tracked(&self) -> BTreeSet<String> {
        self.spec.tracked_names().into_iter().map(str::to_owned).collect()
    }

    /// What the target must show for these events.
    pub(crate) fn expected_target(&self, events: &[Event]) -> Vec<Row> {
        let keys = self.columns.key_names();
        let tracked = self.tracked();
        let mut rows = match self.spec.stored_as() {
            StoredAs::Scd1 => reference::scd1(&keys, events),
            StoredAs::Scd2 => reference::scd2(&keys, events, Some(&tracked)),
            StoredAs::Bitemporal => panic!("one clock only"),
        };
        for row in &mut rows {
            for (name, _) in &self.columns.payload {
                row.entry(name.clone()).or_insert(Value::Null);
            }
        }
        sorted(rows)
    }

    /// The side rows that these events need: no fewer, no more.
    pub(crate) fn expected_side(&self, events: &[Event]) -> Vec<Row> {
        let mut by_key: BTreeMap<Vec<Value>, BTreeMap<Value, (Op, Row)>> = BTreeMap::new();
        for event in events {
            let key = event.key.iter().map(Value::as_key).collect();
            let slot = by_key.entry(key).or_default().entry(event.seq.clone());
            let new = (event.op, event.values.clone());
            slot.and_modify(|old| *old = old.clone().max(new.clone())).or_insert(new);
        }
        let mut rows = Vec::new();
        for (key, timeline) in by_key {
            let timeline: Vec<(Value, (Op, Row))> = timeline.into_iter().collect();
            let hidden = match self.spec.stored_as() {
                StoredAs::Scd1 => {
                    timeline.last().filter(|(_, (op, _))| *op == Op::Delete).into_iter().collect()
                }
                StoredAs::Scd2 | StoredAs::Bitemporal => vec![],
            };
            let mut add = |seq: &Value, kind: SideKind, values: &Row| {
                let mut row: Row = self.columns.key_names().into_iter().zip(key.iter().cloned()).collect();
                let value = |name: &String| values.get(name).cloned().unwrap_or(Value::Null);
                row.extend(self.columns.payload.iter().map(|(name, _)| (name.clone(), value(name))));
                row.insert(names::SEQUENCE_AT.to_owned(), seq.clone());
                row.insert(names::SIDE_KIND.to_owned(), Value::Int(kind.code().into()));
                rows.push(row);
            };
            for (seq, _) in hidden {
                add(seq, SideKind::Delete, &Row::new());
            }
            if self.spec.stored_as() == StoredAs::Scd1 {
                continue;
            }
            let tracked = self.tracked();
            let value = |row: &Row, name: &String| row.get(name).cloned().unwrap_or(Value::Null);
            let repeats = |a: &Row, b: &Row| tracked.iter().all(|name| value(a, name) == value(b, name));
            for (i, (seq, (op, values))) in timeline.iter().enumerate() {
                let before = i.checked_sub(1).map(|i| &timeline[i].1);
                let after = timeline.get(i + 1).map(|(_, event)| event);
                let joined = |a: &(Op, Row), b: &(Op, Row)| {
                    a.0 == Op::Upsert && b.0 == Op::Upsert && repeats(&a.1, &b.1)
                };
                let event = (*op, values.clone());
                match op {
                    Op::Delete if before.is_none_or(|(op, _)| *op == Op::Delete) => {
                        add(seq, SideKind::Delete, &Row::new());
                    }
                    Op::Upsert if after.is_some_and(|after| joined(&event, after)) => {
                        add(seq, SideKind::Interior, values);
                    }
                    Op::Upsert if before.is_some_and(|before| joined(before, &event)) => {
                        add(seq, SideKind::Tail, &Row::new());
                    }
                    _ => {}
                }
            }
        }
        sorted(rows)
    }

    /// The state is the one that these events determine.
    pub(crate) fn check(&self, events: &[Event]) {
        assert_eq!(self.target(), self.expected_target(events), "target of {events:#?}");
        assert_eq!(self.side(), self.expected_side(events), "side rows of {events:#?}");
    }
}

/// Some number that depends on the events.
fn seed(events: &[Event]) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hasher = std::hash::DefaultHasher::new();
    format!("{events:?}").hash(&mut hasher);
    hasher.finish()
}

pub(crate) fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort();
    rows
}

/// An upsert of the one-column key `key`.
pub(crate) fn upsert(key: impl Into<Value>, seq: impl Into<Value>, values: &[(&str, Value)]) -> Event {
    Event {
        key: vec![key.into()],
        seq: seq.into(),
        op: Op::Upsert,
        values: values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        authored: None,
        sys: None,
    }
}

/// A delete of the one-column key `key`.
pub(crate) fn delete(key: impl Into<Value>, seq: impl Into<Value>) -> Event {
    Event { op: Op::Delete, ..upsert(key, seq, &[]) }
}
