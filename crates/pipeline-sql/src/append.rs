//! Which rows does a flow append?

use std::ops::Range;

use crate::{FlowQuery, error::Problem, parse::Reader, query};

/// `[BY NAME] query`, to the end of the statement. Columns go by name in any case.
pub(crate) fn query_by_name(reader: &mut Reader<'_>, verb: &str, once: bool) -> Result<FlowQuery, Problem> {
    refuse_replace(reader, verb)?;
    if reader.cursor.eat_words(&["BY"]).is_some() {
        reader.cursor.expect_words(&["NAME"])?;
        refuse_replace(reader, verb)?;
    } else if !["SELECT", "WITH", "VALUES"].iter().any(|word| reader.cursor.at_words(&[word])) {
        let problem = reader.cursor.expected("BY NAME");
        return Err(problem.help(format!("write {verb} INTO t BY NAME SELECT ..: columns go by their names")));
    }
    read_query(reader, once)
}

/// A query, to the end of the statement.
pub(crate) fn read_query(reader: &mut Reader<'_>, once: bool) -> Result<FlowQuery, Problem> {
    let at = reader.cursor.here().start;
    let mut query = query::read(&reader.cursor)?;
    reader.cursor.take_rest();
    let at = reader.cursor.since(at);
    if !once {
        query.stream_topics();
    }
    reader.problems.extend(problem(&query, once, at));
    Ok(query)
}

/// `REPLACE WHERE ..` and `REPLACE USING ..`.
fn refuse_replace(reader: &Reader<'_>, verb: &str) -> Result<(), Problem> {
    if !reader.cursor.at_words(&["REPLACE"]) {
        return Ok(());
    }
    let (words, help) = if reader.cursor.at_words(&["REPLACE", "USING"]) {
        ("REPLACE USING", "AUTO CDC with KEYS and SEQUENCE BY replaces rows key by key")
    } else {
        (
            "REPLACE WHERE",
            "a materialized view is computed anew as a whole; AUTO CDC replaces rows by their keys",
        )
    };
    Err(Problem::new(reader.cursor.here(), format!("not supported yet: {verb} .. {words}")).help(help))
}

/// An append flow runs over and over on what is new, or ONCE on what is there (G-16).
fn problem(query: &FlowQuery, once: bool, range: Range<usize>) -> Option<Problem> {
    match (once, query.streaming) {
        (true, true) => Some(
            Problem::new(range, "a ONCE flow reads what is there, but this query reads a stream")
                .help("leave out STREAM, or leave out ONCE")
                .condition("INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_ONCE_FLOW"),
        ),
        (false, false) => Some(
            Problem::new(
                range,
                "this query reads no stream, so it would append the same rows in every update",
            )
            .help("write STREAM before the table or read_files(..) that brings new rows, or INSERT INTO ONCE")
            .condition("INVALID_FLOW_QUERY_TYPE.BATCH_RELATION_FOR_STREAMING_TABLE"),
        ),
        _ => None,
    }
}
