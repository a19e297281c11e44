//! What does a scenario file say, and on which line is it wrong?
//!
//! Files are trusted but typed by hand: an unknown directive, an unknown column or a row of the wrong length is an error.

use std::collections::BTreeSet;
use std::fmt;

use super::types::parse_fields;
use super::{
    Batch, BatchKind, Condition, SEQUENCE_AT, Scenario, Selection, Step, StoredAs, Table, Type, parse_cell,
};

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ParseError {}

/// Reads a scenario.
///
/// # Errors
/// The first line that is wrong. What is missing is reported on the last line.
pub fn parse(text: &str) -> Result<Scenario, ParseError> {
    let mut parser = Parser::default();
    let mut last = 1;
    for (line, text) in (1..).zip(text.lines()) {
        parser.line(text.trim()).map_err(|message| ParseError { line, message })?;
        last = line;
    }
    parser.finish().map_err(|message| ParseError { line: last, message })
}

#[derive(Default)]
struct Parser {
    scenario: Scenario,
    /// The options are complete and checked.
    sealed: bool,
    seen: BTreeSet<&'static str>,
    crash: bool,
    /// Columns that some batch has carried.
    carried: BTreeSet<String>,
    /// Types of the columns of the table that is being read.
    header: Vec<Type>,
    /// The last step wants a table and has no header yet.
    headless: bool,
    batches: usize,
}

const OPTIONS: [&str; 13] = [
    "title",
    "stored as",
    "types",
    "keys",
    "sequence by",
    "system sequence by",
    "delete when",
    "truncate when",
    "retract when",
    "columns to update",
    "columns",
    "track history",
    "ignore null updates",
];

