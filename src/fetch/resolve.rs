//! Names to addresses: the one look-up whose answer is judged and then connected to.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;

/// An address that a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// What is judged.
    pub address: IpAddr,
    /// What is connected to: the same address with the port, except in tests.
    pub dial: SocketAddr,
}

/// What a look-up comes to.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<Place>>> + Send + 'a>>;

/// Looks names up.
pub trait Resolve: Send + Sync + 'static {
    /// Every address of a name.
    fn resolve(&self, name: String, port: u16) -> Resolving<'_>;
}

/// The system's resolver, asked without its search list.
#[derive(Debug, Clone, Copy)]
pub struct System;

/// Addresses of one name that are looked at; a name with more is judged by all of these and connected to no other.
const ADDRESSES_MAX: usize = 32;

impl Resolve for System {
    fn resolve(&self, name: String, port: u16) -> Resolving<'_> {
        Box::pin(async move {
            // The last dot keeps the name whole: inside a cluster a search list would complete it to a service.
            let found = tokio::net::lookup_host((format!("{name}."), port)).await?;
            Ok(found.take(ADDRESSES_MAX).map(|dial| Place { address: dial.ip(), dial }).collect())
        })
    }
}
