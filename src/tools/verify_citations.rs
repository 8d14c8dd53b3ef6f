//! `verify_citations`: finds what an output cites, reads the sources that may be read, and asks a model about each.
//!
//! What could not be fetched stands under `resolve_error`, what could not be judged under `judge_error`; neither counts as
//! unsupported.

mod asking;
mod resolving;

use std::time::Duration;

use iris_core::citation::{self, CITATIONS_MAX, Citation, Found, Tally};
use iris_core::contract::{
    CheckedCitation, CitationFailure, CitationRuling, CitedAt, CitedSource, Error, ResolveStatus, VerifyCitationsArgs,
    VerifyCitationsReply, Warning,
};
use iris_core::evaluate::{GivenTexts, Judged, Ruled};
use iris_core::judge::Model;
use iris_core::rules::{Kind, Question};
use serde_json::{Value, json};

use super::evaluate_with_llm_judge::milliseconds;
use super::judging::{Judging, Place, broke};
use super::{App, Caller};
use asking::{Claims, Outcome};
use resolving::Resolved;

/// Citations that are verified when the call does not say.
const CITATIONS: usize = 20;

impl App {
    pub(super) async fn verify_citations(&self, args: VerifyCitationsArgs, caller: &Caller) -> Result<Value, Error> {
        let judging = self.judging()?;
        let model = judging.model(&args.model, args.provider)?;
        let trace = self.linked(args.trace_id.as_deref(), caller).await?;
        let output = args.output.clone();
        let judged = judging.verify(args, &model, &Place::new(caller.tenant.clone(), self.world)).await?;
        self.keep_judged(judged, GivenTexts { output: &output, ..GivenTexts::default() }, trace.as_ref(), caller).await
    }
}

/// How long a call waits for its turn.
const TURN_MAX: Duration = Duration::from_secs(60);

/// All that became of the citations of one call.
struct Verified {
    found: Found,
    resolved: Vec<Resolved>,
    /// By citation; none for one whose source was not read.
    outcomes: Vec<Option<Outcome>>,
    cost_usd: f64,
}

impl Judging {
    /// Verifies the citations of a text.
    ///
    /// # Errors
    /// `IRIS_JUDGE_FAILED` when sources were read and the judge failed on each that it was asked about.
    pub async fn verify(&self, args: VerifyCitationsArgs, model: &Model, place: &Place) -> Result<Judged, Error> {
        let _turn = self.turn(TURN_MAX).await?;
        let searching = tokio::task::spawn_blocking(move || (citation::find(&args.output), args));
        let (found, args) = searching.await.map_err(|error| broke(&error))?;
        let mut warnings = Vec::new();
        let most = args.max_citations.and_then(|most| usize::try_from(most).ok()).unwrap_or(CITATIONS);
        let resolved = self.resolve(&found.citations, most, &args, &mut warnings).await;
        let claims = Claims::new(self, &args, &found, &resolved, model, place).await?;
        let (outcomes, cost_usd) = claims.asked(self, &args, model, place, &mut warnings).await;
        let verified = Verified { found, resolved, outcomes, cost_usd };
        let tally = verified.tally();
        let failure = verified.outcomes.iter().flatten().find_map(Outcome::failure);
        if let Some(failed) = failure.filter(|_| tally.judged == 0) {
            let spent = iris_core::judge::rounded_usd(cost_usd);
            return Err(Error::judge_failed(Some(failed.kind), tally.resolved, &failed.words, spent));
        }
        let judge = self.provenance(model, claims.redactor(), &warnings);
        Ok(verified.ruled(model, tally, warnings, judge))
    }
}

impl Verified {
    fn tally(&self) -> Tally {
        let count = |wanted: fn(&Outcome) -> bool| {
            u64::try_from(self.outcomes.iter().flatten().filter(|one| wanted(one)).count()).unwrap_or(u64::MAX)
        };
        let resolved = self.resolved.iter().filter(|one| matches!(one, Resolved::Read(_))).count();
        Tally {
            resolved: u64::try_from(resolved).unwrap_or(u64::MAX),
            judged: count(|one| matches!(one, Outcome::Ruled(..))),
            supported: count(|one| matches!(one, Outcome::Ruled(said, _) if said.value.supported)),
        }
    }

