//! A table of two columns, and what the lines do with it.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray, cast::AsArray, types::Int64Type};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use futures::{StreamExt, TryStreamExt, stream};

use crate::{
    contract::{
        BatchStream, CommitOutcome, CommitStamp, LookupPlan, Result, StateVersion, Table, TableChange,
        TableDefinition, TableFormat, TableSnapshot, WriterId,
    },
    error::{Error, ErrorKind},
};

/// Key and value of each row, sorted.
pub(super) type Content = Vec<(i64, Option<String>)>;

pub(super) fn ensure(holds: bool, line: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(violated(line)) }
}

pub(super) fn violated(line: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("the contract does not hold: {line}"))
}

/// What a call that must fail failed with.
pub(super) fn refused<T>(result: Result<T>, kind: ErrorKind, line: &str) -> Result<()> {
    match result {
        Err(e) if e.kind() == kind => Ok(()),
        Err(e) => Err(violated(line).because(e)),
        Ok(_) => Err(violated(line)),
    }
}

pub(super) fn schema() -> SchemaRef {
    let key = Field::new("id", DataType::Int64, false);
    Arc::new(Schema::new(vec![key, Field::new("value", DataType::Utf8, true)]))
}

pub(super) fn definition() -> TableDefinition {
    TableDefinition {
        schema: schema(),
        keys: vec!["id".to_owned()],
        properties: BTreeMap::from([("owner".to_owned(), "conformance".to_owned())]),
        comment: None,
    }
}

pub(super) async fn table(format: &dyn TableFormat, name: &str) -> Result<Arc<dyn Table>> {
    format.create(name, &definition()).await
}

pub(super) fn rows(keys: &[i64], value: &str) -> Result<RecordBatch> {
    let keys: ArrayRef = Arc::new(Int64Array::from(keys.to_vec()));
    let values: ArrayRef = Arc::new(StringArray::from(vec![value; keys.len()]));
    Ok(RecordBatch::try_new(schema(), vec![keys, values])?)
}

pub(super) fn content(keys: &[i64], value: &str) -> Content {
    keys.iter().map(|k| (*k, Some(value.to_owned()))).collect()
}

pub(super) fn writer(flow: &str) -> WriterId {
    WriterId { pipeline: "conformance".to_owned(), flow: flow.to_owned(), incarnation: 0 }
}

pub(super) fn stamp(flow: &str, batch: u64, state: u64, epoch: u64) -> CommitStamp {
    CommitStamp { writer: writer(flow), batch, state: StateVersion(state), epoch }
}

pub(super) fn inserted(batch: RecordBatch) -> TableChange {
    TableChange::Rows { deletes: Vec::new(), inserts: vec![batch] }
}

pub(super) fn streamed(batch: RecordBatch) -> BatchStream {
    stream::iter([Ok(batch)]).boxed()
}

/// Commits on the newest version; it must land.
pub(super) async fn commit(table: &dyn Table, change: TableChange, stamp: &CommitStamp) -> Result<()> {
    let base = table.snapshot().await?;
    match table.commit(base.as_ref(), change, stamp).await? {
        CommitOutcome::Committed(_) => Ok(()),
        other @ (CommitOutcome::AlreadyApplied { .. } | CommitOutcome::Conflict { .. }) => {
            Err(violated("a commit on the newest version lands").with("outcome", format!("{other:?}")))
        }
    }
}

pub(super) async fn read(snapshot: &dyn TableSnapshot) -> Result<Content> {
    let batches: Vec<RecordBatch> = snapshot.scan(None).await?.try_collect().await?;
    let mut content: Content = batches.iter().flat_map(pairs).collect();
    content.sort();
    Ok(content)
}

pub(super) fn pairs(batch: &RecordBatch) -> Content {
    let (keys, values) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_string::<i32>());
    let value = |i: usize| (!values.is_null(i)).then(|| values.value(i).to_owned());
    (0..batch.num_rows()).map(|i| (keys.value(i), value(i))).collect()
}

pub(super) fn plan(keys: &[i64]) -> Result<LookupPlan> {
    let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)]));
    let keys = RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(keys.to_vec()))])?;
    Ok(LookupPlan { keys: Some(keys), columns: None, bound: None })
}

/// What a lookup found, by id.
pub(super) async fn found(
    snapshot: &dyn TableSnapshot,
    plan: &LookupPlan,
) -> Result<BTreeMap<u64, (i64, Option<String>)>> {
    let mut found = BTreeMap::new();
    let mut rows = snapshot.lookup(plan).await?;
    while let Some(rows) = rows.next().await {
        let rows = rows?;
        found.extend(rows.ids.values().iter().copied().zip(pairs(&rows.batch)));
    }
    Ok(found)
}

pub(super) async fn ids(snapshot: &dyn TableSnapshot, keys: &[i64]) -> Result<Vec<u64>> {
    Ok(found(snapshot, &plan(keys)?).await?.into_keys().collect())
}
