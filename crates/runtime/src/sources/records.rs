//! How do records become rows, and what becomes of records that are not as expected?
//!
//! The one way from text to rows, whatever the text came in: lines of a file, items of a list, messages of a topic. A record
//! that can't be read is counted; the first of them is shown once the input is through.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, builder::StringBuilder};
use arrow_schema::{Field, Fields, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;

use super::{
    columns::{Columns, Look, Misfit, Rest},
    json::{Json, quoted},
};
use crate::error::{Error, ErrorKind, Result};

const BATCH_ROWS: usize = 8192;
/// Bytes of records in a batch, about.
const BATCH_BYTES: usize = 8 << 20;
const SAMPLE: usize = 160;

/// What is done with a field that no column has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Unknown {
    /// It is left out, or rescued where there is a rescue column.
    #[default]
    Rest,
    /// It becomes a column: the reader stops with an error that says so.
    Evolve,
    /// It is an error where it could be a column, or can't be rescued.
    Refuse,
}

/// What is done with a record that can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Malformed {
    /// It is an error, told when the input is through.
    #[default]
    Fail,
    /// It is left out.
    Drop,
    /// It goes to the rescue column as a whole.
    Keep,
}

/// How records are read.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordOptions {
    /// How names and texts are understood.
    pub(crate) look: Look,
    /// The column of the schema that takes what fits no other.
    pub(crate) rescue: Option<String>,
    /// Fields that no column has.
    pub(crate) unknown: Unknown,
    /// Records that can't be read.
    pub(crate) malformed: Malformed,
}

/// Where a record stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The file or topic, as messages call it.
    pub(crate) input: &'a str,
    /// What `at` counts: `line`, `offset`.
    pub(crate) unit: &'static str,
    /// Where in it.
    pub(crate) at: u64,
}

#[derive(Debug)]
struct Bad {
    input: String,
    unit: &'static str,
    at: u64,
    why: String,
    sample: String,
    count: usize,
}

/// Gathers records as rows.
#[derive(Debug)]
pub(crate) struct RecordDecoder {
    schema: SchemaRef,
    columns: Columns,
    rescue_at: Option<usize>,
    rescue: StringBuilder,
    options: RecordOptions,
    rest: Rest,
    keep: Vec<bool>,
    bytes: usize,
    bad: Option<Bad>,
}

impl RecordDecoder {
    /// Rows of `schema`, which has the rescue column where there is one.
    ///
    /// # Errors
    /// `Unsupported` for a column that is not read from text.
    pub(crate) fn new(schema: &SchemaRef, options: RecordOptions) -> Result<Self> {
        let rescue_at = options.rescue.as_deref().and_then(|name| schema.index_of(name).ok());
        let plain = schema.fields().iter().enumerate().filter(|(i, _)| Some(*i) != rescue_at);
        let plain: Fields = plain.map(|(_, field)| Arc::clone(field)).collect();
        Ok(Self {
            schema: Arc::clone(schema),
            columns: Columns::new(&plain)?,
            rescue_at,
            rescue: StringBuilder::new(),
            rest: Rest::new(rescue_at.is_some()),
            options,
            keep: Vec::new(),
            bytes: 0,
            bad: None,
        })
    }

    /// As it is, but fields of these names are left out.
    #[must_use]
    pub(crate) fn without(mut self, names: Vec<String>) -> Self {
        self.options.look.left_out = names;
        self
    }

    /// Takes the text of a record: a JSON object, or a list of them.
    ///
    /// # Errors
    /// `Data` for a field that is refused; `SchemaEvolved` for one that becomes a column.
    pub(crate) fn push(&mut self, text: &[u8], place: Place<'_>) -> Result<()> {
        self.bytes += text.len();
        match Json::parse(text) {
            Ok(Json::List(items, _)) => items.iter().try_for_each(|item| self.push_value(item, place)),
            Ok(value) => self.push_value(&value, place),
            Err(why) => {
                self.malformed(&String::from_utf8_lossy(text), why, place);
                Ok(())
            }
        }
    }

