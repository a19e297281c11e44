//! What does a query read that is read whole, rather than batch by batch?
//!
//! The query of a materialized view, the image of a snapshot and the query of its version see all of their inputs as they
//! are at that moment: tables of the pipeline, files, tables elsewhere; none of them or several.

use std::{collections::BTreeMap, sync::Arc};

use arrow_schema::SchemaRef;
use datafusion::catalog::TableProvider;
use strandline_pipeline_sql::{FlowQuery, PipelineDefinition};
use strandline_table_formats::contract::TableFormat;

use super::{Inputs, SourceInput, collect_inputs, foreign, wants_metadata};
use crate::{
    analysis::with_metadata,
    error::{Error, ErrorKind, Result},
    relation::{self, SnapshotTable},
    sources::{FileOptions, FileSource},
};

/// Everything that some queries read whole, with its columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Whole {
    inputs: Vec<(SourceInput, SchemaRef)>,
}

impl Whole {
    /// The inputs of `queries`, those behind views included. `tables` are the pipeline's own, as far as they are known.
    ///
    /// # Errors
    /// `Definition` for a table whose columns are not known, or files that no columns can be inferred from; `Unsupported`
    /// for what has no end, such as a topic.
    pub(crate) async fn of(
        definition: &PipelineDefinition,
        queries: impl IntoIterator<Item = &FlowQuery>,
        tables: &BTreeMap<String, SchemaRef>,
        format: &dyn TableFormat,
    ) -> Result<Self> {
        let (mut all, mut with_files) = (Vec::new(), false);
        for query in queries {
            with_files |= wants_metadata(definition, query);
            collect_inputs(definition, query, &mut Vec::new(), &mut all, 0)?;
        }
        let mut inputs: Vec<(SourceInput, SchemaRef)> = Vec::new();
        for input in all {
            if inputs.iter().all(|(known, _)| *known != input) {
                let columns = columns_of(&input, tables, format).await?;
                let hidden = with_files && matches!(input, SourceInput::Files(_));
                let columns = if hidden { with_metadata(&columns) } else { columns };
                inputs.push((input, columns));
            }
        }
        Ok(Self { inputs })
    }

    /// These inputs without rows: enough to find out which columns a query has.
    pub(crate) fn columns_only(&self) -> Result<Inputs> {
        let empty = |(input, columns): &(SourceInput, SchemaRef)| {
            Ok((input.clone(), relation::columns_only(Arc::clone(columns))?))
        };
        Ok(Inputs { whole: self.inputs.iter().map(empty).collect::<Result<_>>()?, ..Inputs::none() })
    }

    /// These inputs as they are now.
    ///
    /// # Errors
    /// `NotFound` for a table or a folder that does not exist: that is not the same as one without rows.
    pub(crate) async fn read(&self, format: &dyn TableFormat) -> Result<Inputs> {
        let mut whole = Vec::new();
        for (input, columns) in &self.inputs {
            let rows: Arc<dyn TableProvider> = match input {
                SourceInput::Files(call) => {
                    let declared = Some(Arc::clone(columns));
                    let options = FileOptions::new(call)?.of_whole();
                    let files = FileSource::open(&call.path, options, declared).await?;
                    relation::everything(Arc::new(files))?
                }
                SourceInput::Table(name, _) => {
                    let table = format.open(name).await?.ok_or_else(|| {
                        Error::new(ErrorKind::NotFound, "a table that the query reads does not exist yet")
                            .with("table", name)
                    })?;
                    Arc::new(SnapshotTable::new(table.snapshot().await?))
                }
                SourceInput::Foreign(table, _) => {
                    let table = foreign::open(format, table).await?;
                    Arc::new(SnapshotTable::new(table.snapshot().await?))
                }
                SourceInput::Kafka(_) | SourceInput::Whole => return Err(unreadable(input)),
            };
            whole.push((input.clone(), rows));
        }
        Ok(Inputs { whole, ..Inputs::none() })
    }
}

async fn columns_of(
    input: &SourceInput,
    tables: &BTreeMap<String, SchemaRef>,
    format: &dyn TableFormat,
) -> Result<SchemaRef> {
    match input {
        SourceInput::Files(call) => FileSource::columns(call, None).await,
        SourceInput::Table(name, _) => tables.get(name).cloned().ok_or_else(|| {
            Error::new(
                ErrorKind::Definition,
                "a table that the query reads has no flow that could be analysed",
            )
            .with("table", name)
        }),
        SourceInput::Foreign(table, _) => Ok(foreign::open(format, table).await?.snapshot().await?.schema()),
        SourceInput::Kafka(_) | SourceInput::Whole => Err(unreadable(input)),
    }
}

fn unreadable(input: &SourceInput) -> Error {
    match input {
        SourceInput::Kafka(_) => {
            Error::new(ErrorKind::Unsupported, "a topic has no end, so it can't be read whole")
                .help("load it into a table of the pipeline and read that")
        }
        SourceInput::Files(_) | SourceInput::Table(..) | SourceInput::Foreign(..) | SourceInput::Whole => {
            Error::new(ErrorKind::Internal, "an input that is read whole is no input")
        }
    }
}
