//! Line 16.

use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch, cast::AsArray, types::Int64Type};

use super::fixture::{commit, content, ensure, read, refused, rows, stamp, streamed, table};
use crate::{
    contract::{Result, RowCondition, TableChange, TableFormat},
    error::ErrorKind,
};

/// Keys of this value and above.
#[derive(Debug)]
struct From(i64);

impl RowCondition for From {
    fn met(&self, rows: &RecordBatch) -> Result<BooleanArray> {
        let keys = rows.column(0).as_primitive::<Int64Type>();
        Ok(keys.iter().map(|key| key.map(|key| key >= self.0)).collect())
    }
}

fn replacing(from: i64, rows: RecordBatch) -> TableChange {
    TableChange::ReplaceWhere { condition: Arc::new(From(from)), rows: streamed(rows) }
}

/// Line 16: rows that meet a condition are swapped whole, others stay, and rows that don't meet it don't come.
///
/// # Errors
/// When it does not hold.
pub async fn line_16_replacing_where_swaps(format: &dyn TableFormat) -> Result<()> {
    const LINE: &str = "16, replacing where swaps";
    let table = table(format, "line_16").await?;
    let table = table.as_ref();
    let many: Vec<i64> = (0..700).collect();
    commit(table, TableChange::Append(streamed(rows(&many, "old")?)), &stamp("one", 1, 0, 0)).await?;
    let change = replacing(500, rows(&[600, 601, 999], "new")?);
    commit(table, change, &stamp("one", 2, 0, 0)).await?;
    let snapshot = table.snapshot().await?;
    let mut expected = content(&many[..500], "old");
    expected.extend(content(&[600, 601, 999], "new"));
    ensure(read(snapshot.as_ref()).await? == expected, LINE)?;
    let stray = replacing(500, rows(&[700, 499], "stray")?);
    refused(table.commit(snapshot.as_ref(), stray, &stamp("one", 3, 0, 0)).await, ErrorKind::Invalid, LINE)?;
    ensure(read(table.snapshot().await?.as_ref()).await? == expected, "16, and nothing is changed")?;
    commit(table, replacing(500, rows(&[], "none")?), &stamp("one", 3, 0, 0)).await?;
    expected.truncate(500);
    ensure(read(table.snapshot().await?.as_ref()).await? == expected, LINE)
}
