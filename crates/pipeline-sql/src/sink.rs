//! What does `CREATE SINK` declare?

use std::{collections::BTreeMap, ops::Range};

use crate::{
    DatasetDefinition, Feature, SinkDefinition, cdc,
    error::Problem,
    options::read_pairs,
    parse::{Modifiers, Reader},
    suggest::nearest,
};

/// Formats of sinks, as their users write them.
const FORMATS: &[&str] = &["json", "parquet", "delta", "foreachBatch"];
const CLAUSES: &[&str] = &["USING", "OPTIONS", "COMMENT"];

/// Reads what stands behind `CREATE SINK`; `start` is the place of SINK.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    modifiers: &Modifiers,
    start: &Range<usize>,
) -> Result<(), Problem> {
    reader.if_not_exists(modifiers);
    let (name, range) = reader.cursor.dataset("a sink's name")?;
    reader.needs(Feature::Sink, start.start..range.end);
    let (mut format, mut options, mut comment) = (None, None, None);
    loop {
        let here = reader.cursor.here();
        let (clause, repeated) = if reader.cursor.eat_words(&["USING"]).is_some() {
            ("USING", format.replace(read_format(reader)?).is_some())
        } else if reader.cursor.eat_words(&["OPTIONS"]).is_some() {
            ("OPTIONS", options.replace(read_pairs(&mut reader.cursor, "option")?).is_some())
        } else if reader.cursor.eat_words(&["COMMENT"]).is_some() {
            ("COMMENT", comment.replace(reader.cursor.string("a comment in quotes")?).is_some())
        } else {
            break;
        };
        if repeated {
            reader.problems.push(cdc::duplicate(here, clause));
        }
    }
    reader.cursor.expect_end().map_err(|problem| misspelt(reader, problem))?;
    let Some(format) = format else {
        return Err(Problem::new(reader.cursor.here(), "USING is missing")
            .help(format!("say what the sink writes: USING {}", FORMATS.join(", USING "))));
    };
    let options: BTreeMap<_, _> = options.unwrap_or_default();
    let span = reader.span(range);
    let sink = SinkDefinition { name, format, options, comment, span };
    reader.definition.datasets.push(DatasetDefinition::Sink(sink));
    Ok(())
}

fn read_format(reader: &mut Reader<'_>) -> Result<String, Problem> {
    let (name, range) = reader.cursor.name("a sink's format")?;
    let format = name.to_lowercase();
    if FORMATS.iter().any(|known| known.to_lowercase() == format) {
        return Ok(format);
    }
    let problem = Problem::new(range, format!("a sink can't be written USING {name}"));
    reader.problems.push(match nearest(&name, FORMATS.iter().copied()) {
        Some(near) => problem.help(format!("did you mean {near}?")),
        None => problem.help(format!("formats of sinks are {}", FORMATS.join(", "))),
    });
    Ok(format)
}

fn misspelt(reader: &Reader<'_>, problem: Problem) -> Problem {
    let word = reader.cursor.peek().and_then(crate::lexer::Tok::keyword).unwrap_or_default();
    match nearest(&word, CLAUSES.iter().copied()) {
        Some(near) => problem.help(format!("did you mean {near}?")),
        None => problem.help(format!("a sink's clauses are {}", CLAUSES.join(", "))),
    }
}
