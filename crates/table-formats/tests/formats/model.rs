//! Tables against a list of rows.

use std::{collections::BTreeMap, sync::Arc};

use futures::{StreamExt, TryStreamExt, stream};
use object_store::{memory::InMemory, path::Path};
use proptest::prelude::*;
use strandline_table_formats::{
    CommitOutcome, CommitStamp, DeltaFormat, MemoryFormat, StateVersion, TableChange, TableDefinition,
    TableFormat, WriterId,
};

use super::{
    conformance::{MODES, iceberg, tiny_in},
    rows::{KEYS, Row, a_row, batch, cases, check_found, plan, schema, unbatch},
};

#[derive(Debug, Clone)]
enum Step {
    /// Looks up the keys of some rows, deletes every `n`-th of what it found, and inserts rows.
    Merge {
        wanted: Vec<Row>,
        bound: Option<i64>,
        every: usize,
        inserts: Vec<Row>,
    },
    Append(Vec<Row>),
    Overwrite(Vec<Row>),
    Empty,
    Reopen,
}

fn a_step() -> impl Strategy<Value = Step> {
    let rows = |n| prop::collection::vec(a_row(), 0..n);
    let merge = (rows(20), prop::option::of(0..10_i64), 1..4_usize, rows(60))
        .prop_map(|(wanted, bound, every, inserts)| Step::Merge { wanted, bound, every, inserts });
    prop_oneof![
        12 => merge,
        3 => rows(150).prop_map(Step::Append),
        1 => rows(400).prop_map(Step::Overwrite),
        1 => Just(Step::Empty),
        2 => Just(Step::Reopen),
    ]
}

async fn agrees(format: &dyn TableFormat, keys: &[&str], steps: Vec<Step>) {
    let definition = TableDefinition {
        schema: schema(),
        keys: keys.iter().map(|k| (*k).to_owned()).collect(),
        properties: BTreeMap::default(),
        comment: None,
    };
    let mut table = format.create("t", &definition).await.unwrap();
    let (mut model, mut unique) = (Vec::<Row>::new(), 0);
    let mut numbered = |mut rows: Vec<Row>| {
        for row in &mut rows {
            unique += 1;
            row.unique = unique;
        }
        rows
    };
    for (n, step) in (1..).zip(steps) {
        let base = table.snapshot().await.unwrap();
        let streamed =
            |rows: &[Row]| stream::iter(rows.chunks(37).map(|c| Ok(batch(c))).collect::<Vec<_>>()).boxed();
        let change = match step {
            Step::Reopen => {
                table = format.open("t").await.unwrap().unwrap();
                continue;
            }
            Step::Merge { wanted, bound, every, inserts } => {
                let plan = plan(keys, &wanted, bound);
                let found: Vec<_> = base.lookup(&plan).await.unwrap().try_collect().await.unwrap();
                let found = check_found(keys, &plan, &found, &model);
                let gone: Vec<_> = found.into_iter().step_by(every).collect();
                model.retain(|row| !gone.iter().any(|(_, g)| g == row));
                let inserts = numbered(inserts);
                model.extend(inserts.iter().cloned());
                TableChange::Rows {
                    deletes: gone.iter().map(|(id, _)| *id).collect(),
                    inserts: vec![batch(&inserts)],
                }
            }
            Step::Append(rows) => {
                let rows = numbered(rows);
                model.extend(rows.iter().cloned());
                TableChange::Append(streamed(&rows))
            }
            Step::Overwrite(rows) => {
                let rows = numbered(rows);
                model.clone_from(&rows);
                TableChange::Overwrite(streamed(&rows))
            }
            Step::Empty => {
                model.clear();
                TableChange::Empty
            }
        };
        let writer = WriterId { pipeline: "p".into(), flow: "f".into(), incarnation: 0 };
        let stamp = CommitStamp { writer, batch: n, state: StateVersion(n), epoch: 0 };
        let outcome = table.commit(base.as_ref(), change, &stamp).await.unwrap();
        assert!(matches!(outcome, CommitOutcome::Committed(_)), "{outcome:?}");
        let now = table.snapshot().await.unwrap();
        let batches: Vec<_> = now.scan(None).await.unwrap().try_collect().await.unwrap();
        let mut rows: Vec<_> = batches.iter().flat_map(unbatch).collect();
        rows.sort();
        model.sort();
        assert_eq!(rows, model);
    }
}

fn run(format: &dyn TableFormat, keys: &[&str], steps: Vec<Step>) {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(agrees(format, keys, steps));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(24, 96), ..ProptestConfig::default() })]

    #[test]
    fn memory_agrees_with_a_list_of_rows_in_every_write_mode(
        keys in 0..3_usize,
        mode in prop::sample::select(&MODES[..]),
        steps in prop::collection::vec(a_step(), 1..20),
    ) {
        run(&MemoryFormat::with_store(Arc::new(InMemory::new()), tiny_in(mode)), KEYS[keys], steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(9, 24), ..ProptestConfig::default() })]

    #[test]
    fn iceberg_agrees_with_a_list_of_rows_in_every_write_mode(
        keys in 0..3_usize,
        mode in prop::sample::select(&MODES[..]),
        steps in prop::collection::vec(a_step(), 1..30),
    ) {
        run(&iceberg(Arc::new(InMemory::new())).with_options(tiny_in(mode)), KEYS[keys], steps);
    }

    #[test]
    fn delta_agrees_with_a_list_of_rows_in_every_write_mode(
        keys in 0..3_usize,
        mode in prop::sample::select(&MODES[..]),
        steps in prop::collection::vec(a_step(), 1..30),
    ) {
        let store = Arc::new(InMemory::new());
        let format = DeltaFormat::new(store, Path::from("lake")).with_options(tiny_in(mode));
        run(&format, KEYS[keys], steps);
    }
}
