//! What do targets become, event by event? The worked examples of the semantics, as code that is compiled and run.
//!
//! An event is written as key, sequence, what it does (`U` upsert, `D` delete, `T` truncate) and values; `-` is NULL. Rows
//! are printed column by column. (The few lines that build Arrow batches from this text are `src/guide/example.rs`.)
//!
//! # SCD type 1: the newest event of a key decides
//!
//! A delete of an unknown key must be remembered, or the late upsert of `k3` would create it; the late upsert of `k2` finds
//! a newer delete. In SCD1 the last column is the sequence of the event that wrote the row.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/example.rs"));
//! # fn main() -> Result {
//! let mut target = Target::new(CdcOptions::default(), &["plan", "city"])?;
//! target.feed(&["k1 10 U free Oslo", "k1 30 U pro Bergen", "k2 10 U free Rome", "k1 20 U free Bergen"])?;
//! target.feed(&["k2 25 D", "k3 15 D"])?;
//! target.feed(&["k3 12 U pro Lima", "k2 22 U pro Rome"])?;
//! assert_eq!(target.rows(), ["k1 pro Bergen 30"]);
//!
//! // A newer upsert brings the key back, with nothing from before the delete.
//! target.feed(&["k2 40 U free Turin"])?;
//! assert_eq!(target.rows(), ["k1 pro Bergen 30", "k2 free Turin 40"]);
//! # Ok(()) }
//! ```
//!
//! # Truncates: a floor under every key
//!
//! `c` was never seen before the truncate at 5, and its upsert at 4 still loses. `d` stands at 5 itself, after the truncate.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/example.rs"));
//! # fn main() -> Result {
//! let mut target = Target::new(CdcOptions::default(), &["v"])?;
//! target.feed(&["a 1 U x", "b 2 U y"])?;
//! target.feed(&["- 5 T"])?;
//! target.feed(&["b 6 U z", "d 5 U same", "c 4 U late"])?;
//! assert_eq!(target.rows(), ["b z 6", "d same 5"]);
//! # Ok(()) }
//! ```
//!
//! # SCD type 2: versions
//!
//! The same events as above. Rows end with `__START_AT` and `__END_AT`.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/example.rs"));
//! # fn main() -> Result {
//! let scd2 = CdcOptions { stored_as: StoredAs::Scd2, ..CdcOptions::default() };
//! let mut target = Target::new(scd2, &["plan", "city"])?;
//! target.feed(&["k1 10 U free Oslo", "k1 30 U pro Bergen", "k2 10 U free Rome", "k1 20 U free Bergen"])?;
//! target.feed(&["k2 25 D", "k3 15 D", "k3 12 U pro Lima", "k2 22 U pro Rome"])?;
//! assert_eq!(target.rows(), [
//!     "k1 free Bergen 20 30",
//!     "k1 free Oslo 10 20",
//!     "k1 pro Bergen 30 -",
//!     "k2 free Rome 10 22",
//!     "k2 pro Rome 22 25",
//!     "k3 pro Lima 12 15",
//! ]);
//! # Ok(()) }
//! ```
//!
//! A late event cuts a run in two, because what happened within the run is remembered beside the table:
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/example.rs"));
//! # fn main() -> Result {
//! let scd2 = CdcOptions { stored_as: StoredAs::Scd2, ..CdcOptions::default() };
//! let mut target = Target::new(scd2, &["name"])?;
//! target.feed(&["k 5 U Al", "k 10 U Al", "k 15 U Al", "k 20 U Cy"])?;
//! assert_eq!(target.rows(), ["k Al 5 20", "k Cy 20 -"]);
//! target.feed(&["k 12 U Bo"])?;
//! assert_eq!(target.rows(), ["k Al 15 20", "k Al 5 12", "k Bo 12 15", "k Cy 20 -"]);
//! # Ok(()) }
//! ```
//!
//! Only a change in a tracked column opens a version; others change within it:
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/example.rs"));
//! # fn main() -> Result {
//! let track_history = ColumnSelection::Only(vec!["plan".to_owned()]);
//! let options = CdcOptions { stored_as: StoredAs::Scd2, track_history, ..CdcOptions::default() };
//! let mut target = Target::new(options, &["plan", "city"])?;
//! target.feed(&["k1 10 U free Oslo", "k1 20 U free Bergen", "k1 30 U pro Bergen"])?;
//! assert_eq!(target.rows(), ["k1 free Bergen 10 30", "k1 pro Bergen 30 -"]);
//! # Ok(()) }
//! ```
//!
//! # Ties
//!
//! At one sequence an upsert comes after a delete, and of two upserts the larger row wins, whatever arrived first.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/example.rs"));
//! # fn main() -> Result {
//! for events in [["k 1 U b", "k 1 U a", "k 1 D"], ["k 1 D", "k 1 U a", "k 1 U b"]] {
//!     let mut target = Target::new(CdcOptions::default(), &["v"])?;
//!     for event in events {
//!         target.feed(&[event])?;
//!     }
//!     assert_eq!(target.rows(), ["k b 1"]);
//! }
//! # Ok(()) }
//! ```
//!
//! # Partial updates
//!
//! Under ignore-null a NULL is "not provided": each column has the value of its own newest author. A late author fills what
//! later rows inherited, and a delete cuts inheritance off.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/example.rs"));
//! # fn main() -> Result {
//! let ignoring = |stored_as| CdcOptions {
//!     stored_as,
//!     ignore_null_updates: Some(ColumnSelection::All),
//!     ..CdcOptions::default()
//! };
//! let mut target = Target::new(ignoring(StoredAs::Scd1), &["name", "age"])?;
//! target.feed(&["1 1 U A 20", "1 3 U - 30"])?;
//! assert_eq!(target.rows(), ["1 A 30 3"]);
//! target.feed(&["1 2 U B 25"])?;
//! assert_eq!(target.rows(), ["1 B 30 3"]);
//! target.feed(&["1 4 D", "1 5 U - 9"])?;
//! assert_eq!(target.rows(), ["1 - 9 5"]);
//!
//! let mut target = Target::new(ignoring(StoredAs::Scd2), &["name", "age"])?;
//! target.feed(&["1 1 U A 20", "1 3 U - 30"])?;
//! target.feed(&["1 2 U B -"])?;
//! assert_eq!(target.rows(), ["1 A 20 1 2", "1 B 20 2 3", "1 B 30 3 -"]);
//! # Ok(()) }
//! ```
//!
//! # Bitemporal: what was true, and what was believed
//!
//! Events carry a second number: when the fact became known. Rows end with `__START_AT`, `__END_AT`, `__SYSTEM_START_AT`
//! and `__SYSTEM_END_AT`. On the 5th we learn that the flag is `Y` from the 1st on; on the 8th that it was `N` all along;
//! then an older fact turns up, which was known in June already, so that the belief of June to January is put right too.
//!
//! ```
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/example.rs"));
//! # fn main() -> Result {
//! let bitemporal = CdcOptions { stored_as: StoredAs::Bitemporal, ..CdcOptions::default() };
//! let mut target = Target::new(bitemporal, &["reportable"])?;
//! target.feed(&["acme 20250101 20250105 U Y"])?;
//! target.feed(&["acme 20250101 20250108 U N"])?;
//! assert_eq!(target.rows(), [
//!     "acme N 20250101 - 20250108 -",
//!     "acme Y 20250101 - 20250105 20250108",
//! ]);
//! target.feed(&["acme 20240601 20240601 U Y0"])?;
//! assert_eq!(target.rows(), [
//!     "acme N 20250101 - 20250108 -",
//!     "acme Y 20250101 - 20250105 20250108",
//!     "acme Y0 20240601 - 20240601 20250105",
//!     "acme Y0 20240601 20250101 20250105 -",
//! ]);
//! # Ok(()) }
//! ```
//!
//! # Snapshots
//!
//! A snapshot is a complete image of a source at a version: what it lacks is deleted there. See
//! [`CdcSpec::reconcile_snapshot`](crate::CdcSpec::reconcile_snapshot).
//!
//! ```
//! use std::sync::Arc;
//! use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
//! use strandline_cdc_core::{CdcOptions, CdcSpec, Prior, SnapshotBatch, SnapshotRules, StoredAs};
//!
//! let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
//! let tier: ArrayRef = Arc::new(StringArray::from(vec!["basic", "gold", "basic"]));
//! let image = RecordBatch::try_from_iter_with_nullable([("id", ids, true), ("tier", tier, true)])?;
//! let version: ArrayRef = Arc::new(Int64Array::from(vec![1]));
//!
//! let options = CdcOptions { keys: vec!["id".to_owned()], stored_as: StoredAs::Scd2, ..CdcOptions::default() };
//! let spec = CdcSpec::new(&options, &image.schema(), version.data_type())?;
//! let snapshot = SnapshotBatch::new(&spec, &image, &version)?;
//! let done = spec.reconcile_snapshot(&Prior::empty(&spec), &snapshot, &SnapshotRules::default())?;
//! assert_eq!(done.target.inserts.num_rows(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