    /// Takes a record.
    ///
    /// # Errors
    /// As [`RecordDecoder::push`].
    pub(crate) fn push_value(&mut self, value: &Json<'_>, place: Place<'_>) -> Result<()> {
        let Some(fields) = value.fields() else {
            self.malformed(&value.raw(), format!("a record is an object, this is {}", value.kind()), place);
            return Ok(());
        };
        self.rest.clear();
        self.columns.append(fields, &self.options.look, &mut self.rest);
        self.judge(&|| value.raw().into_owned(), place)
    }

    /// Takes a record whose values are texts, by the place of their column; `further` have a name and no column, and say
    /// whether they could have one.
    ///
    /// # Errors
    /// As [`RecordDecoder::push`].
    pub(crate) fn push_texts<'t>(
        &mut self,
        texts: impl Iterator<Item = (usize, Option<&'t str>)>,
        further: impl Iterator<Item = (&'t str, &'t str, bool)>,
        sample: &dyn Fn() -> String,
        place: Place<'_>,
    ) -> Result<()> {
        self.rest.clear();
        self.columns.append_texts(texts, &self.options.look, &mut self.rest);
        for (name, text, new) in further.filter(|(name, ..)| !self.options.look.leaves_out(name)) {
            self.rest.unknown(name, &Json::Text(text.into()), new);
        }
        self.judge(sample, place)
    }

    /// Counts the bytes of a record that was taken otherwise.
    pub(crate) fn count(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// The columns that texts may go to, by place.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.schema
            .fields()
            .iter()
            .enumerate()
            .filter(|(i, _)| Some(*i) != self.rescue_at)
            .map(|(_, field)| field.name().as_str())
    }

    /// Whether a column is called so, be it in another case: of such names a table can have one only. The rescue column, and
    /// those that rows have from elsewhere, count as well.
    fn is_taken(&self, name: &str) -> bool {
        let known = self.schema.fields().iter().map(|field| field.name());
        known.chain(&self.options.look.left_out).any(|known| known.eq_ignore_ascii_case(name))
    }

    /// What becomes of the record that was appended last.
    fn judge(&mut self, sample: &dyn Fn() -> String, place: Place<'_>) -> Result<()> {
        for misfit in &self.rest.misfits {
            let Misfit::Unknown { column, new } = misfit else { continue };
            let is_new = || *new && !self.is_taken(column);
            match self.options.unknown {
                Unknown::Evolve if is_new() => return Err(new_field(column, place.input)),
                // What can't be rescued would be lost.
                Unknown::Refuse if self.rescue_at.is_none() || is_new() => {
                    return Err(refused_field(column, place.input).with(place.unit, place.at));
                }
                Unknown::Rest | Unknown::Evolve | Unknown::Refuse => {}
            }
        }
        let mismatch = self.rest.misfits.iter().find_map(|misfit| match misfit {
            Misfit::Mismatch { column, value, why } => Some((column, value, why)),
            Misfit::Unknown { .. } => None,
        });
        if let (Some((column, value, why)), None) = (mismatch, self.rescue_at) {
            let value: String = value.chars().take(SAMPLE).collect();
            let why = format!("{value} does not fit column `{column}`: {why}");
            self.keep.push(false);
            if self.options.malformed != Malformed::Drop {
                self.note(&sample(), why, place);
            }
            return Ok(());
        }
        self.keep.push(true);
        if self.rescue_at.is_none() {
            return Ok(());
        }
        if self.rest.rescued.is_empty() {
            self.rescue.append_null();
        } else {
            let rescued = rescued(&self.rest.rescued, place.input);
            self.bytes += rescued.len();
            self.rescue.append_value(rescued);
        }
        Ok(())
    }

