//! Where may a query ask for the version of a snapshot?
//!
//! `last_snapshot_version()` and `current_snapshot_version()` are tables of one row, and each is known in one place of a
//! snapshot flow only (G-12).

use sqlparser::tokenizer::Token;

use super::InputKind;
use crate::{cursor::Cursor, error::Problem};

/// Which versions of snapshots are known where a query stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Versions {
    /// In no snapshot flow: none.
    Outside,
    /// In `WITH VERSION (..)`: the last one.
    Last,
    /// In `FROM SNAPSHOT (..)` of a flow with `WITH VERSION`: the current one.
    Current,
    /// In `FROM SNAPSHOT (..)` of a flow without: none.
    Unversioned,
}

const LAST: &str = "last_snapshot_version";
const CURRENT: &str = "current_snapshot_version";

/// Which of the two functions is called here?
pub(super) fn called(cursor: &Cursor<'_>) -> Option<InputKind> {
    if cursor.peek_nth(1).is_none_or(|tok| tok.token != Token::LParen) {
        return None;
    }
    if cursor.at_words(&[LAST]) {
        Some(InputKind::LastSnapshotVersion)
    } else {
        cursor.at_words(&[CURRENT]).then_some(InputKind::CurrentSnapshotVersion)
    }
}

/// Passes the call of one of the functions where a table is expected; none if there is none.
pub(super) fn table(cursor: &mut Cursor<'_>, versions: Versions) -> Result<Option<InputKind>, Problem> {
    let Some(kind) = called(cursor) else { return Ok(None) };
    if let Some(problem) = misused(cursor, versions) {
        return Err(problem);
    }
    cursor.skip(1);
    let inner = cursor.parenthesized()?;
    if inner.is_done() { Ok(Some(kind)) } else { Err(inner.expected("`)`").help("it takes no arguments")) }
}

/// What is wrong with a call where no table is expected, if one stands here.
pub(crate) fn scalar(cursor: &Cursor<'_>, versions: Versions) -> Option<Problem> {
    called(cursor)?;
    misused(cursor, versions).or_else(|| {
        let name = name(cursor);
        Some(
            Problem::new(cursor.here(), format!("{name}() is a table of one row, not a value"))
                .help(format!("write (SELECT * FROM {name}())"))
                .condition("INVALID_USAGE_OF_SNAPSHOT_VERSION_FUNCTION"),
        )
    })
}

fn name(cursor: &Cursor<'_>) -> &'static str {
    if cursor.at_words(&[LAST]) { LAST } else { CURRENT }
}

fn misused(cursor: &Cursor<'_>, versions: Versions) -> Option<Problem> {
    let name = name(cursor);
    let (message, help) = match (versions, name) {
        (Versions::Last, LAST) | (Versions::Current, CURRENT) => return None,
        (Versions::Outside, _) => {
            return Some(
                Problem::new(cursor.here(), format!("there is no table function {name} here"))
                    .help(
                        "versions of snapshots are known in AUTO CDC .. FROM SNAPSHOT (..) WITH VERSION (..)",
                    )
                    .condition("UNRESOLVABLE_TABLE_VALUED_FUNCTION"),
            );
        }
        (Versions::Last, _) => (
            "WITH VERSION (..) chooses the version, so there is no current one in it",
            "write last_snapshot_version(): the version before",
        ),
        (Versions::Current, _) => (
            "the last version is known in WITH VERSION (..) only",
            "write current_snapshot_version(): the version that is taken now",
        ),
        (Versions::Unversioned, _) => (
            "this snapshot has no version",
            "add WITH VERSION (SELECT ..), which chooses the version of the next snapshot",
        ),
    };
    Some(
        Problem::new(cursor.here(), message)
            .help(help)
            .condition("INVALID_USAGE_OF_SNAPSHOT_VERSION_FUNCTION"),
    )
}
