//! Values bound to names that mean a secret: `ACME_API_KEY=…`, `"password": "…"`, `acme token …`, `acme=…`.
//!
//! A name alone proves nothing and a value alone proves nothing. A finding is a name that means a secret, or a service
//! whose keys have no shape of their own, and beside it a value that looks drawn rather than written.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};

use super::secret::entropy;
use super::{Apart, Exposes, Hit, Standing, context, reserved};

/// What is found because of the name beside it.
pub(super) const SECRET_ASSIGNMENT: &str = "secret_assignment";
pub(super) const PASSWORD_ASSIGNMENT: &str = "password_assignment";

/// What a name means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// A secret and nothing else.
    Secret,
    /// A key: to a door, to a row of a table, or on a keyboard.
    Key,
    /// Access, private, auth: half of a name.
    Half,
    /// A password.
    Password,
}

/// The names. Each is looked for inside longer ones.
pub(super) const WORDS: &[(&str, Word)] = &[
    ("secret", Word::Secret),
    ("token", Word::Secret),
    ("apikey", Word::Secret),
    ("api_key", Word::Secret),
    ("api-key", Word::Secret),
    ("api key", Word::Secret),
    ("api.key", Word::Secret),
    ("access_key", Word::Secret),
    ("access-key", Word::Secret),
    ("access key", Word::Secret),
    ("accesskey", Word::Secret),
    ("private_key", Word::Secret),
    ("private-key", Word::Secret),
    ("private key", Word::Secret),
    ("privatekey", Word::Secret),
    ("encryption_key", Word::Secret),
    ("signing_key", Word::Secret),
    ("account_key", Word::Secret),
    ("service_key", Word::Secret),
    ("authentication key", Word::Secret),
    ("credential", Word::Secret),
    ("presharedkey", Word::Secret),
    ("key", Word::Key),
    ("access", Word::Half),
    ("private", Word::Half),
    ("auth", Word::Half),
    ("salt", Word::Half),
    ("password", Word::Password),
    ("passwd", Word::Password),
    ("passphrase", Word::Password),
    ("passcode", Word::Password),
    ("passwrd", Word::Password),
    ("pasword", Word::Password),
    ("paswd", Word::Password),
    ("paswrd", Word::Password),
    ("psword", Word::Password),
    ("pswrd", Word::Password),
    ("psswd", Word::Password),
    ("psswrd", Word::Password),
    ("pssword", Word::Password),
    ("pswd", Word::Password),
    ("passwort", Word::Password),
    ("contraseña", Word::Password),
    ("contrasena", Word::Password),
    ("mot de passe", Word::Password),
    ("пароль", Word::Password),
    ("パスワード", Word::Password),
    ("密码", Word::Password),
    ("pass", Word::Password),
    ("pwd", Word::Password),
    ("pw", Word::Password),
];

/// What may stand between a name and a value that is assigned to it.
static ASSIGNED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?i)s?(?:[_ .-]?(?:value|val|prod|live|test|dev|default|string|str|b64|base64|hash|key|token|secret|access|xyz|[0-9]{1,4})){0,4}["'`\])}>*]{0,3}\s{0,6}(?::\s?(?:&?str|string)\s{0,3})?(?:=>|:{0,3}\??={1,3}|!=|:|->|(?-u:\b)is(?-u:\b):?|["'`]\s?,\s?)\s{0,6}[bru@]{0,1}["'`*(\[]{0,3}"#,
    )
    .ok()
});
/// A mere gap between a name and a value.
static APART: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"["'`)]{0,2}[ \t_.-]{1,4}["'`]?|\s?\n\s?"#).ok());
/// What may stand between a service and its value.
static BESIDE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?i)[a-z_.]{0,12}["'`]{0,2}(?:\s{0,4}(?:=>|={1,2}|:)\s{0,4}["'`(]{0,2}|[ -])"#).ok()
});
/// The longest gap between a name and its value.
const GAP_BYTES_MAX: usize = 96;
/// The longest value that is looked at.
const VALUE_BYTES_MAX: usize = 512;

/// The shortest key, however it is named.
const KEY_BYTES_MIN: usize = 12;
/// The longest password and the longest key: what is longer is sealed, or data.
const PASSWORD_BYTES_MAX: usize = 128;
const KEY_BYTES_MAX: usize = 300;

/// Where a pattern that begins at `from` ends.
fn end_of(pattern: &Regex, text: &str, from: usize) -> Option<usize> {
    let input = Input::new(text).span(from..text.len().min(from + GAP_BYTES_MAX)).anchored(Anchored::Yes);
    pattern.search_half(&input).map(|found| found.offset())
}

/// Where values end: what was looked through for one is not looked through again for the next.
struct Values<'a> {
    text: &'a str,
    /// In these bytes no value ends.
    through: Range<usize>,
}

