//! Lines about what commits did: 14 and 15.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{RecordBatch, cast::AsArray, types::Int64Type};
use arrow_schema::{DataType, Field, Schema};
use futures::TryStreamExt;

use super::fixture::{
    Content, commit, content, definition, ensure, ids, inserted, pairs, read, refused, rows, stamp, streamed,
    table, violated,
};
use crate::{
    contract::{
        CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION, CommitKind, DELETE, INSERT, Result, Table,
        TableChange, TableDefinition, TableFormat, TableVersion, UPDATE_POSTIMAGE, UPDATE_PREIMAGE,
    },
    error::ErrorKind,
};

/// Line 14: every commit is told once, in order, with what it did and when.
///
/// # Errors
/// When it does not hold.
pub async fn line_14_commits_say_what_they_did(format: &dyn TableFormat) -> Result<()> {
    const LINE: &str = "14, commits say what they did";
    let table = table(format, "line_14").await?;
    let table = table.as_ref();
    commit(table, TableChange::Append(streamed(rows(&[1, 2], "a")?)), &stamp("one", 1, 0, 0)).await?;
    commit(table, inserted(rows(&[3], "a")?), &stamp("one", 2, 0, 0)).await?;
    let base = table.snapshot().await?;
    let deletes = ids(base.as_ref(), &[1]).await?;
    commit(table, TableChange::Rows { deletes, inserts: vec![rows(&[1], "b")?] }, &stamp("one", 3, 0, 0))
        .await?;
    commit(table, TableChange::Empty, &stamp("one", 4, 0, 0)).await?;
    commit(table, TableChange::Overwrite(streamed(rows(&[5], "a")?)), &stamp("one", 5, 0, 0)).await?;
    let narrow = TableDefinition { schema: Arc::new(definition().schema.project(&[0])?), ..definition() };
    let rows = Box::pin(futures::stream::empty());
    commit(table, TableChange::Replace { definition: Box::new(narrow), rows }, &stamp("one", 6, 0, 0))
        .await?;
    let now = table.snapshot().await?.version();
    let commits = table.commits(Some(TableVersion(0)), now).await?;
    let kinds: Vec<_> = commits.iter().map(|commit| commit.kind).collect();
    let (append, delete) = (CommitKind::Append, CommitKind::Delete);
    ensure(kinds == [append, append, CommitKind::Change, delete, append, CommitKind::Replace], LINE)?;
    ensure(commits.iter().map(|commit| commit.version.0).eq(1..=6), LINE)?;
    ensure(commits.iter().map(|c| c.timestamp).is_sorted() && commits.iter().all(|c| c.timestamp > 0), LINE)?;
    ensure(commits.iter().all(|commit| commit.appended.is_empty() == (commit.kind != append)), LINE)?;
    let removing: Vec<bool> = commits.iter().map(|commit| commit.removes_files).collect();
    ensure(removing == [false, false, true, true, false, true], LINE)?;
    ensure(table.commits(Some(now), now).await?.is_empty(), "14, and none after the newest")?;
    let whole = table.commits(None, TableVersion(1)).await?;
    ensure(whole.iter().map(|commit| commit.version.0).eq([0, 1]), "14, and the first one")?;
    let times: Vec<_> = commits.iter().map(|commit| (commit.timestamp, commit.version)).collect();
    for (at, _) in &times {
        let first = times.iter().find(|(other, _)| other >= at).map(|(_, version)| *version);
        ensure(table.first_since(*at).await? == first || whole.iter().any(|c| c.timestamp >= *at), LINE)?;
    }
    ensure(table.first_since(i64::MAX).await?.is_none(), "14, and none in the future")
}

/// A changed row: what became of it, and what it is.
type Changed = (String, i64, Option<String>);

async fn changes(table: &dyn Table, first: u64, last: u64) -> Result<Vec<Changed>> {
    let batches: Vec<RecordBatch> =
        table.changes(TableVersion(first), TableVersion(last)).await?.try_collect().await?;
    let mut all = Vec::new();
    for batch in &batches {
        let what =
            batch.column_by_name(CHANGE_TYPE).ok_or_else(|| violated("15, with what became of a row"))?;
        let version = batch.column_by_name(COMMIT_VERSION).ok_or_else(|| violated("15, with the version"))?;
        let versions = version.as_primitive::<Int64Type>().values();
        let within = |v: &i64| u64::try_from(*v).is_ok_and(|v| (first..=last).contains(&v));
        ensure(versions.iter().all(within), "15, of these commits")?;
        ensure(batch.column_by_name(COMMIT_TIMESTAMP).is_some(), "15, with the time")?;
        let words = what.as_string::<i32>().iter().map(|word| word.unwrap_or_default().to_owned());
        all.extend(words.zip(pairs(batch)).map(|(word, (key, value))| (word, key, value)));
    }
    all.sort();
    Ok(all)
}

