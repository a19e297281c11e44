//! How are options of sources and sinks, and properties of tables, written?

use std::{collections::BTreeMap, fmt};

use sqlparser::tokenizer::Token;

use crate::{cursor::Cursor, error::Problem};

/// The value of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionValue {
    /// `'text'`
    Text(String),
    /// A whole number.
    Integer(i64),
    /// Another number, as written.
    Number(String),
    /// `true` or `false`.
    Boolean(bool),
}

impl OptionValue {
    /// The value as a flag; texts that say true or false count, as the original accepts them.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Boolean(flag) => Some(*flag),
            Self::Text(text) if text.eq_ignore_ascii_case("true") => Some(true),
            Self::Text(text) if text.eq_ignore_ascii_case("false") => Some(false),
            Self::Text(_) | Self::Integer(_) | Self::Number(_) => None,
        }
    }

    /// The value as a whole number; texts of digits count.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            Self::Text(text) => text.trim().parse().ok(),
            Self::Boolean(_) | Self::Number(_) => None,
        }
    }
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) | Self::Number(text) => f.write_str(text),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Boolean(flag) => write!(f, "{flag}"),
        }
    }
}

/// An option's name: a text in quotes, or words joined by dots.
pub(crate) fn option_name(cursor: &mut Cursor<'_>) -> Result<String, Problem> {
    match cursor.string("an option") {
        Ok(name) => Ok(name),
        Err(_) => Ok(cursor.parts("an option's name")?.0.join(".")),
    }
}

pub(crate) fn option_value(cursor: &mut Cursor<'_>) -> Result<OptionValue, Problem> {
    if let Ok(text) = cursor.string("a text") {
        return Ok(OptionValue::Text(text));
    }
    if cursor.eat_words(&["TRUE"]).is_some() {
        return Ok(OptionValue::Boolean(true));
    }
    if cursor.eat_words(&["FALSE"]).is_some() {
        return Ok(OptionValue::Boolean(false));
    }
    let sign = if cursor.eat_token(&Token::Minus).is_some() { "-" } else { "" };
    match cursor.peek().map(|tok| &tok.token) {
        Some(Token::Number(digits, _)) => {
            cursor.skip(1);
            let number = format!("{sign}{digits}");
            Ok(number.parse().map(OptionValue::Integer).unwrap_or(OptionValue::Number(number)))
        }
        _ => Err(cursor.expected("a text in quotes, a number, true or false")),
    }
}

/// `(option [= value], ..)` behind a streamed table, keys in lower case; an option without a value is true.
pub(crate) fn read_flags(cursor: &mut Cursor<'_>) -> Result<BTreeMap<String, OptionValue>, Problem> {
    let mut options = BTreeMap::new();
    let mut inner = cursor.parenthesized()?;
    inner.comma_separated(|inner| {
        let here = inner.here();
        let key = option_name(inner)?.to_lowercase();
        let given = inner.eat_token(&Token::Eq).is_some() || inner.eat_token(&Token::RArrow).is_some();
        let value = if given { option_value(inner)? } else { OptionValue::Boolean(true) };
        if options.insert(key.clone(), value).is_some() {
            return Err(Problem::new(here, format!("option {key} is given twice")));
        }
        Ok(())
    })?;
    if options.is_empty() { Err(inner.expected("an option")) } else { Ok(options) }
}

/// `('key' = 'value', ..)`, or `('key' 'value', ..)`; keys may go without quotes, and numbers and flags too. `what`
/// is what messages call one of them.
pub(crate) fn read_pairs(cursor: &mut Cursor<'_>, what: &str) -> Result<BTreeMap<String, String>, Problem> {
    let mut pairs = BTreeMap::new();
    let mut inner = cursor.parenthesized()?;
    inner.comma_separated(|inner| {
        let here = inner.here();
        let key = match inner.string(what) {
            Ok(key) => key,
            Err(_) => inner.parts(&format!("the name of {}", article(what)))?.0.join("."),
        };
        if inner.eat_token(&Token::Eq).is_none() && !begins_value(inner) {
            return Err(inner.expected("`=`"));
        }
        let value = pair_value(inner)?;
        if pairs.insert(key.clone(), value).is_some() {
            return Err(Problem::new(here, format!("{what} {key} is given twice")));
        }
        Ok(())
    })?;
    Ok(pairs)
}

fn article(what: &str) -> String {
    let vowel = what.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {what}", if vowel { "an" } else { "a" })
}

fn begins_value(cursor: &Cursor<'_>) -> bool {
    cursor.peek().is_some_and(|tok| {
        matches!(
            tok.token,
            Token::SingleQuotedString(_) | Token::DoubleQuotedString(_) | Token::Number(..) | Token::Minus
        ) || tok.is_keyword("TRUE")
            || tok.is_keyword("FALSE")
    })
}

fn pair_value(cursor: &mut Cursor<'_>) -> Result<String, Problem> {
    if let Ok(text) = cursor.string("a value") {
        return Ok(text);
    }
    let start = cursor.here();
    cursor.eat_token(&Token::Minus);
    let plain = cursor.peek().is_some_and(|tok| {
        matches!(tok.token, Token::Number(..)) || tok.is_keyword("TRUE") || tok.is_keyword("FALSE")
    });
    if !plain {
        return Err(cursor.expected("a value in quotes, a number, true or false"));
    }
    cursor.skip(1);
    Ok(cursor.slice(cursor.since(start.start)).to_owned())
}
