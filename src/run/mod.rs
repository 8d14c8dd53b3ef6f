//! The composition root: configuration in, running rooms out, and the order in which they start and stop. No logic.

mod judged;
mod life;
mod opening;
mod state;

pub use judged::judging;
pub use state::journal_from;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use iris_core::model::Lane;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal as unix_signal};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use iris_core::redact::Redactor;

use crate::config::Config;
use crate::deleted::Deletions;
use crate::door::{self, Listen};
use crate::forward::{self, Exporter, Forwarder, Origin, Target};
use crate::home::{self, Home, Runtime};
use crate::ingest::{self, Admission, Eraser, Inlet, ReceiveCounters, Verdicts};
use crate::journal::{Journal, RealDisk};
use crate::ops::{self, Ops};
use crate::receive::Doors;
use crate::rulebook::Rulebook;
use crate::tools::{App, Facts, Judging, Slot, World};
use crate::{serve, telemetry, tools};
use life::Life;
use opening::Opening;

/// The whole time a drain may take.
const DRAIN_MAX: Duration = Duration::from_secs(8);

/// How often to look whether the store is open.
const OPEN_LOOK_EVERY: Duration = Duration::from_millis(10);

/// A running sidecar.
pub struct Sidecar {
    app: Arc<App>,
    journal: Journal,
    doors: Doors,
    forwarder: Option<Forwarder>,
    verdicts: Option<Verdicts>,
    ops: Arc<Ops>,
    runtime: Runtime,
    /// Ends the doors that answer questions.
    closing: CancellationToken,
    /// Tells the forwarder that the end is near.
    ending: CancellationToken,
    /// Ends the telling of verdicts, when all are told.
    told: CancellationToken,
    tasks: TaskTracker,
    home: Home,
}

/// How often a full disk is tried again for `runtime.json`.
const ANNOUNCE_EVERY: Duration = Duration::from_secs(2);

impl Sidecar {
    /// Starts everything. Returns when requests are acknowledged; the store opens behind it.
    ///
    /// # Errors
    /// When the home is held or unsafe, an address is taken, or the journal cannot be opened.
    pub async fn start(config: Config, home: &Path) -> anyhow::Result<Self> {
        Self::begin(config, home, false, None).await
    }

    /// Starts everything with a judge that follows a script: no model is asked and nothing is paid.
    ///
    /// # Errors
    /// As [`Sidecar::start`].
    pub async fn start_scripted(config: Config, home: &Path, judging: Judging) -> anyhow::Result<Self> {
        Self::begin(config, home, false, Some(judging)).await
    }

    /// Starts it for the tools alone: every network door closed. What a sidecar before left unsent stays for the next
    /// one, unless a collector is configured here.
    ///
    /// # Errors
    /// As [`Sidecar::start`].
    pub async fn start_alone(mut config: Config, home: &Path) -> anyhow::Result<Self> {
        config.receive.grpc.listen = Listen::Off;
        config.receive.http.listen = Listen::Off;
        config.web.listen = Listen::Off;
        config.ops.listen = Listen::Off;
        // What the environment says of a collector is meant for the agent that started us, or for its sidecar.
        if config.forward.origin == Origin::Inherited {
            config.forward = forward::Config::default();
        }
        Self::begin(config, home, true, None).await
    }

