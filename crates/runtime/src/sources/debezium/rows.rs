//! Which rows does a record stand for?
//!
//! An insert, an update or a read is its row after; a delete its row before. An update that changes the key is two rows: what
//! was there goes, what is there comes. A truncate is a row without values.

use std::collections::BTreeSet;

use arrow_schema::{Field, Schema};

use super::{
    Envelope,
    connect::Connect,
    position::{self, position},
    record::{Op, Part, Record, Value},
};
use crate::sources::json::{Json, quote};

/// Turns records into rows, one after the other. It remembers the last schema, which is that of the next record too, as a rule.
#[derive(Debug)]
pub(in crate::sources) struct Rows<'a> {
    envelope: &'a Envelope,
    /// Columns that are wanted, with their types.
    wanted: &'a Schema,
    last: Option<(String, Option<Connect>)>,
}

/// Why a record is refused.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::sources) struct Problem {
    pub(in crate::sources) why: String,
    /// The column that it is about.
    pub(in crate::sources) field: Option<String>,
    pub(in crate::sources) help: Option<&'static str>,
}

impl Problem {
    fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), field: None, help: None }
    }

    fn help(self, help: &'static str) -> Self {
        Self { help: Some(help), ..self }
    }
}

impl From<String> for Problem {
    /// Of a text that is no JSON.
    fn from(why: String) -> Self {
        Self::new(format!("the record is no JSON: {why}"))
    }
}

/// What all rows of one record share.
struct Common<'n, 'a> {
    record: &'n Json<'a>,
    connect: Option<&'n Connect>,
    keys: BTreeSet<String>,
}

impl<'a> Rows<'a> {
    pub(in crate::sources) fn new(envelope: &'a Envelope, wanted: &'a Schema) -> Self {
        Self { envelope, wanted, last: None }
    }

    /// The schema of rows that the last record came with.
    pub(super) fn last_schema(&self) -> Option<&Connect> {
        self.last.as_ref().and_then(|(_, connect)| connect.as_ref())
    }

    /// Writes the rows of a record as JSON objects, a line each, and says how many they are.
    pub(in crate::sources) fn record(&mut self, out: &mut String, text: &str) -> Result<usize, Problem> {
        let record = Record::split(text)?;
        self.parts(out, record.key.as_ref(), &record.value)
    }

    /// As [`Rows::record`], of a message whose key is known apart.
    #[cfg(feature = "kafka")]
    pub(in crate::sources) fn message(
        &mut self,
        out: &mut String,
        key: Option<&str>,
        value: &str,
    ) -> Result<usize, Problem> {
        // A key that is no JSON names no column.
        let key = key.and_then(|key| Part::split(key).ok());
        self.parts(out, key.as_ref(), &Part::split(value)?)
    }

    fn parts(
        &mut self,
        out: &mut String,
        key: Option<&Part<'_>>,
        value: &Part<'_>,
    ) -> Result<usize, Problem> {
        let (op, record) = match Value::read(value.payload)? {
            Value::Change(op, record) => (op, record),
            Value::Nothing => return Ok(0),
            Value::Unknown(op) => {
                return Err(Problem::new(format!("the record has the op `{op}`, which is unknown")));
            }
            Value::NoEnvelope => {
                return Err(Problem::new("the record is no envelope of Debezium: it has no `op`")
                    .help("leave out envelope => 'debezium' where records are plain rows"));
            }
        };
        self.learn(value.schema)?;
        let key = key.and_then(|key| Json::of(key.payload).ok());
        let mut keys: BTreeSet<String> = self.envelope.keys.iter().cloned().collect();
        keys.extend(key.iter().flat_map(Json::members).map(|(name, _)| name.to_string()));
        let common = Common { record: &record, connect: self.last_schema(), keys };
        let image = |name: &str| record.get(name).filter(|image| !image.is_null());
        let nothing = Json::Null;
        match op {
            Op::Truncate => self.row(out, op, &nothing, &common)?,
            Op::Delete => {
                let gone = image("before").or(key.as_ref()).ok_or_else(|| {
                    Problem::new("a delete does not say of which row")
                        .help("the table needs a replica identity; or write records with their keys, as {\"key\": .., \"value\": ..}")
                })?;
                self.row(out, op, gone, &common)?;
            }
            Op::Create | Op::Update | Op::Read => {
                let after = image("after").ok_or_else(|| {
                    Problem::new(format!("a record of op `{}` has no `after`", op.letter()))
                })?;
                if let Some(before) =
                    image("before").filter(|before| op == Op::Update && moved(&common.keys, before, after))
                {
                    self.row(out, Op::Delete, before, &common)?;
                    self.row(out, op, after, &common)?;
                    return Ok(2);
                }
                self.row(out, op, after, &common)?;
            }
        }
        Ok(1)
    }

