//! Bitemporal targets whose events set some leaves only.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: strandline_fuzz::Feed| strandline_fuzz::against::bitemporal_partial(
    &input
));
