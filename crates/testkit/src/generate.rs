//! Which histories, in which arrivals, shall a target be tried with?
//!
//! [`history`] makes small ones that collide often, [`arrivals`] and [`every_arrival`] deliver them in any order, batching
//! and repetition, and [`Workload`] streams large ones. All of it is a function of the seed.

mod arrival;
mod history;
mod workload;

pub use arrival::{arrivals, every_arrival};
pub use history::{Domain, history};
pub use workload::{Change, Workload};
