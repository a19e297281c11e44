//! Is the core right? One binary, one topic a module.
//!
//! The oracle is `strandline_testkit::reference`, which shares no code with the core. [`store`] applies what the core
//! says to rows in memory, and reads them back as narrowly, as widely and as randomly as the read plan allows.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "a test that meets what it does not expect shall stop"
)]

mod absent;
mod by_hand;
mod checklist;
mod compare;
mod convert;
mod definitions;
mod exhaustive;
mod exhaustive_hybrid;
mod exhaustive_shapes;
mod flow;
mod laws;
mod lost_fields;
mod scenarios;
mod shape_laws;
mod shape_relations;
mod shapes;
mod small;
mod snapshots;
mod statements;
mod store;
mod targets;
mod types;
