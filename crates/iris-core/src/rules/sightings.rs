//! Which of all words that rules look for stand in the answer, and where: found in one pass for all of them.
//!
//! A rule hands in its words and how a place is noted; what a place means stays with the rule.

use std::sync::LazyLock;

use super::phrases::{Table, Windows};
use super::safety::{no_blocklist_words, no_injection_patterns, no_stub_output};
use crate::detect::Places;
use crate::text::{Lexicon, head};

/// What stands in an answer.
#[derive(Debug, Default)]
pub(super) struct Sightings {
    /// Where the patterns of instructions to a model are tried.
    pub injection: Windows,
    /// Where those of stand-ins are.
    pub stub: Windows,
    /// A part of code or of a run of tests stands there.
    pub code: bool,
    /// A word of the shipped blocklist stands there.
    pub blocked: bool,
    /// What makes a place worth a look for credentials.
    pub credentials: Places,
}

/// Whose word it is.
#[derive(Debug, Clone, Copy)]
enum Owner {
    Injection,
    Stub,
    Code,
    Blocked,
    Credential,
}

struct All {
    lexicon: Option<Lexicon>,
    /// Whose each word is, and its place among the words of that owner.
    owners: Vec<(Owner, usize)>,
}

static ALL: LazyLock<All> = LazyLock::new(|| {
    let anchors = |table: &'static Table| table.anchors().iter().map(String::as_str).collect::<Vec<&str>>();
    let lists = [
        (Owner::Injection, anchors(&no_injection_patterns::TABLE)),
        (Owner::Stub, anchors(&no_stub_output::TABLE)),
        (Owner::Code, no_stub_output::CODE.to_vec()),
        (Owner::Blocked, no_blocklist_words::shipped_words()),
        (Owner::Credential, Places::words().iter().map(String::as_str).collect()),
    ];
    let owners = lists.iter().flat_map(|(owner, words)| (0..words.len()).map(|at| (*owner, at))).collect();
    let lexicon = Lexicon::of(lists.iter().flat_map(|(_, words)| words.iter().copied()));
    All { lexicon, owners }
});

impl Sightings {
    /// Looks through an answer.
    pub fn of(text: &str) -> Self {
        let mut seen = Self::default();
        let answer = head(text, no_stub_output::ANSWER_BYTES_MAX).len();
        let Some(lexicon) = &ALL.lexicon else { return seen };
        lexicon.each(text, |word, bytes| match ALL.owners.get(word) {
            Some((Owner::Injection, at)) => no_injection_patterns::TABLE.note(&mut seen.injection, *at, &bytes),
            Some((Owner::Stub, at)) if bytes.end <= answer => {
                no_stub_output::TABLE.note(&mut seen.stub, *at, &bytes);
            }
            Some((Owner::Code, at)) if bytes.end <= answer => {
                // Case matters in code.
                seen.code |= no_stub_output::CODE.get(*at).copied() == text.get(bytes);
            }
            Some((Owner::Blocked, _)) => seen.blocked = true,
            Some((Owner::Credential, at)) => seen.credentials.note(text, *at, bytes),
            Some((Owner::Stub | Owner::Code, _)) | None => {}
        });
        seen.credentials.finish(text);
        seen
    }
}
