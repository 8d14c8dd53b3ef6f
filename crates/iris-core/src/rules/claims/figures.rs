//! Numbers with what they count.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::{Fact, Material, Said, pattern, proposes};

/// Numbers of a text that are looked at, and those of them that are combined.
const FIGURES_MAX: usize = 400;
const COMBINED_MAX: usize = 40;

/// A number in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its value as written, without scale.
    pub value: f64,
    /// What the scale makes of it: `2.1M` is 2,100,000.
    pub scaled: f64,
    /// It is a percentage.
    pub percent: bool,
    /// Digits that are written.
    pub digits: usize,
    /// "about", "roughly" or the like stands before it.
    pub hedged: bool,
    /// The word after it, in lower case.
    pub noun: String,
    /// Where.
    pub bytes: Range<usize>,
}

/// What says before a number that it is not meant exactly.
const HEDGES: [&str; 19] = [
    "about",
    "roughly",
    "around",
    "approximately",
    "nearly",
    "almost",
    "an estimated",
    "~",
    "circa",
    "ballpark",
    "call it",
    "some",
    "over",
    "under",
    "more than",
    "less than",
    "at least",
    "up to",
    "close to",
];

/// The numbers of a text. Parts of dates, times, versions and identifiers are none.
pub fn figures(text: &str) -> Vec<Figure> {
    let mut found = Vec::new();
    for Written { number, scale, noun } in numbers(text).take(FIGURES_MAX) {
        let next = text.get(number.end..).unwrap_or("").as_bytes();
        let mark = next.first().copied().unwrap_or(b' ');
        let goes_on = next.get(1).is_some_and(u8::is_ascii_alphanumeric);
        let digit_follows = next.get(1).is_some_and(u8::is_ascii_digit);
        let joined = matches!(mark, b':' | b'/' | b'_' | b'-') && goes_on || mark == b'.' && digit_follows;
        let before = text.get(..number.start).unwrap_or("");
        if joined || before.ends_with(['-', '/', ':', '#', '_']) {
            continue;
        }
        let written = text.get(number.clone()).unwrap_or("");
        let Ok(value) = written.replace(',', "").parse::<f64>() else { continue };
        let suffix = text.get(scale).unwrap_or("").trim().to_lowercase();
        let scale = match suffix.as_str() {
            "thousand" | "k" => 1e3,
            "million" | "m" => 1e6,
            "billion" | "bn" | "b" => 1e9,
            _ => 1.0,
        };
        found.push(Figure {
            value,
            scaled: value * scale,
            percent: suffix == "%" || suffix == "percent",
            digits: written.bytes().filter(u8::is_ascii_digit).count(),
            hedged: is_hedged(before),
            noun: text.get(noun).unwrap_or("").to_lowercase(),
            bytes: number,
        });
    }
    found
}

/// Whether what stands before a number says that it is not meant exactly.
fn is_hedged(before: &str) -> bool {
    let said = before.trim_end_matches(['$', '€', '£']).trim_end().as_bytes();
    let ends = |hedge: &&str| {
        said.len()
            .checked_sub(hedge.len())
            .and_then(|at| said.get(at..))
            .is_some_and(|end| end.eq_ignore_ascii_case(hedge.as_bytes()))
    };
    HEDGES.iter().any(ends)
}

/// A number as it is written, where its scale stands and where the word after it; what is not there is empty.
#[derive(Debug, PartialEq)]
struct Written {
    number: Range<usize>,
    scale: Range<usize>,
    noun: Range<usize>,
}

