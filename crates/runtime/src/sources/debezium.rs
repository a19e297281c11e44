//! How do records of Debezium become rows of a table, with what happened to each beside it?
//!
//! A layer on top of the JSON that files and topics hold: each record is rewritten as the plain JSON of its rows, and decoded as
//! any other.
//!
//! Beside the columns of its table a row has those of [`Envelope::metadata`]. What the encodings mean is in
//! `docs/sources/debezium.md`.

mod changes;
mod connect;
mod encoding;
mod infer;
mod position;
mod record;
mod rows;
mod value;

pub(super) use infer::Found;
pub(super) use rows::{Problem, Rows};

use std::{collections::BTreeSet, sync::Arc};

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use connect::Unit;
use encoding::BinaryMode;
use strandline_cdc_core::{ColumnSelection, names};

use super::json::Json;
use crate::error::{Error, ErrorKind, Result};

/// What stands for a value that the connector did not get, unless it is configured otherwise.
const UNAVAILABLE: &str = "__debezium_unavailable_value";
/// The same in a list of UUIDs: the name-based UUID of that text.
const UNAVAILABLE_UUID: &str = "b68a35a7-17ad-35b3-af2a-ae46edb4545a";
const SAMPLE: usize = 160;

/// Options of the envelope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// Columns that say which row of the table a record is of.
    keys: BTreeSet<String>,
    unavailable: Unavailable,
    binary: BinaryMode,
    /// Texts in columns of decimals are bytes, not digits.
    decimals_are_bytes: bool,
    /// What numbers in columns of timestamps count.
    timestamp_unit: Option<Unit>,
    /// Beginning of the names of the envelope's own columns.
    prefix: String,
    /// Columns in which a value that the connector did not get may be NULL.
    accepted: ColumnSelection,
}

impl Envelope {
    /// Names of the options, for messages.
    #[cfg(feature = "kafka")]
    pub(super) const OPTIONS: &str = "envelope, keys, unavailableValue, binaryHandlingMode, decimalHandlingMode, timestampUnit, metadataPrefix";

    /// Takes the envelope's options; `None` where there is no envelope. `take` removes an option, named in lower case.
    pub(super) fn new(mut take: impl FnMut(&str) -> Option<String>) -> Result<Option<Self>> {
        let wrong = |option: &str, value: &str, known: &str| {
            Error::new(ErrorKind::Definition, format!("option `{option}` can't be `{value}`"))
                .help(format!("known are {known}"))
        };
        match take("envelope").map(|name| name.to_lowercase()).as_deref() {
            None | Some("none") => return Ok(None),
            Some("debezium") => {}
            Some(other) => return Err(wrong("envelope", other, "debezium and none")),
        }
        let list = take("keys").unwrap_or_default();
        let keys = list.split(',').map(str::trim).filter(|key| !key.is_empty()).map(str::to_owned).collect();
        let binary = match take("binaryhandlingmode").map(|mode| mode.to_lowercase()).as_deref() {
            None | Some("bytes" | "base64") => BinaryMode::Base64,
            Some("base64-url-safe") => BinaryMode::Base64UrlSafe,
            Some("hex") => BinaryMode::Hex,
            Some(other) => {
                return Err(wrong("binaryHandlingMode", other, "bytes, base64, base64-url-safe and hex"));
            }
        };
        let decimals_are_bytes = match take("decimalhandlingmode").map(|mode| mode.to_lowercase()).as_deref()
        {
            None | Some("precise") => true,
            Some("string" | "double") => false,
            Some(other) => return Err(wrong("decimalHandlingMode", other, "precise, string and double")),
        };
        let timestamp_unit = match take("timestampunit").map(|unit| unit.to_lowercase()).as_deref() {
            None => None,
            Some("ms") => Some(Unit::Milli),
            Some("us") => Some(Unit::Micro),
            Some("ns") => Some(Unit::Nano),
            Some(other) => return Err(wrong("timestampUnit", other, "ms, us and ns")),
        };
        let prefix = take("metadataprefix").unwrap_or_else(|| "_".to_owned());
        if names::is_reserved(&format!("{prefix}op")) {
            return Err(wrong("metadataPrefix", &prefix, "all but those that the engine reserves"));
        }
        let text = take("unavailablevalue").unwrap_or_else(|| UNAVAILABLE.to_owned());
        let unavailable = Unavailable::new(&text)
            .ok_or_else(|| wrong("unavailableValue", &text, "a text, and hex: with hexadecimal digits"))?;
        Ok(Some(Self {
            keys,
            unavailable,
            binary,
            decimals_are_bytes,
            timestamp_unit,
            prefix,
            accepted: ColumnSelection::All,
        }))
    }

