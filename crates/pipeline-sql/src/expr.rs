//! What does an expression say, in the author's words and in an engine's?

use std::ops::{ControlFlow, Range};

use sqlparser::{
    ast::{Expr, Query, Visit, Visitor},
    parser::ParserError,
    tokenizer::Location,
};

use crate::{
    SourceFile, SqlError,
    cursor::Cursor,
    dialect::StrandlineDialect,
    error::Problem,
    lexer::{self, Tok, lower_first},
    query::{Versions, portable, versions},
};

/// A scalar SQL expression over the columns of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SqlExpr {
    text: String,
    sql: String,
}

impl SqlExpr {
    /// Parses one expression of the pipeline's dialect.
    ///
    /// # Errors
    /// Text that is no expression, or has a subquery in it.
    pub fn parse(text: &str) -> Result<Self, SqlError> {
        let source = SourceFile::new("<expression>", text);
        let parsed = || {
            let tokens = whole(text)?;
            let mut cursor = Cursor::new(text, 0, &tokens);
            let expr = read(&mut cursor)?;
            cursor.expect_end()?;
            Ok(expr)
        };
        parsed().map_err(|problem| SqlError::located(&source, problem))
    }

    /// The expression as its author wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The expression in standard quoting (`"name"`, `'text'`), as `DataFusion` reads it by default.
    pub fn sql(&self) -> &str {
        &self.sql
    }
}

impl std::fmt::Display for SqlExpr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// The tokens of a text that is no file.
pub(crate) fn whole(text: &str) -> Result<Vec<Tok>, Problem> {
    let (tokens, problem) = lexer::tokenize(text);
    lexer::check_size(&tokens)?;
    problem.map_or(Ok(tokens), Err)
}

/// Reads an expression at the cursor, and passes it.
pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<SqlExpr, Problem> {
    read_parsed(cursor).map(|(expr, _)| expr)
}

/// As [`read`], with what the parser made of it.
pub(crate) fn read_parsed(cursor: &mut Cursor<'_>) -> Result<(SqlExpr, Expr), Problem> {
    let start = cursor.here();
    let tokens = portable::tokens(cursor.rest())?;
    let dialect = StrandlineDialect::for_tokens(tokens.len());
    let mut parser = dialect.parser(tokens);
    let mut expr = parser.parse_expr().map_err(|error| foreign(cursor, &error))?;
    if expr.visit(&mut Subqueries).is_break() {
        return Err(
            Problem::new(start, "a subquery can't stand here").help("compute it in a view and read that")
        );
    }
    for _ in 0..parser.index() {
        if let Some(problem) = versions::scalar(cursor, Versions::Outside) {
            return Err(problem);
        }
        cursor.skip(1);
    }
    portable::rewrite(&mut expr);
    let text = cursor.slice(cursor.since(start.start)).to_owned();
    Ok((SqlExpr { text, sql: expr.to_string() }, expr))
}

struct Subqueries;

impl Visitor for Subqueries {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Gives an error of sqlparser its place, which it writes at the end of its message.
pub(crate) fn foreign(cursor: &Cursor<'_>, error: &ParserError) -> Problem {
    let message = match error {
        ParserError::RecursionLimitExceeded => {
            return Problem::new(cursor.here(), "this nests too deeply").help("split the query with views");
        }
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => message,
    };
    let (message, place) = match message.rsplit_once(" at Line: ") {
        Some((head, place)) => (head, location(place)),
        None => (message.as_str(), None),
    };
    let range = place.and_then(|place| found_at(cursor, place, message)).unwrap_or_else(|| {
        let end = cursor.rest().last().map_or(cursor.here().end, |tok| tok.range.end);
        end..end
    });
    let message =
        lower_first(message).replacen("expected: ", "expected ", 1).replacen("found: ", "found ", 1);
    let message = message.replace("found EOF", "found the end of the statement");
    Problem::new(range, message.lines().collect::<Vec<_>>().join(" "))
}

/// The bytes of the token that the message says was found. sqlparser now and then gives the place of the next one.
fn found_at(cursor: &Cursor<'_>, place: Location, message: &str) -> Option<Range<usize>> {
    let range = cursor.token_at(place)?;
    let found = message.rsplit_once("found: ").map(|(_, found)| found).unwrap_or_default();
    let before =
        cursor.rest().iter().map(|tok| &tok.range).take_while(|before| before.end <= range.start).last();
    match before {
        Some(before) if cursor.slice(range.clone()) != found && cursor.slice(before.clone()) == found => {
            Some(before.clone())
        }
        _ => Some(range),
    }
}

fn location(place: &str) -> Option<Location> {
    let (line, column) = place.split_once(", Column: ")?;
    let (line, column) = (line.trim().parse().ok()?, column.trim().parse().ok()?);
    (line > 0).then(|| Location::new(line, column))
}