    async fn begin(config: Config, home: &Path, is_alone: bool, script: Option<Judging>) -> anyhow::Result<Self> {
        harden();
        let home = Home::take(home)?;
        let (target, export) = targets(&config).await?;
        let memory = ingest::limit_bytes();
        let deleted = deletions(&home).await?;
        let (journal, recovered) = open_journal(&config, &home, target.is_some() || is_alone).await?;
        let counters = Arc::new(ReceiveCounters::default());
        let admission = Admission::new(memory);
        let known: HashSet<u128> = recovered.recent.iter().copied().collect();
        let inlet = Inlet::new(journal.clone(), recovered.recent, target.is_some(), Arc::clone(&counters));
        inlet.obey(&deleted);
        let redactor = redactor(&config, &journal);
        redactor.iter().for_each(|redactor| inlet.redact(redactor));
        let (closing, ending, tasks) = (CancellationToken::new(), CancellationToken::new(), TaskTracker::new());
        let ops_tls = ops_tls(&config)?;
        let web = listen("web", "web.listen", config.web.listen).await?;
        let ops_listener = listen("ops", "ops.listen", config.ops.listen).await?;
        let spans = serve::Spans { inlet: inlet.clone(), admission: admission.clone() };
        let doors = Doors::open(&config.receive, &config.keys, inlet, admission.clone(), memory).await?;
        let start = |target: Target| forward::start(&journal, &target, Some(tools::forwarded), &deleted, &ending);
        let forwarder = target.map(start).transpose()?;
        for lane in Lane::ALL.into_iter().filter(|_| is_alone && forwarder.is_none()) {
            tasks.spawn(forward::keep_unsent(journal.clone(), lane, ending.clone()));
        }
        let telling = opening::telling(&config, &home, &journal, known, forwarder.as_ref());
        let verdicts = telling.as_ref().map(|(verdicts, _)| verdicts.clone());
        let told = CancellationToken::new();
        let export = exporter(export, &config, &tasks, &ending)?;
        let rulebook = rulebook(&home).await?;
        let judging = judged::start(script, &config, home.path()).await?;
        let app = Arc::new(App {
            rulebook,
            settings: Arc::new(config.eval.clone()),
            journal: journal.clone(),
            world: World::REAL,
            backend: Slot::default(),
            deleted: deleted.clone(),
            started: telemetry::now(),
            facts: facts(&config, web.as_ref(), forwarder.is_some(), export, redactor),
            judging,
        });
        let eraser = Eraser::new(home.path(), journal.clone(), deleted.clone(), config.erase.within(), telemetry::now);
        tasks.spawn(eraser.run(closing.clone()));
        let runtime = describe(&doors, web.as_ref(), ops_listener.as_ref())?;
        let life = Arc::new(Life::default());
        let rooms = Arc::new(state::Rooms {
            app: Arc::clone(&app),
            counters,
            admission,
            forward: forwarder.as_ref().map(Forwarder::lanes),
            verdicts: verdicts.clone(),
            life: Arc::clone(&life),
            home: home.path().to_owned(),
            home_bytes_max: config.retention.bytes_max,
        });
        let ops = state::ops(&rooms);
        let around = state::around(&rooms, shown_doors(&config, &runtime));
        if let Some(listener) = ops_listener {
            tasks.spawn(watched("ops", ops::serve(listener, ops_tls, Arc::clone(&ops), ending.clone())));
        }
        serve_questions(web, serve::Beside { spans: Some(spans), around }, &app, &config, &home, (&tasks, &closing));
        announce(&home, &runtime, &tasks, &closing)?;
        ops.set_ready(true);
        let (path, ends) = (home.path().to_owned(), opening::Ends { closing: closing.clone(), told: told.clone() });
        let opening = Opening { app: Arc::clone(&app), config, home: path, deleted, telling, life };
        tasks.spawn(opening.run(ends, tasks.clone()));
        tracing::info!(grpc = runtime.grpc, http = runtime.http, web = runtime.web, ops = runtime.ops, "ready");
        Ok(Self { app, journal, doors, forwarder, verdicts, ops, runtime, closing, ending, told, tasks, home })
    }

    /// The tools.
    pub fn app(&self) -> &Arc<App> {
        &self.app
    }

    /// Waits until the store is open, at most `within`. Returns whether it is.
    pub async fn opened(&self, within: Duration) -> bool {
        let open = async {
            while self.app.backend.get().is_none() {
                tokio::time::sleep(OPEN_LOOK_EVERY).await;
            }
        };
        tokio::time::timeout(within, open).await.is_ok()
    }

