//! The contract and the models, on every adapter.

#[path = "formats/conformance.rs"]
mod conformance;
#[path = "formats/fault.rs"]
mod fault;
#[path = "formats/kill.rs"]
mod kill;
#[path = "formats/model.rs"]
mod model;
#[path = "formats/rows.rs"]
mod rows;
#[path = "formats/state.rs"]
mod state;
