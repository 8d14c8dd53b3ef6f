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
use crate::config::Config;
use crate::deleted::Deletions;
use crate::forward::Forwarder;
use crate::home::Home;
use crate::ingest::{self, Pipeline, Verdicts};
use crate::journal::Journal;
use crate::store::Store;
use crate::telemetry;
use crate::tools::{App, Backend};

/// The wait between two attempts to open the store.
const STORE_RETRY: Duration = Duration::from_secs(2);

/// How often an error that stays the same is logged.
const STORE_ERROR_AGAIN: Duration = Duration::from_secs(60);

/// What the store is opened for.
pub(super) struct Opening {
    pub app: Arc<App>,
    pub config: Config,
    pub home: PathBuf,
    pub deleted: Deletions,
    pub telling: Option<(Verdicts, ingest::VerdictWork)>,
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
) -> Option<(Verdicts, ingest::VerdictWork)> {
    let Some(forwarder) = forwarder.filter(|_| config.forward.verdicts) else {
        Verdicts::forget(home.path());
        return None;
    };
    let lanes = forwarder.lanes();
    let serves = Arc::new(move || lanes.serves(Lane::Logs));
    Some(Verdicts::new(home.path(), journal.clone(), known, serves, telemetry::now()))
}

/// Opens the store and starts the pipeline; tries again for as long as the process runs, because traffic is taken
/// and forwarded meanwhile.
pub(super) async fn open_store(opening: Opening, ends: Ends, tasks: TaskTracker) {
    let Opening { app, config, home, deleted, mut telling } = opening;
    let mut told: Option<(String, Instant)> = None;
    loop {
        let (path, mut settings) = (home.clone(), config.store());
        // Without its own path it does in this process what it would do in another.
        settings.program = std::env::current_exe().ok();
        settings.journal_from = journal_from(&app.journal);
        let known = deleted.clone();
        let opened = tokio::task::spawn_blocking(move || Store::open(&path, &settings, known)).await;
        let error = match opened {
            Ok(Ok((store, boot))) => {
                let parts = ingest::Parts {
                    home: home.clone(),
                    journal: app.journal.clone(),
                    store: store.clone(),
                    deleted: deleted.clone(),
                    mind: mind(&app, &config.cost, telling.as_ref().map(|(verdicts, _)| verdicts.tell())),
                };
                match Pipeline::start(parts, &config.assembly, config.store.keep_other_traces, boot).await {
                    Ok(pipeline) => {
                        if let Some((_, work)) = telling.take() {
                            tasks.spawn(work.run(store.clone(), ends.told.clone()));
                        }
                        if app.backend.set(Backend { store, pipeline }).is_err() {
                            tracing::error!("the store was opened twice");
                        }
                        tracing::info!("the store is open");
                        return;
                    }
                    Err(error) => anyhow::Error::from(error),
                }
            }
            // Nothing but another configuration helps.
            Ok(Err(error @ crate::store::Error::Setting(_))) => {
                tracing::error!(%error, "the store cannot be opened with these settings; taking and forwarding goes on");
                return;
            }
            Ok(Err(error)) => error.into(),
            Err(error) => error.into(),
        };
        let error = format!("{error:#}");
        if told.as_ref().is_none_or(|(before, at)| *before != error || at.elapsed() >= STORE_ERROR_AGAIN) {
            tracing::error!(error, "the store cannot be opened; taking and forwarding goes on");
            told = Some((error, Instant::now()));
        }
        tokio::select! {
            () = ends.closing.cancelled() => return,
            () = tokio::time::sleep(STORE_RETRY) => {}
        }
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
