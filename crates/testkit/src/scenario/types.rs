//! How is a column's type written?

use super::Physical;

/// The type of a column, as far as scenarios tell types apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// `bool`
    Bool,
    /// `int`: 64 bits.
    Int,
    /// `float`: 64 bits.
    Float,
    /// `text`
    Text,
    /// `bytes`
    Bytes,
    /// `struct(name type, ..)`
    Struct(Vec<(String, Type)>),
    /// `list(type)`
    List(Box<Type>),
    /// `map(type, type)`
    Map(Box<Type>, Box<Type>),
}

/// How the values of a column compare, and what holds them if that is not obvious.
pub type ColumnType = (Type, Option<Physical>);

/// Reads a type.
///
/// # Errors
/// Says what is wrong with the text.
pub fn parse_type(text: &str) -> Result<Type, String> {
    let text = text.trim();
    let nested = |name: &str| {
        text.strip_prefix(name).and_then(|rest| rest.trim_start().strip_prefix('(')?.strip_suffix(')'))
    };
    match text {
        "bool" => return Ok(Type::Bool),
        "int" => return Ok(Type::Int),
        "float" => return Ok(Type::Float),
        "text" => return Ok(Type::Text),
        "bytes" => return Ok(Type::Bytes),
        _ => {}
    }
    if let Some(fields) = nested("struct") {
        return Ok(Type::Struct(parse_fields(fields)?));
    }
    if let Some(element) = nested("list") {
        return Ok(Type::List(Box::new(parse_type(element)?)));
    }
    if let Some(entry) = nested("map") {
        let [key, value] = split_outside_parentheses(entry)[..] else {
            return Err(format!("a map has two types, not `{entry}`"));
        };
        return Ok(Type::Map(Box::new(parse_type(key)?), Box::new(parse_type(value)?)));
    }
    Err(format!(
        "unknown type `{text}`; known are bool, int, float, text, bytes, struct(..), list(..), map(..), and for columns \
         int32, timestamp(..), decimal(..)"
    ))
}

/// Reads the type of a column, which may be a physical one.
pub(super) fn parse_column_type(text: &str) -> Result<ColumnType, String> {
    match Physical::named(text.trim()) {
        Some(physical) => Ok((physical.logical(), Some(physical))),
        None => Ok((parse_type(text)?, None)),
    }
}

/// Writes the type of a column, the physical one where there is one.
pub(super) fn print_column_type(kind: &Type, physical: Option<Physical>) -> String {
    physical.map_or_else(|| print_type(kind), Physical::name)
}

/// Reads `name type, name type`, where the types of columns may be physical.
pub(super) fn parse_columns(text: &str) -> Result<Vec<(String, ColumnType)>, String> {
    split_outside_parentheses(text)
        .into_iter()
        .map(|text| {
            let (name, kind) = name_and_type(text)?;
            Ok((name.to_owned(), parse_column_type(kind)?))
        })
        .collect()
}

fn name_and_type(text: &str) -> Result<(&str, &str), String> {
    text.trim().split_once(' ').ok_or_else(|| format!("`{text}` is not a name and a type"))
}

/// Reads `name type, name type`.
fn parse_fields(text: &str) -> Result<Vec<(String, Type)>, String> {
    let field = |text: &str| {
        let (name, kind) = name_and_type(text)?;
        Ok((name.to_owned(), parse_type(kind)?))
    };
    split_outside_parentheses(text).into_iter().map(field).collect()
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(move |character| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    })
    .collect()
}

/// Writes a type so that [`parse_type`] reads it.
pub fn print_type(kind: &Type) -> String {
    match kind {
        Type::Bool => "bool".to_owned(),
        Type::Int => "int".to_owned(),
        Type::Float => "float".to_owned(),
        Type::Text => "text".to_owned(),
        Type::Bytes => "bytes".to_owned(),
        Type::Struct(fields) => format!("struct({})", print_fields(fields)),
        Type::List(element) => format!("list({})", print_type(element)),
        Type::Map(key, value) => format!("map({}, {})", print_type(key), print_type(value)),
    }
}

fn print_fields(fields: &[(String, Type)]) -> String {
    fields.iter().map(|(name, kind)| format!("{name} {}", print_type(kind))).collect::<Vec<_>>().join(", ")
}
