//! What is a JSON text? A tree over the bytes that were read, with every number as it was written.
//!
//! Numbers stay text because a value may be the sequence that decides: a digit that a float can't hold must not vanish on
//! the way to a decimal. Objects and lists remember their own text, so that what does not fit a column can be kept whole.

use std::borrow::Cow;

/// JSON that nests deeper is no record of anything; the parser follows it with its stack.
pub(crate) const DEEPEST: usize = 128;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json<'a> {
    Null,
    Bool(bool),
    /// As it was written; also `NaN`, `Infinity` and `-Infinity`, as Spark reads them.
    Number(&'a str),
    Text(Cow<'a, str>),
    List(Vec<Self>, &'a str),
    /// Fields in the order of the text. A name may come twice: the last counts.
    Object(Vec<(Cow<'a, str>, Self)>, &'a str),
}

impl<'a> Json<'a> {
    /// Parses one value that is all of `text`.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub(crate) fn parse(text: &'a [u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(text)
            .map_err(|e| format!("the text is no UTF-8 from byte {} on", e.valid_up_to()))?;
        let mut parser = Parser { text, bytes: text.as_bytes(), at: 0 };
        parser.blank();
        let value = parser.value(0)?;
        parser.blank();
        if parser.at < text.len() {
            return Err(parser.unexpected("something after the record"));
        }
        Ok(value)
    }

    /// The fields, where it is an object.
    pub(crate) fn fields(&self) -> Option<&[(Cow<'a, str>, Self)]> {
        match self {
            Self::Object(fields, _) => Some(fields),
            _ => None,
        }
    }

    /// The value of a field, where it is an object that has it.
    #[cfg(test)]
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        self.fields()?.iter().rev().find(|(own, _)| own == name).map(|(_, value)| value)
    }

    /// Its JSON text.
    pub(crate) fn raw(&self) -> Cow<'a, str> {
        match self {
            Self::Null => "null".into(),
            Self::Bool(true) => "true".into(),
            Self::Bool(false) => "false".into(),
            Self::Number(text) if text.ends_with(['N', 'y']) => quoted(text).into(),
            Self::Number(text) | Self::List(_, text) | Self::Object(_, text) => (*text).into(),
            Self::Text(text) => quoted(text).into(),
        }
    }

    /// What kind of value it is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(..) => "a list",
            Self::Object(..) => "an object",
        }
    }
}

/// A text as JSON writes it.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn slice(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or_default()
    }

    fn unexpected(&self, wanted: &str) -> String {
        match self.slice(self.at, self.text.len()).chars().next() {
            None => format!("the record ends where {wanted} should stand"),
            Some(found) => format!("`{}` at byte {} ({wanted})", found.escape_default(), self.at),
        }
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Result<Json<'a>, String> {
        if self.slice(self.at, self.at + word.len()) == word {
            self.at += word.len();
            Ok(value)
        } else {
            Err(self.unexpected("a value is expected"))
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json<'a>, String> {
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(b'N') => self.word("NaN", Json::Number("NaN")),
            Some(b'I') => self.word("Infinity", Json::Number("Infinity")),
            Some(b'-') if self.bytes.get(self.at + 1) == Some(&b'I') => {
                self.word("-Infinity", Json::Number("-Infinity"))
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.unexpected("a value is expected")),
        }
    }

    fn digits(&mut self) -> Result<(), String> {
        let from = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == from { Err(self.unexpected("a digit is expected")) } else { Ok(()) }
    }

    fn number(&mut self) -> Result<Json<'a>, String> {
        let from = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
            if matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(self.unexpected("a number may not begin with 0"));
            }
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Json::Number(self.slice(from, self.at)))
    }

    fn deeper(depth: usize) -> Result<usize, String> {
        if depth >= DEEPEST { Err(format!("a record nests more than {DEEPEST} deep")) } else { Ok(depth + 1) }
    }

    fn list(&mut self, depth: usize) -> Result<Json<'a>, String> {
        let (from, depth) = (self.at, Self::deeper(depth)?);
        self.at += 1;
        let mut items = Vec::new();
        self.blank();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::List(items, self.slice(from, self.at)));
        }
        loop {
            self.blank();
            items.push(self.value(depth)?);
            self.blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Json::List(items, self.slice(from, self.at)));
                }
                _ => return Err(self.unexpected("`,` or `]` is expected")),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, String> {
        let (from, depth) = (self.at, Self::deeper(depth)?);
        self.at += 1;
        let mut fields = Vec::new();
        self.blank();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(fields, self.slice(from, self.at)));
        }
        loop {
            self.blank();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("the name of a field is expected"));
            }
            let name = self.string()?;
            self.blank();
            if self.peek() != Some(b':') {
                return Err(self.unexpected("`:` is expected"));
            }
            self.at += 1;
            self.blank();
            fields.push((name, self.value(depth)?));
            self.blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Json::Object(fields, self.slice(from, self.at)));
                }
                _ => return Err(self.unexpected("`,` or `}` is expected")),
            }
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, String> {
        self.at += 1;
        let mut from = self.at;
        let mut unescaped = String::new();
        loop {
            match self.peek() {
                Some(b'"') => {
                    let rest = self.slice(from, self.at);
                    self.at += 1;
                    return Ok(if unescaped.is_empty() {
                        Cow::Borrowed(rest)
                    } else {
                        Cow::Owned(unescaped + rest)
                    });
                }
                Some(b'\\') => {
                    unescaped.push_str(self.slice(from, self.at));
                    self.at += 1;
                    unescaped.push(self.escape()?);
                    from = self.at;
                }
                Some(0..0x20) => return Err(self.unexpected("a text can't hold it unescaped")),
                Some(_) => self.at += 1,
                None => return Err("a text has no end".to_owned()),
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let code = self.peek();
        let plain = match code {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.unicode();
            }
            _ => return Err(self.unexpected("no escape is written so")),
        };
        self.at += 1;
        Ok(plain)
    }

    fn hex(&mut self) -> Result<u32, String> {
        let digits = self.slice(self.at, self.at + 4);
        let is_hex = digits.len() == 4 && digits.bytes().all(|b| b.is_ascii_hexdigit());
        let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex);
        let code = code.ok_or_else(|| self.unexpected("four hexadecimal digits are expected"))?;
        self.at += 4;
        Ok(code)
    }

    fn unicode(&mut self) -> Result<char, String> {
        let high = self.hex()?;
        let code = if (0xd800..0xdc00).contains(&high) && self.slice(self.at, self.at + 2) == "\\u" {
            self.at += 2;
            let low = self.hex()?;
            let is_low = (0xdc00..0xe000).contains(&low);
            if is_low { 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00) } else { high }
        } else {
            high
        };
        char::from_u32(code).ok_or_else(|| self.unexpected("the escape before it is half a character"))
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
