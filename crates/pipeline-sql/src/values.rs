//! What does `${key}` stand for?
//!
//! Values of settings are put into the text before it is read, and the places of both texts are remembered, so that
//! errors tell where they are in the author's text. Within quotes a value is one piece of text, whatever is in it;
//! elsewhere it is SQL. A value is never searched for further references. In a string, `\${..}` is no reference.

use std::{collections::BTreeMap, ops::Range};

use sqlparser::tokenizer::Token;

use crate::{
    DatasetDefinition, PipelineDefinition, SourceFile, Span,
    cursor::Cursor,
    error::Problem,
    lexer::{Tok, statements, tokenize},
    name::literal,
    parse::read_setting,
    suggest::nearest,
};

/// All values put into one file may have this many bytes: few words can stand for much, and much for more.
const MOST_BYTES: usize = 1 << 20;

/// Settings that a pipeline's text does not give itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Values {
    /// Settings that hold where no `SET` gives another value: the configuration of a project.
    pub defaults: BTreeMap<String, String>,
    /// Settings that hold whatever the text says: those of a command line.
    pub overrides: BTreeMap<String, String>,
}

/// The values that are known at a place of the text.
#[derive(Debug)]
pub(crate) struct Known<'a> {
    values: &'a Values,
    /// False where no file has a reference.
    needed: bool,
    /// What `SET` gave so far, and whether it stood in quotes.
    set: BTreeMap<String, (String, bool)>,
}

impl<'a> Known<'a> {
    pub(crate) fn new(values: &'a Values, sources: &[SourceFile]) -> Self {
        let needed = sources.iter().any(|source| source.text.contains("${"));
        Self { values, needed, set: BTreeMap::new() }
    }

    /// The value of a key, and whether it is a text rather than SQL where it stands outside of quotes. A value from
    /// outside takes the place of the one in SET, quotes and all.
    fn get(&self, key: &str) -> Option<(&str, bool)> {
        let (set, quoted) = match self.set.get(key) {
            Some((value, quoted)) => (Some(value), *quoted),
            None => (None, false),
        };
        let value = self.values.overrides.get(key).or(set).or_else(|| self.values.defaults.get(key))?;
        Some((value, quoted))
    }

    fn unknown(&self, reference: &Reference) -> Problem {
        let key = &reference.key;
        let keys = [&self.values.overrides, &self.values.defaults]
            .into_iter()
            .flat_map(BTreeMap::keys)
            .chain(self.set.keys());
        let problem = Problem::new(reference.range.clone(), format!("there is no setting {key}"));
        match nearest(key, keys.map(String::as_str)) {
            Some(near) => problem.help(format!("did you mean ${{{near}}}?")),
            None => problem.help(format!(
                "write SET {key} = value before it, or give it a value when you run the pipeline"
            )),
        }
    }

    /// The text with values for its references. What it sets is known from then on.
    pub(crate) fn substitute(&mut self, text: &str) -> Substituted {
        let mut out = Substituted::default();
        if !self.needed {
            out.text.push_str(text);
            return out;
        }
        let mut read = 0;
        for statement in statements(&tokenize(text).0) {
            let (Some(first), Some(last)) = (statement.first(), statement.last()) else { continue };
            out.copy(text, read..first.range.start);
            let start = out.text.len();
            read = first.range.start;
            for reference in references(text, statement) {
                out.copy(text, read..reference.range.start);
                read = reference.range.end;
                out.put(text, &reference, self);
            }
            out.copy(text, read..last.range.end);
            read = last.range.end;
            self.learn(out.text.get(start..).unwrap_or_default());
        }
        out.copy(text, read..text.len());
        out.check();
        out
    }

    fn learn(&mut self, statement: &str) {
        let (tokens, _) = tokenize(statement);
        let mut cursor = Cursor::new(statement, 0, &tokens);
        if cursor.eat_words(&["SET"]).is_some()
            && let Ok((key, value, quoted)) = read_setting(&mut cursor)
        {
            self.set.insert(key, (value, quoted));
        }
    }
}

/// A text with values in it, and where each of its bytes comes from.
#[derive(Debug, Default)]
pub(crate) struct Substituted {
    pub(crate) text: String,
    /// Places of the values, and of the references in whose places they stand.
    edits: Vec<(Range<usize>, Range<usize>)>,
    /// How many bytes the values have.
    bytes: usize,
    /// What is wrong with references, in places of the author's text.
    pub(crate) problems: Vec<Problem>,
}

impl Substituted {
    fn copy(&mut self, text: &str, range: Range<usize>) {
        self.text.push_str(text.get(range).unwrap_or_default());
    }

    fn put(&mut self, text: &str, reference: &Reference, known: &Known<'_>) {
        let start = self.text.len();
        let problem = match known.get(&reference.key) {
            None => known.unknown(reference),
            Some((value, _)) if self.bytes + value.len() > MOST_BYTES => {
                let message =
                    format!("values of settings make this file longer by more than {MOST_BYTES} bytes");
                Problem::new(reference.range.clone(), message)
            }
            Some((value, quoted)) => {
                self.bytes += value.len();
                self.text.push_str(&reference.quote.around(value, quoted));
                self.edits.push((start..self.text.len(), reference.range.clone()));
                return;
            }
        };
        self.problems.push(problem);
        self.copy(text, reference.range.clone());
        self.edits.push((start..self.text.len(), reference.range.clone()));
    }

