//! Stored rows, side rows and barriers that nobody should have written: an error, never a panic.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: strandline_fuzz::Stored| input.survives());
