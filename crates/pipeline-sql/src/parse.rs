//! Which statements does a pipeline's text consist of, and what do they add to its definition?

use std::ops::Range;

use sqlparser::tokenizer::Token;

use crate::{
    Feature, FlowDefinition, PipelineDefinition, SourceFile, Span, SqlError, Support,
    cursor::Cursor,
    error::Problem,
    flow,
    lexer::{check_size, statements, tokenize},
    sink,
    suggest::nearest,
    table,
    values::{Known, Substituted, Values},
    view,
};

/// Reads the files of a pipeline, with what this release executes.
///
/// # Errors
/// All errors that can be found: after a statement with an error the next one is read all the same.
pub fn parse_pipeline(sources: &[SourceFile]) -> Result<PipelineDefinition, Vec<SqlError>> {
    parse_pipeline_with(sources, &Support::released())
}

/// Reads the files of a pipeline, refusing what `support` lacks.
///
/// # Errors
/// As [`parse_pipeline`].
pub fn parse_pipeline_with(
    sources: &[SourceFile],
    support: &Support,
) -> Result<PipelineDefinition, Vec<SqlError>> {
    parse_pipeline_with_values(sources, support, &Values::default())
}

/// Reads the files of a pipeline with settings from outside. They become settings of the definition, and stand in the
/// text wherever it says `${key}`.
///
/// # Errors
/// As [`parse_pipeline`]; also a `${key}` that nothing gives a value.
pub fn parse_pipeline_with_values(
    sources: &[SourceFile],
    support: &Support,
    values: &Values,
) -> Result<PipelineDefinition, Vec<SqlError>> {
    let mut definition =
        PipelineDefinition { settings: values.defaults.clone(), ..PipelineDefinition::default() };
    let mut known = Known::new(values, sources);
    let mut errors = Vec::new();
    for (file, source) in sources.iter().enumerate() {
        let (datasets, flows) = (definition.datasets.len(), definition.flows.len());
        let mut substituted = known.substitute(&source.text);
        let mut found = read_file(&substituted, file, support, &mut definition);
        for problem in &mut found {
            problem.range = substituted.origin(problem.range.clone());
        }
        found.append(&mut substituted.problems);
        found.sort_by_key(|problem| problem.range.start);
        errors.extend(found.into_iter().map(|problem| SqlError::located(source, problem)));
        substituted.relocate(&mut definition, datasets, flows);
    }
    definition.settings.extend(values.overrides.clone());
    if errors.is_empty() { Ok(definition) } else { Err(errors) }
}

/// Adds what a file says to the definition, and gives what is wrong with it.
fn read_file(
    file: &Substituted,
    number: usize,
    support: &Support,
    definition: &mut PipelineDefinition,
) -> Vec<Problem> {
    let (tokens, unreadable) = tokenize(&file.text);
    let mut found = Vec::new();
    let mut parts: Vec<_> = statements(&tokens).collect();
    if unreadable.is_some() && tokens.last().is_some_and(|tok| tok.token != Token::SemiColon) {
        // The statement that breaks off has one error already.
        parts.pop();
    }
    for tokens in parts {
        let cursor = Cursor::new(&file.text, number, tokens);
        if file.lacks_value(&cursor.whole()) {
            continue;
        }
        let mut reader = Reader { cursor, support, problems: Vec::new(), definition };
        if let Err(problem) = check_size(tokens).and_then(|()| reader.statement()) {
            reader.problems.push(problem);
        }
        found.append(&mut reader.problems);
    }
    found.extend(unreadable);
    found
}

/// Reads one statement.
pub(crate) struct Reader<'a> {
    pub(crate) cursor: Cursor<'a>,
    support: &'a Support,
    /// Errors that don't keep the rest of the statement from being read.
    pub(crate) problems: Vec<Problem>,
    pub(crate) definition: &'a mut PipelineDefinition,
}

/// Words behind CREATE.
#[derive(Debug, Default)]
pub(crate) struct Modifiers {
    or_refresh: Option<Range<usize>>,
    pub(crate) temporary: bool,
    pub(crate) live: bool,
    streaming: bool,
}

const BEGINNINGS: &[&str] = &["CREATE", "SET", "AUTO", "APPLY"];
const CREATABLE: &[&str] =
    &["STREAMING", "FLOW", "VIEW", "TEMPORARY", "MATERIALIZED", "SINK", "TABLE", "LIVE"];