/// The numbers of a text in its order. One begins where no letter, digit or point stands before it, and takes its scale
/// and the word after it along: the next begins behind them.
fn numbers(text: &str) -> impl Iterator<Item = Written> {
    let bytes = text.as_bytes();
    let (mut at, mut free) = (0, 0);
    std::iter::from_fn(move || {
        loop {
            let start = at + bytes.get(at..)?.iter().position(u8::is_ascii_digit)?;
            let before = text.get(..start).and_then(|head| head.chars().next_back());
            let begins = match before {
                None => true,
                Some(c) => start - c.len_utf8() >= free && c != '.' && !is_word(c),
            };
            if !begins {
                at = start + digits(bytes, start);
                continue;
            }
            let end = number_end(bytes, start);
            let scale = scale(text, end);
            let noun = noun(bytes, scale.end);
            at = noun.end;
            free = at;
            return Some(Written { number: start..end, scale, noun });
        }
    })
}

/// Whether a character belongs to words, as in a pattern.
fn is_word(c: char) -> bool {
    static WORD: LazyLock<Regex> = LazyLock::new(|| pattern(r"\w"));
    if c.is_ascii() { c.is_ascii_alphanumeric() || c == '_' } else { WORD.is_match(c.encode_utf8(&mut [0; 4])) }
}

/// How many digits stand in a row.
fn digits(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Where the number that begins at `start` ends: digits, in groups of three with commas or without, and a fraction.
fn number_end(bytes: &[u8], start: usize) -> usize {
    let is = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
    let first = digits(bytes, start);
    let mut end = start + first;
    while first <= 3 && is(end, b',') && digits(bytes, end + 1) >= 3 {
        // Of four digits in a row the fourth is no part of a group.
        end += 4;
        if bytes.get(end).is_some_and(u8::is_ascii_digit) {
            return end;
        }
    }
    let fraction = if is(end, b'.') { digits(bytes, end + 1) } else { 0 };
    if fraction > 0 { end + 1 + fraction } else { end }
}

/// The scale or the percent sign right behind a number.
fn scale(text: &str, end: usize) -> Range<usize> {
    const SCALES: [&str; 8] = ["percent", "thousand", "million", "billion", "bn", "k", "m", "b"];
    let rest = text.get(end..).unwrap_or("");
    let blank = rest.chars().next().filter(|c| c.is_whitespace()).map_or(0, char::len_utf8);
    if rest.get(blank..).is_some_and(|sign| sign.starts_with('%')) {
        return end..end + blank + 1;
    }
    let blank = usize::from(rest.starts_with(' '));
    let word = rest.as_bytes().get(blank..).unwrap_or_default();
    let length = word.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    let word = word.get(..length).unwrap_or_default();
    let is_scale = SCALES.iter().any(|scale| word.eq_ignore_ascii_case(scale.as_bytes()));
    if is_scale { end..end + blank + length } else { end..end }
}

/// The word of three letters or more behind a number and its scale, as far as thirty letters.
fn noun(bytes: &[u8], end: usize) -> Range<usize> {
    let letters =
        bytes.get(end + 1..).unwrap_or_default().iter().take(30).take_while(|byte| byte.is_ascii_alphabetic());
    match letters.count() {
        count @ 3.. if matches!(bytes.get(end), Some(b' ' | b'-')) => end + 1..end + 1 + count,
        _ => end..end,
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 0.011_f64.max(b.abs() * 0.006)
}

/// Whether the material holds a number, or one can be computed from two of its numbers.
fn has(material: &Material, figure: &Figure) -> bool {
    let known = &material.figures;
    let same = |one: &Figure| {
        one.percent == figure.percent
            && (near(one.scaled, figure.scaled) || near(one.value, figure.value) && near(figure.value, figure.scaled))
    };
    if known.iter().any(same) {
        return true;
    }
    let wanted = figure.scaled;
    let few = known.get(..COMBINED_MAX.min(known.len())).unwrap_or(known);
    let sum: f64 = few.iter().map(|one| one.scaled).sum();
    if near(sum, wanted) {
        return true;
    }
    // Units of time, and shares.
    let factors = [60.0, 24.0, 3600.0, 1000.0, 7.0, 12.0, 100.0, 30.0, 365.0];
    few.iter().enumerate().any(|(at, a)| {
        let a = a.scaled;
        factors.iter().any(|factor| near(a * factor, wanted) || near(a / factor, wanted))
            || figure.percent && near(100.0 - a, wanted)
            || few.iter().skip(at).any(|b| {
                let b = b.scaled;
                let quotient = |x: f64, y: f64| if y == 0.0 { f64::NAN } else { x / y };
                [a + b, (a - b).abs(), a * b, quotient(a, b), quotient(b, a), f64::midpoint(a, b)]
                    .iter()
                    .any(|x| near(*x, wanted))
                    || figure.percent
                        && [
                            quotient(a, b),
                            quotient(b, a),
                            quotient(a - b, b),
                            quotient(b - a, a),
                            quotient(a - b, a),
                            quotient(b - a, b),
                        ]
                        .iter()
                        .any(|share| (share.abs() * 100.0 - wanted).abs() <= 0.51)
            })
    })
}

static ATTRIBUTES: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?-u:\b)(?:(?:per|according to|based on|from|as (?:documented|stated|noted|shown|listed|reported|described) (?:in|by))(?: the| your| this| that)? (?:[a-z-]{2,20} )?|the (?:[a-z-]{2,20} )?)(?:report|docs?|documentation|spec|sheet|runbook|manual|handbook|policy|notes|transcript|readme|guide|excerpt|article|wiki|schedule|contract|timeline|logs?|changelog|brief|memo|scan|audit|listing|config|output|table|data|email|ticket|invoice)(?-u:\b)(?:,| (?:says?|states?|notes?|shows?|confirms?|lists?|gives?|reports?)|:|\.|;|$| that)|(?-u:\b)(?:verbatim from|spelled out in|if memory serves|i remember)(?-u:\b)",
    )
});

