//! Does the output say anything?
//!
//! *Checks* for outputs of which the form alone shows that they answer nothing: a placeholder, a bare acknowledgement, a
//! promise in place of the work, an announcement with nothing behind it, the ask said again, one sentence over and over.
//! A refusal is an answer. *Matters* because such an output is long enough and polite enough for other rules. *Cannot
//! see* fluent emptiness.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::model::Evidence;
use crate::rules::ask::{AskKind, kind};
use crate::rules::{
    Bundle, Case, FailureClass, Finding, Kind, Knobs, Mechanism, Need, Outcome, Question, Rule, RuleMeta,
};
use crate::text::{head, is_blank, is_item, sentences, terms, words};

/// See the module.
pub struct SaysSomething;

static META: RuleMeta = RuleMeta {
    name: Cow::Borrowed("says_something"),
    bundle: Bundle::Completeness,
    description: Cow::Borrowed(
        "The output is no placeholder, bare acknowledgement, promise, announcement, echo or repetition.",
    ),
    suggestion: Cow::Borrowed("Return the result itself, not word that it is coming."),
    weight: 2.0,
    kind: Kind::Detection,
    mechanism: Mechanism::Pattern,
    needs: &[Need::Output],
    reads: &[Need::Input, Need::ToolCalls],
    question: Question::Complete,
    classes: &[FailureClass::Stub],
    version: 2,
    critical: false,
    stands: false,
    knobs: &[],
};

/// An acknowledgement has at most so many words.
const ACK_WORDS_MAX: usize = 12;
/// A promise or announcement has at most so many.
const PROMISE_WORDS_MAX: usize = 60;
/// A sentence is repeated when it comes so often, has so many words, and fills half of the text.
const REPEATS_MIN: usize = 5;
const REPEATED_WORDS_MIN: usize = 3;

/// How much of an output is read for repetition.
const REPEATS_BYTES_MAX: usize = 8192;

/// Texts that stand for nothing.
const NOTHING: &[&str] = &[
    "null",
    "undefined",
    "nil",
    "nan",
    "none",
    "[object object]",
    "<empty>",
    "<none>",
    "(empty)",
    "(none)",
    "<null>",
    "n/a",
    "[no output]",
    "(no output)",
    "<no output>",
    "no output",
    "[empty]",
    "empty string",
    "object object",
];

/// Words of which an acknowledgement is made, folded.
const ACKS: &str = " ok okay k sure yes yep yeah yup done finished completed complete got it understood noted roger will do \
    absolutely certainly definitely of course great perfect good excellent right alright fine thanks thank you very much \
    no problem my pleasure you're welcome acknowledged affirmative confirmed received success successful successfully all \
    set ready here there we go happy to help glad that's the task is has been and i have am on it now as requested with \
    everything a this your request for i'd be with that question so nice awesome cool wonderful understand see copy aye sounds well job was \
    ja klar verstanden erledigt fertig gut danke alles gern gerne natuerlich naturlich oui bien compris fait termine merci \
    d'accord si claro hecho listo entendido gracias vale ";