    fn ruled(self, model: &Model, tally: Tally, warnings: Vec<Warning>, judge: Value) -> Judged {
        let (score, passed) = (tally.score(), tally.passed());
        let total = u64::try_from(self.found.total).unwrap_or(u64::MAX);
        let mut truncated = Vec::new();
        if self.found.total > self.found.citations.len() {
            truncated.push(format!("citations[{CITATIONS_MAX}..{total}]"));
        }
        if self.found.is_cut {
            truncated.push("output: citations beyond its first MiB are not looked for".to_owned());
        }
        let cost_usd = iris_core::judge::rounded_usd(self.cost_usd);
        let citations = self.found.citations.iter().zip(self.resolved).zip(self.outcomes);
        let reply = VerifyCitationsReply {
            untrusted: None,
            id: String::new(),
            trace_id: None,
            overall_score: score,
            passed,
            total_unsupported: tally.unsupported(),
            total_citations_found: total,
            total_resolved: tally.resolved,
            total_judged: tally.judged,
            total_supported: tally.supported,
            total_cost_usd: cost_usd,
            citations: citations.map(|((citation, resolved), outcome)| checked(citation, resolved, outcome)).collect(),
            warnings,
            truncated,
            provenance: Value::Null,
        };
        let message = match passed {
            Some(_) => {
                format!("{} of {} judged citations are supported by their source", tally.supported, tally.judged)
            }
            None => "no citation was judged".to_owned(),
        };
        Judged {
            rule: format!("semantic_citation_verify:{}/{}", model.provider.as_str(), model.name),
            kind: Kind::Verification,
            question: Question::Grounded,
            ruled: score.zip(passed).map_or(Ruled::Nothing, |(score, passed)| Ruled::Scored(score, passed)),
            message,
            judge,
            answered: json!(reply),
        }
    }
}

fn checked(citation: &Citation, resolved: Resolved, outcome: Option<Outcome>) -> CheckedCitation {
    let place = |at: usize| u64::try_from(at).unwrap_or(u64::MAX);
    let (resolve_status, resolve_error, source) = match resolved {
        Resolved::Read(page) => {
            let source = CitedSource {
                url: page.url.clone(),
                status: page.status,
                content_type: page.content_type.clone(),
                bytes_fetched: page.bytes_fetched,
                truncated: page.truncated,
            };
            (ResolveStatus::Ok, None, Some(source))
        }
        Resolved::Skipped(failure) => (ResolveStatus::Skipped, Some(told(failure.kind, failure.message)), None),
        Resolved::Failed(failure) => (ResolveStatus::Error, Some(told(failure.kind, failure.message)), None),
    };
    let (judge, judge_error) = match outcome {
        Some(Outcome::Ruled(said, suspicions)) => {
            let ruling = CitationRuling {
                supported: said.value.supported,
                confidence: said.value.confidence,
                rationale: said.value.rationale,
                cost_usd: said.bill.told_usd(),
                latency_ms: milliseconds(said.bill.latency),
                input_tokens: said.bill.input_tokens,
                output_tokens: said.bill.output_tokens,
                suspicions,
            };
            (Some(ruling), None)
        }
        Some(Outcome::Failed(failed)) => (None, Some(told(failed.kind.as_str(), failed.words))),
        Some(Outcome::NotAsked(kind, why)) => (None, Some(told(kind, why))),
        None => (None, None),
    };
    CheckedCitation {
        citation: CitedAt {
            raw: citation.raw.clone(),
            kind: citation.kind.as_str().to_owned(),
            identifier: citation.identifier.clone(),
            offset_start: place(citation.span.start()),
            offset_end: place(citation.span.end()),
        },
        resolve_status,
        resolve_error,
        judge_error,
        source,
        judge,
    }
}

fn told(kind: &str, message: String) -> CitationFailure {
    CitationFailure { kind: kind.to_owned(), message }
}
