//! Which statements does a pipeline's text consist of, and what do they add to its definition?

use std::ops::Range;

use crate::{
    DatasetDefinition, Feature, FlowDefinition, PipelineDefinition, SourceFile, Span, SqlError, Support,
    ViewDefinition,
    cursor::Cursor,
    error::Problem,
    flow,
    lexer::{check_size, statements, tokenize},
    query,
    suggest::nearest,
    table,
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
    let mut definition = PipelineDefinition::default();
    let mut errors = Vec::new();
    for (file, source) in sources.iter().enumerate() {
        let (tokens, unreadable) = tokenize(&source.text);
        let mut found = Vec::new();
        let mut parts: Vec<_> = statements(&tokens).collect();
        if unreadable.is_some()
            && tokens.last().is_some_and(|tok| tok.token != sqlparser::tokenizer::Token::SemiColon)
        {
            // The statement that breaks off has one error already.
            parts.pop();
        }
        for tokens in parts {
            let cursor = Cursor::new(&source.text, file, tokens);
            let mut reader = Reader { cursor, support, problems: Vec::new(), definition: &mut definition };
            if let Err(problem) = check_size(tokens).and_then(|()| reader.statement()) {
                reader.problems.push(problem);
            }
            found.append(&mut reader.problems);
        }
        found.extend(unreadable);
        found.sort_by_key(|problem| problem.range.start);
        errors.extend(found.into_iter().map(|problem| SqlError::located(source, problem)));
    }
    if errors.is_empty() { Ok(definition) } else { Err(errors) }
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
    temporary: bool,
    live: bool,
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
        let problem = self.cursor.expected("a statement of a pipeline (CREATE .., SET ..)");
        Err(self.did_you_mean(problem, BEGINNINGS))
    }

    fn did_you_mean(&self, problem: Problem, words: &[&str]) -> Problem {
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
            } else if self.eat_any(&["STREAMING"]) {
                modifiers.streaming = true;
            } else if self.eat_any(&["LIVE"]) {
                modifiers.live = true;
            } else if self.eat_any(&["TABLE"]) {
                if modifiers.streaming {
                    return table::read(self, &modifiers);
                }
                return Err(Problem::new(here, "a pipeline has streaming tables and views")
                    .help("write CREATE STREAMING TABLE"));
            } else if self.eat_any(&["FLOW"]) {
                return flow::read(self, &modifiers);
            } else if self.eat_any(&["VIEW"]) {
                return self.view(&modifiers);
            } else if self.cursor.eat_words(&["MATERIALIZED", "VIEW"]).is_some() {
                return self.not_modelled(Feature::MaterializedView, here);
            } else if self.eat_any(&["SINK"]) {
                return self.not_modelled(Feature::Sink, here);
            } else {
                let problem = self.cursor.expected("STREAMING TABLE, FLOW or VIEW");
                return Err(self.did_you_mean(problem, CREATABLE));
            }
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

    fn not_modelled(&mut self, feature: Feature, start: Range<usize>) -> Result<(), Problem> {
        self.cursor.eat_words(&["IF", "NOT", "EXISTS"]);
        let (name, range) = self.cursor.dataset("a name")?;
        let problem = Problem::new(start.start..range.end, format!("not supported yet: {feature} {name}"));
        Err(if feature == Feature::MaterializedView {
            problem.help("a view or a streaming table may do")
        } else {
            problem
        })
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

    fn view(&mut self, modifiers: &Modifiers) -> Result<(), Problem> {
        self.if_not_exists(modifiers);
        let (name, range) = self.cursor.dataset("a view's name")?;
        let mut comment = None;
        loop {
            if self.cursor.eat_words(&["COMMENT"]).is_some() {
                comment = Some(self.cursor.string("a comment in quotes")?);
            } else if self.cursor.eat_words(&["TBLPROPERTIES"]).is_some() {
                table::read_properties(&mut self.cursor)?;
            } else if self.cursor.at_token(&sqlparser::tokenizer::Token::LParen) {
                return Err(Problem::new(self.cursor.here(), "a view takes no list of columns here")
                    .help("name the columns in its query"));
            } else {
                break;
            }
        }
        self.cursor.expect_words(&["AS"])?;
        let query = query::read(&self.cursor)?;
        self.cursor.take_rest();
        let span = self.span(range);
        let temporary = modifiers.temporary || modifiers.live;
        let view = ViewDefinition { name, query, temporary, comment, span };
        self.definition.datasets.push(DatasetDefinition::View(view));
        Ok(())
    }

    /// `SET key = value`; a value without quotes goes to the end of the statement.
    fn set(&mut self) -> Result<(), Problem> {
        use sqlparser::tokenizer::Token;
        let start = self.cursor.here().start;
        let length = self.cursor.rest().iter().take_while(|tok| tok.token != Token::Eq).count();
        let name_tokens = self.cursor.rest().get(..length).unwrap_or_default();
        let named = name_tokens.iter().all(|tok| {
            matches!(tok.token, Token::Word(_) | Token::Period | Token::Minus | Token::Number(..))
        });
        if length == 0 || !named {
            return Err(self.cursor.expected("a setting's name"));
        }
        self.cursor.skip(length);
        let key = self.cursor.slice(self.cursor.since(start)).to_owned();
        if key.contains(char::is_whitespace) {
            return Err(Problem::new(self.cursor.since(start), "a setting's name has no spaces")
                .help("write SET key = value"));
        }
        self.cursor.expect_token(&Token::Eq)?;
        let only_one = self.cursor.peek_nth(1).is_none();
        let value = match self.cursor.string("a value") {
            Ok(text) if only_one => text,
            Ok(_) => return Err(self.cursor.expected("the end of the statement")),
            Err(_) if self.cursor.is_done() => return Err(self.cursor.expected("a value")),
            Err(_) => {
                let start = self.cursor.here().start;
                self.cursor.take_rest();
                self.cursor.slice(self.cursor.since(start)).to_owned()
            }
        };
        self.definition.settings.insert(key, value);
        Ok(())
    }
}
