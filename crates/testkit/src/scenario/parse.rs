//! What does a scenario file say, and on which line is it wrong?
//!
//! Files are trusted but typed by hand: an unknown directive, an unknown column or a row of the wrong length is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::cell::parse_column_cell;
use super::types::parse_columns;
use super::{Batch, BatchKind, ColumnType, SEQUENCE_AT, Scenario, Selection, Step, StoredAs, Table};

mod repetition;
mod table;
mod words;

use repetition::Repetition;
use words::{condition, names, selection, split_cells, strip_words, yes_or_no};

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

/// Which rows of a table arrive together.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Batching {
    #[default]
    Together,
    RowByRow,
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
    header: Vec<ColumnType>,
    /// The last step wants a table and has no header yet.
    headless: bool,
    batching: Batching,
    /// The next row stands for many.
    repeated: Option<Repetition>,
    batches: usize,
}

const OPTIONS: [&str; 16] = [
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
    "unavailable value",
    "permute",
    "case sensitive",
];

impl Parser {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if let Some(row) = line.strip_prefix('|') {
            let row = row.strip_suffix('|').ok_or("a row ends with `|`")?;
            return self.rows(&split_cells(row)?);
        }
        self.no_headless()?;
        if let Some(repetition) = strip_words(line, "for") {
            self.repeated = Some(Repetition::parse(repetition)?);
            return Ok(());
        }
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
            "types" => {
                for (name, (kind, physical)) in parse_columns(rest)? {
                    scenario.physical.extend(physical.map(|physical| (name.clone(), physical)));
                    scenario.types.push((name, kind));
                }
            }
            "keys" => scenario.keys = if rest.is_empty() { vec![] } else { names(rest)? },
            "sequence by" => {
                let greatest = rest.strip_prefix("greatest(").and_then(|rest| rest.strip_suffix(')'));
                scenario.greatest = greatest.is_some();
                scenario.sequence = names(greatest.unwrap_or(rest))?;
            }
            "system sequence by" => scenario.system_sequence = names(rest)?,
            "delete when" => scenario.delete_when = Some(condition(scenario, rest)?),
            "truncate when" => scenario.truncate_when = Some(condition(scenario, rest)?),
            "retract when" => scenario.retract_when = Some(condition(scenario, rest)?),
            "columns to update" => scenario.columns_to_update = Some(rest.to_owned()),
            "unavailable value" => scenario.unavailable = Some(rest.to_owned()),
            "permute" => scenario.permute = yes_or_no(rest)?,
            "case sensitive" => scenario.fold_case = !yes_or_no(rest)?,
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
        let step = if line == "batch" || line == "batches" {
            self.batching = if line == "batches" { Batching::RowByRow } else { Batching::Together };
            if self.scenario.sequence.is_empty() {
                return Err("a batch of changes needs `sequence by`".to_owned());
            }
            self.batch(BatchKind::Changes)
        } else if let Some(version) = strip_words(line, "snapshot") {
            self.batching = Batching::Together;
            let physical = self.scenario.physical_of(SEQUENCE_AT);
            let version = parse_column_cell(version, &self.scenario.sequence_type(), physical)?;
            self.batch(BatchKind::Snapshot(version))
        } else if line == "crash before target" {
            self.crash = true;
            return Ok(());
        } else if line == "restart" {
            Step::Restart
        } else if let Some(keys) = strip_words(line, "rekey") {
            Step::Rekey(names(keys)?)
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
        Step::Deliver(Batch {
            number: self.batches,
            kind,
            table: Table::default(),
            types: BTreeMap::new(),
            crash: self.crash,
        })
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

    fn no_headless(&self) -> Result<(), String> {
        if self.headless {
            Err("the step before lacks a table header".to_owned())
        } else if self.repeated.is_some() {
            Err("`for` stands before a row".to_owned())
        } else {
            Ok(())
        }
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
        let fixed = |step: &Step| matches!(step, Step::ExpectError(_) | Step::Rekey(_));
        if self.scenario.permute && self.scenario.steps.iter().any(fixed) {
            return Err("what is refused depends on the arrival: no `permute yes` here".to_owned());
        }
        Ok(self.scenario)
    }
}
