#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| iris_core::fuzz::address(data));
