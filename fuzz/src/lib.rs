//! Which inputs break what the tests hold for true?
//!
//! Every target decodes its bytes into a small world: keys, sequences and values are few, so that nearly every event
//! meets another one. The oracle and the harness are those of the core's own tests: the reference model of the testkit,
//! and the store in memory that reads narrowly, widely and randomly.
//!
//! * [`Feed`] and [`Deliveries`] are histories in an arrival; [`against`] compares each shape with the reference.
//! * [`Stored`] is state that nobody should have written. It may be refused, and must not break anything.
//! * [`sql`] reads text.

pub mod against;
mod deliveries;
mod feed;
pub mod sql;
mod stored;

pub use deliveries::Deliveries;
pub use feed::Feed;
pub use stored::Stored;

/// The harness of the core's tests. Its modules stand at the root here as they do there.
#[path = "../../crates/cdc-core/tests/core/convert.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod convert;
#[path = "../../crates/cdc-core/tests/core/flow.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod flow;
#[path = "../../crates/cdc-core/tests/core/shapes.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod shapes;
#[path = "../../crates/cdc-core/tests/core/snapshots.rs"]
#[allow(dead_code, unused_imports, reason = "its tests are left out")]
mod snapshots;
#[path = "../../crates/cdc-core/tests/core/store.rs"]
#[allow(dead_code, reason = "tests use more of it")]
mod store;
