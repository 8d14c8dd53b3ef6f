//! One MCP client on two streams, and whoever answers it behind a link that may break.
//!
//! The client must not notice that the process that holds the home ended: messages wait until there is a link again,
//! what was under way is answered with an error that says to call again, and the next holder is greeted with the
//! client's own `initialize`, so that it knows whom it serves. Nothing is sent twice: what a call did before the link
//! broke cannot be known here.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use iris_core::contract::Error;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::lines::{Line, Lines};
use super::message::{self, Refusal};
use super::paid::{self, Paid};
use crate::tools::{Judging, World};

/// The longest line from whoever answers; far above what a reply may have.
const REPLY_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Requests under way at a time.
const FLYING_MAX: usize = 1024;

/// Answers that wait for the client to read.
const OUT_MAX: usize = 16;

/// How long a message waits for a link before it is answered with an error.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a new holder may take to return the greeting.
const GREETING_MAX: Duration = Duration::from_secs(10);

/// How long answers are waited for after the client sent its last message.
const LAST_ANSWERS_MAX: Duration = Duration::from_secs(30);

/// When to call again after a link broke, in milliseconds.
const RETRY_AFTER_MS: u64 = 500;

/// The id under which the greeting is repeated; no client has it.
const GREETING_ID: &str = "iris-sidecar:greeting";

/// Why a link is no longer carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The client has sent its last message.
    ClientLeft,
    /// Whoever answers is gone.
    LinkBroke,
}

/// One client.
pub struct Relay<R> {
    input: Lines<R>,
    bytes_max: usize,
    patience: Duration,
    /// A message that no link has taken yet, and until when it waits.
    held: Option<(Vec<u8>, Instant)>,
    /// An answer to something that was no message, not handed over yet.
    refusal: Option<Bytes>,
    shared: Shared,
    /// Asks models itself, where another process answers.
    paid: Option<Paid>,
    /// What it has for that process.
    own: Option<mpsc::Receiver<Vec<u8>>>,
}

/// What both directions use.
struct Shared {
    out: mpsc::Sender<Bytes>,
    session: Mutex<Session>,
}

#[derive(Default)]
struct Session {
    /// Requests that wait for an answer, by their id as JSON.
    flying: HashMap<String, Value>,
    /// The client's `initialize`: the line, its id as JSON, and whether it was answered.
    greeting: Option<(Vec<u8>, String, bool)>,
}

/// A client that sends by `input` is served by [`Relay`]; the future writes to `output` what the client is told, and
/// ends when the relay is dropped or the client no longer reads.
pub fn relay<R, W>(input: R, output: W, bytes_max: usize) -> (Relay<R>, impl Future<Output = io::Result<()>>)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (out, lines) = mpsc::channel(OUT_MAX);
    let shared = Shared { out, session: Mutex::default() };
    let input = Lines::new(input, bytes_max);
    let relay =
        Relay { input, bytes_max, patience: PATIENCE, held: None, refusal: None, shared, paid: None, own: None };
    (relay, write(lines, output))
}

async fn write(mut lines: mpsc::Receiver<Bytes>, mut output: impl AsyncWrite + Unpin) -> io::Result<()> {
    while let Some(line) = lines.recv().await {
        output.write_all(&line).await?;
        output.flush().await?;
    }
    Ok(())
}

impl<R: AsyncRead + Unpin> Relay<R> {
    /// The same, which asks models itself when it carries messages to another process ([`Relay::carry_and_ask`]).
    pub fn asking(mut self, judging: Arc<Judging>, world: World) -> Self {
        let (paid, own) = Paid::new(judging, world);
        (self.paid, self.own) = (Some(paid), Some(own));
        self
    }

    /// Waits for a link while the client is listened to: what it sends is held back, and answered with an error when
    /// it has waited for too long. `None` when the client left.
    ///
    /// # Errors
    /// When the client cannot be read or written.
    pub async fn wait_for<T>(&mut self, link: impl Future<Output = T>) -> io::Result<Option<T>> {
        tokio::pin!(link);
        loop {
            let until = self.held.as_ref().map(|(_, until)| *until);
            tokio::select! {
                biased;
                link = &mut link => return Ok(Some(link)),
                line = self.input.next(), if until.is_none() => match line? {
                    Some(line) => self.hold(line).await?,
                    None => return Ok(None),
                },
                () = async { tokio::time::sleep_until(until.unwrap_or_else(Instant::now)).await }, if until.is_some() => {
                    let id = self.held.take().and_then(|(line, _)| message::head(&line).ok()?.request_id().cloned());
                    if let Some(id) = id {
                        self.shared.say(nobody_answers(id).to_line()).await?;
                    }
                }
            }
        }
    }

