//! Flows that append, update or compare snapshots, as a Rust program writes them.

use strandline_cdc_core::spec::{ColumnSelection, StoredAs};

use super::head::{FlowNames, Head, head_methods, once_method};
use crate::{name::list, print::selection_sql};

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

    once_method!();

    /// The flow's name and its statement.
    pub(super) fn into_statement(self) -> (String, String) {
        let Self { head, query } = self;
        let once = head.once_sql();
        let text = format!("{} INSERT INTO{once} {} BY NAME {query}", head.sql(), head.target_sql());
        (head.into_name(), text)
    }
}

/// A flow that writes the rows of a query that changed into a sink.
#[derive(Debug, Clone)]
pub struct UpdateFlow {
    head: Head,
    query: String,
}

impl UpdateFlow {
    /// Writes the rows of `query` into the sink `target`.
    pub fn new(target: &str, query: &str) -> Self {
        Self { head: Head::new(target), query: query.to_owned() }
    }

    head_methods!();

    /// The flow's name and its statement.
    pub(super) fn into_statement(self) -> (String, String) {
        let Self { head, query } = self;
        let text = format!("{} UPDATE INTO {} BY NAME {query}", head.sql(), head.target_sql());
        (head.into_name(), text)
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
    head: Head,
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

    /// The flow's name and its statement.
    pub(super) fn into_statement(self) -> (String, String) {
        let Self { head, image, version, keys, clauses } = self;
        let mut lines =
            vec![format!("{} AUTO CDC{} INTO {}", head.sql(), head.once_sql(), head.target_sql())];
        // The parenthesis has a line of its own: a query may end with a comment.
        lines.push(match image {
            Some(query) => format!("FROM SNAPSHOT ({query}\n)"),
            None => "FROM SNAPSHOT CALLBACK".to_owned(),
        });
        lines.extend(version.map(|query| format!("WITH VERSION ({query}\n)")));
        lines.push(format!("KEYS {}", list(&keys)));
        lines.extend(clauses);
        (head.into_name(), lines.join("\n"))
    }
}
