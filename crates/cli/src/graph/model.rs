//! What is there to draw?

use std::path::{Component, Path, PathBuf};

use indicatif::HumanCount;
use strandline_runtime::{
    Status,
    definition::{DatasetDefinition, FlowDefinition, FlowKind, FlowQuery, InputKind, PipelineDefinition},
};

use crate::show::rows_of;

/// A pipeline as it is drawn. Places are indices.
pub(super) struct Drawn {
    pub(super) sources: Vec<String>,
    pub(super) datasets: Vec<Node>,
    pub(super) flows: Vec<DrawnFlow>,
}

/// A dataset.
pub(super) struct Node {
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) kind: &'static str,
    /// Where it stands, if that is known.
    pub(super) standing: String,
    /// What the query of a view reads.
    pub(super) reads: Vec<End>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Table,
    View,
    Sink,
}

/// Where an edge begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Source(usize),
    Dataset(usize),
}

pub(super) struct DrawnFlow {
    pub(super) name: String,
    pub(super) kind: String,
    /// Where it stands, if that is known.
    pub(super) standing: String,
    pub(super) reads: Vec<End>,
    /// The dataset that it writes.
    pub(super) writes: Option<usize>,
    /// The flows that it waits for.
    pub(super) after: Vec<usize>,
}

impl Drawn {
    pub(super) fn of(definition: &PipelineDefinition, status: &Status) -> Self {
        let mut drawn = Self { sources: Vec::new(), datasets: Vec::new(), flows: Vec::new() };
        drawn.datasets = definition.datasets.iter().map(|dataset| node(dataset, status)).collect();
        for (place, dataset) in definition.datasets.iter().enumerate() {
            if let DatasetDefinition::View(view) = dataset {
                let reads = drawn.reads([&view.query].into_iter());
                if let Some(node) = drawn.datasets.get_mut(place) {
                    node.reads = reads;
                }
            }
        }
        let place_of = |name: &String| definition.flows.iter().position(|flow| flow.name == *name);
        for flow in &definition.flows {
            let flow = DrawnFlow {
                name: flow.name.clone(),
                kind: kind(flow),
                standing: flow_standing(&flow.name, status),
                reads: drawn.reads(flow.queries()),
                writes: definition.datasets.iter().position(|dataset| dataset.name() == flow.target),
                after: flow.depends_on.iter().filter_map(place_of).collect(),
            };
            drawn.flows.push(flow);
        }
        drawn
    }

    /// The flows that write a dataset.
    pub(super) fn writers(&self, dataset: usize) -> Vec<&DrawnFlow> {
        self.flows.iter().filter(|flow| flow.writes == Some(dataset)).collect()
    }

    /// What is written where an edge begins.
    pub(super) fn name(&self, end: End) -> &str {
        match end {
            End::Source(place) => self.sources.get(place).map_or("", String::as_str),
            End::Dataset(place) => self.datasets.get(place).map_or("", |node| node.name.as_str()),
        }
    }

    fn reads<'a>(&mut self, queries: impl Iterator<Item = &'a FlowQuery>) -> Vec<End> {
        let mut ends = Vec::new();
        for input in queries.flat_map(|query| &query.inputs) {
            let end = match &input.kind {
                InputKind::Dataset(name) => {
                    self.datasets.iter().position(|node| node.name == *name).map(End::Dataset)
                }
                InputKind::ReadFiles(files) => Some(self.source(shown_path(&files.path))),
                InputKind::Table(table) => {
                    Some(self.source(format!("{} {}", table.format, shown_path(&table.path))))
                }
                InputKind::ReadKafka(kafka) => {
                    let topics = ["subscribe", "subscribePattern", "assign", "topic"];
                    let topic = topics.iter().find_map(|name| kafka.options.get(*name));
                    let topic = topic.map(ToString::to_string).unwrap_or_default();
                    Some(self.source(format!("kafka {}", topic.trim_matches('\'')).trim_end().to_owned()))
                }
                InputKind::LastSnapshotVersion | InputKind::CurrentSnapshotVersion => None,
            };
            ends.extend(end.filter(|end| !ends.contains(end)));
        }
        ends
    }

    fn source(&mut self, name: String) -> End {
        let place = self.sources.iter().position(|source| *source == name).unwrap_or_else(|| {
            self.sources.push(name);
            self.sources.len() - 1
        });
        End::Source(place)
    }
}

/// A path as seen from the working folder.
fn shown_path(path: &str) -> String {
    let plain = without_steps_up(Path::new(path));
    let here = std::path::absolute(".").ok();
    let below = here.as_ref().and_then(|here| plain.strip_prefix(here).ok());
    below.unwrap_or(&plain).to_string_lossy().into_owned()
}

/// `a/../b` is `b`, as it is written.
fn without_steps_up(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir && plain.file_name().is_some() {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    plain
}

fn node(dataset: &DatasetDefinition, status: &Status) -> Node {
    let (shape, kind) = match dataset {
        DatasetDefinition::StreamingTable(_) => (Shape::Table, "streaming table"),
        DatasetDefinition::MaterializedView(_) => (Shape::Table, "materialized view"),
        DatasetDefinition::View(view) if view.temporary => (Shape::View, "temporary view"),
        DatasetDefinition::View(_) => (Shape::View, "view"),
        DatasetDefinition::Sink(_) => (Shape::Sink, "sink"),
    };
    let table = status.tables.iter().find(|table| table.table == dataset.name());
    let standing = table.map(|table| format!("{} rows, version {}", HumanCount(table.rows), table.version));
    let name = dataset.name().to_owned();
    Node { name, shape, kind, standing: standing.unwrap_or_default(), reads: Vec::new() }
}

fn kind(flow: &FlowDefinition) -> String {
    let kind = match &flow.kind {
        FlowKind::Append { .. } => "append".to_owned(),
        FlowKind::Update { .. } => "update".to_owned(),
        FlowKind::Complete { .. } => "complete".to_owned(),
        FlowKind::AutoCdc(cdc) => format!("AUTO CDC, {}", cdc.options.stored_as),
        FlowKind::Snapshot(snapshot) => format!("AUTO CDC FROM SNAPSHOT, {}", snapshot.options.stored_as),
    };
    if flow.once { format!("{kind}, once") } else { kind }
}

fn flow_standing(flow: &str, status: &Status) -> String {
    let Some(standing) = status.flows.iter().find(|standing| standing.flow == flow) else {
        return String::new();
    };
    let mut parts: Vec<String> = standing.state.iter().cloned().collect();
    parts.extend(rows_of(standing).map(|rows| format!("{} rows in the last run", HumanCount(rows))));
    match (&standing.completed_at, &standing.last_done_at) {
        (Some(at), _) => parts.push(format!("completed {at}")),
        (None, Some(at)) => parts.push(format!("last batch {at}")),
        (None, None) => {}
    }
    parts.join(", ")
}
