//! SCD2 targets whose events set some leaves only.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: strandline_fuzz::Feed| strandline_fuzz::against::scd2_partial(&input));
