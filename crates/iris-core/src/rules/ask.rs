//! What kind of ask it is, from its opening words.

use std::sync::LazyLock;

use regex::Regex;

use crate::text::head;

/// What an ask wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskKind {
    /// To know something.
    Information,
    /// A text or other work.
    Produce,
    /// A yes or a no.
    YesNo,
    /// Something else: an action, a remark.
    Other,
}

/// How much of an ask is read.
const ASK_BYTES_MAX: usize = 2000;

#[expect(clippy::expect_used, reason = "every pattern is a constant, and a test compiles each")]
fn pattern(source: &'static str) -> Regex {
    Regex::new(source).expect("a constant pattern compiles")
}

static INFORMATION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)^\W{0,3}(?:(?:please|kindly|hi|hello|hey|ok|okay|now|so|and|can you|could you|would you|will you|i need you to|i want you to|i(?:'d| would) like you to|i(?:'d| would) like to know|do you know|help me(?: to)?|let's)[,!. ]{1,2}){0,4}",
        r"(?:what|which|who|whom|whose|when|where|why|how|explain|describe|list|tell|give|show|provide|suggest|recommend|compare|define|name|summari[sz]e|outline|identify|analy[sz]e|find|calculate|compute|determine|estimate|evaluate|review|was|wer|wie|wo|wann|warum|welche[rs]?|erklare|nenne|que|quel(?:le)?s?|qui|quand|pourquoi|comment|explique|combien|cual(?:es)?|quien|cuando|donde|como|cuanto|explica)(?-u:\b)",
    ))
});
static PRODUCE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)^\W{0,3}(?:(?:please|kindly|hi|hello|hey|ok|okay|now|so|and|can you|could you|would you|will you|i need you to|i want you to|i(?:'d| would) like you to|help me(?: to)?|let's)[,!. ]{1,2}){0,4}",
        r"(?:draft|write|compose|translate|generate|produce|rewrite|reply|respond|sketch|create|design|build|implement|make|prepare|develop|code|refactor|convert|edit|paraphrase|proofread|brainstorm|plan|schreibe|ubersetze|ecris|redige|traduis|escribe|redacta|traduce)(?-u:\b)",
    ))
});
static YES_NO: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)^\W{0,3}(?:(?:please|hi|hello|hey|ok|okay|so|and|then)[,!. ]{1,2}){0,3}(?:is|are|am|was|were|do|does|did|has|have|had|can|could|will|would|should|shall|may|might|isn't|aren't|doesn't|don't|didn't|won't|ready)(?-u:\b)",
    )
});

/// What an ask, folded, wants. A polite `can you explain` wants an explanation, not a yes.
pub(super) fn kind(ask: &str) -> AskKind {
    let ask = head(ask.trim(), ASK_BYTES_MAX);
    if INFORMATION.is_match(ask) {
        AskKind::Information
    } else if PRODUCE.is_match(ask) {
        AskKind::Produce
    } else if YES_NO.is_match(ask) || ask.ends_with(['?', '？']) {
        AskKind::YesNo
    } else if ask.ends_with("吗") || ask.contains("ください") || ask.contains("教えて") || ask.contains("请") {
        AskKind::Information
    } else {
        AskKind::Other
    }
}