    /// Every tenant that has anything in the store, once that is open.
    ///
    /// # Errors
    /// When the store is not open or cannot answer.
    pub async fn tenants(&self) -> anyhow::Result<Vec<iris_core::model::Tenant>> {
        let backend = self.app.backend.get().context("the store is not open")?;
        Ok(backend.store.tenants().await?)
    }

    /// Where it listens.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Stops within the deadline: no new traffic, what is journalled sent on, what has settled judged and stored.
    /// What is cut short is in the journal and goes on at the next start.
    pub async fn drain(self) {
        let deadline = Instant::now() + DRAIN_MAX;
        let left = || deadline.saturating_duration_since(Instant::now());
        self.ops.set_ready(false);
        tracing::info!("draining");
        self.doors.drain(left()).await;
        self.ending.cancel();
        let (judged, all_judged) = oneshot::channel::<()>();
        let forwarding = async {
            if let Some(forwarder) = self.forwarder {
                let lanes = forwarder.lanes();
                // It sends all the while; it ends when the last verdicts are on their way too.
                let _ = tokio::time::timeout(left().saturating_sub(Duration::from_secs(2)), all_judged).await;
                forwarder.drain(left().saturating_sub(Duration::from_secs(1))).await;
                for lane in lanes.status().iter().filter(|lane| lane.state != forward::State::Idle) {
                    let (name, records, bytes) = (lane.lane.as_str(), lane.lag_records, lane.lag_bytes);
                    tracing::info!(
                        lane = name,
                        records,
                        bytes,
                        "not all is sent; at most so much is left for the next start"
                    );
                }
            }
        };
        let judging = async {
            self.closing.cancel();
            if let Some(backend) = self.app.backend.get() {
                backend.pipeline.drain(left().saturating_sub(Duration::from_secs(2))).await;
            }
            if let Some(verdicts) = &self.verdicts {
                let _ = tokio::time::timeout(left().saturating_sub(Duration::from_secs(2)), verdicts.flush()).await;
            }
            self.told.cancel();
            // Without a forwarder nobody waits.
            let _ = judged.send(());
            if let Some(backend) = self.app.backend.get()
                && let Err(error) = backend.store.close(left().saturating_sub(Duration::from_secs(1))).await
            {
                tracing::warn!(%error, "the store did not close cleanly; the journal holds what it lacks");
            }
        };
        tokio::join!(forwarding, judging);
        self.tasks.close();
        let _ = tokio::time::timeout(left(), self.tasks.wait()).await;
        self.journal.close().await;
        drop(self.home);
        tracing::info!("stopped");
    }
}

/// Listens for SIGTERM and SIGINT from the call on; what it gives waits for one.
///
/// # Errors
/// When the process cannot listen for signals.
pub fn signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = unix_signal(SignalKind::terminate())?;
    let mut interrupt = unix_signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Files are private, and no image of memory, which holds prompts, is left behind by a crash or taken by another
/// process of the same user. The superuser may still trace.
pub fn harden() {
    rustix::process::umask(rustix::fs::Mode::from_bits_truncate(0o077));
    let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    let limited = rustix::process::setrlimit(rustix::process::Resource::Core, none);
    // A limit of zero does not bind a core handler that is a program; this does.
    let hidden = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    if let Err(error) = limited.and(hidden) {
        tracing::warn!(%error, "core dumps could not be turned off");
    }
}

