//! What does `AUTO CDC .. FROM SNAPSHOT` say?

use std::ops::Range;

use sqlparser::tokenizer::Token;
use strandline_cdc_core::spec::{CdcOptions, ColumnSelection, StoredAs};

use crate::{
    Feature, FlowKind, SnapshotCdc,
    cdc::{Clause, duplicate, read_keys, read_selection, read_stored_as},
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
    if !reader.cursor.at_token(&Token::LParen) {
        return Err(reader.cursor.expected("`(`").help("write FROM SNAPSHOT (SELECT .. FROM t)"));
    }
    let source = query::read(&reader.cursor.parenthesized()?)?;
    let version = match reader.cursor.eat_words(&["WITH", "VERSION"]) {
        Some(_) => Some(query::read(&reader.cursor.parenthesized()?)?),
        None => None,
    };
    let mut options = CdcOptions { keys: read_keys(reader)?, ..CdcOptions::default() };
    let mut seen = Vec::new();
    while !reader.cursor.is_done() {
        let Some((clause, range)) = Clause::eat(&mut reader.cursor) else {
            return Err(Clause::unknown(&reader.cursor));
        };
        if clause == Clause::StoredAs {
            options.stored_as = read_stored_as(&mut reader.cursor)?
                .ok_or_else(|| Problem::new(range.clone(), "a snapshot flow can't be stored BITEMPORAL"))?;
        } else if clause == Clause::TrackHistory {
            options.track_history = read_selection(reader, clause)?;
        } else {
            return Err(Problem::new(range, format!("{} does not go with FROM SNAPSHOT", clause.text())));
        }
        if seen.contains(&clause) {
            reader.problems.push(duplicate(range.clone(), clause.text()));
        }
        seen.push(clause);
    }
    if options.stored_as != StoredAs::Scd2 && options.track_history != ColumnSelection::All {
        reader.problems.push(
            Problem::new(from, "TRACK HISTORY needs STORED AS SCD TYPE 2")
                .condition("AUTOCDC_TRACK_HISTORY_REQUIRES_SCD2"),
        );
    }
    Ok(FlowKind::Snapshot(Box::new(SnapshotCdc { source, version, options })))
}
