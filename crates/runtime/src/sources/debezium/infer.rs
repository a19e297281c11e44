//! Which columns do records have whose columns were not declared?
//!
//! Records with a schema say it themselves; what several of them say is put together, the wider of two numbers wins. Of records
//! without one the rows are looked at as those of any JSON file.

use std::{collections::BTreeSet, io::Cursor, sync::Arc};

use arrow_schema::{DataType, FieldRef, Schema};

use super::{Envelope, Problem, Rows};
use crate::{
    error::{Error, ErrorKind, Result},
    sources::json::{Json, write_object},
};

impl Envelope {
    /// The columns of the rows of these records, without the envelope's own. At most `most` lines are looked at.
    ///
    /// # Errors
    /// `Data` for records that can't be read, or that disagree.
    pub(in crate::sources) fn infer(&self, content: &[u8], most: usize, name: &str) -> Result<Schema> {
        let nothing = Schema::empty();
        let mut rows = Rows::new(self, &nothing);
        let mut told: Option<Schema> = None;
        let mut untold = String::new();
        for (line, bytes) in content.split(|byte| *byte == b'\n').enumerate().take(most) {
            let refused = |problem: &Problem| problem.error(bytes).with("file", name).with("line", line + 1);
            let text = std::str::from_utf8(bytes).map_err(|_| refused(&Problem::not_utf8()))?.trim();
            if text.is_empty() {
                continue;
            }
            let before = untold.len();
            rows.record(&mut untold, text).map_err(|problem| refused(&problem))?;
            if let Some(connect) = rows.last_schema() {
                untold.truncate(before);
                let schema = connect.row_schema();
                if told.as_ref() != Some(&schema) {
                    told = Some(match told {
                        None => schema,
                        Some(known) => merge(&known, &schema)
                            .map_err(|error| error.with("file", name).with("line", line + 1))?,
                    });
                }
            } else {
                untold.push('\n');
            }
        }
        let mut seen = Schema::empty();
        if !untold.is_empty() {
            let records = self.without_metadata(&untold);
            (seen, _) = arrow_json::reader::infer_json_schema(Cursor::new(records), None).map_err(|e| {
                Error::new(ErrorKind::Data, "the columns of the records can't be found out")
                    .with("file", name)
                    .because(e)
            })?;
        }
        match told {
            None => Ok(seen),
            Some(told) => {
                let known: BTreeSet<&String> = told.fields().iter().map(|field| field.name()).collect();
                let more = seen.fields().iter().filter(|field| !known.contains(field.name()));
                Ok(Schema::new(told.fields().iter().chain(more).cloned().collect::<Vec<_>>()))
            }
        }
    }

    /// Rows as they are written, less the envelope's columns.
    fn without_metadata(&self, rows: &str) -> String {
        let mut out = String::new();
        for line in rows.lines() {
            let Ok(row) = Json::of(line) else { continue };
            let own = row.members().iter().filter(|(name, _)| !self.is_metadata(name));
            write_object(&mut out, own);
            out.push('\n');
        }
        out
    }
}

/// The columns of `a`, then those that only `b` has; of a column in both the wider type.
fn merge(a: &Schema, b: &Schema) -> Result<Schema> {
    let mut fields: Vec<FieldRef> = Vec::new();
    for field in a.fields() {
        fields.push(match b.field_with_name(field.name()) {
            Ok(other) => widened(field, other.data_type())?,
            Err(_) => Arc::clone(field),
        });
    }
    let more = b.fields().iter().filter(|field| a.field_with_name(field.name()).is_err());
    fields.extend(more.cloned());
    Ok(Schema::new(fields))
}

fn widened(field: &FieldRef, other: &DataType) -> Result<FieldRef> {
    if crate::types::is_lossless(other, field.data_type()) {
        return Ok(Arc::clone(field));
    }
    if crate::types::is_lossless(field.data_type(), other) {
        return Ok(Arc::new(field.as_ref().clone().with_data_type(other.clone())));
    }
    Err(Error::new(ErrorKind::Data, "the records disagree about a column: declare a schema")
        .with("column", field.name())
        .with("type", field.data_type())
        .with("and", other))
}
