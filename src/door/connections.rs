//! Connections: how many there may be, which one makes room for the next, and how they end.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::{Request, Response};
use hyper::body::{Body, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use super::Tls;

/// How long an HTTP/1.1 connection may stay between requests, or take over the head of one. Longer than the
/// minute between two exports of metrics; when room is short, whoever is idle goes at once.
const HEAD_TIMEOUT: Duration = Duration::from_secs(75);

/// An HTTP/2 peer that has said nothing for this long is asked for a sign of life, and has that long to give it.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(30);
const KEEPALIVE_WITHIN: Duration = Duration::from_secs(10);

/// What one connection may make us buffer before a request of it is looked at, bytes.
const HTTP1_BUFFER_BYTES: usize = 128 * 1024;
const HTTP2_STREAM_WINDOW_BYTES: u32 = 256 * 1024;
const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
const HTTP2_HEADERS_BYTES: u32 = 16 * 1024;

/// Requests at a time on one HTTP/2 connection.
const HTTP2_STREAMS: u32 = 64;

/// How long a connection that was told to go may take when no request runs on it.
const LEAVE_GRACE: Duration = Duration::from_millis(500);

/// How soon to look again for a connection to close, when all were busy.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How long to wait after `accept` failed, as it does when the process is out of file descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// What happens to connections, for who counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// One was taken.
    Taken,
    /// An idle one was told to go, to make room for a new one.
    Evicted,
}

/// Takes connections until `stop`, in plain text or over TLS, at most so many at a time; the listener is closed when this returns. Requests are
/// answered in `tasks`, HTTP/1.1 and HTTP/2 alike.
pub async fn accept<A, F, B>(
    listener: TcpListener,
    connections_max: u32,
    tls: Option<Tls>,
    stop: CancellationToken,
    tasks: TaskTracker,
    tell: impl Fn(Event),
    answer: A,
) where
    A: Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let rooms = Rooms::new(connections_max, stop.clone());
    let builder = Arc::new(builder());
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_AGAIN).await;
                    continue;
                }
            },
        };
        let guest = tokio::select! {
            () = stop.cancelled() => return,
            guest = rooms.admit(&tell) => guest,
        };
        tell(Event::Taken);
        // Answers are small and must not wait for more to send. Failing only costs latency.
        let _ = stream.set_nodelay(true);
        let (builder, answer, tls) = (Arc::clone(&builder), answer.clone(), tls.clone());
        tasks.spawn(async move {
            match tls {
                None => converse(builder, stream, answer, guest).await,
                // Whoever does not come to terms is gone; nothing of it was acknowledged.
                Some(tls) => {
                    let greeted = tokio::select! {
                        greeted = tls.greet(stream) => greeted,
                        () = guest.peer.leave.cancelled() => return,
                    };
                    match greeted {
                        Ok(stream) => converse(builder, stream, answer, guest).await,
                        Err(error) => tracing::debug!(%error, "a connection came to no terms"),
                    }
                }
            }
        });
    }
}

/// Answers with `router` until `stop`, and lets what is running then end within `drain_max`.
pub async fn serve(
    listener: TcpListener,
    connections_max: u32,
    tls: Option<Tls>,
    router: axum::Router,
    stop: CancellationToken,
    drain_max: Duration,
) {
    let tasks = TaskTracker::new();
    let answer = move |request: Request<Incoming>| {
        let router = router.clone();
        async move {
            match router.oneshot(request.map(axum::body::Body::new)).await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        }
    };
    accept(listener, connections_max, tls, stop, tasks.clone(), |_| {}, answer).await;
    tasks.close();
    let _ = tokio::time::timeout(drain_max, tasks.wait()).await;
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HTTP1_BUFFER_BYTES)
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(KEEPALIVE_EVERY))
        .keep_alive_timeout(KEEPALIVE_WITHIN)
        .initial_stream_window_size(HTTP2_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(HTTP2_CONNECTION_WINDOW_BYTES)
        .max_header_list_size(HTTP2_HEADERS_BYTES)
        .max_concurrent_streams(HTTP2_STREAMS);
    builder
}