/// A promise of work to come, at the start of a sentence.
static PROMISES: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the pattern is a constant, and a test compiles it")]
    Regex::new(
        r"(?ix)^\W{0,3}(?:(?:sure|certainly|of\ course|absolutely|great|ok|okay|alright|yes|no\ problem|got\ it|understood|thanks?(?:\ you)?|happy\ to\ help|good\ question|first|next|now|then|hello|hi|perfect)[,.!\ ]{1,3}(?:and\ )?){0,3}
        (?: (?:i|we)(?:['’]ll|\ will|\ shall|(?:['’]m|\ am|['’]re|\ are)\ going\ to)\ (?:now\ |then\ |first\ |just\ |also\ |have\ to\ |need\ to\ |be\ )?(?:start|begin|get|look|check|search|find|write|draft|create|generate|prepare|review|analy[sz]e|investigate|work|do|provide|send|update|let\ you|follow|report|research|examine|read|fetch|gather|compile|summari[sz]e|take|go|dig|explore|try|run|see|help|handle|put|make|build|explain|walk|continue|proceed|think|come|circle|reach|share|return|need|back|reviewing|looking|working|checking|preparing)(?-u:\b)
          | let\ me\ (?:just\ |first\ |now\ |quickly\ )?(?:check|look|see|search|find|start|begin|get|think|take|review|analy[sz]e|investigate|pull|fetch|gather|read|work|do|write|draft|prepare|go|run|dig|try|explain|know\ if)
          | (?:i['’]?a?m|we['’]?a?re|i\ am|we\ are|currently|now|still)\ (?:now\ |currently\ |still\ |already\ )?(?:working|looking|checking|searching|preparing|analy[sz]ing|processing|gathering|generating|writing|reviewing|fetching|investigating|compiling|drafting|on\ it)
          | (?:working|looking|checking|searching|processing|generating|loading|fetching|thinking|analy[sz]ing)(?:\ on\ (?:it|this|that)|\ into\ (?:it|this|that)|\ (?:for|your|the)(?-u:\b)[^.]{0,60})?\s*(?:\.\.\.|…|now|\.|!)*\s*$
          | (?:just\ )?(?:one|a)\ (?:moment|second|minute|sec)(?-u:\b) | (?:please\ )?(?:hold\ on|hang\ on|stand\ by|bear\ with\ me|wait|give\ me\ a)(?-u:\b)
          | (?:this|that|it)\ (?:may|might|will|should|could)\ (?:only\ )?take\ (?:a|some|several|about|up)(?-u:\b)
          | (?:more|further|additional|full|the)\ (?:details|information|results?|report|answer|update|list|summary)\ (?:will\ (?:follow|be)|to\ follow|coming|(?:is|are)\ (?:coming|on\ (?:the|its|their)\ way))
          | (?:stay\ tuned|check\ back|coming\ soon|to\ be\ continued|more\ to\ (?:come|follow))
          | (?:ich\ (?:werde|schaue|kummere|melde|prufe)|einen\ moment|je\ (?:vais|m'en\ occupe)|un\ (?:instant|moment|momento)|voy\ a|lo\ revisar[eé])(?-u:\b)
          | (?:请稍等|稍等|少々お待ち|お待ちください|잠시만) )",
    )
    .expect("a constant pattern compiles")
});

/// Word that something comes next: all of the sentence, with nothing in it.
static ANNOUNCES: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the pattern is a constant, and a test compiles it")]
    Regex::new(
        r"(?ix)^\W{0,3}(?:(?:sure|certainly|of\ course|absolutely|great|ok|okay|alright|yes|no\ problem|got\ it|happy\ to\ help|good\ question)[,.!\ ]{1,3}(?:thing[,.!\ ]{1,3})?){0,3}
        (?: (?:here|below|following|attached)(?:['’]s|\ is|\ are|\ you\ (?:go|will\ find|can\ find)|\ you['’]ll\ find)(?-u:\b)
            [^.:;\d\n]{0,160}(?-u:\b)(?:summary|list|report|code|function|script|answer|translation|poem|story|e-?mail|draft|table|steps|plan|breakdown|overview|analysis|explanation|details|information|response|results?|examples?|recipe|article|essay|letter|version|outline|proposal|solution|implementation|query|comparison|text|message|review|description|document|schedule|itinerary|data|numbers|findings|recommendations?|suggestions?|ideas|instructions|guide)(?-u:\b)[^.:;\d\n]{0,120}[.:…!]*\s*$
          | (?:the|my|a|your)\ (?:following\ (?:is|are)|[a-z\ ]{1,40}\ (?:is|are)\ as\ follows)(?-u:\b)[^.\d\n]{0,80}:?\s*$
          | [^.\n]{0,160}:\s*$ )",
    )
    .expect("a constant pattern compiles")
});

impl Rule for SaysSomething {
    fn meta(&self) -> &RuleMeta {
        &META
    }

    fn judge(&self, case: &Case<'_>, _: &Knobs) -> Outcome {
        let said = case.said().trim();
        if is_blank(said) {
            return Outcome::not_applicable("the output is blank");
        }
        let Some(shape) = shape(case, said) else {
            return Outcome::Pass(Finding::new(1.0, "the output says something"));
        };
        let raw = case.subject().output.unwrap_or_default();
        let evidence = vec![
            Evidence::Pattern { name: shape.to_owned(), count: 1 },
            Evidence::Span {
                source: "output".to_owned(),
                start: 0,
                end: raw.chars().count(),
                label: shape.to_owned(),
                class: Some(FailureClass::Stub.as_str().to_owned()),
            },
        ];
        let message = match shape {
            "placeholder" => "the output is a placeholder",
            "bare_acknowledgement" => "the output acknowledges the ask and says nothing else",
            "promise" => "the output promises the work in place of doing it",
            "announcement" => "the output announces something, and nothing follows",
            "echo" => "the output is the ask again",
            _ => "the output is one sentence over and over",
        };
        Outcome::Fail(Finding::new(0.0, message).with(evidence))
    }
}

