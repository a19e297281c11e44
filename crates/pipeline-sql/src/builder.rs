//! How does a Rust program define a pipeline?
//!
//! With the same fragments of SQL for queries and expressions, and values for the rest. The builder writes the pipeline
//! down and parses it, so both ways give the same definitions and the same errors (G-05).

use strandline_cdc_core::spec::{ColumnSelection, StoredAs};

use crate::{
    DatasetDefinition, PipelineDefinition, SourceFile, SqlError, Support, TableDeclaration,
    name::{list, literal, qualified, quoted},
    parse_pipeline_with,
    print::selection_sql,
};

/// Collects the parts of a pipeline.
///
/// ```
/// use strandline_pipeline_sql::{AppendFlow, AutoCdcFlow, PipelineBuilder};
///
/// let pipeline = PipelineBuilder::new()
///     .streaming_table("raw")
///     .streaming_table("customers")
///     .append_flow(AppendFlow::new("raw", "SELECT * FROM STREAM read_files('in', format => 'json')"))
///     .auto_cdc_flow(AutoCdcFlow::new("customers", "STREAM(raw)").keys(["id"]).sequence_by("ts"))
///     .build()
///     .expect("a valid pipeline");
/// assert_eq!(pipeline.flows[1].name, "customers");
/// ```
#[derive(Debug, Clone, Default)]
pub struct PipelineBuilder {
    files: Vec<SourceFile>,
}

impl PipelineBuilder {
    /// A pipeline without parts.
    pub fn new() -> Self {
        Self::default()
    }

    /// `SET key = value`.
    #[must_use]
    pub fn set(self, key: &str, value: &str) -> Self {
        self.part(format!("setting {key}"), format!("SET {key} = {}", literal(value)))
    }

    /// A streaming table of which nothing but the name is declared.
    #[must_use]
    pub fn streaming_table(self, name: &str) -> Self {
        self.table(TableDeclaration { name: name.to_owned(), ..TableDeclaration::default() })
    }

    /// A streaming table.
    #[must_use]
    pub fn table(self, table: TableDeclaration) -> Self {
        let name = format!("table {}", table.name);
        let datasets = vec![DatasetDefinition::StreamingTable(table)];
        let text = PipelineDefinition { datasets, ..PipelineDefinition::default() }.to_sql();
        self.part(name, text)
    }

    /// A view over a query.
    #[must_use]
    pub fn view(self, name: &str, query: &str) -> Self {
        self.part(format!("view {name}"), format!("CREATE VIEW {} AS {query}", qualified(name)))
    }

    /// A view that only this pipeline sees.
    #[must_use]
    pub fn temporary_view(self, name: &str, query: &str) -> Self {
        self.part(format!("view {name}"), format!("CREATE TEMPORARY VIEW {} AS {query}", qualified(name)))
    }

    /// A flow that appends rows.
    #[must_use]
    pub fn append_flow(self, flow: AppendFlow) -> Self {
        let AppendFlow { head, query } = flow;
        let text =
            format!("{} INSERT INTO{} {} BY NAME {query}", head.sql(), head.once_sql(), head.target_sql());
        self.part(format!("flow {}", head.name()), text)
    }

    /// A flow that applies changes.
    #[must_use]
    pub fn auto_cdc_flow(self, flow: AutoCdcFlow) -> Self {
        let AutoCdcFlow { head, source, keys, clauses } = flow;
        let (once, target, keys) = (head.once_sql(), head.target_sql(), list(&keys));
        let start = format!("{} AUTO CDC{once} INTO {target} FROM {source} KEYS {keys}", head.sql());
        let text = std::iter::once(start).chain(clauses).collect::<Vec<_>>().join("\n");
        self.part(format!("flow {}", head.name()), text)
    }

    /// Parts written as SQL statements.
    #[must_use]
    pub fn sql(self, name: &str, text: &str) -> Self {
        self.part(name.to_owned(), text.to_owned())
    }

    fn part(mut self, name: String, text: String) -> Self {
        self.files.push(SourceFile::new(name, text));
        self
    }

    /// The definition of all parts, for what this release executes.
    ///
    /// # Errors
    /// As [`crate::parse_pipeline`]; the file of an error is the part that it is about.
    pub fn build(self) -> Result<PipelineDefinition, Vec<SqlError>> {
        self.build_with(&Support::released())
    }

    /// The definition of all parts, refusing what `support` lacks.
    ///
    /// # Errors
    /// As [`PipelineBuilder::build`].
    pub fn build_with(self, support: &Support) -> Result<PipelineDefinition, Vec<SqlError>> {
        parse_pipeline_with(&self.files, support)
    }
}

/// What flows of both kinds have.
#[derive(Debug, Clone)]
struct Head {
    target: String,
    name: Option<String>,
    once: bool,
    depends_on: Vec<String>,
    comment: Option<String>,
}

impl Head {
    fn new(target: &str) -> Self {
        Self { target: target.to_owned(), name: None, once: false, depends_on: Vec::new(), comment: None }
    }

    fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.target)
    }

    fn once_sql(&self) -> &'static str {
        if self.once { " ONCE" } else { "" }
    }

    fn target_sql(&self) -> String {
        qualified(&self.target)
    }

    /// The beginning of the flow's statement, through AS.
    fn sql(&self) -> String {
        let mut words = vec![format!("CREATE FLOW {}", quoted(self.name()))];
        words.extend(self.comment.as_ref().map(|comment| format!("COMMENT {}", literal(comment))));
        if !self.depends_on.is_empty() {
            let names: Vec<String> = self.depends_on.iter().map(|name| qualified(name)).collect();
            words.push(format!("DEPENDS ON ({})", names.join(", ")));
        }
        words.push("AS".to_owned());
        words.join(" ")
    }
}

macro_rules! head_methods {
    () => {
        /// Names the flow; without this it has its target's name.
        #[must_use]
        pub fn named(mut self, name: impl Into<String>) -> Self {
            self.head.name = Some(name.into());
            self
        }

        /// Runs once, then rests until a full refresh.
        #[must_use]
        pub fn once(mut self) -> Self {
            self.head.once = true;
            self
        }

        /// Starts only after these flows have ended well.
        #[must_use]
        pub fn depends_on<N: Into<String>>(mut self, flows: impl IntoIterator<Item = N>) -> Self {
            self.head.depends_on.extend(flows.into_iter().map(Into::into));
            self
        }

        /// Describes the flow.
        #[must_use]
        pub fn comment(mut self, comment: impl Into<String>) -> Self {
            self.head.comment = Some(comment.into());
            self
        }
    };
}

/// A flow that appends the rows of a query.
#[derive(Debug, Clone)]
pub struct AppendFlow {
    head: Head,
    query: String,
}

impl AppendFlow {
    /// Appends the rows of `query` to `target`.
    pub fn new(target: &str, query: &str) -> Self {
        Self { head: Head::new(target), query: query.to_owned() }
    }

    head_methods!();
}

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
