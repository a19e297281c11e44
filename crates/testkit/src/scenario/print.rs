//! How is a scenario written, so that a reader sees the tables?

use std::fmt::Write;

use super::cell::print_column_cell;
use super::types::print_column_type;
use super::{
    Batch, BatchKind, Condition, Physical, SEQUENCE_AT, Scenario, Selection, Step, StoredAs, Table,
    print_cell,
};

/// Writes a scenario so that [`parse`](super::parse) reads it. Comments are not part of a scenario.
pub fn print(scenario: &Scenario) -> String {
    let mut text = String::new();
    for (option, value) in options(scenario) {
        _ = writeln!(text, "{}", format!("{option} {value}").trim_end());
    }
    for step in &scenario.steps {
        text.push('\n');
        match step {
            Step::Deliver(batch) => print_batch(scenario, batch, &mut text),
            Step::Replay(numbers) => {
                let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
                _ = writeln!(text, "replay {}", numbers.join(", "));
            }
            Step::Restart => text.push_str("restart\n"),
            Step::Rekey(keys) => _ = writeln!(text, "{}", format!("rekey {}", keys.join(", ")).trim_end()),
            Step::ExpectTarget(table) => {
                text.push_str("expect target\n");
                print_table(&table.columns, table, |column| scenario.physical_of(column), &mut text);
            }
            Step::ExpectError(condition) => _ = writeln!(text, "expect error {condition}"),
        }
    }
    text
}

fn options(scenario: &Scenario) -> Vec<(&'static str, String)> {
    let shape = match scenario.stored_as {
        StoredAs::Scd1 => "scd1",
        StoredAs::Scd2 => "scd2",
        StoredAs::Bitemporal => "bitemporal",
    };
    let column = |(name, kind): &(String, _)| {
        format!("{name} {}", print_column_type(kind, scenario.physical.get(name).copied()))
    };
    let mut options = vec![
        ("title", scenario.title.clone()),
        ("stored as", shape.to_owned()),
        ("types", scenario.types.iter().map(column).collect::<Vec<_>>().join(", ")),
        ("keys", scenario.keys.join(", ")),
    ];
    let sequence = scenario.sequence.join(", ");
    let sequence = if scenario.greatest { format!("greatest({sequence})") } else { sequence };
    for (option, names) in
        [("sequence by", sequence), ("system sequence by", scenario.system_sequence.join(", "))]
    {
        if !names.is_empty() {
            options.push((option, names));
        }
    }
    let conditions = [
        ("delete when", &scenario.delete_when),
        ("truncate when", &scenario.truncate_when),
        ("retract when", &scenario.retract_when),
    ];
    for (option, condition) in conditions {
        if let Some(Condition { column, value }) = condition {
            options.push((option, format!("{column} = {}", print_cell(value))));
        }
    }
    if scenario.columns != Selection::All {
        options.push(("columns", print_selection(&scenario.columns, "")));
    }
    if scenario.track_history != Selection::All {
        options.push(("track history", print_selection(&scenario.track_history, "on ")));
    }
    if let Some(ignored) = &scenario.ignore_null_updates {
        options.push(("ignore null updates", print_selection(ignored, "on ")));
    }
    if let Some(mask) = &scenario.columns_to_update {
        options.push(("columns to update", mask.clone()));
    }
    if let Some(marker) = &scenario.unavailable {
        options.push(("unavailable value", marker.clone()));
    }
    if scenario.fold_case {
        options.push(("case sensitive", "no".to_owned()));
    }
    if scenario.permute {
        options.push(("permute", "yes".to_owned()));
    }
    options
}

fn print_selection(selection: &Selection, word: &str) -> String {
    match selection {
        Selection::All => String::new(),
        Selection::Only(names) => format!("{word}{}", names.join(", ")),
        Selection::Except(names) => format!("except {}", names.join(", ")),
    }
}

fn print_batch(scenario: &Scenario, batch: &Batch, text: &mut String) {
    if batch.crash {
        text.push_str("crash before target\n");
    }
    match &batch.kind {
        BatchKind::Changes => text.push_str("batch\n"),
        BatchKind::Snapshot(version) => {
            let version = print_column_cell(version, scenario.physical_of(SEQUENCE_AT));
            _ = writeln!(text, "snapshot {version}");
        }
    }
    let header = |name: &String| match batch.types.get(scenario.declared(name)) {
        Some((kind, physical)) => format!("{name} {}", print_column_type(kind, *physical)),
        None => name.clone(),
    };
    let header: Vec<String> = batch.table.columns.iter().map(header).collect();
    let physical = |column: &str| match batch.types.get(scenario.declared(column)) {
        Some((_, physical)) => *physical,
        None => scenario.physical_of(scenario.declared(column)),
    };
    print_table(&header, &batch.table, physical, text);
}

/// Writes a table under a header, with its columns aligned.
pub(super) fn print_table(
    header: &[String],
    table: &Table,
    physical: impl Fn(&str) -> Option<Physical>,
    text: &mut String,
) {
    let cell = |(value, column): (_, &String)| print_column_cell(value, physical(column));
    let rows = table.rows.iter().map(|row| row.iter().zip(&table.columns).map(cell).collect());
    let lines: Vec<Vec<String>> = std::iter::once(header.to_vec()).chain(rows).collect();
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    for line in lines {
        text.push('|');
        for (cell, width) in line.iter().zip(&widths) {
            _ = write!(text, " {cell:width$} |");
        }
        text.push('\n');
    }
}
