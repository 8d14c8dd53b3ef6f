//! The messages accepted lately, by hash, so that a resend is answered and not kept twice.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::submit::Refused;

/// How many accepted messages are remembered.
pub const REMEMBERED_MAX: usize = 65_536;

/// What became of a message: `None` while it is being written.
type Outcome = Option<Result<(), Refused>>;

/// The last [`REMEMBERED_MAX`] accepted messages and those being written. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Window(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    messages: HashMap<u128, Message>,
    /// The accepted ones, oldest first.
    accepted: VecDeque<u128>,
}

#[derive(Debug)]
enum Message {
    Accepted,
    Writing(watch::Receiver<Outcome>),
}

/// What is known of a message.
pub(super) enum Claim {
    /// Nothing: whoever asked writes it and says how that ended.
    New(Writing),
    /// It was accepted.
    Accepted,
    /// Somebody is writing it; [`outcome`] waits for the end.
    Writing(Waiting),
}

/// Somebody else's write.
pub(super) struct Waiting(watch::Receiver<Outcome>);

/// The duty to say how a write ended. Dropped without that, the message is as unknown as before, and those
/// who wait for it are told to try again.
pub(super) struct Writing {
    window: Window,
    hash: u128,
    say: watch::Sender<Outcome>,
}

impl Window {
    /// Remembers messages accepted before the start, oldest first.
    pub(super) fn with(hashes: impl IntoIterator<Item = u128>) -> Self {
        let window = Self::default();
        {
            let mut known = window.lock();
            for hash in hashes {
                known.accept(hash);
            }
        }
        window
    }

    pub(super) fn claim(&self, hash: u128) -> Claim {
        match self.lock().messages.entry(hash) {
            Entry::Occupied(entry) => match entry.get() {
                Message::Accepted => Claim::Accepted,
                Message::Writing(outcome) => Claim::Writing(Waiting(outcome.clone())),
            },
            Entry::Vacant(entry) => {
                let (say, outcome) = watch::channel(None);
                entry.insert(Message::Writing(outcome));
                Claim::New(Writing { window: self.clone(), hash, say })
            }
        }
    }

    /// A panic elsewhere cannot leave the maps half changed, so a poisoned lock is as good as any.
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn accept(&mut self, hash: u128) {
        if !matches!(self.messages.insert(hash, Message::Accepted), Some(Message::Accepted)) {
            self.accepted.push_back(hash);
        }
        while self.accepted.len() > REMEMBERED_MAX {
            if let Some(oldest) = self.accepted.pop_front() {
                self.messages.remove(&oldest);
            }
        }
    }
}

impl Writing {
    /// Says how it ended, to the window and to everybody who waits.
    pub(super) fn end(self, outcome: Result<(), Refused>) {
        {
            let mut known = self.window.lock();
            match outcome {
                Ok(()) => known.accept(self.hash),
                Err(_) => drop(known.messages.remove(&self.hash)),
            }
        }
        self.say.send_replace(Some(outcome));
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        if self.say.borrow().is_none() {
            self.window.lock().messages.remove(&self.hash);
        }
    }
}

impl Waiting {
    /// How somebody else's write ended; `None` when it never did.
    pub(super) async fn outcome(mut self) -> Option<Result<(), Refused>> {
        let outcome = self.0.wait_for(Option::is_some).await.ok()?;
        outcome.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(window: &Window, hash: u128) {
        match window.claim(hash) {
            Claim::New(writing) => writing.end(Ok(())),
            _ => panic!("{hash} is known"),
        }
    }

    #[test]
    fn remembers_exactly_the_newest() {
        let window = Window::with([7, 7, 8]);
        assert!(matches!(window.claim(7), Claim::Accepted));
        for hash in 0..REMEMBERED_MAX as u128 {
            accept(&window, 1000 + hash);
        }
        assert!(matches!(window.claim(1000), Claim::Accepted), "the oldest of exactly as many as are kept");
        assert!(matches!(window.claim(7), Claim::New(_)), "pushed out");
        assert_eq!(window.lock().messages.len(), REMEMBERED_MAX);
        assert_eq!(window.lock().accepted.len(), REMEMBERED_MAX);
    }

    #[tokio::test]
    async fn a_second_sender_learns_the_outcome_of_the_first() {
        let window = Window::default();
        for outcome in [Ok(()), Err(Refused::Disk)] {
            let Claim::New(writing) = window.claim(1) else { panic!("known") };
            let Claim::Writing(waiting) = window.claim(1) else { panic!("not being written") };
            writing.end(outcome.clone());
            assert_eq!(waiting.outcome().await, Some(outcome.clone()));
            match window.claim(1) {
                Claim::Accepted => assert!(outcome.is_ok()),
                Claim::New(_) => assert!(outcome.is_err(), "a failed write is forgotten"),
                Claim::Writing(_) => panic!("still being written"),
            }
            *window.lock() = Known::default();
        }
    }

    #[tokio::test]
    async fn an_abandoned_write_is_forgotten() {
        let window = Window::default();
        let Claim::New(writing) = window.claim(1) else { panic!("known") };
        let Claim::Writing(waiting) = window.claim(1) else { panic!("not being written") };
        drop(writing);
        assert_eq!(waiting.outcome().await, None);
        assert!(matches!(window.claim(1), Claim::New(_)));
    }
}