impl<'a> Values<'a> {
    const fn of(text: &'a str) -> Self {
        Self { text, through: 0..0 }
    }

    /// The value that begins at `from`: up to a blank, a quote, a bracket or a separator.
    fn at(&mut self, from: usize) -> Option<Range<usize>> {
        if !(self.through.start..=self.through.end).contains(&from) {
            self.through = from..from;
        }
        let most = self.text.len().min(from + VALUE_BYTES_MAX);
        let rest = self.text.as_bytes().get(self.through.end..most).unwrap_or_default();
        self.through.end += rest.iter().take_while(|byte| !ends_value(**byte)).count();
        let end = self.through.end.min(most);
        (end >= from + 4 && self.text.is_char_boundary(end)).then_some(from..end)
    }
}

const fn ends_value(byte: u8) -> bool {
    byte.is_ascii_whitespace()
        || matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b',' | b';' | b'(' | b')' | b'{' | b'}' | b'|')
}

/// Names of things that are keys and tokens of another kind.
const OTHER_NAMES: [&str; 46] = [
    "csrf",
    "xsrf",
    "next_",
    "nextpage",
    "page_token",
    "pagetoken",
    "page-token",
    "continuation",
    "cursor",
    "sync_token",
    "nonce",
    "cache",
    "idempot",
    "primary",
    "partition",
    "foreign",
    "public",
    "pub_key",
    "pubkey",
    "sort_key",
    "object_key",
    "token_type",
    "token_count",
    "tokenizer",
    "etag",
    "sha256",
    "sha512",
    "checksum",
    "digest",
    "fingerprint",
    "keyboard",
    "keyword",
    "secretname",
    "secret_name",
    "keyname",
    "key_name",
    "keyid",
    "key_id",
    "key-id",
    "commit",
    "integrity",
    "lookup",
    "translation",
    "accessor",
    "bucket",
    "resolution",
];

/// Whether what a value is called, in lower case, names something else than a secret.
fn names_other(called: &str) -> bool {
    static NAMES: LazyLock<Option<AhoCorasick>> =
        LazyLock::new(|| AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).build(OTHER_NAMES).ok());
    match &*NAMES {
        Some(names) => names.is_match(called),
        None => OTHER_NAMES.iter().any(|name| called.contains(name)),
    }
}

/// What is bound to the names and the services found in a text; hits go to `hits`.
pub(super) fn find<'w>(
    text: &str,
    words: impl Iterator<Item = &'w (Word, Range<usize>)>,
    providers: &[(usize, usize, bool)],
    tokens: &[Range<usize>],
    hits: &mut Apart,
) {
    let (Some(assigned), Some(apart)) = (ASSIGNED.as_ref(), APART.as_ref()) else { return };
    // Of several names that lead to one value the first that it suits speaks for it.
    let mut free_from = 0;
    let mut values = Values::of(text);
    for (word, name) in words {
        if name.start < free_from {
            continue;
        }
        let firm = end_of(assigned, text, name.end);
        let Some(gap_end) = firm.or_else(|| end_of(apart, text, name.end)) else { continue };
        let Some(value) = values.at(gap_end) else { continue };
        // What begins like a token of a known kind and was not found to be one is cut short or made up.
        if tokens.binary_search_by_key(&value.start, |token| token.start).is_ok() {
            continue;
        }
        let gap = name.end..value.start;
        let found = Bound { text, word: *word, name: name.clone(), gap, firm: firm.is_some() };
        if let Some((bytes, standing)) = found.judge(&value, providers) {
            free_from = bytes.end;
            let label = if *word == Word::Password { PASSWORD_ASSIGNMENT } else { SECRET_ASSIGNMENT };
            hits.put(Hit { bytes, label, exposes: Exposes::Credential, standing });
        }
    }
    beside(text, providers, hits);
}

/// Keys right beside the name of a service that has no other use.
fn beside(text: &str, providers: &[(usize, usize, bool)], hits: &mut Apart) {
    let Some(pattern) = BESIDE.as_ref() else { return };
    let mut values = Values::of(text);
    for (_, end, _) in providers.iter().filter(|(.., by_itself)| *by_itself) {
        let Some(value) = end_of(pattern, text, *end).and_then(|from| values.at(from)) else { continue };
        let value = trimmed(text, value);
        if !(16..=256).contains(&value.len()) {
            continue;
        }
        let secret = text.get(value.clone()).unwrap_or("");
        let whole = !context::next(text, value.end).is_some_and(|c| matches!(c, '(' | '[' | '/' | '@' | '%'));
        let digits = secret.bytes().filter(u8::is_ascii_digit).count();
        let drawn = is_uuid(secret)
            || is_hex(secret) && secret.len() >= 32
            || secret.len() >= 20 && digits >= 2 && is_drawn(secret);
        let other = is_digest_named(text, value.start)
            || is_misfit(&context::before(text, value.start, 48).to_ascii_lowercase(), secret);
        if whole
            && drawn
            && !other
            && secret.bytes().all(is_key_byte)
            && !secret.contains(['/', '.'])
            && entropy(secret) >= 3.0
        {
            let standing = if reserved::is_stand_in(secret) { Standing::TestValue } else { Standing::Live };
            hits.put(Hit { bytes: value, label: SECRET_ASSIGNMENT, exposes: Exposes::Credential, standing });
        }
    }
}