    /// Takes the schema of a record for this one and the next.
    fn learn(&mut self, schema: Option<&str>) -> Result<(), Problem> {
        let known = match (&self.last, schema) {
            (Some((known, _)), Some(schema)) => known == schema,
            (None, None) => true,
            _ => false,
        };
        if !known {
            let read = |text: &str| Ok::<_, String>((text.to_owned(), Connect::of_rows(text)?));
            self.last = schema.map(read).transpose()?;
        }
        Ok(())
    }

    fn row(
        &self,
        out: &mut String,
        op: Op,
        image: &Json<'_>,
        common: &Common<'_, '_>,
    ) -> Result<(), Problem> {
        if !matches!(image, Json::Object(..) | Json::Null) {
            return Err(Problem::new("`before` and `after` must be objects")
                .help("MongoDB's connector writes documents as text, which is not supported"));
        }
        let envelope = self.envelope;
        let known = common.connect.map(Connect::columns).unwrap_or_default();
        let mut unset = false;
        let mut set: Vec<&str> = Vec::new();
        if out.ends_with('}') {
            out.push('\n');
        }
        out.push('{');
        let mut comma = "";
        for (name, value) in image.members() {
            if envelope.is_metadata(name) {
                let clash = Problem::new("a column of the table has a name that the envelope's columns have");
                return Err(Problem { field: Some(name.to_string()), ..clash }
                    .help("give the envelope's columns another prefix: metadataPrefix => '__dbz_'"));
            }
            if envelope.unavailable.is(value) {
                if op != Op::Delete && !envelope.accepts_unavailable(name) {
                    let unknown = Problem::new(
                        "the connector did not get a value of the row, which must not become NULL",
                    );
                    return Err(Problem { field: Some(name.to_string()), ..unknown }
                        .help("write COLUMNS TO UPDATE _columns in the flow: what a row does not set keeps its value"));
                }
                unset = true;
                continue;
            }
            if !common.keys.contains(name.as_ref()) {
                set.push(name);
            }
            out.push_str(comma);
            comma = ",";
            quote(out, name);
            out.push(':');
            let connect = known.iter().find(|(known, _)| known == name).map(|(_, connect)| connect);
            let target = self.wanted.field_with_name(name).ok().map(Field::data_type);
            envelope.value(out, value, connect, target).map_err(|why| Problem {
                why: format!("a value does not fit: {why}"),
                field: Some(name.to_string()),
                help: None,
            })?;
        }
        // Of a delete no value but the key's is ever looked at.
        let set = (unset && op != Op::Delete).then_some(set);
        self.metadata(out, comma, op, common, set.as_deref());
        out.push('}');
        Ok(())
    }

    /// The envelope's own columns.
    fn metadata(&self, out: &mut String, comma: &str, op: Op, common: &Common<'_, '_>, set: Option<&[&str]>) {
        let prefix = &self.envelope.prefix;
        let nothing = Json::Null;
        let of_record = |name: &str| common.record.get(name).unwrap_or(&nothing);
        let source = of_record("source");
        let name = |out: &mut String, comma: &str, name: &str| {
            out.push_str(comma);
            quote(out, &format!("{prefix}{name}"));
            out.push(':');
        };
        name(out, comma, "op");
        quote(out, op.letter());
        name(out, ",", "ts_ms");
        of_record("ts_ms").write(out);
        name(out, ",", "position");
        let is_read = of_record("op").text() == Some(Op::Read.letter());
        match position(source, is_read) {
            Some(position) => quote(out, &position),
            None => out.push_str("null"),
        }
        name(out, ",", "source");
        source_struct(out, source);
        name(out, ",", "columns");
        match set {
            None => out.push_str("null"),
            Some(set) => {
                out.push('[');
                for (i, column) in set.iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { "," });
                    quote(out, column);
                }
                out.push(']');
            }
        }
    }
}

/// Whether an update moved its row to another key. A key that the row before does not tell did not change: `PostgreSQL`'s default
/// replica identity tells it where it did.
fn moved(keys: &BTreeSet<String>, before: &Json<'_>, after: &Json<'_>) -> bool {
    keys.iter().any(|key| match (before.get(key), after.get(key)) {
        (Some(before), Some(after)) => !before.is_null() && before != after,
        _ => false,
    })
}

/// The fields of `source` that are known, texts as texts and numbers as numbers.
fn source_struct(out: &mut String, source: &Json<'_>) {
    if source.is_null() {
        out.push_str("null");
        return;
    }
    out.push('{');
    let mut comma = "";
    for (name, is_number) in position::FIELDS {
        let Some(value) = source.get(name).filter(|value| !value.is_null()) else { continue };
        out.push_str(comma);
        comma = ",";
        quote(out, name);
        out.push(':');
        match value {
            Json::Text(_) => value.write(out),
            _ if is_number => value.write(out),
            _ => {
                let mut text = String::new();
                value.write(&mut text);
                quote(out, &text);
            }
        }
    }
    out.push('}');
}
