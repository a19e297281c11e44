//! How do delimited lines become records?
//!
//! Fields are cut here and typed where all texts are. A line ends at a line end that is not within quotes; a quote that is
//! still open at the end of the file is an error, whatever the mode: it may have swallowed any number of records.

use std::io::{self, BufRead};

use super::lines::LONGEST;

/// How fields are told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CsvDialect {
    /// The first line holds names.
    pub(crate) header: bool,
    /// Between fields.
    pub(crate) delimiter: u8,
    /// Around fields; none where quotes have no meaning.
    pub(crate) quote: Option<u8>,
    /// Before a quote within quotes, besides a second quote.
    pub(crate) escape: Option<u8>,
    /// Begins a line that is no record.
    pub(crate) comment: Option<u8>,
    /// Lines before the header, or the first record, that are left out.
    pub(crate) skip_rows: u64,
    /// Blanks at the beginning of a field that is not quoted are left out.
    pub(crate) trim_start: bool,
    /// Blanks at its end are.
    pub(crate) trim_end: bool,
    /// Text that stands for NULL, besides an empty field.
    pub(crate) null_value: Option<String>,
}

/// A record's fields.
#[derive(Debug, Default)]
pub(super) struct CsvRecord {
    bytes: Vec<u8>,
    /// Where each field ends, and whether it was quoted.
    ends: Vec<(usize, bool)>,
    /// Why it is no record, if it is none.
    pub(super) problem: Option<String>,
    /// Line in which it begins, from 1.
    pub(super) line: u64,
}

impl CsvRecord {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn size(&self) -> usize {
        self.bytes.len() + self.ends.len()
    }

    /// The fields and whether each was quoted; `None` where they are no UTF-8.
    pub(super) fn fields(&self) -> Option<impl Iterator<Item = (&str, bool)>> {
        let text = std::str::from_utf8(&self.bytes).ok()?;
        // Bytes at the end of a field and at the beginning of the next one are no character together.
        if !self.ends.iter().all(|(end, _)| text.is_char_boundary(*end)) {
            return None;
        }
        let begins = std::iter::once(0).chain(self.ends.iter().map(|(end, _)| *end));
        Some(
            begins
                .zip(&self.ends)
                .map(move |(from, (to, quoted))| (text.get(from..*to).unwrap_or_default(), *quoted)),
        )
    }

    /// The record as it may have stood there.
    pub(super) fn text(&self, delimiter: u8) -> String {
        let mut from = 0;
        let parts = self.ends.iter().map(|(to, _)| {
            let part = self.bytes.get(std::mem::replace(&mut from, *to)..*to).unwrap_or_default();
            String::from_utf8_lossy(part)
        });
        parts.collect::<Vec<_>>().join(&char::from(delimiter).to_string())
    }

    fn end_field(&mut self, quoted: bool, from: usize, dialect: &CsvDialect) {
        if !quoted {
            let field = self.bytes.get(from..).unwrap_or_default();
            let start = if dialect.trim_start { field.len() - field.trim_ascii_start().len() } else { 0 };
            let end = if dialect.trim_end { field.trim_ascii_end().len() } else { field.len() };
            self.bytes.truncate(from + end.max(start));
            self.bytes.drain(from..from + start);
        }
        self.ends.push((self.bytes.len(), quoted));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Before a field.
    Start,
    Plain,
    Quoted,
    /// Behind a character that takes the meaning from the next one.
    Escape,
    /// Behind a quote that may have ended the field.
    Ended,
    Comment,
}

/// Cuts a stream into records.
pub(super) struct CsvRecords<R> {
    reader: R,
    dialect: CsvDialect,
    record: CsvRecord,
    line: u64,
}

impl<R: BufRead> CsvRecords<R> {
    pub(super) fn new(reader: R, dialect: CsvDialect) -> Self {
        Self { reader, dialect, record: CsvRecord::default(), line: 1 }
    }

