//! Any flow, fed with events of the reference model: every shape, partial updates, truncates, two clocks, snapshots.

use std::{collections::BTreeSet, sync::Arc};

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Fields, Schema};
use strandline_cdc_core::{
    CdcError, CdcOptions, CdcSpec, ChangeBatch, ChangeInput, ColumnSelection, Reconciled, SequenceTypes,
    StoredAs,
};
use strandline_testkit::{
    generate::{Authoring, Domain},
    reference::{self, Event, Op, Row, Value},
};

use crate::{
    convert::{array, value},
    flow::sorted,
    store::Store,
};

/// A flow over a domain.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) spec: CdcSpec,
    pub(crate) store: Store,
    pub(crate) columns: Vec<(String, DataType)>,
    tracked: Option<BTreeSet<String>>,
    options: CdcOptions,
    sequences: SequenceTypes,
}

fn pair() -> DataType {
    let field = |name: &str| Field::new(name, DataType::Int64, true);
    DataType::Struct(Fields::from(vec![field("x"), field("y")]))
}

impl Shape {
    pub(crate) fn new(stored_as: StoredAs, domain: &Domain, tracked: Option<&[&str]>) -> Self {
        let options = CdcOptions {
            ignore_null_updates: (domain.authoring == Authoring::NonNull).then_some(ColumnSelection::All),
            authored_masks: domain.authoring == Authoring::Leaves,
            ..CdcOptions::default()
        };
        Self::with(stored_as, domain, tracked, options)
    }

    pub(crate) fn with(
        stored_as: StoredAs,
        domain: &Domain,
        tracked: Option<&[&str]>,
        options: CdcOptions,
    ) -> Self {
        let ints = domain.columns.iter().map(|name| (name.clone(), DataType::Int64));
        let columns: Vec<_> = ints.chain(domain.structs.iter().map(|name| (name.clone(), pair()))).collect();
        let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect();
        let options = CdcOptions {
            keys: vec!["k".to_owned()],
            stored_as,
            track_history: tracked.map_or(ColumnSelection::All, |list| ColumnSelection::Only(names(list))),
            ..options
        };
        let sequences =
            SequenceTypes { sequence: DataType::Int64, system: domain.systems.map(|_| DataType::Int64) };
        let spec = CdcSpec::new(&options, &schema(&columns), sequences.clone()).unwrap();
        let tracked = tracked.map(|list| list.iter().map(|&name| name.to_owned()).collect());
        Self { store: Store::new(&spec), spec, columns, tracked, options, sequences }
    }

    /// From here on the source lacks these columns, which the target has.
    pub(crate) fn source_lacks(&mut self, lacks: &[String]) {
        let has = |(name, _): &&(String, DataType)| !lacks.contains(name);
        let columns: Vec<_> = self.columns.iter().filter(has).cloned().collect();
        let spec = CdcSpec::new(&self.options, &schema(&columns), self.sequences.clone()).unwrap();
        self.spec = spec.with_target_columns(&self.store.target.batch.schema()).unwrap();
        self.store.side.widen(self.spec.side_schema());
    }

    pub(crate) fn batch(&self, events: &[Event]) -> Result<ChangeBatch, CdcError> {
        let ints = |of: &dyn Fn(&Event) -> Value| -> ArrayRef {
            array(&DataType::Int64, &events.iter().map(of).collect::<Vec<_>>())
        };
        let flags = |op: Op| -> BooleanArray { events.iter().map(|event| Some(event.op == op)).collect() };
        let source = source(&self.columns, events);
        let sequence = ints(&|event| event.seq.clone());
        let system = ints(&|event| event.sys.clone().unwrap_or(Value::Null));
        let (deletes, truncates, retracts) = (flags(Op::Delete), flags(Op::Truncate), flags(Op::Retract));
        let masks = if self.has_clause() { self.masks(events) } else { vec![] };
        let input = ChangeInput {
            system_sequence: self.spec.system_sequence_type().is_some().then_some(&system),
            deletes: Some(&deletes),
            truncates: Some(&truncates),
            retracts: Some(&retracts),
            authored: &masks,
            ..ChangeInput::new(&source, &sequence)
        };
        ChangeBatch::of(&self.spec, &input)
    }

    /// Whether a clause lets events set some leaves only.
    fn has_clause(&self) -> bool {
        self.options.ignore_null_updates.is_some() || self.options.authored_masks
    }

