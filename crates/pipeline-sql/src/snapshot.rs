//! What does `AUTO CDC .. FROM SNAPSHOT` say?

use std::ops::Range;

use sqlparser::tokenizer::Token;
use strandline_cdc_core::spec::{CdcOptions, StoredAs};

use crate::{
    Feature, FlowKind, FlowQuery, SnapshotCdc, SnapshotSource,
    cdc::{Clause, duplicate, read_keys, read_selection, read_stored_as},
    cursor::Cursor,
    error::Problem,
    parse::Reader,
    query,
};

/// Reads from SNAPSHOT to the end of the statement; `from` is the place of FROM.
pub(crate) fn read(reader: &mut Reader<'_>, from: Range<usize>) -> Result<FlowKind, Problem> {
    reader.cursor.expect_words(&["SNAPSHOT"])?;
    let range = reader.cursor.since(from.start);
    if let Some(refusal) = reader.refusal(Feature::FromSnapshot, range) {
        return Err(refusal);
    }
    let image = read_source(&mut reader.cursor)?;
    let version = match reader.cursor.eat_words(&["WITH", "VERSION"]) {
        Some(_) => Some(query::read(&reader.cursor.parenthesized()?)?),
        None => None,
    };
    let mut options = CdcOptions { keys: read_keys(reader)?, ..CdcOptions::default() };
    let mut seen: Vec<(Clause, Range<usize>)> = Vec::new();
    while !reader.cursor.is_done() {
        let Some((clause, range)) = Clause::eat(&mut reader.cursor) else {
            return Err(Clause::unknown(&reader.cursor));
        };
        if clause == Clause::StoredAs {
            options.stored_as = read_stored_as(&mut reader.cursor)?;
            if options.stored_as == StoredAs::Bitemporal {
                return Err(Problem::new(range, "a snapshot flow can't be stored BITEMPORAL"));
            }
        } else if clause == Clause::TrackHistory {
            options.track_history = read_selection(reader, clause)?;
        } else {
            return Err(Problem::new(range, format!("{} does not go with FROM SNAPSHOT", clause.text())));
        }
        if seen.iter().any(|(earlier, _)| *earlier == clause) {
            reader.problems.push(duplicate(range.clone(), clause.text()));
        }
        seen.push((clause, range));
    }
    let tracking = seen.into_iter().find(|(clause, _)| *clause == Clause::TrackHistory);
    if let (Some((_, range)), true) = (tracking, options.stored_as != StoredAs::Scd2) {
        reader.problems.push(
            Problem::new(range, "TRACK HISTORY needs STORED AS SCD TYPE 2")
                .help("write STORED AS SCD TYPE 2, or leave out TRACK HISTORY")
                .condition("AUTOCDC_TRACK_HISTORY_REQUIRES_SCD2"),
        );
    }
    let source = SnapshotSource::Query { image, version };
    Ok(FlowKind::Snapshot(Box::new(SnapshotCdc { source, options })))
}

/// A query in parentheses, or the older spelling: a name.
fn read_source(cursor: &mut Cursor<'_>) -> Result<FlowQuery, Problem> {
    if cursor.at_token(&Token::LParen) {
        return query::read(&cursor.parenthesized()?);
    }
    let (start, whole) = (cursor.here().start, cursor.rest());
    let advised = |problem: Problem| problem.help("write FROM SNAPSHOT (SELECT .. FROM t)");
    cursor.parts("`(` or a table's name").map_err(advised)?;
    let tokens = whole.get(..whole.len() - cursor.rest().len()).unwrap_or_default();
    query::read_table(cursor.text, cursor.file, tokens, cursor.since(start))
}
