//! How many events a second does the core reconcile?
//!
//! `first load` has no prior rows; `incremental` meets five stored events a key, read as the read plan asks. Reading
//! itself is not measured. `shuffled` events are late half of the time.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a bench that cannot be set up has nothing to say")]

use std::{collections::BTreeMap, hint::black_box, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, UInt64Array, cast::AsArray,
    types::Int64Type,
};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::filter::filter_record_batch;
use criterion::{Criterion, Throughput};
use strandline_cdc_core::{
    CdcOptions, CdcSpec, ChangeBatch, ChangeInput, ColumnSelection, Prior, Reconciled, Reconciliation, Rows,
    SequenceTypes, StoredAs,
};

const BATCH: usize = 100_000;
const KEYS: u64 = 100_000;

/// The finalizer of splitmix64.
fn mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap()
}

/// Columns `c0`, `c1`, .. of which every other one is a text.
fn schema(columns: u64) -> Schema {
    let column = |i: u64| {
        let kind = if i.is_multiple_of(2) { DataType::Int64 } else { DataType::Utf8 };
        Field::new(format!("c{i}"), kind, true)
    };
    Schema::new(
        std::iter::once(Field::new("id", DataType::Int64, true))
            .chain((0..columns).map(column))
            .collect::<Vec<_>>(),
    )
}

/// A flow, which ignores NULL or not.
fn spec(stored_as: StoredAs, ignores_null: bool, columns: u64) -> CdcSpec {
    let options = CdcOptions {
        keys: vec!["id".to_owned()],
        stored_as,
        ignore_null_updates: ignores_null.then_some(ColumnSelection::All),
        ..CdcOptions::default()
    };
    let system = (stored_as == StoredAs::Bitemporal).then_some(DataType::Int64);
    CdcSpec::new(&options, &schema(columns), SequenceTypes { sequence: DataType::Int64, system }).unwrap()
}

/// Events `from..to` of an endless feed: a twentieth are deletes, and a tenth repeat a value. A third of the values are NULL
/// where that is ignored. They become known in the order of the feed.
fn events(
    spec: &CdcSpec,
    columns: u64,
    keys: u64,
    numbers: std::ops::Range<u64>,
    shuffled: bool,
) -> ChangeBatch {
    let numbers: Vec<u64> = numbers.collect();
    let ints = |value: &dyn Fn(u64) -> u64| -> ArrayRef {
        Arc::new(numbers.iter().map(|&n| Some(int(value(n)))).collect::<Int64Array>())
    };
    let value = |n: u64, column: u64| mix(n ^ (column << 40)) % 10;
    let sparse = spec.is_partial();
    let some = |n: u64, i: u64| !sparse || !mix(n ^ (i << 20)).is_multiple_of(3);
    let column = |i: u64| -> ArrayRef {
        if i.is_multiple_of(2) {
            let value = |&n: &u64| some(n, i).then(|| int(value(n, i)));
            return Arc::new(numbers.iter().map(value).collect::<Int64Array>());
        }
        let value = |&n: &u64| some(n, i).then(|| format!("value {}", value(n, i)));
        Arc::new(numbers.iter().map(value).collect::<StringArray>())
    };
    let arrays = std::iter::once(ints(&|n| mix(n) % keys)).chain((0..columns).map(column)).collect();
    let rows = RecordBatch::try_new(Arc::new(schema(columns)), arrays).unwrap();
    let sequence = ints(&|n| if shuffled { mix(n.wrapping_mul(3)) >> 20 } else { n });
    let deletes: BooleanArray =
        numbers.iter().map(|&n| Some(mix(n.wrapping_mul(7)).is_multiple_of(20))).collect();
    let known = ints(&|n| n);
    let input = ChangeInput {
        deletes: Some(&deletes),
        system_sequence: spec.system_sequence_type().map(|_| &known),
        ..ChangeInput::new(&rows, &sequence)
    };
    ChangeBatch::of(spec, &input).unwrap()
}

