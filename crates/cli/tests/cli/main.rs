//! The binary as a user runs it: the example, exit codes, and a process that is killed.

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking, its helpers too")]

mod events;
mod example;
mod graph;
mod handoff;
mod iceberg;
mod init;
mod kill;
mod remote;
mod selection;
mod shown;
mod signals;

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// A call of the binary.
fn strandline(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strandline"));
    command.args(args);
    command
}

fn run(args: &[&str]) -> Output {
    strandline(args).output().expect("the binary starts")
}

/// A call of the binary in a folder.
fn run_in(folder: &Path, args: &[&str]) -> Output {
    strandline(args).current_dir(folder).output().expect("the binary starts")
}

/// Standard output of a call in a folder that must succeed.
fn succeed_in(folder: &Path, args: &[&str]) -> String {
    let output = run_in(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn write(path: &Path, content: &str) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
    std::fs::write(path, content).expect("a file can be written");
}

/// Standard output of a call that must succeed.
fn succeed(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/customers")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// Every row of the example's tables, in a fixed order.
fn tables(storage: &str) -> Vec<String> {
    [
        "SELECT * FROM customer_changes ORDER BY customer_id, changed_at, op, name",
        "SELECT * FROM customers ORDER BY customer_id",
        "SELECT * FROM customers_history ORDER BY customer_id, __START_AT",
    ]
    .iter()
    .map(|sql| succeed(&["query", sql, "--storage", storage, "--output", "csv"]))
    .collect()
}
