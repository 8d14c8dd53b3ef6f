//! Numbers with what they count.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::{Material, Said, pattern, proposes};

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

static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?:^|[^\w.])(?P<n>[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?)(?P<s>\s?%| ?percent(?-u:\b)| ?(?:thousand|million|billion|bn|k|m|b)(?-u:\b))?(?:[ -](?P<noun>[a-z]{3,30}))?",
    )
});
static HEDGE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?:about|roughly|around|approximately|nearly|almost|an estimated|~|circa|ballpark|call it|some|over|under|more than|less than|at least|up to|close to)\s*[$€£]?$",
    )
});

/// The numbers of a text. Parts of dates, times, versions and identifiers are none.
pub fn figures(text: &str) -> Vec<Figure> {
    let mut found = Vec::new();
    for captures in NUMBER.captures_iter(text).take(FIGURES_MAX) {
        let Some(number) = captures.name("n") else { continue };
        let next = text.get(number.end()..).unwrap_or("").as_bytes();
        let mark = next.first().copied().unwrap_or(b' ');
        let goes_on = next.get(1).is_some_and(u8::is_ascii_alphanumeric);
        let digit_follows = next.get(1).is_some_and(u8::is_ascii_digit);
        let joined = matches!(mark, b':' | b'/' | b'_' | b'-') && goes_on || mark == b'.' && digit_follows;
        let before = text.get(..number.start()).unwrap_or("");
        if joined || before.ends_with(['-', '/', ':', '#', '_']) {
            continue;
        }
        let Ok(value) = number.as_str().replace(',', "").parse::<f64>() else { continue };
        let suffix = captures.name("s").map(|s| s.as_str().trim().to_lowercase()).unwrap_or_default();
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
            digits: number.as_str().bytes().filter(u8::is_ascii_digit).count(),
            hedged: HEDGE.is_match(before.trim_end_matches(['$', '€', '£'])),
            noun: captures.name("noun").map(|noun| noun.as_str().to_lowercase()).unwrap_or_default(),
            bytes: number.range(),
        });
    }
    found
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
    if material.figures.is_empty() || !attributes(said.text) || proposes(said) {
        return None;
    }
    unheld(material, said, 2)
}

static EXACT: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)(?-u:\b)(?:exactly|precisely) \$?[0-9]"));

/// An exact number that the material does not hold.
pub fn exact(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    let start = EXACT.find(said.text)?.end() - 1;
    if material.figures.len() < 2 || proposes(said) {
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
    if proposes(said) || CHANGES.is_match(said.text) {
        return None;
    }
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
    if proposes(said) {
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
        let known =
            NAMED.captures_iter(&material.text).any(|known| known.get(1).is_some_and(|other| other.as_str() == name));
        (known && one.digits >= 2 && !one.hedged && !is_year(one) && !has(material, one))
            .then(|| said.at + number.start()..said.at + number.end())
    })
}

static VERSION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)(?:^|[^\w.])v?([0-9]{1,4}\.[0-9]{1,5}\.[0-9]{1,6})(?:$|[^\w.]|\.(?:\s|$))"));

/// A version that the material, which has versions, does not name.
pub fn version(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    let known: Vec<&str> =
        VERSION.captures_iter(&material.text).filter_map(|found| Some(found.get(1)?.as_str())).collect();
    if known.is_empty() || proposes(said) {
        return None;
    }
    let found = VERSION
        .captures_iter(said.text)
        .filter_map(|found| found.get(1))
        .find(|one| !known.contains(&one.as_str()) && !material.text.contains(one.as_str()))?;
    Some(said.at + found.start()..said.at + found.end())
}

/// Milliseconds of the material said to be seconds.
pub fn unit(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    static MILLIS: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?i)(?:^|[^\w.])([0-9][0-9,]*) ?(?:ms|milliseconds?)(?-u:\b)"));
    static SECONDS: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?i)(?:^|[^\w.])([0-9][0-9,]*) ?(?:s|secs?|seconds?)(?-u:\b)"));
    let known: Vec<&str> =
        MILLIS.captures_iter(&material.text).filter_map(|found| Some(found.get(1)?.as_str())).collect();
    if known.is_empty() || proposes(said) {
        return None;
    }
    let also: Vec<&str> =
        SECONDS.captures_iter(&material.text).filter_map(|found| Some(found.get(1)?.as_str())).collect();
    let found = SECONDS
        .captures_iter(said.text)
        .filter_map(|found| found.get(1))
        .find(|one| one.len() >= 2 && known.contains(&one.as_str()) && !also.contains(&one.as_str()))?;
    Some(said.at + found.start()..said.at + found.end())
}

/// A rise or fall against the two last rows of a table of two columns.
pub fn trend(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    static UP: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?i)(?-u:\b)(?:grew|rose|increased|went up|climbed|gained|growth)(?-u:\b)"));
    static DOWN: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"(?i)(?-u:\b)(?:fell|dropped|decreased|declined|went down|shrank|shrunk|lost)(?-u:\b)")
    });
    let mut lines = material.text.lines().map(str::trim).filter(|line| !line.is_empty());
    let head: Vec<&str> =
        lines.find(|line| line.matches(',').count() == 1 && !line.ends_with(['.', '?']))?.split(',').collect();
    let measure = head.get(1)?.trim().to_lowercase();
    let name: String = measure.chars().take_while(char::is_ascii_alphabetic).collect();
    let values: Vec<f64> = lines.map_while(|line| line.split_once(',')?.1.trim().parse().ok()).collect();
    let (last, before) = (values.last()?, values.get(values.len().checked_sub(2)?)?);
    if name.len() < 3 || !said.lower.contains(&name) || values.len() != 2 {
        return None;
    }
    let (up, down) = (UP.is_match(said.text), DOWN.is_match(said.text));
    let wrong = up && !down && last < before || down && !up && last > before;
    wrong.then(|| said.whole())
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
    let mut from = 0;
    for sentence in crate::text::sentences(answer).take(400) {
        let at = from + answer.get(from..)?.find(sentence)?;
        from = at + sentence.len();
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
