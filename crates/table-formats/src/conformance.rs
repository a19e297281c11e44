//! Lines of the contract.
