//! Being built.
mod pipeline;
mod worker;

pub use pipeline::{Judge, Judging, LaneLag, Mind, Parts, Pipeline, PipelineStatus, SetAside, Tell};
