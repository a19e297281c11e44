//! The contract and the models, on every adapter.

#[cfg(test)]
#[path = "formats/barriers.rs"]
mod barriers;
#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the iceberg crate takes and gives properties in hash maps")]
#[path = "formats/catalogs.rs"]
mod catalogs;
#[cfg(test)]
#[path = "formats/conformance.rs"]
mod conformance;
#[cfg(test)]
#[path = "formats/cost.rs"]
mod cost;
#[cfg(test)]
#[path = "formats/cost_of_reads.rs"]
mod cost_of_reads;
#[cfg(test)]
#[path = "formats/delta.rs"]
mod delta;
#[cfg(test)]
#[path = "formats/delta_expiry.rs"]
mod delta_expiry;
#[cfg(test)]
#[path = "formats/delta_features.rs"]
mod delta_features;
#[cfg(test)]
#[path = "formats/delta_feed.rs"]
mod delta_feed;
#[cfg(test)]
#[path = "formats/delta_masks.rs"]
mod delta_masks;
#[cfg(test)]
#[path = "formats/delta_others.rs"]
mod delta_others;
#[cfg(test)]
#[path = "formats/fault.rs"]
mod fault;
#[cfg(test)]
#[path = "formats/foreign.rs"]
mod foreign;
#[cfg(test)]
#[path = "formats/iceberg_files.rs"]
mod iceberg_files;
#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the iceberg crate takes and gives properties in hash maps")]
#[path = "formats/iceberg.rs"]
mod iceberg_tables;
#[cfg(test)]
#[path = "formats/kill.rs"]
mod kill;
#[cfg(test)]
#[path = "formats/lost.rs"]
mod lost;
#[cfg(test)]
#[path = "formats/maintain.rs"]
mod maintain;
#[cfg(test)]
#[path = "formats/model.rs"]
mod model;
#[cfg(test)]
#[path = "formats/rest_answers.rs"]
mod rest_answers;
#[cfg(test)]
#[path = "formats/rest_catalog.rs"]
mod rest_catalog;
#[cfg(test)]
#[path = "formats/rows.rs"]
mod rows;
#[cfg(test)]
#[path = "formats/state.rs"]
mod state;
#[cfg(test)]
#[path = "formats/types.rs"]
mod types;
