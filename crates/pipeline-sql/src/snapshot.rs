//! What does `AUTO CDC .. FROM SNAPSHOT` say?

use std::ops::Range;

use sqlparser::tokenizer::Token;
use strandline_cdc_core::spec::{CdcOptions, StoredAs};

use crate::{
    Feature, FlowKind, FlowQuery, SnapshotCdc, SnapshotSource,
    cdc::{Clause, duplicate, read_keys, read_selection, read_stored_as},
    cursor::Cursor,
    error::Problem,
    lexer::Tok,
    parse::Reader,
    query::{self, Versions},
};

/// Reads from SNAPSHOT to the end of the statement; `from` is the place of FROM.
pub(crate) fn read(reader: &mut Reader<'_>, from: Range<usize>) -> Result<FlowKind, Problem> {
    reader.cursor.expect_words(&["SNAPSHOT"])?;
    let range = reader.cursor.since(from.start);
    if let Some(refusal) = reader.refusal(Feature::FromSnapshot, range) {
        return Err(refusal);
    }
    let source = read_source(reader)?;
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
    Ok(FlowKind::Snapshot(Box::new(SnapshotCdc { source, options })))
}

/// A query in parentheses with or without a version, the older spelling of a name, or CALLBACK.
fn read_source(reader: &mut Reader<'_>) -> Result<SnapshotSource, Problem> {
    // A table may have that name: then it is quoted, or a part of a longer one.
    let dotted = reader.cursor.peek_nth(1).is_some_and(|tok| tok.token == Token::Period);
    if !dotted && reader.cursor.eat_words(&["CALLBACK"]).is_some() {
        if reader.cursor.at_words(&["WITH", "VERSION"]) {
            return Err(Problem::new(
                reader.cursor.here(),
                "a callback gives the version of each image itself",
            )
            .help("leave out WITH VERSION"));
        }
        return Ok(SnapshotSource::Callback);
    }
    let start = reader.cursor.here().start;
    let (image, at) = image_tokens(&mut reader.cursor)?;
    let version = match reader.cursor.eat_words(&["WITH", "VERSION"]) {
        Some(_) => Some(read_version(reader)?),
        None => None,
    };
    let versions = if version.is_some() { Versions::Current } else { Versions::Unversioned };
    let image = match image {
        Image::Query(query) => query::read_with(&query, versions)?,
        Image::Name(tokens) => {
            query::read_table(reader.cursor.text, reader.cursor.file, tokens, start..at.end)?
        }
    };
    if image.streaming {
        reader.problems.push(
            Problem::new(at, "a snapshot is all that is there, but this query reads a stream")
                .help("leave out STREAM")
                .condition("INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_SNAPSHOT_FLOW"),
        );
    }
    Ok(SnapshotSource::Query { image, version })
}

/// Where an image comes from, not read yet: what it may call depends on what follows it.
enum Image<'a> {
    Query(Cursor<'a>),
    Name(&'a [Tok]),
}

fn image_tokens<'a>(cursor: &mut Cursor<'a>) -> Result<(Image<'a>, Range<usize>), Problem> {
    let (start, whole) = (cursor.here().start, cursor.rest());
    if cursor.at_token(&Token::LParen) {
        let inner = cursor.parenthesized()?;
        return Ok((Image::Query(inner), cursor.since(start)));
    }
    let advised = |problem: Problem| problem.help("write FROM SNAPSHOT (SELECT .. FROM t)");
    cursor.parts("`(` or a table's name").map_err(advised)?;
    let tokens = whole.get(..whole.len() - cursor.rest().len()).unwrap_or_default();
    Ok((Image::Name(tokens), cursor.since(start)))
}

fn read_version(reader: &mut Reader<'_>) -> Result<FlowQuery, Problem> {
    let start = reader.cursor.here().start;
    let inner = reader.cursor.parenthesized().map_err(|problem| {
        problem.help("write WITH VERSION (SELECT ..): the version of the next snapshot")
    })?;
    let version = query::read_with(&inner, Versions::Last)?;
    if version.streaming {
        reader.problems.push(
            Problem::new(reader.cursor.since(start), "the version of a snapshot can't come from a stream")
                .help("leave out STREAM")
                .condition("INVALID_AUTO_CDC_FROM_SNAPSHOT_VERSION_QUERY"),
        );
    }
    Ok(version)
}
