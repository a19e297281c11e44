//! Line 13: a table that becomes another one.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray, cast::AsArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use futures::{StreamExt, TryStreamExt, stream};

use super::fixture::{
    commit, content, ensure, inserted, read, refused, rows, stamp, streamed, table, violated, writer,
};
use crate::{
    contract::{
        BatchStream, CommitOutcome, Result, StateVersion, Table, TableChange, TableDefinition, TableFormat,
        TableSnapshot,
    },
    error::{Error, ErrorKind},
};

const LINE: &str = "13, replacing makes a new table";

/// Another table: `id` is text, `value` a number, `at` a time of day that the first table can't have.
fn definition() -> TableDefinition {
    let schema = Schema::new(vec![
        Field::new("value", DataType::Int32, false),
        Field::new("id", DataType::Utf8, true),
        Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, None), true),
    ]);
    TableDefinition {
        schema: Arc::new(schema),
        keys: vec!["value".to_owned()],
        properties: BTreeMap::from([("colour".to_owned(), "red".to_owned())]),
        comment: Some("another one".to_owned()),
    }
}

fn others(values: &[i32]) -> Result<RecordBatch> {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(values.to_vec())),
        Arc::new(StringArray::from(vec!["x"; values.len()])),
        Arc::new(TimestampMicrosecondArray::from(vec![7; values.len()])),
    ];
    Ok(RecordBatch::try_new(definition().schema, columns)?)
}

fn replaced(rows: BatchStream) -> TableChange {
    TableChange::Replace { definition: Box::new(definition()), rows }
}

async fn values(snapshot: &dyn TableSnapshot) -> Result<Vec<i32>> {
    let column = [String::from("value")];
    let batches: Vec<RecordBatch> = snapshot.scan(Some(&column)).await?.try_collect().await?;
    let mut all: Vec<i32> = batches
        .iter()
        .flat_map(|batch| batch.column(0).as_primitive::<arrow_array::types::Int32Type>().values().to_vec())
        .collect();
    all.sort_unstable();
    Ok(all)
}

/// Columns by name and type, whatever a format calls the parts of nested ones.
fn columns(schema: &SchemaRef) -> Vec<(String, DataType)> {
    schema.fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect()
}

/// Line 13: the table becomes another one in one commit, or does not; what was before can still be read.
///
/// # Errors
/// When it does not hold.
pub async fn line_13_replacing_makes_a_new_table(format: &dyn TableFormat) -> Result<()> {
    let table = table(format, "line_13").await?;
    commit(table.as_ref(), inserted(rows(&[1, 2, 3], "a")?), &stamp("one", 4, 3, 1)).await?;
    let old = table.snapshot().await?;
    refusals(table.as_ref(), old.as_ref()).await?;
    commit(table.as_ref(), replaced(streamed(others(&[8, 9])?)), &stamp("two", 0, 7, 1)).await?;
    for table in [Some(Arc::clone(&table)), format.open("line_13").await?].into_iter().flatten() {
        let now = table.snapshot().await?;
        ensure(columns(&now.schema()) == columns(&definition().schema), LINE)?;
        ensure(values(now.as_ref()).await? == [8, 9], LINE)?;
        let properties = now.properties();
        ensure(properties.get("colour").map(String::as_str) == Some("red"), LINE)?;
        ensure(!properties.contains_key("owner"), "13, properties that the definition lacks are gone")?;
        ensure(now.state_version() == StateVersion(7), "13, the stamp names the state")?;
        let stamps = (now.last_batch(&writer("one")), now.last_batch(&writer("two")));
        ensure(stamps == (Some(4), Some(0)), "13, stamps of writers remain")?;
        let then = table.at(old.version()).await?;
        for old in [&old, &then] {
            ensure(read(old.as_ref()).await? == content(&[1, 2, 3], "a"), "13, what was before stays")?;
            ensure(old.properties().contains_key("owner"), "13, what was before stays")?;
        }
    }
    goes_on(table.as_ref()).await?;
    conflicts(table.as_ref()).await
}

