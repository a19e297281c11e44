//! Which histories, in which arrivals, shall a target be tried with?
//!
//! [`history`] makes small ones that collide often, over a [`Domain`] that says what may happen in them; [`snapshots`] and
//! [`hybrid`] make series of images, alone and beside changes. [`arrivals`] and [`deliveries`] deliver them in any order,
//! batching and repetition. [`histories`] and [`every_arrival`] leave out nothing, as long as it is small. [`Workload`]
//! streams large feeds. All of it is a function of the seed, and knows no type of the engine.

mod arrival;
mod history;
mod small_scope;
mod snapshots;
mod workload;

pub use arrival::{arrivals, every_arrival};
pub use history::{Authoring, Domain, history};
pub use small_scope::{bitemporal_events, histories, known_at, partial_events};
pub use snapshots::{Delivery, Image, deliveries, hybrid, snapshots};
pub use workload::{Change, Workload};
