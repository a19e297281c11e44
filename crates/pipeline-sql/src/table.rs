//! What do `CREATE STREAMING TABLE` and `CREATE MATERIALIZED VIEW` declare?

use std::ops::Range;

use sqlparser::tokenizer::Token;

use crate::{
    DatasetDefinition, Feature, FlowDefinition, FlowKind, TableDeclaration, append, cdc,
    cursor::Cursor,
    error::Problem,
    expectation,
    options::read_pairs,
    parse::{Modifiers, Reader},
    query,
    suggest::nearest,
    types::read_column,
};

/// Reads what stands behind `CREATE STREAMING TABLE`.
pub(crate) fn read(reader: &mut Reader<'_>, modifiers: &Modifiers) -> Result<(), Problem> {
    let (table, range) = declaration(reader, modifiers)?;
    let inline = inline_flow(reader, &table, &range);
    reader.definition.datasets.push(DatasetDefinition::StreamingTable(table));
    if let Some(flow) = inline? {
        reader.add_flow(flow);
    }
    Ok(())
}

/// Reads what stands behind `CREATE MATERIALIZED VIEW`, whose words begin at `start`.
pub(crate) fn read_materialized(
    reader: &mut Reader<'_>,
    modifiers: &Modifiers,
    start: &Range<usize>,
) -> Result<(), Problem> {
    let (table, range) = declaration(reader, modifiers)?;
    reader.needs(Feature::MaterializedView, start.start..range.end);
    if reader.cursor.eat_words(&["AS"]).is_none() {
        let problem = reader.cursor.expected("AS and a query");
        return Err(if reader.cursor.is_done() {
            problem.help("a materialized view is the result of a query")
        } else {
            misspelt(reader, problem)
        });
    }
    let at = reader.cursor.here().start;
    let query = query::read(&reader.cursor)?;
    reader.cursor.take_rest();
    if query.streaming {
        let message = "a materialized view is computed from all rows, but this query reads a stream";
        reader.problems.push(
            Problem::new(reader.cursor.since(at), message)
                .help("leave out STREAM, or write CREATE STREAMING TABLE")
                .condition("INVALID_FLOW_QUERY_TYPE.STREAMING_RELATION_FOR_MATERIALIZED_VIEW"),
        );
    }
    let flow = own_flow(reader, &table, &range, (false, FlowKind::Complete { query }));
    reader.definition.datasets.push(DatasetDefinition::MaterializedView(table));
    reader.add_flow(flow);
    Ok(())
}

/// Name, columns and clauses, up to the query.
fn declaration(
    reader: &mut Reader<'_>,
    modifiers: &Modifiers,
) -> Result<(TableDeclaration, Range<usize>), Problem> {
    reader.if_not_exists(modifiers);
    let (name, range) = reader.cursor.dataset("a table's name")?;
    let mut table =
        TableDeclaration { name, span: reader.span(range.clone()), ..TableDeclaration::default() };
    if reader.cursor.at_token(&Token::LParen) {
        read_elements(reader, &mut table)?;
    }
    read_clauses(reader, &mut table)?;
    Ok((table, range))
}

/// The flow inside the table's statement, which has the table's name.
fn inline_flow(
    reader: &mut Reader<'_>,
    table: &TableDeclaration,
    range: &Range<usize>,
) -> Result<Option<FlowDefinition>, Problem> {
    let body = if reader.cursor.eat_words(&["AS"]).is_some() {
        (false, FlowKind::Append { query: append::read_query(reader, false)? })
    } else if reader.cursor.at_words(&["FLOW", "INSERT"]) || reader.cursor.at_words(&["FLOW", "REPLACE"]) {
        reader.cursor.skip(1);
        reader.cursor.eat_words(&["INSERT"]);
        let once = reader.cursor.eat_words(&["ONCE"]).is_some();
        (once, FlowKind::Append { query: append::query_by_name(reader, "FLOW", once)? })
    } else if reader.cursor.eat_words(&["FLOW"]).is_some() {
        cdc::expect_auto_cdc(&mut reader.cursor)?;
        let once = reader.cursor.eat_words(&["ONCE"]).is_some();
        (once, cdc::read_from(reader, once)?)
    } else {
        reader.cursor.expect_end().map_err(|problem| misspelt(reader, problem))?;
        return Ok(None);
    };
    Ok(Some(own_flow(reader, table, range, body)))
}

fn own_flow(
    reader: &Reader<'_>,
    table: &TableDeclaration,
    range: &Range<usize>,
    (once, kind): (bool, FlowKind),
) -> FlowDefinition {
    FlowDefinition {
        name: table.name.clone(),
        target: table.name.clone(),
        once,
        depends_on: Vec::new(),
        kind,
        comment: None,
        span: reader.span(range.clone()),
    }
}

const CLAUSES: &[&str] = &["USING", "PARTITIONED BY", "CLUSTER BY", "COMMENT", "TBLPROPERTIES", "AS", "FLOW"];

fn misspelt(reader: &Reader<'_>, problem: Problem) -> Problem {
    let word = reader.cursor.peek().and_then(crate::lexer::Tok::keyword).unwrap_or_default();
    let first_words = CLAUSES.iter().filter_map(|clause| clause.split(' ').next());
    match nearest(&word, first_words) {
        Some(near) => problem.help(format!("did you mean {near}?")),
        None => problem.help(format!("a table's clauses are {}", CLAUSES.join(", "))),
    }
}

