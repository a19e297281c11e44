//! Which clauses exclude each other, and which need each other?

use strandline_cdc_core::spec::StoredAs;

use super::{Clause, Clauses};
use crate::{error::Problem, parse::Reader};

/// A rule that a clause breaks: message, what to do, and the name of the condition.
struct Rule(&'static str, &'static str, &'static str);

const TRACK_HISTORY: Rule = Rule(
    "TRACK HISTORY needs STORED AS SCD TYPE 2",
    "write STORED AS SCD TYPE 2, or leave out TRACK HISTORY",
    "AUTOCDC_TRACK_HISTORY_REQUIRES_SCD2",
);
const TRUNCATE: Rule = Rule(
    "APPLY AS TRUNCATE needs STORED AS SCD TYPE 1",
    "a history has no moment at which it is emptied: turn the truncate into deletes of its keys",
    "AUTOCDC_TRUNCATE_REQUIRES_SCD1",
);
const SYSTEM_SEQUENCE: Rule = Rule(
    "SYSTEM SEQUENCE BY needs STORED AS BITEMPORAL",
    "write STORED AS BITEMPORAL, or leave out SYSTEM SEQUENCE BY",
    "AUTOCDC_SYSTEM_SEQUENCE_REQUIRES_BITEMPORAL",
);
const RETRACT: Rule = Rule(
    "APPLY AS RETRACT needs STORED AS BITEMPORAL",
    "without system time there is no earlier belief to take back: use APPLY AS DELETE WHEN",
    "AUTOCDC_RETRACT_REQUIRES_BITEMPORAL",
);
const BITEMPORAL: Rule = Rule(
    "STORED AS BITEMPORAL needs SYSTEM SEQUENCE BY",
    "add SYSTEM SEQUENCE BY column: it says when a fact became known",
    "AUTOCDC_BITEMPORAL_REQUIRES_SYSTEM_SEQUENCE",
);
const COLUMNS_TO_UPDATE: Rule = Rule(
    "COLUMNS TO UPDATE goes neither with IGNORE NULL UPDATES nor with STORED AS BITEMPORAL",
    "keep one way of saying which columns a row sets",
    "AUTOCDC_COLUMNS_TO_UPDATE_CONFLICT",
);
const VALID_TO_ONCE: Rule = Rule(
    "VALID TO needs AUTO CDC ONCE",
    "it closes the rows of a seed; changes that go on coming end a version with APPLY AS DELETE WHEN",
    "AUTOCDC_VALID_TO_REQUIRES_ONCE",
);
const VALID_TO_SCD2: Rule = Rule(
    "VALID TO needs STORED AS SCD TYPE 2",
    "only a version of type 2 can be closed: write STORED AS SCD TYPE 2, or leave out VALID TO",
    "AUTOCDC_VALID_TO_REQUIRES_SCD2",
);

/// Reports every rule that the clauses break, at the clause that breaks it.
pub(super) fn check(clauses: &Clauses, reader: &mut Reader<'_>) {
    let bitemporal = clauses.bitemporal;
    let scd1 = !bitemporal && clauses.options.stored_as == StoredAs::Scd1;
    let scd2 = !bitemporal && clauses.options.stored_as == StoredAs::Scd2;
    let masked_twice = bitemporal || clauses.ignore_null_updates.is_some();
    let no_system_sequence = bitemporal && clauses.system_sequence_by.is_none();
    let rules = [
        (Clause::TrackHistory, !scd2, TRACK_HISTORY),
        (Clause::ApplyAsTruncate, !scd1, TRUNCATE),
        (Clause::SystemSequenceBy, !bitemporal, SYSTEM_SEQUENCE),
        (Clause::ApplyAsRetract, !bitemporal, RETRACT),
        (Clause::StoredAs, no_system_sequence, BITEMPORAL),
        (Clause::ColumnsToUpdate, masked_twice, COLUMNS_TO_UPDATE),
        (Clause::ValidTo, !clauses.once, VALID_TO_ONCE),
        (Clause::ValidTo, !scd2, VALID_TO_SCD2),
    ];
    for (clause, broken, Rule(message, help, condition)) in rules {
        if let (true, Some(range)) = (broken, clauses.seen.get(&clause)) {
            reader.problems.push(Problem::new(range.clone(), message).help(help).condition(condition));
        }
    }
}
