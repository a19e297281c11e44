//! Tables that a pipeline reads and does not keep: by their place, ``delta.`/path/to/table` ``.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use arrow_schema::SchemaRef;
use strandline_pipeline_sql::{DatasetDefinition, FlowQuery, InputKind, PathTable, PipelineDefinition};
use strandline_table_formats::contract::{Table, TableFormat, TableSnapshot, with_change_columns};

use super::{SourceInput, TableOptions, inputs_of, view_read};
use crate::{
    error::{Error, ErrorKind, Result},
    sources::{Source, StreamOptions, TableSource},
};

/// The table's name in a query: no table of the pipeline has such a name.
pub(crate) fn name_of(table: &PathTable) -> String {
    format!("{}.`{}`", table.format, table.path)
}

/// Opens a table by its place.
///
/// # Errors
/// `NotFound` when there is none, `Unsupported` for a table with a feature that is not read.
pub(crate) async fn open(format: &dyn TableFormat, table: &PathTable) -> Result<Arc<dyn Table>> {
    if table.format != format.name() {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "a table by its path must have the format that the pipeline runs with",
        )
        .with("table", name_of(table))
        .with("format", format.name()));
    }
    let opened =
        format.open_path(&table.path).await.map_err(|e| Error::from(e).with("table", name_of(table)))?;
    opened.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "there is no table at the path that the flow reads")
            .with("table", name_of(table))
    })
}

/// The tables of others that a query reads whole beside its stream, as they are now, by [`name_of`].
///
/// # Errors
/// As for [`open`].
pub(crate) async fn read_whole(
    definition: &PipelineDefinition,
    query: &FlowQuery,
    format: &dyn TableFormat,
) -> Result<BTreeMap<String, Arc<dyn TableSnapshot>>> {
    let mut tables = BTreeMap::new();
    for input in inputs_of(definition, query)?.iter().filter(|input| !input.streaming) {
        let SourceInput::Foreign(table, _) = &input.source else { continue };
        let name = name_of(table);
        if let Entry::Vacant(new) = tables.entry(name) {
            new.insert(open(format, table).await?.snapshot().await?);
        }
    }
    Ok(tables)
}

/// The options of a table that is the source of a flow. A materialized view is computed anew in each update, so it is no
/// stream of appended rows.
///
/// # Errors
/// `Definition`.
pub(crate) fn stream_options(
    definition: &PipelineDefinition,
    query: &FlowQuery,
    table: &str,
    written: &TableOptions,
) -> Result<StreamOptions> {
    let options = StreamOptions::new(written).map_err(|error| error.with("table", table))?;
    let is_view = definition
        .datasets
        .iter()
        .any(|dataset| matches!(dataset, DatasetDefinition::MaterializedView(view) if view.name == table));
    if is_view && !options.change_feed && streams(definition, query, table, 0) {
        return Err(Error::new(
            ErrorKind::Definition,
            "a materialized view is computed anew in each update, so it can't be read as a stream of appended rows",
        )
        .with("view", table)
        .help("read its changes, STREAM(v) WITH (readChangeFeed = true); or read it whole, without STREAM, in another materialized view"));
    }
    Ok(options)
}

/// The columns of the pipeline's own tables, and of those of others that a query reads whole.
///
/// # Errors
/// As for [`open`].
pub(crate) async fn with_columns(
    definition: &PipelineDefinition,
    query: &FlowQuery,
    (known, format): (&BTreeMap<String, SchemaRef>, &dyn TableFormat),
) -> Result<BTreeMap<String, SchemaRef>> {
    let mut all = known.clone();
    for (name, snapshot) in read_whole(definition, query, format).await? {
        all.insert(name, snapshot.schema());
    }
    Ok(all)
}

/// The columns of a table that is the source of a flow, and whether it is read as a change feed. `known` are the columns of
/// the pipeline's own tables, and their format.
///
/// # Errors
/// `Definition` for options that make no sense, and as for [`open`].
pub(crate) async fn columns(
    definition: &PipelineDefinition,
    query: &FlowQuery,
    source: &SourceInput,
    (known, format): (&BTreeMap<String, SchemaRef>, &dyn TableFormat),
) -> Result<(SchemaRef, bool)> {
    match source {
        SourceInput::Foreign(table, written) => {
            let name = name_of(table);
            let options = stream_options(definition, query, &name, written)?;
            let source = TableSource::open_with(&name, open(format, table).await?, options).await?;
            Ok((source.schema(), options.change_feed))
        }
        SourceInput::Table(name, written) => {
            let feed = stream_options(definition, query, name, written)?.change_feed;
            let columns = known.get(name).ok_or_else(|| {
                Error::new(
                    ErrorKind::Definition,
                    "the table that the flow reads has no flow that could be analysed",
                )
                .with("table", name)
            })?;
            Ok((if feed { with_change_columns(columns)? } else { Arc::clone(columns) }, feed))
        }
        SourceInput::Files(_) | SourceInput::Kafka(_) | SourceInput::Whole => {
            Err(Error::new(ErrorKind::Internal, "the source of a flow is no table"))
        }
    }
}

/// Whether the query, or a view behind it, reads the table as a stream.
fn streams(definition: &PipelineDefinition, query: &FlowQuery, table: &str, depth: usize) -> bool {
    depth <= super::DEEPEST_VIEW
        && query.inputs.iter().any(|input| match view_read(definition, input) {
            Some(view) => streams(definition, view, table, depth + 1),
            None => input.streaming && matches!(&input.kind, InputKind::Dataset(name) if name == table),
        })
}
