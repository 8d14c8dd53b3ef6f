//! The store against the real engine, in folders of their own.

mod bytes;
mod cost;
mod crash;
mod deleting;
mod fixtures;
mod long;
mod pages;
mod reading;
mod safety;
mod salvaging;
mod searching;
mod series;
mod shapes;
mod soon;
mod sweeping;
mod verdicts;
mod writing;
