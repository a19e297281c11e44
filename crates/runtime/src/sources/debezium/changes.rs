//! What does a change flow make of a record that does not know every value of its row?
//!
//! The row lists the columns that it sets, by their names in the table. A flow's target may keep fewer of them, and names no
//! key: the list is fitted to what the flow keeps, so that `COLUMNS TO UPDATE _columns` works as it stands.

use std::{collections::BTreeSet, sync::Arc};

use arrow_array::{
    Array, ArrayRef, RecordBatch,
    builder::{ListBuilder, StringBuilder},
    cast::AsArray,
};
use arrow_cast::cast;
use arrow_schema::{DataType, Field};
use strandline_cdc_core::{CdcOptions, CdcSpec, ColumnSelection};

use super::Envelope;
use crate::error::{Error, ErrorKind, Result};

impl Envelope {
    /// The envelope of a flow that applies changes: its keys say which row a record is of; and a value that the connector did
    /// not get must not become a NULL, unless the flow says that NULL means as much.
    #[must_use]
    pub(crate) fn for_changes(self, options: &CdcOptions) -> Self {
        let accepted = match (&options.columns_to_update, &options.ignore_null_updates) {
            (Some(_), _) => ColumnSelection::All,
            (None, Some(ignored)) => ignored.clone(),
            (None, None) => ColumnSelection::Only(Vec::new()),
        };
        Self { accepted, ..self }.with_keys(options.keys.iter().cloned())
    }

    /// Whether a value of this column may be one that the connector did not get.
    pub(super) fn accepts_unavailable(&self, column: &str) -> bool {
        let listed = |list: &[String]| list.iter().any(|name| name.eq_ignore_ascii_case(column));
        match &self.accepted {
            ColumnSelection::All => true,
            ColumnSelection::Only(list) => listed(list),
            ColumnSelection::Except(list) => !listed(list),
        }
    }

    /// Refuses a query that passes the list of columns on, but not the columns themselves. `row` are the columns of the
    /// source, `passed` those of the query that are columns of the source under their own names.
    ///
    /// # Errors
    /// `Definition`, naming a column that is missing.
    pub(crate) fn check_query(&self, row: &[&str], passed: &BTreeSet<&str>) -> Result<()> {
        let list = self.columns_name();
        if !passed.contains(list.as_str()) {
            return Ok(());
        }
        match row.iter().find(|name| !passed.contains(*name) && !self.is_metadata(name)) {
            None => Ok(()),
            Some(missing) => Err(Error::new(
                ErrorKind::Definition,
                format!("`{list}` names columns that the flow's query drops, renames or computes"),
            )
            .with("column", missing)
            .help("select every column of the source under its own name, and choose with COLUMNS; or make the list fit, as in array_replace(_columns, 'old', 'new') AS set_columns, and name that in COLUMNS TO UPDATE")),
        }
    }

    /// Fits the lists of `COLUMNS TO UPDATE` to the columns that the flow keeps. The envelope's own columns are always set.
    ///
    /// # Errors
    /// `Internal` for rows whose list is none.
    pub(crate) fn fit_lists(&self, rows: RecordBatch, spec: &CdcSpec) -> Result<RecordBatch> {
        let list = self.columns_name();
        let Some((at, column)) =
            rows.schema_ref().index_of(&list).ok().and_then(|at| Some((at, rows.columns().get(at)?)))
        else {
            return Ok(rows);
        };
        if column.null_count() == column.len() {
            return Ok(rows);
        }
        let keys: BTreeSet<&str> = spec.key_names().into_iter().collect();
        let kept = |name: &str| {
            !keys.contains(name)
                && rows.column_by_name(name).is_some()
                && spec.target_schema().field_with_name(name).is_ok()
        };
        let own: Vec<_> =
            self.metadata().iter().map(|field| field.name().clone()).filter(|name| kept(name)).collect();
        let texts = cast(column, &DataType::new_list(DataType::Utf8, true))?;
        let mut fitted = ListBuilder::new(StringBuilder::new());
        for row in texts.as_list::<i32>().iter() {
            let Some(row) = row else {
                fitted.append_null();
                continue;
            };
            let names = row.as_string::<i32>().iter().flatten().filter(|name| kept(name));
            for name in names.chain(own.iter().map(String::as_str)) {
                fitted.values().append_value(name);
            }
            fitted.append(true);
        }
        let fitted: ArrayRef = Arc::new(fitted.finish());
        let mut columns = rows.columns().to_vec();
        let mut fields: Vec<_> = rows.schema_ref().fields().iter().cloned().collect();
        if let (Some(column), Some(field)) = (columns.get_mut(at), fields.get_mut(at)) {
            *field = Arc::new(Field::new(&list, fitted.data_type().clone(), true));
            *column = fitted;
        }
        Ok(RecordBatch::try_new(Arc::new(arrow_schema::Schema::new(fields)), columns)?)
    }
}
