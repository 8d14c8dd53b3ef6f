//! End-to-end tests: the built binary, real sockets on loopback, one test program.

mod acknowledged;
mod command_line;
mod dashboard;
mod deleted;
mod exported;
mod faults;
mod field_cases_1;
mod field_cases_10;
mod field_cases_5;
mod field_cases_8;
mod field_cases_9;
mod forwarded;
mod frugal;
mod judged;
mod overload;
mod proof;
mod purge;
mod redacted;
mod refused;
mod rules;
mod soak;
mod stdio;
mod support;
mod tls;
mod verdicts;