impl Reader<'_> {
    fn statement(&mut self) -> Result<(), Problem> {
        if self.cursor.eat_words(&["CREATE"]).is_some() {
            return self.create();
        }
        if self.cursor.eat_words(&["SET"]).is_some() {
            return self.set();
        }
        if self.cursor.at_words(&["AUTO", "CDC"]) || self.cursor.at_words(&["APPLY", "CHANGES"]) {
            return flow::read_unnamed(self);
        }
        if self.cursor.at_words(&["USE"]) {
            return Err(Problem::new(self.cursor.here(), "not supported yet: USE").help(
                "write names with their schema where they need one: a name is taken as it is written",
            ));
        }
        let problem = self.cursor.expected("a statement of a pipeline (CREATE .., SET ..)");
        Err(self.did_you_mean(problem, BEGINNINGS))
    }

    pub(crate) fn did_you_mean(&self, problem: Problem, words: &[&str]) -> Problem {
        let word = self.cursor.peek().and_then(crate::lexer::Tok::keyword);
        match word.and_then(|word| nearest(&word, words.iter().copied()).map(str::to_owned)) {
            Some(near) => problem.help(format!("did you mean {near}?")),
            None => problem,
        }
    }

    fn create(&mut self) -> Result<(), Problem> {
        let mut modifiers = Modifiers::default();
        if let Some(range) = self.cursor.eat_words(&["OR", "REFRESH"]) {
            modifiers.or_refresh = Some(range);
        } else {
            self.cursor.eat_words(&["OR", "REPLACE"]);
        }
        loop {
            let here = self.cursor.here();
            if self.eat_any(&["TEMPORARY", "TEMP", "PRIVATE"]) {
                modifiers.temporary = true;
            } else if self.eat_any(&["STREAMING", "INCREMENTAL"]) {
                modifiers.streaming = true;
            } else if self.eat_any(&["LIVE"]) {
                modifiers.live = true;
            } else if self.eat_any(&["TABLE"]) {
                if modifiers.streaming {
                    return table::read(self, &modifiers);
                } else if modifiers.live {
                    return table::read_materialized(self, &modifiers, &here);
                }
                return Err(self.managed_table(here));
            } else if self.eat_any(&["FLOW"]) {
                return flow::read(self, &modifiers);
            } else if self.eat_any(&["VIEW"]) {
                return view::read(self, &modifiers);
            } else if self.cursor.eat_words(&["MATERIALIZED", "VIEW"]).is_some() {
                return table::read_materialized(self, &modifiers, &here);
            } else if self.eat_any(&["SINK"]) {
                return sink::read(self, &modifiers, &here);
            } else {
                let problem = self.cursor.expected("STREAMING TABLE, MATERIALIZED VIEW, VIEW, FLOW or SINK");
                return Err(self.did_you_mean(problem, CREATABLE));
            }
        }
    }

    /// The tables of a pipeline are streaming tables; users of others know the name of that condition.
    fn managed_table(&self, place: Range<usize>) -> Problem {
        let words = self.cursor.rest();
        let changes = words.windows(2).any(
            |pair| matches!(pair, [first, second] if first.is_keyword("AUTO") && second.is_keyword("CDC")),
        );
        let problem = Problem::new(place, "a pipeline has streaming tables, materialized views and views");
        if changes {
            problem.help("write CREATE STREAMING TABLE").condition("MANAGED_TABLE_DOES_NOT_SUPPORT_CDC")
        } else {
            problem.help("write CREATE STREAMING TABLE or CREATE MATERIALIZED VIEW")
        }
    }

    fn eat_any(&mut self, words: &[&str]) -> bool {
        words.iter().any(|word| self.cursor.eat_words(&[word]).is_some())
    }

    /// `IF NOT EXISTS`, which `OR REFRESH` excludes (G-03).
    pub(crate) fn if_not_exists(&mut self, modifiers: &Modifiers) {
        if let Some(range) = self.cursor.eat_words(&["IF", "NOT", "EXISTS"])
            && modifiers.or_refresh.is_some()
        {
            self.problems.push(
                Problem::new(range, "OR REFRESH and IF NOT EXISTS exclude each other")
                    .help("drop one of the two"),
            );
        }
    }

    /// Refuses a feature that the release lacks; reading goes on.
    pub(crate) fn needs(&mut self, feature: Feature, range: Range<usize>) {
        self.problems.extend(self.support.refusal(feature, range));
    }

    pub(crate) fn refusal(&self, feature: Feature, range: Range<usize>) -> Option<Problem> {
        self.support.refusal(feature, range)
    }

    pub(crate) fn span(&self, range: Range<usize>) -> Span {
        Span { file: self.cursor.file, start: range.start, end: range.end }
    }

    pub(crate) fn add_flow(&mut self, flow: FlowDefinition) {
        self.definition.flows.push(flow);
    }

    fn set(&mut self) -> Result<(), Problem> {
        let (key, value, _) = read_setting(&mut self.cursor)?;
        self.definition.settings.insert(key, value);
        Ok(())
    }
}

/// `key = value`, behind SET, and whether the value stands in quotes; one without quotes goes to the end of the
/// statement.
pub(crate) fn read_setting(cursor: &mut Cursor<'_>) -> Result<(String, String, bool), Problem> {
    let start = cursor.here().start;
    let length = cursor.rest().iter().take_while(|tok| tok.token != Token::Eq).count();
    let name_tokens = cursor.rest().get(..length).unwrap_or_default();
    let named = name_tokens
        .iter()
        .all(|tok| matches!(tok.token, Token::Word(_) | Token::Period | Token::Minus | Token::Number(..)));
    if length == 0 || !named {
        return Err(cursor.expected("a setting's name"));
    }
    cursor.skip(length);
    let key = cursor.slice(cursor.since(start)).to_owned();
    if key.contains(char::is_whitespace) {
        return Err(
            Problem::new(cursor.since(start), "a setting's name has no spaces").help("write SET key = value")
        );
    }
    cursor.expect_token(&Token::Eq)?;
    let only_one = cursor.peek_nth(1).is_none();
    match cursor.string("a value") {
        Ok(text) if only_one => Ok((key, text, true)),
        Ok(_) => Err(cursor.expected("the end of the statement")),
        Err(_) if cursor.is_done() => Err(cursor.expected("a value")),
        Err(_) => {
            let start = cursor.here().start;
            cursor.take_rest();
            Ok((key, cursor.slice(cursor.since(start)).to_owned(), false))
        }
    }
}
