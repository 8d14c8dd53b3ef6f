//! The two tools that cost money, called through a process that only carries messages: it asks the model itself, with the
//! keys and within the limits of the process that the agent started, and hands what came out to whoever holds the home.
//!
//! A call goes its way in two messages. The first asks the holder whether the call could be stored; nothing is spent
//! before that. The second is the call itself with what came out in its `_meta`, so that the holder answers it as it
//! answers every call, in the client's own version of the protocol. Only local peers are believed.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use iris_core::contract::{Error, EvaluateWithLlmJudgeArgs, VerifyCitationsArgs, parse};
use iris_core::evaluate::Judged;
use iris_core::model::Tenant;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::tools::{Judging, Place, World};

/// Where in `_meta` a call carries what it became.
pub(super) const KEY: &str = "iris-sidecar/judged";

/// Begins the ids of the messages that ask whether a call could be stored; no client has such an id.
const ASKED: &str = "iris-sidecar:asked:";

/// Finished calls that wait for the link.
const READY_MAX: usize = 16;

/// What a call became before the holder sees it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Made {
    /// Nothing yet: could it be stored?
    Asks,
    /// A judgement.
    Judged(Box<Judged>),
    /// A failure, as the contract tells it.
    Failed(Value),
}

impl Made {
    /// What stands in the `_meta` of a call of one of the two tools.
    pub fn of(name: &str, meta: &Map<String, Value>) -> Option<Self> {
        meta.get(KEY).filter(|_| is_paid(name)).and_then(|made| serde_json::from_value(made.clone()).ok())
    }
}

fn is_paid(name: &str) -> bool {
    matches!(name, "evaluate_with_llm_judge" | "verify_citations")
}

/// Asks models for the client of a process that carries messages.
#[derive(Clone)]
pub(super) struct Paid {
    judging: Arc<Judging>,
    world: World,
    shared: Arc<Shared>,
}

/// What the directions of a link and the calls under way share.
struct Shared {
    /// Messages for the holder.
    ready: mpsc::Sender<Vec<u8>>,
    /// Who waits for the holder's word, by the id of the message.
    waiting: Mutex<HashMap<String, oneshot::Sender<Value>>>,
    /// Calls under way, by the id that the client gave them, as JSON.
    working: Mutex<HashMap<String, AbortHandle>>,
    next: AtomicU64,
}

impl Paid {
    /// One, and the messages that it has for the holder.
    pub fn new(judging: Arc<Judging>, world: World) -> (Self, mpsc::Receiver<Vec<u8>>) {
        let (ready, lines) = mpsc::channel(READY_MAX);
        let shared = Shared { ready, waiting: Mutex::default(), working: Mutex::default(), next: AtomicU64::new(0) };
        (Self { judging, world, shared: Arc::new(shared) }, lines)
    }

    /// Takes a client's message that calls one of the two tools, under the key of its id; false when it is none.
    pub fn take(&self, line: &[u8], key: &str) -> bool {
        let Some(call) = Call::of(line) else { return false };
        let (paid, own) = (self.clone(), key.to_owned());
        let work = tokio::spawn(async move {
            let made = paid.make(&call).await.unwrap_or_else(|error| Made::Failed(error.envelope()));
            paid.shared.lock(&paid.shared.working).remove(&own);
            // A link that broke has answered the client already.
            let _ = paid.shared.ready.send(call.with(&made, None)).await;
        });
        self.shared.lock(&self.shared.working).insert(key.to_owned(), work.abort_handle());
        true
    }

    /// Gives up a call that its client no longer waits for.
    pub fn give_up(&self, key: &str) {
        if let Some(work) = self.shared.lock(&self.shared.working).remove(key) {
            work.abort();
        }
    }

    /// Gives up all of them: the link broke, and the client was told so.
    pub fn give_up_all(&self) {
        self.shared.lock(&self.shared.working).drain().for_each(|(_, work)| work.abort());
        self.shared.lock(&self.shared.waiting).clear();
    }

