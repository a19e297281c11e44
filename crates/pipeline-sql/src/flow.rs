//! What does `CREATE FLOW` declare?

use sqlparser::tokenizer::Token;

use crate::{
    FlowDefinition, FlowKind, append, cdc,
    error::Problem,
    parse::{Modifiers, Reader},
};

/// Reads what stands behind `CREATE FLOW`.
pub(crate) fn read(reader: &mut Reader<'_>, modifiers: &Modifiers) -> Result<(), Problem> {
    reader.if_not_exists(modifiers);
    if reader.cursor.at_words(&["AS", "AUTO", "CDC"]) {
        reader.cursor.skip(1);
        return read_unnamed(reader);
    }
    let (parts, range) = reader.cursor.parts("a flow's name")?;
    if parts.len() > 1 {
        reader.problems.push(
            Problem::new(range.clone(), format!("a flow's name has one part, {} has more", parts.join(".")))
                .help("leave out catalog and schema")
                .condition("MULTIPART_FLOW_NAME_NOT_SUPPORTED"),
        );
    }
    let (mut comment, mut depends_on) = (None, None);
    loop {
        let start = reader.cursor.here();
        let (clause, repeated) = if reader.cursor.eat_words(&["COMMENT"]).is_some() {
            ("COMMENT", comment.replace(reader.cursor.string("a comment in quotes")?).is_some())
        } else if reader.cursor.eat_words(&["DEPENDS", "ON"]).is_some() {
            ("DEPENDS ON", depends_on.replace(read_predecessors(reader)?).is_some())
        } else {
            break;
        };
        if repeated {
            reader.problems.push(cdc::duplicate(start, clause));
        }
    }
    reader.cursor.expect_words(&["AS"]).map_err(|problem| problem.help("write CREATE FLOW name AS .."))?;
    let (target, once, kind) = body(reader)?;
    reader.add_flow(FlowDefinition {
        name: parts.join("."),
        target,
        once,
        depends_on: depends_on.unwrap_or_default(),
        kind,
        comment,
        span: reader.span(range),
    });
    Ok(())
}

/// `AUTO CDC INTO ..` or the older `APPLY CHANGES INTO ..` without a flow around it: named after its target.
pub(crate) fn read_unnamed(reader: &mut Reader<'_>) -> Result<(), Problem> {
    let start = reader.cursor.here();
    let (target, once, kind) = change_flow(reader)?;
    reader.add_flow(FlowDefinition {
        name: target.clone(),
        target,
        once,
        depends_on: Vec::new(),
        kind,
        comment: None,
        span: reader.span(start),
    });
    Ok(())
}

/// `name`, or `(name, ..)`; a name that is given twice counts once (G-19).
fn read_predecessors(reader: &mut Reader<'_>) -> Result<Vec<String>, Problem> {
    if !reader.cursor.at_token(&Token::LParen) {
        let (name, _) = reader.cursor.dataset("a flow's name, or several in parentheses")?;
        if reader.cursor.at_token(&Token::Comma) {
            return Err(Problem::new(reader.cursor.here(), "several flows stand in parentheses")
                .help(format!("write DEPENDS ON ({name}, ..)")));
        }
        return Ok(vec![name]);
    }
    let mut inner = reader.cursor.parenthesized()?;
    let mut names: Vec<String> = Vec::new();
    inner.comma_separated(|inner| {
        let (name, _) = inner.dataset("a flow's name")?;
        if !names.contains(&name) {
            names.push(name);
        }
        Ok(())
    })?;
    if names.is_empty() { Err(inner.expected("a flow's name")) } else { Ok(names) }
}

fn body(reader: &mut Reader<'_>) -> Result<(String, bool, FlowKind), Problem> {
    if reader.cursor.at_words(&["AUTO"]) || reader.cursor.at_words(&["APPLY", "CHANGES"]) {
        return change_flow(reader);
    }
    if reader.cursor.eat_words(&["UPDATE"]).is_some() {
        return update_flow(reader);
    }
    if reader.cursor.eat_words(&["INSERT"]).is_none() {
        let problem = reader.cursor.expected("AUTO CDC, INSERT INTO or UPDATE INTO");
        return Err(reader.did_you_mean(problem, &["AUTO CDC", "INSERT", "UPDATE"]));
    }
    let before = reader.cursor.eat_words(&["ONCE"]).is_some();
    reader.cursor.expect_words(&["INTO"])?;
    // A table may be called once.
    let named_once = reader.cursor.at_words(&["ONCE", "BY", "NAME"]);
    let behind = if named_once { None } else { reader.cursor.eat_words(&["ONCE"]) };
    if let (true, Some(range)) = (before, &behind) {
        reader.problems.push(cdc::duplicate(range.clone(), "ONCE"));
    }
    let (target, _) = reader.cursor.dataset("the table to insert into")?;
    let once = before || behind.is_some();
    let query = append::query_by_name(reader, "INSERT", once)?;
    Ok((target, once, FlowKind::Append { query }))
}

/// `UPDATE INTO sink BY NAME query`, behind UPDATE.
fn update_flow(reader: &mut Reader<'_>) -> Result<(String, bool, FlowKind), Problem> {
    reader.cursor.expect_words(&["INTO"]).map_err(|problem| {
        problem.help("write UPDATE INTO sink BY NAME SELECT ..: the rows that changed go into the sink")
    })?;
    if let Some(range) = reader.cursor.eat_words(&["ONCE"]) {
        return Err(Problem::new(range, "an update flow goes on and on, so it can't be ONCE")
            .help("write INSERT INTO ONCE"));
    }
    let (target, _) = reader.cursor.dataset("the sink to update")?;
    let query = append::query_by_name(reader, "UPDATE", false)?;
    Ok((target, false, FlowKind::Update { query }))
}

fn change_flow(reader: &mut Reader<'_>) -> Result<(String, bool, FlowKind), Problem> {
    cdc::expect_auto_cdc(&mut reader.cursor)?;
    let before = reader.cursor.eat_words(&["ONCE"]).is_some();
    reader.cursor.expect_words(&["INTO"])?;
    let behind = reader.cursor.eat_words(&["ONCE"]).is_some();
    let (target, _) = reader.cursor.dataset("the target table")?;
    let once = before || behind;
    let kind = cdc::read_from(reader, once)?;
    Ok((target, once, kind))
}
