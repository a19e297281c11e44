//! What do the clauses of AUTO CDC say?
//!
//! Clauses behind KEYS come in any order, each at most once (G-02). Every clause of the language has its place in
//! [`AutoCdc`], whether or not this release executes it.

mod clause;
mod lists;
mod rules;

use std::{collections::BTreeMap, ops::Range};

use sqlparser::tokenizer::Token;
use strandline_cdc_core::spec::{CdcOptions, ColumnSelection, StoredAs};

use crate::{
    AutoCdc, Feature, FlowKind, FlowQuery, SqlExpr, cursor::Cursor, error::Problem, expr, parse::Reader,
    query, snapshot,
};
pub(crate) use clause::Clause;
pub(crate) use lists::{read_keys, read_selection};

pub(crate) fn expect_auto_cdc(cursor: &mut Cursor<'_>) -> Result<(), Problem> {
    if cursor.eat_words(&["AUTO", "CDC"]).is_some() || cursor.eat_words(&["APPLY", "CHANGES"]).is_some() {
        Ok(())
    } else {
        Err(cursor.expected("AUTO CDC"))
    }
}

pub(crate) fn duplicate(range: Range<usize>, clause: &str) -> Problem {
    Problem::new(range, format!("duplicate clause {clause}")).condition("DUPLICATE_CLAUSES")
}

/// Reads `FROM source KEYS (..) ..`, to the end of the statement.
pub(crate) fn read_from(reader: &mut Reader<'_>, once: bool) -> Result<FlowKind, Problem> {
    let from = reader.cursor.here();
    if reader.cursor.eat_words(&["FROM"]).is_none() {
        return Err(reader.cursor.expected("FROM").condition("AUTOCDC_MISSING_SOURCE"));
    }
    // A table may be called snapshot: then KEYS follows.
    if reader.cursor.at_words(&["SNAPSHOT"]) && !reader.cursor.at_words(&["SNAPSHOT", "KEYS"]) {
        return snapshot::read(reader, from);
    }
    let start = reader.cursor.here().start;
    let mut source = read_source(&mut reader.cursor)?;
    if !once {
        source.stream_topics();
    }
    let source_at = reader.cursor.since(start);
    if !source.streaming && !once {
        let text = reader.cursor.slice(source_at.clone()).to_owned();
        let help = if text.starts_with('(') {
            "read a stream in this query, as in (SELECT .. FROM STREAM t)".to_owned()
        } else {
            format!("write STREAM({text})")
        };
        reader.problems.push(
            Problem::new(source_at, "the source of AUTO CDC must be read as a stream")
                .help(help)
                .condition("INVALID_FLOW_QUERY_TYPE.BATCH_RELATION_FOR_STREAMING_TABLE"),
        );
    }
    let keys = read_keys(reader)?;
    let mut clauses =
        Clauses { once, options: CdcOptions { keys, ..CdcOptions::default() }, ..Clauses::default() };
    while !reader.cursor.is_done() {
        clauses.read_next(reader)?;
    }
    clauses.finish(reader, source)
}

/// The source of changes: a stream of a table, view or files, or a query in parentheses.
fn read_source(cursor: &mut Cursor<'_>) -> Result<FlowQuery, Problem> {
    let opens_query = cursor.at_token(&Token::LParen)
        && cursor
            .rest()
            .iter()
            .find(|tok| tok.token != Token::LParen)
            .is_some_and(|tok| ["SELECT", "WITH", "VALUES"].iter().any(|word| tok.is_keyword(word)));
    if opens_query {
        let inner = cursor.parenthesized()?;
        let source = query::read(&inner)?;
        read_alias(cursor)?;
        return Ok(source);
    }
    let missing = cursor.is_done() || (cursor.at_words(&["KEYS"]) && opens_parenthesis(cursor, 1));
    if missing {
        return Err(cursor.expected("the source of changes").condition("AUTOCDC_MISSING_SOURCE"));
    }
    let (start, whole) = (cursor.here().start, cursor.rest());
    if cursor.at_words(&["STREAM"]) && !(cursor.at_words(&["STREAM", "KEYS"]) && opens_parenthesis(cursor, 2))
    {
        cursor.skip(1);
    }
    if !cursor.at_token(&Token::LParen) {
        cursor.parts("a table, a view or read_files(..)")?;
    }
    if cursor.at_token(&Token::LParen) {
        cursor.parenthesized()?;
    }
    if cursor.at_words(&["WITH"]) && opens_parenthesis(cursor, 1) {
        cursor.skip(1);
        cursor.parenthesized()?;
    }
    read_alias(cursor)?;
    let tokens = whole.get(..whole.len() - cursor.rest().len()).unwrap_or_default();
    query::read_table(cursor.text, cursor.file, tokens, cursor.since(start))
}

