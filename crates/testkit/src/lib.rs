//! How do we know that Strandline is right, on every shape and every storage format?
//!
//! * [`reference`](mod@reference) recomputes a target from all of its events, slowly and plainly. It shares no code with the engine.
//! * [`generate`] makes small histories that collide often, their arrivals, and large seeded workloads.
//! * [`scenario`] reads, prints and runs the text files under `scenarios/`.
//! * [`fault`] wraps an object store so that the n-th operation fails.
//! * [`real_feed`] reads a change feed with two clocks from a file of JSON lines.
//!
//! Other crates use this one as a dev-dependency, from their `tests/`.

pub mod fault;
pub mod generate;
pub mod random;
pub mod real_feed;
pub mod reference;
pub mod scenario;
