//! Which clause begins here?

use std::ops::Range;

use crate::{Feature, cursor::Cursor, error::Problem, suggest::distance};

/// A clause behind KEYS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Clause {
    IgnoreNullUpdates,
    ApplyAsDelete,
    ApplyAsTruncate,
    ApplyAsRetract,
    SequenceBy,
    SystemSequenceBy,
    ColumnsToUpdate,
    Columns,
    StoredAs,
    TrackHistory,
    ValidTo,
}

impl Clause {
    /// `COLUMNS TO UPDATE` comes before `COLUMNS`, since it begins like it.
    const ALL: [Self; 11] = [
        Self::IgnoreNullUpdates,
        Self::ApplyAsDelete,
        Self::ApplyAsTruncate,
        Self::ApplyAsRetract,
        Self::SequenceBy,
        Self::SystemSequenceBy,
        Self::ColumnsToUpdate,
        Self::Columns,
        Self::StoredAs,
        Self::TrackHistory,
        Self::ValidTo,
    ];

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::IgnoreNullUpdates => "IGNORE NULL UPDATES",
            Self::ApplyAsDelete => "APPLY AS DELETE WHEN",
            Self::ApplyAsTruncate => "APPLY AS TRUNCATE WHEN",
            Self::ApplyAsRetract => "APPLY AS RETRACT WHEN",
            Self::SequenceBy => "SEQUENCE BY",
            Self::SystemSequenceBy => "SYSTEM SEQUENCE BY",
            Self::ColumnsToUpdate => "COLUMNS TO UPDATE",
            Self::Columns => "COLUMNS",
            Self::StoredAs => "STORED AS",
            Self::TrackHistory => "TRACK HISTORY ON",
            Self::ValidTo => "VALID TO",
        }
    }

    /// What a release must execute to take this clause. The shapes of `STORED AS` differ in that.
    pub(crate) fn feature(self) -> Option<Feature> {
        match self {
            Self::IgnoreNullUpdates => Some(Feature::IgnoreNullUpdates),
            Self::ApplyAsTruncate => Some(Feature::ApplyAsTruncate),
            Self::ApplyAsRetract => Some(Feature::ApplyAsRetract),
            Self::SystemSequenceBy => Some(Feature::SystemSequenceBy),
            Self::ColumnsToUpdate => Some(Feature::ColumnsToUpdate),
            Self::ValidTo => Some(Feature::ValidTo),
            Self::ApplyAsDelete | Self::SequenceBy | Self::Columns | Self::StoredAs | Self::TrackHistory => {
                None
            }
        }
    }

    /// Passes the words of a clause.
    pub(crate) fn eat(cursor: &mut Cursor<'_>) -> Option<(Self, Range<usize>)> {
        Self::ALL.into_iter().find_map(|clause| {
            let words: Vec<&str> = clause.text().split(' ').collect();
            cursor.eat_words(&words).map(|range| (clause, range))
        })
    }

    /// The error that no clause begins here, with the clause that may have been meant.
    pub(crate) fn unknown(cursor: &Cursor<'_>) -> Problem {
        let problem = cursor.expected("a clause of AUTO CDC");
        if cursor.at_words(&["KEYS"]) {
            return super::duplicate(cursor.here(), "KEYS");
        }
        let near = Self::ALL
            .into_iter()
            .filter_map(|clause| {
                let words = clause.text().split(' ').count();
                let found: Vec<String> = (0..words)
                    .map_while(|n| cursor.peek_nth(n).and_then(crate::lexer::Tok::keyword))
                    .collect();
                let apart = distance(&found.join(" "), clause.text());
                (!found.is_empty() && apart <= clause.text().len() / 4 + 1).then_some((apart, clause))
            })
            .min();
        match near {
            Some((_, clause)) => problem.help(format!("did you mean {}?", clause.text())),
            None => problem.help(format!("clauses are {}", Self::ALL.map(Self::text).join(", "))),
        }
    }
}