    async fn hold(&mut self, line: Line) -> io::Result<()> {
        match self.checked(line) {
            Ok(line) => self.held = Some((line, Instant::now() + self.patience)),
            Err(refusal) => self.shared.say(refusal.to_line()).await?,
        }
        Ok(())
    }

    fn checked(&self, line: Line) -> Result<Vec<u8>, Refusal> {
        match line {
            Line::Whole(line) => message::head(&line).map(|_| line),
            Line::TooLong => Err(Refusal::too_large(self.bytes_max)),
        }
    }

    /// Carries messages between the client and `link` until either ends.
    ///
    /// # Errors
    /// When the client cannot be read or written.
    pub async fn carry(&mut self, link: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<End> {
        let (paid, own) = (self.paid.take(), self.own.take());
        let end = self.carry_and_ask(link).await;
        (self.paid, self.own) = (paid, own);
        end
    }

    /// The same to another process: what costs money is asked for here.
    ///
    /// # Errors
    /// As [`Relay::carry`].
    pub async fn carry_and_ask(&mut self, link: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<End> {
        let (read, mut to) = tokio::io::split(link);
        let mut from = Lines::new(read, REPLY_BYTES_MAX);
        if self.shared.greet(&mut from, &mut to).await.is_err() {
            return self.broke().await;
        }
        let ended = {
            let Self { input, bytes_max, held, refusal, shared, paid, own, .. } = self;
            let (shared, paid) = (&*shared, paid.as_ref());
            let up = up(input, *bytes_max, held, refusal, shared, paid, own, &mut to);
            tokio::select! {
                done = shared.down(&mut from, paid, || false) => done.map(|()| End::LinkBroke)?,
                done = up => done?,
            }
        };
        if ended == End::LinkBroke {
            return self.broke().await;
        }
        // The client may close its side at once and still wait for answers.
        let all_answered = || self.shared.session().flying.is_empty();
        if !all_answered() {
            let own = async {
                while let Ok(line) = paid::next(&mut self.own).await {
                    if send(&mut to, &line).await.is_err() {
                        return;
                    }
                }
            };
            let last = async {
                tokio::select! {
                    _ = self.shared.down(&mut from, self.paid.as_ref(), all_answered) => {}
                    () = own => {}
                }
            };
            let _ = tokio::time::timeout(LAST_ANSWERS_MAX, last).await;
        }
        let _ = to.shutdown().await;
        self.give_up().await?;
        Ok(End::ClientLeft)
    }

    async fn broke(&mut self) -> io::Result<End> {
        self.give_up().await?;
        Ok(End::LinkBroke)
    }

    /// Nothing of what was under way is carried on by the next link.
    async fn give_up(&mut self) -> io::Result<()> {
        if let Some(paid) = &self.paid {
            paid.give_up_all();
        }
        while self.own.as_mut().is_some_and(|own| own.try_recv().is_ok()) {}
        self.shared.give_up().await
    }
}

/// From the client to whoever answers. A wait that is given up loses nothing but a message that went into the link.
#[expect(clippy::too_many_arguments, reason = "the parts of a relay, borrowed apart")]
async fn up<R: AsyncRead + Unpin>(
    input: &mut Lines<R>,
    bytes_max: usize,
    held: &mut Option<(Vec<u8>, Instant)>,
    refusal: &mut Option<Bytes>,
    shared: &Shared,
    paid: Option<&Paid>,
    own: &mut Option<mpsc::Receiver<Vec<u8>>>,
    to: &mut (impl AsyncWrite + Unpin),
) -> io::Result<End> {
    loop {
        if refusal.is_some() {
            let place = shared.out.reserve().await.map_err(|_| gone())?;
            if let Some(line) = refusal.take() {
                place.send(line);
            }
        }
        let line = match held.take() {
            Some((line, _)) => line,
            None => tokio::select! {
                line = paid::next(own) => {
                    if send(to, &line?).await.is_err() {
                        return Ok(End::LinkBroke);
                    }
                    continue;
                }
                line = input.next() => match line? {
                    Some(Line::Whole(line)) => line,
                    Some(Line::TooLong) => {
                        *refusal = Some(Refusal::too_large(bytes_max).to_line());
                        continue;
                    }
                    None => return Ok(End::ClientLeft),
                },
            },
        };
        let key = match shared.register(&line) {
            Ok(key) => key,
            Err(refused) => {
                *refusal = Some(refused.to_line());
                continue;
            }
        };
        if let Some(paid) = paid {
            match &key {
                Some(key) if paid.take(&line, key) => continue,
                Some(_) => {}
                None => paid.give_up(&cancelled(&line)),
            }
        }
        if send(to, &line).await.is_err() {
            // It did not arrive whole, so nothing was done: the next link may have it.
            if let Some(key) = key {
                shared.session().flying.remove(&key);
            }
            *held = Some((line, Instant::now() + PATIENCE));
            return Ok(End::LinkBroke);
        }
    }
}

/// One message into a link.
async fn send(to: &mut (impl AsyncWrite + Unpin), line: &[u8]) -> io::Result<()> {
    to.write_all(line).await?;
    to.write_all(b"\n").await?;
    to.flush().await
}

impl Shared {
    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn say(&self, line: Bytes) -> io::Result<()> {
        self.out.send(line).await.map_err(|_| gone())
    }

    /// Notes a message of the client; gives the key of a request.
    fn register(&self, line: &[u8]) -> Result<Option<String>, Refusal> {
        let head = message::head(line)?;
        let mut session = self.session();
        if head.method.as_deref() == Some("notifications/cancelled") {
            // Nobody answers it any more.
            session.flying.remove(&cancelled(line));
        }
        let Some(id) = head.request_id() else { return Ok(None) };
        let key = id.to_string();
        if session.flying.len() >= FLYING_MAX {
            let why = format!("more than {FLYING_MAX} requests are under way");
            return Err(Refusal::unavailable(why.clone(), busy(&why)).with_id(id.clone()));
        }
        session.flying.insert(key.clone(), id.clone());
        if head.method.as_deref() == Some("initialize") {
            let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
            session.greeting = Some((line.to_vec(), key.clone(), false));
        }
        Ok(Some(key))
    }

    /// Makes a new holder know the client as the one before it did.
    async fn greet(
        &self,
        from: &mut Lines<impl AsyncRead + Unpin>,
        to: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        let greeting = self.session().greeting.clone();
        let Some((mut line, _, is_answered)) = greeting else { return Ok(()) };
        if is_answered {
            let mut message: Value = serde_json::from_slice(line.trim_ascii())?;
            message["id"] = GREETING_ID.into();
            line = message.to_string().into_bytes();
        }
        line.push(b'\n');
        to.write_all(&line).await?;
        to.flush().await?;
        if !is_answered {
            return Ok(());
        }
        let returned = async {
            while let Some(Line::Whole(line)) = from.next().await? {
                if message::head(&line).is_ok_and(|head| head.method.is_none() && head.id == Some(GREETING_ID.into())) {
                    return Ok(());
                }
            }
            Err(io::Error::from(io::ErrorKind::UnexpectedEof))
        };
        tokio::time::timeout(GREETING_MAX, returned).await??;
        to.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n").await?;
        to.flush().await
    }

    /// From whoever answers to the client, until the link ends or `is_enough`.
    async fn down(
        &self,
        from: &mut Lines<impl AsyncRead + Unpin>,
        paid: Option<&Paid>,
        is_enough: impl Fn() -> bool,
    ) -> io::Result<()> {
        // A link that fails has ended.
        while let Ok(Some(Line::Whole(mut line))) = from.next().await {
            // What a process wrote while it was killed may end anywhere.
            let Ok(head) = message::head(&line) else { continue };
            if let (None, Some(id)) = (&head.method, &head.id) {
                if paid.is_some_and(|paid| paid.takes_answer(id, &line)) {
                    continue;
                }
                let key = id.to_string();
                let mut session = self.session();
                session.flying.remove(&key);
                if let Some((_, greeting, is_answered)) = &mut session.greeting {
                    *is_answered |= *greeting == key;
                }
            }
            line.push(b'\n');
            self.say(line.into()).await?;
            if is_enough() {
                break;
            }
        }
        Ok(())
    }

    /// Answers everything under way but a greeting, which the next link gets again.
    async fn give_up(&self) -> io::Result<()> {
        let lost: Vec<Value> = {
            let mut session = self.session();
            let kept =
                session.greeting.as_ref().filter(|(_, _, is_answered)| !is_answered).map(|(_, key, _)| key.clone());
            let kept = kept.and_then(|key| session.flying.remove_entry(&key));
            let lost = session.flying.drain().map(|(_, id)| id).collect();
            session.flying.extend(kept);
            lost
        };
        for id in lost {
            self.say(lost_on_the_way(id).to_line()).await?;
        }
        Ok(())
    }
}

/// The id, as JSON, of the request that a message takes back.
fn cancelled(line: &[u8]) -> String {
    let message: Value = serde_json::from_slice(line).unwrap_or_default();
    message["params"]["requestId"].to_string()
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the client no longer reads")
}

fn busy(why: &str) -> Value {
    Error::storage_busy(why, RETRY_AFTER_MS).envelope()["error"].clone()
}

fn lost_on_the_way(id: Value) -> Refusal {
    let why = "the process that was answering ended; call again (a call that stores something may have been carried out: \
               look with get_traces first)";
    Refusal::unavailable(why, busy("the process that was answering ended")).with_id(id)
}

fn nobody_answers(id: Value) -> Refusal {
    let why = "no process answers for this home yet; call again";
    Refusal::unavailable(why, busy("no process answers for this home yet")).with_id(id)
}

#[cfg(test)]
mod tests;
