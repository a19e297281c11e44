//! What does a JSON text hold, with every number as it was written?
//!
//! A general parser makes a binary number of what it reads, and a decimal or a long integer may lose digits on the way. Here
//! numbers stay text, and a part that nobody asks for is passed over, not built.

use std::borrow::Cow;

/// JSON that nests deeper is no record of anything.
const DEEPEST: usize = 128;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node<'a> {
    Null,
    Bool(bool),
    /// As written.
    Number(&'a str),
    Text(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    /// Members in their order. Of a name that stands twice the last one counts.
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

/// Where a text is no JSON, as a byte of it, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Broken {
    pub(super) at: usize,
    pub(super) why: &'static str,
}

impl<'a> Node<'a> {
    /// Reads a text that is one value.
    pub(super) fn parse(text: &'a str) -> Result<Self, Broken> {
        let mut scan = Scan { text, at: 0 };
        let value = scan.value(0)?;
        scan.end()?;
        Ok(value)
    }

    /// The member of this name; none of a value that is no object.
    pub(super) fn get(&self, name: &str) -> Option<&Node<'a>> {
        match self {
            Self::Object(members) => members.iter().rev().find(|(n, _)| n == name).map(|(_, value)| value),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::Array(_) => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Array(_) | Self::Object(_) => None,
        }
    }

    pub(super) fn members(&self) -> &[(Cow<'a, str>, Node<'a>)] {
        match self {
            Self::Object(members) => members,
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::Array(_) => &[],
        }
    }

    pub(super) fn items(&self) -> &[Node<'a>] {
        match self {
            Self::Array(items) => items,
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::Text(_) | Self::Object(_) => &[],
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Writes the value as JSON.
    pub(super) fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
            Self::Number(digits) => out.push_str(digits),
            Self::Text(text) => quote(out, text),
            Self::Array(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { "," });
                    item.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (i, (name, value)) in members.iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { "," });
                    quote(out, name);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// Names, and values as they are written.
pub(super) type Members<'a> = Vec<(Cow<'a, str>, &'a str)>;

/// The members of a text that is an object, each value as it is written; `None` for another value.
pub(super) fn shallow(text: &str) -> Result<Option<Members<'_>>, Broken> {
    let mut scan = Scan { text, at: 0 };
    scan.space();
    if scan.peek() != Some(b'{') {
        scan.skip(0)?;
        scan.end()?;
        return Ok(None);
    }
    let mut members = Vec::new();
    scan.sequence(b'}', |scan| {
        let name = scan.name()?;
        scan.space();
        let start = scan.at;
        scan.skip(1)?;
        members.push((name, text.get(start..scan.at).unwrap_or_default()));
        Ok(())
    })?;
    scan.end()?;
    Ok(Some(members))
}

/// Writes a text in quotes.
pub(super) fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 => {
                let code = format!("\\u{:04x}", u32::from(c));
                out.push_str(&code);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    fn broken<T>(&self, why: &'static str) -> Result<T, Broken> {
        Err(Broken { at: self.at, why })
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn end(&mut self) -> Result<(), Broken> {
        self.space();
        if self.peek().is_some() { self.broken("something follows the value") } else { Ok(()) }
    }

    /// What stands between an opening bracket, on which the scan is, and `close`; each part is read by `part`.
    fn sequence(
        &mut self,
        close: u8,
        mut part: impl FnMut(&mut Self) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        self.at += 1;
        self.space();
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(());
        }
        loop {
            part(self)?;
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(byte) if byte == close => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return self.broken("`,` or the closing bracket is missing"),
            }
        }
    }

    /// The name of a member, with the colon behind it.
    fn name(&mut self) -> Result<Cow<'a, str>, Broken> {
        self.space();
        if self.peek() != Some(b'"') {
            return self.broken("a name in quotes is missing");
        }
        let name = self.string()?;
        self.space();
        if self.peek() != Some(b':') {
            return self.broken("`:` is missing");
        }
        self.at += 1;
        Ok(name)
    }

    fn value(&mut self, depth: usize) -> Result<Node<'a>, Broken> {
        self.space();
        if depth > DEEPEST {
            return self.broken("the value nests too deep");
        }
        Ok(match self.peek() {
            Some(b'{') => {
                let mut members = Vec::new();
                self.sequence(b'}', |scan| {
                    let name = scan.name()?;
                    members.push((name, scan.value(depth + 1)?));
                    Ok(())
                })?;
                Node::Object(members)
            }
            Some(b'[') => {
                let mut items = Vec::new();
                self.sequence(b']', |scan| {
                    items.push(scan.value(depth + 1)?);
                    Ok(())
                })?;
                Node::Array(items)
            }
            Some(b'"') => Node::Text(self.string()?),
            _ => self.word()?,
        })
    }

    /// Passes over a value.
    fn skip(&mut self, depth: usize) -> Result<(), Broken> {
        self.space();
        if depth > DEEPEST {
            return self.broken("the value nests too deep");
        }
        match self.peek() {
            Some(b'{') => self.sequence(b'}', |scan| {
                scan.name()?;
                scan.skip(depth + 1)
            }),
            Some(b'[') => self.sequence(b']', |scan| scan.skip(depth + 1)),
            Some(b'"') => self.string().map(drop),
            _ => self.word().map(drop),
        }
    }

    /// `null`, `true`, `false` or a number.
    fn word(&mut self) -> Result<Node<'a>, Broken> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let ends = rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '+' | '.'));
        let word = rest.get(..ends.unwrap_or(rest.len())).unwrap_or_default();
        let node = match word {
            "null" => Node::Null,
            "true" => Node::Bool(true),
            "false" => Node::Bool(false),
            _ if is_number(word) => Node::Number(word),
            _ => return self.broken("a value is missing"),
        };
        self.at += word.len();
        Ok(node)
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Broken> {
        self.at += 1;
        let start = self.at;
        let mut text: Option<String> = None;
        let mut from = start;
        loop {
            match self.peek() {
                None => return self.broken("a text has no end"),
                Some(b'"') => break,
                Some(..0x20) => return self.broken("a control character stands in a text"),
                Some(b'\\') => {
                    let text = text.get_or_insert_default();
                    text.push_str(self.text.get(from..self.at).unwrap_or_default());
                    self.at += 1;
                    text.push(self.escaped()?);
                    from = self.at;
                }
                Some(_) => self.at += 1,
            }
        }
        let last = self.text.get(from..self.at).unwrap_or_default();
        self.at += 1;
        Ok(match text {
            None => Cow::Borrowed(last),
            Some(text) => Cow::Owned(text + last),
        })
    }

    /// The character behind a backslash.
    fn escaped(&mut self) -> Result<char, Broken> {
        let plain = match self.peek() {
            Some(b'u') => {
                self.at += 1;
                return self.unicode();
            }
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            _ => return self.broken("an escape is unknown"),
        };
        self.at += 1;
        Ok(plain)
    }

    /// The character of `\uXXXX`; of a pair of them, for characters beyond the first plane.
    fn unicode(&mut self) -> Result<char, Broken> {
        let first = self.hex()?;
        if let Some(c) = char::from_u32(first) {
            return Ok(c);
        }
        if self.text.get(self.at..self.at + 2) != Some("\\u") {
            return self.broken("half of a character");
        }
        self.at += 2;
        let second = self.hex()?;
        let code = match (first, second) {
            (0xd800..=0xdbff, 0xdc00..=0xdfff) => 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00),
            _ => return self.broken("half of a character"),
        };
        char::from_u32(code).map_or_else(|| self.broken("no character"), Ok)
    }

    fn hex(&mut self) -> Result<u32, Broken> {
        let digits = self.text.get(self.at..self.at + 4).unwrap_or_default();
        let all = digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u32::from_str_radix(digits, 16) {
            Ok(code) if all => {
                self.at += 4;
                Ok(code)
            }
            _ => self.broken("four hexadecimal digits are missing"),
        }
    }
}

/// JSON's grammar of numbers.
fn is_number(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = word.strip_prefix('-').unwrap_or(word);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole.len() == 1 || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|text| digits(text.strip_prefix(['-', '+']).unwrap_or(text)))
}

#[cfg(test)]
#[path = "json_text_tests.rs"]
mod tests;
