//! Which sources of a query are written in our syntax?
//!
//! `STREAM t`, `STREAM(t)`, `read_files(..)` and their like are replaced before the query is parsed, since no SQL parser takes them
//! all. They count only where a FROM clause expects a table; elsewhere these are names like any other.

use std::collections::BTreeMap;

use sqlparser::{
    keywords::RESERVED_FOR_TABLE_ALIAS,
    tokenizer::{Token, TokenWithSpan},
};

use super::{
    InputKind, QueryInput, RESERVED, paths, placeholder, portable,
    versions::{self, Versions},
};
use crate::{
    OptionValue, Span,
    cursor::{Cursor, dataset_name},
    error::Problem,
    expr::whole,
    lexer::Tok,
    options::read_flags,
    read_files,
};

/// Which part of a SELECT the scan is in, for each open parenthesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Region {
    Other,
    Select,
    From,
}

/// The tokens of the query with a placeholder's name for each such source.
pub(super) fn replace(
    cursor: &Cursor<'_>,
    versions: Versions,
) -> Result<(Vec<TokenWithSpan>, Vec<QueryInput>), Problem> {
    let mut cursor = *cursor;
    let (mut tokens, mut inputs) = (Vec::new(), Vec::new());
    let mut regions = Regions { open: vec![Region::Other], previous: None };
    while let Some(tok) = cursor.peek() {
        refuse_reserved(tok)?;
        if regions.expects_table()
            && let Some(input) = source(&mut cursor, inputs.len(), versions)?
        {
            tokens.push(tok.replaced_by_name(&input.placeholder));
            inputs.push(input);
            regions.previous = None;
            continue;
        }
        if let Some(problem) = versions::scalar(&cursor, versions) {
            return Err(problem);
        }
        if let Some(next) = cursor.peek_nth(1) {
            portable::literal(tok, next)?;
        }
        regions.pass(tok);
        tokens.push(tok.portable());
        cursor.skip(1);
    }
    Ok((tokens, inputs))
}

fn refuse_reserved(tok: &Tok) -> Result<(), Problem> {
    if tok.word().is_some_and(|word| word.value.to_lowercase().starts_with(RESERVED)) {
        Err(Problem::new(tok.range.clone(), format!("names that begin with {RESERVED} are reserved")))
    } else {
        Ok(())
    }
}

struct Regions<'a> {
    open: Vec<Region>,
    previous: Option<&'a Tok>,
}

impl<'a> Regions<'a> {
    fn top(&self) -> Region {
        self.open.last().copied().unwrap_or(Region::Other)
    }

    fn set(&mut self, region: Region) {
        if let Some(top) = self.open.last_mut() {
            *top = region;
        }
    }

    fn expects_table(&self) -> bool {
        self.top() == Region::From
            && self.previous.is_some_and(|tok| {
                matches!(tok.token, Token::Comma | Token::LParen)
                    || tok.is_keyword("FROM")
                    || tok.is_keyword("JOIN")
            })
    }

    fn pass(&mut self, tok: &'a Tok) {
        if tok.token == Token::LParen {
            // FROM (t JOIN u): still a list of tables. Anything else in parentheses starts anew.
            self.open.push(if self.expects_table() { Region::From } else { Region::Other });
        } else if tok.token == Token::RParen {
            self.open.pop();
        } else {
            self.pass_word(tok);
        }
        self.previous = Some(tok);
    }

    fn pass_word(&mut self, tok: &Tok) {
        let distinct = self.previous.is_some_and(|tok| tok.is_keyword("DISTINCT"));
        match (tok.keyword().as_deref(), self.top()) {
            (Some("SELECT"), _) => self.set(Region::Select),
            // `a IS DISTINCT FROM b` is no FROM clause.
            (Some("FROM"), Region::Select) if !distinct => self.set(Region::From),
            (Some("WHERE" | "GROUP" | "HAVING" | "ORDER" | "LIMIT" | "WINDOW" | "QUALIFY"), Region::From) => {
                self.set(Region::Other);
            }
            _ => {}
        }
    }
}

/// Reads a source in our syntax, if one stands here, and passes it.
fn source(cursor: &mut Cursor<'_>, number: usize, versions: Versions) -> Result<Option<QueryInput>, Problem> {
    let start = cursor.here().start;
    // The older spelling of read_files is a stream by itself.
    let is_stream = cursor.at_words(&["CLOUD_FILES"]);
    let (kind, streaming) = match function(cursor)? {
        Some(kind) => (kind, is_stream),
        None => match versions::table(cursor, versions)? {
            Some(kind) => (kind, false),
            None => match stream(cursor)? {
                Some(kind) => (kind, true),
                None => return Ok(None),
            },
        },
    };
    let options = if streaming { stream_options(cursor, &kind)? } else { BTreeMap::new() };
    let range = cursor.since(start);
    let span = Span { file: cursor.file, start: range.start, end: range.end };
    Ok(Some(QueryInput { placeholder: placeholder(number), kind, streaming, options, span }))
}

