//! The store opened behind the doors, and what starts with it: the way from the journal to the verdict, and from there
//! downstream.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use iris_core::model::Lane;
use iris_core::price::Prices;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::journal_from;
use super::life::{Life, Looks};
use crate::config::Config;
use crate::deleted::Deletions;
use crate::forward::Forwarder;
use crate::home::Home;
use crate::ingest::{self, Pipeline, Verdicts};
use crate::journal::Journal;
use crate::store::{self, Error, Store};
use crate::telemetry;
use crate::tools::{App, Backend};

/// The wait between two attempts to open the store.
const STORE_RETRY: Duration = Duration::from_secs(2);

/// How often an error that stays the same is logged.
const STORE_ERROR_AGAIN: Duration = Duration::from_secs(60);

/// A store that ended sooner than this is not opened again at once.
const STORE_LIVED: Duration = Duration::from_secs(60);

/// What the store is opened for.
pub(super) struct Opening {
    pub app: Arc<App>,
    pub config: Config,
    pub home: PathBuf,
    pub deleted: Deletions,
    /// The work is begun once, with the first store; verdicts of a later one reach it all the same.
    pub telling: Option<(Verdicts, Option<ingest::VerdictWork>)>,
    /// What the store goes through.
    pub life: Arc<Life>,
}

/// What ends the rooms behind the store.
pub(super) struct Ends {
    /// No more questions.
    pub closing: CancellationToken,
    /// Every verdict is told.
    pub told: CancellationToken,
}

/// Tells the downstream of verdicts, when there is one that is to be told. `known`: hashes of what the journal has.
pub(super) fn telling(
    config: &Config,
    home: &Home,
    journal: &Journal,
    known: HashSet<u128>,
    forwarder: Option<&Forwarder>,
) -> Option<(Verdicts, Option<ingest::VerdictWork>)> {
    let Some(forwarder) = forwarder.filter(|_| config.forward.verdicts) else {
        Verdicts::forget(home.path());
        return None;
    };
    let lanes = forwarder.lanes();
    let serves = Arc::new(move || lanes.serves(Lane::Logs));
    let (verdicts, work) = Verdicts::new(home.path(), journal.clone(), known, serves, telemetry::now());
    Some((verdicts, Some(work)))
}

/// How long questions wait for what the journal has from before, once the store is open.
const CATCH_UP_MAX: Duration = Duration::from_secs(5);

impl Opening {
    /// Opens the store and starts the pipeline, and does so again when the store ends by itself, or when something met
    /// damage in its file: what it had not committed, and what it lost, is in the journal. Traffic is taken and forwarded
    /// whatever happens here.
    pub(super) async fn run(mut self, ends: Ends, tasks: TaskTracker) {
        let mut looks = Looks::default();
        while let Some(backend) = self.open(&ends.closing).await {
            let opened = Instant::now();
            let (store, pipeline) = (backend.store.clone(), backend.pipeline.clone());
            if let Some(work) = self.telling.as_mut().and_then(|(_, work)| work.take()) {
                tasks.spawn(work.run(store.clone(), ends.told.clone()));
            }
            let known = self
                .app
                .journal
                .status()
                .iter()
                .find(|lane| lane.lane == Lane::Traces)
                .map_or(0, |lane| lane.acknowledged);
            tokio::select! {
                () = ends.closing.cancelled() => {}
                () = store.caught_up(known, CATCH_UP_MAX) => {}
            }
            self.app.backend.set(backend);
            tracing::info!("the store is open");
            let is_damaged = tokio::select! {
                biased;
                () = ends.closing.cancelled() => return,
                () = store.ended() => false,
                () = damaged(&store, &looks) => true,
            };
            self.life.ended(is_damaged);
            self.app.backend.clear();
            pipeline.end().await;
            store.release().await;
            if is_damaged {
                looks.begin(Instant::now());
                self.suspect().await;
            } else {
                tracing::error!("the store ended and is opened as at a start; the journal has what it lacks");
            }
            if !is_damaged && opened.elapsed() < STORE_LIVED {
                tokio::select! {
                    () = ends.closing.cancelled() => return,
                    () = tokio::time::sleep(STORE_RETRY) => {}
                }
            }
        }
    }

