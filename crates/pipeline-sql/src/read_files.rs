//! What does `read_files(..)` read?

use std::{collections::BTreeMap, fmt};

use sqlparser::tokenizer::Token;

use crate::{ColumnDef, cursor::Cursor, error::Problem};

/// The arguments of `read_files('path', option => value, ..)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadFiles {
    /// A file, folder or glob.
    pub path: String,
    /// Options, in lower case and without the prefix `cloudFiles.`: see [`ReadFiles::option`].
    pub options: BTreeMap<String, OptionValue>,
    /// The columns of `schema => '..'`.
    pub schema: Option<Vec<ColumnDef>>,
}

impl ReadFiles {
    /// The value of an option, whatever case it was written in and with or without the prefix `cloudFiles.`.
    pub fn option(&self, name: &str) -> Option<&OptionValue> {
        self.options.get(&option_key(name))
    }
}

/// The arguments of `read_kafka(option => value, ..)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadKafka {
    /// Options, in lower case.
    pub options: BTreeMap<String, OptionValue>,
    /// The columns of `schema => '..'`.
    pub schema: Option<Vec<ColumnDef>>,
}

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

fn option_key(name: &str) -> String {
    let name = name.to_lowercase();
    name.strip_prefix("cloudfiles.").map(str::to_owned).unwrap_or(name)
}

/// Reads `read_files (..)`, the name included.
pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<ReadFiles, Problem> {
    let name = cursor.here();
    cursor.expect_words(&["READ_FILES"])?;
    let mut inner = cursor.parenthesized()?;
    let (mut path, mut options, mut schema) = (None, BTreeMap::new(), None);
    inner.comma_separated(|inner| {
        let here = inner.here();
        if !names_argument(inner) {
            let text = inner.string("a path in quotes, or `option => value`")?;
            if path.replace(text).is_some() {
                return Err(
                    Problem::new(here, "read_files takes one path").help("use a glob for several files")
                );
            }
            return Ok(());
        }
        let key = option_name(inner)?;
        inner.expect_token(&Token::RArrow)?;
        let (value_at, value) = (inner.here(), option_value(inner)?);
        let repeated = match (key.as_str(), value) {
            ("path", OptionValue::Text(text)) => path.replace(text).is_some(),
            ("schema", OptionValue::Text(text)) => schema.replace(columns(&text, value_at)?).is_some(),
            ("path" | "schema", _) => {
                return Err(Problem::new(value_at, format!("{key} must be a text in quotes")));
            }
            (_, value) => options.insert(key.clone(), value).is_some(),
        };
        if repeated {
            return Err(Problem::new(here, format!("option {key} is given twice")));
        }
        Ok(())
    })?;
    let path = path.ok_or_else(|| {
        Problem::new(name, "read_files needs a path").help("write read_files('folder', format => 'json')")
    })?;
    Ok(ReadFiles { path, options, schema })
}

fn names_argument(cursor: &Cursor<'_>) -> bool {
    cursor
        .rest()
        .iter()
        .take_while(|tok| tok.token != Token::Comma && tok.token != Token::LParen)
        .any(|tok| tok.token == Token::RArrow)
}

fn option_name(cursor: &mut Cursor<'_>) -> Result<String, Problem> {
    let name = match cursor.string("an option") {
        Ok(name) => name,
        Err(_) => cursor.parts("an option's name")?.0.join("."),
    };
    Ok(option_key(&name))
}

fn option_value(cursor: &mut Cursor<'_>) -> Result<OptionValue, Problem> {
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

fn columns(text: &str, at: std::ops::Range<usize>) -> Result<Vec<ColumnDef>, Problem> {
    ColumnDef::parse_list(text).map_err(|problem| {
        let inner = Problem::new(at, format!("in this schema: {}", problem.message));
        Problem { help: problem.help, ..inner }
    })
}
