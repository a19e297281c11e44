//! How is a text read as JSON? By descent, with a limit to its depth; places are told in bytes.

use std::borrow::Cow;

use super::{DEEPEST, Json};

/// Names, and values as they are written.
pub(crate) type Members<'a> = Vec<(Cow<'a, str>, &'a str)>;

/// The members of a text that is an object, each value as it is written and not built; `None` for another value.
pub(crate) fn members(text: &str) -> Result<Option<Members<'_>>, String> {
    let mut parser = Parser::new(text);
    parser.blank();
    if parser.peek() != Some(b'{') {
        parser.skip(0)?;
        parser.end()?;
        return Ok(None);
    }
    let mut members = Vec::new();
    parser.fields(0, |parser, name, depth| {
        let from = parser.at;
        parser.skip(depth)?;
        members.push((name, parser.slice(from, parser.at)));
        Ok(())
    })?;
    parser.end()?;
    Ok(Some(members))
}

/// The value that is all of a text.
pub(super) fn whole(text: &str) -> Result<Json<'_>, String> {
    let mut parser = Parser::new(text);
    parser.blank();
    let value = parser.value(0)?;
    parser.end()?;
    Ok(value)
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, bytes: text.as_bytes(), at: 0 }
    }

    fn end(&mut self) -> Result<(), String> {
        self.blank();
        if self.at < self.text.len() { Err(self.unexpected("something after the record")) } else { Ok(()) }
    }

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

    /// Passes over a value without building it; what it refuses is what [`Parser::value`] refuses.
    fn skip(&mut self, depth: usize) -> Result<(), String> {
        match self.peek() {
            Some(b'{') => self.fields(depth, |parser, _, depth| parser.skip(depth)),
            Some(b'[') => self.items(depth, Self::skip),
            _ => self.value(depth).map(drop),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json<'a>, String> {
        let from = self.at;
        let mut items = Vec::new();
        self.items(depth, |parser, depth| {
            items.push(parser.value(depth)?);
            Ok(())
        })?;
        Ok(Json::List(items, self.slice(from, self.at)))
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, String> {
        let from = self.at;
        let mut fields = Vec::new();
        self.fields(depth, |parser, name, depth| {
            fields.push((name, parser.value(depth)?));
            Ok(())
        })?;
        Ok(Json::Object(fields, self.slice(from, self.at)))
    }

    /// The items of a list, on whose bracket the parser is; each is read by `item`.
    fn items(
        &mut self,
        depth: usize,
        mut item: impl FnMut(&mut Self, usize) -> Result<(), String>,
    ) -> Result<(), String> {
        let depth = Self::deeper(depth)?;
        self.at += 1;
        self.blank();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.blank();
            item(self, depth)?;
            self.blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.unexpected("`,` or `]` is expected")),
            }
        }
    }

    /// The fields of an object, on whose bracket the parser is; the value behind each name is read by `value`.
    fn fields(
        &mut self,
        depth: usize,
        mut value: impl FnMut(&mut Self, Cow<'a, str>, usize) -> Result<(), String>,
    ) -> Result<(), String> {
        let depth = Self::deeper(depth)?;
        self.at += 1;
        self.blank();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
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
            value(self, name, depth)?;
            self.blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(());
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
