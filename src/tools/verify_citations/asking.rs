//! One question a source, together within the call's money.

use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use iris_core::citation::{Citation, Found};
use iris_core::contract::{Error, VerifyCitationsArgs, Warning};
use iris_core::judge::{
    Claim, Kind, Model, Prompt, Redactor, Support, TokenField, ask_whether_supported, read_support,
};

use super::Resolved;
use crate::judge::{Ask, Failed, Said};
use crate::tools::evaluate_with_llm_judge::suspicions;
use crate::tools::judging::{Judging, Money, Place, broke};

/// Tokens of an answer.
const OUTPUT_TOKENS: u64 = 256;
/// The same of a model that reasons first and whose reasoning counts.
const REASONED_TOKENS: u64 = 2048;
/// How long one request may take.
const REQUEST_MS: u64 = 60_000;
/// Questions at a time while the money reaches for all of them.
const AT_ONCE: usize = 4;
/// Characters on each side of a citation in which personal data is looked for, so that a value is seen whole before the
/// context is cut to size.
const LOOKED_AT_CHARS: usize = 4_000;
/// Characters on each side of a citation that say what is claimed.
const CONTEXT_CHARS: usize = 200;

/// What became of one question.
#[derive(Debug)]
pub(super) enum Outcome {
    /// A ruling, and what looked made for a judge.
    Ruled(Said<Support>, Vec<String>),
    /// The provider failed.
    Failed(Failed),
    /// It was not asked: kind and why.
    NotAsked(&'static str, String),
}

impl Outcome {
    /// How the provider failed.
    pub fn failure(&self) -> Option<&Failed> {
        match self {
            Self::Failed(failed) => Some(failed),
            _ => None,
        }
    }
}

/// One question.
struct One {
    prompt: Prompt,
    /// What the judge reads, to tell a quote from a ruling.
    texts: [String; 2],
}

/// The questions of a call, by citation.
pub(super) struct Claims {
    all: Vec<Option<One>>,
    redactor: Option<Redactor>,
    output_tokens_max: u64,
}

/// A question under way.
type Asking<'a> = Pin<Box<dyn Future<Output = Option<Outcome>> + Send + 'a>>;

/// What a call has spent and set aside, and why it asks no more.
#[derive(Default)]
struct Spent {
    usd: f64,
    stopped: Option<(&'static str, String)>,
}

impl Claims {
    /// Puts the question about each source that was read.
    pub async fn new(
        judging: &Judging,
        args: &VerifyCitationsArgs,
        found: &Found,
        resolved: &[Resolved],
        model: &Model,
        place: &Place,
    ) -> Result<Self, Error> {
        let manner = judging.judge().manner(model, 0.0);
        let output_tokens_max =
            if manner.token_field == TokenField::MaxCompletionTokens { REASONED_TOKENS } else { OUTPUT_TOKENS };
        let (output, citations, resolved) = (args.output.clone(), found.citations.clone(), resolved.to_vec());
        let (mut redactor, nonces): (_, Vec<_>) =
            (judging.redactor(), citations.iter().map(|_| place.nonce()).collect());
        // Looking for personal data in megabytes is no work for the threads that sockets wait on.
        let putting = tokio::task::spawn_blocking(move || {
            let letters: Vec<char> = if redactor.is_some() { output.chars().collect() } else { Vec::new() };
            let questions = citations.iter().zip(&resolved).zip(&nonces).map(|((citation, resolved), nonce)| {
                let Resolved::Read(page) = resolved else { return None };
                let (context, source) = match &mut redactor {
                    Some(redactor) => (context(redactor, &letters, citation), redactor.redact(&page.text)),
                    None => (citation.context.clone(), page.text.clone()),
                };
                let raw = redactor.as_mut().map_or_else(|| citation.raw.clone(), |one| one.redact(&citation.raw));
                let prompt = ask_whether_supported(&Claim { raw: &raw, context: &context, source: &source }, nonce);
                Some(One { prompt, texts: [context, source] })
            });
            let all: Vec<_> = questions.collect();
            (all, redactor)
        });
        let (all, redactor) = putting.await.map_err(|error| broke(&error))?;
        Ok(Self { all, redactor, output_tokens_max })
    }

    /// What replaced personal data, when that is configured.
    pub const fn redactor(&self) -> Option<&Redactor> {
        self.redactor.as_ref()
    }

