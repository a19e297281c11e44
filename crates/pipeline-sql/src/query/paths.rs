//! Which names are places of tables?
//!
//! ``delta.`/data/t` `` is the table in that folder: a format without quotes, and a path in backquotes. With a format of
//! files it is another spelling of `read_files`.

use std::{collections::BTreeMap, ops::Range};

use super::InputKind;
use crate::{OptionValue, PathTable, ReadFiles, error::Problem};

const FILE_FORMATS: &[&str] = &["avro", "binaryfile", "csv", "json", "orc", "parquet", "text", "xml"];
const TABLE_FORMATS: &[&str] = &["hudi", "iceberg"];

/// A part of a name, and whether it was quoted.
pub(super) type Part = (String, bool);

/// What lies in the place that these parts name; none for a name like others.
pub(super) fn input(parts: &[Part], range: &Range<usize>) -> Result<Option<InputKind>, Problem> {
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
        Ok(Some(InputKind::Table(PathTable { format, path: path.clone() })))
    } else if known(FILE_FORMATS) {
        let options = BTreeMap::from([("format".to_owned(), OptionValue::Text(format))]);
        Ok(Some(InputKind::ReadFiles(ReadFiles { path: path.clone(), options, schema: None })))
    } else if known(TABLE_FORMATS) {
        Err(Problem::new(at, format!("not supported yet: reading {format} tables by their path"))
            .help("delta tables can be read so; files have read_files('path', format => ..)"))
    } else {
        Ok(None)
    }
}
