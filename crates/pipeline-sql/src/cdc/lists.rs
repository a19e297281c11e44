//! Which columns does a list name?

use sqlparser::tokenizer::Token;
use strandline_cdc_core::spec::ColumnSelection;

use super::clause::Clause;
use crate::{cursor::Cursor, error::Problem, parse::Reader, suggest::nearest};

/// `KEYS (column, ..)`, directly behind the source.
pub(crate) fn read_keys(reader: &mut Reader<'_>) -> Result<Vec<String>, Problem> {
    if reader.cursor.eat_words(&["KEYS"]).is_none() {
        let word = reader.cursor.peek().and_then(crate::lexer::Tok::keyword).unwrap_or_default();
        let help = match nearest(&word, ["KEYS"]) {
            Some(_) => "did you mean KEYS?",
            None => "KEYS (column, ..) follows the source and says what identifies a row",
        };
        return Err(reader.cursor.expected("KEYS").help(help));
    }
    let start = reader.cursor.here().start;
    let keys = read_list(reader, "KEYS")?;
    if keys.is_empty() {
        reader.problems.push(
            Problem::new(reader.cursor.since(start), "KEYS names no column")
                .help("name the columns that identify a row")
                .condition("AUTOCDC_EMPTY_KEYS"),
        );
    }
    Ok(keys)
}

/// `(columns)` or `* EXCEPT (columns)`.
pub(crate) fn read_selection(reader: &mut Reader<'_>, clause: Clause) -> Result<ColumnSelection, Problem> {
    let except = reader.cursor.eat_token(&Token::Mul).is_some();
    if except {
        reader.cursor.expect_words(&["EXCEPT"])?;
    }
    let start = reader.cursor.here().start;
    let columns = read_list(reader, clause.text())?;
    if columns.is_empty() && !(except && clause == Clause::IgnoreNullUpdates) {
        let problem = Problem::new(reader.cursor.since(start), format!("{} names no column", clause.text()));
        reader.problems.push(if clause == Clause::IgnoreNullUpdates {
            problem.condition("AUTOCDC_IGNORE_NULL_EMPTY_COLUMN_LIST")
        } else {
            problem
        });
    }
    Ok(if except { ColumnSelection::Except(columns) } else { ColumnSelection::Only(columns) })
}

/// What follows `IGNORE NULL UPDATES`: nothing, or ON and a selection.
pub(crate) fn read_ignore_null(reader: &mut Reader<'_>, clause: Clause) -> Result<ColumnSelection, Problem> {
    if reader.cursor.eat_words(&["ON"]).is_none() {
        return Ok(ColumnSelection::All);
    }
    read_selection(reader, clause)
}

/// Unqualified column names in parentheses; a name with several parts is refused (C-39), and so is anything else.
fn read_list(reader: &mut Reader<'_>, clause: &str) -> Result<Vec<String>, Problem> {
    if !reader.cursor.at_token(&Token::LParen) {
        let problem = reader.cursor.expected("`(`");
        return Err(problem.help(format!("columns stand in parentheses: {clause} (a, b)")));
    }
    let mut inner = reader.cursor.parenthesized()?;
    let problems = &mut reader.problems;
    let mut columns: Vec<String> = Vec::new();
    inner.comma_separated(|inner| {
        let (parts, range) =
            inner.parts("a column's name").map_err(|problem| not_a_column(inner, problem))?;
        if inner.at_token(&Token::LParen) {
            return Err(not_a_column(inner, inner.expected("`,` or `)`")));
        }
        if let [column] = parts.as_slice() {
            if columns.contains(column) {
                problems.push(Problem::new(range, format!("{clause} names column {column} twice")));
            } else {
                columns.push(column.clone());
            }
            return Ok(());
        }
        let whole = parts.join(".");
        problems.push(
            Problem::new(range, format!("a column here has a name of one part, {whole} has {}", parts.len()))
                .help(format!("if the column is called {whole}, write `{whole}`"))
                .condition("AUTOCDC_MULTIPART_COLUMN_IDENTIFIER"),
        );
        columns.push(whole);
        Ok(())
    })?;
    Ok(columns)
}

fn not_a_column(cursor: &Cursor<'_>, problem: Problem) -> Problem {
    if cursor.is_done() { problem } else { problem.condition("AUTOCDC_NON_COLUMN_IDENTIFIER") }
}