/// Clauses of other systems that are not taken, and what to do instead.
const REFUSED: &[(&[&str], &str)] = &[
    (&["LOCATION"], "tables lie in the storage folder, under their names"),
    (&["WITH", "ROW", "FILTER"], "filter the rows in the query"),
    (&["SCHEDULE"], "updates are started from outside"),
    (&["TRIGGER", "ON", "UPDATE"], "updates are started from outside"),
    (&["DEFAULT", "COLLATION"], "text is compared byte by byte"),
];

/// Columns and constraints; the comma before a constraint may be left out.
fn read_elements(reader: &mut Reader<'_>, table: &mut TableDeclaration) -> Result<(), Problem> {
    let mut inner = reader.cursor.parenthesized()?;
    while !inner.is_done() {
        let here = inner.here();
        if inner.at_words(&["CONSTRAINT"]) || keys(&inner) {
            read_constraint(reader, &mut inner, table)?;
        } else {
            let column = read_column(&mut inner)?;
            if table.columns.iter().any(|other| other.name == column.name) {
                return Err(Problem::new(here, format!("column {} is declared twice", column.name)));
            }
            table.columns.push(column);
        }
        if inner.eat_token(&Token::Comma).is_some() {
            if inner.is_done() {
                return Err(inner.expected("a column or a constraint"));
            }
        } else if !inner.is_done() && !inner.at_words(&["CONSTRAINT"]) {
            return Err(unknown_column_clause(&inner));
        }
    }
    Ok(())
}

fn keys(cursor: &Cursor<'_>) -> bool {
    cursor.at_words(&["PRIMARY", "KEY"]) || cursor.at_words(&["FOREIGN", "KEY"])
}

fn read_constraint(
    reader: &mut Reader<'_>,
    inner: &mut Cursor<'_>,
    table: &mut TableDeclaration,
) -> Result<(), Problem> {
    let here = inner.here();
    let mut behind_name = *inner;
    if behind_name.eat_words(&["CONSTRAINT"]).is_some() {
        behind_name.name("a constraint's name")?;
    }
    if keys(&behind_name) {
        return Err(Problem::new(behind_name.here(), "not supported yet: PRIMARY KEY and FOREIGN KEY")
            .help("leave it out: it would not be enforced; AUTO CDC has its own KEYS"));
    }
    let (expectation, problems) = expectation::read(inner)?;
    reader.problems.extend(problems);
    let range = inner.since(here.start);
    if table.expectations.iter().any(|other| other.name == expectation.name) {
        // G-28
        let message = format!("constraint {} is declared twice", expectation.name);
        reader.problems.push(Problem::new(range.clone(), message).help("give each constraint its own name"));
    }
    reader.needs(Feature::Expectation, range);
    table.expectations.push(expectation);
    Ok(())
}

/// What else may follow a column's type in other systems.
fn unknown_column_clause(cursor: &Cursor<'_>) -> Problem {
    for (words, what, help) in [
        (&["GENERATED"][..], "GENERATED columns", "compute the column in the query"),
        (&["DEFAULT"], "DEFAULT values", "give the value in the query: coalesce(column, value)"),
        (&["MASK"], "MASK", "mask the column in the query"),
        (&["PRIMARY", "KEY"], "PRIMARY KEY", "leave it out: it would not be enforced"),
    ] {
        if cursor.at_words(words) {
            return Problem::new(cursor.here(), format!("not supported yet: {what}")).help(help);
        }
    }
    cursor.expected("`,` or `)`")
}

/// Clauses between the columns and the flow, in any order, each at most once.
fn read_clauses(reader: &mut Reader<'_>, table: &mut TableDeclaration) -> Result<(), Problem> {
    let mut seen = Vec::new();
    loop {
        let start = reader.cursor.here();
        let clause = if reader.cursor.eat_words(&["USING"]).is_some() {
            table.format = Some(reader.cursor.name("a format")?.0);
            "USING"
        } else if reader.cursor.eat_words(&["PARTITIONED", "BY"]).is_some() {
            table.partitioned_by = column_list(&mut reader.cursor)?;
            reader.needs(Feature::PartitionedBy, reader.cursor.since(start.start));
            "PARTITIONED BY"
        } else if reader.cursor.eat_words(&["CLUSTER", "BY"]).is_some() {
            if reader.cursor.at_words(&["AUTO"]) {
                return Err(Problem::new(reader.cursor.here(), "not supported yet: CLUSTER BY AUTO"));
            }
            table.cluster_by = column_list(&mut reader.cursor)?;
            reader.needs(Feature::ClusterBy, reader.cursor.since(start.start));
            "CLUSTER BY"
        } else if reader.cursor.eat_words(&["COMMENT"]).is_some() {
            table.comment = Some(reader.cursor.string("a comment in quotes")?);
            "COMMENT"
        } else if reader.cursor.eat_words(&["TBLPROPERTIES"]).is_some() {
            table.properties = read_pairs(&mut reader.cursor, "property")?;
            "TBLPROPERTIES"
        } else if let Some((words, help)) = REFUSED.iter().find(|(words, _)| reader.cursor.at_words(words)) {
            return Err(Problem::new(start, format!("not supported yet: {}", words.join(" "))).help(*help));
        } else {
            return Ok(());
        };
        if seen.contains(&clause) {
            reader.problems.push(cdc::duplicate(start, clause));
        }
        seen.push(clause);
    }
}

fn column_list(cursor: &mut Cursor<'_>) -> Result<Vec<String>, Problem> {
    let mut inner = cursor.parenthesized()?;
    let columns = inner.comma_separated(|inner| Ok(inner.name("a column's name")?.0))?;
    if columns.is_empty() { Err(inner.expected("a column's name")) } else { Ok(columns) }
}
