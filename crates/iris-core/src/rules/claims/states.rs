//! States, names and quotations of the material.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::{Fact, Material, Said, pattern, proposes};

/// A quotation that is attributed to the material and does not stand there.
pub fn quoted(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    static QUOTE: LazyLock<Regex> = LazyLock::new(|| pattern(r#"["“]([^"“”\n]{15,300})["”]"#));
    let may = || said.text.contains(['"', '“']);
    if material.text.len() < 200 || !may() || !said.attributes() || proposes(said) {
        return None;
    }
    let plain = |text: &str| {
        let words: Vec<String> =
            text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
        words.join(" ")
    };
    let known = material.fact(Fact::Plain, |text| vec![plain(text)]).first()?;
    let found = QUOTE.captures_iter(said.text).filter_map(|found| found.get(1)).find(|one| {
        let parts = one.as_str().split("...").flat_map(|part| part.split('…'));
        parts.map(plain).any(|part| part.len() >= 12 && !known.contains(&part))
    })?;
    Some(said.at + found.start()..said.at + found.end())
}

/// A section that the material, which numbers its sections, does not have.
pub fn section(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    static SECTION: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"(?i)(?:(?-u:\b)(?:sections?|clause|article|chapter)|§) ?([0-9]{1,3}(?:\.[0-9]{1,3}){0,3})")
    });
    let known = material.named(Fact::Sections, &SECTION);
    if known.is_empty() {
        return None;
    }
    let found = SECTION.captures_iter(said.text).filter_map(|found| found.get(1)).find(|one| {
        let parent = |known: &String| {
            known.starts_with(&format!("{}.", one.as_str())) || one.as_str().starts_with(&format!("{known}."))
        };
        !known.iter().any(|known| known == one.as_str())
            && !known.iter().any(parent)
            && !material.text.contains(&format!("\n{} ", one.as_str()))
    })?;
    Some(said.at + found.start()..said.at + found.end())
}

/// A switch said to be on that the material has off, or the other way round.
pub fn setting(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    static KEY: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r#"(?im)^[\s"'-]*([a-z][a-z0-9_.-]{2,40})["']?\s*[:=]\s*["']?(true|false|yes|no|on|off|enabled|disabled)["']?,?\s*$"#,
        )
    });
    static ON: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)(?-u:\b)(?:is|are) (?:currently |already )?(?:enabled|on|active|turned on|switched on|true|live)(?-u:\b)",
        )
    });
    static OFF: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)(?-u:\b)(?:is|are) (?:currently |already )?(?:disabled|off|inactive|turned off|switched off|false|not (?:enabled|active|on))(?-u:\b)",
        )
    });
    let known = material.settings.get_or_init(|| {
        if !material.text.contains([':', '=']) {
            return Vec::new();
        }
        let pair = |found: Captures<'_>| {
            let on = matches!(found.get(2)?.as_str().to_ascii_lowercase().as_str(), "true" | "yes" | "on" | "enabled");
            Some((found.get(1)?.as_str().to_owned(), on))
        };
        KEY.captures_iter(&material.text).take(200).filter_map(pair).collect()
    });
    if known.is_empty() || proposes(said) {
        return None;
    }
    let (on, off) = (ON.is_match(said.text), OFF.is_match(said.text));
    if on == off {
        return None;
    }
    let words: BTreeSet<&str> = said.lower().split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let about = |key: &str| {
        let lower = key.to_lowercase();
        lower
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|part| part.len() >= 2 && !matches!(*part, "enabled" | "enable" | "is"))
            .all(|part| words.contains(part))
            && lower.chars().any(char::is_alphabetic)
    };
    let polarity: BTreeSet<bool> = known.iter().filter(|(key, _)| about(key)).map(|(_, on)| *on).collect();
    (polarity.len() == 1 && !polarity.contains(&on)).then(|| said.whole())
}

/// Many results where the material has none.
pub fn emptiness(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    static NONE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r#"(?i)"?(?:results|hits|items|documents|matches|records|data|rows)"?\s*[:=]\s*(?:\[\s*\]|0(?-u:\b)|null)|(?-u:\b)(?:0|no) (?:results|hits|documents|matches|records|rows)(?-u:\b)"#,
        )
    });
    static MANY: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)(?-u:\b)(?:found|shows?|returned|are|lists?|contains?|there (?:are|were)) (?:several|multiple|many|numerous|a number of|some|[2-9]|[1-9][0-9]+) (?:[a-z]+ )?(?:documents|results|hits|matches|records|items|rows)(?-u:\b)",
        )
    });
    static ONE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r#"(?i)"?(?:results|hits|items|documents|matches|records|rows)"?\s*[:=]\s*(?:\[\s*[^\]\s]|[1-9])"#)
    });
    let none = material.has(Fact::Nothing, |text| NONE.is_match(text) && !ONE.is_match(text));
    (none && MANY.is_match(said.text) && !proposes(said)).then(|| said.whole())
}