fn reconcile(spec: &CdcSpec, prior: &Prior, batch: &ChangeBatch) -> Reconciled {
    match spec.reconcile(prior, batch).unwrap() {
        Reconciliation::Done(done) => done,
        Reconciliation::ReadMore(_) => panic!("all columns are read"),
    }
}

fn empty(spec: &CdcSpec) -> Prior {
    Prior::empty(spec)
}

fn numbered(batch: RecordBatch) -> Rows {
    let ids = UInt64Array::from_iter_values(0..batch.num_rows() as u64);
    Rows { batch, ids }
}

/// The rows that a read plan asks for, of what a load left.
fn read(spec: &CdcSpec, loaded: &Reconciled, batch: &ChangeBatch) -> Prior {
    let plan = spec.read_plan(batch).unwrap();
    let ints = |array: &ArrayRef| array.as_primitive::<Int64Type>().clone();
    let keys = ints(plan.keys.as_ref().unwrap().column(0));
    let bounds = plan.visible.bound.as_ref().map(|bound| ints(&bound.at_least));
    let first: BTreeMap<i64, i64> = (0..keys.len())
        .map(|i| (keys.value(i), bounds.as_ref().map_or(i64::MIN, |bounds| bounds.value(i))))
        .collect();
    let wanted = |rows: &RecordBatch, ends: Option<&str>| {
        let ids = ints(rows.column(0));
        let ends = ends.map(|name| ints(rows.column_by_name(name).unwrap()));
        let wanted = |row: usize| {
            let first = first.get(&ids.value(row))?;
            Some(ends.as_ref().is_none_or(|ends| ends.is_null(row) || ends.value(row) >= *first))
        };
        let wanted: BooleanArray =
            (0..rows.num_rows()).map(|row| Some(wanted(row).unwrap_or(false))).collect();
        numbered(filter_record_batch(rows, &wanted).unwrap())
    };
    Prior {
        visible: wanted(
            &loaded.target.inserts,
            plan.visible.bound.as_ref().map(|bound| bound.column.as_str()),
        ),
        hidden: wanted(&loaded.side.inserts, None),
        ..Prior::empty(spec)
    }
}

fn bench(criterion: &mut Criterion) {
    let events_of_a_batch = BATCH as u64;
    let flows = [
        (StoredAs::Scd1, false),
        (StoredAs::Scd2, false),
        (StoredAs::Bitemporal, false),
        (StoredAs::Scd1, true),
        (StoredAs::Scd2, true),
    ];
    for (stored_as, ignores_null) in flows {
        for (width, columns) in [("narrow", 2), ("wide", 30)] {
            let how = if ignores_null { " ignoring null" } else { "" };
            let mut group = criterion.benchmark_group(format!("{stored_as}{how} {width}"));
            group.throughput(Throughput::Elements(events_of_a_batch));
            let spec = spec(stored_as, ignores_null, columns);
            for (order, shuffled) in [("in order", false), ("shuffled", true)] {
                let nothing = empty(&spec);
                let first = events(&spec, columns, KEYS / 5, 0..events_of_a_batch, shuffled);
                group.bench_function(format!("first load, {order}"), |b| {
                    b.iter(|| black_box(reconcile(&spec, &nothing, &first)));
                });
                let loaded = reconcile(&spec, &nothing, &events(&spec, columns, KEYS, 0..5 * KEYS, shuffled));
                let next = events(&spec, columns, KEYS, 5 * KEYS..5 * KEYS + events_of_a_batch, shuffled);
                let prior = read(&spec, &loaded, &next);
                group.bench_function(format!("incremental, {order}"), |b| {
                    b.iter(|| black_box(reconcile(&spec, &prior, &next)));
                });
                group.bench_function(format!("read plan, {order}"), |b| {
                    b.iter(|| black_box(spec.read_plan(&next).unwrap()));
                });
            }
            group.finish();
        }
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args().without_plots();
    bench(&mut criterion);
    criterion.final_summary();
}
