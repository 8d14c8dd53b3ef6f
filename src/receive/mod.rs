//! The OTLP doors: gRPC and HTTP.
//!
//! Owns sockets, framing, decompression, who may come in, and the words of every answer. Holds no more of a
//! body than it has permits for. Knows nothing of what a message means and nothing of how it is kept: it calls
//! only `ingest::Inlet::submit`, and says success only after that has.
//!
//! Bytes enter at the two listeners and leave as a `Submission`; answers leave as OTLP responses or as
//! `google.rpc.Status`, never with a code of the tools.

mod config;
mod fault;
mod grpc;
mod http;
mod intake;
mod reply;
mod shared;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use iris_core::contract::Scope;
use iris_core::model::Tenant;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use config::{Config, GrpcConfig, HttpConfig};

use crate::door::{self, Guard, Holder, KeyConfig, KeyRing, Listen, Tls};
use crate::ingest::{Admission, Inlet, add};
use crate::journal;
use shared::{Door, Shared};

/// While draining, the doors close after this long without a request.
const DRAIN_QUIET: Duration = Duration::from_secs(1);

/// While draining, the doors close after this long in any case.
const DRAIN_MAX: Duration = Duration::from_secs(3);

const DRAIN_LOOK_EVERY: Duration = Duration::from_millis(25);

/// Why the doors do not open.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings do not allow it; every problem, one a line.
    #[error("{}", .0.join("\n"))]
    Settings(Vec<String>),
    /// An address cannot be listened at.
    #[error(transparent)]
    Listen(io::Error),
}

/// The open doors.
pub struct Doors {
    grpc: Option<SocketAddr>,
    http: Option<SocketAddr>,
    shared: Arc<Shared>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Doors {
    /// Binds both listeners and takes connections from now on.
    ///
    /// # Errors
    /// The settings contradict themselves, or an address or the token file cannot be had. Nothing is open then.
    pub async fn open(
        config: &Config,
        keys: &[KeyConfig],
        inlet: Inlet,
        admission: Admission,
        memory_limit_bytes: u64,
    ) -> Result<Self, Error> {
        let problems = config.problems(!keys.is_empty());
        if !problems.is_empty() {
            return Err(Error::Settings(problems));
        }
        let (settings, keys) = (config.clone(), keys.to_vec());
        let keys = tokio::task::spawn_blocking(move || {
            let tls = settings.tls.open("receive.tls")?;
            Ok((admitted(&settings, &keys)?, tls))
        });
        let keys = keys.await.map_err(io::Error::other).map_err(Error::Listen)?;
        let (keys, tls) = keys.map_err(|problem| Error::Settings(vec![problem]))?;
        let shared = Shared::new(inlet, admission, config.body_bytes(memory_limit_bytes), keys);
        Self::open_with(config, shared, tls).await
    }

    async fn open_with(config: &Config, shared: Shared, tls: Option<Tls>) -> Result<Self, Error> {
        let shared = Arc::new(shared);
        let grpc = bind("OTLP/gRPC", "receive.grpc.listen", config.grpc.listen).await?;
        let http = bind("OTLP/HTTP", "receive.http.listen", config.http.listen).await?;
        let addresses = (grpc.as_ref().map(|bound| bound.1), http.as_ref().map(|bound| bound.1));
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let doors = [
            (grpc, journal::Door::Grpc, addresses.1, config.grpc.connections_max),
            (http, journal::Door::Http, addresses.0, config.http.connections_max),
        ];
        for (bound, kind, other, connections_max) in doors {
            if let Some((listener, address)) = bound {
                let guard = Guard::new(address, &config.http.allowed_hosts, &config.http.allowed_origins);
                let door = Arc::new(Door { kind, guard, other, shared: Arc::clone(&shared) });
                tasks.spawn(accept((listener, tls.clone()), door, connections_max, stop.clone(), tasks.clone()));
            }
        }
        Ok(Self { grpc: addresses.0, http: addresses.1, shared, stop, tasks })
    }

    /// Where OTLP/gRPC is served, unless its door is closed.
    pub fn grpc(&self) -> Option<SocketAddr> {
        self.grpc
    }

    /// Where OTLP/HTTP is served, unless its door is closed.
    pub fn http(&self) -> Option<SocketAddr> {
        self.http
    }

    /// Stays open until a second has passed without a request, at most three; then takes no more connections,
    /// and lets what is running end until `deadline`, counted from the call. Returns whether all of it did.
    pub async fn drain(&self, deadline: Duration) -> bool {
        let begun = Instant::now();
        let open_until = begun + DRAIN_MAX.min(deadline);
        let quiet_ms = u64::try_from(DRAIN_QUIET.as_millis()).unwrap_or(u64::MAX);
        while Instant::now() < open_until {
            let was_quiet_ms = self.shared.activity().quiet_ms();
            let has_waited = begun.elapsed() >= DRAIN_QUIET;
            if was_quiet_ms >= quiet_ms && has_waited {
                break;
            }
            sleep(DRAIN_LOOK_EVERY).await;
        }
        self.close(deadline.saturating_sub(begun.elapsed())).await
    }

    /// Takes no more connections at once, and lets what is running end within `deadline`. Returns whether all of
    /// it did.
    pub async fn close(&self, deadline: Duration) -> bool {
        self.stop.cancel();
        self.tasks.close();
        let ended = async {
            self.tasks.wait().await;
            // A write outlives the request whose sender gave up.
            self.shared.inlet.close().await;
        };
        timeout_at(Instant::now() + deadline, ended).await.is_ok()
    }
}

async fn accept(
    (listener, tls): (TcpListener, Option<Tls>),
    door: Arc<Door>,
    connections_max: u32,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    let counted = Arc::clone(&door);
    let tell = move |event| {
        let counters = counted.counters();
        add(if event == door::Event::Taken { &counters.connections } else { &counters.evicted }, 1);
    };
    let answer = move |request| {
        let door = Arc::clone(&door);
        async move {
            let _running = door.shared.activity().begin();
            match door.kind {
                journal::Door::Grpc => grpc::answer(&door, request).await,
                _ => http::answer(&door, request).await,
            }
        }
    };
    door::accept(listener, connections_max, tls, stop, tasks, tell, answer).await;
}

async fn bind(door: &str, setting: &str, listen: Listen) -> Result<Option<(TcpListener, SocketAddr)>, Error> {
    let Listen::At(address) = listen else { return Ok(None) };
    let listener = door::bind(door, setting, address).await.map_err(Error::Listen)?;
    let bound = listener.local_addr().map_err(Error::Listen)?;
    Ok(Some((listener, bound)))
}

/// Everybody who may send: the holders of keys, and whoever has the token of these doors.
fn admitted(config: &Config, keys: &[KeyConfig]) -> Result<KeyRing, String> {
    let file = config.token_file.clone().map(|path| ("receive.token_file", path));
    let holder = Holder {
        name: "receive.token".to_owned(),
        tenant: Tenant::local(),
        scopes: vec![Scope::Write],
        may_set_tenant: false,
    };
    KeyRing::read(keys, config.token.clone(), file, holder)
}

#[cfg(test)]
mod tests;
