//! One table contract, and its adapters.
pub mod contract;
pub mod error;
