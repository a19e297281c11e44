//! Text as SQL: never a panic, and what parses is the same after printing.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| strandline_fuzz::sql::reads(text));
