//! Flows that append, update or compare snapshots, as a Rust program writes them.

use strandline_cdc_core::spec::{ColumnSelection, StoredAs};

use super::head::{FlowNames, Head, head_methods, once_method};
use crate::{name::list, print::selection_sql};

/// A flow that appends the rows of a query.
#[derive(Debug, Clone)]
pub struct AppendFlow {
    pub(super) head: Head,
    query: String,
}

impl AppendFlow {
    /// Appends the rows of `query` to `target`.
    pub fn new(target: &str, query: &str) -> Self {
        Self { head: Head::new(target), query: query.to_owned() }
    }

    head_methods!();

    once_method!();

    /// The flow's statement.
    pub(super) fn sql(&self) -> String {
        let Self { head, query } = self;
        format!("{} INSERT INTO{} {} BY NAME {query}", head.sql(), head.once_sql(), head.target_sql())
    }
}

/// A flow that writes the rows of a query that changed into a sink.
#[derive(Debug, Clone)]
pub struct UpdateFlow {
    pub(super) head: Head,
    query: String,
}

impl UpdateFlow {
    /// Writes the rows of `query` into the sink `target`.
    pub fn new(target: &str, query: &str) -> Self {
        Self { head: Head::new(target), query: query.to_owned() }
    }

    head_methods!();

    /// The flow's statement.
    pub(super) fn sql(&self) -> String {
        let Self { head, query } = self;
        format!("{} UPDATE INTO {} BY NAME {query}", head.sql(), head.target_sql())
    }
}

/// A flow that takes complete images of a source and applies what differs.
///
/// ```
/// use strandline_pipeline_sql::{PipelineBuilder, SnapshotFlow, SnapshotSource, Support};
///
/// let flow = SnapshotFlow::new(
///     "customers",
///     "SELECT * FROM exports WHERE day = (SELECT day FROM current_snapshot_version())",
/// )
/// .version("SELECT min(day) AS day FROM exports WHERE day > (SELECT day FROM last_snapshot_version())")
/// .keys(["id"]);
/// let pipeline = PipelineBuilder::new()
///     .streaming_table("customers")
///     .snapshot_flow(flow)
///     .snapshot_flow(SnapshotFlow::callback("stock").keys(["sku"]))
///     .build_with(&Support::everything())
///     .expect("a valid pipeline");
/// assert_eq!(pipeline.flows.len(), 2);
/// ```
#[derive(Debug, Clone)]
pub struct SnapshotFlow {
    pub(super) head: Head,
    image: Option<String>,
    version: Option<String>,
    keys: Vec<String>,
    clauses: Vec<String>,
}

impl SnapshotFlow {
    /// Compares the rows of `query` with what `target` shows.
    pub fn new(target: &str, query: &str) -> Self {
        Self { image: Some(query.to_owned()), ..Self::callback(target) }
    }

    /// Compares images that code of the program gives, each with its version.
    pub fn callback(target: &str) -> Self {
        Self { head: Head::new(target), image: None, version: None, keys: Vec::new(), clauses: Vec::new() }
    }

    head_methods!();

    once_method!();

    /// `WITH VERSION (query)`: chooses the version of the next image.
    #[must_use]
    pub fn version(mut self, query: &str) -> Self {
        self.version = Some(query.to_owned());
        self
    }

    /// The columns that identify a row.
    #[must_use]
    pub fn keys<N: Into<String>>(mut self, columns: impl IntoIterator<Item = N>) -> Self {
        self.keys.extend(columns.into_iter().map(Into::into));
        self
    }

    /// `STORED AS ..`.
    #[must_use]
    pub fn stored_as(mut self, shape: StoredAs) -> Self {
        self.clauses.push(format!("STORED AS {shape}"));
        self
    }

    /// `TRACK HISTORY ON ..`.
    #[must_use]
    pub fn track_history(mut self, columns: &ColumnSelection) -> Self {
        self.clauses.extend(selection_sql(columns).map(|columns| format!("TRACK HISTORY ON {columns}")));
        self
    }

    /// The flow's statement.
    pub(super) fn sql(&self) -> String {
        let (once, target) = (self.head.once_sql(), self.head.target_sql());
        let mut lines = vec![format!("{} AUTO CDC{once} INTO {target}", self.head.sql())];
        lines.push(match &self.image {
            Some(query) => format!("FROM SNAPSHOT ({query}\n)"),
            None => "FROM SNAPSHOT CALLBACK".to_owned(),
        });
        lines.extend(self.version.as_ref().map(|query| format!("WITH VERSION ({query}\n)")));
        lines.push(format!("KEYS {}", list(&self.keys)));
        lines.extend(self.clauses.iter().cloned());
        lines.join("\n")
    }
}
