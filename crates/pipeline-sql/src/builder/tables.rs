//! Tables with what is expected of their rows, as a Rust program writes them.

use crate::{
    ColumnDef, OnViolation, SinkDefinition, Span, SqlType, TableDeclaration,
    name::quoted,
    print::{constraint_sql, table_sql},
};

/// A streaming table or materialized view.
///
/// ```
/// use strandline_pipeline_sql::{PipelineBuilder, SqlType, Support, Table};
///
/// let orders = Table::new("orders")
///     .column("id", SqlType::BigInt)
///     .expect("has_id", "id IS NOT NULL")
///     .expect_or_drop("recent", "day >= '2020-01-01'")
///     .property("quality", "silver");
/// let pipeline = PipelineBuilder::new()
///     .table(orders)
///     .build_with(&Support::everything())
///     .expect("a valid pipeline");
/// assert_eq!(pipeline.datasets[0].table().map(|table| table.expectations.len()), Some(2));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    declaration: TableDeclaration,
    constraints: Vec<String>,
}

impl Table {
    /// A table of which nothing but the name is declared.
    pub fn new(name: &str) -> Self {
        TableDeclaration { name: name.to_owned(), ..TableDeclaration::default() }.into()
    }

    /// Declares a nullable column. Without columns the flows decide.
    #[must_use]
    pub fn column(mut self, name: &str, data_type: SqlType) -> Self {
        self.declaration.columns.push(ColumnDef::new(name, data_type));
        self
    }

    /// `CONSTRAINT name EXPECT (condition)`: rows that violate it are kept and counted.
    #[must_use]
    pub fn expect(self, name: &str, condition: &str) -> Self {
        self.constraint(name, condition, OnViolation::Keep)
    }

    /// `.. ON VIOLATION DROP ROW`: rows that violate it are left out and counted.
    #[must_use]
    pub fn expect_or_drop(self, name: &str, condition: &str) -> Self {
        self.constraint(name, condition, OnViolation::DropRow)
    }

    /// `.. ON VIOLATION FAIL UPDATE`: a row that violates it fails the flow.
    #[must_use]
    pub fn expect_or_fail(self, name: &str, condition: &str) -> Self {
        self.constraint(name, condition, OnViolation::FailUpdate)
    }

    fn constraint(mut self, name: &str, condition: &str, on_violation: OnViolation) -> Self {
        self.constraints.push(constraint_sql(&quoted(name), condition, on_violation));
        self
    }

    /// One of `TBLPROPERTIES`.
    #[must_use]
    pub fn property(mut self, key: &str, value: &str) -> Self {
        self.declaration.properties.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Describes the table.
    #[must_use]
    pub fn comment(mut self, comment: &str) -> Self {
        self.declaration.comment = Some(comment.to_owned());
        self
    }

    pub(super) fn name(&self) -> &str {
        &self.declaration.name
    }

    /// The table's statement, without a query; `kind` is `STREAMING TABLE` or `MATERIALIZED VIEW`.
    pub(super) fn sql(&self, kind: &str) -> String {
        table_sql(kind, &self.declaration, &self.constraints)
    }
}

impl From<TableDeclaration> for Table {
    fn from(declaration: TableDeclaration) -> Self {
        Self { declaration, constraints: Vec::new() }
    }
}

impl From<&str> for Table {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl SinkDefinition {
    /// A sink without options; formats are `json`, `parquet`, `delta` and [`SinkDefinition::FOREACH_BATCH`].
    pub fn new(name: &str, format: &str) -> Self {
        Self {
            name: name.to_owned(),
            format: format.to_lowercase(),
            options: std::collections::BTreeMap::new(),
            comment: None,
            span: Span::default(),
        }
    }

    /// The same sink with an option.
    #[must_use]
    pub fn option(mut self, key: &str, value: &str) -> Self {
        self.options.insert(key.to_owned(), value.to_owned());
        self
    }

    /// The same sink with a comment.
    #[must_use]
    pub fn described(mut self, comment: &str) -> Self {
        self.comment = Some(comment.to_owned());
        self
    }
}
