//! Which names are places of tables?
//!
//! ``delta.`/data/t` `` is the table in that folder: a format without quotes, and a path in backquotes.

use std::ops::Range;

use crate::{PathTable, error::Problem};

/// What Spark reads so. Only names of tables with versions make sense for us; files have `read_files`.
const FILE_FORMATS: &[&str] = &["avro", "binaryfile", "csv", "json", "orc", "parquet", "text", "xml"];
const TABLE_FORMATS: &[&str] = &["hudi", "iceberg"];

/// A part of a name, and whether it was quoted.
pub(super) type Part = (String, bool);

/// The table that a name of these parts places; none for a name like others.
pub(super) fn table(parts: &[Part], range: &Range<usize>) -> Result<Option<PathTable>, Problem> {
    let [(format, false), (path, true)] = parts else { return Ok(None) };
    let format = format.to_lowercase();
    let known = |formats: &[&str]| path.contains('/') && formats.contains(&format.as_str());
    let at = range.clone();
    if format == "delta" {
        if path.is_empty() {
            return Err(
                Problem::new(at, "the path of a table is empty").help("write delta.`/folder/of/table`")
            );
        }
        Ok(Some(PathTable { format, path: path.clone() }))
    } else if known(FILE_FORMATS) {
        Err(Problem::new(at, format!("not supported yet: {format} files as a table"))
            .help(format!("write read_files('{path}', format => '{format}')")))
    } else if known(TABLE_FORMATS) {
        Err(Problem::new(at, format!("not supported yet: reading {format} tables by their path")))
    } else {
        Ok(None)
    }
}
