//! A target and its side rows in memory, read in several ways.

use std::collections::BTreeSet;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt64Array};
use arrow_ord::ord::make_comparator;
use arrow_schema::{FieldRef, SchemaRef, SortOptions};
use arrow_select::{concat::concat_batches, filter::filter_record_batch};
use strandline_cdc_core::{
    Barriers, Bound, CdcError, CdcSpec, ChangeBatch, Lookup, Prior, ReadPlan, Reconciled, Reconciliation,
    RowChanges, Rows,
    keys::{KeyIndex, UNKNOWN},
    widened_rows,
};

/// Rows with ids.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(crate) batch: RecordBatch,
    pub(crate) ids: Vec<u64>,
    next: u64,
}

impl Table {
    pub(crate) fn new(schema: &SchemaRef) -> Self {
        Self { batch: RecordBatch::new_empty(SchemaRef::clone(schema)), ids: Vec::new(), next: 1 }
    }

    /// A table of rows that somebody else wrote.
    pub(crate) fn of(batch: RecordBatch) -> Self {
        let next = batch.num_rows() as u64 + 1;
        Self { batch, ids: (1..next).collect(), next }
    }

    fn rows(&self, batch: &RecordBatch, wanted: &BooleanArray) -> Rows {
        let ids = self.ids.iter().zip(wanted.values()).filter_map(|(id, wanted)| wanted.then_some(*id));
        Rows { batch: filter_record_batch(batch, wanted).unwrap(), ids: ids.collect::<Vec<_>>().into() }
    }

    fn everything(&self) -> Rows {
        Rows { batch: self.batch.clone(), ids: UInt64Array::from(self.ids.clone()) }
    }

    /// What the lookup asks for, and rows that `more` wants besides.
    fn read(&self, keys: Option<&RecordBatch>, lookup: &Lookup, more: impl Fn(usize) -> bool) -> Rows {
        let Some(keys) = keys else {
            let within = |row: usize| {
                lookup.bound.as_ref().is_none_or(|Bound { column, at_least, .. }| {
                    let column = self.batch.column_by_name(column).unwrap();
                    let compare = make_comparator(column, at_least, SortOptions::default()).unwrap();
                    column.is_null(row) || compare(row, 0).is_ge()
                })
            };
            let wanted: BooleanArray =
                (0..self.ids.len()).map(|row| Some(more(row) || within(row))).collect();
            return self.projected(lookup, &wanted);
        };
        let index = KeyIndex::new(keys.columns()).unwrap();
        let schema = keys.schema();
        let named =
            schema.fields().iter().map(|f| ArrayRef::clone(self.batch.column_by_name(f.name()).unwrap()));
        let groups = index.probe(&named.collect::<Vec<_>>()).unwrap();
        let bounded = lookup.bound.as_ref().map(|Bound { column, at_least, until }| {
            let column = self.batch.column_by_name(column).unwrap();
            let compare = make_comparator(column, at_least, SortOptions::default()).unwrap();
            let within =
                move |row: usize, key: u32| column.is_null(row) || compare(row, key as usize).is_ge();
            let needed = until.as_ref().map(|(column, last)| self.until(column, last, &groups, &within));
            move |row: usize, key: u32| within(row, key) && needed.as_ref().is_none_or(|needed| needed[row])
        });
        let wanted = |row: usize| {
            let key = groups[row];
            more(row) || (key != UNKNOWN && bounded.as_ref().is_none_or(|bounded| bounded(row, key)))
        };
        let wanted: BooleanArray = (0..groups.len()).map(|row| Some(wanted(row))).collect();
        self.projected(lookup, &wanted)
    }

    /// The rows that do not lie above the last value of their key, or are the first of those that do.
    fn until(
        &self,
        column: &str,
        last: &ArrayRef,
        groups: &[u32],
        within: &impl Fn(usize, u32) -> bool,
    ) -> Vec<bool> {
        let column = self.batch.column_by_name(column).unwrap();
        let to_last = make_comparator(column, last, SortOptions::default()).unwrap();
        let to_each_other = make_comparator(column, column, SortOptions::default()).unwrap();
        let beyond = |row: usize| groups[row] != UNKNOWN && to_last(row, groups[row] as usize).is_gt();
        let is_next = |row: usize| {
            let mut others = (0..groups.len()).filter(|&other| {
                groups[other] == groups[row] && beyond(other) && within(other, groups[other])
            });
            others.all(|other| to_each_other(row, other).is_le())
        };
        (0..groups.len()).map(|row| !beyond(row) || is_next(row)).collect()
    }

    fn projected(&self, lookup: &Lookup, wanted: &BooleanArray) -> Rows {
        let projected = lookup.columns.as_ref().map_or_else(
            || self.batch.clone(),
            |names| {
                let columns: Vec<usize> =
                    names.iter().map(|name| self.batch.schema().index_of(name).unwrap()).collect();
                self.batch.project(&columns).unwrap()
            },
        );
        self.rows(&projected, wanted)
    }

    /// Rows go by id, rows come; each id that goes must be there, once.
    pub(crate) fn apply(&mut self, changes: &RowChanges) {
        let gone: BTreeSet<u64> = changes.deletes.values().iter().copied().collect();
        assert_eq!(gone.len(), changes.deletes.len(), "a row goes once");
        let kept: BooleanArray = self.ids.iter().map(|id| Some(!gone.contains(id))).collect();
        assert_eq!(kept.false_count(), gone.len(), "only rows that are there can go");
        let kept = self.rows(&self.batch, &kept);
        let came = changes.inserts.num_rows() as u64;
        self.batch =
            concat_batches(&self.batch.schema(), [&kept.batch, &self.aligned(&changes.inserts)]).unwrap();
        self.ids = kept.ids.values().iter().copied().chain(self.next..self.next + came).collect();
        self.next += came;
    }

