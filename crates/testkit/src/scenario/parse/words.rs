//! What do the words of a line say: lists of names, selections, conditions, the cells of a row?

use crate::scenario::cell::parse_column_cell;
use crate::scenario::types::parse_column_type;
use crate::scenario::{ColumnType, Condition, Scenario, Selection};

/// The rest of the line, if it starts with these words.
pub(super) fn strip_words<'a>(line: &'a str, words: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(words)?;
    if rest.is_empty() || rest.starts_with(' ') { Some(rest.trim()) } else { None }
}

pub(super) fn names(list: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
    if names.iter().any(String::is_empty) {
        Err(format!("`{list}` is not a list of names"))
    } else {
        Ok(names)
    }
}

/// `a, b` after the given word, or `except a, b`, or nothing at all.
pub(super) fn selection(text: &str, word: &str) -> Result<Selection, String> {
    if text.is_empty() {
        Ok(Selection::All)
    } else if text == "except" {
        Ok(Selection::Except(vec![]))
    } else if let Some(list) = strip_words(text, "except") {
        Ok(Selection::Except(names(list)?))
    } else if word.is_empty() {
        Ok(Selection::Only(names(text)?))
    } else if let Some(list) = strip_words(text, word) {
        Ok(Selection::Only(names(list)?))
    } else {
        Err(format!("expected `{word}` or `except` before `{text}`"))
    }
}

pub(super) fn condition(scenario: &Scenario, text: &str) -> Result<Condition, String> {
    let (column, value) = text.split_once('=').ok_or("a condition is `column = value`")?;
    let column = column.trim().to_owned();
    let kind = scenario
        .type_of(&column)
        .ok_or_else(|| format!("unknown column `{column}` (`types` comes first)"))?;
    let value = parse_column_cell(value, kind, scenario.physical_of(&column))?;
    Ok(Condition { column, value })
}

/// The cells between the outer bars. A bar within quotes is text.
pub(super) fn split_cells(row: &str) -> Result<Vec<String>, String> {
    let mut cells = vec![String::new()];
    let (mut quoted, mut escaped) = (false, false);
    for character in row.chars() {
        match character {
            '"' if !escaped => quoted = !quoted,
            '|' if !quoted => {
                cells.push(String::new());
                continue;
            }
            _ => {}
        }
        escaped = quoted && character == '\\' && !escaped;
        if let Some(cell) = cells.last_mut() {
            cell.push(character);
        }
    }
    if quoted {
        return Err("a quote is not closed".to_owned());
    }
    Ok(cells.into_iter().map(|cell| cell.trim().to_owned()).collect())
}

/// `name`, or `name type` where the source has another type.
pub(super) fn header_cell(text: &str) -> Result<(String, Option<ColumnType>), String> {
    match text.split_once(' ') {
        None => Ok((text.to_owned(), None)),
        Some((name, kind)) => Ok((name.to_owned(), Some(parse_column_type(kind)?))),
    }
}

pub(super) fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        other => Err(format!("expected yes or no, not `{other}`")),
    }
}
