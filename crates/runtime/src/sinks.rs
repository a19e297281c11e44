//! Where do rows go that leave the pipeline, and how often does each of them arrive?
//!
//! | sink | what it writes | how often |
//! | --- | --- | --- |
//! | `json`, `parquet` | a file a batch, named after flow and batch, that appears as a whole | exactly once |
//! | the format of the pipeline's tables | a table in a folder of its own, each batch in one stamped commit | exactly once |
//! | `foreachBatch` | what a Rust program does with it, see [`BatchSink`] | at least once, under a stable id |

mod code;
mod encode;
mod files;

pub use code::{BatchSink, ForeachBatch, SinkBatch, foreach_batch};
pub(crate) use files::{FileSink, FileSinkOptions};

use std::{collections::BTreeMap, fmt, sync::Arc};

use strandline_pipeline_sql::{DatasetDefinition, PipelineDefinition, SinkDefinition};

use crate::error::{Error, ErrorKind, Result};

/// Sinks of a Rust program, by name.
#[derive(Clone, Default)]
pub(crate) struct Registered(BTreeMap<String, Arc<dyn BatchSink>>);

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Registered {
    pub(crate) fn insert(&mut self, name: &str, sink: Arc<dyn BatchSink>) {
        self.0.insert(name.to_owned(), sink);
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn BatchSink>> {
        self.0.get(name).cloned()
    }
}

/// What a sink writes.
#[derive(Clone)]
pub(crate) enum SinkPlan {
    Code(Arc<dyn BatchSink>),
    Files(FileSinkOptions),
    /// A table in this folder.
    Table(String),
}

impl fmt::Debug for SinkPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(_) => f.write_str("Code"),
            Self::Files(options) => f.debug_tuple("Files").field(options).finish(),
            Self::Table(path) => f.debug_tuple("Table").field(path).finish(),
        }
    }
}

impl SinkPlan {
    /// Understands the sink that a flow writes; `None` where its target is none.
    ///
    /// # Errors
    /// `Definition` for options that are missing or unknown, and for code that nobody registered; `Unsupported` for a
    /// format that the pipeline can't write.
    pub(crate) fn of(
        definition: &PipelineDefinition,
        target: &str,
        registered: &Registered,
        table_format: &str,
    ) -> Result<Option<Self>> {
        let sink = definition.datasets.iter().find_map(|dataset| match dataset {
            DatasetDefinition::Sink(sink) if sink.name == target => Some(sink),
            _ => None,
        });
        sink.map(|sink| Self::new(sink, registered, table_format).map_err(|e| e.with("sink", &sink.name)))
            .transpose()
    }

    fn new(sink: &SinkDefinition, registered: &Registered, table_format: &str) -> Result<Self> {
        let mut options = Options::new(sink)?;
        let plan = match sink.format.as_str() {
            SinkDefinition::FOREACH_BATCH => Self::Code(registered.get(&sink.name).ok_or_else(|| {
                Error::new(ErrorKind::Definition, "no code is registered for a sink USING foreachBatch").help(format!(
                    "a Rust program registers it: project.with_sink(\"{}\", foreach_batch(|batch| async move {{ .. }}))",
                    sink.name
                ))
            })?),
            "json" | "parquet" => Self::Files(FileSinkOptions::new(&sink.format, &mut options)?),
            format if format == table_format => Self::Table(options.path()?),
            format => {
                let message = format!("a pipeline with tables of format {table_format} can't write a sink of this format");
                return Err(Error::new(ErrorKind::Unsupported, message)
                    .with("format", format)
                    .help(format!("formats of sinks are json, parquet, {table_format} and foreachBatch")));
            }
        };
        options.end()?;
        Ok(plan)
    }
}

/// Refuses code that is registered under a name that is no sink of the pipeline: a misspelt one, for example.
pub(crate) fn check_registered(definition: &PipelineDefinition, registered: &Registered) -> Result<()> {
    let is_sink = |name: &str| {
        definition.datasets.iter().any(|dataset| {
            matches!(dataset, DatasetDefinition::Sink(sink) if sink.name == name && sink.format == SinkDefinition::FOREACH_BATCH)
        })
    };
    match registered.0.keys().find(|name| !is_sink(name)) {
        None => Ok(()),
        Some(name) => Err(Error::new(
            ErrorKind::Definition,
            "code is registered for a sink that the pipeline does not have",
        )
        .with("sink", name)
        .help(format!("declare it: CREATE SINK {name} USING foreachBatch"))),
    }
}

/// Options of a sink; names go without regard to case.
pub(crate) struct Options<'a> {
    format: &'a str,
    left: BTreeMap<String, (&'a str, &'a str)>,
    known: Vec<&'static str>,
}

impl<'a> Options<'a> {
    fn new(sink: &'a SinkDefinition) -> Result<Self> {
        let mut left = BTreeMap::new();
        for (name, value) in &sink.options {
            if left.insert(name.to_lowercase(), (name.as_str(), value.as_str())).is_some() {
                return Err(Error::new(ErrorKind::Definition, "an option of a sink is given twice")
                    .with("option", name));
            }
        }
        Ok(Self { format: &sink.format, left, known: Vec::new() })
    }

    fn take(&mut self, name: &'static str) -> Option<&'a str> {
        self.known.push(name);
        self.left.remove(name).map(|(_, value)| value)
    }

    /// Where the sink lies.
    fn path(&mut self) -> Result<String> {
        let path = self.take("path").filter(|path| !path.trim().is_empty());
        path.map(str::to_owned).ok_or_else(|| {
            Error::new(ErrorKind::Definition, format!("a sink USING {} needs the option `path`", self.format))
                .help("OPTIONS ('path' = 'a folder'), relative to the pipeline's file")
        })
    }

    /// Refuses what is left.
    fn end(self) -> Result<()> {
        let Some((written, _)) = self.left.into_values().next() else { return Ok(()) };
        let known = if self.known.is_empty() { "none".to_owned() } else { self.known.join(", ") };
        let message = format!("a sink USING {} does not know the option `{written}`", self.format);
        Err(Error::new(ErrorKind::Definition, message).help(format!("known are: {known}")))
    }
}

#[cfg(test)]
#[path = "sinks/tests.rs"]
mod tests;