/// Which empty form the output has.
fn shape(case: &Case<'_>, said: &str) -> Option<&'static str> {
    let ask = case.subject().input.filter(|ask| !is_blank(ask)).map(|_| case.input().text());
    if is_placeholder(said, ask) {
        return Some("placeholder");
    }
    if is_repetition(said) {
        return Some("repetition");
    }
    let ask = ask?;
    let short = said.split_whitespace().nth(PROMISE_WORDS_MAX).is_none();
    let wants = kind(ask);
    let work = match wants {
        AskKind::Information => true,
        AskKind::Produce => case.subject().tool_calls.is_none_or(<[_]>::is_empty),
        AskKind::YesNo => false,
        // Something was to be done, and the caller says that nothing was.
        AskKind::Other => case.subject().tool_calls.is_some_and(<[_]>::is_empty),
    };
    if short && work && !wants_a_promise(ask) && is_ack(said) && terms(ask).nth(1).is_some() {
        return Some("bare_acknowledgement");
    }
    if is_echo(ask, said) {
        return Some("echo");
    }
    if short && (work || wants == AskKind::Other) && !wants_a_promise(ask) {
        if is_promise(said) {
            return Some("promise");
        }
        if work && is_announcement(said) {
            return Some("announcement");
        }
    }
    None
}

/// Nothing to read, or a word that stands for nothing; unless the ask is about that very word.
fn is_placeholder(said: &str, ask: Option<&str>) -> bool {
    let bare = said.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '.'));
    if bare.len() <= 24 {
        let lower = bare.to_lowercase();
        let asked = |ask: &str| {
            let ask = ask.to_lowercase();
            let means_nothing = [
                "null",
                "none",
                "nil",
                "undefined",
                "nan",
                "unset",
                "missing",
                "empty",
                "n/a",
                "value of",
                "return",
                "which of",
                "any of",
                "exactly",
            ];
            means_nothing.iter().any(|word| ask.contains(word))
        };
        if NOTHING.contains(&lower.as_str()) {
            return !ask.is_some_and(asked);
        }
        let shown = said.chars().any(|c| c.is_alphanumeric() || !c.is_ascii() && !c.is_whitespace() && !is_dash(c));
        if !shown {
            // A sign may be the answer: an operator, an empty list.
            return matches!(
                said,
                "..."
                    | "…"
                    | "???"
                    | "?"
                    | "-"
                    | "--"
                    | "---"
                    | "***"
                    | "*"
                    | "_"
                    | "."
                    | "``"
                    | "\"\""
                    | "''"
                    | "``````"
                    | "# #"
            ) && !ask.is_some_and(asks_for_sign)
                || said.len() > 3
                    && said.chars().all(|c| matches!(c, '.' | '-' | '_' | '*' | '#' | '?' | ' ' | '\n' | '`' | '='));
        }
    }
    is_lorem(said)
}

const fn is_dash(c: char) -> bool {
    matches!(c, '…' | '—' | '–' | '•')
}

fn asks_for_sign(ask: &str) -> bool {
    let ask = ask.to_lowercase();
    [
        "sign",
        "symbol",
        "operator",
        "character",
        "punctuation",
        "separator",
        "delimiter",
        "mark",
        "glyph",
        "morse",
        "ascii",
    ]
    .iter()
    .any(|word| ask.contains(word))
}

/// Words of the dummy text of typesetters.
const LOREM: &str = " lorem ipsum dolor sit amet consectetur adipiscing adipisicing elit sed do eiusmod tempor incididunt ut labore et \
    dolore magna aliqua enim ad minim veniam quis nostrud exercitation ullamco laboris nisi aliquip ex ea commodo consequat \
    duis aute irure in reprehenderit voluptate velit esse cillum eu fugiat nulla pariatur excepteur sint occaecat cupidatat \
    non proident sunt culpa qui officia deserunt mollit anim id est laborum ";

fn is_lorem(said: &str) -> bool {
    if !head(said, 400).to_lowercase().contains("lorem ipsum") {
        return false;
    }
    let (mut dummy, mut all) = (0_u32, 0_u32);
    for word in words(head(said, 20_000)) {
        all += 1;
        dummy += u32::from(LOREM.contains(&format!(" {} ", word.text.to_lowercase())));
    }
    dummy * 2 >= all
}

fn is_ack(said: &str) -> bool {
    let all: Vec<_> = words(said).take(ACK_WORDS_MAX + 1).collect();
    if all.is_empty() || all.len() > ACK_WORDS_MAX {
        // A thumb up alone.
        return all.is_empty()
            && said.chars().count() <= 4
            && said.chars().any(|c| matches!(c, '👍' | '✅' | '👌' | '🙏' | '✔'));
    }
    let known = |text: &str| ACKS.contains(&format!(" {} ", text.to_lowercase().replace('’', "'")));
    all.iter().all(|word| known(word.text))
        || matches!(
            said.trim_end_matches(['。', '！', '.', '!']),
            "好的" | "了解しました" | "わかりました" | "明白了" | "承知しました" | "完成" | "알겠습니다"
        )
}