impl Parser {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if let Some(row) = line.strip_prefix('|') {
            let row = row.strip_suffix('|').ok_or("a row ends with `|`")?;
            return self.row(&split_cells(row)?);
        }
        self.no_headless()?;
        self.header.clear();
        for option in OPTIONS {
            if let Some(rest) = strip_words(line, option) {
                if self.sealed {
                    return Err(format!("`{option}` must stand before the first step"));
                }
                if !self.seen.insert(option) {
                    return Err(format!("`{option}` is given twice"));
                }
                return self.option(option, rest);
            }
        }
        self.seal()?;
        self.step(line)
    }

    fn option(&mut self, option: &str, rest: &str) -> Result<(), String> {
        let scenario = &mut self.scenario;
        match option {
            "title" => rest.clone_into(&mut scenario.title),
            "stored as" => {
                scenario.stored_as = match rest {
                    "scd1" => StoredAs::Scd1,
                    "scd2" => StoredAs::Scd2,
                    "bitemporal" => StoredAs::Bitemporal,
                    other => return Err(format!("unknown shape `{other}`: scd1, scd2 or bitemporal")),
                }
            }
            "types" => scenario.types = parse_fields(rest)?,
            "keys" => scenario.keys = names(rest)?,
            "sequence by" => scenario.sequence = names(rest)?,
            "system sequence by" => scenario.system_sequence = names(rest)?,
            "delete when" => scenario.delete_when = Some(condition(scenario, rest)?),
            "truncate when" => scenario.truncate_when = Some(condition(scenario, rest)?),
            "retract when" => scenario.retract_when = Some(condition(scenario, rest)?),
            "columns to update" => scenario.columns_to_update = Some(rest.to_owned()),
            "columns" => scenario.columns = selection(rest, "")?,
            "track history" => scenario.track_history = selection(rest, "on")?,
            _ => scenario.ignore_null_updates = Some(selection(rest, "on")?),
        }
        Ok(())
    }

    /// Checks the options against each other, once.
    fn seal(&mut self) -> Result<(), String> {
        if self.sealed {
            return Ok(());
        }
        let scenario = &self.scenario;
        for needed in ["title", "stored as", "types", "keys"] {
            if !self.seen.contains(needed) {
                return Err(format!("`{needed}` is missing"));
            }
        }
        let ignored = scenario.ignore_null_updates.iter().flat_map(Selection::names);
        let named = scenario.keys.iter().chain(&scenario.sequence).chain(&scenario.system_sequence);
        let named =
            named.chain(scenario.columns.names()).chain(scenario.track_history.names()).chain(ignored);
        for column in named.chain(&scenario.columns_to_update) {
            if scenario.type_of(column).is_none() {
                return Err(format!("unknown column `{column}`"));
            }
        }
        if let Some(key) = scenario.keys.iter().find(|key| !scenario.columns.contains(key)) {
            return Err(format!("the key `{key}` is not kept"));
        }
        let bitemporal = scenario.stored_as == StoredAs::Bitemporal;
        if bitemporal == scenario.system_sequence.is_empty() {
            return Err("`system sequence by` belongs to bitemporal targets, and only there".to_owned());
        }
        self.sealed = true;
        Ok(())
    }

    fn step(&mut self, line: &str) -> Result<(), String> {
        let step = if line == "batch" {
            if self.scenario.sequence.is_empty() {
                return Err("a batch of changes needs `sequence by`".to_owned());
            }
            self.batch(BatchKind::Changes)
        } else if let Some(version) = strip_words(line, "snapshot") {
            self.batch(BatchKind::Snapshot(parse_cell(version, &self.scenario.sequence_type())?))
        } else if line == "crash before target" {
            self.crash = true;
            return Ok(());
        } else if line == "restart" {
            Step::Restart
        } else if line == "expect target" {
            self.headless = true;
            Step::ExpectTarget(Table::default())
        } else if let Some(which) = strip_words(line, "replay") {
            Step::Replay(self.replay(which)?)
        } else if let Some(condition) = strip_words(line, "expect error") {
            if !matches!(self.scenario.steps.last(), Some(Step::Deliver(_) | Step::Replay(_))) {
                return Err("`expect error` follows the delivery that is refused".to_owned());
            }
            Step::ExpectError(condition.to_owned())
        } else {
            return Err(format!("unknown directive `{line}`"));
        };
        if self.crash && !matches!(step, Step::Deliver(_)) {
            return Err("`crash before target` stands before a batch".to_owned());
        }
        self.crash = false;
        self.scenario.steps.push(step);
        Ok(())
    }

    fn batch(&mut self, kind: BatchKind) -> Step {
        self.headless = true;
        self.batches += 1;
        Step::Deliver(Batch { number: self.batches, kind, table: Table::default(), crash: self.crash })
    }

    fn replay(&self, which: &str) -> Result<Vec<usize>, String> {
        if which == "all" {
            return Ok((1..=self.batches).collect());
        }
        let number = |text: String| match text.parse() {
            Ok(number) if (1..=self.batches).contains(&number) => Ok(number),
            _ => Err(format!("there is no batch `{text}` yet")),
        };
        names(which)?.into_iter().map(number).collect()
    }

    fn row(&mut self, cells: &[String]) -> Result<(), String> {
        let first = std::mem::take(&mut self.headless);
        if first {
            self.header = self.header_types(cells)?;
        }
        let (table, types) = match self.scenario.steps.last_mut() {
            Some(Step::Deliver(batch)) if !self.header.is_empty() => (&mut batch.table, &self.header),
            Some(Step::ExpectTarget(table)) if !self.header.is_empty() => (table, &self.header),
            _ => return Err("this row belongs to no table".to_owned()),
        };
        if first {
            table.columns = cells.to_vec();
            return Ok(());
        }
        if cells.len() != types.len() {
            return Err(format!("{} cells under a header of {}", cells.len(), types.len()));
        }
        let cell = |((text, kind), name): ((&String, &Type), &String)| {
            parse_cell(text, kind).map_err(|message| format!("column `{name}`: {message}"))
        };
        let row = cells.iter().zip(types).zip(&table.columns).map(cell).collect::<Result<_, _>>()?;
        table.rows.push(row);
        Ok(())
    }

    fn header_types(&mut self, columns: &[String]) -> Result<Vec<Type>, String> {
        if let Some(twice) = columns.iter().enumerate().find(|(at, name)| columns[..*at].contains(name)) {
            return Err(format!("column `{}` stands twice in the header", twice.1));
        }
        let (known, required): (_, Vec<String>) = match self.scenario.steps.last() {
            Some(Step::ExpectTarget(_)) => {
                let known = self.scenario.target_columns();
                let carried = |name: &String| self.carried.contains(name) || name.starts_with("__");
                let required = known.iter().map(|(name, _)| name.clone()).filter(carried);
                let required = required.filter(|name| name != SEQUENCE_AT).collect();
                (known, required)
            }
            Some(Step::Deliver(batch)) => {
                self.carried.extend(columns.iter().cloned());
                let (keys, sequences) = (&self.scenario.keys, &self.scenario.sequence);
                let required = match batch.kind {
                    BatchKind::Changes => {
                        keys.iter().chain(sequences).chain(&self.scenario.system_sequence).cloned().collect()
                    }
                    BatchKind::Snapshot(_) => keys.clone(),
                };
                (self.scenario.types.clone(), required)
            }
            _ => return Err("this row belongs to no table".to_owned()),
        };
        if let Some(missing) = required.iter().find(|name| !columns.contains(name)) {
            return Err(format!("the header lacks column `{missing}`"));
        }
        let kind = |column: &String| {
            let found = known.iter().find(|(name, _)| name == column);
            found.map(|(_, kind)| kind.clone()).ok_or_else(|| format!("unknown column `{column}`"))
        };
        columns.iter().map(kind).collect()
    }

    fn no_headless(&self) -> Result<(), String> {
        if self.headless { Err("the step before lacks a table header".to_owned()) } else { Ok(()) }
    }

    fn finish(mut self) -> Result<Scenario, String> {
        self.no_headless()?;
        self.seal()?;
        if self.crash {
            return Err("`crash before target` stands before a batch".to_owned());
        }
        let expects = |step: &Step| matches!(step, Step::ExpectTarget(_) | Step::ExpectError(_));
        if !self.scenario.steps.last().is_some_and(expects) {
            return Err("a scenario ends with an expectation".to_owned());
        }
        Ok(self.scenario)
    }
}

/// The rest of the line, if it starts with these words.
fn strip_words<'a>(line: &'a str, words: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(words)?;
    if rest.is_empty() || rest.starts_with(' ') { Some(rest.trim()) } else { None }
}

fn names(list: &str) -> Result<Vec<String>, String> {
    let names: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
    if names.iter().any(String::is_empty) {
        Err(format!("`{list}` is not a list of names"))
    } else {
        Ok(names)
    }
}

/// `a, b` after the given word, or `except a, b`, or nothing at all.
fn selection(text: &str, word: &str) -> Result<Selection, String> {
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

fn condition(scenario: &Scenario, text: &str) -> Result<Condition, String> {
    let (column, value) = text.split_once('=').ok_or("a condition is `column = value`")?;
    let column = column.trim().to_owned();
    let kind = scenario
        .type_of(&column)
        .ok_or_else(|| format!("unknown column `{column}` (`types` comes first)"))?;
    Ok(Condition { value: parse_cell(value, kind)?, column })
}

/// The cells between the outer bars. A bar within quotes is text.
fn split_cells(row: &str) -> Result<Vec<String>, String> {
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