/// Whether a sentence says where it has something from.
pub fn attributes(text: &str) -> bool {
    ATTRIBUTES.is_match(text)
}

fn unheld(material: &Material, said: &Said<'_>, digits: usize) -> Option<Range<usize>> {
    let one =
        said.figures.iter().find(|one| one.digits >= digits && !one.hedged && !is_year(one) && !has(material, one))?;
    Some(said.at + one.bytes.start..said.at + one.bytes.end)
}

fn is_year(one: &Figure) -> bool {
    one.digits == 4 && (1900.0..2100.0).contains(&one.value) && one.value.fract() == 0.0
}

/// A number said to stand in the material, which does not hold it.
pub fn attributed(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    if material.figures.is_empty() || !said.attributes() || proposes(said) {
        return None;
    }
    unheld(material, said, 2)
}

static EXACT: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)(?-u:\b)(?:exactly|precisely) \$?[0-9]"));

/// An exact number that the material does not hold.
pub fn exact(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    if material.figures.len() < 2 {
        return None;
    }
    let start = EXACT.find(said.text)?.end() - 1;
    if proposes(said) {
        return None;
    }
    let one = said.figures.iter().find(|one| one.bytes.start == start)?;
    (one.digits >= 2 && !has(material, one)).then(|| said.at + one.bytes.start..said.at + one.bytes.end)
}

/// "9 warnings" where the material counts other warnings.
pub fn counted(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    static CHANGES: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)(?-u:\b)(?:from|to|after|added?|removed?|more|fewer|another|left|remaining|of the|first|last|each|every|per|within|in|total|both|fixed|new|only)(?-u:\b)",
        )
    });
    let plain = |noun: &str| noun.trim_end_matches('s').to_owned();
    let generic = |noun: &str| {
        matches!(
            noun,
            "day"
                | "hour"
                | "minute"
                | "second"
                | "week"
                | "month"
                | "year"
                | "time"
                | "and"
                | "the"
                | "percent"
                | "step"
                | "point"
                | "line"
                | "thing"
                | "reason"
                | "way"
                | "option"
                | "example"
                | "key"
                | "main"
                | "for"
                | "are"
                | "item"
        )
    };
    if said.figures.iter().all(|one| one.noun.len() < 4) || proposes(said) || CHANGES.is_match(said.text) {
        return None;
    }
    let one = said.figures.iter().find(|one| {
        let noun = plain(&one.noun);
        let counts = |known: &&Figure| plain(&known.noun) == noun;
        noun.len() >= 4
            && one.noun.ends_with('s')
            && !generic(&noun)
            && !one.hedged
            && !one.percent
            && one.value.fract() == 0.0
            && material.figures.iter().filter(counts).count() == 1
            && !has(material, one)
    })?;
    Some(said.at + one.bytes.start..said.at + one.bytes.end)
}

