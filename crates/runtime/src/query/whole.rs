//! What does a query read that is read whole, rather than batch by batch?
//!
//! The query of a materialized view, the image of a snapshot and the query of its version see all of their inputs as they
//! are at that moment: tables of the pipeline, files, tables elsewhere; none of them or several.

use std::{collections::BTreeMap, sync::Arc};

use arrow_schema::SchemaRef;
use datafusion::catalog::TableProvider;
use serde::{Deserialize, Serialize};
use strandline_pipeline_sql::{FlowQuery, PipelineDefinition, ReadFiles};
use strandline_table_formats::contract::{TableFormat, TableSnapshot};

use super::{Inputs, SourceInput, foreign, inputs_of, wants_metadata};
use crate::{
    analysis::with_metadata,
    error::{Error, ErrorKind, Result},
    relation::{self, SnapshotTable},
    sources::{FileOptions, FileSource, Source},
};

/// Everything that some queries read whole, with its columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Whole {
    inputs: Vec<(SourceInput, SchemaRef)>,
}

/// Which state of an input was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum InputVersion {
    /// A table: what it is called, what tells it from another one of that name, and its version.
    Table { name: String, identity: String, version: u64 },
    /// Files: a digest of their list.
    Files { path: String, list: String },
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
            all.extend(inputs_of(definition, query)?);
        }
        let mut inputs: Vec<(SourceInput, SchemaRef)> = Vec::new();
        for input in all.into_iter().map(|input| input.source) {
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
                SourceInput::Files(call) => relation::everything(Arc::new(files(call, columns).await?))?,
                SourceInput::Table(name, _) => Arc::new(SnapshotTable::new(newest(format, name).await?)),
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

    /// Which state each of these inputs is in now.
    ///
    /// # Errors
    /// As [`Whole::read`].
    pub(crate) async fn versions(&self, format: &dyn TableFormat) -> Result<Vec<InputVersion>> {
        let mut versions = Vec::new();
        for (input, columns) in &self.inputs {
            versions.push(match input {
                SourceInput::Files(call) => InputVersion::Files {
                    path: call.path.clone(),
                    list: digest(&files(call, columns).await?.available().await?.to_string()),
                },
                SourceInput::Table(name, _) => {
                    let table = newest(format, name).await?;
                    let identity = table.identity().to_owned();
                    InputVersion::Table { name: name.clone(), identity, version: table.version().0 }
                }
                SourceInput::Foreign(table, _) => {
                    let found = foreign::open(format, table).await?.snapshot().await?;
                    let (name, identity) = (table.path.clone(), found.identity().to_owned());
                    InputVersion::Table { name, identity, version: found.version().0 }
                }
                SourceInput::Kafka(_) | SourceInput::Whole => return Err(unreadable(input)),
            });
        }
        Ok(versions)
    }
}

async fn files(call: &ReadFiles, columns: &SchemaRef) -> Result<FileSource> {
    FileSource::open(&call.path, FileOptions::new(call)?.of_whole(), Some(Arc::clone(columns))).await
}

async fn newest(format: &dyn TableFormat, name: &str) -> Result<Arc<dyn TableSnapshot>> {
    let table = format.open(name).await?.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "a table that the query reads does not exist yet").with("table", name)
    })?;
    Ok(table.snapshot().await?)
}

/// FNV-1a of 128 bits: enough to notice that a list of files is another one.
fn digest(text: &str) -> String {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let hash = text.bytes().fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    format!("{hash:032x}")
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
