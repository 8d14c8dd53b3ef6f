//! What every listening door needs: an address, a judgement of who may knock and who may enter, and connections that
//! are bounded in number, in size and in time. Keys and certificates that stand in files are read again when those change.
//!
//! The rooms `receive`, `serve` and `ops` say what is answered.

mod bearer;
mod connections;
mod fresh;
mod guard;
mod keys;
mod listen;
#[cfg(test)]
pub(crate) mod probe;
mod rate;
mod secret;
mod tls;

pub use bearer::Unwelcome;
pub use connections::{Event, accept, serve};
pub use fresh::Fresh;
pub use guard::{Guard, Refused};
pub use keys::{Holder, KeyConfig, KeyRing, Keys, from_file, tenants_ignored};
pub use listen::{Listen, bind};
pub use rate::Rate;
pub use secret::hidden;
pub use tls::{Tls, TlsConfig, certificates, read as read_pem};
