//! E-mail addresses, plain or spelled `name (at) host (dot) tld`.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::{Hit, Standing, context, pattern, person, reserved};
use crate::text::View;

/// RFC 5321, 4.5.3.1.1.
const LOCAL_BYTES_MAX: usize = 64;
/// RFC 1035, 2.3.4.
const DOMAIN_BYTES_MAX: usize = 255;

static SPELLED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?-u:\b)([a-z0-9][a-z0-9._%+-]{0,63})\s?[(\[{]\s?at\s?[)\]}]\s?([a-z0-9-]{1,63}(?:\s?(?:[(\[{]\s?dot\s?[)\]}]|\.|\sdot\s)\s?[a-z0-9-]{1,63}){1,4})(?-u:\b)",
    )
});
static DOT: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\s?(?:[(\[{]\s?dot\s?[)\]}]|\sdot\s)\s?"));

/// Finds addresses.
pub fn find(view: &View<'_>) -> Vec<Hit> {
    let text = view.text();
    let mut hits: Vec<Hit> = plain(text)
        .filter_map(|(bytes, local, domain)| {
            let standing = standing(local, domain, text, bytes.end)?;
            Some(person(bytes, "email", standing))
        })
        .collect();
    for found in SPELLED.captures_iter(text) {
        let (Some(whole), Some(local), Some(domain)) = (found.get(0), found.get(1), found.get(2)) else { continue };
        let domain = DOT.replace_all(domain.as_str(), ".");
        if let Some(standing) =
            is_domain(&domain).then(|| standing(local.as_str(), &domain, text, whole.end())).flatten()
        {
            hits.push(person(whole.range(), "email", standing));
        }
    }
    hits
}

/// The addresses of a text in one spelling, to see what its author already knew.
pub fn addresses(view: &View<'_>) -> BTreeSet<String> {
    let text = view.text();
    let spelled = SPELLED.captures_iter(text).filter_map(|found| {
        Some(format!("{}@{}", found.get(1)?.as_str(), DOT.replace_all(found.get(2)?.as_str(), ".")))
    });
    let plain = plain(text).map(|(_, local, domain)| format!("{local}@{domain}"));
    plain.chain(spelled).map(|address| address.to_ascii_lowercase()).collect()
}

/// One found address in the spelling of [`addresses`].
pub fn address(found: &str) -> Option<String> {
    addresses(&View::raw(found)).pop_first()
}

/// Every `local@domain` whose two halves are well formed.
fn plain(text: &str) -> impl Iterator<Item = (Range<usize>, &str, &str)> {
    let mut free_from = 0;
    text.match_indices('@').filter_map(move |(at, _)| {
        let head = context::before(text, at, LOCAL_BYTES_MAX + 1);
        let local_len = head.bytes().rev().take_while(|byte| is_local(*byte)).count();
        let local = text.get(at.checked_sub(local_len)?..at)?.trim_start_matches(['.', '-', '%', '+', '\'']);
        let tail = context::after(text, at + 1, DOMAIN_BYTES_MAX);
        let domain_len = tail.bytes().take_while(|byte| is_host(*byte)).count();
        let domain = tail.get(..domain_len)?.trim_end_matches(['.', '-']);
        let start = at - local.len();
        let fits = !local.is_empty() && local.len() <= LOCAL_BYTES_MAX && start >= free_from;
        let domain = longest_domain(domain)?;
        let bytes = start..at + 1 + domain.len();
        (fits && !local.ends_with('.')).then(|| {
            free_from = bytes.end;
            (bytes, local, domain)
        })
    })
}

/// The longest head of `host` that is a domain: a sentence may go on right after a full stop.
fn longest_domain(host: &str) -> Option<&str> {
    let mut head = host;
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
    labels && (2..=24).contains(&last.len()) && last.bytes().all(|byte| byte.is_ascii_alphabetic())
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
    if ROLES.contains(&local.as_str()) || ROLES.contains(&first) {
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
const ROLES: [&str; 38] = [
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
