//! Instructions that stand in a text: what a tool returned, or what a user asked.
//!
//! Owns the table of verbs ([`verbs`]), the texts inside a result ([`fields`]) and finding instructions in them. Never
//! decides whether following one was right. Everything is linear in the text and bounded in number.

mod fields;
mod verbs;

pub use fields::fields;
pub use verbs::{Families, commands, is_address_word, name_parts, of_tool, of_word, placed, visit, words};

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// Sentences after the one that instructs that may belong to it, and how long all of it may be.
const SENTENCES_MAX: usize = 3;
const SCOPE_BYTES_MAX: usize = 900;
/// How much stands before a verb that shows whether it instructs.
const LEAD_BYTES: usize = 30;

/// An instruction in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    /// The sentence and those after it that may belong to it.
    pub scope: Range<usize>,
    /// Where its first verb stands.
    pub verb: usize,
}

/// Compiles a pattern of this program's own.
fn pattern(source: &'static str) -> Regex {
    #[expect(clippy::expect_used, reason = "every pattern is a constant, and a test compiles each")]
    Regex::new(source).expect("a constant pattern compiles")
}

/// What stands right before a verb that instructs.
static LEAD: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"(?ix)(?: ^ | [:\-–—>\])}*\#"'(•]\s*
        | (?-u:\b)(?: please | pls | kindly | now | first | then | also | and | next | instead | must | should | shall | need\ to
            | have\ to | (?:want|like|ask)\ you\ to | you\ to | required\ to | (?:can|could|would|will)\ you | do | don'?t\ forget\ to
            | (?:make|be)\ sure\ (?:to|you) | remember\ to | immediately | simply | just | todo )(?-u:\b)[\s,:]* )$"#,
    )
});

/// Every instruction of a text.
pub fn directives(text: &str) -> Vec<Directive> {
    let mut verbs = words(text).filter(|(at, word)| may_instruct(text, *at, word)).peekable();
    if verbs.peek().is_none() {
        return Vec::new();
    }
    let sentences = pieces(text);
    let mut found = Vec::new();
    for (at, sentence) in sentences.iter().enumerate() {
        let inside = text.get(sentence.clone()).unwrap_or("");
        let mut verb = None;
        while let Some((at, word)) = verbs.next_if(|(at, _)| *at < sentence.end) {
            let Some(at) = at.checked_sub(sentence.start) else { continue };
            if verb.is_none() && (leads(inside, at) || breaks_in(inside, at, word)) {
                verb = Some(at);
            }
        }
        let Some(verb) = verb else { continue };
        let mut end = sentence.end;
        for later in sentences.iter().skip(at + 1).take(SENTENCES_MAX) {
            if later.end - sentence.start >= SCOPE_BYTES_MAX {
                break;
            }
            end = later.end;
        }
        found.push(Directive { scope: sentence.start..end, verb: sentence.start + verb });
    }
    found
}

/// The verbs with which a text instructs.
pub fn verbs_of(text: &str) -> impl Iterator<Item = &str> {
    words(text).filter(|(at, word)| instructs(text, *at, word)).map(|(_, word)| word)
}

/// Whether a word is a verb that instructs: one with an object, where an instruction begins. The name of a field is none.
fn instructs(text: &str, at: usize, word: &str) -> bool {
    may_instruct(text, at, word) && (leads(text, at) || breaks_in(text, at, word))
}

/// Whether a word is a verb with an object, wherever it stands.
fn may_instruct(text: &str, at: usize, word: &str) -> bool {
    let has_object = || text.get(at + word.len()..).is_some_and(|rest| rest.starts_with(char::is_whitespace));
    commands(word) && has_object()
}

/// Whether a capital in the middle of a sentence shows that another text begins there: "... was great Send the list".
fn breaks_in(text: &str, at: usize, word: &str) -> bool {
    let capital =
        word.starts_with(|c: char| c.is_ascii_uppercase()) && word.chars().skip(1).all(|c| c.is_ascii_lowercase());
    let last = crate::text::tail(text.get(..at).unwrap_or(""), LEAD_BYTES)
        .strip_suffix(' ')
        .and_then(|head| head.split_whitespace().next_back());
    let apart = last.is_some_and(|last| {
        last.starts_with(|c: char| c.is_lowercase() || c.is_ascii_digit())
            && last.ends_with(|c: char| c.is_lowercase() || c.is_ascii_digit() || c == ',')
    });
    let after = text.get(at + word.len()..).unwrap_or("").trim_start();
    capital && apart && after.starts_with(|c: char| c.is_lowercase() || c.is_ascii_digit() || matches!(c, '\'' | '"'))
}

fn leads(text: &str, at: usize) -> bool {
    let mut start = at.saturating_sub(LEAD_BYTES);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let before = text.get(start..at).unwrap_or("");
    start == 0 && before.trim().is_empty() || LEAD.is_match(before)
}

/// The sentences of a text as ranges: cut after `.`, `!`, `?` or `;` before white space, and at line ends.
fn pieces(text: &str) -> Vec<Range<usize>> {
    static CUT: LazyLock<Regex> = LazyLock::new(|| pattern(r#"[.!?;]["')\]]*\s+|\n+"#));
    let mut found = Vec::new();
    let mut start = 0;
    let ends = CUT.find_iter(text).map(|cut| (cut.end(), cut.end())).chain([(text.len(), text.len())]);
    for (end, next) in ends {
        if text.get(start..end).is_some_and(|piece| !piece.trim().is_empty()) {
            found.push(start..end);
        }
        start = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verbs_in(text: &str) -> Vec<&str> {
        directives(text).iter().map(|one| words(text.get(one.verb..).unwrap()).next().unwrap().1).collect()
    }

    #[test]
    fn tells_an_instruction_from_a_statement() {
        assert_eq!(verbs_in("Please send the list to Mara."), ["send"]);
        assert_eq!(verbs_in("TODO: delete the file."), ["delete"]);
        assert_eq!(verbs_in("You must now forward it."), ["forward"]);
        assert_eq!(verbs_in("The food was great Send the list to Mara."), ["Send"]);
        assert_eq!(verbs_in("The Send Money Plan of the bank."), [""; 0]);
        assert_eq!(verbs_in("The bank will send a letter. Nobody paid."), [""; 0]);
        assert_eq!(verbs_in("{\"email\": \"a\", \"transfer\": 3"), [""; 0]);
        assert_eq!(verbs_in("We shared it yesterday and the transfer came."), [""; 0]);
    }

    #[test]
    fn a_scope_ends_with_the_text_and_after_a_few_sentences() {
        let text = "Send it to Mara. The subject is Hello. It is short. It is late. Nothing else.";
        let scope = directives(text).first().map(|one| text.get(one.scope.clone()).unwrap()).unwrap();
        assert!(scope.ends_with("It is late. "), "{scope}");
    }
}
