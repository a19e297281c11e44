//! What does a change flow over a table's change feed mean where nothing is written?
//!
//! The rows say themselves what became of them: deletes are deletes, and the columns that tell so are no data.

use arrow_schema::{Field, Schema};
use strandline_cdc_core::ColumnSelection;
use strandline_pipeline_sql::{AutoCdc, SqlExpr};
use strandline_table_formats::contract::{CHANGE_TYPE, DELETE, change_columns};

use crate::error::{Error, ErrorKind, Result};

/// The flow with what its rows say filled in. What its author wrote stays.
pub(super) fn filled_in(cdc: &AutoCdc, rows: &Schema) -> Result<AutoCdc> {
    let mut cdc = cdc.clone();
    if cdc.apply_as_delete.is_none() {
        if rows.column_with_name(CHANGE_TYPE).is_none() {
            return Err(Error::new(
                ErrorKind::Definition,
                format!("the flow reads a change feed and drops its column {CHANGE_TYPE}: deleted rows would come back"),
            )
            .help(format!("keep {CHANGE_TYPE} in the query, or write APPLY AS DELETE WHEN")));
        }
        let deleted = SqlExpr::parse(&format!("{CHANGE_TYPE} = '{DELETE}'"));
        let deleted = deleted.map_err(|e| Error::new(ErrorKind::Internal, e.to_string()))?;
        cdc.apply_as_delete = Some(deleted);
    }
    let columns = change_columns();
    let told = columns.iter().map(Field::name).filter(|name| rows.column_with_name(name).is_some());
    let left_out: Vec<String> = match &cdc.options.columns {
        ColumnSelection::Only(_) => return Ok(cdc),
        ColumnSelection::All => told.cloned().collect(),
        ColumnSelection::Except(list) => {
            list.iter().chain(told.filter(|name| !list.contains(name))).cloned().collect()
        }
    };
    if !left_out.is_empty() {
        cdc.options.columns = ColumnSelection::Except(left_out);
    }
    Ok(cdc)
}
