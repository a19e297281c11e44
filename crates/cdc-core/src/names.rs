//! Names that the engine reserves: system columns of targets and of side rows.
//!
//! The visible ones are those of Lakeflow and Spark Declarative Pipelines, because users look for them.

/// SCD2: sequence at which a version begins (inclusive).
pub const START_AT: &str = "__START_AT";
/// SCD2: sequence at which a version ends (exclusive); NULL for the current version.
pub const END_AT: &str = "__END_AT";
/// Bitemporal: system sequence from which a row was believed (inclusive).
pub const SYSTEM_START_AT: &str = "__SYSTEM_START_AT";
/// Bitemporal: system sequence until which a row was believed (exclusive); NULL while it is believed.
pub const SYSTEM_END_AT: &str = "__SYSTEM_END_AT";
/// SCD1: sequence of the event that wrote the row, where no kept column holds it. Side rows: sequence of the event.
pub const SEQUENCE_AT: &str = "__SEQUENCE_AT";
/// Prefix of every name that belongs to the engine alone.
pub const RESERVED_PREFIX: &str = "__strandline_";
/// Side rows: what the row stands for, see [`crate::side::SideKind`].
pub const SIDE_KIND: &str = "__strandline_kind";
/// Side rows: the columns that an event authored, see [`crate::side::SideKind::Author`].
pub const AUTHORED: &str = "__strandline_authored";
/// Side rows of bitemporal targets: system sequence of the event.
pub const SYSTEM_SEQUENCE_AT: &str = "__SYSTEM_SEQUENCE_AT";
/// Side rows of bitemporal targets with monotonic system time: the system sequence that the event came with.
pub const SYSTEM_SEQUENCE_GIVEN: &str = "__strandline_system_given";
/// Side rows of deletes that expire: when the delete was applied, in milliseconds since 1970.
pub const APPLIED_AT: &str = "__strandline_applied_at";

/// True when a source column may not carry `name`.
pub fn is_reserved(name: &str) -> bool {
    [START_AT, END_AT, SYSTEM_START_AT, SYSTEM_END_AT, SEQUENCE_AT].contains(&name)
        || name.starts_with("__SYSTEM_")
        || name.starts_with(RESERVED_PREFIX)
}