fn opens_parenthesis(cursor: &Cursor<'_>, n: usize) -> bool {
    cursor.peek_nth(n).is_some_and(|tok| tok.token == Token::LParen)
}

/// `AS name`, or a name before KEYS. Another name here is KEYS misspelt, rather.
fn read_alias(cursor: &mut Cursor<'_>) -> Result<(), Problem> {
    let named = cursor.eat_words(&["AS"]).is_some()
        || (!cursor.at_words(&["KEYS"]) && cursor.peek_nth(1).is_some_and(|tok| tok.is_keyword("KEYS")));
    if named {
        cursor.name("a name for the source")?;
    }
    Ok(())
}

/// The clauses read so far.
#[derive(Default)]
struct Clauses {
    once: bool,
    seen: BTreeMap<Clause, Range<usize>>,
    options: CdcOptions,
    sequence_by: Option<SqlExpr>,
    system_sequence_by: Option<SqlExpr>,
    apply_as_delete: Option<SqlExpr>,
    apply_as_truncate: Option<SqlExpr>,
    apply_as_retract: Option<SqlExpr>,
    valid_to: Option<SqlExpr>,
}

impl Clauses {
    fn read_next(&mut self, reader: &mut Reader<'_>) -> Result<(), Problem> {
        let start = reader.cursor.here().start;
        let Some((clause, range)) = Clause::eat(&mut reader.cursor) else {
            return Err(Clause::unknown(&reader.cursor));
        };
        let repeated = self.seen.insert(clause, range.clone()).is_some();
        match clause {
            Clause::SequenceBy => self.sequence_by = Some(expr::read(&mut reader.cursor)?),
            Clause::SystemSequenceBy => self.system_sequence_by = Some(expr::read(&mut reader.cursor)?),
            Clause::ApplyAsDelete => self.apply_as_delete = Some(expr::read(&mut reader.cursor)?),
            Clause::ApplyAsTruncate => self.apply_as_truncate = Some(expr::read(&mut reader.cursor)?),
            Clause::ApplyAsRetract => self.apply_as_retract = Some(expr::read(&mut reader.cursor)?),
            Clause::ValidTo => self.valid_to = Some(expr::read(&mut reader.cursor)?),
            Clause::ColumnsToUpdate => {
                self.options.columns_to_update = Some(reader.cursor.name("a column's name")?.0);
            }
            Clause::StoredAs => self.read_stored_as(reader, &range)?,
            Clause::Columns => {
                let earlier = self.options.columns.clone();
                self.options.columns = read_selection(reader, clause)?;
                if repeated && differ(&earlier, &self.options.columns) {
                    reader.problems.push(both_lists(clause, reader.cursor.since(start)));
                    return Ok(());
                }
            }
            Clause::TrackHistory => {
                let earlier = self.options.track_history.clone();
                self.options.track_history = read_selection(reader, clause)?;
                if repeated && differ(&earlier, &self.options.track_history) {
                    reader.problems.push(both_lists(clause, reader.cursor.since(start)));
                    return Ok(());
                }
            }
            Clause::IgnoreNullUpdates => {
                let earlier = self.options.ignore_null_updates.take();
                let selection = lists::read_ignore_null(reader, clause)?;
                let conflict = earlier.is_some_and(|earlier| earlier != selection);
                self.options.ignore_null_updates = Some(selection);
                if conflict {
                    let message = "IGNORE NULL UPDATES is given in two spellings that exclude each other";
                    let problem = Problem::new(reader.cursor.since(start), message)
                        .condition("AUTOCDC_CONFLICTING_IGNORE_NULL_UPDATES_OPTIONS");
                    reader.problems.push(problem);
                    return Ok(());
                }
            }
        }
        if repeated {
            reader.problems.push(duplicate(range, clause.text()));
        } else if let Some(feature) = clause.feature() {
            reader.needs(feature, reader.cursor.since(start));
        }
        Ok(())
    }

