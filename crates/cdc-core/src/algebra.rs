//! Which event wins, which run starts and ends where? Positions and row handles only; no value is ever seen here.
//!
//! The shapes are one algebra at different depths: per key, an ordered list of events is settled (one winner a
//! sequence, [`order`]) and folded into a timeline ([`timeline`]). An SCD2 target shows the whole timeline; an SCD1
//! target shows its last point, column by column where events author some columns only ([`authorship`]);
//! a bitemporal target shows how the timeline was known, from each system time on ([`belief`]). What is not written is
//! inherited ([`step`]). What the algebra needs to know of values it asks: "how do the payloads of these two rows
//! compare?", "does this event repeat its predecessor on tracked columns?".

pub(crate) mod authorship;
pub(crate) mod belief;
pub(crate) mod order;
pub(crate) mod step;
pub(crate) mod timeline;
