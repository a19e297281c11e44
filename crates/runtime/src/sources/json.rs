//! What is a JSON text? A tree over the bytes that were read, with every number as it was written.
//!
//! Numbers stay text because a value may be the sequence that decides: a digit that a float can't hold must not vanish on
//! the way to a decimal. Objects and lists remember their own text, so that what does not fit a column can be kept whole.

mod parser;

use std::borrow::Cow;

pub(crate) use parser::members;

/// JSON that nests deeper is no record of anything; the parser follows it with its stack.
pub(crate) const DEEPEST: usize = 128;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    /// As it was written; also `NaN`, `Infinity` and `-Infinity`, as Spark reads them.
    Number(&'a str),
    Text(Cow<'a, str>),
    List(Vec<Self>, &'a str),
    /// Fields in the order of the text. A name may come twice: the last counts.
    Object(Vec<(Cow<'a, str>, Self)>, &'a str),
}

impl<'a> Json<'a> {
    /// Parses one value that is all of `text`.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub(crate) fn parse(text: &'a [u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(text)
            .map_err(|e| format!("the text is no UTF-8 from byte {} on", e.valid_up_to()))?;
        Self::of(text)
    }

    /// As [`Json::parse`], of a text.
    pub(crate) fn of(text: &'a str) -> Result<Self, String> {
        parser::whole(text)
    }

    /// The fields, where it is an object.
    pub(crate) fn fields(&self) -> Option<&[(Cow<'a, str>, Self)]> {
        match self {
            Self::Object(fields, _) => Some(fields),
            _ => None,
        }
    }

    /// The value of a field, where it is an object that has it.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        self.fields()?.iter().rev().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// The fields; none of what is no object.
    pub(crate) fn members(&self) -> &[(Cow<'a, str>, Self)] {
        self.fields().unwrap_or_default()
    }

    /// The items, where it is a list.
    pub(crate) fn items(&self) -> &[Self] {
        match self {
            Self::List(items, _) => items,
            _ => &[],
        }
    }

    /// The text, where it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        *self == Self::Null
    }

    /// Writes it on one line, without blanks.
    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
            Self::Number(digits) => out.push_str(digits),
            Self::Text(text) => quote(out, text),
            Self::List(items, _) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { "," });
                    item.write(out);
                }
                out.push(']');
            }
            Self::Object(fields, _) => write_object(out, fields.iter()),
        }
    }

    /// Its JSON text.
    pub(crate) fn raw(&self) -> Cow<'a, str> {
        match self {
            Self::Null => "null".into(),
            Self::Bool(true) => "true".into(),
            Self::Bool(false) => "false".into(),
            Self::Number(text) if text.ends_with(['N', 'y']) => quoted(text).into(),
            Self::Number(text) | Self::List(_, text) | Self::Object(_, text) => (*text).into(),
            Self::Text(text) => quoted(text).into(),
        }
    }

    /// What kind of value it is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(..) => "a list",
            Self::Object(..) => "an object",
        }
    }
}

/// Writes an object of these fields on one line, without blanks.
pub(crate) fn write_object<'f, 'a: 'f>(
    out: &mut String,
    fields: impl Iterator<Item = &'f (Cow<'a, str>, Json<'a>)>,
) {
    out.push('{');
    for (i, (name, value)) in fields.enumerate() {
        out.push_str(if i == 0 { "" } else { "," });
        quote(out, name);
        out.push(':');
        value.write(out);
    }
    out.push('}');
}

/// A text as JSON writes it.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    quote(&mut out, text);
    out
}

/// Writes a text as JSON does.
pub(crate) fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 => {
                let code = format!("\\u{:04x}", u32::from(c));
                out.push_str(&code);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
