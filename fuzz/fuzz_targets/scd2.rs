//! SCD2 targets, with every tracked subset, against the reference model.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: strandline_fuzz::Feed| strandline_fuzz::against::scd2(&input));
