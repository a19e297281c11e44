//! Which columns do records have whose columns were not declared?
//!
//! Records with a schema say it themselves; what several of them say is put together, the wider of two numbers wins. Of records
//! without one the rows are looked at as those of any JSON file: a number that 64 bits don't hold is one of 38 digits, and never a rounded one.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef, Schema};

use super::{Envelope, Problem, Rows};
use crate::{
    error::{Error, ErrorKind, Result},
    sources::{json::Json, kinds::Fields},
};

/// What the rows of records say of their columns, record by record; the envelope's own columns are not among them.
pub(in crate::sources) struct Found<'e> {
    envelope: &'e Envelope,
    rows: Rows<'e>,
    /// What schemas say.
    told: Option<Schema>,
    /// What rows say that come without one.
    seen: Fields,
}

impl<'e> Found<'e> {
    /// Of no record yet; `seen` is what rows of others said, `nothing` a schema without columns.
    pub(in crate::sources) fn new(envelope: &'e Envelope, nothing: &'e Schema, seen: Fields) -> Self {
        Self { envelope, rows: Rows::new(envelope, nothing), told: None, seen }
    }

    /// Takes what a record says.
    ///
    /// # Errors
    /// `Data` for a record that can't be read, or that disagrees with those before.
    pub(in crate::sources) fn record(&mut self, record: &[u8]) -> Result<()> {
        let refused = |problem: &Problem| problem.error(record);
        let text = std::str::from_utf8(record).map_err(|_| refused(&Problem::not_utf8()))?.trim();
        if text.is_empty() {
            return Ok(());
        }
        let mut rows = String::new();
        self.rows.record(&mut rows, text).map_err(|problem| refused(&problem))?;
        let Some(connect) = self.rows.last_schema() else {
            for row in rows.lines() {
                let Ok(row) = Json::of(row) else { continue };
                let own = row.members().iter().filter(|(name, _)| !self.envelope.is_metadata(name));
                self.seen.record(own);
            }
            return Ok(());
        };
        let schema = connect.row_schema();
        if self.told.as_ref() != Some(&schema) {
            self.told = Some(match &self.told {
                None => schema,
                Some(known) => merge(known, &schema)?,
            });
        }
        Ok(())
    }

    /// The columns that schemas tell, and what is known of those that only rows tell.
    pub(in crate::sources) fn end(self) -> (Schema, Fields) {
        (self.told.unwrap_or_else(Schema::empty), self.seen)
    }

    /// All columns.
    #[cfg(any(test, feature = "kafka"))]
    pub(in crate::sources) fn columns(self) -> Schema {
        let (told, seen) = self.end();
        let more: Vec<FieldRef> =
            seen.columns(true).filter(|field| told.field_with_name(field.name()).is_err()).collect();
        Schema::new(told.fields().iter().cloned().chain(more).collect::<Vec<_>>())
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
