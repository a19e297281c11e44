//! Which files has a flow taken? The progress of a file source.
//!
//! Names are kept folder by folder, as JSON that grows in place: `{"2024/05": {"a.json": 0}}`. A batch adds its own files and
//! nothing else is touched, so a million files cost what a million entries cost; see `docs/sources/files.md`.

use serde_json::{Map, Value};

use super::files::FileRef;
use crate::error::{Error, ErrorKind, Result};

const ROOT: &str = "root";
const TAKEN: &str = "taken";
const BEGUN: &str = "begun";

/// A progress that has taken nothing.
pub(super) fn start(root: &str) -> Value {
    serde_json::json!({ ROOT: root, TAKEN: {} })
}

/// The folder that the paths of a progress start from: a flow that is pointed elsewhere has another source.
///
/// # Errors
/// `State` for a progress of another source.
pub(super) fn root(progress: &Value) -> Result<&str> {
    let taken = progress.get(TAKEN);
    let is_ours = taken.is_some_and(|taken| taken.is_object() || taken.is_array());
    progress.get(ROOT).and_then(Value::as_str).filter(|_| is_ours).ok_or_else(|| {
        Error::new(ErrorKind::State, "what is recorded of this flow's source is not of a file source")
            .help("the flow read something else before; give it a new name")
    })
}

/// Whether a first batch was planned.
pub(super) fn has_begun(progress: &Value) -> bool {
    let any = match progress.get(TAKEN) {
        Some(Value::Object(folders)) => !folders.is_empty(),
        Some(Value::Array(paths)) => !paths.is_empty(),
        _ => false,
    };
    any || progress.get(BEGUN).is_some()
}

/// Adds files; `stamped` where what they were is to be remembered.
pub(super) fn take(progress: &mut Value, files: &[FileRef], stamped: bool) {
    modern(progress);
    let Some(progress) = progress.as_object_mut() else { return };
    progress.insert(BEGUN.to_owned(), true.into());
    let Some(folders) = progress.get_mut(TAKEN).and_then(Value::as_object_mut) else { return };
    for file in files {
        let (folder, name) = parts(&file.path);
        if !folders.contains_key(folder) {
            folders.insert(folder.to_owned(), Map::new().into());
        }
        // What is not known of a file can't have changed: files of older records have no time.
        let stamp = if stamped && file.modified.is_some() { stamp(file) } else { 0.into() };
        if let Some(names) = folders.get_mut(folder).and_then(Value::as_object_mut) {
            names.insert(name.to_owned(), stamp);
        }
    }
}

/// What was taken first was a list of paths.
fn modern(progress: &mut Value) {
    let Some(taken) = progress.get_mut(TAKEN).filter(|taken| taken.is_array()) else { return };
    let paths = match taken.take() {
        Value::Array(paths) => paths,
        _ => Vec::new(),
    };
    let files: Vec<FileRef> = paths
        .iter()
        .filter_map(Value::as_str)
        .map(|path| FileRef { path: path.to_owned(), size: 0, modified: None })
        .collect();
    if let Some(progress) = progress.as_object_mut() {
        progress.insert(TAKEN.to_owned(), Map::new().into());
    }
    take(progress, &files, false);
}

/// Of `listed`, in its order, the files that were not taken; with `overwritten`, also those that have changed since.
pub(super) fn left<'l>(
    progress: &'l Value,
    listed: &'l [FileRef],
    overwritten: bool,
) -> impl Iterator<Item = &'l FileRef> {
    let mut old = progress.get(TAKEN).filter(|taken| taken.is_array()).map(|_| progress.clone());
    if let Some(old) = &mut old {
        modern(old);
    }
    listed.iter().filter(move |file| {
        let progress = old.as_ref().unwrap_or(progress);
        let (folder, name) = parts(&file.path);
        let names = progress.get(TAKEN).and_then(|folders| folders.get(folder));
        match names.and_then(|names| names.get(name)) {
            None => true,
            Some(known) => overwritten && known.is_array() && *known != stamp(file),
        }
    })
}

fn parts(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// What a file was when it was listed: its size and when it was changed.
fn stamp(file: &FileRef) -> Value {
    serde_json::json!([file.size, file.modified])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, size: u64) -> FileRef {
        FileRef { path: path.to_owned(), size, modified: Some(7) }
    }

    fn names<'f>(files: impl Iterator<Item = &'f FileRef>) -> Vec<&'f str> {
        files.map(|file| file.path.as_str()).collect()
    }

    #[test]
    fn r19_a_file_is_taken_once() {
        let listed = [file("a/x.json", 1), file("a/y.json", 1), file("x.json", 1)];
        let mut progress = start("/in");
        assert!(!has_begun(&progress));
        take(&mut progress, &listed[..1], false);
        assert!(has_begun(&progress));
        assert_eq!(names(left(&progress, &listed, false)), ["a/y.json", "x.json"]);
        take(&mut progress, &listed[1..], false);
        assert_eq!(names(left(&progress, &listed, true)), [""; 0]);
        assert_eq!(
            progress["taken"],
            serde_json::json!({"": {"x.json": 0}, "a": {"x.json": 0, "y.json": 0}})
        );
    }

    #[test]
    fn r19_overwritten_files_are_told_by_size_and_time() {
        let mut progress = start("/in");
        take(&mut progress, &[file("a", 1), file("b", 1)], true);
        let listed = [file("a", 2), file("b", 1)];
        assert_eq!(names(left(&progress, &listed, false)), [""; 0]);
        assert_eq!(names(left(&progress, &listed, true)), ["a"]);
        take(&mut progress, &listed[..1], true);
        assert_eq!(names(left(&progress, &listed, true)), [""; 0]);
    }

    #[test]
    fn r19_a_file_without_a_time_is_not_told_to_be_overwritten() {
        let mut progress = start("/in");
        take(&mut progress, &[FileRef { modified: None, ..file("a", 1) }], true);
        assert_eq!(names(left(&progress, &[file("a", 1)], true)), [""; 0]);
        assert_eq!(names(left(&progress, &[file("a", 2)], true)), [""; 0]);
    }

    #[test]
    fn what_was_recorded_first_still_holds() {
        let mut old = serde_json::json!({"root": "/in", "taken": ["a/x.json"]});
        assert_eq!(root(&old).unwrap(), "/in");
        let listed = [file("a/x.json", 1), file("b", 1)];
        assert!(has_begun(&old));
        assert_eq!(names(left(&old, &listed, true)), ["b"]);
        take(&mut old, &listed[1..], false);
        assert_eq!(old["taken"], serde_json::json!({"": {"b": 0}, "a": {"x.json": 0}}));
        for other in
            [serde_json::json!(null), serde_json::json!({"table": "t"}), serde_json::json!({"root": "/"})]
        {
            assert_eq!(root(&other).unwrap_err().kind(), ErrorKind::State);
        }
    }
}
