//! Numbers of persons, licences and accounts: most are known by the words before them and proved by their check digits,
//! some by their shape and check digits alone.
//!
//! Formats and check digits are those that the issuing authorities publish.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind};

use super::check_digits as check;
use super::shape::Shape;
use super::{Hit, Standing, context, person};
use crate::text::View;

/// One kind of number: its group 1 is the number.
struct Kind {
    label: &'static str,
    /// Lower-case words of which one stands before the number, parted by `|`; none when the shape says it all.
    words: &'static str,
    pattern: Shape,
    is_valid: fn(&str) -> bool,
}

static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let kind = |label, words, source, is_valid| Kind { label, words, pattern: Shape::new(source), is_valid };
    vec![
        kind(
            "driver_licence",
            "driv",
            r"(?i)(?:driver'?s?|driving)[ _-]?licen[cs]e(?:[ _-]?(?:number|no\.?|id|#))?[^A-Za-z0-9\n]{0,6}(?:(?:number|is|was)[ :]{1,2}){0,2}([A-Z]{0,3}[0-9][A-Z0-9-]{5,15})(?-u:\b)",
            check::any,
        ),
        kind(
            "taxpayer_id",
            "tin|tax",
            r"(?i)(?-u:\b)(?:i?tin|tax(?:payer)?[ _-]?(?:id|identification))(?-u:\b)[^0-9\n]{0,24}(9[0-9]{2}[ -]?[5-9][0-9][ -]?[0-9]{4})(?-u:\b)",
            check::any,
        ),
        kind(
            "bank_account",
            "account|acct",
            r"(?i)(?:bank|checking|savings)[ _-]?(?:account|acct)(?:[ _-]?(?:number|no\.?|#))?[^A-Za-z0-9\n]{0,6}(?:is[ :]{1,2})?([0-9]{8,17})(?-u:\b)",
            check::any,
        ),
        kind(
            "bank_routing",
            "routing|aba|rtn",
            r"(?i)(?:routing|aba|(?-u:\b)rtn)(?:[ _-]?(?:transit|number|no\.?|#))*[^0-9\n]{0,8}([0-9]{9})(?-u:\b)",
            check::is_routing,
        ),
        kind(
            "national_insurance",
            "insurance|nin",
            r"(?i)(?:national insurance|(?-u:\b)nino?(?-u:\b))[^\n]{0,24}?(?-u:\b)([A-CEGHJ-PR-TW-Z]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D])(?-u:\b)",
            check::any,
        ),
        kind(
            "health_number",
            "nhs",
            r"(?i)(?-u:\b)nhs(?-u:\b)[^0-9\n]{0,24}([0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{4})(?-u:\b)",
            check::is_nhs,
        ),
        kind(
            "health_number",
            "medicare",
            r"(?i)medicare(?: card)?[^0-9\n]{0,16}([2-6][0-9]{3} ?[0-9]{5} ?[0-9]{1,2})(?-u:\b)",
            check::is_medicare,
        ),
        kind(
            "health_provider",
            "npi",
            r"(?i)(?-u:\b)npi(?-u:\b)[^0-9\n]{0,12}([12][0-9]{9})(?-u:\b)",
            check::is_provider,
        ),
        kind(
            "health_provider",
            "dea",
            r"(?i)(?-u:\b)dea(?-u:\b)[^0-9\n]{0,12}?([A-Z][A-Z9][0-9]{7})(?-u:\b)",
            check::is_dea,
        ),
        kind(
            "social_insurance",
            "sin|insurance",
            r"(?i)(?:(?-u:\b)sin(?-u:\b)|social insurance)[^0-9\n]{0,20}([0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{3})(?-u:\b)",
            check::is_luhn,
        ),
        kind(
            "tax_id",
            "tfn|tax file",
            r"(?i)(?:(?-u:\b)tfn(?-u:\b)|tax file)[^0-9\n]{0,16}([0-9]{3} ?[0-9]{3} ?[0-9]{3})(?-u:\b)",
            check::is_australian_tax,
        ),
        kind(
            "tax_id",
            "steuer|idnr",
            r"(?i)(?:steuer-?id(?:entifikationsnummer|nr)?|(?-u:\b)idnr|steuerliche identifikationsnummer)[^0-9\n]{0,12}([0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{3})(?-u:\b)",
            check::is_german_tax,
        ),
        kind(
            "national_id",
            "dni|nie|nif|identidad",
            r"(?i)(?:(?-u:\b)(?:dni|nie|nif)(?-u:\b)|identidad)[^0-9XYZ\n]{0,16}?([XYZ]?[0-9]{7,8}-?[A-Z])(?-u:\b)",
            check::is_spanish,
        ),
        kind("national_id", "", r"(?-u:\b)([0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2})(?-u:\b)", check::is_brazilian),
        kind("national_id", "cpf", r"(?i)(?-u:\b)cpf(?-u:\b)[^0-9\n]{0,12}([0-9]{11})(?-u:\b)", check::is_brazilian),
        kind(
            "national_id",
            "adha|adhaar|aadh",
            r"(?i)a+dha+r[^0-9\n]{0,24}([2-9][0-9]{3}[ -]?[0-9]{4}[ -]?[0-9]{4})(?-u:\b)",
            check::is_verhoeff,
        ),
        kind(
            "tax_id",
            "pan|permanent",
            r"(?i:(?-u:\b)pan(?-u:\b)|permanent account)[^\n]{0,16}?(?-u:\b)([A-Z]{3}[ABCFGHLJPT][A-Z][0-9]{4}[A-Z])(?-u:\b)",
            check::any,
        ),
        kind("national_id", "pesel", r"(?i)(?-u:\b)pesel(?-u:\b)[^0-9\n]{0,12}([0-9]{11})(?-u:\b)", check::is_pesel),
        kind(
            "national_id",
            "bsn|burger|sofi",
            r"(?i)(?:(?-u:\b)bsn(?-u:\b)|burgerservicenummer|sofinummer)[^0-9\n]{0,12}([0-9]{9})(?-u:\b)",
            check::is_dutch,
        ),
        kind(
            "national_id",
            "",
            r"(?-u:\b)([0-3][0-9][01][0-9]{3}[-+A-FU-Y][0-9]{3}[0-9A-FHJ-NPR-Y])(?-u:\b)",
            check::is_finnish,
        ),
        kind(
            "national_id",
            "person",
            r"(?i)person(?:nummer|liga? identity|al identity)[^0-9\n]{0,20}((?:19|20)?[0-9]{6}[-+]?[0-9]{4})(?-u:\b)",
            check::is_swedish,
        ),
        kind(
            "national_id",
            "sociale|nir|insee",
            r"(?i)(?:s[ée]curit[ée] sociale|(?-u:\b)nir(?-u:\b)|(?-u:\b)insee(?-u:\b))[^0-9\n]{0,16}([12][ ]?[0-9]{2} ?[0-9]{2} ?[0-9AB]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{2})(?-u:\b)",
            check::is_french,
        ),
        kind(
            "national_id",
            "",
            r"(?-u:\b)([0-9]{2}\.[01][0-9]\.[0-3][0-9]-[0-9]{3}\.[0-9]{2})(?-u:\b)",
            check::is_belgian,
        ),
        kind("national_id", "", r"(?-u:\b)(756\.?[0-9]{4}\.?[0-9]{4}\.?[0-9]{2})(?-u:\b)", check::is_swiss),
        kind("national_id", "", r"(?-u:\b)([1-9][0-9]{5}(?:19|20)[0-9]{9}[0-9Xx])(?-u:\b)", check::is_chinese),
        kind("national_id", "", r"(?-u:\b)([0-9]{2}[01][0-9][0-3][0-9]-[1-8][0-9]{6})(?-u:\b)", check::is_korean),
        kind(
            "national_id",
            "nric|fin|identity",
            r"(?i)(?:(?-u:\b)(?:nric|fin|uinfin)(?-u:\b)|identity (?:card|no))[^\n]{0,16}?(?-u:\b)([STFG][0-9]{7}[A-Z])(?-u:\b)",
            check::is_singaporean,
        ),
        kind(
            "national_id",
            "kimlik|tckn",
            r"(?i)(?:t\.?c\.? ?kimlik|(?-u:\b)tckn(?-u:\b))[^0-9\n]{0,16}([1-9][0-9]{10})(?-u:\b)",
            check::is_turkish,
        ),
        kind(
            "national_id",
            "id n",
            r"(?i)(?:south african|(?-u:\b)rsa)? ?(?-u:\b)id (?:number|no\.?)[^0-9\n]{0,8}([0-9]{2}[01][0-9][0-3][0-9]{5}[01][89][0-9])(?-u:\b)",
            check::is_luhn,
        ),
        kind(
            "national_id",
            "",
            r"(?-u:\b)([A-Z]{6}[0-9LMNP-V]{2}[ABCDEHLMPRST][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z])(?-u:\b)",
            check::is_italian,
        ),
        kind(
            "national_id",
            "",
            r"(?-u:\b)([A-Z][AEIOUX][A-Z]{2}[0-9]{2}[01][0-9][0-3][0-9][HM][A-Z]{5}[0-9A-Z][0-9])(?-u:\b)",
            check::any,
        ),
        kind(
            "vehicle_id",
            "vin|vehicle",
            r"(?i)(?:(?-u:\b)vin(?-u:\b)|vehicle identification)[^\n]{0,20}?(?-u:\b)([A-HJ-NPR-Z0-9]{17})(?-u:\b)",
            check::is_vehicle,
        ),
    ]
});