    /// Takes the holder's answer to a message of our own; false when it is the client's.
    pub fn takes_answer(&self, id: &Value, line: &[u8]) -> bool {
        let Some(id) = id.as_str().filter(|id| id.starts_with(ASKED)) else { return false };
        if let Some(waits) = self.shared.lock(&self.shared.waiting).remove(id) {
            let _ = waits.send(serde_json::from_slice(line).unwrap_or_default());
        }
        true
    }

    /// Says what is wrong before anything is asked of anybody, asks the holder, then the model.
    async fn make(&self, call: &Call) -> Result<Made, Error> {
        let place = Place::new(Tenant::local(), self.world);
        let judged = if call.name == "verify_citations" {
            let args: VerifyCitationsArgs = parse(call.arguments.clone())?;
            let model = self.judging.model(&args.model, args.provider)?;
            match self.permitted(call).await {
                Ok(arguments) => self.judging.verify(parse(arguments)?, &model, &place).await?,
                Err(failed) => return Ok(failed),
            }
        } else {
            let args: EvaluateWithLlmJudgeArgs = parse(call.arguments.clone())?;
            let model = self.judging.model(&args.model, args.provider)?;
            match self.permitted(call).await {
                Ok(arguments) => self.judging.score(parse(arguments)?, &model, &place).await?,
                Err(failed) => return Ok(failed),
            }
        };
        Ok(Made::Judged(Box::new(judged)))
    }

    /// The arguments as the holder lets them be looked at, or why it would not store what came of them.
    async fn permitted(&self, call: &Call) -> Result<Value, Made> {
        let id = format!("{ASKED}{}", self.shared.next.fetch_add(1, Ordering::Relaxed));
        let (tell, told) = oneshot::channel();
        self.shared.lock(&self.shared.waiting).insert(id.clone(), tell);
        let busy = || Made::Failed(Error::storage_busy("the process that holds the home is gone", 500).envelope());
        if self.shared.ready.send(call.with(&Made::Asks, Some(&id))).await.is_err() {
            return Err(busy());
        }
        let answer = told.await.map_err(|_| busy())?;
        let result = &answer["result"];
        if result["isError"] == true {
            return Err(Made::Failed(result["structuredContent"].clone()));
        }
        let content = &result["structuredContent"];
        match (content["storable"] == true, &content["arguments"]) {
            (true, Value::Null) => Ok(call.arguments.clone()),
            (true, arguments) => Ok(arguments.clone()),
            // An older holder does not know the question.
            (false, _) => Err(busy()),
        }
    }
}

impl Shared {
    fn lock<'a, T>(&self, what: &'a Mutex<T>) -> MutexGuard<'a, T> {
        what.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client's call of one of the two tools.
struct Call {
    message: Value,
    name: String,
    arguments: Value,
}

impl Call {
    fn of(line: &[u8]) -> Option<Self> {
        let message: Value = serde_json::from_slice(line.trim_ascii()).ok()?;
        let name = message["params"]["name"].as_str().filter(|name| is_paid(name))?.to_owned();
        (message["method"] == "tools/call").then(|| {
            let arguments = message["params"].get("arguments").cloned().unwrap_or_default();
            Self { message, name, arguments }
        })
    }

    /// The call as it goes to the holder.
    fn with(&self, made: &Made, id: Option<&str>) -> Vec<u8> {
        let mut message = self.message.clone();
        if let Some(id) = id {
            message["id"] = json!(id);
        }
        if !message["params"]["_meta"].is_object() {
            message["params"]["_meta"] = json!({});
        }
        message["params"]["_meta"][KEY] = json!(made);
        message.to_string().into_bytes()
    }
}

/// Messages of this process for the holder; none where it asks no model.
pub(super) async fn next(lines: &mut Option<mpsc::Receiver<Vec<u8>>>) -> io::Result<Vec<u8>> {
    match lines {
        Some(lines) => lines.recv().await.ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe)),
        None => std::future::pending().await,
    }
}