/// Success where the material records a failure and nothing else.
pub fn success(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    static FAILED: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r#"(?i)permission[_ ]denied|access[_ ]denied|(?-u:\b)unauthorized(?-u:\b)|"?status"?\s*[:=]\s*"?(?:failed|error|past_due|declined|rejected)|"?success"?\s*[:=]\s*false|(?-u:\b)[1-9][0-9]* failed(?-u:\b)|(?-u:\b)(?-i:FAILED)(?-u:\b)|exit(?:ed with)?(?: code| status)\s?[:=]?\s?[1-9]|(?-u:\b)failed\.?\s*$|(?m:failed\.?$)"#,
        )
    });
    static SUCCEEDED: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)(?-u:\b)(?:succeeded|successful(?:ly)?|went through|passed|completed (?:without|fine)|no (?:errors|failures|problems)|all (?:tests )?(?:pass(?:ed)?|green)|worked)(?-u:\b)",
        )
    });
    static ADMITS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)(?-u:\b)(?:fail(?:ed|s|ure|ing)?|not|n['’]t|error|denied|declined|rejected|unsuccessful|unsuccessfully|except|although|however|but|after|once|fix(?:ed)?|retry|then|if|until|before|to (?:be|make)|partial(?:ly)?)(?-u:\b)|n['’]t(?-u:\b)",
        )
    });
    let failed = material.has(Fact::Failures, |text| FAILED.is_match(text) && !SUCCEEDED.is_match(text));
    (failed && SUCCEEDED.is_match(said.text) && !ADMITS.is_match(said.text) && !proposes(said)).then(|| said.whole())
}

/// A flag of a command line that its help does not list.
pub fn flag(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    static FLAG: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?:^|[\s`'(\[,])(--[a-z][a-z0-9-]{1,40})"));
    const USUAL: [&str; 14] = [
        "--help",
        "--version",
        "--verbose",
        "--quiet",
        "--silent",
        "--dry-run",
        "--debug",
        "--output",
        "--config",
        "--json",
        "--yes",
        "--no-color",
        "--watch",
        "--all",
    ];
    if !said.text.contains("--") || material.named(Fact::Flags, &FLAG).len() < 2 {
        return None;
    }
    let known = material.named(Fact::Flags, &FLAG);
    if !["--help", "options:", "usage:"].iter().any(|word| material.lower().contains(word)) {
        return None;
    }
    static ABSENT: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"(?i)(?-u:\b)(?:no|not|isn['’]t|doesn['’]t|without|lacks?|missing|does not)(?-u:\b)")
    });
    if ABSENT.is_match(said.text) {
        return None;
    }
    let found = FLAG
        .captures_iter(said.text)
        .filter_map(|found| found.get(1))
        .find(|one| !known.iter().any(|known| known == one.as_str()) && !USUAL.contains(&one.as_str()))?;
    Some(said.at + found.start()..said.at + found.end())
}

/// A status that was observed, and another one in the material.
pub fn status(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    static KNOWN: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r#"(?i)HTTP/[0-9.]+ ([1-5][0-9]{2})(?-u:\b)|"?status(?:_code|code)?"?\s*[:=]\s*"?([1-5][0-9]{2})(?-u:\b)|(?-u:\b)(?:returned|returns|got|responded with|response:?)(?: an?| http)? ([1-5][0-9]{2})(?-u:\b)"#,
        )
    });
    static SAID: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)(?-u:\b)(?:returned|returns|got|responded with|responds with|fails with|failed with|gives|gave|threw|throws|is|was)(?: an?| http| status| code){0,3} ([1-5][0-9]{2})(?-u:\b)",
        )
    });
    let known = material.named(Fact::Statuses, &KNOWN);
    if known.is_empty() || proposes(said) {
        return None;
    }
    let found = SAID
        .captures_iter(said.text)
        .filter_map(|found| found.get(1))
        .find(|one| !known.iter().any(|known| known == one.as_str()) && !material.text.contains(one.as_str()))?;
    Some(said.at + found.start()..said.at + found.end())
}

/// Whether a text names an error in either case.
fn says_error(text: &str) -> bool {
    text.as_bytes().windows(5).any(|part| part.eq_ignore_ascii_case(b"error"))
}

/// "No errors" over a log with errors; "does not mention X" over a text that does.
pub fn absence(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    static NO_ERRORS: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?i)(?-u:\b)(?:no|without|zero|free of) (?:any )?errors?(?-u:\b)"));
    static ERRORS: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?m)(?-u:\b)(?:ERROR|FATAL|CRITICAL)(?-u:\b)|\s50[0-9]\s"));
    static UNSAID: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r#"(?i)(?:(?:does|do|did)(?:n['’]t| not) (?:mention|contain|include|say anything about|refer to)|(?:no mention of|says nothing about|nothing about))(?: the word| the name| any)? ["'`“‘]([^"'`”’\n]{3,60})["'`”’]"#,
        )
    });
    if !says_error(said.text) && !said.text.contains(['"', '\'', '`', '“', '‘']) {
        return None;
    }
    if NO_ERRORS.is_match(said.text) && material.has(Fact::Errors, |text| ERRORS.is_match(text)) && !proposes(said) {
        return Some(said.whole());
    }
    let found = UNSAID.captures_iter(said.text).filter_map(|found| found.get(1)).find(|one| {
        // The ask itself may name it: only a second mention is the material's.
        material.lower().matches(&one.as_str().to_lowercase()).count() >= 2
    })?;
    Some(said.at + found.start()..said.at + found.end())
}

