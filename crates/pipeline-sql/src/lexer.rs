//! Which tokens does a text consist of, and where is each of them?
//!
//! Invariant: tokens carry byte ranges of the text they came from, in rising order; white space and comments are gone.

use std::ops::Range;

use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer, Whitespace, Word};

use crate::{dialect::StrandlineDialect, error::Problem, source::offset_of};

/// A statement may have this many tokens other than commas and literals, so that no expression gets deeper than the
/// stack of a small thread allows.
const MAX_OPERATORS: usize = 4_000;

/// A token and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tok {
    pub(crate) token: Token,
    pub(crate) range: Range<usize>,
    span: Span,
}

impl Tok {
    /// A token that the text at `at` implies without writing it.
    pub(crate) fn synthetic(token: Token, at: usize) -> Self {
        Self { token, range: at..at, span: Span::empty() }
    }

    pub(crate) fn word(&self) -> Option<&Word> {
        if let Token::Word(word) = &self.token { Some(word) } else { None }
    }

    /// The word in upper case, unless it is quoted or no word.
    pub(crate) fn keyword(&self) -> Option<String> {
        self.word().filter(|word| word.quote_style.is_none()).map(|word| word.value.to_uppercase())
    }

    pub(crate) fn is_keyword(&self, keyword: &str) -> bool {
        self.word().is_some_and(|word| word.quote_style.is_none() && word.value.eq_ignore_ascii_case(keyword))
    }

    /// The token as an engine with standard quoting reads it: names in double quotes, strings in single ones.
    ///
    /// Quotes inside are doubled here, because sqlparser prints what looks doubled as it stands and would otherwise
    /// turn two quotes into one.
    pub(crate) fn portable(&self) -> TokenWithSpan {
        let token = if let Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) = &self.token {
            Token::SingleQuotedString(text.replace('\'', "''"))
        } else if let Some(word) = self.word().filter(|word| word.quote_style.is_some()) {
            let value = word.value.replace('"', "\"\"");
            Token::Word(Word { value, quote_style: Some('"'), keyword: word.keyword })
        } else {
            self.token.clone()
        };
        TokenWithSpan { token, span: self.span }
    }

    /// Where sqlparser says that the token begins.
    pub(crate) fn location(&self) -> Location {
        self.span.start
    }

    /// Another token in the place of this one.
    pub(crate) fn replaced_by_name(&self, name: &str) -> TokenWithSpan {
        TokenWithSpan { token: Token::make_word(name, None), span: self.span }
    }
}

/// The tokens of `text` up to the first that can't be read, and what is wrong with that one.
pub(crate) fn tokenize(text: &str) -> (Vec<Tok>, Option<Problem>) {
    let (dialect, mut raw) = (StrandlineDialect::default(), Vec::new());
    let failure = Tokenizer::new(&dialect, text).tokenize_with_location_into_buf(&mut raw).err();
    let mut places = Places::new(text);
    let mut tokens = Vec::with_capacity(raw.len());
    for TokenWithSpan { token, span } in raw {
        let start = places.advance_to(span.start);
        let token = if ends_cell(&token) { Token::SemiColon } else { token };
        if matches!(token, Token::Whitespace(_) | Token::EOF) {
            continue;
        }
        let end = places.advance_to(span.end);
        tokens.push(Tok { token, range: start..end, span });
    }
    let problem = failure.map(|failure| {
        let (line, column) = (to_usize(failure.location.line), to_usize(failure.location.column));
        let at = offset_of(text, line, column);
        let end = text.get(at..).and_then(|rest| rest.chars().next()).map_or(at, |c| at + c.len_utf8());
        Problem::new(at..end, lower_first(&failure.message))
    });
    (tokens, problem)
}

/// True for the comment between two cells of a notebook that is kept as a file: a cell needs no semicolon.
fn ends_cell(token: &Token) -> bool {
    matches!(token, Token::Whitespace(Whitespace::SingleLineComment { comment, .. })
        if comment.trim() == "COMMAND ----------")
}

/// The tokens of each statement; semicolons end them.
pub(crate) fn statements(tokens: &[Tok]) -> impl Iterator<Item = &[Tok]> {
    tokens.split(|tok| tok.token == Token::SemiColon).filter(|statement| !statement.is_empty())
}

/// Refuses a statement that could nest too deeply to be handled.
pub(crate) fn check_size(statement: &[Tok]) -> Result<(), Problem> {
    let heavy = statement.iter().filter(|tok| {
        let light = matches!(
            tok.token,
            Token::Comma | Token::Number(..) | Token::SingleQuotedString(_) | Token::DoubleQuotedString(_)
        );
        !light
    });
    match heavy.enumerate().nth(MAX_OPERATORS) {
        None => Ok(()),
        Some((_, tok)) => Err(Problem::new(tok.range.clone(), "this statement is too long")
            .help("split the query with views; long lists of literals are fine")),
    }
}

pub(crate) fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

pub(crate) fn lower_first(message: &str) -> String {
    let mut chars = message.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

/// Turns rising line/column pairs into byte offsets in one pass over the text.
struct Places<'a> {
    rest: std::iter::Peekable<std::str::CharIndices<'a>>,
    length: usize,
    line: u64,
    column: u64,
}

impl<'a> Places<'a> {
    fn new(text: &'a str) -> Self {
        Self { rest: text.char_indices().peekable(), length: text.len(), line: 1, column: 1 }
    }

    fn advance_to(&mut self, place: Location) -> usize {
        while (self.line, self.column) < (place.line, place.column) {
            match self.rest.next() {
                Some((_, '\n')) => (self.line, self.column) = (self.line + 1, 1),
                Some(_) => self.column += 1,
                None => break,
            }
        }
        self.rest.peek().map_or(self.length, |(at, _)| *at)
    }
}
