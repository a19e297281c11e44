//! Flows that apply changes, as a Rust program writes them.

use strandline_cdc_core::spec::{ColumnSelection, StoredAs};

use super::head::{FlowNames, Head, head_methods, once_method};
use crate::{
    name::{list, quoted},
    print::selection_sql,
};

/// A flow that applies changes.
#[derive(Debug, Clone)]
pub struct AutoCdcFlow {
    head: Head,
    source: String,
    keys: Vec<String>,
    clauses: Vec<String>,
}

impl AutoCdcFlow {
    /// Applies the changes of `source`, such as `STREAM(t)` or `(SELECT .. FROM STREAM t)`, to `target`.
    pub fn new(target: &str, source: &str) -> Self {
        Self { head: Head::new(target), source: source.to_owned(), keys: Vec::new(), clauses: Vec::new() }
    }

    head_methods!();

    once_method!();

    /// The flow's name and its statement.
    pub(super) fn into_statement(self) -> (String, String) {
        let Self { head, source, keys, clauses } = self;
        let (once, target, keys) = (head.once_sql(), head.target_sql(), list(&keys));
        let start = format!("{} AUTO CDC{once} INTO {target} FROM {source} KEYS {keys}", head.sql());
        let text = std::iter::once(start).chain(clauses).collect::<Vec<_>>().join("\n");
        (head.into_name(), text)
    }

    /// The columns that identify a row.
    #[must_use]
    pub fn keys<N: Into<String>>(mut self, columns: impl IntoIterator<Item = N>) -> Self {
        self.keys.extend(columns.into_iter().map(Into::into));
        self
    }

    /// `SEQUENCE BY expression`.
    #[must_use]
    pub fn sequence_by(self, expression: &str) -> Self {
        self.clause(format!("SEQUENCE BY {expression}"))
    }

    /// `APPLY AS DELETE WHEN condition`.
    #[must_use]
    pub fn apply_as_delete_when(self, condition: &str) -> Self {
        self.clause(format!("APPLY AS DELETE WHEN {condition}"))
    }

    /// `APPLY AS TRUNCATE WHEN condition`: such a row empties an SCD1 target as of its sequence.
    #[must_use]
    pub fn apply_as_truncate_when(self, condition: &str) -> Self {
        self.clause(format!("APPLY AS TRUNCATE WHEN {condition}"))
    }

    /// `APPLY AS RETRACT WHEN condition`: such a row takes a fact of a bitemporal target back.
    #[must_use]
    pub fn apply_as_retract_when(self, condition: &str) -> Self {
        self.clause(format!("APPLY AS RETRACT WHEN {condition}"))
    }

    /// `IGNORE NULL UPDATES [ON ..]`: NULL in these columns means "not provided".
    #[must_use]
    pub fn ignore_null_updates(self, columns: &ColumnSelection) -> Self {
        let on = selection_sql(columns).map(|columns| format!(" ON {columns}")).unwrap_or_default();
        self.clause(format!("IGNORE NULL UPDATES{on}"))
    }

    /// `COLUMNS TO UPDATE column`: the source column that lists, row by row, which columns the row sets.
    #[must_use]
    pub fn columns_to_update(self, column: &str) -> Self {
        self.clause(format!("COLUMNS TO UPDATE {}", quoted(column)))
    }

    /// `STORED AS BITEMPORAL` with `SYSTEM SEQUENCE BY expression`: neither goes without the other.
    #[must_use]
    pub fn bitemporal(self, system_sequence_by: &str) -> Self {
        self.clause(format!("SYSTEM SEQUENCE BY {system_sequence_by}")).clause("STORED AS BITEMPORAL")
    }

    /// `VALID TO expression`: where it is not NULL, the version of a ONCE seed's row ends there.
    #[must_use]
    pub fn valid_to(self, expression: &str) -> Self {
        self.clause(format!("VALID TO {expression}"))
    }

    /// `COLUMNS ..`.
    #[must_use]
    pub fn columns(self, columns: &ColumnSelection) -> Self {
        match selection_sql(columns) {
            Some(columns) => self.clause(format!("COLUMNS {columns}")),
            None => self,
        }
    }

    /// `STORED AS ..`.
    #[must_use]
    pub fn stored_as(self, shape: StoredAs) -> Self {
        self.clause(format!("STORED AS {shape}"))
    }

    /// `TRACK HISTORY ON ..`.
    #[must_use]
    pub fn track_history(self, columns: &ColumnSelection) -> Self {
        match selection_sql(columns) {
            Some(columns) => self.clause(format!("TRACK HISTORY ON {columns}")),
            None => self,
        }
    }

    /// Any other clause, as SQL.
    #[must_use]
    pub fn clause(mut self, clause: impl Into<String>) -> Self {
        self.clauses.push(clause.into());
        self
    }
}
