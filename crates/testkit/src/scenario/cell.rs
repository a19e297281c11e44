//! How is a value written in a cell?
//!
//! Invariant: `parse_cell(&print_cell(&value), kind) == Ok(value)` for every value of the type, and no cell holds a bare
//! `|`, quote or line break.

use std::fmt::Write;

use super::{Physical, Type};
use crate::reference::Value;

/// Reads a cell of the given type.
///
/// # Errors
/// Says what is wrong with the text.
pub fn parse_cell(text: &str, kind: &Type) -> Result<Value, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("empty cell: write NULL, or \"\" for an empty text".to_owned());
    }
    if *kind == Type::Text && text != "NULL" && !text.contains('"') {
        return if text.contains('\\') {
            Err(format!("`{text}` holds a backslash and needs quotes"))
        } else {
            Ok(Value::text(text))
        };
    }
    let mut cursor = Cursor { rest: text };
    let value = cursor.value(kind)?;
    cursor.end()?;
    Ok(value)
}

/// Reads a cell of a column that may have a physical type.
pub(super) fn parse_column_cell(
    text: &str,
    kind: &Type,
    physical: Option<Physical>,
) -> Result<Value, String> {
    match physical {
        Some(physical) if text.trim() != "NULL" => physical.parse(text.trim()),
        _ => parse_cell(text, kind),
    }
}

struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn end(&self) -> Result<(), String> {
        if self.rest.trim().is_empty() { Ok(()) } else { Err(format!("`{}` is too much", self.rest)) }
    }

    fn accept(&mut self, token: char) -> bool {
        match self.rest.trim_start().strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn require(&mut self, token: char) -> Result<(), String> {
        if self.accept(token) { Ok(()) } else { Err(format!("expected `{token}` before `{}`", self.rest)) }
    }

    /// A word that ends at punctuation or a space.
    fn word(&mut self) -> &'a str {
        let text = self.rest.trim_start();
        let end = text
            .find(|character: char| ",:{}[]\"".contains(character) || character.is_whitespace())
            .unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.rest = rest;
        word
    }

    fn value(&mut self, kind: &Type) -> Result<Value, String> {
        let text = self.rest.trim_start();
        if text.starts_with('"') {
            return if *kind == Type::Text { self.quoted() } else { Err(format!("{text} is a text")) };
        }
        match kind {
            Type::Struct(fields) if self.accept('{') => self.fields(fields),
            Type::List(element) if self.accept('[') => {
                Ok(Value::List(self.series(']', |cursor| cursor.value(element))?))
            }
            Type::Map(key, value) if self.accept('{') => Ok(Value::Map(self.series('}', |cursor| {
                let key = cursor.value(key)?;
                cursor.require(':')?;
                Ok((key, cursor.value(value)?))
            })?)),
            Type::Bool
            | Type::Int
            | Type::Float
            | Type::Text
            | Type::Bytes
            | Type::Struct(_)
            | Type::List(_)
            | Type::Map(..) => parse_word(self.word(), kind),
        }
    }

    fn fields(&mut self, fields: &[(String, Type)]) -> Result<Value, String> {
        let mut left = fields.iter();
        let values = self.series('}', |cursor| {
            let (name, kind) = left.next().ok_or("the struct has too many fields")?;
            let found = cursor.word();
            if found != name {
                return Err(format!("expected the field `{name}`, not `{found}`"));
            }
            cursor.require(':')?;
            Ok((name.clone(), cursor.value(kind)?))
        })?;
        match left.next() {
            None => Ok(Value::Struct(values)),
            Some((name, _)) => Err(format!("the field `{name}` is missing")),
        }
    }

    /// Items with commas between them, up to the closing token.
    fn series<T>(
        &mut self,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let mut items = Vec::new();
        if self.accept(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.accept(close) {
                return Ok(items);
            }
            self.require(',')?;
        }
    }

    fn quoted(&mut self) -> Result<Value, String> {
        self.require('"')?;
        let mut text = String::new();
        let mut characters = self.rest.chars();
        loop {
            match characters.next() {
                None => return Err("a quote is not closed".to_owned()),
                Some('"') => break,
                Some('\\') => text.push(match characters.next() {
                    Some('n') => '\n',
                    Some('r') => '\r',
                    Some('t') => '\t',
                    Some(same @ ('"' | '\\')) => same,
                    other => return Err(format!("unknown escape {other:?}")),
                }),
                Some(character) => text.push(character),
            }
        }
        self.rest = characters.as_str();
        Ok(Value::Text(text))
    }
}

fn parse_word(word: &str, kind: &Type) -> Result<Value, String> {
    let wrong = || format!("`{word}` is not {}", super::print_type(kind));
    match kind {
        _ if word == "NULL" => Ok(Value::Null),
        Type::Bool => word.parse().map(Value::Bool).map_err(|_| wrong()),
        Type::Int => word.parse().map(Value::Int).map_err(|_| wrong()),
        Type::Float => word.parse().map(Value::Float).map_err(|_| wrong()),
        Type::Bytes => word.strip_prefix("0x").and_then(parse_hex).map(Value::Bytes).ok_or_else(wrong),
        Type::Text if !word.is_empty() => Ok(Value::text(word)),
        Type::Text | Type::Struct(_) | Type::List(_) | Type::Map(..) => Err(wrong()),
    }
}

fn parse_hex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).ok().filter(|p| p.len() == 2)?, 16).ok())
        .collect()
}

/// Writes a value so that [`parse_cell`] reads it.
pub fn print_cell(value: &Value) -> String {
    if let Value::Text(text) = value
        && !needs_quotes(text)
    {
        return text.clone();
    }
    print_nested(value)
}

/// Writes a value of a column that may have a physical type.
pub(super) fn print_column_cell(value: &Value, physical: Option<Physical>) -> String {
    match physical {
        Some(physical) if !value.is_null() => physical.print(value),
        _ => print_cell(value),
    }
}

fn needs_quotes(text: &str) -> bool {
    text.is_empty()
        || text == "NULL"
        || text.trim() != text
        || text.contains(|c: char| "|\"\\".contains(c) || c.is_control())
}

fn print_nested(value: &Value) -> String {
    let series = |items: Vec<String>| items.join(", ");
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Int(int) => int.to_string(),
        Value::Float(float) => format!("{float:?}"),
        Value::Text(text) if !needs_quotes(text) && is_word(text) => text.clone(),
        Value::Text(text) => quote(text),
        Value::Bytes(bytes) => bytes.iter().fold("0x".to_owned(), |mut hex, byte| {
            _ = write!(hex, "{byte:02x}");
            hex
        }),
        Value::Struct(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}: {}", print_nested(value)));
            format!("{{{}}}", series(fields.collect()))
        }
        Value::List(items) => format!("[{}]", series(items.iter().map(print_nested).collect())),
        Value::Map(entries) => {
            let entries =
                entries.iter().map(|(key, value)| format!("{}: {}", print_nested(key), print_nested(value)));
            format!("{{{}}}", series(entries.collect()))
        }
    }
}

fn is_word(text: &str) -> bool {
    text.chars().all(|character| character.is_alphanumeric() || "_-.+/".contains(character))
}

fn quote(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for character in text.chars() {
        match character {
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '"' | '\\' => quoted.extend(['\\', character]),
            _ => quoted.push(character),
        }
    }
    quoted + "\""
}