    /// Leaves out the lines that [`CsvDialect::skip_rows`] counts.
    pub(super) fn skip_rows(&mut self) -> io::Result<()> {
        let mut left = self.dialect.skip_rows;
        while left > 0 {
            let ready = self.reader.fill_buf()?;
            if ready.is_empty() {
                break;
            }
            let end = ready.iter().position(|&byte| byte == b'\n');
            let used = end.map_or(ready.len(), |end| end + 1);
            self.reader.consume(used);
            if end.is_some() {
                left -= 1;
                self.line += 1;
            }
        }
        Ok(())
    }

    /// The next record; lines without any text are none.
    pub(super) fn next(&mut self) -> io::Result<Option<&CsvRecord>> {
        loop {
            let more = self.read()?;
            let blank = self.record.ends.as_slice() == [(0, false)] && self.record.problem.is_none();
            if !more {
                return Ok(None);
            }
            if !blank && !self.record.ends.is_empty() {
                return Ok(Some(&self.record));
            }
        }
    }

    /// Reads up to a line end that is not quoted. `false` at the end of the file.
    fn read(&mut self) -> io::Result<bool> {
        let Self { reader, dialect, record, line } = self;
        record.bytes.clear();
        record.ends.clear();
        record.problem = None;
        record.line = *line;
        let (mut at, mut from, mut quoted) = (At::Start, 0, false);
        loop {
            let ready = reader.fill_buf()?;
            if ready.is_empty() {
                let is_open = at != At::Start || !record.ends.is_empty();
                return match at {
                    At::Quoted | At::Escape => Err(not_closed(record.line)),
                    At::Comment => Ok(true),
                    At::Start | At::Plain | At::Ended => {
                        if is_open {
                            record.end_field(quoted, from, dialect);
                        }
                        Ok(is_open)
                    }
                };
            }
            let mut used = 0;
            let mut ended = false;
            for &byte in ready {
                used += 1;
                *line += u64::from(byte == b'\n');
                let is = |wanted: Option<u8>| wanted == Some(byte);
                match at {
                    At::Comment if byte == b'\n' => ended = true,
                    At::Comment => {}
                    At::Start if record.ends.is_empty() && is(dialect.comment) => at = At::Comment,
                    At::Start if is(dialect.quote) => (at, quoted) = (At::Quoted, true),
                    At::Quoted if is(dialect.quote) => at = At::Ended,
                    At::Quoted if is(dialect.escape) => at = At::Escape,
                    At::Quoted => record.bytes.push(byte),
                    At::Escape => {
                        if !is(dialect.quote) && !is(dialect.escape) {
                            record.bytes.extend(dialect.escape);
                        }
                        record.bytes.push(byte);
                        at = At::Quoted;
                    }
                    At::Ended if is(dialect.quote) => {
                        record.bytes.push(byte);
                        at = At::Quoted;
                    }
                    At::Ended if byte == b'\r' => {}
                    _ if byte == dialect.delimiter => {
                        record.end_field(quoted, from, dialect);
                        (at, from, quoted) = (At::Start, record.bytes.len(), false);
                    }
                    _ if byte == b'\n' => {
                        if !quoted && record.bytes.len() > from && record.bytes.last() == Some(&b'\r') {
                            record.bytes.pop();
                        }
                        record.end_field(quoted, from, dialect);
                        ended = true;
                    }
                    At::Ended => {
                        record.problem = Some("there is text behind a quoted field".to_owned());
                        record.bytes.push(byte);
                        at = At::Plain;
                    }
                    At::Start | At::Plain => {
                        record.bytes.push(byte);
                        at = At::Plain;
                    }
                }
                if ended {
                    break;
                }
            }
            reader.consume(used);
            if record.bytes.len() > LONGEST || record.ends.len() > LONGEST / 16 {
                return Err(too_long(record.line));
            }
            if ended {
                return Ok(true);
            }
        }
    }
}

fn not_closed(line: u64) -> io::Error {
    invalid(format!("a quote of the record that begins in line {line} is not closed"))
}

fn too_long(line: u64) -> io::Error {
    invalid(format!("the record that begins in line {line} is longer than {LONGEST} bytes"))
}

fn invalid(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
