//! `evaluate_with_llm_judge`: one output, one question, one model's score, held against the question's threshold.

use iris_core::contract::{Error, EvaluateWithLlmJudgeArgs, EvaluateWithLlmJudgeReply, Warning};
use iris_core::evaluate::{GivenTexts, Judged, Ruled};
use iris_core::judge::{Model, Nonce, Prompt, Redactor, Ruling, Template, Texts, ask, read_ruling};
use iris_core::rules::{Kind, Question};
use iris_core::text::TEXT_BYTES_MAX;
use serde_json::{Value, json};

use super::judging::{Judging, Money, Place, broke};
use super::{App, Caller};
use crate::judge::{Ask, Failed, Said};

/// Tokens of an answer when the call does not say.
const OUTPUT_TOKENS: u64 = 512;
/// Milliseconds of a request when the call does not say.
const REQUEST_MS: u64 = 60_000;

impl App {
    pub(super) async fn evaluate_with_llm_judge(
        &self,
        args: EvaluateWithLlmJudgeArgs,
        caller: &Caller,
    ) -> Result<Value, Error> {
        let judging = self.judging()?;
        let model = judging.model(&args.model, args.provider)?;
        let trace = self.linked(args.trace_id.as_deref(), caller).await?;
        let (output, input, expected) = (args.output.clone(), args.input.clone(), args.expected.clone());
        let judged = judging.score(args, &model, &Place::new(caller.tenant.clone(), self.world)).await?;
        let given = GivenTexts { output: &output, input: input.as_deref(), expected: expected.as_deref() };
        self.keep_judged(judged, given, trace.as_ref(), caller).await
    }
}

/// The arguments that hold texts, in the order of [`Prepared::texts`].
const FIELDS: [&str; 4] = ["output", "input", "expected", "source_material"];

/// The texts as the judge reads them, and the prompt around them.
struct Prepared {
    args: EvaluateWithLlmJudgeArgs,
    redactor: Option<Redactor>,
    /// As sent: output, input, expected, source.
    texts: [Option<String>; 4],
    prompt: Prompt,
}

impl Prepared {
    fn new(
        args: EvaluateWithLlmJudgeArgs,
        mut redactor: Option<Redactor>,
        nonce: &Nonce,
        bytes_max: u64,
    ) -> Result<Self, Error> {
        let mut texts =
            [Some(&args.output), args.input.as_ref(), args.expected.as_ref(), args.source_material.as_ref()]
                .map(Option::<&String>::cloned);
        let longest = FIELDS.into_iter().zip(&texts).max_by_key(|(_, text)| text.as_ref().map_or(0, String::len));
        let bytes: usize = texts.iter().flatten().map(String::len).sum();
        if let Some((field, _)) = longest.filter(|_| u64::try_from(bytes).is_ok_and(|bytes| bytes > bytes_max)) {
            let why =
                format!("the texts have {bytes} bytes together; at most {bytes_max} are sent (judge.text_bytes_max)");
            return Err(Error::invalid_argument(field, why));
        }
        if let Some(redactor) = &mut redactor {
            for (field, text) in FIELDS.into_iter().zip(&mut texts) {
                let Some(text) = text else { continue };
                if text.len() > TEXT_BYTES_MAX {
                    let why = format!(
                        "longer than {TEXT_BYTES_MAX} bytes, the most in which judge.redact looks for personal data"
                    );
                    return Err(Error::invalid_argument(field, why));
                }
                *text = redactor.redact(text);
            }
        }
        let [output, input, expected, source_material] = texts.each_ref().map(Option::as_deref);
        let shown = Texts { output: output.unwrap_or_default(), input, expected, source_material };
        let prompt = ask(args.template, &shown, nonce);
        Ok(Self { args, redactor, texts, prompt })
    }
}

