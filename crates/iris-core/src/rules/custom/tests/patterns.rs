use super::*;
use crate::rules::custom::doubt::is_catastrophic;
use crate::rules::pattern::{Flags, GaveUp, Pattern};

fn pattern(text: &str) -> Pattern {
    Pattern::new(text, Flags::default()).unwrap_or_else(|why| panic!("{text}: {why}"))
}

/// Published shapes that stall backtracking engines, and their harmless neighbours.
#[test]
fn patterns_that_stall_backtracking_engines_are_told_from_those_that_do_not() {
    for bad in [
        "(a+)+$",
        "(a*)*",
        "(a|aa)+$",
        "(\\w+\\s*)*$",
        "^(\\d+(\\.\\d+)?)+$",
        "([a-zA-Z]+)*\\d",
        "(?:a?b?)*c",
        "((a+)|b)+c",
        "(x+x+)+y",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "(?:https?://\\S+\\s*)+$",
    ] {
        assert!(is_catastrophic(pattern(bad).syntax()), "{bad}");
    }
    for good in [
        "a+",
        "^[\\w.+-]+@[\\w-]+\\.[\\w.-]+$",
        "(?:\\w+\\s)*end",
        "\\b(?:guarantee[ds]?|promise[ds]?)\\b",
        "\"(?:[^\"\\\\]|\\\\.)*\"",
        "(.|\\n)*x",
        "(?:\\d{1,3}\\.){3}\\d{1,3}",
        "^\\d{4}-\\d{2}-\\d{2}(?:T\\d{2}:\\d{2}(?::\\d{2})?Z?)?$",
        "(?:[0-9a-f]{2}:)+[0-9a-f]{2}",
        "a*a*a*b",
        "(.*,){25}x",
        "(?s).*",
        "(?m)^- .+(?:\\n- .+)*$",
        "(a{5})*",
        // The parser makes one class of these branches, and nothing is left to go wrong.
        "(a|a)*$",
        "(.|\\s)*x",
        "(?i)([a-z]|[A-Z])*!",
    ] {
        assert!(!is_catastrophic(pattern(good).syntax()), "{good}");
    }
}

#[test]
fn the_question_itself_is_cheap() {
    let nested = format!("{}a{}", "(?:".repeat(20), "{1,3})".repeat(20));
    let wide = format!("(?:{})+", (0..190).map(|n| format!("w{n:03}")).collect::<Vec<_>>().join("|"));
    let classes = format!("(?:{})*!", "[a-z]?".repeat(160));
    for text in [nested.as_str(), wide.as_str(), classes.as_str()] {
        // Whatever the answer: it comes.
        if let Ok(pattern) = Pattern::new(text, Flags::default()) {
            is_catastrophic(pattern.syntax());
        }
    }
    assert!(is_catastrophic(pattern("(?:[a-z]?[a-z]?)*!").syntax()));
}

#[test]
fn flags_and_unicode_mean_what_they_say() {
    let matches = |config: Value, text: &str| word(&said("regex_match", config, text)) == "pass";
    assert!(matches(json!({"pattern": "ÉTÉ", "flags": "i"}), "l'été"));
    assert!(matches(json!({"pattern": "(?i)été"}), "L'ÉTÉ"));
    assert!(matches(json!({"pattern": "^b$", "flags": "m"}), "a\nb\nc") && !matches(json!({"pattern": "^b$"}), "a\nb"));
    assert!(matches(json!({"pattern": "a.b", "flags": "gsu"}), "a\nb") && !matches(json!({"pattern": "a.b"}), "a\nb"));
    assert!(matches(json!({"pattern": "\\d{4}\\/\\d{2}"}), "2026/12"), "an escaped slash");
    assert!(matches(json!({"pattern": "\\u00e9"}), "é"));
    assert!(
        matches(json!({"pattern": "\\bcafé\\b"}), "le café, là") && !matches(json!({"pattern": "\\bcaf\\b"}), "café")
    );
}

#[test]
fn a_boundary_beside_foreign_letters_is_found_as_the_slow_way_finds_it() {
    let pattern = pattern("\\bna\\w+\\b");
    let reference = ::regex::Regex::new("\\bna\\w+\\b").unwrap();
    for text in ["ein naïver Wald", "unna", "naïf", "é na\u{301}b", "na", "日本 nab 日本"] {
        let found = pattern.search().find(text, 0..text.len()).unwrap();
        let expected = reference.find(text).map(|found| found.range());
        assert_eq!(found, expected, "{text}");
    }
}

