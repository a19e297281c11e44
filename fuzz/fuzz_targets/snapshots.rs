//! Snapshots alone and beside changes, against the reference model.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: strandline_fuzz::Deliveries| strandline_fuzz::against::snapshots(&input));
