//! How do values without types become columns of an Arrow type, and what of them does not fit?
//!
//! A value that does not fit leaves a NULL in its column and a [`Misfit`] beside it; whether that is an error or goes to
//! the rescue column is for the reader of records to say.

mod builder;
mod lists;

use std::{borrow::Cow, sync::Arc};

use arrow_array::{ArrayRef, StructArray};
use arrow_schema::{Field, FieldRef, Fields};
use datafusion::arrow::buffer::NullBuffer;

use self::builder::Builder;
use super::{
    json::{Json, quoted},
    scalars::Formats,
};
use crate::error::Result;

/// What did not fit the columns of a record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Misfit {
    /// A value of another type than its column's: where, the value, and why.
    Mismatch { column: String, value: String, why: String },
    /// A field that no column has, and whose value says of which type it is: others are no news. `new` where it could become
    /// a column: it stands in the record itself, and is not beyond those that a delimited record should have.
    Unknown { column: String, new: bool },
}

/// What is gathered of a record beside its columns.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// The misfits, in the order of the text.
    pub(crate) misfits: Vec<Misfit>,
    /// The values that did not fit, as fields of a JSON object; empty for none.
    pub(crate) rescued: String,
    /// Whether they are wanted.
    keep: bool,
    path: Vec<String>,
}

impl Rest {
    /// Nothing yet; `keep` where the values that do not fit are wanted.
    pub(crate) fn new(keep: bool) -> Self {
        Self { keep, ..Self::default() }
    }

    fn rescue(&mut self, name: &str, value: &str) {
        if !self.keep {
            return;
        }
        if !self.rescued.is_empty() {
            self.rescued.push(',');
        }
        self.rescued.push_str(&quoted(name));
        self.rescued.push(':');
        self.rescued.push_str(value);
    }

    fn name(&self, name: &str) -> String {
        self.path.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join(".")
    }

    /// Notes a value that does not fit the column `name`.
    pub(super) fn mismatch(&mut self, name: &str, value: &str, why: String) {
        self.misfits.push(Misfit::Mismatch { column: self.name(name), value: value.to_owned(), why });
        self.rescue(name, value);
    }

    /// Notes a value that no column takes; `new` where it could have one.
    pub(super) fn unknown(&mut self, name: &str, value: &Json<'_>, new: bool) {
        if has_type(value) {
            let new = new && self.path.is_empty();
            self.misfits.push(Misfit::Unknown { column: self.name(name), new });
        }
        if self.keep {
            self.rescue(name, &value.raw());
        }
    }

    /// What `append` finds of the value of `name` lies within it.
    fn nested(&mut self, name: &str, append: impl FnOnce(&mut Self)) {
        let outer = std::mem::take(&mut self.rescued);
        self.path.push(name.to_owned());
        append(self);
        self.path.pop();
        let inner = std::mem::replace(&mut self.rescued, outer);
        if !inner.is_empty() {
            self.rescue(name, &format!("{{{inner}}}"));
        }
    }

    /// Notes a value that is kept whole because of a part of it.
    fn whole(&mut self, name: &str, value: &str, misfit: Misfit) {
        self.misfits.push(match misfit {
            Misfit::Mismatch { column, value, why } => {
                Misfit::Mismatch { column: self.name(&format!("{name}{column}")), value, why }
            }
            Misfit::Unknown { column, .. } => {
                Misfit::Unknown { column: self.name(&format!("{name}{column}")), new: false }
            }
        });
        self.rescue(name, value);
    }

    pub(super) fn clear(&mut self) {
        self.misfits.clear();
        self.rescued.clear();
    }
}

/// How names and texts are understood.
#[derive(Debug, Clone, Default)]
pub(crate) struct Look {
    /// Names that differ in case only are one name.
    pub(crate) ignore_case: bool,
    /// How days and instants are written.
    pub(crate) formats: Formats,
    /// Fields of a record that are left out.
    pub(crate) left_out: Vec<String>,
}

impl Look {
    /// Whether a field of a record is left out.
    pub(crate) fn leaves_out(&self, name: &str) -> bool {
        self.left_out.iter().any(|own| own == name || (self.ignore_case && own.eq_ignore_ascii_case(name)))
    }
}

/// The columns of records, or the fields of a struct.
#[derive(Debug)]
pub(crate) struct Columns {
    fields: Fields,
    builders: Vec<Builder>,
    /// Where each field of the record at hand goes.
    places: Vec<Option<usize>>,
    /// Where each was last written: the row, from 1, and the field of its record.
    written: Vec<(u64, usize)>,
    rows: u64,
    valid: Vec<bool>,
}