fn is_digest_named(text: &str, at: usize) -> bool {
    let head = context::before(text, at, 48).to_ascii_lowercase();
    OTHER_NAMES
        .iter()
        .chain(&["_id", "id:", "id =", "id=", "version", "rev", "url", "event"])
        .any(|name| head.contains(name))
}

/// Whether a name is that of a key with a published form, and the value has another: cut short, made up, or another
/// thing. AWS's secret keys have forty characters, Meraki's keys forty small hexadecimal digits, and Twitch's stream keys
/// say that they are live. Sources: <https://docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_access-keys.html>,
/// <https://developer.cisco.com/meraki/api-v1/authorization/>, <https://help.twitch.tv/s/article/twitch-stream-key-faq>.
fn is_misfit(called: &str, secret: &str) -> bool {
    let has = |word: &str| called.contains(word);
    let small_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    has("aws") && has("secret") && secret.len() != 40
        || has("meraki") && !(secret.len() == 40 && secret.bytes().all(small_hex))
        || has("twitch") && has("stream") && !secret.starts_with("live_")
}

struct Bound<'a> {
    text: &'a str,
    word: Word,
    name: Range<usize>,
    /// Between the name and the value.
    gap: Range<usize>,
    /// Bound by an assignment, not by a gap.
    firm: bool,
}

impl Bound<'_> {
    fn judge(&self, value: &Range<usize>, providers: &[(usize, usize, bool)]) -> Option<(Range<usize>, Standing)> {
        let longest = if self.word == Word::Password { PASSWORD_BYTES_MAX } else { KEY_BYTES_MAX };
        if value.len() > longest {
            return None;
        }
        let bytes = trimmed(self.text, value.clone());
        let secret = self.text.get(bytes.clone())?;
        if is_reference(secret) || matches!(context::next(self.text, value.end), Some('(' | '[' | '{')) {
            return None;
        }
        let real = match self.word {
            Word::Password => self.is_password(secret),
            _ => self.is_key(secret, providers),
        };
        let stand_in = || reserved::is_stand_in(secret);
        real.then(|| (bytes, if stand_in() { Standing::TestValue } else { Standing::Live }))
    }

    /// The name as written, with what it is part of and the word before it, in lower case.
    fn called(&self) -> String {
        let head = context::before(self.text, self.name.start, 40);
        let line = head.rsplit(['\n', '"', '\'', ';', ',', '{', '}', '<', '>', '=', ':']).next().unwrap_or(head);
        let gap = self.text.get(self.name.start..self.gap.end).unwrap_or("");
        format!("{line}{gap}").to_ascii_lowercase()
    }

    fn is_key(&self, secret: &str, providers: &[(usize, usize, bool)]) -> bool {
        let chained = !self.firm && secret.trim_end_matches('=').contains(['=', ':']);
        if secret.len() < KEY_BYTES_MIN || chained || !secret.bytes().all(is_key_byte) || secret.contains("://") {
            return false;
        }
        let head = context::before(self.text, self.name.start, 40);
        let part_of_name = head.ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
            || head.ends_with(' ') && head.trim_end().ends_with(|c: char| c.is_ascii_alphabetic());
        let after = providers.partition_point(|(_, end, _)| *end <= self.gap.end);
        let served = providers.get(..after).and_then(|before| before.last()).is_some_and(|(_, end, _)| {
            self.text.get(*end..self.name.start.max(*end)).is_some_and(|between| between.len() <= 24)
        });
        if !served && !part_of_name && self.word != Word::Secret {
            return false;
        }
        self.is_shaped(secret, head, part_of_name, served) && {
            let called = self.called();
            !is_misfit(&called, secret) && !names_other(&called) && !called.contains("hash")
        }
    }

    /// Whether the value looks like a key, as far as what stands before it makes one likely.
    fn is_shaped(&self, secret: &str, head: &str, part_of_name: bool, served: bool) -> bool {
        let flag = head.ends_with(['-', '/']) && !head.ends_with(|c: char| c.is_ascii_alphanumeric());
        let least = match (self.word, self.firm) {
            (_, true) if served => KEY_BYTES_MIN,
            (Word::Secret, true) => KEY_BYTES_MIN,
            (_, true) => 16,
            (_, false) if served => 16,
            (Word::Secret, false) if flag => KEY_BYTES_MIN,
            (_, false) => 20,
        };
        if secret.len() < least || entropy(secret) < if served { 2.2 } else { 3.0 } {
            return false;
        }
        let loud = self.text.get(self.name.clone()).is_some_and(|name| name.bytes().all(|b| !b.is_ascii_lowercase()));
        let drawn = is_uuid(secret) || is_drawn(secret) && (served || !reserved::is_counted_up(secret));
        match (self.word, self.firm) {
            (Word::Secret, true) => drawn || served && is_long_run(secret),
            (_, true) => {
                served && (drawn || is_long_run(secret))
                    || part_of_name && drawn && !is_uuid(secret) && (self.word == Word::Key || secret.len() >= 20)
            }
            (_, false) => {
                served && (drawn || is_long_run(secret))
                    || drawn && !is_uuid(secret) && (loud || flag || self.word == Word::Secret) && part_of_name
            }
        }
    }

    fn is_password(&self, secret: &str) -> bool {
        let short = self.name.len() <= 4;
        let head = context::last(self.text, self.name.start);
        // `pass` and `pw` are parts of many words.
        if short && head.is_some_and(|c| c.is_ascii_alphabetic()) && !self.is_loud() {
            return false;
        }
        if !self.firm || secret.len() < 6 {
            return false;
        }
        let quoted = self.text.get(self.gap.clone()).is_some_and(|gap| gap.ends_with(['"', '\'', '`']));
        let digit = secret.bytes().any(|b| b.is_ascii_digit());
        let letter = secret.chars().any(char::is_alphabetic);
        let symbol = secret
            .bytes()
            .any(|b| matches!(b, b'!' | b'@' | b'#' | b'$' | b'%' | b'^' | b'&' | b'*' | b'+' | b'?' | b'~'));
        let path = secret.matches('/').count() >= 2 || secret.starts_with(['/', '.', '#']) || secret.contains("://");
        let enough = if digit { letter && (secret.len() >= 8 || symbol || quoted) } else { letter && symbol && quoted };
        enough && !path && entropy(secret) >= 2.5
    }

    fn is_loud(&self) -> bool {
        self.text.get(self.name.clone()).is_some_and(|name| name.bytes().all(|b| b.is_ascii_uppercase()))
    }
}

