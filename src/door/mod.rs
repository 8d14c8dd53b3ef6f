//! What every listening door needs before it opens: an address, and a judgement of who may knock.
//!
//! Pure policy and small types; the rooms `receive`, `serve` and `ops` open the sockets.

mod guard;
mod listen;
mod secret;

pub use guard::{Guard, Refused};
pub use listen::{Listen, bind};
pub use secret::hidden;