impl Columns {
    /// No rows of these columns.
    ///
    /// # Errors
    /// `Unsupported` for a type that is not read from text.
    pub(crate) fn new(fields: &Fields) -> Result<Self> {
        let builders = fields.iter().map(|field| Builder::new(field)).collect::<Result<Vec<_>>>()?;
        Ok(Self {
            fields: fields.clone(),
            written: vec![(0, 0); builders.len()],
            builders,
            places: Vec::new(),
            rows: 0,
            valid: Vec::new(),
        })
    }

    /// Where the field `name` goes; `guess` is where it went in the record before.
    fn place(&self, name: &str, guess: usize, ignore_case: bool) -> Option<usize> {
        let same = |field: &FieldRef| field.name() == name;
        if self.fields.get(guess).is_some_and(same) {
            return Some(guess);
        }
        self.fields.iter().position(same).or_else(|| {
            let mut alike = (0..self.fields.len())
                .filter(|&i| self.fields.get(i).is_some_and(|field| field.name().eq_ignore_ascii_case(name)));
            if ignore_case { alike.next() } else { None }
        })
    }

    /// Appends a record's fields; fields that are missing are NULL.
    pub(super) fn append<'a>(&mut self, record: &[(Cow<'a, str>, Json<'a>)], look: &Look, rest: &mut Rest) {
        self.rows += 1;
        self.valid.push(true);
        let mut places = std::mem::take(&mut self.places);
        places.clear();
        for (at, (name, _)) in record.iter().enumerate() {
            let place = self.place(name, at, look.ignore_case);
            // Of a field that comes twice the last counts.
            if let Some(written) = place.and_then(|place| self.written.get_mut(place)) {
                *written = (self.rows, at);
            }
            places.push(place);
        }
        for (at, ((name, value), place)) in record.iter().zip(&places).enumerate() {
            let Some(place) = *place else {
                if !(rest.path.is_empty() && look.leaves_out(name)) {
                    rest.unknown(name, value, true);
                }
                continue;
            };
            if self.written.get(place) == Some(&(self.rows, at))
                && let Some(builder) = self.builders.get_mut(place)
            {
                builder.append(name, value, look, rest);
            }
        }
        self.places = places;
        self.fill();
    }

    /// Appends values by their place, as text; `None` is NULL.
    pub(super) fn append_texts<'t>(
        &mut self,
        texts: impl Iterator<Item = (usize, Option<&'t str>)>,
        look: &Look,
        rest: &mut Rest,
    ) {
        self.rows += 1;
        self.valid.push(true);
        for (place, text) in texts {
            let (Some(written), Some(builder)) = (self.written.get_mut(place), self.builders.get_mut(place))
            else {
                continue;
            };
            let (Some(text), true) = (text, written.0 != self.rows) else { continue };
            *written = (self.rows, place);
            let name = self.fields.get(place).map_or("", |field| field.name());
            if let Err(why) = builder.append_text(text, look) {
                builder.append_null();
                rest.mismatch(name, &quoted(text), why);
            }
        }
        self.fill();
    }

    /// Appends a NULL struct, or a record without any value.
    pub(super) fn append_null(&mut self) {
        self.rows += 1;
        self.valid.push(false);
        self.fill();
    }

    /// What was not written in this row is NULL.
    fn fill(&mut self) {
        let rows = self.rows;
        for (builder, _) in self.builders.iter_mut().zip(&self.written).filter(|(_, at)| at.0 != rows) {
            builder.append_null();
        }
    }

    /// The columns, which begin anew.
    pub(super) fn finish(&mut self) -> Result<Vec<ArrayRef>> {
        self.valid.clear();
        self.builders.iter_mut().map(Builder::finish).collect()
    }

    /// The columns as structs.
    fn finish_structs(&mut self) -> Result<ArrayRef> {
        let valid = std::mem::take(&mut self.valid);
        let nulls = valid.contains(&false).then(|| NullBuffer::from(valid.as_slice()));
        let columns = self.builders.iter_mut().map(Builder::finish).collect::<Result<Vec<_>>>()?;
        let fields: Fields = self.fields.iter().map(|field| nullable(field)).collect();
        Ok(Arc::new(StructArray::try_new_with_length(fields, columns, nulls, valid.len())?))
    }
}

/// Whether a value says of which type it is: NULL, and what holds nothing else, does not.
pub(super) fn has_type(value: &Json<'_>) -> bool {
    match value {
        Json::Null => false,
        Json::Bool(_) | Json::Number(_) | Json::Text(_) => true,
        Json::List(items, _) => items.iter().any(has_type),
        Json::Object(fields, _) => fields.iter().any(|(_, value)| has_type(value)),
    }
}

/// Values may be missing while rows are gathered; what is declared NOT NULL is checked when they are whole.
fn nullable(field: &Field) -> FieldRef {
    Arc::new(field.clone().with_nullable(true))
}