/// A sentence goes on after a value.
fn trimmed(text: &str, bytes: Range<usize>) -> Range<usize> {
    let value = text.get(bytes.clone()).unwrap_or("");
    let kept = value.trim_end_matches(['.', ',', ':', '?', ']', '*', '\\']);
    bytes.start..bytes.start + kept.len()
}

/// A variable, a call or a placeholder in brackets.
fn is_reference(value: &str) -> bool {
    value.starts_with(['$', '%', '{', '<', '[', '(', '&', '@', '\\', '/'])
        || ["${", "{{", "<%", "%(", "$(", "->", "::", "process.env", "os.environ", "getenv", "[Redacted", "[REDACTED"]
            .iter()
            .any(|sign| value.contains(sign))
}

const fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'_' | b'~'
                | b'+'
                | b'/'
                | b'.'
                | b'='
                | b'!'
                | b'@'
                | b'#'
                | b'%'
                | b'^'
                | b'&'
                | b'*'
                | b'$'
                | b':'
                | b'-'
        )
}

fn is_hex(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_uuid(value: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    value.len() == 36
        && value.split('-').count() == 5
        && value.split('-').zip(lengths).all(|(part, length)| part.len() == length)
}

/// One run of letters and digits too long for a word.
fn is_long_run(value: &str) -> bool {
    value.len() >= 20 && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'=' | b'-' | b'_'))
}

/// Whether some part of the value goes to and fro between letters and digits, or cases, as no word does.
fn is_drawn(value: &str) -> bool {
    value.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| {
        let (mut turns, mut digits, mut upper, mut lower) = (0, 0, 0, 0);
        let mut last = 0;
        for byte in part.bytes() {
            let class = match byte {
                b'0'..=b'9' => 1,
                b'A'..=b'Z' => 2,
                _ => 3,
            };
            digits += usize::from(class == 1);
            upper += usize::from(class == 2);
            lower += usize::from(class == 3);
            turns += usize::from(last != 0 && class != last && (class == 1 || last == 1));
            last = class;
        }
        let letters = upper + lower;
        part.len() >= 6 && digits >= 2 && letters >= 2 && turns >= 2
            || part.len() >= 16 && digits >= 2 && letters >= 2
            || part.len() >= 24 && upper >= 4 && lower >= 4 && entropy(part) >= 4.0 && digits + upper >= 6
    })
}
