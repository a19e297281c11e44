//! What comes next in a statement?
//!
//! A [`Cursor`] walks over the tokens of one statement. Words are compared without regard to case; every word may be a
//! name, since position tells names from keywords.

use std::ops::Range;

use sqlparser::tokenizer::{Location, Token, Word};

use crate::{error::Problem, lexer::Tok};

/// A place in the tokens of one statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    /// The text that the tokens' ranges refer to.
    pub(crate) text: &'a str,
    /// Index of that text among the files, for spans.
    pub(crate) file: usize,
    tokens: &'a [Tok],
    at: usize,
    /// Where the end of the tokens is reported.
    end: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str, file: usize, tokens: &'a [Tok]) -> Self {
        let end = tokens.last().map_or(0, |tok| tok.range.end);
        Self { text, file, tokens, at: 0, end }
    }

    pub(crate) fn rest(&self) -> &'a [Tok] {
        self.tokens.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn peek(&self) -> Option<&'a Tok> {
        self.peek_nth(0)
    }

    pub(crate) fn peek_nth(&self, n: usize) -> Option<&'a Tok> {
        self.tokens.get(self.at + n)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.peek().is_none()
    }

    pub(crate) fn skip(&mut self, tokens: usize) {
        self.at = (self.at + tokens).min(self.tokens.len());
    }

    /// All that is left, which is then behind the cursor.
    pub(crate) fn take_rest(&mut self) -> &'a [Tok] {
        let rest = self.rest();
        self.at = self.tokens.len();
        rest
    }

    /// The bytes of all tokens.
    pub(crate) fn whole(&self) -> Range<usize> {
        self.tokens.first().map_or(self.end, |tok| tok.range.start)..self.end
    }

    /// The bytes of the next token, or the end of the statement.
    pub(crate) fn here(&self) -> Range<usize> {
        self.peek().map_or(self.end..self.end, |tok| tok.range.clone())
    }

    /// The bytes from `start` to the end of the last token passed.
    pub(crate) fn since(&self, start: usize) -> Range<usize> {
        let end =
            self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(start, |tok| tok.range.end);
        start..end.max(start)
    }

    /// The bytes of the token that begins at `place`, among those left.
    pub(crate) fn token_at(&self, place: Location) -> Option<Range<usize>> {
        let rest = self.rest();
        let index = rest.partition_point(|tok| tok.location() < place);
        rest.get(index).map(|tok| tok.range.clone())
    }

    pub(crate) fn slice(&self, range: Range<usize>) -> &'a str {
        self.text.get(range).unwrap_or_default()
    }

    pub(crate) fn at_words(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(n, word)| self.peek_nth(n).is_some_and(|tok| tok.is_keyword(word)))
    }

    pub(crate) fn at_token(&self, token: &Token) -> bool {
        self.peek().is_some_and(|tok| tok.token == *token)
    }

    /// Passes `words` if they come next; answers with their bytes.
    pub(crate) fn eat_words(&mut self, words: &[&str]) -> Option<Range<usize>> {
        let start = self.here().start;
        self.at_words(words).then(|| {
            self.skip(words.len());
            self.since(start)
        })
    }

    pub(crate) fn eat_token(&mut self, token: &Token) -> Option<Range<usize>> {
        let here = self.here();
        self.at_token(token).then(|| {
            self.skip(1);
            here
        })
    }

    pub(crate) fn expect_words(&mut self, words: &[&str]) -> Result<Range<usize>, Problem> {
        self.eat_words(words).ok_or_else(|| self.expected(&words.join(" ")))
    }

    pub(crate) fn expect_token(&mut self, token: &Token) -> Result<Range<usize>, Problem> {
        self.eat_token(token).ok_or_else(|| self.expected(&format!("`{token}`")))
    }

    pub(crate) fn expect_end(&self) -> Result<(), Problem> {
        if self.is_done() { Ok(()) } else { Err(self.expected("the end of the statement")) }
    }

    /// The error that `what` should stand here.
    pub(crate) fn expected(&self, what: &str) -> Problem {
        let found = match self.peek() {
            None => "the end of the statement".to_owned(),
            Some(tok) => format!("`{}`", short(self.slice(tok.range.clone()))),
        };
        Problem::new(self.here(), format!("expected {what}, found {found}"))
    }

    /// A name of one part, with its bytes.
    pub(crate) fn name(&mut self, what: &str) -> Result<(String, Range<usize>), Problem> {
        match self.peek() {
            Some(Tok { token: Token::Word(Word { value, .. }), range, .. }) if !value.is_empty() => {
                self.skip(1);
                Ok((value.clone(), range.clone()))
            }
            _ => Err(self.expected(what)),
        }
    }

    /// A name of one or more parts.
    pub(crate) fn parts(&mut self, what: &str) -> Result<(Vec<String>, Range<usize>), Problem> {
        let (first, range) = self.name(what)?;
        let mut parts = vec![first];
        while self.eat_token(&Token::Period).is_some() {
            parts.push(self.name(what)?.0);
        }
        let range = self.since(range.start);
        Ok((parts, range))
    }

    /// A dataset's name. The schema `LIVE`, which older pipelines write, is the pipeline itself.
    pub(crate) fn dataset(&mut self, what: &str) -> Result<(String, Range<usize>), Problem> {
        let (parts, range) = self.parts(what)?;
        Ok((dataset_name(parts), range))
    }

    pub(crate) fn string(&mut self, what: &str) -> Result<String, Problem> {
        match self.peek().map(|tok| &tok.token) {
            Some(Token::SingleQuotedString(text) | Token::DoubleQuotedString(text)) => {
                self.skip(1);
                Ok(text.clone())
            }
            _ => Err(self.expected(what)),
        }
    }

    /// A cursor over what the parentheses that open here enclose; this one goes on behind them.
    pub(crate) fn parenthesized(&mut self) -> Result<Self, Problem> {
        let open = self.expect_token(&Token::LParen)?;
        let mut depth = 0_usize;
        for (n, tok) in self.rest().iter().enumerate() {
            if tok.token == Token::LParen {
                depth += 1;
            } else if tok.token == Token::RParen && depth > 0 {
                depth -= 1;
            } else if tok.token == Token::RParen {
                let tokens = self.rest().get(..n).unwrap_or_default();
                self.skip(n + 1);
                return Ok(Self { tokens, at: 0, end: tok.range.start, ..*self });
            }
        }
        Err(Problem::new(open, "this parenthesis is never closed"))
    }

    /// Items separated by commas, up to the end of this cursor.
    pub(crate) fn comma_separated<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, Problem>,
    ) -> Result<Vec<T>, Problem> {
        let mut items = Vec::new();
        if self.is_done() {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.is_done() {
                return Ok(items);
            }
            if self.eat_token(&Token::Comma).is_none() {
                return Err(self.expected("`,` or `)`"));
            }
        }
    }
}

pub(crate) fn dataset_name(mut parts: Vec<String>) -> String {
    if parts.len() > 1 && parts.first().is_some_and(|first| first.eq_ignore_ascii_case("live")) {
        parts.remove(0);
    }
    parts.join(".")
}

fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    match line.char_indices().nth(40) {
        Some((at, _)) => format!("{}..", line.get(..at).unwrap_or_default()),
        None => line.to_owned(),
    }
}
