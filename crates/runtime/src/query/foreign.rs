//! Tables that a pipeline reads and does not keep: by their place, ``delta.`/path/to/table` ``.

use std::{collections::BTreeMap, sync::Arc};

use strandline_pipeline_sql::{DatasetDefinition, FlowQuery, InputKind, PathTable, PipelineDefinition};
use strandline_table_formats::contract::{Table, TableFormat, TableSnapshot};

use super::{SourceInput, TableOptions, collect_inputs, view_read};
use crate::{
    error::{Error, ErrorKind, Result},
    sources::StreamOptions,
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
    let (mut streams, mut all) = (Vec::new(), Vec::new());
    collect_inputs(definition, query, &mut streams, &mut all, 0)?;
    let mut tables = BTreeMap::new();
    for input in all.iter().filter(|input| !streams.contains(input)) {
        let SourceInput::Foreign(table, _) = input else { continue };
        let name = name_of(table);
        if !tables.contains_key(&name) {
            tables.insert(name, open(format, table).await?.snapshot().await?);
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

/// Whether the query, or a view behind it, reads the table as a stream.
fn streams(definition: &PipelineDefinition, query: &FlowQuery, table: &str, depth: usize) -> bool {
    depth <= super::DEEPEST_VIEW
        && query.inputs.iter().any(|input| match view_read(definition, input) {
            Some(view) => streams(definition, view, table, depth + 1),
            None => input.streaming && matches!(&input.kind, InputKind::Dataset(name) if name == table),
        })
}