    /// The same with more columns that say which row a record is of.
    #[must_use]
    pub(crate) fn with_keys(mut self, keys: impl IntoIterator<Item = String>) -> Self {
        self.keys.extend(keys);
        self
    }

    /// Name of the column that lists which columns a row sets.
    pub(crate) fn columns_name(&self) -> String {
        format!("{}columns", self.prefix)
    }

    pub(super) fn is_metadata(&self, name: &str) -> bool {
        name.strip_prefix(&self.prefix)
            .is_some_and(|rest| matches!(rest, "op" | "ts_ms" | "position" | "source" | "columns"))
    }

    /// The envelope's own columns: `_op`, what happened; `_ts_ms`, when the connector saw it, in milliseconds since 1970;
    /// `_position`, a text that sorts as the source's log does; `_source`, what the connector says of it; `_columns`, the
    /// columns that the row sets, NULL for all of them.
    pub(super) fn metadata(&self) -> Vec<FieldRef> {
        let field =
            |name: &str, data_type| Arc::new(Field::new(format!("{}{name}", self.prefix), data_type, true));
        let source: Fields = position::FIELDS
            .iter()
            .map(|(name, is_number)| {
                Field::new(*name, if *is_number { DataType::Int64 } else { DataType::Utf8 }, true)
            })
            .collect();
        let list = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
        vec![
            field("op", DataType::Utf8),
            field("ts_ms", DataType::Int64),
            field("position", DataType::Utf8),
            field("source", DataType::Struct(source)),
            field("columns", list),
        ]
    }

    /// The columns of a table with the envelope's own behind them.
    ///
    /// # Errors
    /// `Definition` for a column that is named like one of them.
    pub(crate) fn schema(&self, row: &Schema) -> Result<SchemaRef> {
        if let Some(clash) = row.fields().iter().find(|field| self.is_metadata(field.name())) {
            return Err(Error::new(
                ErrorKind::Definition,
                "a column of the table has a name that the envelope's columns have",
            )
            .with("column", clash.name())
            .help("leave it out of the schema; or give the envelope's columns another prefix: metadataPrefix => '__dbz_'"));
        }
        let nullable = row.fields().iter().map(|field| Arc::new(field.as_ref().clone().with_nullable(true)));
        let fields: Vec<FieldRef> = nullable.chain(self.metadata()).collect();
        Ok(Arc::new(Schema::new(fields)))
    }
}

impl Problem {
    pub(super) fn not_utf8() -> Self {
        Self { why: "the record is no UTF-8 text".to_owned(), field: None, help: None }
    }

    /// As an error, with a sample of the record.
    pub(super) fn error(&self, record: &[u8]) -> Error {
        let text = String::from_utf8_lossy(record);
        let sample: String = text.trim().chars().take(SAMPLE).collect();
        let mut error = Error::new(ErrorKind::Data, self.why.clone());
        if let Some(field) = &self.field {
            error = error.with("field", field);
        }
        if let Some(help) = self.help {
            error = error.help(help);
        }
        error.with("sample", sample)
    }
}

/// What stands for a value that the connector did not get, in each type of column.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Unavailable {
    text: String,
    encoded: [String; 3],
    /// One number a byte, as lists of integers have it.
    numbers: Vec<String>,
}

impl Unavailable {
    fn new(text: &str) -> Option<Self> {
        let bytes = match text.strip_prefix("hex:") {
            Some(digits) => encoding::from_hex(digits)?,
            None => text.as_bytes().to_vec(),
        };
        let encoded =
            [BinaryMode::Base64, BinaryMode::Base64UrlSafe, BinaryMode::Hex].map(|mode| mode.encode(&bytes));
        let numbers = bytes.iter().map(|byte| i8::from_ne_bytes([*byte]).to_string()).collect();
        Some(Self { text: String::from_utf8_lossy(&bytes).into_owned(), encoded, numbers })
    }

    fn is(&self, node: &Json<'_>) -> bool {
        match node {
            Json::Text(text) => self.is_text(text) || self.encoded.iter().any(|encoded| encoded == text),
            Json::List(items, _) => match items.as_slice() {
                [Json::Text(text)] => self.is_text(text) || text == UNAVAILABLE_UUID,
                [_, _, ..] if items.len() == self.numbers.len() => {
                    items.iter().zip(&self.numbers).all(|(item, number)| *item == Json::Number(number))
                }
                _ => false,
            },
            Json::Object(members, _) => matches!(members.as_slice(), [(name, _)] if self.is_text(name)),
            Json::Null | Json::Bool(_) | Json::Number(_) => false,
        }
    }

    fn is_text(&self, text: &str) -> bool {
        text == self.text
    }
}

#[cfg(test)]
#[path = "debezium_tests.rs"]
mod tests;