impl Judging {
    /// Asks the model.
    ///
    /// # Errors
    /// `IRIS_BUDGET_EXCEEDED` before anything is sent, `IRIS_PROVIDER_ERROR`, and `IRIS_INVALID_ARGUMENT` for a text that
    /// cannot be redacted.
    pub async fn score(&self, args: EvaluateWithLlmJudgeArgs, model: &Model, place: &Place) -> Result<Judged, Error> {
        let mut warnings = Vec::new();
        let timeout = self.timeout(args.timeout_ms, REQUEST_MS, &mut warnings);
        let _turn = self.turn(timeout).await?;
        let (redactor, nonce) = (self.redactor(), place.nonce());
        let bytes_max = self.judge.config().text_bytes_max;
        // Megabytes of patterns are no work for the threads that sockets wait on.
        let preparing = tokio::task::spawn_blocking(move || Prepared::new(args, redactor, &nonce, bytes_max));
        let prepared = preparing.await.map_err(|error| broke(&error))??;
        let args = &prepared.args;
        let config = self.judge.config();
        let money = Money {
            field: "max_cost_usd",
            default: ("judge.default_usd_call", config.default_usd_call),
            ceiling: ("judge.ceiling_usd_call", config.ceiling_usd_call),
        };
        let purse = money.of(args.max_cost_usd, &mut warnings);
        let call = Ask {
            model,
            prompt: &prepared.prompt,
            output_tokens_max: args.max_output_tokens.and_then(|most| most.try_into().ok()).unwrap_or(OUTPUT_TOKENS),
            temperature: args.temperature.unwrap_or(0.0),
            timeout,
        };
        let worst = call.worst_usd();
        if worst > purse.usd {
            return Err(Error::budget_exceeded("max_cost_usd", worst, purse.usd, purse.setting));
        }
        let reserved = self.judge.ledger().reserve(&place.tenant, worst, place.now_ms());
        let reserved = reserved
            .map_err(|over| Error::budget_exceeded("max_cost_usd", worst, over.left_usd, Some(over.setting)))?;
        let judged: Vec<&str> = prepared.texts.iter().flatten().map(String::as_str).collect();
        let said = self.judge.ask(&call, reserved, |text| read_ruling(text, args.template, &judged)).await;
        let said = said.map_err(|failed| provider_failed(&failed))?;
        let mut told = self.provenance(model, prepared.redactor.as_ref(), &warnings);
        told["template"] = json!(args.template);
        told["temperature"] = json!(said.temperature);
        told["requests"] = json!(said.bill.requests);
        told["suspicions"] = json!(suspicions(&prepared.prompt));
        Ok(ruled(&prepared, model, said, warnings, told))
    }
}

fn ruled(prepared: &Prepared, model: &Model, said: Said<Ruling>, warnings: Vec<Warning>, judge: Value) -> Judged {
    let template = prepared.args.template;
    let threshold = template.threshold();
    let Said { value: ruling, bill, id, temperature } = said;
    let passed = ruling.reaches(template);
    let reply = EvaluateWithLlmJudgeReply {
        untrusted: None,
        id: String::new(),
        trace_id: None,
        score: ruling.score,
        passed,
        pass_threshold: threshold,
        self_reported_pass: ruling.self_reported_pass,
        disagreement: ruling.self_reported_pass.is_some_and(|said| said != passed),
        rationale: ruling.rationale,
        dimensions: ruling.dimensions,
        model: model.name.clone(),
        provider: model.provider,
        template,
        input_tokens: bill.input_tokens,
        output_tokens: bill.output_tokens,
        cost_usd: bill.told_usd(),
        latency_ms: milliseconds(bill.latency),
        raw_response_id: id,
        temperature,
        suspicions: suspicions(&prepared.prompt),
        warnings,
        provenance: Value::Null,
    };
    Judged {
        rule: format!("llm_judge:{}:{}/{}", template.as_str(), model.provider.as_str(), model.name),
        kind: Kind::Judgment,
        question: question(template),
        ruled: Ruled::Scored(ruling.score, passed),
        message: format!("{:.2} of 1; {threshold:.2} is enough", ruling.score),
        judge,
        answered: json!(reply),
    }
}

/// The question of the registry that a template helps to answer.
const fn question(template: Template) -> Question {
    match template {
        Template::Accuracy | Template::Faithfulness => Question::Grounded,
        Template::Helpfulness | Template::Relevance => Question::Relevant,
        Template::Safety => Question::SafeOutput,
        Template::Correctness => Question::Complete,
        Template::TaskCompleted => Question::TaskCompleted,
    }
}

pub(super) fn suspicions(prompt: &Prompt) -> Vec<String> {
    prompt.suspicions.iter().map(|one| one.as_str().to_owned()).collect()
}

/// With three decimals.
pub(super) fn milliseconds(time: std::time::Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

fn provider_failed(failed: &Failed) -> Error {
    Error::provider_failed(failed.kind, &failed.words, failed.bill.told_usd(), failed.retry_after_ms)
}
