//! Where does a record begin and end in a stream of bytes?

use std::io::{self, BufRead};

use super::json::DEEPEST;

/// The longest record, in bytes: a file without line ends must not fill the memory.
pub(super) const LONGEST: usize = 32 << 20;

/// Some tools begin a text file with it.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// A record that is longer than [`LONGEST`].
fn too_long(line: u64) -> io::Error {
    let text = format!("the record that begins in line {line} is longer than {LONGEST} bytes");
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Leaves out a byte-order mark; one of another encoding than UTF-8 is an error.
pub(super) fn skip_mark(reader: &mut dyn BufRead) -> io::Result<()> {
    let start = reader.fill_buf()?;
    if start.starts_with(BOM) {
        reader.consume(BOM.len());
    } else if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the text is UTF-16; only UTF-8 is read"));
    }
    Ok(())
}

/// Lines, without what ends them.
pub(super) struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    /// Number of the line that was read last, from 1.
    pub(super) number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, line: Vec::new(), number: 0 }
    }

    /// The next line.
    pub(super) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        self.number += 1;
        loop {
            let ready = self.reader.fill_buf()?;
            if ready.is_empty() {
                return Ok((!self.line.is_empty()).then_some(&self.line));
            }
            let end = ready.iter().position(|&byte| byte == b'\n');
            let part = ready.get(..end.unwrap_or(ready.len())).unwrap_or_default();
            if self.line.len() + part.len() > LONGEST {
                return Err(too_long(self.number));
            }
            self.line.extend_from_slice(part);
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                if self.line.last() == Some(&b'\r') {
                    self.line.pop();
                }
                return Ok(Some(&self.line));
            }
        }
    }
}

/// JSON values, one after the other, wherever lines end; the items of a list that is the outermost value come one by one.
pub(super) struct Values<R> {
    reader: R,
    value: Vec<u8>,
    line: u64,
    in_list: bool,
    /// Line in which the value that was read last begins, from 1.
    pub(super) begins: u64,
}

impl<R: BufRead> Values<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, value: Vec::new(), line: 1, in_list: false, begins: 1 }
    }

    /// The next value's text. What is between values and is none comes as a text that is no JSON.
    pub(super) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.value.clear();
        let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
        loop {
            let ready = self.reader.fill_buf()?;
            if ready.is_empty() {
                // A list that does not end is told by a text that does not end.
                if self.value.is_empty() && std::mem::take(&mut self.in_list) {
                    self.begins = self.line;
                    self.value.extend_from_slice(b"[");
                }
                return Ok((!self.value.is_empty()).then_some(&self.value));
            }
            let (mut used, mut ended) = (0, false);
            for &byte in ready {
                if self.value.is_empty() {
                    match byte {
                        b'\n' => self.line += 1,
                        b' ' | b'\t' | b'\r' => {}
                        b',' if self.in_list => {}
                        b'[' if !self.in_list => self.in_list = true,
                        b']' if self.in_list => self.in_list = false,
                        _ => {
                            self.begins = self.line;
                            self.value.push(byte);
                            match byte {
                                b'{' | b'[' => depth = 1,
                                b'"' => quoted = true,
                                _ => {}
                            }
                        }
                    }
                    used += 1;
                    continue;
                }
                // A number or a word ends where something else begins.
                let bare = depth == 0 && !quoted;
                if bare && matches!(byte, b',' | b']' | b'{' | b'[' | b'"' | b' ' | b'\t' | b'\r' | b'\n') {
                    ended = true;
                    break;
                }
                used += 1;
                self.line += u64::from(byte == b'\n');
                self.value.push(byte);
                if self.value.len() > LONGEST {
                    return Err(too_long(self.begins));
                }
                match byte {
                    _ if escaped => escaped = false,
                    b'\\' if quoted => escaped = true,
                    b'"' => quoted = !quoted,
                    b'{' | b'[' if !quoted => depth += 1,
                    b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
                    _ => {}
                }
                if depth > DEEPEST {
                    let text = format!("the record of line {} nests more than {DEEPEST} deep", self.begins);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, text));
                }
                if depth == 0 && !quoted && matches!(byte, b'}' | b']' | b'"') {
                    ended = true;
                    break;
                }
            }
            self.reader.consume(used);
            if ended {
                return Ok(Some(&self.value));
            }
        }
    }
}

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