    /// The rows that would go.
    pub(crate) fn going(&self, changes: &RowChanges) -> RecordBatch {
        let gone: BooleanArray =
            self.ids.iter().map(|id| Some(changes.deletes.values().contains(id))).collect();
        self.rows(&self.batch, &gone).batch
    }

    /// Rows that come, in the table's columns: NULL where they have none. They have no column that the table lacks.
    fn aligned(&self, inserts: &RecordBatch) -> RecordBatch {
        let (schema, come) = (self.batch.schema(), inserts.schema());
        assert!(
            come.fields().iter().all(|field| schema.index_of(field.name()).is_ok()),
            "{come} into {schema}"
        );
        widened_rows(inserts, &schema).unwrap()
    }

    /// The table with the columns of a schema too, and with its types where they are wider.
    pub(crate) fn widen(&mut self, schema: &SchemaRef) {
        let own = self.batch.schema();
        let wide = |field: &FieldRef| {
            schema
                .field_with_name(field.name())
                .map_or_else(|_| FieldRef::clone(field), |field| field.clone().into())
        };
        let new = schema.fields().iter().filter(|field| own.index_of(field.name()).is_err()).cloned();
        let fields: Vec<FieldRef> = own.fields().iter().map(wide).chain(new).collect();
        self.batch = widened_rows(&self.batch, &SchemaRef::new(arrow_schema::Schema::new(fields))).unwrap();
    }
}

/// A target and its side rows.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) target: Table,
    pub(crate) side: Table,
    pub(crate) barriers: Barriers,
}

/// How much more than what is asked for a read returns.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reading {
    /// Nothing.
    Exact,
    /// All rows and columns.
    Generous,
    /// Some other rows, chosen by this number; all columns if it is even.
    Random(u64),
}

impl Store {
    pub(crate) fn new(spec: &CdcSpec) -> Self {
        Self {
            target: Table::new(spec.target_schema()),
            side: Table::new(spec.side_schema()),
            barriers: Barriers::none(),
        }
    }

    pub(crate) fn prior(&self, plan: &ReadPlan, reading: Reading) -> Prior {
        let keys = plan.keys.as_ref();
        let complete = plan.visible.bound.is_none();
        let (visible, hidden) = match reading {
            Reading::Exact => (
                self.target.read(keys, &plan.visible, |_| false),
                self.side.read(keys, &plan.hidden, |_| false),
            ),
            Reading::Generous => (self.target.everything(), self.side.everything()),
            Reading::Random(seed) => {
                let chosen = |row: usize| {
                    let row = row as u64;
                    (seed >> 1).wrapping_mul(row | 1).wrapping_add(row) & 2 == 0
                };
                let mut visible = plan.visible.clone();
                if seed.is_multiple_of(2) {
                    visible.columns = None;
                }
                (self.target.read(keys, &visible, chosen), self.side.read(keys, &plan.hidden, chosen))
            }
        };
        Prior { visible, hidden, barriers: self.barriers.clone(), complete }
    }

    /// What a batch changes, read in one way.
    pub(crate) fn reconcile(
        &self,
        spec: &CdcSpec,
        changes: &ChangeBatch,
        reading: Reading,
    ) -> Result<Reconciled, CdcError> {
        let mut plan = spec.read_plan(changes)?;
        for _ in 0..3 {
            match spec.reconcile(&self.prior(&plan, reading), changes)? {
                Reconciliation::Done(done) => return Ok(done),
                Reconciliation::ReadMore(more) => plan = more,
            }
        }
        panic!("the core asks for more for ever");
    }

    /// Applies a batch, after all ways to read have been seen to agree. `seed` chooses the random one.
    pub(crate) fn apply(
        &mut self,
        spec: &CdcSpec,
        changes: &ChangeBatch,
        seed: u64,
    ) -> Result<Reconciled, CdcError> {
        let exact = self.reconcile(spec, changes, Reading::Exact);
        for reading in [Reading::Generous, Reading::Random(seed)] {
            let other = self.reconcile(spec, changes, reading);
            assert_eq!(comparable(&exact), comparable(&other), "{reading:?} and Exact agree");
        }
        let done = exact?;
        self.keep(&done);
        Ok(done)
    }

    /// Applies a batch, read in one way only: for large ones.
    pub(crate) fn apply_read(
        &mut self,
        spec: &CdcSpec,
        changes: &ChangeBatch,
        reading: Reading,
    ) -> Result<Reconciled, CdcError> {
        let done = self.reconcile(spec, changes, reading)?;
        self.keep(&done);
        Ok(done)
    }

    pub(crate) fn keep(&mut self, done: &Reconciled) {
        self.target.apply(&done.target);
        self.side.apply(&done.side);
        self.barriers = done.barriers.clone();
    }
}

/// What two reads of one state must agree on.
fn comparable(
    outcome: &Result<Reconciled, CdcError>,
) -> Result<impl PartialEq + std::fmt::Debug + use<>, CdcError> {
    let effects = |changes: &RowChanges| {
        let mut gone = changes.deletes.values().to_vec();
        gone.sort_unstable();
        (gone, changes.inserts.clone())
    };
    outcome
        .as_ref()
        .map(|done| (effects(&done.target), effects(&done.side), done.barriers.clone(), done.counts))
        .map_err(Clone::clone)
}
