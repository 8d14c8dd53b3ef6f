//! What every listening door needs: an address, a judgement of who may knock and who may enter, and connections that
//! are bounded in number, in size and in time.
//!
//! The rooms `receive`, `serve` and `ops` say what is answered.

mod bearer;
mod connections;
mod guard;
mod listen;
#[cfg(test)]
pub(crate) mod probe;
mod secret;

pub use bearer::{Unwelcome, bearer};
pub use connections::{Event, accept, serve};
pub use guard::{Guard, Refused};
pub use listen::{Listen, bind};
pub use secret::hidden;
