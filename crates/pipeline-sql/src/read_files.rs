//! What do `read_files(..)` and `read_kafka(..)` read?

use std::{collections::BTreeMap, ops::Range};

use sqlparser::tokenizer::Token;

use crate::{
    ColumnDef, OptionValue,
    cursor::Cursor,
    error::Problem,
    options::{option_name, option_value},
};

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
        self.options.get(&file_option(name))
    }
}

fn file_option(name: &str) -> String {
    let name = name.to_lowercase();
    name.strip_prefix("cloudfiles.").map(str::to_owned).unwrap_or(name)
}

/// The arguments of `read_kafka(option => value, ..)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadKafka {
    /// Options, in lower case.
    pub options: BTreeMap<String, OptionValue>,
    /// The columns of `schema => '..'`.
    pub schema: Option<Vec<ColumnDef>>,
}

/// What stands in the parentheses of either function.
#[derive(Default)]
struct Arguments {
    path: Option<String>,
    options: BTreeMap<String, OptionValue>,
    schema: Option<Vec<ColumnDef>>,
}

/// Reads `read_files (..)`, the name included.
pub(crate) fn read_files(cursor: &mut Cursor<'_>) -> Result<ReadFiles, Problem> {
    let name = cursor.here();
    cursor.expect_words(&["READ_FILES"])?;
    let mut arguments = Arguments::default();
    cursor.parenthesized()?.comma_separated(|inner| {
        let here = inner.here();
        if names_argument(inner) {
            return arguments.read_named(inner, file_option);
        }
        let text = inner.string("a path in quotes, or `option => value`")?;
        if arguments.path.replace(text).is_some() {
            return Err(Problem::new(here, "read_files takes one path").help("use a glob for several files"));
        }
        Ok(())
    })?;
    let Arguments { path, options, schema } = arguments;
    let path = path.ok_or_else(|| {
        Problem::new(name, "read_files needs a path").help("write read_files('folder', format => 'json')")
    })?;
    Ok(ReadFiles { path, options, schema })
}

/// Reads `cloud_files ('path', 'format' [, map('option', 'value', ..)])`, the name included.
pub(crate) fn cloud_files(cursor: &mut Cursor<'_>) -> Result<ReadFiles, Problem> {
    cursor.expect_words(&["CLOUD_FILES"])?;
    let mut inner = cursor.parenthesized()?;
    let mut arguments = Arguments::default();
    let path = inner.string("a path in quotes")?;
    inner.expect_token(&Token::Comma)?;
    let format = inner.string("a format in quotes")?;
    arguments.options.insert("format".to_owned(), OptionValue::Text(format));
    if inner.eat_token(&Token::Comma).is_some() {
        inner.expect_words(&["MAP"])?;
        let mut pairs = inner.parenthesized()?;
        pairs.comma_separated(|pairs| arguments.read_value(pairs, file_option, &Token::Comma))?;
    }
    inner
        .expect_end()
        .map_err(|_| inner.expected("`)`").help("write read_files('folder', format => 'json')"))?;
    Ok(ReadFiles { path, options: arguments.options, schema: arguments.schema })
}

const KAFKA_EXAMPLE: &str = "write read_kafka(bootstrapServers => 'host:9092', subscribe => 'topic')";

/// Reads `read_kafka (..)`, the name included.
pub(crate) fn read_kafka(cursor: &mut Cursor<'_>) -> Result<ReadKafka, Problem> {
    let name = cursor.here();
    cursor.expect_words(&["READ_KAFKA"])?;
    let mut arguments = Arguments::default();
    cursor.parenthesized()?.comma_separated(|inner| {
        if !names_argument(inner) {
            return Err(inner.expected("`option => value`").help(KAFKA_EXAMPLE));
        }
        arguments.read_named(inner, str::to_lowercase)
    })?;
    let Arguments { path, options, schema } = arguments;
    if path.is_some() {
        return Err(Problem::new(name, "read_kafka takes no path").help(KAFKA_EXAMPLE));
    }
    if options.is_empty() {
        return Err(Problem::new(name, "read_kafka needs options").help(KAFKA_EXAMPLE));
    }
    Ok(ReadKafka { options, schema })
}

impl Arguments {
    /// Reads `option => value`; `key` is what names the option.
    fn read_named(&mut self, cursor: &mut Cursor<'_>, key: fn(&str) -> String) -> Result<(), Problem> {
        self.read_value(cursor, key, &Token::RArrow)
    }

    fn read_value(
        &mut self,
        cursor: &mut Cursor<'_>,
        key: fn(&str) -> String,
        between: &Token,
    ) -> Result<(), Problem> {
        let here = cursor.here();
        let key = key(&option_name(cursor)?);
        cursor.expect_token(between)?;
        let (value_at, value) = (cursor.here(), option_value(cursor)?);
        let repeated = match (key.as_str(), value) {
            ("path", OptionValue::Text(text)) => self.path.replace(text).is_some(),
            ("schema", OptionValue::Text(text)) => self.schema.replace(columns(&text, value_at)?).is_some(),
            ("path" | "schema", _) => {
                return Err(Problem::new(value_at, format!("{key} must be a text in quotes")));
            }
            (_, value) => self.options.insert(key.clone(), value).is_some(),
        };
        if repeated {
            return Err(Problem::new(here, format!("option {key} is given twice")));
        }
        Ok(())
    }
}

fn names_argument(cursor: &Cursor<'_>) -> bool {
    cursor
        .rest()
        .iter()
        .take_while(|tok| tok.token != Token::Comma && tok.token != Token::LParen)
        .any(|tok| tok.token == Token::RArrow)
}

fn columns(text: &str, at: Range<usize>) -> Result<Vec<ColumnDef>, Problem> {
    ColumnDef::parse_list(text).map_err(|problem| {
        let inner = Problem::new(at, format!("in this schema: {}", problem.message));
        Problem { help: problem.help, ..inner }
    })
}