    fn read_stored_as(&mut self, reader: &mut Reader<'_>, range: &Range<usize>) -> Result<(), Problem> {
        self.options.stored_as = read_stored_as(&mut reader.cursor)?;
        if self.options.stored_as == StoredAs::Bitemporal {
            reader.needs(Feature::StoredAsBitemporal, reader.cursor.since(range.start));
        }
        Ok(())
    }

    fn finish(self, reader: &mut Reader<'_>, source: FlowQuery) -> Result<FlowKind, Problem> {
        rules::check(&self, reader);
        let Some(sequence_by) = self.sequence_by else {
            return Err(Problem::new(reader.cursor.here(), "SEQUENCE BY is missing")
                .help("add SEQUENCE BY column: it orders the changes of a key")
                .condition("AUTOCDC_MISSING_SEQUENCE_BY"));
        };
        Ok(FlowKind::AutoCdc(Box::new(AutoCdc {
            source,
            options: self.options,
            sequence_by,
            apply_as_delete: self.apply_as_delete,
            apply_as_truncate: self.apply_as_truncate,
            apply_as_retract: self.apply_as_retract,
            system_sequence_by: self.system_sequence_by,
            valid_to: self.valid_to,
        })))
    }
}

/// A shape.
pub(crate) fn read_stored_as(cursor: &mut Cursor<'_>) -> Result<StoredAs, Problem> {
    if cursor.eat_words(&["BITEMPORAL"]).is_some() {
        return Ok(StoredAs::Bitemporal);
    }
    cursor.expect_words(&["SCD", "TYPE"]).map_err(|problem| problem.help(SHAPES))?;
    let here = cursor.here();
    let shape = match cursor.peek().map(|tok| &tok.token) {
        Some(Token::Number(number, _)) if number == "1" => StoredAs::Scd1,
        Some(Token::Number(number, _)) if number == "2" => StoredAs::Scd2,
        _ if cursor.at_words(&["BITEMPORAL"]) => {
            return Err(Problem::new(here, "BITEMPORAL is no SCD TYPE").help("write STORED AS BITEMPORAL"));
        }
        Some(Token::Number(number, _)) => {
            return Err(Problem::new(here, format!("there is no SCD TYPE {number} here")).help(SHAPES));
        }
        _ => return Err(cursor.expected("1 or 2")),
    };
    cursor.skip(1);
    Ok(shape)
}

const SHAPES: &str = "write STORED AS SCD TYPE 1, STORED AS SCD TYPE 2 or STORED AS BITEMPORAL";

fn differ(earlier: &ColumnSelection, later: &ColumnSelection) -> bool {
    std::mem::discriminant(earlier) != std::mem::discriminant(later)
}

fn both_lists(clause: Clause, range: Range<usize>) -> Problem {
    let condition = if clause == Clause::Columns {
        "AUTOCDC_BOTH_COLUMN_LIST_AND_EXCEPT_COLUMN_LIST"
    } else {
        "AUTOCDC_BOTH_TRACK_HISTORY_COLUMN_LIST_AND_EXCEPT_COLUMN_LIST"
    };
    Problem::new(range, format!("{} takes a list or * EXCEPT a list, not both", clause.text()))
        .condition(condition)
}
