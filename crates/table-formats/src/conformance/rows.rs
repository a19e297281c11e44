//! Lines about rows: 1, 2 and 7 to 10.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Decimal128Array, Int32Array, Int64Array, RecordBatch, StringArray, cast::AsArray,
    types::Int64Type,
};
use arrow_schema::{DataType, Field, Schema};
use futures::{StreamExt, TryStreamExt, stream};
use strandline_cdc_core::Bound;

use super::fixture::{
    commit, content, definition, ensure, found, ids, inserted, plan, read, refused, rows, schema, stamp,
    streamed, table,
};
use crate::{
    contract::{LookupPlan, Result, TableChange, TableDefinition, TableFormat, TableSnapshot},
    error::{Error, ErrorKind},
};

/// Line 1: a change that fails on its way leaves nothing, and one that lands shows both its deletes and its inserts.
///
/// # Errors
/// When it does not hold.
pub async fn line_01_whole_or_nothing(format: &dyn TableFormat) -> Result<()> {
    const LINE: &str = "1, whole or nothing";
    let table = table(format, "line_01").await?;
    commit(table.as_ref(), inserted(rows(&[1, 2, 3], "a")?), &stamp("one", 1, 0, 0)).await?;
    let base = table.snapshot().await?;
    for overwrite in [false, true] {
        let broken = Err(Error::new(ErrorKind::Unavailable, "the source broke"));
        let batches = stream::iter([Ok(rows(&[8, 9], "b")?), broken]).boxed();
        let change = if overwrite { TableChange::Overwrite(batches) } else { TableChange::Append(batches) };
        refused(
            table.commit(base.as_ref(), change, &stamp("one", 2, 0, 0)).await,
            ErrorKind::Unavailable,
            LINE,
        )?;
        ensure(read(table.snapshot().await?.as_ref()).await? == content(&[1, 2, 3], "a"), LINE)?;
    }
    let deletes = ids(base.as_ref(), &[2]).await?;
    let change = TableChange::Rows { deletes, inserts: vec![rows(&[2, 4], "a")?] };
    commit(table.as_ref(), change, &stamp("one", 2, 0, 0)).await?;
    ensure(read(table.snapshot().await?.as_ref()).await? == content(&[1, 2, 3, 4], "a"), LINE)
}

/// Line 2: a snapshot returns the same whatever was committed since, and so does an older version that is asked for.
///
/// # Errors
/// When it does not hold.
pub async fn line_02_snapshots_dont_move(format: &dyn TableFormat) -> Result<()> {
    const LINE: &str = "2, snapshots don't move";
    let table = table(format, "line_02").await?;
    commit(table.as_ref(), inserted(rows(&[1, 2], "a")?), &stamp("one", 1, 0, 0)).await?;
    let old = table.snapshot().await?;
    let was = found(old.as_ref(), &plan(&[1, 2])?).await?;
    let change =
        TableChange::Rows { deletes: ids(old.as_ref(), &[1, 2]).await?, inserts: vec![rows(&[1], "b")?] };
    commit(table.as_ref(), change, &stamp("one", 2, 0, 0)).await?;
    commit(table.as_ref(), TableChange::Empty, &stamp("one", 3, 0, 0)).await?;
    let again = table.at(old.version()).await?;
    for snapshot in [&old, &again] {
        ensure(read(snapshot.as_ref()).await? == content(&[1, 2], "a"), LINE)?;
        ensure(found(snapshot.as_ref(), &plan(&[1, 2])?).await? == was, LINE)?;
    }
    let future = crate::contract::TableVersion(old.version().0 + 100);
    refused(table.at(future).await, ErrorKind::NotFound, "2, and a version that is not there is not found")
}

