//! What redaction put in place of a value, `[REDACTED:<label>#<number>]`: read as the finding that stood there.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::bound::{PASSWORD_ASSIGNMENT, SECRET_ASSIGNMENT};
use super::{Exposes, Hit, Standing, national_id, secret};

const OPEN: &str = "[REDACTED:";
static OPENING: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(OPEN));

/// Where a text stood that could not be searched.
pub const UNREAD: &str = "unread";
/// The longest label and the most digits of a number.
const LABEL_BYTES_MAX: usize = 64;
const DIGITS_MAX: usize = 10;

/// Labels of findings that are no rows of a table.
const OTHERS: [(&str, Exposes); 11] = [
    ("email", Exposes::Person),
    ("phone", Exposes::Person),
    ("credit_card", Exposes::Person),
    ("ssn", Exposes::Person),
    ("iban", Exposes::Person),
    ("ip_address", Exposes::Person),
    ("passport", Exposes::Person),
    ("medical_record", Exposes::Person),
    ("birth_date", Exposes::Person),
    (SECRET_ASSIGNMENT, Exposes::Credential),
    (PASSWORD_ASSIGNMENT, Exposes::Credential),
];

static LABELS: LazyLock<BTreeMap<&'static str, Exposes>> = LazyLock::new(|| {
    let persons = national_id::labels().map(|label| (label, Exposes::Person));
    let secrets = secret::labels().map(|label| (label, Exposes::Credential));
    OTHERS.into_iter().chain(persons).chain(secrets).collect()
});

/// One placeholder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholder<'a> {
    /// Where it stands.
    pub bytes: Range<usize>,
    /// What it says stood there.
    pub label: &'a str,
    /// Which of the values of that label; 0 when that is not said.
    pub number: u64,
}

impl Placeholder<'_> {
    /// The finding it replaced; none when it stands for a value that no detector finds.
    pub(super) fn hit(&self) -> Option<Hit> {
        let (label, exposes) = LABELS.get_key_value(self.label)?;
        Some(Hit { bytes: self.bytes.clone(), label, exposes: *exposes, standing: Standing::Live })
    }
}

/// The placeholder for a value.
pub fn placeholder(label: &str, number: u64) -> String {
    format!("{OPEN}{label}#{number}]")
}

/// Every placeholder of a text, in order.
pub fn placeholders(text: &str) -> impl Iterator<Item = Placeholder<'_>> {
    OPENING.find_iter(text.as_bytes()).filter_map(|start| {
        let inside = text.get(start + OPEN.len()..)?;
        let label = head_of(inside, LABEL_BYTES_MAX, |byte| byte.is_ascii_alphanumeric() || byte == b'_')?;
        let digits = head_of(inside.get(label.len()..)?.strip_prefix('#')?, DIGITS_MAX, |byte| byte.is_ascii_digit())?;
        let end = start + OPEN.len() + label.len() + 1 + digits.len();
        text.get(end..)?.strip_prefix(']')?;
        Some(Placeholder { bytes: start..end + 1, label, number: digits.parse().ok()? })
    })
}

/// The bytes at the beginning that are of one class: at least one, at most so many.
fn head_of(text: &str, most: usize, class: fn(u8) -> bool) -> Option<&str> {
    let len = text.bytes().take(most).take_while(|byte| class(*byte)).count();
    text.get(..len).filter(|head| !head.is_empty())
}
