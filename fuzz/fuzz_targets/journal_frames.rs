#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| iris_sidecar::fuzz::journal_frames(data));
