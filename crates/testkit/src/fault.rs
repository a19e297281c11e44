//! What if the n-th operation on the object store fails, or lands and its answer is lost, or the process dies there?
//!
//! [`FaultStore`] passes every operation on to the store that it wraps, unless a [`Rule`] of its [`Faults`] says otherwise.
//! The faults are shared: a test keeps them, sets rules, reads the [trace](Faults::trace), and revives a dead process.

mod rules;
mod store;

#[cfg(test)]
mod tests;

pub use rules::{Fault, Faults, Injected, Operation, Rule};
pub use store::FaultStore;