/// The words of all kinds, and the kind of each.
static WORDS: LazyLock<Option<(AhoCorasick, Vec<usize>)>> = LazyLock::new(|| {
    let words = KINDS.iter().enumerate().flat_map(|(at, kind)| kind.words.split('|').map(move |word| (word, at)));
    let (words, owners): (Vec<&str>, Vec<usize>) = words.filter(|(word, _)| !word.is_empty()).unzip();
    let words = AhoCorasickBuilder::new().ascii_case_insensitive(true).kind(Some(AhoCorasickKind::DFA)).build(words);
    Some((words.ok()?, owners))
});

/// The names of all kinds.
pub(super) fn labels() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.label)
}

/// Finds them.
pub fn find(view: &View<'_>) -> Vec<Hit> {
    let text = view.text();
    let mut hits = Vec::new();
    let mut named = vec![false; KINDS.len()];
    if let Some((words, owners)) = &*WORDS {
        for found in words.find_overlapping_iter(text) {
            if let Some(slot) = owners.get(found.pattern().as_usize()).and_then(|at| named.get_mut(*at)) {
                *slot = true;
            }
        }
    }
    for (kind, named) in KINDS.iter().zip(named) {
        if !named && !kind.words.is_empty() {
            continue;
        }
        let numbers = kind.pattern.within(text).captures_iter(text).filter_map(|found| found.get_group(1));
        hits.extend(
            numbers
                .filter(|number| {
                    context::is_number_alone(text, &number.range())
                        && text.get(number.range()).is_some_and(kind.is_valid)
                })
                .map(|number| person(number.range(), kind.label, Standing::Live)),
        );
    }
    hits
}