/// Rows and definitions that don't fit are refused, and a stream that breaks leaves nothing.
async fn refusals(table: &dyn Table, old: &dyn TableSnapshot) -> Result<()> {
    let stamp = stamp("two", 0, 7, 1);
    for wrong in [streamed(rows(&[5], "b")?), streamed(others(&[5])?.project(&[1, 2])?)] {
        refused(table.commit(old, replaced(wrong), &stamp).await, ErrorKind::Invalid, LINE)?;
    }
    let broken =
        stream::iter([Ok(others(&[5])?), Err(Error::new(ErrorKind::Unavailable, "the source broke"))]);
    refused(table.commit(old, replaced(broken.boxed()), &stamp).await, ErrorKind::Unavailable, LINE)?;
    let mut keyless = definition();
    keyless.keys = vec!["nowhere".to_owned()];
    let change = TableChange::Replace { definition: Box::new(keyless), rows: stream::empty().boxed() };
    refused(table.commit(old, change, &stamp).await, ErrorKind::Invalid, LINE)?;
    let mut fewer = definition();
    fewer.schema = Arc::new(fewer.schema.project(&[0])?);
    let change = TableChange::Replace { definition: Box::new(fewer), rows: streamed(others(&[5])?) };
    refused(table.commit(old, change, &stamp).await, ErrorKind::Invalid, "13, rows have no other columns")?;
    let now = table.snapshot().await?;
    ensure(now.version() == old.version() && read(now.as_ref()).await?.len() == 3, LINE)
}

/// The new table is a table: rows come and go by its new key, and it can be emptied by replacing.
async fn goes_on(table: &dyn Table) -> Result<()> {
    let base = table.snapshot().await?;
    let keys = others(&[9])?.project(&[0])?;
    let plan = crate::contract::LookupPlan { keys: Some(keys), columns: None, bound: None };
    let found: Vec<_> = base.lookup(&plan).await?.try_collect().await?;
    let deletes: Vec<u64> = found.iter().flat_map(|rows| rows.ids.values().to_vec()).collect();
    ensure(deletes.len() == 1, "13, rows are found by the new key")?;
    let change = TableChange::Rows { deletes, inserts: vec![others(&[11])?] };
    commit(table, change, &stamp("two", 1, 8, 1)).await?;
    ensure(values(table.snapshot().await?.as_ref()).await? == [8, 11], LINE)?;
    commit(table, replaced(stream::empty().boxed()), &stamp("three", 0, 9, 1)).await?;
    let empty = table.snapshot().await?;
    ensure(values(empty.as_ref()).await?.is_empty() && empty.state_version() == StateVersion(9), LINE)
}

/// A commit in between is a conflict, an append too, and a batch that landed does not land again.
async fn conflicts(table: &dyn Table) -> Result<()> {
    let stale = table.snapshot().await?;
    commit(table, TableChange::Append(streamed(others(&[1])?)), &stamp("two", 2, 9, 1)).await?;
    let outcome =
        table.commit(stale.as_ref(), replaced(stream::empty().boxed()), &stamp("four", 0, 10, 1)).await?;
    ensure(matches!(outcome, CommitOutcome::Conflict { .. }), "13, a commit in between is a conflict")?;
    let now = table.snapshot().await?;
    ensure(values(now.as_ref()).await? == [1] && now.state_version() == StateVersion(9), LINE)?;
    let again =
        table.commit(now.as_ref(), replaced(stream::empty().boxed()), &stamp("three", 0, 11, 1)).await?;
    match again {
        CommitOutcome::AlreadyApplied { batch: 0 } => Ok(()),
        other @ (CommitOutcome::AlreadyApplied { .. }
        | CommitOutcome::Committed(_)
        | CommitOutcome::Conflict { .. }) => Err(violated(LINE).with("outcome", format!("{other:?}"))),
    }
}