    /// Has the file looked over when it is opened next.
    async fn suspect(&self) {
        tracing::error!(
            "the database is looked over, because a part of it could not be read; taking and forwarding goes on"
        );
        let home = self.home.clone();
        let marked = tokio::task::spawn_blocking(move || store::suspect(&home)).await;
        if !matches!(marked, Ok(Ok(()))) {
            tracing::error!(?marked, "that the database is to be looked over could not be written down");
        }
    }

    /// Tries until it is open; `None` when it is told to end, or when nothing but other settings would help.
    async fn open(&self, closing: &CancellationToken) -> Option<Backend> {
        let mut told: Option<(String, Instant)> = None;
        loop {
            let error = match self.open_once().await {
                Ok(backend) => return Some(backend),
                Err(error) => error,
            };
            if matches!(error.downcast_ref(), Some(Error::Setting(_))) {
                tracing::error!(%error, "the store cannot be opened with these settings; taking and forwarding goes on");
                return None;
            }
            let error = format!("{error:#}");
            if told.as_ref().is_none_or(|(before, at)| *before != error || at.elapsed() >= STORE_ERROR_AGAIN) {
                tracing::error!(error, "the store cannot be opened; taking and forwarding goes on");
                told = Some((error, Instant::now()));
            }
            tokio::select! {
                () = closing.cancelled() => return None,
                () = tokio::time::sleep(STORE_RETRY) => {}
            }
        }
    }

    async fn open_once(&self) -> anyhow::Result<Backend> {
        let (path, known, mut settings) = (self.home.clone(), self.deleted.clone(), self.config.store());
        // Without its own path it does in this process what it would do in another.
        settings.program = std::env::current_exe().ok();
        settings.journal_from = journal_from(&self.app.journal);
        let (store, boot) = tokio::task::spawn_blocking(move || Store::open(&path, &settings, known)).await??;
        self.life.opened(boot.damage.clone());
        let parts = ingest::Parts {
            home: self.home.clone(),
            journal: self.app.journal.clone(),
            store: store.clone(),
            deleted: self.deleted.clone(),
            mind: mind(&self.app, &self.config.cost, self.telling.as_ref().map(|(verdicts, _)| verdicts.tell())),
        };
        let config = &self.config;
        match Pipeline::start(parts, &config.assembly, config.store.keep_other_traces, boot).await {
            Ok(pipeline) => Ok(Backend { store, pipeline }),
            Err(error) => {
                // The file must be free before it is opened again.
                store.release().await;
                Err(error.into())
            }
        }
    }
}

/// Waits until something met damage and the file may be looked over.
async fn damaged(store: &Store, looks: &Looks) {
    store.damaged().await;
    let wait = looks.next(Instant::now()).saturating_duration_since(Instant::now());
    if !wait.is_zero() {
        tracing::error!(wait_s = wait.as_secs(), "the database was looked over too often to be looked over again yet");
        tokio::time::sleep(wait).await;
    }
}

/// What the pipeline asks of the pure half: every judging sees the rules in force then.
fn mind(app: &App, cost: &iris_core::price::Config, judged: Option<ingest::Tell>) -> ingest::Mind {
    let rulebook = app.rulebook.clone();
    let mind = ingest::Mind::new(move |tenant| rulebook.snapshot(tenant), Arc::clone(&app.settings), app.world.now);
    let mind = ingest::Mind { judged, ..mind };
    // Checked when the configuration was read.
    match Prices::with(cost) {
        Ok(prices) => mind.priced(prices),
        Err(problems) => {
            tracing::warn!(?problems, "prices of cost.prices are left out");
            mind
        }
    }
}