/// Line 7: a lookup finds every row of its keys within the bound, and none of other keys.
///
/// # Errors
/// When it does not hold.
pub async fn line_07_lookups_miss_nothing(format: &dyn TableFormat) -> Result<()> {
    const LINE: &str = "7, lookups miss nothing";
    let table = table(format, "line_07").await?;
    let all: Vec<i64> = (0..1000).collect();
    commit(table.as_ref(), inserted(rows(&all, "b")?), &stamp("one", 1, 0, 0)).await?;
    commit(table.as_ref(), TableChange::Append(streamed(rows(&[5, 7, 2000], "c")?)), &stamp("one", 2, 0, 0))
        .await?;
    let unvalued = RecordBatch::try_new(
        schema(),
        vec![Arc::new(Int64Array::from(vec![5])), Arc::new(StringArray::from(vec![None::<&str>]))],
    )?;
    commit(table.as_ref(), inserted(unvalued), &stamp("one", 3, 0, 0)).await?;
    let snapshot = table.snapshot().await?;
    let mut rows: Vec<_> =
        found(snapshot.as_ref(), &plan(&[-1, 5, 999, 2000, 3000])?).await?.into_values().collect();
    rows.sort();
    let value = |v: &str| Some(v.to_owned());
    let expected = vec![(5, None), (5, value("b")), (5, value("c")), (999, value("b")), (2000, value("c"))];
    ensure(rows == expected, LINE)?;
    ensure(found(snapshot.as_ref(), &plan(&[])?).await?.is_empty(), LINE)?;
    let mut bounded = plan(&[5, 7])?;
    let at_least: ArrayRef = Arc::new(StringArray::from(vec!["c", "c"]));
    bounded.bound = Some(Bound { column: "value".to_owned(), at_least, until: None });
    let rows: Vec<_> = found(snapshot.as_ref(), &bounded).await?.into_values().collect();
    let needed = [(5, None), (5, value("c")), (7, value("c"))];
    ensure(needed.iter().all(|row| rows.contains(row)), "7, within the bound, NULL included")?;
    ensure(rows.iter().all(|(key, _)| [5, 7].contains(key)), LINE)?;
    let mut narrow = plan(&[7])?;
    narrow.columns = Some(vec!["value".to_owned()]);
    every_row_without_keys(snapshot.as_ref()).await?;
    let rows: Vec<_> = snapshot.lookup(&narrow).await?.try_collect().await?;
    let named = |r: &strandline_cdc_core::Rows| {
        r.batch.num_columns() == 1 && r.batch.column_by_name("value").is_some()
    };
    ensure(rows.iter().all(named) && rows.iter().map(|r| r.batch.num_rows()).sum::<usize>() == 2, LINE)
}

/// Line 7 where no keys are given: what the scan returns, within the bound, each row once.
async fn every_row_without_keys(snapshot: &dyn TableSnapshot) -> Result<()> {
    const LINE: &str = "7, every row where no keys are given";
    let mut every = LookupPlan { keys: None, columns: None, bound: None };
    let mut rows: Vec<_> = found(snapshot, &every).await?.into_values().collect();
    rows.sort();
    let all = read(snapshot).await?;
    ensure(rows == all, LINE)?;
    let at_least: ArrayRef = Arc::new(StringArray::from(vec!["c"]));
    every.bound = Some(Bound { column: "value".to_owned(), at_least, until: None });
    let rows: Vec<_> = found(snapshot, &every).await?.into_values().collect();
    let needed = all.iter().filter(|(_, value)| value.as_deref().is_none_or(|value| value >= "c"));
    for row in needed {
        ensure(rows.iter().filter(|found| *found == row).count() == 1, LINE)?;
    }
    ensure(rows.iter().all(|row| all.contains(row)), LINE)
}

/// Line 8: the ids of a lookup delete those rows and no other; other ids are refused.
///
/// # Errors
/// When it does not hold.
pub async fn line_08_deletes_are_exact(format: &dyn TableFormat) -> Result<()> {
    const LINE: &str = "8, deletes are exact";
    let table = table(format, "line_08").await?;
    commit(table.as_ref(), inserted(rows(&[1, 2, 3, 4], "a")?), &stamp("one", 1, 0, 0)).await?;
    commit(table.as_ref(), TableChange::Append(streamed(rows(&[2, 3, 9], "b")?)), &stamp("one", 2, 0, 0))
        .await?;
    let base = table.snapshot().await?;
    let wanted = found(base.as_ref(), &plan(&[2, 9])?).await?;
    let deletes: Vec<_> =
        wanted.iter().filter(|(_, row)| row.1.as_deref() == Some("b")).map(|(id, _)| *id).collect();
    for unknown in [u64::MAX, 1 << 39, 77 << 40] {
        let change = TableChange::Rows { deletes: vec![unknown], inserts: Vec::new() };
        let outcome = table.commit(base.as_ref(), change, &stamp("one", 3, 0, 0)).await;
        refused(outcome, ErrorKind::Invalid, "8, and an id that is not of the base is an error")?;
    }
    commit(table.as_ref(), TableChange::Rows { deletes, inserts: Vec::new() }, &stamp("one", 3, 0, 0))
        .await?;
    let mut expected = content(&[1, 2, 3, 4], "a");
    expected.extend(content(&[3], "b"));
    expected.sort();
    ensure(read(table.snapshot().await?.as_ref()).await? == expected, LINE)
}

