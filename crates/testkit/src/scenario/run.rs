//! Does a subject do what a scenario says?

use std::cmp::Ordering;
use std::fmt;

use super::print::print_table;
use super::{Batch, SEQUENCE_AT, Scenario, Step, Table};
use crate::reference::{Row, Value};

/// Something that maintains a target: the reference, the core, a table in some format, a whole pipeline.
///
/// # Contract
/// 1. A refused batch leaves the target as it was; the message holds the name of the condition.
/// 2. After [`Subject::restart`] the subject knows what it made durable, and nothing else.
pub trait Subject {
    /// Applies a batch to the end. A replay brings a batch of the same number once more. The scenario is what the flow
    /// means now: its keys may differ from those at the start.
    ///
    /// # Errors
    /// Why the batch was refused, the name of the condition first.
    fn apply(&mut self, scenario: &Scenario, batch: &Batch) -> Result<(), String>;

    /// Begins to apply a batch and dies before the target's commit. A restart and the same batch follow. Unless a subject
    /// can do better, it dies before anything happens.
    ///
    /// # Errors
    /// Only if the subject could not be brought to die: then the run fails.
    fn crash(&mut self, scenario: &Scenario, batch: &Batch) -> Result<(), String> {
        _ = (scenario, batch);
        Ok(())
    }

    /// Ends the process and starts it again.
    ///
    /// # Errors
    /// Why it does not start.
    fn restart(&mut self) -> Result<(), String>;

    /// All rows of the target, in any order. `__SEQUENCE_AT` may be there or not.
    ///
    /// # Errors
    /// Why the target cannot be read.
    fn target(&mut self) -> Result<Vec<Row>, String>;
}

/// Where a run left its scenario, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The scenario's name.
    pub scenario: String,
    /// The step, from 1, and the last batch before it.
    pub step: usize,
    /// The number of the last batch that was delivered.
    pub batch: usize,
    /// What went wrong, with the rows that differ.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scenario, step, batch, message } = self;
        write!(f, "{scenario}: step {step}, after batch {batch}: {message}")
    }
}

impl std::error::Error for Failure {}

/// Runs a scenario to its end or to the first step that fails.
///
/// # Errors
/// The first step that fails.
pub fn run(scenario: &Scenario, subject: &mut dyn Subject) -> Result<(), Failure> {
    let batches: Vec<&Batch> = scenario.batches().collect();
    let mut flow = scenario.clone();
    let mut batch = 0;
    for (at, step) in scenario.steps.iter().enumerate() {
        let refusal = match scenario.steps.get(at + 1) {
            Some(Step::ExpectError(condition)) => Some(condition.as_str()),
            _ => None,
        };
        let outcome = match step {
            Step::Deliver(delivered) => {
                batch = delivered.number;
                deliver(&flow, delivered, refusal, subject)
            }
            Step::Replay(numbers) => numbers.iter().try_for_each(|number| {
                let again = number.checked_sub(1).and_then(|at| batches.get(at)).ok_or("no such batch")?;
                verdict(subject.apply(&flow, again), refusal)
            }),
            Step::Restart => subject.restart(),
            Step::Rekey(keys) => {
                keys.clone_into(&mut flow.keys);
                Ok(())
            }
            Step::ExpectTarget(expected) => {
                subject.target().and_then(|rows| compare(scenario, expected, rows))
            }
            Step::ExpectError(_) => Ok(()),
        };
        outcome.map_err(|message| Failure {
            scenario: scenario.name.clone(),
            step: at + 1,
            batch,
            message,
        })?;
    }
    Ok(())
}

fn deliver(
    scenario: &Scenario,
    batch: &Batch,
    refusal: Option<&str>,
    subject: &mut dyn Subject,
) -> Result<(), String> {
    if batch.crash {
        subject.crash(scenario, batch)?;
        subject.restart()?;
    }
    verdict(subject.apply(scenario, batch), refusal)
}

fn verdict(outcome: Result<(), String>, refusal: Option<&str>) -> Result<(), String> {
    match (outcome, refusal) {
        (outcome, None) => outcome,
        (Err(message), Some(condition)) if message.contains(condition) => Ok(()),
        (Err(message), Some(condition)) => Err(format!("refused, but not by {condition}: {message}")),
        (Ok(()), Some(condition)) => Err(format!("accepted, but {condition} should refuse it")),
    }
}

/// Compares as multisets and says which rows are missing and which are too many.
fn compare(scenario: &Scenario, expected: &Table, rows: Vec<Row>) -> Result<(), String> {
    let known = scenario.target_columns();
    let as_shown = |row: Row| -> Row {
        let listed = |name: &String| expected.columns.contains(name);
        // A column that no batch has carried yet may be left out of the table; it is NULL then.
        let unmentioned = |name: &String, value: &Value| {
            name == SEQUENCE_AT || (value.is_null() && known.iter().any(|(known, _)| known == name))
        };
        row.into_iter().filter(|(name, value)| listed(name) || !unmentioned(name, value)).collect()
    };
    let columns = &expected.columns;
    let as_row = |row: &Vec<Value>| -> Row { columns.iter().cloned().zip(row.iter().cloned()).collect() };
    let (missing, surplus) =
        apart(expected.rows.iter().map(as_row).collect(), rows.into_iter().map(as_shown).collect());
    if missing.is_empty() && surplus.is_empty() {
        return Ok(());
    }
    Err(difference(scenario, &expected.columns, missing, surplus))
}

/// What only the one and what only the other multiset holds.
fn apart(mut left: Vec<Row>, mut right: Vec<Row>) -> (Vec<Row>, Vec<Row>) {
    left.sort();
    right.sort();
    let (mut only_left, mut only_right) = (Vec::new(), Vec::new());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let Some(order) = match (left.peek(), right.peek()) {
        (Some(left), Some(right)) => Some(left.cmp(right)),
        (Some(_), None) => Some(Ordering::Less),
        (None, Some(_)) => Some(Ordering::Greater),
        (None, None) => None,
    } {
        match order {
            Ordering::Less => only_left.extend(left.next()),
            Ordering::Greater => only_right.extend(right.next()),
            Ordering::Equal => drop((left.next(), right.next())),
        }
    }
    (only_left, only_right)
}

fn difference(scenario: &Scenario, columns: &[String], missing: Vec<Row>, surplus: Vec<Row>) -> String {
    let mut columns = columns.to_vec();
    for name in surplus.iter().flat_map(Row::keys) {
        if !columns.contains(name) {
            columns.push(name.clone());
        }
    }
    let side = |mark: &str, rows: Vec<Row>| -> Vec<Vec<Value>> {
        let cell = |row: &Row, name: &String| row.get(name).cloned().unwrap_or(Value::text("(absent)"));
        let line = |row: Row| {
            std::iter::once(Value::text(mark)).chain(columns.iter().map(|name| cell(&row, name))).collect()
        };
        rows.into_iter().map(line).collect()
    };
    let mut lines = [side("missing", missing), side("surplus", surplus)].concat();
    lines.sort_by(|left, right| left.get(1..).cmp(&right.get(1..)));
    let columns: Vec<String> = std::iter::once(String::new()).chain(columns).collect();
    let mut text = "the target differs\n".to_owned();
    let table = Table { columns, rows: lines };
    print_table(&table.columns, &table, |column| scenario.physical_of(column), &mut text);
    text
}