    /// A value can't bring in a reference: nobody would know what it says when it is printed.
    fn check(&mut self) {
        if self.problems.is_empty() && !self.edits.is_empty() {
            let (tokens, _) = tokenize(&self.text);
            let left = references(&self.text, &tokens).into_iter().next();
            self.problems.extend(left.map(|left| {
                let message = format!("the value that stands here has ${{{}}} in it", left.key);
                Problem::new(self.origin(left.range), message)
                    .help("give the setting the value itself: values are not searched for further settings")
            }));
        }
    }

    /// True where a reference of the author's text has no value.
    pub(crate) fn lacks_value(&self, range: &Range<usize>) -> bool {
        let origin = self.origin(range.clone());
        self.problems
            .iter()
            .any(|problem| origin.start <= problem.range.start && problem.range.end <= origin.end)
    }

    /// The same place in the author's text.
    pub(crate) fn origin(&self, range: Range<usize>) -> Range<usize> {
        let place = |at: usize, is_end: bool| {
            let behind = self.edits.partition_point(|(new, _)| new.start < at + usize::from(!is_end));
            match behind.checked_sub(1).and_then(|n| self.edits.get(n)) {
                None => at,
                Some((new, old)) if at < new.end => {
                    if is_end {
                        old.end
                    } else {
                        old.start
                    }
                }
                Some((new, old)) => old.end + (at - new.end),
            }
        };
        let start = place(range.start, false);
        start..place(range.end, true).max(start)
    }

    /// Moves the spans of what was read since then to the author's text.
    pub(crate) fn relocate(&self, definition: &mut PipelineDefinition, datasets: usize, flows: usize) {
        if self.edits.is_empty() {
            return;
        }
        let relocate = |span: &mut Span| {
            let origin = self.origin(span.start..span.end);
            (span.start, span.end) = (origin.start, origin.end);
        };
        for dataset in definition.datasets.iter_mut().skip(datasets) {
            match dataset {
                DatasetDefinition::StreamingTable(table) | DatasetDefinition::MaterializedView(table) => {
                    relocate(&mut table.span);
                }
                DatasetDefinition::Sink(sink) => relocate(&mut sink.span),
                DatasetDefinition::View(view) => {
                    relocate(&mut view.span);
                    view.query.inputs.iter_mut().for_each(|input| relocate(&mut input.span));
                }
            }
        }
        for flow in definition.flows.iter_mut().skip(flows) {
            relocate(&mut flow.span);
            flow.queries_mut()
                .flat_map(|query| &mut query.inputs)
                .for_each(|input| relocate(&mut input.span));
        }
    }
}

/// `${key}`, at its place.
#[derive(Debug)]
struct Reference {
    key: String,
    range: Range<usize>,
    quote: Quote,
}

/// Within what a reference stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quote {
    Plain,
    Text(char),
    Name,
}

impl Quote {
    fn around(self, value: &str, text: bool) -> String {
        match self {
            Self::Plain if text => literal(value),
            Self::Plain => value.to_owned(),
            Self::Name => value.replace('`', "``"),
            Self::Text(quote) => {
                let special = |c: char| c == quote || matches!(c, '\\' | '$' | '{');
                value.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
            }
        }
    }
}

/// The references in these tokens of the text. Comments have no tokens.
fn references(text: &str, tokens: &[Tok]) -> Vec<Reference> {
    let mut found = Vec::new();
    let mut next = 0;
    for tok in tokens {
        if tok.token == Token::Placeholder("$".to_owned()) {
            found.extend(
                reference(text, tok.range.start, Quote::Plain).filter(|found| found.range.start >= next),
            );
        } else {
            let inside = text.get(tok.range.clone()).unwrap_or_default();
            if inside.contains("${") {
                within(text, &tok.range, &mut found);
            }
        }
        next = found.last().map_or(0, |last| last.range.end);
    }
    found
}

fn within(text: &str, range: &Range<usize>, found: &mut Vec<Reference>) {
    let inside = text.get(range.clone()).unwrap_or_default();
    let quote = match inside.chars().next_back() {
        Some('`') => Quote::Name,
        Some(quote @ ('\'' | '"')) => Quote::Text(quote),
        _ => Quote::Plain,
    };
    let mut escaped = false;
    let mut next = range.start;
    for (at, c) in inside.char_indices().map(|(at, c)| (range.start + at, c)) {
        if escaped || at < next {
            escaped = false;
        } else if c == '\\' && matches!(quote, Quote::Text(_)) {
            escaped = true;
        } else if c == '$'
            && let Some(reference) = reference(text, at, quote)
        {
            next = reference.range.end;
            found.push(reference);
        }
    }
}

/// The reference that begins at `at`, if one does.
fn reference(text: &str, at: usize, quote: Quote) -> Option<Reference> {
    let inside = text.get(at..)?.strip_prefix("${")?;
    let (key, _) = inside.split_once('}')?;
    let named = key.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | ':'));
    named.then(|| Reference { key: key.to_owned(), range: at..at + "${}".len() + key.len(), quote })
}