/// Where accepted telemetry and where traces of `log_trace` are sent on to, if anywhere.
async fn targets(config: &Config) -> anyhow::Result<(Option<Target>, Option<Target>)> {
    let (downstream, export, own) = (config.forward.clone(), config.export.clone(), listeners(config));
    let finding = tokio::task::spawn_blocking(move || {
        let target = Target::new(&downstream, downstream.origin, &own)?;
        anyhow::Ok((target, export.target(&own).context("export.endpoint")?))
    });
    let found = finding.await?;
    if let Ok((Some(_), _)) = &found {
        let from = match config.forward.origin {
            Origin::Inherited => "OTEL_EXPORTER_OTLP_ENDPOINT",
            Origin::Configured => "forward.endpoint",
        };
        tracing::info!(to = config.forward.endpoint, from, "what is accepted is forwarded");
    }
    found
}

/// Whether an endpoint that the environment names, and that can be resolved, is one of our own doors: then nothing is forwarded.
pub fn is_own_listener(config: &Config) -> bool {
    matches!(Target::new(&config.forward, Origin::Inherited, &listeners(config)), Ok(None))
}

/// Serves the web door, when it is open, and the local socket.
fn serve_questions(
    web: Option<TcpListener>,
    beside: serve::Beside,
    app: &Arc<App>,
    config: &Config,
    home: &Home,
    (tasks, closing): (&TaskTracker, &CancellationToken),
) {
    let message_bytes_max = config.mcp.message_bytes();
    if let Some(listener) = web {
        let (app, closing, web, keys) = (Arc::clone(app), closing.clone(), config.web.clone(), config.keys.clone());
        let serving = async move { serve::serve(listener, &web, &keys, message_bytes_max, app, beside, closing).await };
        tasks.spawn(watched("web", serving));
    }
    let (folder, app, closing) = (home.path().to_owned(), Arc::clone(app), closing.clone());
    let serving = async move { serve::listen_socket(&folder, app, message_bytes_max, closing).await };
    tasks.spawn(watched("socket", serving));
}

/// The certificate of the ops door. Files that cannot be used, those of the web door too, are named before anything is
/// open.
fn ops_tls(config: &Config) -> anyhow::Result<Option<door::Tls>> {
    let ops = config.ops.tls.open("ops.tls").and_then(|tls| config.web.tls.open("web.tls").map(|_| tls));
    ops.map_err(anyhow::Error::msg)
}

async fn rulebook(home: &Home) -> anyhow::Result<Rulebook> {
    let folder = home.path().to_owned();
    Ok(tokio::task::spawn_blocking(move || Rulebook::open(&folder)).await?)
}

async fn deletions(home: &Home) -> anyhow::Result<Deletions> {
    let folder = home.path().to_owned();
    let opened = tokio::task::spawn_blocking(move || Deletions::open(&folder)).await?;
    opened.context("the list of deleted traces cannot be opened")
}

async fn open_journal(
    config: &Config,
    home: &Home,
    forwarding: bool,
) -> anyhow::Result<(Journal, crate::journal::Recovered)> {
    let (settings, path) = (config.journal(), home.path().to_owned());
    let opening = tokio::task::spawn_blocking(move || Journal::open(&path, &settings, forwarding, Arc::new(RealDisk)));
    let (journal, recovered) = opening.await?.context("the journal cannot be opened")?;
    for damage in &recovered.damage {
        tracing::error!(?damage, "the journal is damaged here; what it held there is lost");
    }
    Ok((journal, recovered))
}

/// What takes personal data and credentials out, when that is configured.
fn redactor(config: &Config, journal: &Journal) -> Option<Arc<Redactor>> {
    config.redact.enabled.then(|| Arc::new(Redactor::new(&config.redact, journal.secret("redaction"))))
}

/// Sends what `log_trace` stores to a collector of its own, when there is one.
fn exporter(
    target: Option<Target>,
    config: &Config,
    tasks: &TaskTracker,
    ending: &CancellationToken,
) -> anyhow::Result<Option<Exporter>> {
    let Some(target) = target else { return Ok(None) };
    let (exporter, work) = Exporter::new(&target, &config.export.service_name, ending.clone())?;
    tasks.spawn(work);
    Ok(Some(exporter))
}