/// An acronym with a number where the material gives the acronym another one.
pub fn acronym(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    static NAMED: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?-u:\b)([A-Z]{2,6})(?-u:\b)[^.,;\n0-9]{0,24}?[$€£]?([0-9][0-9,]*(?:\.[0-9]+)?)"));
    let known = material.named(Fact::Acronyms, &NAMED);
    if known.is_empty() || proposes(said) {
        return None;
    }
    NAMED.captures_iter(said.text).find_map(|found| {
        let (name, number) = (found.get(1)?.as_str(), found.get(2)?);
        if matches!(
            name,
            "PR" | "MR" | "ID" | "HTTP" | "RFC" | "ISO" | "UTC" | "AM" | "PM" | "TODO" | "II" | "III" | "CVE"
        ) {
            return None;
        }
        let one = said.figures.iter().find(|one| one.bytes.start == number.start())?;
        let known = known.iter().any(|other| other == name);
        (known && one.digits >= 2 && !one.hedged && !is_year(one) && !has(material, one))
            .then(|| said.at + number.start()..said.at + number.end())
    })
}

static VERSION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)(?:^|[^\w.])v?([0-9]{1,4}\.[0-9]{1,5}\.[0-9]{1,6})(?:$|[^\w.]|\.(?:\s|$))"));

/// A version that the material, which has versions, does not name.
pub fn version(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    let known = material.named(Fact::Versions, &VERSION);
    if known.is_empty() || proposes(said) {
        return None;
    }
    let found = VERSION
        .captures_iter(said.text)
        .filter_map(|found| found.get(1))
        .find(|one| !known.iter().any(|known| known == one.as_str()) && !material.text.contains(one.as_str()))?;
    Some(said.at + found.start()..said.at + found.end())
}

/// Milliseconds of the material said to be seconds.
pub fn unit(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    static MILLIS: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?i)(?:^|[^\w.])([0-9][0-9,]*) ?(?:ms|milliseconds?)(?-u:\b)"));
    static SECONDS: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?i)(?:^|[^\w.])([0-9][0-9,]*) ?(?:s|secs?|seconds?)(?-u:\b)"));
    let known = material.named(Fact::Millis, &MILLIS);
    if known.is_empty() || proposes(said) {
        return None;
    }
    let also = material.named(Fact::Seconds, &SECONDS);
    let holds = |list: &[String], one: &str| list.iter().any(|known| known == one);
    let found = SECONDS
        .captures_iter(said.text)
        .filter_map(|found| found.get(1))
        .find(|one| one.len() >= 2 && holds(known, one.as_str()) && !holds(also, one.as_str()))?;
    Some(said.at + found.start()..said.at + found.end())
}

/// A rise or fall against the two last rows of a table of two columns.
pub fn trend(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    static UP: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?i)(?-u:\b)(?:grew|rose|increased|went up|climbed|gained|growth)(?-u:\b)"));
    static DOWN: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"(?i)(?-u:\b)(?:fell|dropped|decreased|declined|went down|shrank|shrunk|lost)(?-u:\b)")
    });
    let (name, before, last) = material.trend.get_or_init(|| table(&material.text)).as_ref()?;
    if !said.lower().contains(name) {
        return None;
    }
    let (up, down) = (UP.is_match(said.text), DOWN.is_match(said.text));
    let wrong = up && !down && last < before || down && !up && last > before;
    wrong.then(|| said.whole())
}