/// A recommendation of what the material forbids.
pub fn forbidden(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    static NEVER: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)(?-u:\b)(?:do not|don['’]t|never|must not) (?:enable|use|run|set|call|disable|delete|restart|install|share)(?: the| a| an)? [`'\x22]?([a-z][\w.-]{3,40})",
        )
    });
    static ADVISES: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)(?:^|[.:,]\s|(?-u:\b)(?:i recommend|you should|you can|simply|just|then|please|to fix (?:this|it),?|first,?) )(?:enabl|us|run|set|call|disabl|delet|restart|install|shar)(?:e|ing|ting|ning)? ",
        )
    });
    static DENIES: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)(?-u:\b)(?:not|never|avoid|n['’]t|instead of|without|rather than|don['’]t)(?-u:\b)|n['’]t(?-u:\b)",
        )
    });
    let known = material.fact(Fact::Forbidden, |text| {
        let name = |found: Captures<'_>| Some(found.get(1)?.as_str().trim_end_matches('.').to_lowercase());
        let kept =
            |name: &String| !matches!(name.as_str(), "this" | "that" | "these" | "them" | "your" | "more" | "any");
        NEVER.captures_iter(text).filter_map(name).filter(kept).collect()
    });
    if known.is_empty() || !ADVISES.is_match(said.text) || DENIES.is_match(said.text) {
        return None;
    }
    let hit = known.iter().any(|name| said.lower().contains(name));
    hit.then(|| said.whole())
}

/// "May cost up to 20" that became "will cost 20".
pub fn modality(material: &Material, said: &Said<'_>) -> Option<Range<usize>> {
    static MAY: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)(?-u:\b)(?:may|might|can|could) ([a-z]+)[^.\n]{0,40}?(?:up to|as (?:much|many|long) as|at most) [$€£]?([0-9][0-9,.]*)",
        )
    });
    static WILL: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"(?i)(?-u:\b)(?:will|always|is going to) ([a-z]+)[^.\n]{0,40}?[$€£]?([0-9][0-9,.]*)")
    });
    static SOFT: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?i)up to|at most|as (?:much|many|long) as|maximum|may|might|could"));
    let bare = |number: &str| number.trim_end_matches(['.', ',']).to_owned();
    let known = material.allowed.get_or_init(|| {
        MAY.captures_iter(&material.text)
            .filter_map(|found| Some((found.get(1)?.as_str().to_lowercase(), bare(found.get(2)?.as_str()))))
            .collect()
    });
    if known.is_empty() || SOFT.is_match(said.text) {
        return None;
    }
    let hit = WILL.captures_iter(said.text).any(|found| {
        let (Some(verb), Some(number)) = (found.get(1), found.get(2)) else { return false };
        known.contains(&(verb.as_str().to_lowercase(), bare(number.as_str())))
    });
    hit.then(|| said.whole())
}

/// What citations that nobody can look up look like: authors of no name, or an identifier that is none.
pub fn citation_shape(answer: &str) -> Option<Range<usize>> {
    static DOI: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)(?:doi\.org/|(?-u:\b)doi:\s?)([^\s)\]>,;]+)"));
    static VALID: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)^10\.[0-9]{4,9}/\S+"));
    static NOBODY: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)(?-u:\b)(?:(?:john|jane) (?:doe|smith)|(?:doe|smith), (?:j\.|john|jane)|first ?author|author (?:one|two|a|b|1|2)|firstname lastname|anonymous authors?|some(?:one)? et al\.?)(?-u:\b)[^\n]{0,120}?\((?:19|20)[0-9]{2}\)",
        )
    });
    static MADE_UP: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?i)10\.[0-9]{4,9}/(?:x{3,}|0{4,}|1234567?8?9?0?|abc|example|placeholder|fake|tbd)[^\s]{0,20}$|(?-u:\b)10\.(?:0000|1234|9999)/",
        )
    });
    if !answer.contains("doi") && !answer.contains("DOI") && !answer.contains("(19") && !answer.contains("(20") {
        return None;
    }
    let doi = DOI.captures_iter(answer).filter_map(|found| found.get(1)).find(|one| {
        let bare = one.as_str().trim_end_matches('.');
        !VALID.is_match(bare) || MADE_UP.is_match(bare)
    });
    doi.map(|one| one.range()).or_else(|| NOBODY.find(answer).map(|one| one.range()))
}
