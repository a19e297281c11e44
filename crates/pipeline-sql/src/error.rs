//! What is wrong with the text, where, and what should its author do?

use std::{fmt, ops::Range};

use crate::{
    SourceFile, Span,
    source::{floor_boundary, line_and_column, line_range},
};

/// An error in a pipeline's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct SqlError {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The offending bytes of the file.
    pub span: Range<usize>,
    /// What is wrong, in one line.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// The name under which users know this condition.
    pub condition: Option<&'static str>,
}

impl SqlError {
    /// An error about a place in `source`, for those who find it after parsing.
    pub fn new(source: &SourceFile, span: Span, message: impl Into<String>) -> Self {
        Self::located(source, Problem::new(span.start..span.end, message))
    }

    /// The same error with an advice.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn located(source: &SourceFile, problem: Problem) -> Self {
        let (line, column) = line_and_column(&source.text, problem.range.start);
        Self {
            file: source.name.clone(),
            line,
            column,
            span: problem.range,
            message: problem.message,
            help: problem.help,
            condition: problem.condition,
        }
    }

    /// The error with its source line and a caret under the offending part; `text` is the text of its file.
    pub fn render(&self, text: &str) -> String {
        let line = line_range(text, self.span.start);
        let start = floor_boundary(text, self.span.start).max(line.start);
        let end = floor_boundary(text, self.span.end).clamp(start, line.end.max(start));
        let shown = text.get(line.clone()).unwrap_or_default().trim_end_matches('\r');
        let before = text.get(line.start..start).unwrap_or_default();
        let marked = text.get(start..end).unwrap_or_default().trim_end().chars().count().max(1);
        // Tabs are kept, so that the caret stands right whatever their width.
        let indent: String = before.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        let mut lines = vec![
            format!("error: {}", self.headline()),
            format!("{gutter}--> {}:{}:{}", self.file, self.line, self.column),
            format!("{gutter} |"),
            format!("{number} | {shown}"),
            format!("{gutter} | {indent}{}", "^".repeat(marked)),
        ];
        lines.extend(self.help.as_ref().map(|help| format!("{gutter} = help: {help}")));
        lines.push(String::new());
        lines.join("\n")
    }

    fn headline(&self) -> String {
        match self.condition {
            Some(condition) => format!("[{condition}] {}", self.message),
            None => self.message.clone(),
        }
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.headline())
    }
}

/// An error before it knows its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) range: Range<usize>,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    pub(crate) condition: Option<&'static str>,
}

impl Problem {
    pub(crate) fn new(range: Range<usize>, message: impl Into<String>) -> Self {
        Self { range, message: message.into(), help: None, condition: None }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn condition(mut self, condition: &'static str) -> Self {
        self.condition = Some(condition);
        self
    }
}