/// What a table of two columns and two rows measures, and the two values.
fn table(text: &str) -> Option<(String, f64, f64)> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let head: Vec<&str> =
        lines.find(|line| line.matches(',').count() == 1 && !line.ends_with(['.', '?']))?.split(',').collect();
    let measure = head.get(1)?.trim().to_lowercase();
    let name: String = measure.chars().take_while(char::is_ascii_alphabetic).collect();
    let values: Vec<f64> = lines.map_while(|line| line.split_once(',')?.1.trim().parse().ok()).collect();
    match values.as_slice() {
        [before, last] if name.len() >= 3 => Some((name, *before, *last)),
        _ => None,
    }
}

/// A total in an answer that is the sum of nothing beside it.
pub fn inconsistent_total(answer: &str) -> Option<Range<usize>> {
    static AMOUNT: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"[$€£] ?([0-9][0-9,]*(?:\.[0-9]{1,2})?)(?:$|[^0-9kKmMbB%])"));
    static TOTAL: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)(?-u:\b)(?:total(?:s|ing|ling)?(?: of)?|in all|altogether|sum(?:s)?(?: to| of)?|adds? up to)(?-u:\b)",
        )
    });
    static OTHER: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)(?-u:\b)(?:tax|vat|discount|off|shipping|refund|budget|average|each|per|remaining|left|other|more|excluding|before)(?-u:\b)|[%×x*]",
        )
    });
    if !answer.contains(['$', '€', '£']) {
        return None;
    }
    for (at, sentence) in crate::text::placed_sentences(answer).take(400) {
        if !TOTAL.is_match(sentence) || OTHER.is_match(sentence) {
            continue;
        }
        let amounts: Vec<f64> = AMOUNT
            .captures_iter(sentence)
            .take(30)
            .filter_map(|found| found.get(1)?.as_str().replace(',', "").parse().ok())
            .collect();
        let sum: f64 = amounts.iter().sum();
        if amounts.len() >= 4 && !amounts.iter().any(|one| (sum - one - one).abs() <= 0.011) {
            return Some(at..at + sentence.len());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)(?:^|[^\w.])(?P<n>[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?)(?P<s>\s?%| ?percent(?-u:\b)| ?(?:thousand|million|billion|bn|k|m|b)(?-u:\b))?(?:[ -](?P<noun>[a-z]{3,30}))?",
        )
    });

    proptest! {
        /// Reading by hand finds what the pattern finds.
        #[test]
        fn numbers_are_those_of_the_pattern(parts in prop::collection::vec(
            prop::sample::select(vec![
                "1", "12", "345", "6789", ",", ".", " ", "-", "%", "k", "M", "bn", "percent", " Million", "days",
                "x", "_", "é", "²", "\u{300}", "\u{a0}", "\n", "$", "(", " words and more", "abcdefghijklmnopqrstuvwxyzabcdefgh",
            ]),
            0..14,
        )) {
            let text = parts.concat();
            let wanted: Vec<[String; 3]> = NUMBER
                .captures_iter(&text)
                .map(|found| ["n", "s", "noun"].map(|name| found.name(name).map_or("", |one| one.as_str()).to_owned()))
                .collect();
            let read: Vec<[String; 3]> = numbers(&text)
                .map(|one| [one.number, one.scale, one.noun].map(|bytes| text.get(bytes).unwrap().to_owned()))
                .collect();
            prop_assert_eq!(read, wanted);
        }
    }

    #[test]
    fn a_hedge_stands_right_before_the_number() {
        for (before, want) in [
            ("About ", true),
            ("up to $", true),
            ("at least  €", true),
            ("~", true),
            ("of ", false),
            ("about it ", false),
        ] {
            assert_eq!(is_hedged(before), want, "{before}");
        }
    }
}
