//! Where in a text is a byte?

use std::ops::Range;

/// A file's name and text, as the parser takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Name, for messages only.
    pub name: String,
    /// The SQL text.
    pub text: String,
}

impl SourceFile {
    /// A file of this name and text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into() }
    }
}

/// Line and column, both counted from 1, in characters.
pub(crate) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..floor_boundary(text, offset)).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    (line, before.get(line_start..).unwrap_or_default().chars().count() + 1)
}

/// The byte at which a line and column (both from 1) lie, clamped to the text.
pub(crate) fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let line_start = match line.checked_sub(2) {
        None => 0,
        Some(newline) => text.match_indices('\n').nth(newline).map_or(text.len(), |(at, _)| at + 1),
    };
    let rest = text.get(line_start..).unwrap_or_default();
    rest.char_indices().nth(column.saturating_sub(1)).map_or(text.len(), |(at, _)| line_start + at)
}

/// The line around `offset`, without its line break, as a range.
pub(crate) fn line_range(text: &str, offset: usize) -> Range<usize> {
    let offset = floor_boundary(text, offset);
    let start = text.get(..offset).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1);
    let end =
        text.get(start..).and_then(|rest| rest.find('\n')).map_or(text.len(), |newline| start + newline);
    start..end
}

/// The nearest character boundary at or before `offset`.
pub(crate) fn floor_boundary(text: &str, offset: usize) -> usize {
    let mut at = offset.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
