//! Rows of the models: two columns that may be keys, a sequence, and payload that tells every row apart.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray, cast::AsArray, types::Int64Type};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use proptest::prelude::*;
use strandline_cdc_core::{Bound, Rows};
use strandline_table_formats::LookupPlan;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    pub(crate) id: i64,
    pub(crate) name: Option<String>,
    pub(crate) seq: Option<i64>,
    pub(crate) unique: i64,
}

impl Row {
    /// The values of the key columns.
    pub(crate) fn key(&self, keys: &[&str]) -> (Option<i64>, Vec<Option<String>>) {
        let names = keys.iter().filter(|k| **k == "name").map(|_| self.name.clone());
        (keys.contains(&"id").then_some(self.id), names.collect())
    }
}

/// How many cases a property is tried with: few, or with `--cfg slow` many.
pub(crate) const fn cases(few: u32, many: u32) -> u32 {
    if cfg!(slow) { many } else { few }
}

pub(crate) const KEYS: [&[&str]; 3] = [&["id"], &["name"], &["name", "id"]];

pub(crate) fn a_row() -> impl Strategy<Value = Row> {
    let name = prop::option::weighted(0.9, "[a-c]{1,2}");
    (0..40_i64, name, prop::option::weighted(0.8, 0..10_i64)).prop_map(|(id, name, seq)| Row {
        id,
        name,
        seq,
        unique: 0,
    })
}

pub(crate) fn schema() -> SchemaRef {
    let int = |name| Field::new(name, DataType::Int64, true);
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("name", DataType::Utf8, true),
        int("seq"),
        int("unique"),
        int("twice"),
        Field::new("text", DataType::Utf8, true),
        int("thrice"),
    ]))
}

pub(crate) fn batch(rows: &[Row]) -> RecordBatch {
    let times = |n: i64| Arc::new(rows.iter().map(|r| Some(r.unique * n)).collect::<Int64Array>());
    RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(rows.iter().map(|r| Some(r.id)).collect::<Int64Array>()),
            Arc::new(rows.iter().map(|r| r.name.clone()).collect::<StringArray>()),
            Arc::new(rows.iter().map(|r| r.seq).collect::<Int64Array>()),
            times(1),
            times(2),
            Arc::new(rows.iter().map(|r| Some(format!("text {}", r.unique))).collect::<StringArray>()),
            times(3),
        ],
    )
    .unwrap()
}

pub(crate) fn unbatch(batch: &RecordBatch) -> Vec<Row> {
    let ints = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>().clone();
    let strings = |name: &str| batch.column_by_name(name).unwrap().as_string::<i32>().clone();
    let (ids, names, seqs, uniques) = (ints("id"), strings("name"), ints("seq"), ints("unique"));
    let (twice, text, thrice) = (ints("twice"), strings("text"), ints("thrice"));
    (0..batch.num_rows())
        .map(|i| {
            let unique = uniques.value(i);
            assert_eq!((twice.value(i), thrice.value(i)), (2 * unique, 3 * unique));
            assert_eq!(text.value(i), format!("text {unique}"));
            let name = names.is_valid(i).then(|| names.value(i).to_owned());
            Row { id: ids.value(i), name, seq: seqs.is_valid(i).then(|| seqs.value(i)), unique }
        })
        .collect()
}

/// A plan for the distinct keys of these rows, or for all keys where there are no rows; with a bound a key or without.
pub(crate) fn plan(keys: &[&str], wanted: &[Row], bound: Option<i64>) -> LookupPlan {
    let mut distinct = wanted.to_vec();
    distinct.sort_by_key(|r| r.key(keys));
    distinct.dedup_by_key(|r| r.key(keys));
    let all = batch(&distinct);
    let columns: Vec<_> = keys.iter().map(|k| all.schema().index_of(k).unwrap()).collect();
    let keys = (!distinct.is_empty()).then(|| all.project(&columns).unwrap());
    let bounds = distinct.len().max(1);
    let at_least =
        |base| (0..bounds).map(|i| Some(base + i64::try_from(i % 3).unwrap())).collect::<Int64Array>();
    let bound =
        bound.map(|base| Bound { column: "seq".into(), at_least: Arc::new(at_least(base)), until: None });
    LookupPlan { keys, columns: None, bound }
}

/// Compares what a lookup found with what it must find: all rows of the keys within the bound, none of other keys.
pub(crate) fn check_found(
    keys: &[&str],
    plan: &LookupPlan,
    found: &[Rows],
    model: &[Row],
) -> Vec<(u64, Row)> {
    let found: Vec<(u64, Row)> = found
        .iter()
        .flat_map(|r| r.ids.values().iter().copied().zip(unbatch(&r.batch)).collect::<Vec<_>>())
        .collect();
    let least_of = |i: usize| plan.bound.as_ref().map(|b| b.at_least.as_primitive::<Int64Type>().value(i));
    let Some(given) = &plan.keys else {
        check_every(&found, model, least_of(0));
        return found;
    };
    let wanted: Vec<_> = (0..given.num_rows())
        .map(|i| {
            let part = |name: &str| given.column_by_name(name).map(|c| c.slice(i, 1));
            let id = part("id").map(|c| c.as_primitive::<Int64Type>().value(0));
            let text = |c: ArrayRef| c.is_valid(0).then(|| c.as_string::<i32>().value(0).to_owned());
            let name: Vec<_> = part("name").into_iter().map(text).collect();
            ((id, name), least_of(i))
        })
        .collect();
    for (_, row) in &found {
        assert!(wanted.iter().any(|(key, _)| *key == row.key(keys)), "{row:?} is of another key");
        assert!(model.contains(row), "{row:?} is not in the table");
    }
    for row in model {
        let needed = |least: &Option<i64>| least.is_none_or(|least| row.seq.is_none_or(|seq| seq >= least));
        if wanted.iter().any(|(key, least)| *key == row.key(keys) && needed(least)) {
            assert_eq!(found.iter().filter(|(_, r)| r == row).count(), 1, "{row:?} was not found once");
        }
    }
    found
}

/// What a lookup without keys must find: all rows within the bound, each once.
fn check_every(found: &[(u64, Row)], model: &[Row], least: Option<i64>) {
    for (_, row) in found {
        assert!(model.contains(row), "{row:?} is not in the table");
    }
    for row in model.iter().filter(|row| least.is_none_or(|least| row.seq.is_none_or(|seq| seq >= least))) {
        assert_eq!(found.iter().filter(|(_, r)| r == row).count(), 1, "{row:?} was not found once");
    }
}
