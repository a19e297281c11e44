//! What does a query read, and which query remains once that is set apart?
//!
//! An engine knows neither `STREAM` nor `read_files`, and a dataset of the pipeline may stand for something else in each
//! micro-batch. So each source in a FROM clause is replaced by a placeholder table, under the name by which the query
//! refers to it. `sources` finds those that need syntax of ours, `relations` the plain table references.

mod paths;
pub(crate) mod portable;
mod relations;
mod sources;
pub(crate) mod versions;

use std::{
    collections::BTreeMap,
    ops::{ControlFlow, Range},
};

use sqlparser::{ast::VisitMut, tokenizer::Token};

use crate::{
    OptionValue, ReadFiles, ReadKafka, SourceFile, Span, SqlError,
    cursor::Cursor,
    dialect::StrandlineDialect,
    error::Problem,
    expr::{foreign, whole},
    lexer::Tok,
};
use relations::Relations;
pub(crate) use versions::Versions;

/// Beginning of every placeholder's name; no name in a query may begin so.
pub(crate) const RESERVED: &str = "__strandline_";

/// A query and what it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowQuery {
    /// The query as its author wrote it.
    pub text: String,
    /// The query over placeholder tables, in standard quoting (`"name"`, `'text'`), as `DataFusion` reads it by default.
    /// Unquoted names keep the case in which they were written.
    pub sql: String,
    /// What stands behind each placeholder, in the order of the text.
    pub inputs: Vec<QueryInput>,
    /// True when one of the inputs is read as a stream.
    pub streaming: bool,
}

/// One source of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryInput {
    /// Name of the table that stands for it in [`FlowQuery::sql`], unique in its query.
    pub placeholder: String,
    /// What it is.
    pub kind: InputKind,
    /// `STREAM`: only what is new since the last micro-batch is read.
    pub streaming: bool,
    /// `WITH (option [= value], ..)` behind a streamed table, in lower case; an option without a value is true.
    pub options: BTreeMap<String, OptionValue>,
    /// Where it was written.
    pub span: Span,
}

/// What a query can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputKind {
    /// Files.
    ReadFiles(ReadFiles),
    /// Topics of Kafka.
    ReadKafka(ReadKafka),
    /// A table or view of the pipeline; the parts of a qualified name are joined by dots.
    Dataset(String),
    /// A table that is none of the pipeline's, by its place.
    Table(PathTable),
    /// `last_snapshot_version()`: the version that was committed last, one row or none.
    LastSnapshotVersion,
    /// `current_snapshot_version()`: the version that is taken now, one row.
    CurrentSnapshotVersion,
}

/// ``format.`path` ``, a table outside of the pipeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathTable {
    /// The table's format, in lower case: `delta`.
    pub format: String,
    /// Its folder.
    pub path: String,
}

impl FlowQuery {
    /// Parses one query of the pipeline's dialect.
    ///
    /// # Errors
    /// Text that is no query.
    pub fn parse(text: &str) -> Result<Self, SqlError> {
        let source = SourceFile::new("<query>", text);
        let parsed = || {
            let tokens = whole(text)?;
            read(&Cursor::new(text, 0, &tokens))
        };
        parsed().map_err(|problem| SqlError::located(&source, problem))
    }

    /// Topics are read as streams where a query needs one and says so of nothing: published examples leave out STREAM.
    pub(crate) fn stream_topics(&mut self) {
        if !self.streaming {
            for input in self.inputs.iter_mut().filter(|input| matches!(input.kind, InputKind::ReadKafka(_)))
            {
                input.streaming = true;
                self.streaming = true;
            }
        }
    }

    /// Names of the tables and views that the query reads, in the order of the text, each once.
    pub fn dataset_names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for input in &self.inputs {
            if let InputKind::Dataset(name) = &input.kind
                && !names.contains(&name.as_str())
            {
                names.push(name);
            }
        }
        names
    }
}

/// The query that the rest of `cursor` consists of.
pub(crate) fn read(cursor: &Cursor<'_>) -> Result<FlowQuery, Problem> {
    read_with(cursor, Versions::Outside)
}

/// As [`read`], in a place where `versions` says which versions of snapshots are known.
pub(crate) fn read_with(cursor: &Cursor<'_>, versions: Versions) -> Result<FlowQuery, Problem> {
    let whole = cursor.here();
    starts_as_query(cursor)?;
    let (tokens, inputs) = sources::replace(cursor, versions)?;
    let dialect = StrandlineDialect::for_tokens(tokens.len());
    let mut parser = dialect.parser(tokens);
    let mut query = parser.parse_query().map_err(|error| foreign(cursor, &error))?;
    let next = parser.peek_token();
    if next.token != Token::EOF {
        let unexpected = parser.expected::<()>("the end of the query", next).err();
        return Err(unexpected.map_or_else(|| cursor.expected("a query"), |error| foreign(cursor, &error)));
    }
    let mut relations = Relations::new(cursor, inputs);
    if let ControlFlow::Break(problem) = query.visit(&mut relations) {
        return Err(problem);
    }
    let mut inputs = relations.inputs;
    inputs.sort_by_key(|input| input.span.start);
    let end = cursor.rest().last().map_or(whole.end, |tok| tok.range.end);
    let streaming = inputs.iter().any(|input| input.streaming);
    Ok(FlowQuery {
        text: cursor.slice(whole.start..end).to_owned(),
        sql: query.to_string(),
        inputs,
        streaming,
    })
}

/// `SELECT * FROM` a table expression that `tokens` spell, for a source that is no query.
pub(crate) fn read_table(
    text: &str,
    file: usize,
    tokens: &[Tok],
    range: Range<usize>,
) -> Result<FlowQuery, Problem> {
    let mut with_select = select_star(range.start);
    with_select.extend(tokens.iter().cloned());
    let query = read(&Cursor::new(text, file, &with_select))?;
    Ok(FlowQuery { text: format!("SELECT * FROM {}", text.get(range).unwrap_or_default()), ..query })
}

fn select_star(at: usize) -> Vec<Tok> {
    [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM")]
        .into_iter()
        .map(|token| Tok::synthetic(token, at))
        .collect()
}

/// sqlparser takes INSERT, UPDATE and the like for queries too.
fn starts_as_query(cursor: &Cursor<'_>) -> Result<(), Problem> {
    let first = cursor.rest().iter().find(|tok| tok.token != Token::LParen);
    match first.and_then(Tok::keyword).as_deref() {
        Some("SELECT" | "WITH" | "VALUES") => Ok(()),
        _ => Err(cursor.expected("a query")),
    }
}

pub(crate) fn placeholder(number: usize) -> String {
    format!("{RESERVED}input_{number}")
}