async fn converse<S, A, F, B>(builder: Arc<Builder<TokioExecutor>>, stream: S, answer: A, guest: Guest)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    A: Fn(Request<Incoming>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let peer = Arc::clone(&guest.peer);
    let service = service_fn(|request| {
        let (answering, peer) = (answer(request), Arc::clone(&peer));
        async move {
            let _visit = peer.begin();
            Ok::<_, Infallible>(answering.await)
        }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // How a connection ends is the sender's affair; what it did not finish was never acknowledged.
        _ = connection.as_mut() => return,
        () = guest.peer.leave.cancelled() => {}
    }
    connection.as_mut().graceful_shutdown();
    let abandoned = async {
        loop {
            sleep(LEAVE_GRACE).await;
            if guest.peer.is_idle() {
                return;
            }
        }
    };
    tokio::select! {
        _ = connection => {}
        () = abandoned => {}
    }
}

/// Room for so many connections.
struct Rooms {
    free: Arc<Semaphore>,
    guests: Arc<Mutex<HashMap<u64, Arc<Peer>>>>,
    next: AtomicU64,
    born: Instant,
    stop: CancellationToken,
}

/// A connection in its room, which it leaves when this is dropped.
struct Guest {
    peer: Arc<Peer>,
    number: u64,
    guests: Arc<Mutex<HashMap<u64, Arc<Peer>>>>,
    _room: OwnedSemaphorePermit,
}

/// What is known of a connection from outside.
struct Peer {
    running: AtomicU32,
    idle_since_ms: AtomicU64,
    /// Whether it has asked anything yet.
    known: AtomicBool,
    born: Instant,
    leave: CancellationToken,
}

impl Rooms {
    fn new(connections_max: u32, stop: CancellationToken) -> Self {
        Self {
            free: Arc::new(Semaphore::new(connections_max as usize)),
            guests: Arc::default(),
            next: AtomicU64::new(0),
            born: Instant::now(),
            stop,
        }
    }

    /// Waits for room. When there is none, the connection that has been idle longest is told to go; where more
    /// than half never asked anything, the oldest of those, so that a flood of silent ones makes room for itself.
    async fn admit(&self, tell: &impl Fn(Event)) -> Guest {
        loop {
            if let Ok(room) = Arc::clone(&self.free).try_acquire_owned() {
                return self.seat(room);
            }
            if self.evict() {
                tell(Event::Evicted);
            }
            // Somebody may become idle without leaving, so the wait is short.
            if let Ok(Ok(room)) = tokio::time::timeout(LOOK_AGAIN, Arc::clone(&self.free).acquire_owned()).await {
                return self.seat(room);
            }
        }
    }

    fn seat(&self, room: OwnedSemaphorePermit) -> Guest {
        let peer = Arc::new(Peer {
            running: AtomicU32::new(0),
            idle_since_ms: AtomicU64::new(since_ms(self.born)),
            known: AtomicBool::new(false),
            born: self.born,
            leave: self.stop.child_token(),
        });
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.guests).insert(number, Arc::clone(&peer));
        Guest { peer, number, guests: Arc::clone(&self.guests), _room: room }
    }

    /// Whether somebody was told to go who had not been.
    fn evict(&self) -> bool {
        let guests = lock(&self.guests);
        if guests.values().any(|peer| peer.leave.is_cancelled()) {
            return false;
        }
        let silent = guests.values().filter(|peer| peer.is_silent()).count();
        let is_flooded = silent * 2 > guests.len();
        let may_go = guests.values().filter(|peer| peer.is_idle() && (!is_flooded || peer.is_silent()));
        let idlest = may_go.min_by_key(|peer| peer.idle_since_ms.load(Ordering::Relaxed));
        if let Some(peer) = idlest {
            peer.leave.cancel();
        }
        idlest.is_some()
    }
}

impl Peer {
    fn begin(&self) -> Visit<'_> {
        self.running.fetch_add(1, Ordering::Relaxed);
        self.known.store(true, Ordering::Relaxed);
        Visit(self)
    }

    /// Whether it never asked anything.
    fn is_silent(&self) -> bool {
        !self.known.load(Ordering::Relaxed)
    }

    fn is_idle(&self) -> bool {
        self.running.load(Ordering::Relaxed) == 0
    }
}

/// A request that runs on a connection.
struct Visit<'a>(&'a Peer);

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.0.idle_since_ms.store(since_ms(self.0.born), Ordering::Relaxed);
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        lock(&self.guests).remove(&self.number);
    }
}

fn since_ms(born: Instant) -> u64 {
    u64::try_from(born.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// A panic elsewhere cannot leave the map half changed.
fn lock(guests: &Mutex<HashMap<u64, Arc<Peer>>>) -> MutexGuard<'_, HashMap<u64, Arc<Peer>>> {
    guests.lock().unwrap_or_else(PoisonError::into_inner)
}