/// The whole ask, word for word, and little else.
fn is_echo(ask: &str, said: &str) -> bool {
    if said.len() > ask.len() + ask.len() / 4 + 16 || ask.len() > 20_000 {
        return false;
    }
    let keys = |text: &str| words(text).map(|word| word.key()).collect::<Vec<u64>>();
    let (asked, told) = (keys(ask), keys(said));
    let repeats = head(ask, 200).to_lowercase();
    let wanted = ["repeat", "echo", "copy", "verbatim", "say ", "quote", "proofread", "correct", "fix", "grammar"];
    asked.len() >= 3
        && told.len() <= asked.len() + asked.len() / 5 + 1
        && told.windows(asked.len()).any(|part| part == asked)
        && !wanted.iter().any(|word| repeats.contains(word))
}

/// One sentence, at least [`REPEATS_MIN`] times and half of the text. Code repeats itself for good reason.
fn is_repetition(said: &str) -> bool {
    let said = head(said, REPEATS_BYTES_MAX);
    if said.contains("```") || said.len() < 40 {
        return false;
    }
    let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
    let mut all = 0;
    for sentence in sentences(said) {
        let shown = sentence.bytes().filter(|byte| !byte.is_ascii_whitespace()).count();
        all += shown;
        let entry = counts.entry(sentence).or_insert((0, shown));
        entry.0 += 1;
    }
    counts.iter().any(|(sentence, (count, shown))| {
        let long = sentence.split_whitespace().nth(REPEATED_WORDS_MIN - 1).is_some()
            || !sentence.is_ascii() && sentence.chars().nth(5).is_some();
        *count >= REPEATS_MIN && long && count * shown * 2 >= all && !sentence.starts_with('|')
    })
}

/// Every sentence promises work, acknowledges, or asks for patience.
fn is_promise(said: &str) -> bool {
    let (mut promised, mut all) = (0, 0);
    for sentence in sentences(said) {
        all += 1;
        if is_item(sentence) {
            return false;
        }
        if PROMISES.is_match(sentence) && !holds_work(sentence) {
            promised += 1;
        } else if !is_ack(sentence) && !is_courtesy(sentence) {
            return false;
        }
    }
    promised > 0 && all <= 6
}

/// A promise that carries what was asked for all the same: a value, a quotation, something after a colon.
fn holds_work(sentence: &str) -> bool {
    let after_colon = sentence
        .find(':')
        .is_some_and(|at| sentence.get(at + 1..).is_some_and(|rest| rest.chars().any(char::is_alphanumeric)));
    after_colon || sentence.contains("```") || sentence.contains("://")
}

/// Politeness around a promise.
fn is_courtesy(sentence: &str) -> bool {
    let lower = sentence.to_lowercase();
    let starts = [
        "thank",
        "please be patient",
        "i appreciate",
        "sorry for",
        "apologies for",
        "let me know",
        "if you have any",
        "i hope",
        "feel free",
        "stay tuned",
        "great question",
        "good question",
        "that's a great",
        "that is a great",
        "i understand",
        "i see",
        "i'd be happy to",
        "i would be happy to",
        "i'm happy to",
        "i can help",
        "i can do that",
        "i'd be glad",
    ];
    sentence.split_whitespace().nth(14).is_none() && starts.iter().any(|start| lower.starts_with(start))
}

fn is_announcement(said: &str) -> bool {
    let mut all = sentences(said).filter(|sentence| !is_ack(sentence));
    let (Some(only), None) = (all.next(), all.next()) else { return false };
    !said.contains("```")
        && !only.contains("://")
        && !only.contains('`')
        && !only.contains('"')
        && ANNOUNCES.is_match(only)
}

/// The ask wants the form that the output has: a promise, a message that announces, an opening line.
fn wants_a_promise(ask: &str) -> bool {
    let lower = head(ask, 400).to_lowercase();
    [
        "promise",
        "commit to",
        "confirm that you will",
        "acknowledge",
        "auto-reply",
        "auto reply",
        "holding message",
        "placeholder",
        "opening line",
        "first line",
        "just say",
        "respond with",
        "reply with",
        "say that",
        "pledge",
        "vow",
        "apologi",
        "greeting",
        "one-line",
        "status message",
        "loading",
        "translate",
    ]
    .iter()
    .any(|word| lower.contains(word))
}