    /// Which events set which leaf. Under ignore-null the masks say what the values say already.
    fn masks(&self, events: &[Event]) -> Vec<(String, BooleanArray)> {
        let sets = |event: &Event, column: &str, path: &str| {
            event.authored.as_ref().is_none_or(|set| set.contains(column) || set.contains(path))
        };
        let leaf = |column: &str, path: String| {
            let mask = events.iter().map(|event| Some(sets(event, column, &path))).collect();
            (path, mask)
        };
        let paths = self.columns.iter().flat_map(|(name, kind)| match kind {
            DataType::Struct(fields) => {
                fields.iter().map(|field| (name, format!("{name}.{}", field.name()))).collect()
            }
            _ => vec![(name, name.clone())],
        });
        paths.map(|(column, path)| leaf(column, path)).collect()
    }

    pub(crate) fn apply(&mut self, events: &[Event]) -> Reconciled {
        let batch = self.batch(events).unwrap();
        self.store.apply(&self.spec, &batch, events.len() as u64 ^ 5).unwrap()
    }

    pub(crate) fn target(&self) -> Vec<Row> {
        rows(&self.store.target.batch)
    }

    pub(crate) fn expected(&self, events: &[Event]) -> Vec<Row> {
        let keys = ["k"];
        let mut rows = match self.spec.stored_as() {
            StoredAs::Scd1 => reference::scd1(&keys, events),
            StoredAs::Scd2 => reference::scd2(&keys, events, self.tracked.as_ref()),
            StoredAs::Bitemporal => reference::bitemporal(&keys, events),
        };
        for row in &mut rows {
            for (name, _) in &self.columns {
                row.entry(name.clone()).or_insert(Value::Null);
            }
        }
        sorted(rows)
    }

    /// Delivers batches, and checks the target after each, and that nothing changes when everything comes again.
    pub(crate) fn deliver(&mut self, batches: &[Vec<Event>]) {
        let mut known: Vec<Event> = Vec::new();
        for batch in batches {
            let replay = batch.iter().all(|event| known.contains(event));
            known.extend(batch.iter().cloned());
            let done = self.apply(batch);
            assert_eq!(
                self.target(),
                self.expected(&known),
                "after {batch:#?}\nof {known:#?}\nside {:#?}",
                rows(&self.store.side.batch)
            );
            assert!(!replay || is_nothing(&done), "C-08: a replay changes nothing: {:?}", changed(&done));
            assert_eq!(done.counts.events, batch.len() as u64);
        }
        let side = rows(&self.store.side.batch);
        let again = self.apply(&known);
        assert!(is_nothing(&again), "C-08: all again changes nothing: {:?}\nside {side:?}", changed(&again));
    }
}

pub(crate) fn is_nothing(done: &Reconciled) -> bool {
    done.target.is_empty() && done.side.is_empty()
}

fn changed(done: &Reconciled) -> [Vec<Row>; 2] {
    [&done.target, &done.side].map(|changes| rows(&changes.inserts))
}

fn schema(columns: &[(String, DataType)]) -> Schema {
    let payload = columns.iter().map(|(name, kind)| Field::new(name, kind.clone(), true));
    Schema::new(std::iter::once(Field::new("k", DataType::Utf8, true)).chain(payload).collect::<Vec<_>>())
}

/// Events as rows of a source.
pub(crate) fn source(columns: &[(String, DataType)], events: &[Event]) -> RecordBatch {
    let key = |event: &Event| event.key.first().cloned().unwrap_or(Value::Null);
    let keys = array(&DataType::Utf8, &events.iter().map(key).collect::<Vec<_>>());
    let payload = columns.iter().map(|(name, kind)| {
        let values: Vec<Value> =
            events.iter().map(|event| event.values.get(name).cloned().unwrap_or(Value::Null)).collect();
        array(kind, &values)
    });
    let options = RecordBatchOptions::new().with_row_count(Some(events.len()));
    let all = std::iter::once(keys).chain(payload).collect();
    RecordBatch::try_new_with_options(Arc::new(schema(columns)), all, &options).unwrap()
}

pub(crate) fn rows(batch: &RecordBatch) -> Vec<Row> {
    let named = |row: usize| {
        let columns = batch.schema_ref().fields().iter().zip(batch.columns());
        columns.map(|(field, column)| (field.name().clone(), value(column, row))).collect()
    };
    sorted((0..batch.num_rows()).map(named).collect())
}
