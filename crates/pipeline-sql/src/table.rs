//! What does `CREATE STREAMING TABLE` declare?

use std::{collections::BTreeMap, ops::Range};

use sqlparser::tokenizer::Token;

use crate::{
    DatasetDefinition, Expectation, Feature, FlowDefinition, FlowKind, OnViolation, TableDeclaration, cdc,
    cursor::Cursor,
    error::Problem,
    expr, flow,
    parse::{Modifiers, Reader},
    query,
    suggest::nearest,
    types::read_column,
};

/// Reads what stands behind `CREATE STREAMING TABLE`.
pub(crate) fn read(reader: &mut Reader<'_>, modifiers: &Modifiers) -> Result<(), Problem> {
    reader.if_not_exists(modifiers);
    let (name, range) = reader.cursor.dataset("a table's name")?;
    let mut table =
        TableDeclaration { name, span: reader.span(range.clone()), ..TableDeclaration::default() };
    if reader.cursor.at_token(&Token::LParen) {
        read_elements(reader, &mut table)?;
    }
    read_clauses(reader, &mut table)?;
    let inline = inline_flow(reader, &table, &range);
    reader.definition.datasets.push(DatasetDefinition::StreamingTable(table));
    if let Some(flow) = inline? {
        reader.add_flow(flow);
    }
    Ok(())
}

/// The flow inside the table's statement, which has the table's name.
fn inline_flow(
    reader: &mut Reader<'_>,
    table: &TableDeclaration,
    range: &Range<usize>,
) -> Result<Option<FlowDefinition>, Problem> {
    let (once, kind) = if reader.cursor.eat_words(&["AS"]).is_some() {
        let at = reader.cursor.here().start;
        let query = query::read(&reader.cursor)?;
        reader.cursor.take_rest();
        let at = reader.cursor.since(at);
        flow::check_append(reader, &query, false, at);
        (false, FlowKind::Append { query })
    } else if reader.cursor.eat_words(&["FLOW"]).is_some() {
        cdc::expect_auto_cdc(&mut reader.cursor)?;
        let once = reader.cursor.eat_words(&["ONCE"]).is_some();
        (once, cdc::read_from(reader, once)?)
    } else {
        reader.cursor.expect_end().map_err(|problem| misspelt(reader, problem))?;
        return Ok(None);
    };
    Ok(Some(FlowDefinition {
        name: table.name.clone(),
        target: table.name.clone(),
        once,
        depends_on: Vec::new(),
        kind,
        comment: None,
        span: reader.span(range.clone()),
    }))
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

fn read_elements(reader: &mut Reader<'_>, table: &mut TableDeclaration) -> Result<(), Problem> {
    let mut inner = reader.cursor.parenthesized()?;
    let mut constraints = Vec::new();
    inner.comma_separated(|inner| {
        let here = inner.here();
        if inner.at_words(&["CONSTRAINT"]) {
            let expectation = read_expectation(inner)?;
            constraints.push((expectation, inner.since(here.start)));
        } else {
            let column = read_column(inner)?;
            if table.columns.iter().any(|other| other.name == column.name) {
                return Err(Problem::new(here, format!("column {} is declared twice", column.name)));
            }
            table.columns.push(column);
        }
        Ok(())
    })?;
    for (expectation, range) in constraints {
        if table.expectations.iter().any(|other| other.name == expectation.name) {
            // G-28
            let message = format!("constraint {} is declared twice", expectation.name);
            reader.problems.push(Problem::new(range.clone(), message));
        }
        reader.needs(Feature::Expectation, range);
        table.expectations.push(expectation);
    }
    Ok(())
}

fn read_expectation(cursor: &mut Cursor<'_>) -> Result<Expectation, Problem> {
    cursor.expect_words(&["CONSTRAINT"])?;
    let (name, _) = cursor.name("a constraint's name")?;
    cursor
        .expect_words(&["EXPECT"])
        .map_err(|problem| problem.help("write CONSTRAINT name EXPECT (condition)"))?;
    let mut inner = cursor.parenthesized()?;
    let condition = expr::read(&mut inner)?;
    inner.expect_end()?;
    let on_violation = if cursor.eat_words(&["ON", "VIOLATION"]).is_none() {
        OnViolation::Keep
    } else if cursor.eat_words(&["DROP", "ROW"]).is_some() {
        OnViolation::DropRow
    } else if cursor.eat_words(&["FAIL", "UPDATE"]).is_some() {
        OnViolation::FailUpdate
    } else {
        return Err(cursor.expected("DROP ROW or FAIL UPDATE"));
    };
    Ok(Expectation { name, condition, on_violation })
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
            table.properties = read_properties(&mut reader.cursor)?;
            "TBLPROPERTIES"
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

/// `('key' = 'value', ..)`; keys may go without quotes, and numbers and flags too.
pub(crate) fn read_properties(cursor: &mut Cursor<'_>) -> Result<BTreeMap<String, String>, Problem> {
    let mut properties = BTreeMap::new();
    let mut inner = cursor.parenthesized()?;
    inner.comma_separated(|inner| {
        let here = inner.here();
        let key = match inner.string("a property") {
            Ok(key) => key,
            Err(_) => inner.parts("a property's name")?.0.join("."),
        };
        inner.expect_token(&Token::Eq)?;
        let value = property_value(inner)?;
        if properties.insert(key.clone(), value).is_some() {
            return Err(Problem::new(here, format!("property {key} is given twice")));
        }
        Ok(())
    })?;
    Ok(properties)
}

fn property_value(cursor: &mut Cursor<'_>) -> Result<String, Problem> {
    if let Ok(text) = cursor.string("a value") {
        return Ok(text);
    }
    let start = cursor.here();
    cursor.eat_token(&Token::Minus);
    let plain = cursor.peek().is_some_and(|tok| {
        matches!(tok.token, Token::Number(..)) || tok.is_keyword("TRUE") || tok.is_keyword("FALSE")
    });
    if !plain {
        return Err(cursor.expected("a value in quotes, a number, true or false"));
    }
    cursor.skip(1);
    Ok(cursor.slice(cursor.since(start.start)).to_owned())
}