/// Line 9: rows of a wrong type, without a required column, or with a required column that the table lacks are refused.
///
/// # Errors
/// When it does not hold.
pub async fn line_09_schemas_hold(format: &dyn TableFormat) -> Result<()> {
    const LINE: &str = "9, schemas hold";
    let table = table(format, "line_09").await?;
    commit(table.as_ref(), inserted(rows(&[1], "a")?), &stamp("one", 1, 0, 0)).await?;
    let base = table.snapshot().await?;
    let (ints, texts): (ArrayRef, ArrayRef) =
        (Arc::new(Int64Array::from(vec![5])), Arc::new(StringArray::from(vec!["x"])));
    let batch = |fields: Vec<(&str, &ArrayRef, bool)>| {
        let schema = fields
            .iter()
            .map(|(n, c, null)| Field::new(*n, c.data_type().clone(), *null))
            .collect::<Vec<_>>();
        RecordBatch::try_new(Arc::new(Schema::new(schema)), fields.iter().map(|f| Arc::clone(f.1)).collect())
    };
    let wrong = [
        (batch(vec![("id", &ints, false), ("value", &ints, true)])?, "value"),
        (batch(vec![("value", &texts, true)])?, "id"),
        (batch(vec![("id", &ints, false), ("extra", &ints, false)])?, "extra"),
    ];
    for (rows, column) in wrong {
        for change in [inserted(rows.clone()), TableChange::Append(streamed(rows.clone()))] {
            match table.commit(base.as_ref(), change, &stamp("one", 2, 0, 0)).await {
                Err(e) if e.kind() == ErrorKind::Invalid => ensure(e.to_string().contains(column), LINE)?,
                Err(_) | Ok(_) => ensure(false, LINE)?,
            }
        }
    }
    ensure(table.snapshot().await?.version() == base.version(), LINE)?;
    let fewer = batch(vec![("id", &ints, false)])?;
    commit(table.as_ref(), inserted(fewer), &stamp("one", 2, 0, 0)).await?;
    let mut expected = content(&[1], "a");
    expected.push((5, None));
    ensure(
        read(table.snapshot().await?.as_ref()).await? == expected,
        "9, and a missing nullable column is NULL",
    )
}

/// Line 10: a commit may add nullable columns; older rows are NULL there, also after they were rewritten. Columns get wider
/// with the rows that need it.
///
/// # Errors
/// When it does not hold.
pub async fn line_10_columns_come_and_widen(format: &dyn TableFormat) -> Result<()> {
    const LINE: &str = "10, columns come and widen";
    let table = table(format, "line_10").await?;
    commit(table.as_ref(), inserted(rows(&[1, 2, 3], "a")?), &stamp("one", 1, 0, 0)).await?;
    let base = table.snapshot().await?;
    let mut fields: Vec<_> = schema().fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new("more", DataType::Int64, true)));
    let wider = RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        vec![
            Arc::new(Int64Array::from(vec![2])),
            Arc::new(StringArray::from(vec!["b"])),
            Arc::new(Int64Array::from(vec![70])),
        ],
    )?;
    let change = TableChange::Rows { deletes: ids(base.as_ref(), &[2]).await?, inserts: vec![wider] };
    commit(table.as_ref(), change, &stamp("one", 2, 0, 0)).await?;
    let now = table.snapshot().await?;
    ensure(now.schema().field_with_name("more").is_ok_and(Field::is_nullable), LINE)?;
    ensure(base.schema().field_with_name("more").is_err(), LINE)?;
    let column = [String::from("more")];
    let batches: Vec<RecordBatch> = now.scan(Some(&column)).await?.try_collect().await?;
    let (rows, nulls) = batches
        .iter()
        .fold((0, 0), |(rows, nulls), batch| (rows + batch.num_rows(), nulls + batch.column(0).null_count()));
    ensure((rows, nulls) == (3, 2), LINE)?;
    commit(table.as_ref(), inserted(super::fixture::rows(&[8], "c")?), &stamp("one", 3, 0, 0)).await?;
    columns_widen(format).await
}

