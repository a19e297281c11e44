//! What does an event cost on a key with a long history?
//!
//! - A late event of an SCD2 key, with versions in the thousands on both sides: it touches its neighbours only, so that the
//!   cost must not grow with the history. The rows are those that the read plan asks for.
//! - Late events of a bitemporal key: the cost must be linear in the events that became known after the first of them.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a bench that can't run must stop")]

use std::{hint::black_box, sync::Arc};

use arrow_array::{
    Array, ArrayRef, BooleanArray, Int64Array, RecordBatch, UInt64Array, cast::AsArray, types::Int64Type,
};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::filter::filter_record_batch;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use strandline_cdc_core::{
    CdcOptions, CdcSpec, ChangeBatch, ChangeInput, Prior, ReadPlan, Reconciled, Reconciliation, Rows,
    SequenceTypes, StoredAs,
};

fn ints(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn spec(stored_as: StoredAs) -> CdcSpec {
    let options = CdcOptions { keys: vec!["k".to_owned()], stored_as, ..CdcOptions::default() };
    let source = Schema::new(["k", "v"].map(|name| Field::new(name, DataType::Int64, true)).to_vec());
    let system = (stored_as == StoredAs::Bitemporal).then_some(DataType::Int64);
    CdcSpec::new(&options, &source, SequenceTypes { sequence: DataType::Int64, system }).unwrap()
}

/// Upserts of one key, as business sequence, system sequence and value.
fn batch(spec: &CdcSpec, events: &[(i64, i64, i64)]) -> ChangeBatch {
    let source = RecordBatch::try_from_iter_with_nullable([
        ("k", ints(events.iter().map(|_| 1)), true),
        ("v", ints(events.iter().map(|event| event.2)), true),
    ]);
    let (source, sequence) = (source.unwrap(), ints(events.iter().map(|event| event.0)));
    let system = ints(events.iter().map(|event| event.1));
    let input = ChangeInput {
        system_sequence: spec.system_sequence_type().is_some().then_some(&system),
        ..ChangeInput::new(&source, &sequence)
    };
    ChangeBatch::of(spec, &input).unwrap()
}

fn reconcile(spec: &CdcSpec, prior: &Prior, changes: &ChangeBatch) -> Reconciled {
    match spec.reconcile(prior, changes).unwrap() {
        Reconciliation::Done(done) => done,
        Reconciliation::ReadMore(_) => panic!("everything was read"),
    }
}

/// The rows of the only key that a plan asks for.
fn read(rows: &RecordBatch, plan: Option<&ReadPlan>) -> Rows {
    let column = |name: &str| rows.column_by_name(name).unwrap().as_primitive::<Int64Type>().clone();
    let bound = plan.and_then(|plan| plan.visible.bound.as_ref());
    let wanted: BooleanArray = bound.map_or_else(
        || BooleanArray::from(vec![true; rows.num_rows()]),
        |bound| {
            let value = |array: &ArrayRef| array.as_primitive::<Int64Type>().value(0);
            let (ends, first) = (column(&bound.column), value(&bound.at_least));
            let next = bound.until.as_ref().map(|(name, last)| {
                let (starts, last) = (column(name), value(last));
                let next = starts.values().iter().copied().filter(|start| *start > last).min();
                (starts, next.unwrap_or(i64::MAX))
            });
            let wanted = |row: usize| {
                (ends.is_null(row) || ends.value(row) >= first)
                    && next.as_ref().is_none_or(|(starts, next)| starts.value(row) <= *next)
            };
            (0..rows.num_rows()).map(|row| Some(wanted(row))).collect()
        },
    );
    let batch = filter_record_batch(rows, &wanted).unwrap();
    Rows { ids: UInt64Array::from_iter_values(0..batch.num_rows() as u64), batch }
}

fn prior(spec: &CdcSpec, loaded: &Reconciled, changes: &ChangeBatch) -> Prior {
    let plan = spec.read_plan(changes).unwrap();
    Prior {
        visible: read(&loaded.target.inserts, Some(&plan)),
        hidden: read(&loaded.side.inserts, None),
        complete: plan.visible.bound.is_none(),
        ..Prior::empty(spec)
    }
}

fn late_event(criterion: &mut Criterion) {
    let spec = spec(StoredAs::Scd2);
    let mut group = criterion.benchmark_group("SCD2, one late event of a key with so many versions");
    for versions in [10_i64, 100, 1_000, 10_000, 100_000] {
        let history: Vec<_> = (0..versions).map(|at| (2 * at, 0, at)).collect();
        let loaded = reconcile(&spec, &Prior::empty(&spec), &batch(&spec, &history));
        let late = batch(&spec, &[(versions | 1, 0, -1)]);
        let prior = prior(&spec, &loaded, &late);
        assert!(prior.visible.batch.num_rows() <= 3, "a late event needs its neighbours only");
        group.bench_function(BenchmarkId::from_parameter(versions), |b| {
            b.iter(|| black_box(reconcile(&spec, &prior, &late)));
        });
    }
    group.finish();
}

fn beliefs(criterion: &mut Criterion) {
    let spec = spec(StoredAs::Bitemporal);
    let mut group =
        criterion.benchmark_group("bitemporal, one late event with so many events known after it");
    let run = |group: &mut criterion::BenchmarkGroup<'_, _>, name: &str, before: i64, after: i64| {
        // Business time runs in steps of two, system time with it; every third event corrects an earlier one.
        let event = |n: i64| (if n % 3 == 2 { n } else { 2 * n }, 2 * n, n);
        let history: Vec<_> = (0..before + after).map(event).collect();
        let loaded = reconcile(&spec, &Prior::empty(&spec), &batch(&spec, &history));
        let late = batch(&spec, &[(before | 1, 2 * before - 1, -1)]);
        let prior = prior(&spec, &loaded, &late);
        group.throughput(Throughput::Elements(after.unsigned_abs().max(1)));
        group.bench_function(BenchmarkId::new(name, after), |b| {
            b.iter(|| black_box(reconcile(&spec, &prior, &late)));
        });
    };
    for after in [100, 1_000, 10_000, 100_000] {
        run(&mut group, "1000 before, after", 1_000, after);
    }
    group.finish();
    let mut group = criterion.benchmark_group("bitemporal, first load of one key with so many events");
    for events in [1_000_i64, 10_000, 100_000] {
        let history: Vec<_> = (0..events).map(|n| (if n % 3 == 2 { n } else { 2 * n }, 2 * n, n)).collect();
        let changes = batch(&spec, &history);
        group.throughput(Throughput::Elements(events.unsigned_abs()));
        group.bench_function(BenchmarkId::from_parameter(events), |b| {
            b.iter(|| black_box(reconcile(&spec, &Prior::empty(&spec), &changes)));
        });
    }
    group.finish();
}

criterion_group!(benches, late_event, beliefs);
criterion_main!(benches);
