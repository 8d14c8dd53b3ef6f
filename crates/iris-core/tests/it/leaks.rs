//! How quick the search for personal data and credentials is. By hand only; its cases are in `tests/cases/rule`.

use std::io::Write as _;
use std::time::Instant;

use iris_core::evaluate::Subject;
use iris_core::rules::{Case, Knobs, Outcome, RULES, run};

fn judge(output: &str) -> Outcome {
    let rule = RULES.iter().find(|rule| rule.meta().name == "no_pii").unwrap();
    run(*rule, &Case::new(&Subject { output: Some(output), ..Subject::default() }), &Knobs::default())
}

/// Names without end that lead to no value: minutes, when each is read with all that follow it.
#[test]
fn names_in_a_row_are_read_once() {
    for seed in ["secret key ", "password="] {
        let start = Instant::now();
        judge(&seed.repeat((1 << 20) / seed.len()));
        assert!(start.elapsed().as_secs() < 30, "{seed}: {:?}", start.elapsed());
    }
}

/// Scenario: prose, answers with numbers in them, and hostile texts; microseconds for each size.
#[test]
#[ignore = "measures time"]
fn leaks_are_found_quickly() {
    let prose = "The last ferry from Port Amsel leaves at 22:15 from pier 4; tickets cost 12.50. ";
    let mixed = "Der Zug fährt um 22:15 — 最終便は22時15分です。 Éxito. token = abc, id 4711. ";
    let busy = "Call +1 415 736 2671 or write to mara.lind@quayhaven.io about order 4000001234567898, key a1b2. ";
    let hostile = [
        "1.1.1.",
        "123-45-",
        "a@a.a@",
        "((((",
        "=A",
        "e\u{301}",
        "sk-",
        "password=",
        "+1 ",
        "eyJ",
        "1 2-3 ",
        "%40",
        "key: ",
        " at ",
        "secret key ",
        "-----BEGIN PRIVATE KEY-----",
        "passport ",
        "AKIA",
        "http://a:",
        "\\u0041",
        "\u{430}a",
        "curl ",
        "token=a1b2c3d4e5f6g7h8 ",
        "eyJhbGciOiJIUzI1NiJ9.",
        "-eyJaaaaaaaaaaaaaaaaaaaaa",
        "4111 1111 1111 1111 ",
        " dot ",
    ];
    let texts = [("prose", prose), ("mixed", mixed), ("busy", busy)].into_iter();
    let mut out = std::io::stderr().lock();
    for (kind, seed) in texts.chain(hostile.iter().map(|text| ("hostile", *text))) {
        for kib in [1_usize, 8, 64, 1024] {
            if (kind == "hostile") != (kib == 1024) {
                continue;
            }
            let output = seed.repeat(kib * 1024 / seed.len());
            judge(&output);
            let rounds = if kib == 1024 { 1 } else { 100 };
            let start = Instant::now();
            for _ in 0..rounds {
                judge(&output);
            }
            writeln!(out, "{kind:8} {seed:.24} {kib:5} KiB {:?}", start.elapsed() / rounds).unwrap();
        }
    }
}
