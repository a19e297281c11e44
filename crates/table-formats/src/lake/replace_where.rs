//! Replacing the rows that meet a condition: a change of rows, found by reading all of them.

use arrow_array::RecordBatch;
use futures::TryStreamExt;

use super::LakeSnapshot;
use crate::{
    contract::{LookupPlan, Result, RowCondition, TableChange, TableSnapshot},
    error::{Error, ErrorKind},
};

/// A replacement as the rows that go and come; other changes as they are.
pub(super) async fn as_rows(base: &LakeSnapshot, change: TableChange) -> Result<TableChange> {
    let TableChange::ReplaceWhere { condition, rows } = change else { return Ok(change) };
    let inserts: Vec<RecordBatch> = rows.try_collect().await?;
    for batch in &inserts {
        if let Some(row) = met(condition.as_ref(), batch)?.iter().position(|met| !met) {
            let message = "a row that comes does not meet the condition of the rows that it replaces";
            return Err(Error::new(ErrorKind::Invalid, message)
                .with("condition", format!("{condition:?}"))
                .with("row", format!("{:?}", batch.slice(row, 1).columns())));
        }
    }
    let mut deletes = Vec::new();
    let mut found = base.lookup(&LookupPlan { keys: None, columns: None, bound: None }).await?;
    while let Some(rows) = found.try_next().await? {
        let met = met(condition.as_ref(), &rows.batch)?;
        deletes.extend(rows.ids.values().iter().zip(met).filter(|(_, met)| *met).map(|(id, _)| *id));
    }
    Ok(TableChange::Rows { deletes, inserts })
}

fn met(condition: &dyn RowCondition, rows: &RecordBatch) -> Result<Vec<bool>> {
    let met = condition.met(rows)?;
    if met.len() == rows.num_rows() {
        return Ok(met.iter().map(|met| met == Some(true)).collect());
    }
    Err(Error::new(ErrorKind::Invalid, "a condition must give one answer a row"))
}
