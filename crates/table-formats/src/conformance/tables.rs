//! Lines about whole tables: 11 and 12.

use super::fixture::{
    commit, content, definition, ensure, inserted, read, refused, rows, stamp, streamed, table, writer,
};
use crate::{
    contract::{Result, StateVersion, TableChange, TableFormat},
    error::ErrorKind,
};

/// Line 11: after emptying there is no row, but schema, properties and stamps; rows can come again. Overwriting replaces.
///
/// # Errors
/// When it does not hold.
pub async fn line_11_empty_leaves_the_table(format: &dyn TableFormat) -> Result<()> {
    const LINE: &str = "11, empty leaves the table";
    let table = table(format, "line_11").await?;
    commit(table.as_ref(), inserted(rows(&[1, 2], "a")?), &stamp("one", 1, 3, 0)).await?;
    let full = table.snapshot().await?;
    commit(table.as_ref(), TableChange::Empty, &stamp("two", 1, 4, 0)).await?;
    let empty = table.snapshot().await?;
    ensure(read(empty.as_ref()).await?.is_empty() && empty.schema() == full.schema(), LINE)?;
    ensure(empty.properties().get("owner").map(String::as_str) == Some("conformance"), LINE)?;
    ensure(empty.last_batch(&writer("one")) == Some(1) && empty.state_version() == StateVersion(4), LINE)?;
    commit(table.as_ref(), inserted(rows(&[7], "b")?), &stamp("one", 2, 4, 0)).await?;
    ensure(read(table.snapshot().await?.as_ref()).await? == content(&[7], "b"), LINE)?;
    commit(table.as_ref(), TableChange::Overwrite(streamed(rows(&[8], "c")?)), &stamp("one", 3, 4, 0))
        .await?;
    ensure(
        read(table.snapshot().await?.as_ref()).await? == content(&[8], "c"),
        "11, and overwriting replaces",
    )?;
    let since = table.snapshot().await?;
    commit(table.as_ref(), TableChange::Append(streamed(rows(&[9], "d")?)), &stamp("one", 4, 4, 0)).await?;
    let now = table.snapshot().await?;
    let files = now.appended_since(Some(since.version())).await?;
    ensure(files.len() == 1 && files.iter().map(|f| f.rows).sum::<u64>() == 1, "appends are listed")?;
    refused(
        now.appended_since(Some(full.version())).await,
        ErrorKind::Conflict,
        "and rewrites are a conflict",
    )
}

/// Line 12: creating a table that exists is an error; opening one that does not is `None`.
///
/// # Errors
/// When it does not hold.
pub async fn line_12_creation_is_exclusive(format: &dyn TableFormat) -> Result<()> {
    const LINE: &str = "12, creation is exclusive";
    ensure(format.open("line_12").await?.is_none(), LINE)?;
    let created = table(format, "line_12").await?;
    ensure(created.snapshot().await?.version().0 == 0, LINE)?;
    refused(format.create("line_12", &definition()).await, ErrorKind::Conflict, LINE)?;
    ensure(format.open("line_12").await?.is_some(), LINE)?;
    let names = format.list().await?;
    ensure(names.iter().any(|n| n == "line_12") && names.is_sorted(), "12, and listed")
}