    /// Takes a record that can't be read.
    pub(crate) fn malformed(&mut self, text: &str, why: String, place: Place<'_>) {
        match self.options.malformed {
            Malformed::Drop => {}
            Malformed::Keep if self.rescue_at.is_some() => {
                self.columns.append_null();
                self.keep.push(true);
                let rescued = rescued(&format!("\"_corrupt_record\":{}", quoted(text)), place.input);
                self.bytes += rescued.len();
                self.rescue.append_value(rescued);
            }
            Malformed::Fail | Malformed::Keep => self.note(text, why, place),
        }
    }

    fn note(&mut self, text: &str, why: String, place: Place<'_>) {
        if let Some(bad) = &mut self.bad {
            bad.count += 1;
            return;
        }
        self.bad = Some(Bad {
            input: place.input.to_owned(),
            unit: place.unit,
            at: place.at,
            why,
            sample: text.chars().take(SAMPLE).collect(),
            count: 1,
        });
    }

    /// The rows gathered so far, once they are many; `all` for however few there are.
    ///
    /// # Errors
    /// `Data` for a NULL in a column that is declared NOT NULL.
    pub(crate) fn batch(&mut self, all: bool) -> Result<Option<RecordBatch>> {
        let full = self.keep.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES;
        if self.keep.is_empty() || !(full || all) {
            return Ok(None);
        }
        self.bytes = 0;
        let keep = std::mem::take(&mut self.keep);
        let mut columns = self.columns.finish()?;
        if let Some(at) = self.rescue_at {
            columns.insert(at.min(columns.len()), Arc::new(self.rescue.finish()));
        }
        let fields = self.schema.fields().iter().zip(&columns);
        let fields = fields.map(|(field, column)| Field::new(field.name(), column.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let options = RecordBatchOptions::new().with_row_count(Some(keep.len()));
        let batch = RecordBatch::try_new_with_options(schema, columns, &options)?;
        let batch = if keep.contains(&false) {
            filter_record_batch(&batch, &BooleanArray::from(keep))?
        } else {
            batch
        };
        if self.bad.is_some() {
            // Nothing of the input will be taken: it is gone through to count what is bad.
            return Ok(None);
        }
        check_nulls(&self.schema, batch.columns())?;
        Ok(Some(batch))
    }

    /// Ends the input.
    ///
    /// # Errors
    /// `Data` where records could not be read: the first of them, and how many there are.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let Some(bad) = self.bad.take() else { return Ok(()) };
        let many = if bad.unit == "line" { "bad lines" } else { "bad records" };
        Err(Error::new(ErrorKind::Data, format!("a record can't be read: {}", bad.why))
            .with("file", bad.input)
            .with(bad.unit, bad.at)
            .with(many, bad.count)
            .with("sample", bad.sample)
            .help("mend or remove the file and run again: nothing of its batch was written"))
    }
}

/// What the rescue column holds of a record.
pub(crate) fn rescued(fields: &str, input: &str) -> String {
    format!("{{{fields},\"_file_path\":{}}}", quoted(input))
}

/// Values that the user wants in every row are there.
pub(crate) fn check_nulls(schema: &Schema, columns: &[ArrayRef]) -> Result<()> {
    let mut pairs = schema.fields().iter().zip(columns);
    match pairs.find(|(field, column)| !field.is_nullable() && column.null_count() > 0) {
        None => Ok(()),
        Some((field, column)) => {
            Err(Error::new(ErrorKind::Data, "a column is declared NOT NULL and has no value in some rows")
                .with("column", field.name())
                .with("rows", column.null_count()))
        }
    }
}

/// The error that says that a field becomes a column.
pub(super) fn new_field(column: &str, input: &str) -> Error {
    Error::new(ErrorKind::SchemaEvolved, "a record has a field that is no column yet")
        .with("field", column)
        .with("file", input)
}

/// The error of a field that may not become a column.
pub(super) fn refused_field(column: &str, input: &str) -> Error {
    Error::new(ErrorKind::Data, "UNKNOWN_FIELD_EXCEPTION: a record has a field that is no column")
        .with("field", column)
        .with("file", input)
        .help("declare the column; or set schemaEvolutionMode => 'addNewColumns', 'rescue' or 'none'")
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