/// A call of a function that reads from outside.
fn function(cursor: &mut Cursor<'_>) -> Result<Option<InputKind>, Problem> {
    let called = cursor.peek_nth(1).is_some_and(|tok| tok.token == Token::LParen);
    if cursor.at_words(&["READ_FILES"]) && called {
        return Ok(Some(InputKind::ReadFiles(read_files::read_files(cursor)?)));
    }
    if cursor.at_words(&["READ_KAFKA"]) && called {
        return Ok(Some(InputKind::ReadKafka(read_files::read_kafka(cursor)?)));
    }
    if cursor.at_words(&["IDENTIFIER"]) && called {
        return Ok(Some(InputKind::Dataset(identifier(cursor)?)));
    }
    if cursor.at_words(&["CLOUD_FILES"]) && called {
        return Ok(Some(InputKind::ReadFiles(read_files::cloud_files(cursor)?)));
    }
    Ok(None)
}

/// `IDENTIFIER('name')`: a name that is written as a text.
fn identifier(cursor: &mut Cursor<'_>) -> Result<String, Problem> {
    cursor.skip(1);
    let mut inner = cursor.parenthesized()?;
    let at = inner.here();
    let text =
        inner.string("a name in quotes").map_err(|problem| problem.help("write IDENTIFIER('name')"))?;
    inner.expect_end()?;
    let tokens = whole(&text).map_err(|problem| Problem::new(at.clone(), problem.message))?;
    let mut name = Cursor::new(&text, cursor.file, &tokens);
    let named = name.dataset("a name").and_then(|(dataset, _)| name.expect_end().map(|()| dataset));
    named.map_err(|problem| Problem::new(at, format!("in this name: {}", problem.message)))
}

/// `STREAM(source)` or `STREAM source`.
fn stream(cursor: &mut Cursor<'_>) -> Result<Option<InputKind>, Problem> {
    let called = cursor.peek_nth(1).is_some_and(|tok| tok.token == Token::LParen);
    if cursor.at_words(&["STREAM"]) && called {
        cursor.skip(1);
        let mut inner = cursor.parenthesized()?;
        let kind = streamed(&mut inner)?;
        if !inner.is_done() {
            return Err(inner.expected("`)`").help("STREAM(..) takes a table, a view or read_files(..)"));
        }
        return Ok(Some(kind));
    }
    if cursor.at_words(&["STREAM"]) && cursor.peek_nth(1).is_some_and(begins_name) {
        cursor.skip(1);
        return Ok(Some(streamed(cursor)?));
    }
    Ok(None)
}

/// `WITH (option [= value], ..)` behind a streamed table.
fn stream_options(
    cursor: &mut Cursor<'_>,
    kind: &InputKind,
) -> Result<BTreeMap<String, OptionValue>, Problem> {
    let opens = cursor.peek_nth(1).is_some_and(|tok| tok.token == Token::LParen);
    if !cursor.at_words(&["WITH"]) || !opens {
        return Ok(BTreeMap::new());
    }
    if !matches!(kind, InputKind::Dataset(_) | InputKind::Table(_)) {
        return Err(Problem::new(cursor.here(), "WITH (..) is for tables only")
            .help("write the options inside the parentheses, as in read_files('folder', option => value)"));
    }
    cursor.skip(1);
    read_flags(cursor)
}

fn streamed(cursor: &mut Cursor<'_>) -> Result<InputKind, Problem> {
    if versions::called(cursor).is_some() {
        return Err(Problem::new(cursor.here(), "the version of a snapshot is no stream")
            .help("leave out STREAM")
            .condition("INVALID_USAGE_OF_SNAPSHOT_VERSION_FUNCTION"));
    }
    if let Some(kind) = function(cursor)? {
        return Ok(kind);
    }
    let before = cursor.rest();
    let (parts, range) = cursor.parts("a table, a view or read_files(..)")?;
    let words = before.iter().filter_map(Tok::word).map(|word| word.quote_style.is_some());
    let places: Vec<_> = parts.iter().cloned().zip(words).collect();
    if let Some(input) = paths::input(&places, &range)? {
        return Ok(input);
    }
    let name = dataset_name(parts);
    if cursor.at_token(&Token::LParen) {
        return Err(Problem::new(range, format!("{name}(..) can't be read as a stream"))
            .help("STREAM takes a table, a view, read_files(..) or read_kafka(..)"));
    }
    Ok(InputKind::Dataset(name))
}

/// True for a word that can be a table's name behind STREAM, rather than go on with a clause behind a table `stream`.
fn begins_name(tok: &Tok) -> bool {
    tok.word().is_some_and(|word| {
        word.quote_style.is_some()
            || !(tok.is_keyword("AS") || RESERVED_FOR_TABLE_ALIAS.contains(&word.keyword))
    })
}
