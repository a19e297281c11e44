//! How do reports look? Tables for people, lines for pipes.

mod handoff;
mod maintenance;
mod progress;
mod report;
mod status;

pub(crate) use handoff::handoff;
pub(crate) use maintenance::maintenance;
pub(crate) use progress::Progress;
pub(crate) use report::{dry_run, report};
pub(crate) use status::{rows_of, status};

/// Whether somebody looks on.
pub(crate) fn is_watched() -> bool {
    use std::io::IsTerminal as _;
    std::io::stderr().is_terminal()
}

/// Prints to standard output; a reader that has gone away (`| head`) is no error.
pub(crate) fn say(text: &str) {
    use std::io::Write as _;
    drop(writeln!(std::io::stdout().lock(), "{text}"));
}

pub(crate) fn say_err(text: &str) {
    use std::io::Write as _;
    drop(writeln!(std::io::stderr().lock(), "{text}"));
}

/// A plain table: the first `left` columns are text, the rest are numbers.
fn table(header: &[&str], rows: &[Vec<String>], left: usize) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain(header.get(column).map(|name| name.len())).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let numeric = |column: usize| {
        column >= left
            && rows
                .iter()
                .filter_map(|row| row.get(column))
                .all(|c| c.chars().all(|c| "0123456789.,".contains(c)))
    };
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded = cells.zip(&widths).enumerate().map(|(i, (cell, &width))| {
            if numeric(i) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let rule: String = widths.iter().map(|&width| "-".repeat(width)).collect::<Vec<_>>().join("  ");
    let mut lines = vec![line(&mut header.iter().copied()), rule];
    lines.extend(rows.iter().map(|row| line(&mut row.iter().map(String::as_str))));
    lines.join("\n")
}
