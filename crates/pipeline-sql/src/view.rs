//! What does `CREATE VIEW` declare?

use sqlparser::tokenizer::Token;

use crate::{
    DatasetDefinition, ViewDefinition,
    error::Problem,
    options::read_pairs,
    parse::{Modifiers, Reader},
    query,
};

/// Reads what stands behind `CREATE VIEW`.
pub(crate) fn read(reader: &mut Reader<'_>, modifiers: &Modifiers) -> Result<(), Problem> {
    reader.if_not_exists(modifiers);
    let (name, range) = reader.cursor.dataset("a view's name")?;
    let mut comment = None;
    loop {
        if reader.cursor.eat_words(&["COMMENT"]).is_some() {
            comment = Some(reader.cursor.string("a comment in quotes")?);
        } else if reader.cursor.eat_words(&["TBLPROPERTIES"]).is_some() {
            read_pairs(&mut reader.cursor, "property")?;
        } else if reader.cursor.at_token(&Token::LParen) {
            return Err(Problem::new(reader.cursor.here(), "a view takes no list of columns here")
                .help("name the columns in its query, and put constraints on the table that reads it"));
        } else {
            break;
        }
    }
    reader.cursor.expect_words(&["AS"])?;
    let query = query::read(&reader.cursor)?;
    reader.cursor.take_rest();
    let span = reader.span(range);
    let temporary = modifiers.temporary || modifiers.live;
    let view = ViewDefinition { name, query, temporary, comment, span };
    reader.definition.datasets.push(DatasetDefinition::View(view));
    Ok(())
}