    /// Asks them, and says what all of it cost in US dollars.
    pub async fn asked(
        &self,
        judging: &Judging,
        args: &VerifyCitationsArgs,
        model: &Model,
        place: &Place,
        warnings: &mut Vec<Warning>,
    ) -> (Vec<Option<Outcome>>, f64) {
        let money = Money {
            field: "max_cost_usd_total",
            default: ("citations.default_usd_call", judging.citations.default_usd_call),
            ceiling: ("citations.ceiling_usd_call", judging.citations.ceiling_usd_call),
        };
        let limit_usd = money.of(args.max_cost_usd_total, warnings).usd;
        let timeout = Duration::from_millis(REQUEST_MS.min(judging.judge().config().request_ms_max));
        let call =
            |one| Ask { model, prompt: one, output_tokens_max: self.output_tokens_max, temperature: 0.0, timeout };
        let worst: f64 = self.all.iter().flatten().map(|one| call(&one.prompt).worst_usd()).sum();
        // Where it may run out, each question waits for what the one before it did cost.
        let at_once = if worst <= limit_usd { AT_ONCE } else { 1 };
        let spent = Mutex::new(Spent::default());
        let mut asking: Vec<Asking<'_>> = Vec::with_capacity(self.all.len());
        for one in &self.all {
            let (call, spent) = (&call, &spent);
            asking.push(Box::pin(async move {
                let one = one.as_ref()?;
                Some(ask_one(judging, &call(&one.prompt), one, limit_usd, spent, place).await)
            }));
        }
        let outcomes = futures_util::stream::iter(asking).buffered(at_once).collect().await;
        let usd = lock(&spent).usd;
        (outcomes, usd)
    }
}

async fn ask_one(
    judging: &Judging,
    call: &Ask<'_>,
    one: &One,
    limit_usd: f64,
    spent: &Mutex<Spent>,
    place: &Place,
) -> Outcome {
    let worst = call.worst_usd();
    let reserved = {
        let mut spent = lock(spent);
        if let Some((kind, why)) = &spent.stopped {
            return Outcome::NotAsked(kind, why.clone());
        }
        let over = |left: f64, by: &str| {
            let why = format!("it could cost {worst:.4} US dollars, and {left:.4} are left {by}");
            ("cost_cap_reached", why)
        };
        let refused = if spent.usd + worst > limit_usd {
            Err(over(limit_usd - spent.usd, "of max_cost_usd_total"))
        } else {
            let reserved = judging.judge().ledger().reserve(&place.tenant, worst, place.now_ms());
            reserved.map_err(|stop| over(stop.left_usd, &format!("of {}", stop.setting)))
        };
        match refused {
            Ok(reserved) => {
                spent.usd += worst;
                reserved
            }
            Err((kind, why)) => {
                spent.stopped = Some((kind, why.clone()));
                return Outcome::NotAsked(kind, why);
            }
        }
    };
    let [context, source] = &one.texts;
    let said = judging.judge().ask(call, reserved, |text| read_support(text, &[context, source])).await;
    let cost = said.as_ref().map_or_else(|failed| failed.bill.cost_usd, |said| said.bill.cost_usd);
    let mut spent = lock(spent);
    spent.usd += cost - worst;
    match said {
        Ok(said) => Outcome::Ruled(said, suspicions(&one.prompt)),
        Err(failed) => {
            if failed.kind == Kind::Auth && spent.stopped.is_none() {
                spent.stopped = Some((Kind::Auth.as_str(), "not asked: the provider did not take the key".to_owned()));
            }
            Outcome::Failed(failed)
        }
    }
}

fn lock(spent: &Mutex<Spent>) -> MutexGuard<'_, Spent> {
    spent.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The text around a citation without personal data, cut to size after that was looked for.
fn context(redactor: &mut Redactor, letters: &[char], citation: &Citation) -> String {
    let (start, end) = (citation.span.start().min(letters.len()), citation.span.end().min(letters.len()));
    let before: String = letters[start.saturating_sub(LOOKED_AT_CHARS)..start].iter().collect();
    let after: String = letters[end..letters.len().min(end.saturating_add(LOOKED_AT_CHARS))].iter().collect();
    let (before, after) = (redactor.redact(&before), redactor.redact(&after));
    let lead: String = {
        let count = before.chars().count();
        before.chars().skip(count.saturating_sub(CONTEXT_CHARS)).collect()
    };
    let trail: String = after.chars().take(CONTEXT_CHARS).collect();
    format!("{lead}{}{trail}", redactor.redact(&citation.raw))
}
