//! What READMEs and docs show is what comes out: their `console` blocks are run, command by command.
//!
//! Only `cd` and `strandline` are run; times, sizes and the widths of columns may differ.

use std::path::{Path, PathBuf};

use crate::{strandline, text};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Commands with what they are shown to print.
fn shown(page: &str) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for block in page.split("```console\n").skip(1) {
        let block = block.split("```").next().expect("a first part");
        for line in block.lines() {
            match (line.strip_prefix("$ "), found.last_mut()) {
                (Some(command), _) => found.push((command.to_owned(), Vec::new())),
                (None, Some((_, lines))) => lines.push(line.to_owned()),
                (None, None) => panic!("a block begins with a command: {line}"),
            }
        }
    }
    found
}

/// Words of a command; double quotes keep some together.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (n, part) in command.split('"').enumerate() {
        if n % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// A line without what differs from run to run.
fn steady(line: &str) -> Option<String> {
    let is_rule = !line.is_empty() && line.chars().all(|c| matches!(c, '-' | ' '));
    let is_size = |unit: &str| matches!(unit, "B" | "KiB" | "MiB");
    let is_now = |word: &str| word.len() == 24 && word.ends_with('Z') && word.as_bytes()[10] == b'T';
    let words: Vec<&str> = line.split_whitespace().collect();
    let steady = words.iter().enumerate().map(|(n, word)| {
        let is_seconds = word.split_once('.').is_some_and(|(_, part)| part.len() == 2)
            && word.parse::<f64>().is_ok()
            && n + 1 == words.len();
        let is_bytes = words.get(n + 1).is_some_and(|unit| is_size(unit));
        if is_seconds || is_bytes || is_size(word) || is_now(word) { "~" } else { word }
    });
    (!is_rule).then(|| steady.collect::<Vec<_>>().join(" "))
}

/// Runs what the page shows, beginning in `folder`.
fn runs_as_shown(page: &Path, folder: &Path) {
    let text_of_page = std::fs::read_to_string(page).expect("the page");
    let mut folder = folder.to_owned();
    let mut ran = 0;
    for (command, expected) in shown(&text_of_page) {
        let words = words(&command);
        match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["cd", below] => folder.push(below),
            ["strandline", args @ ..] => {
                let output = strandline(args).current_dir(&folder).output().expect("the binary starts");
                let printed = String::from_utf8(output.stdout).expect("text");
                let found: Vec<_> = printed.lines().filter_map(steady).collect();
                let expected: Vec<_> = expected.iter().filter_map(|line| steady(line)).collect();
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                assert_eq!(found, expected, "{}: $ {command}\n{printed}{said}", page.display());
                ran += 1;
            }
            _ => panic!("{}: only cd and strandline are run: {command}", page.display()),
        }
    }
    assert!(ran > 1, "{} shows commands", page.display());
}

fn copied(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        if entry.file_name() == "lake" {
            continue;
        }
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copied(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).expect("a copy");
        }
    }
}

fn example(name: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let from = repository().join("examples").join(name);
    let to = folder.path().join("examples").join(name);
    copied(&from, &to);
    assert!(to.join("README.md").is_file(), "{}", text(&to));
    runs_as_shown(&from.join("README.md"), folder.path());
}

#[test]
fn the_commands_of_the_docs_print_what_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    runs_as_shown(&repository().join("docs/commands.md"), folder.path());
}

#[test]
fn r04_yearly_backfills_beside_an_incremental_stream() {
    example("yearly-backfill");
}

#[test]
fn a_legacy_history_and_a_live_feed() {
    example("legacy-migration");
}

#[test]
fn r24_a_snapshot_as_the_backfill_of_a_live_feed() {
    example("snapshot-backfill");
}