/// Line 10 for types: by a change of rows and by an append, in every file, and not for a key.
async fn columns_widen(format: &dyn TableFormat) -> Result<()> {
    const LINE: &str = "10, columns widen";
    let column = |data_type: &DataType| {
        Schema::new(vec![Field::new("id", DataType::Int32, false), Field::new("n", data_type.clone(), true)])
    };
    // Every format has decimals, and widens them.
    let digits = |precision| DataType::Decimal128(precision, 0);
    let rows = |keys: Vec<i32>, precision, values: Vec<i128>| {
        let values = Decimal128Array::from(values).with_precision_and_scale(precision, 0)?;
        let values = Arc::new(values) as ArrayRef;
        let schema = Arc::new(column(values.data_type()));
        RecordBatch::try_new(schema, vec![Arc::new(Int32Array::from(keys)) as ArrayRef, values])
    };
    let definition = TableDefinition { schema: Arc::new(column(&digits(4))), ..definition() };
    let table = format.create("line_10_wider", &definition).await?;
    let table = table.as_ref();
    let narrow = rows((0..400).collect(), 4, (0..400).collect())?;
    commit(table, TableChange::Append(streamed(narrow)), &stamp("one", 1, 0, 0)).await?;
    let more = rows(vec![400], 4, vec![400])?;
    commit(table, TableChange::Append(streamed(more)), &stamp("one", 2, 0, 0)).await?;
    let old = table.snapshot().await?;
    let wide = rows(vec![401], 9, vec![70_000])?;
    commit(table, inserted(wide.clone()), &stamp("one", 3, 0, 0)).await?;
    ensure(numbers(table, &digits(9)).await? == (402, 80_200 + 70_000), LINE)?;
    let wider = rows(vec![402], 18, vec![1 << 40])?;
    let late = table
        .commit(old.as_ref(), TableChange::Append(streamed(wider.clone())), &stamp("one", 4, 0, 0))
        .await?;
    ensure(
        matches!(late, crate::contract::CommitOutcome::Conflict { .. }),
        "10, and a widening append conflicts",
    )?;
    commit(table, TableChange::Append(streamed(wider)), &stamp("one", 4, 0, 0)).await?;
    let all = 80_200 + 70_000 + (1 << 40);
    ensure(numbers(table, &digits(18)).await? == (403, all), LINE)?;
    commit(table, TableChange::Append(streamed(wide)), &stamp("one", 5, 0, 0)).await?;
    ensure(numbers(table, &digits(18)).await? == (404, all + 70_000), "10, narrower rows are taken")?;
    let now = table.snapshot().await?;
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![7]));
    let with_wide_key = RecordBatch::try_from_iter([("id", keys)])?;
    for change in [inserted(with_wide_key.clone()), TableChange::Append(streamed(with_wide_key))] {
        refused(
            table.commit(now.as_ref(), change, &stamp("one", 6, 0, 0)).await,
            ErrorKind::Invalid,
            "10, but no key",
        )?;
    }
    let since = old.version().0 + 1;
    let changes: Vec<RecordBatch> =
        table.changes(crate::contract::TableVersion(since), now.version()).await?.try_collect().await?;
    ensure(
        changes.iter().map(RecordBatch::num_rows).sum::<usize>() == 3,
        "10, and rows that widen did not change",
    )
}

async fn numbers(table: &dyn crate::contract::Table, data_type: &DataType) -> Result<(usize, i64)> {
    let column = [String::from("n")];
    let batches: Vec<RecordBatch> = table.snapshot().await?.scan(Some(&column)).await?.try_collect().await?;
    let mut found = (0, 0);
    for batch in &batches {
        ensure(batch.column(0).data_type() == data_type, "10, of the wider type")?;
        let values = arrow_cast::cast(batch.column(0), &DataType::Int64)?;
        let values = values.as_primitive::<Int64Type>();
        found = (found.0 + values.len(), found.1 + values.values().iter().sum::<i64>());
    }
    Ok(found)
}
