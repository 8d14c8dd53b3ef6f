//! E-mail addresses, plain or spelled `name (at) host (dot) tld`.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder};
use regex::Regex;

use super::{Hit, Standing, context, pattern, person, reserved};
use crate::text::View;

/// RFC 5321, 4.5.3.1.1.
const LOCAL_BYTES_MAX: usize = 64;
/// RFC 1035, 2.3.4.
const DOMAIN_BYTES_MAX: usize = 255;

static SPELLED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?-u:\b)([a-z0-9][a-z0-9._%+-]{0,63}(?:(?:\s?[(\[{]\s?dot\s?[)\]}]\s?|\sdot\s)[a-z0-9_%+-]{1,63}){0,3})(?:\s?[(\[{]\s?(?:at|@)\s?[)\]}]\s?|\sat\s|\s@\s?|\s?@\s)([a-z0-9-]{1,63}(?:\s?(?:[(\[{]\s?dot\s?[)\]}]|\.|\sdot\s)\s?[a-z0-9-]{1,63}){1,4})(?-u:\b)",
    )
});
static DOT: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\s?(?:[(\[{]\s?dot\s?[)\]}]|\sdot\s|\.)\s?"));
/// What stands in every spelling: a bracket and `at`, a free `dot`, or a free `@`.
static SIGNS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let signs =
        ["(at", "[at", "{at", "( at", "[ at", "{ at", "(@", "[@", "{@", " dot ", "(dot", "[dot", "{dot", " @", "@ "];
    AhoCorasickBuilder::new().ascii_case_insensitive(true).build(signs).ok()
});
/// How much text around a sign one spelling can take.
const SPELLING_BYTES: usize = 200;

/// Finds addresses.
pub fn find(view: &View<'_>) -> Vec<Hit> {
    let text = view.text();
    let mut hits: Vec<Hit> = plain(text)
        // What stands before the host of an address of the web is a user of that host.
        .filter(|(bytes, ..)| context::before(text, bytes.start, 3) != "://")
        .filter_map(|(bytes, local, domain)| {
            let standing = standing(local, domain, text, bytes.end)?;
            Some(person(bytes, "email", standing))
        })
        .collect();
    for (bytes, local, domain) in spelled(text) {
        if let Some(standing) = standing(&local, &domain, text, bytes.end) {
            hits.push(person(bytes, "email", standing));
        }
    }
    hits
}

/// The addresses of a text in one spelling, to see what its author already knew.
pub fn addresses(view: &View<'_>) -> BTreeSet<String> {
    let text = view.text();
    let spelled = spelled(text).into_iter().map(|(_, local, domain)| format!("{local}@{domain}"));
    let plain = plain(text).map(|(_, local, domain)| format!("{local}@{domain}"));
    plain.chain(spelled).map(|address| address.to_lowercase()).collect()
}

/// One found address in the spelling of [`addresses`].
pub fn address(found: &str) -> Option<String> {
    addresses(&View::raw(found)).pop_first()
}

/// Whether a text holds what no spelling is without: a bracket, `@` or `dot`.
fn may_spell(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_dot = |at: usize| bytes.get(at + 1..at + 3).is_some_and(|rest| rest.eq_ignore_ascii_case(b"ot"));
    memchr::memchr(b'@', bytes).is_some()
        || memchr::memchr3(b'(', b'[', b'{', bytes).is_some()
        || memchr::memchr2_iter(b'd', b'D', bytes).any(is_dot)
}

