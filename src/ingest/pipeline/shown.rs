//! Open traces as a reader sees them: whole from memory, or put together with what the store has of them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use iris_core::assemble::View;
use iris_core::model::{Evaluation, RowKey, SpanId, Tenant, Trace};
use tokio::sync::oneshot;

use super::super::worker::Task;
use super::decode::read_again;
use super::owner::Command;
use super::{Mind, Pipeline};
use crate::store::{self, Loaded};

/// The most open traces shown at a time.
const OPEN_SHOWN_MAX: usize = 100;
/// Of these, the most for which the store is asked: each costs a search of its own.
const ELSEWHERE_SHOWN_MAX: usize = 8;

impl Pipeline {
    /// An open trace with the verdict it would have now: `in_progress`, never stored, and what is missing is no
    /// finding. What of it was given up for memory, or was stored before a start, is read from the store. Nothing
    /// for a trace that is not open, that gained nothing since the store's verdict, or in which there is nothing to
    /// judge.
    ///
    /// # Errors
    /// The store's, when part of the trace is there and cannot be read.
    pub async fn open_trace(&self, key: &RowKey) -> Result<Option<(Trace, Evaluation)>, store::Error> {
        let (answer, view) = oneshot::channel();
        if self.inner.commands.send(Command::View(key.clone(), answer)).await.is_err() {
            return Ok(None);
        }
        match view.await {
            Ok(Some(view)) => self.shown(view).await,
            _ => Ok(None),
        }
    }

    /// The newest open traces of a tenant, newest first, at most 100, as [`Pipeline::open_trace`] gives them. Of
    /// those that are partly in the store only the newest few are among them. A trace whose verdict is just being
    /// stored may be here and in the store: the caller drops one by its id.
    pub async fn open_traces(&self, tenant: &Tenant) -> Vec<(Trace, Evaluation)> {
        let (answer, views) = oneshot::channel();
        let command = Command::Views(tenant.clone(), OPEN_SHOWN_MAX, answer);
        if self.inner.commands.send(command).await.is_err() {
            return Vec::new();
        }
        let Ok(mut views) = views.await else { return Vec::new() };
        let mut asked = 0;
        views.retain(|view| {
            asked += usize::from(view.elsewhere.is_some());
            view.elsewhere.is_none() || asked <= ELSEWHERE_SHOWN_MAX
        });
        let mut whole = Vec::with_capacity(views.len());
        for view in views {
            match self.whole(view).await {
                Ok(found) => whole.push(found),
                Err(error) => tracing::debug!(%error, "an open trace could not be read from the store"),
            }
        }
        let mind = self.inner.mind.clone();
        let work = move || whole.into_iter().filter_map(|(view, loaded)| judged(view, loaded, &mind)).collect();
        match self.inner.pool.submit(Task::QUESTION, work).await.await {
            Ok(Ok(shown)) => shown,
            _ => Vec::new(),
        }
    }

    async fn shown(&self, view: View) -> Result<Option<(Trace, Evaluation)>, store::Error> {
        let (view, loaded) = self.whole(view).await?;
        let mind = self.inner.mind.clone();
        let work = move || judged(view, loaded, &mind);
        Ok(self.inner.pool.submit(Task::QUESTION, work).await.await.ok().and_then(Result::ok).flatten())
    }

    /// The view with what the store has of it, where it has any.
    async fn whole(&self, view: View) -> Result<(View, Option<Loaded>), store::Error> {
        let Some(expected) = view.elsewhere else { return Ok((view, None)) };
        let store = &self.inner.store;
        let mut loaded = store.load(&view.key).await?;
        // What waits for its commit is in neither place. A store that cannot commit still answers.
        if loaded.rows.len() < expected && store.flush().await.is_ok() {
            loaded = store.load(&view.key).await?;
        }
        Ok((view, Some(loaded)))
    }
}

/// Puts a trace together and judges it as it stands.
fn judged(mut view: View, loaded: Option<Loaded>, mind: &Mind) -> Option<(Trace, Evaluation)> {
    if let Some(loaded) = loaded
        && !complete(&mut view, loaded, mind)
    {
        return None;
    }
    mind.provisional(&view)
}

/// Adds the store's rows. False when all there is was judged already, and the store has the verdict.
fn complete(view: &mut View, loaded: Loaded, mind: &Mind) -> bool {
    let mut first: HashMap<(SpanId, u64), u64> = HashMap::with_capacity(loaded.rows.len() + view.rows.len());
    let places = loaded.rows.iter().map(|row| (row.span_id, row.content_hash, row.position.seq));
    for (span, hash, seq) in places.chain(view.rows.iter().map(|row| (row.span_id, row.content_hash, row.position.seq)))
    {
        let earliest = first.entry((span, hash)).or_insert(seq);
        *earliest = seq.min(*earliest);
    }
    let is_new = |covered: u64| first.values().any(|seq| *seq > covered);
    if let Some(stored) = &loaded.evaluation
        && loaded.version > 0
        && !is_new(stored.seen_through)
    {
        return false;
    }
    let here: HashSet<(SpanId, u64)> = view.rows.iter().map(|row| (row.span_id, row.content_hash)).collect();
    let read = read_again(loaded.rows, mind);
    view.rows.extend(read.into_iter().filter(|row| !here.contains(&(row.span_id, row.content_hash))));
    if !view.judged {
        view.version = view.version.max(loaded.version + 1);
    }
    view.seen_through = view.rows.iter().map(|row| row.position.seq).fold(view.seen_through, u64::max);
    if view.previous.is_none() {
        view.previous = loaded.evaluation.map(Arc::new);
    }
    true
}
