//! Pipelines from SQL text and files to tables, as a user runs them.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test fails by panicking, its helpers too"
)]

mod as_of;
mod clauses;
mod conflicts;
mod continuous;
mod crash;
mod debezium;
mod declared;
mod dml;
mod errors;
mod events;
mod expectations;
mod feed;
mod files;
mod flow_cases;
mod flows;
mod handoff;
mod hybrid;
mod identity;
#[cfg(feature = "kafka")]
mod kafka;
mod leases;
mod maintenance;
mod pipeline;
mod refresh;
mod remote;
mod retries;
mod scenarios;
mod several;
mod simulation;
mod sinks;
mod snapshots;
mod tables;
mod two_sinks;
mod views;