/// Every address that is spelled out: where, and its halves in plain spelling.
fn spelled(text: &str) -> Vec<(Range<usize>, String, String)> {
    let Some(signs) = SIGNS.as_ref().filter(|_| may_spell(text)) else { return Vec::new() };
    let mut found = Vec::new();
    let mut free_from = 0;
    for sign in signs.find_iter(text) {
        if sign.start() < free_from {
            continue;
        }
        let from =
            sign.start() - context::before(text, sign.start(), SPELLING_BYTES.min(sign.start() - free_from)).len();
        let part = context::after(text, from, 2 * SPELLING_BYTES);
        // What begins in the last part of the stretch is read again with what follows it.
        free_from = sign.end().max((from + part.len()).saturating_sub(SPELLING_BYTES));
        for spelling in SPELLED.captures_iter(part) {
            let (Some(whole), Some(local), Some(domain)) = (spelling.get(0), spelling.get(1), spelling.get(2)) else {
                continue;
            };
            let bytes = from + whole.start()..from + whole.end();
            let free = whole.as_str().to_ascii_lowercase();
            let local = DOT.replace_all(local.as_str(), ".").into_owned();
            let domain = DOT.replace_all(domain.as_str(), ".").into_owned();
            let bracketed = ["(at", "[at", "{at", "( at", "[ at", "{ at", "@"].iter().any(|sign| free.contains(sign));
            if is_domain(&domain)
                && (bracketed || is_spoken_address(context::before(text, bytes.start, 24), &local, &domain, &free))
            {
                free_from = free_from.max(bytes.end);
                found.push((bytes, local, domain));
            }
        }
    }
    found
}

/// Whether `name at host dot tld`, in plain words, is an address: people also look at things, and meet at places.
fn is_spoken_address(before: &str, local: &str, domain: &str, spelling: &str) -> bool {
    const NO_NAMES: [&str; 24] = [
        "us",
        "me",
        "him",
        "her",
        "them",
        "it",
        "is",
        "are",
        "you",
        "out",
        "look",
        "visit",
        "here",
        "available",
        "found",
        "hosted",
        "check",
        "site",
        "website",
        "page",
        "located",
        "store",
        "online",
        "live",
    ];
    const MAIL_WORDS: [&str; 9] =
        ["mail", "write to", "reach", "contact", "address", "send", "message", "correo", "courriel"];
    let before = before.to_ascii_lowercase();
    let host = domain.split('.').next().unwrap_or("").to_ascii_lowercase();
    let named = local.contains(['.', '_', '+']) || local.bytes().any(|byte| byte.is_ascii_digit());
    spelling.contains(" dot ")
        && !NO_NAMES.contains(&local.to_ascii_lowercase().as_str())
        && (named || MAILERS.contains(&host.as_str()) || MAIL_WORDS.iter().any(|word| before.contains(word)))
}

/// Hosts that do nothing but mail for people.
const MAILERS: [&str; 14] = [
    "gmail",
    "googlemail",
    "yahoo",
    "hotmail",
    "outlook",
    "live",
    "icloud",
    "aol",
    "protonmail",
    "proton",
    "gmx",
    "yandex",
    "zoho",
    "fastmail",
];

/// Every `local@domain` whose two halves are well formed.
fn plain(text: &str) -> impl Iterator<Item = (Range<usize>, &str, &str)> {
    let mut free_from = 0;
    text.match_indices('@').filter_map(move |(at, _)| {
        let head = context::before(text, at, LOCAL_BYTES_MAX + 1);
        let local_len = head.bytes().rev().take_while(|byte| is_local(*byte)).count();
        // Letters of other scripts touch an address in ASCII; they are part of it only where it has none of its own.
        let local = match local_len {
            0 => head.get(head.len() - run_len(head.chars().rev())..)?,
            length => text.get(at.checked_sub(length)?..at)?,
        };
        let local = local.trim_start_matches(['.', '-', '%', '+', '\'']);
        let tail = context::after(text, at + 1, DOMAIN_BYTES_MAX);
        let domain_len = tail.bytes().take_while(|byte| is_host(*byte)).count();
        let domain = match domain_len {
            0 => international(tail)?,
            length => {
                longest_domain(tail.get(..length)?.trim_end_matches(['.', '-'])).or_else(|| international(tail))?
            }
        };
        let start = at - local.len();
        let fits = !local.is_empty() && local.len() <= LOCAL_BYTES_MAX && start >= free_from;
        let bytes = start..at + 1 + domain.len();
        (fits && !local.ends_with('.')).then(|| {
            free_from = bytes.end;
            (bytes, local, domain)
        })
    })
}

/// The bytes of letters and digits of any script that `chars` begins with.
fn run_len(chars: impl Iterator<Item = char>) -> usize {
    chars.take_while(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '+')).map(char::len_utf8).sum()
}