/// States are built until a bound; work that no rule may take is given up and never taken for an answer.
#[test]
fn a_pattern_that_needs_too_many_states_gives_up() {
    let pattern = pattern("[01]*1[01]{18}$");
    let mut bits = 0x9e37_79b9_u32;
    let text: String = (0..400_000)
        .map(|_| {
            bits ^= bits << 13;
            bits ^= bits >> 17;
            bits ^= bits << 5;
            if bits & 1 == 1 { '1' } else { '0' }
        })
        .chain(['x'])
        .collect();
    assert_eq!(pattern.is_in(&text), Err(GaveUp));
    assert_eq!(word(&said("regex_no_match", json!({"pattern": "[01]*1[01]{18}$"}), &text)), "defeated");
    let long = "é".repeat(600_000);
    assert_eq!(word(&said("regex_match", json!({"pattern": "\\b[a-zé]{20}\\b"}), &long)), "defeated");
}

#[test]
fn memory_is_bounded_by_the_compiled_size() {
    for text in ["\\w{200}", "(?i)[\\p{L}\\p{N}]{100}", "((((a{50}){50}){50}){50})", "\\pL{5}\\pN{5}\\pS{5}\\pP{5}"] {
        if let Ok(pattern) = Pattern::new(text, Flags::default()) {
            assert!(pattern.bytes() <= 2 << 20, "{text}: {}", pattern.bytes());
        }
    }
    assert!(Pattern::new("((((a{50}){50}){50}){50})", Flags::default()).is_err());
    assert!(Pattern::new(&format!("{}a{}", "(".repeat(60), ")".repeat(60)), Flags::default()).is_err());
}

/// How long the worst takes. Run it with optimisations: `cargo test --release -p iris-core -- --ignored the_worst`.
#[test]
#[ignore = "measures; says nothing without optimisations"]
fn the_worst_patterns_on_a_mebibyte() {
    let noise: String = {
        let mut bits = 0x9e37_79b9_u32;
        let mut next = move || {
            bits ^= bits << 13;
            bits ^= bits >> 17;
            bits ^= bits << 5;
            bits
        };
        (0..TEXT_BYTES_MAX).map(|_| char::from(b'0' + (next() & 1) as u8)).collect()
    };
    let latin = "naïve café au lait, ".repeat(TEXT_BYTES_MAX / 23);
    let short = latin.chars().take(40_000).collect::<String>();
    let texts = [
        ("short latin", short),
        ("a", "a".repeat(TEXT_BYTES_MAX)),
        ("01", noise),
        ("latin", latin),
        (" ", " ".repeat(TEXT_BYTES_MAX)),
    ];
    for shape in [
        "(?:.*,){25}x",
        "a*a*a*a*a*b",
        "[01]*1[01]{18}$",
        "(?i)[a-z]{1,40}!",
        "\\b\\w{1,12}\\b!",
        "[\\p{L}\\p{N}]{1,10}[^\\p{L}]x",
        "(?:[^,]*,){40}",
        "(?s).*[^A-Z]|[A-Z]",
        "\\w+@\\w+\\.\\w+",
        "\\b\\w+@\\w+\\b",
        "\\b[a-zé]{20}\\b!",
        "(?:\\b\\w{1,8}\\b ){2}x",
        "\\b(?:guarantee[ds]?|promise[ds]?)\\b",
    ] {
        let (built, took) = timed(|| Pattern::new(shape, Flags::default()));
        eprintln_line(&format!("{shape}: built in {took:?}"));
        match built {
            Err(why) => eprintln_line(&format!("{shape}: {why}")),
            Ok(pattern) => {
                for (name, text) in &texts {
                    let (outcome, took) = timed(|| pattern.is_in(text));
                    eprintln_line(&format!("{shape} on {name}: {outcome:?} {took:?} {} bytes", pattern.bytes()));
                }
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, std::time::Duration) {
    let begun = std::time::Instant::now();
    let done = work();
    (done, begun.elapsed())
}

#[expect(clippy::print_stderr, reason = "a measurement")]
fn eprintln_line(line: &str) {
    eprintln!("{line}");
}
