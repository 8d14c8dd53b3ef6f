//! OTLP in both encodings against captured requests, the generated messages and arbitrary bytes.

mod captured;
mod cut;
mod hostile;
mod json;
mod make;
mod oracle;