/// What the tools tell of this process.
fn facts(
    config: &Config,
    web: Option<&TcpListener>,
    forwards: bool,
    export: Option<Exporter>,
    redactor: Option<Arc<Redactor>>,
) -> Facts {
    let address = web.and_then(|listener| listener.local_addr().ok());
    Facts {
        web: address.map(|address| format!("{}://{address}", if config.web.tls.is_on() { "https" } else { "http" })),
        retention_days: config.retention.days,
        sweep_interval_hours: config.retention.sweep_interval_hours,
        mcp_per_minute: config.web.rate_limit.mcp,
        read_only: config.mcp.read_only,
        sql: config.mcp.sql,
        stored_text: config.mcp.stored_text,
        reply_bytes_max: config.mcp.reply_bytes(),
        forwards: forwards || export.is_some(),
        export,
        erase_within: config.erase.within(),
        redactor,
    }
}

/// The doors for spans as an SDK is told of them.
fn shown_doors(config: &Config, runtime: &Runtime) -> serve::Doors {
    let scheme = |tls: &door::TlsConfig| if tls.is_on() { "https" } else { "http" };
    let shown = |address: Option<&String>, tls| address.map(|address| format!("{}://{address}", scheme(tls)));
    serve::Doors {
        grpc: shown(runtime.grpc.as_ref(), &config.receive.tls),
        http: shown(runtime.http.as_ref(), &config.receive.tls),
        ops: shown(runtime.ops.as_ref(), &config.ops.tls),
    }
}

async fn watched(door: &'static str, serving: impl Future<Output = std::io::Result<()>>) {
    if let Err(error) = serving.await {
        tracing::error!(door, %error, "a door closed");
    }
}

async fn listen(door: &str, setting: &str, listen: Listen) -> std::io::Result<Option<TcpListener>> {
    match listen {
        Listen::Off => Ok(None),
        Listen::At(address) => door::bind(door, setting, address).await.map(Some),
    }
}

/// Our own OTLP doors as configured: where nothing must be forwarded to.
fn listeners(config: &Config) -> Vec<SocketAddr> {
    [config.receive.grpc.listen, config.receive.http.listen]
        .into_iter()
        .filter_map(|listen| match listen {
            Listen::At(address) if address.port() != 0 => Some(address),
            _ => None,
        })
        .collect()
}

/// Tells others where this sidecar is: at once, or when the disk is full as soon as it has room.
fn announce(home: &Home, runtime: &Runtime, tasks: &TaskTracker, closing: &CancellationToken) -> anyhow::Result<()> {
    match home::announce(home.path(), runtime) {
        Err(home::Error::Io { error, path }) if error.kind() == std::io::ErrorKind::StorageFull => {
            tracing::error!(%error, path = %path.display(), "commands do not find this sidecar before there is room");
        }
        announced => return Ok(announced?),
    }
    let (path, runtime, closing) = (home.path().to_owned(), runtime.clone(), closing.clone());
    tasks.spawn(async move {
        while closing.run_until_cancelled(tokio::time::sleep(ANNOUNCE_EVERY)).await.is_some() {
            if home::announce(&path, &runtime).is_ok() {
                return;
            }
        }
    });
    Ok(())
}

fn describe(doors: &Doors, web: Option<&TcpListener>, ops: Option<&TcpListener>) -> std::io::Result<Runtime> {
    let address = |listener: Option<&TcpListener>| listener.map(TcpListener::local_addr).transpose();
    let web = address(web)?;
    Ok(Runtime {
        pid: std::process::id(),
        started_at: telemetry::now().to_string(),
        dashboard_port: web.map(|address| address.port()),
        grpc: doors.grpc().map(|address| address.to_string()),
        http: doors.http().map(|address| address.to_string()),
        web: web.map(|address| address.to_string()),
        ops: address(ops)?.map(|address| address.to_string()),
    })
}

#[cfg(test)]
mod tests;
