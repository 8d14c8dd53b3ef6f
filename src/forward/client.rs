//! One attempt to send one body over either protocol: what goes on the wire, and what comes back.

use std::io::Write as _;
use std::time::Duration;

use bytes::Bytes;
use iris_core::model::Lane;

use super::config::{Error, Protocol, Target};
use super::retry::{Answer, Class};
use super::{grpc, http_post};
use crate::door::Fresh;
use crate::journal::Encoding;

/// Bodies from this size on are compressed where a thread may be busy.
const COMPRESS_INLINE_BYTES_MAX: usize = 32 * 1024;
/// A connection must stand within this time, whatever a whole request may take.
pub(super) const CONNECT_MAX: Duration = Duration::from_secs(10);
pub(super) const USER_AGENT: &str = concat!("iris-sidecar/", env!("CARGO_PKG_VERSION"));

/// The client of one lane; lanes share no connection, so that none waits for another.
pub(super) struct Client {
    lane: Lane,
    gzip: bool,
    timeout: Duration,
    speaks_grpc: bool,
    /// Made anew when a certificate changes; what is under way goes on as it began.
    wire: Fresh<Wire>,
}

enum Wire {
    Grpc(grpc::Client),
    Http(http_post::Client),
}

impl Wire {
    fn new(lane: Lane, target: &Target) -> Result<Self, Error> {
        Ok(match target.protocol {
            Protocol::Grpc => Self::Grpc(grpc::Client::new(lane, target)?),
            Protocol::Http => Self::Http(http_post::Client::new(lane, target)?),
        })
    }
}

impl Client {
    /// Sets the client up; connects to nothing yet.
    pub(super) fn new(lane: Lane, target: &Target) -> Result<Self, Error> {
        // A second installation is refused and harmless: the first one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let (files, again) = (target.trust_files.all(), target.clone());
        let wire = Fresh::new(files, move || {
            let target = Target { trust: again.trust_files.read()?, ..again.clone() };
            Wire::new(lane, &target).map_err(|error| match error {
                Error::Client(why) => why,
                other => other.to_string(),
            })
        });
        let wire = wire.map_err(Error::Client)?;
        let speaks_grpc = target.protocol == Protocol::Grpc;
        Ok(Self { lane, gzip: target.gzip, timeout: target.timeout, speaks_grpc, wire })
    }

    /// How many bytes an attempt with a body of this length may hold: the body, and a copy of it where it is
    /// transcoded or compressed.
    pub(super) fn charge(&self, encoding: Encoding, body: usize) -> usize {
        let transcoded = encoding == Encoding::Json && self.speaks_grpc;
        body * (1 + usize::from(transcoded) + usize::from(self.gzip))
    }

    /// Sends one body once.
    pub(super) async fn send(&self, encoding: Encoding, body: Bytes) -> Answer {
        let Ok(answer) = tokio::time::timeout(self.timeout, self.attempt(encoding, body)).await else {
            return Answer::Retry { class: Class::Timeout, asked: None };
        };
        answer
    }

    async fn attempt(&self, encoding: Encoding, body: Bytes) -> Answer {
        match &*self.wire.get() {
            Wire::Grpc(client) => {
                let message = match encoding {
                    Encoding::Protobuf => Some(body),
                    Encoding::Json => transcode(self.lane, body).await,
                };
                let Some(message) = message else { return Answer::Refused { class: Class::Transcode } };
                client.send(compress(message, self.gzip).await, self.gzip, self.timeout).await
            }
            Wire::Http(client) => {
                if encoding == Encoding::Protobuf || !client.refuses_json() {
                    let answer = client.send(encoding, compress(body.clone(), self.gzip).await, self.gzip).await;
                    if encoding == Encoding::Protobuf || !client.refuses_json() {
                        return answer;
                    }
                }
                // A downstream that takes no JSON gets protobuf from here on, rather than a lane that stands still.
                let Some(message) = transcode(self.lane, body).await else {
                    return Answer::Refused { class: Class::Transcode };
                };
                client.send(Encoding::Protobuf, compress(message, self.gzip).await, self.gzip).await
            }
        }
    }
}

/// JSON to protobuf on the blocking pool, where a panic costs this record only.
async fn transcode(lane: Lane, body: Bytes) -> Option<Bytes> {
    let done = tokio::task::spawn_blocking(move || iris_core::otlp::json_to_protobuf(lane, &body)).await;
    done.ok()?.ok().map(Bytes::from)
}

async fn compress(body: Bytes, gzip: bool) -> Bytes {
    if !gzip {
        return body;
    }
    if body.len() < COMPRESS_INLINE_BYTES_MAX {
        return gzipped(&body);
    }
    let shared = body.clone();
    // Compression cannot panic on any bytes; should the pool be gone, the thread at hand does it.
    tokio::task::spawn_blocking(move || gzipped(&shared)).await.unwrap_or_else(|_| gzipped(&body))
}

fn gzipped(body: &[u8]) -> Bytes {
    let mut encoder = flate2::write::GzEncoder::new(Vec::with_capacity(body.len() / 4), flate2::Compression::fast());
    let written = encoder.write_all(body).and_then(|()| encoder.finish());
    Bytes::from(written.expect("writing to memory cannot fail"))
}