/// A domain with letters of other scripts. Source: <https://www.rfc-editor.org/rfc/rfc6531>.
fn international(tail: &str) -> Option<&str> {
    let host = tail.get(..run_len(tail.chars()))?.trim_end_matches(['.', '-', '_']);
    let (_, last) = host.rsplit_once('.')?;
    let labels = host.split('.').all(|label| !label.is_empty() && label.chars().count() <= 63);
    (labels && !host.is_ascii() && (2..=24).contains(&last.chars().count()) && last.chars().all(char::is_alphabetic))
        .then_some(host)
}

/// The longest head of `host` that is a domain: a sentence may go on right after a full stop.
fn longest_domain(host: &str) -> Option<&str> {
    // A sentence may go on without the full stop: `quayhaven.ioThanks`.
    let last = host.rfind('.').map_or(0, |dot| dot + 1);
    let turn = host
        .as_bytes()
        .get(last..)?
        .windows(2)
        .position(|pair| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()));
    let mut head = turn.filter(|at| *at > 0).and_then(|at| host.get(..=last + at)).unwrap_or(host);
    loop {
        if is_domain(head) {
            return Some(head);
        }
        head = head.rsplit_once('.')?.0;
    }
}

fn is_domain(domain: &str) -> bool {
    let Some((_, last)) = domain.rsplit_once('.') else { return false };
    let labels = domain
        .split('.')
        .all(|label| !label.is_empty() && label.len() <= 63 && !label.starts_with('-') && !label.ends_with('-'));
    let coded =
        last.strip_prefix("xn--").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'));
    labels && (coded || (2..=24).contains(&last.len()) && last.bytes().all(|byte| byte.is_ascii_alphabetic()))
}

/// What the address counts for; nothing when it is not an address after all.
fn standing(local: &str, domain: &str, text: &str, end: usize) -> Option<Standing> {
    let local = local.to_ascii_lowercase();
    let domain = domain.to_ascii_lowercase();
    let file = domain.rsplit_once('.').is_some_and(|(_, last)| NOT_DOMAINS.contains(&last));
    // `git@host:path` is a remote repository, `image@2x.png` a file, `name@1.x` a package.
    let remote = local == "git" && context::next(text, end).is_some_and(|c| matches!(c, ':' | '/'));
    if file || remote || domain.starts_with(|c: char| c.is_ascii_digit()) && domain.starts_with("2x.") {
        return None;
    }
    if reserved::is_test_address(&local, &domain) {
        return Some(Standing::TestValue);
    }
    let first = local.split(['.', '-', '+', '_']).next().unwrap_or(&local);
    let last = local.rsplit('-').next().unwrap_or(&local);
    if ROLES.contains(&local.as_str()) || ROLES.contains(&first) || ROLES.contains(&last) {
        return Some(Standing::Public);
    }
    Some(Standing::Live)
}

const fn is_local(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'%' | b'+' | b'-' | b'\'')
}

const fn is_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-')
}

/// Endings of files that are no top-level domains.
const NOT_DOMAINS: [&str; 12] = ["png", "jpg", "jpeg", "gif", "svg", "webp", "css", "js", "ts", "json", "yaml", "yml"];

/// Mailboxes of a role, which several people read. Source: <https://www.rfc-editor.org/rfc/rfc2142>, and the same in
/// the words of shops and newsrooms.
const ROLES: [&str; 45] = [
    "service",
    "customerservice",
    "customercare",
    "newsletter",
    "notifications",
    "notification",
    "updates",
    "info",
    "marketing",
    "sales",
    "support",
    "abuse",
    "noc",
    "security",
    "postmaster",
    "hostmaster",
    "usenet",
    "news",
    "webmaster",
    "www",
    "uucp",
    "ftp",
    "noreply",
    "no-reply",
    "donotreply",
    "help",
    "helpdesk",
    "contact",
    "hello",
    "press",
    "media",
    "careers",
    "jobs",
    "hr",
    "billing",
    "accounts",
    "orders",
    "returns",
    "feedback",
    "privacy",
    "legal",
    "office",
    "admin",
    "enquiries",
    "team",
];