fn change(word: &str, key: i64, value: &str) -> Changed {
    (word.to_owned(), key, Some(value.to_owned()))
}

/// Line 15: what commits changed, added to the rows of before, gives the rows of after; moved rows are not among it.
///
/// # Errors
/// When it does not hold.
pub async fn line_15_changes_add_up(format: &dyn TableFormat) -> Result<()> {
    const LINE: &str = "15, changes add up";
    let table = table(format, "line_15").await?;
    let table = table.as_ref();
    table.snapshot().await?.check_changes()?;
    let many: Vec<i64> = (0..500).collect();
    commit(table, TableChange::Append(streamed(rows(&many, "a")?)), &stamp("one", 1, 0, 0)).await?;
    // Two rows of one key, of which one goes: the other one was only moved.
    commit(table, TableChange::Append(streamed(rows(&[7, 7], "a")?)), &stamp("one", 2, 0, 0)).await?;
    let base = table.snapshot().await?;
    let deletes = ids(base.as_ref(), &[3, 4]).await?;
    let mut sevens = ids(base.as_ref(), &[7]).await?;
    sevens.truncate(1);
    let deletes = deletes.into_iter().chain(sevens).collect();
    let inserts = vec![rows(&[4], "b")?, rows(&[900], "c")?];
    commit(table, TableChange::Rows { deletes, inserts }, &stamp("one", 3, 0, 0)).await?;
    ensure(changes(table, 2, 2).await? == [change(INSERT, 7, "a"), change(INSERT, 7, "a")], LINE)?;
    let mut third = vec![
        change(DELETE, 3, "a"),
        change(DELETE, 7, "a"),
        change(INSERT, 900, "c"),
        change(UPDATE_POSTIMAGE, 4, "b"),
        change(UPDATE_PREIMAGE, 4, "a"),
    ];
    third.sort();
    ensure(changes(table, 3, 3).await? == third, "15, moved rows are not among them")?;
    wider(table).await?;
    let last = table.snapshot().await?;
    let mut sum: BTreeMap<(i64, Option<String>), i64> = BTreeMap::new();
    for (word, key, value) in changes(table, 1, last.version().0).await? {
        let by = if word == INSERT || word == UPDATE_POSTIMAGE { 1 } else { -1 };
        *sum.entry((key, value)).or_default() += by;
    }
    let mut rows: Content = Vec::new();
    for (row, count) in sum {
        ensure(count >= 0, LINE)?;
        rows.extend(std::iter::repeat_n(row, usize::try_from(count).unwrap_or(0)));
    }
    ensure(rows == read(last.as_ref()).await?, LINE)?;
    replaced(table).await
}

/// A table that gets a column: what was changed before is told in the new columns too.
async fn wider(table: &dyn Table) -> Result<()> {
    let mut fields: Vec<_> = definition().schema.fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new("more", DataType::Int64, true)));
    let one = rows(&[901], "d")?;
    let columns = one.columns().iter().cloned().chain([arrow_array::new_null_array(&DataType::Int64, 1)]);
    let wide = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.collect())?;
    commit(table, TableChange::Append(streamed(wide)), &stamp("one", 4, 0, 0)).await?;
    let found = changes(table, 2, 4).await?;
    ensure(found.len() == 8 && found.contains(&change(INSERT, 901, "d")), "15, across a new column")
}

/// The changes of a table that became another one do not go on.
async fn replaced(table: &dyn Table) -> Result<()> {
    const LINE: &str = "15, changes end where a table is replaced";
    let base = table.snapshot().await?.version().0;
    let mut other = definition();
    other.schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Utf8, false)]));
    let rows = Box::pin(futures::stream::empty());
    commit(table, TableChange::Replace { definition: Box::new(other), rows }, &stamp("one", 5, 0, 0)).await?;
    let through = table.changes(TableVersion(base), TableVersion(base + 1)).await;
    refused(through, ErrorKind::Unsupported, LINE)?;
    let before = changes(table, base, base).await?;
    ensure(before == [change(INSERT, 901, "d")], "15, and what was before can still be read")?;
    ensure(content(&[901], "d").len() == before.len(), LINE)
}
