//! What every listening door needs: an address, a judgement of who may knock and who may enter, and connections that
//! are bounded in number, in size and in time.
//!
//! The rooms `receive`, `serve` and `ops` say what is answered.

mod bearer;
mod connections;
mod guard;
mod keys;
mod listen;
#[cfg(test)]
pub(crate) mod probe;
mod rate;
mod secret;

pub use bearer::Unwelcome;
pub use connections::{Event, accept, serve};
pub use guard::{Guard, Refused};
pub use keys::{Holder, KeyConfig, Keys, from_file, tenants_ignored};
pub use listen::{Listen, bind};
pub use rate::Rate;
pub use secret::hidden;
