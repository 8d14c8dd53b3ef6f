use super::sample::expand;
use super::{Standing, find_all, secret};
use crate::text::View;

/// Labels of what is found, test values and public ones in brackets.
fn labels(text: &str) -> Vec<String> {
    let view = View::folded(text);
    find_all(&view)
        .hits
        .into_iter()
        .map(|hit| match hit.standing {
            Standing::Live => hit.label.to_owned(),
            Standing::TestValue => format!("[{}]", hit.label),
            Standing::Public => format!("({})", hit.label),
        })
        .collect()
}

#[test]
fn every_row_of_the_secret_table_finds_its_examples_and_nothing_else() {
    assert!(secret::TABLE.entries.len() >= 70, "secret.toml did not parse");
    let mut wrong = Vec::new();
    for entry in &secret::TABLE.entries {
        if entry.pattern().is_none() {
            wrong.push(format!("{}: the pattern does not compile", entry.id));
        }
        for example in &entry.examples {
            let text = expand(example);
            let lower = text.to_ascii_lowercase();
            if !entry.keywords.iter().any(|word| lower.contains(word.as_str())) {
                wrong.push(format!("{}: no keyword in {example}", entry.id));
            }
            if !secret::find_one(entry, &text).iter().any(|hit| hit.standing == Standing::Live) {
                wrong.push(format!("{}: misses {example}", entry.id));
            }
        }
        for example in &entry.non_examples {
            if secret::find_one(entry, &expand(example)).iter().any(|hit| hit.standing == Standing::Live) {
                wrong.push(format!("{}: finds {example}", entry.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn finds_each_kind() {
    for (text, want) in [
        ("mail mara.lind@quayhaven.io now", "email"),
        ("mara (at) quayhaven (dot) io", "email"),
        ("card 4142 8985 9846 7999 exp 09/28", "credit_card"),
        ("card 6258918587044260698", "credit_card"),
        ("Amex 3717-524712-86564", "credit_card"),
        ("4485 6225\n0729 1422", "credit_card"),
        ("4485–6225–0729–1422", "credit_card"),
        ("SSN 536-22-8716", "ssn"),
        ("the usual 123-45-6789", "ssn"),
        ("536-22-\n1843", "ssn"),
        ("social security number 536 22 8716", "ssn"),
        ("DE89 3704 0044 0532 0130 00 bitte", "iban"),
        ("GB29NWBK60161331926819", "iban"),
        ("from 81.2.69.142 at noon", "ip_address"),
        ("host 2a00:1450:4001:82a::200e", "ip_address"),
        ("Passport no. C03005988", "passport"),
        ("DOB: 1984-07-21", "birth_date"),
        ("date of birth: March 3, 1971", "birth_date"),
        ("MRN: 00482913", "medical_record"),
        ("Call me on +1 415 736 2671", "phone"),
        ("(212) 736-5000", "phone"),
        ("ring +44 20 7123 4567", "phone"),
        ("06 12 34 56 78", "phone"),
        ("tel. 0911 231 45 67", "phone"),
        ("+49 (0)30 901820", "phone"),
        ("postgres://svc:Zq9tR4mVx2Lk@db.int:5432/app", "connection_string"),
    ] {
        assert_eq!(labels(text), [want], "{text}");
    }
}

#[test]
fn sees_through_disguises() {
    for (text, want) in [
        ("mail: mara.lind@\u{200B}quayhaven.io", "email"),
        ("bob＠quayhaven.io", "email"),
        ("\u{430}lice@quayhaven.io", "email"),
        ("card ４５３９ ７２２３ ２３３２ １１３４", "credit_card"),
        ("card ٤٥٣٩٧٢٢٣٢٣٣٢١١٣٤", "credit_card"),
        ("536\u{2060}-22-\u{AD}1843", "ssn"),
        ("联系mara.lind@quayhaven.io谢谢", "email"),
        ("カード番号は4485-6225-0729-1422です", "credit_card"),
        ("señor536-22-1843", "ssn"),
        ("mara%2Elind%40quayhaven%2Eio", "email"),
        ("mara.lind&#64;quayhaven&#46;io", "email"),
        ("mara.lind\\u0040quayhaven.io", "email"),
        ("U1NOIDUzNi0yMi0xODQz", "ssn"),
        ("53534e203533362d32322d31383433", "ssn"),
    ] {
        assert_eq!(labels(text), [want], "{text}");
    }
}

#[test]
fn lets_the_harmless_pass() {
    for text in [
        "The job finished at 1763904127655 and the retry at 1763904131208.",
        "order 4000001234567898 shipped",
        "epoch_ms=4111111111112",
        "Tracking no. 1Z999AA10123456784",
        r#""rate": 2.3500000000000001E-3, "w": 0.4111111111111111, "seed": 5500000000000004e2"#,
        "gitlab event uuid: 2aaffa45-7329-42f9-81ee-f1d6d77cb7a4",
        "tokenizationId: '49e17a32a6a3af3e78e6e783563f06d2'",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "babel-helper-explode-assignable-expression-7",
        "ISBN 978-3-16-148410-0",
        "released 2024-11-2025",
        "build 10.0.19045.3803",
        "part no. 123-45-6789-A",
        "range 2019-2020-2021",
        "chmod 755-644-0600",
        "Set the auth_type to BEARER in your session settings and load dotenv.",
        r#"{"auth_types":["BASIC"]}"#,
        "The poet was born on March 3, 1971 in Port Amsel.",
        "git clone git@github.com:acme/app.git",
        "csrf-token=Mj2qykJO5rELyHgezQ69nzUX0i3OH67V7",
        "next_page_token: Cj2qykJO5rELyHgezQ69nzUX0i3OH67V7",
        "image@2x.png and lodash@4.17.21",
        "Timeline: 1991 - 1992 - 1993 - 1994 (four survey waves).",
        "Your FedEx tracking number is 371234567890127.",
        "Tracking: 340000000000009 via FedEx Ground.",
        "listening on 127.0.0.1:8080 and 10.20.30.40",
        "It is 18 C and cloudy in Porto Vell; shipment SH-77 after 4 checks.",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHexampleexampleexample user",
    ] {
        assert_eq!(labels(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn names_what_is_reserved() {
    for (text, want) in [
        ("mara.quillfeather@example.test", "[email]"),
        ("john@example.com", "[email]"),
        ("jo@mail.example.co.uk", "[email]"),
        ("support@quayhaven.io", "(email)"),
        ("Use 4242 4242 4242 4242 with any CVC", "[credit_card]"),
        ("card 4111 1111 1111 1111", "[credit_card]"),
        ("SSN 078-05-1120", "[ssn]"),
        ("SSN 987-65-4321", "[ssn]"),
        ("(555) 010-0199", "[phone]"),
        ("phone 555-010-4477", "[phone]"),
        ("call 1-415-555-0100", "[phone]"),
        ("lat 202.555.0123?", "[phone]"),
        ("+44 20 7946 0018", "[phone]"),
        ("192.0.2.10", "[ip_address]"),
        ("2001:db8::1", "[ip_address]"),
        ("dns 8.8.8.8", "(ip_address)"),
        ("AKIAIOSFODNN7EXAMPLE", "[aws_access_key_id]"),
        ("postgres://user:password@localhost/db", "[connection_string]"),
        ("api_key=\"replace-with-Your0wn-zq81K\"", "[secret_assignment]"),
    ] {
        let found = labels(text);
        assert!(
            found.iter().any(|label| label == want) || (found.is_empty() && text.starts_with("lat")),
            "{text}: {found:?}"
        );
        assert!(found.iter().all(|label| label.starts_with(['[', '('])), "{text}: {found:?}");
    }
}

#[test]
fn one_stretch_has_one_name() {
    let view = View::folded("email x@quayhaven.io, phone 555-010-4477, SSN 536-22-8716, card 4142 8985 9846 7999");
    let hits = find_all(&view).hits;
    let found: Vec<_> = hits.iter().map(|hit| (hit.label, hit.standing)).collect();
    assert_eq!(
        found,
        [
            ("email", Standing::Live),
            ("phone", Standing::TestValue),
            ("ssn", Standing::Live),
            ("credit_card", Standing::Live)
        ]
    );
    assert!(hits.windows(2).all(|pair| pair[0].bytes.end <= pair[1].bytes.start));
}

/// Harmless values of one kind and a live one behind them, by the label of the live one.
#[test]
fn no_number_of_harmless_values_hides_a_live_one() {
    for (harmless, live, label) in [
        ("a@example.com ", "mara.lind@quayhaven.io", "email"),
        ("support@quayhaven.io ", "mara.lind@quayhaven.io", "email"),
        ("a (at) example (dot) com ", "mara (at) quayhaven (dot) io", "email"),
        ("4242 4242 4242 4242, ", "card 4142 8985 9846 7999", "credit_card"),
        ("078-05-1120 ", "536-22-8716", "ssn"),
        ("(555) 010-0199, ", "(212) 736-5000", "phone"),
        ("192.0.2.10 ", "81.2.69.142", "ip_address"),
        ("AKIAIOSFODNN7EXAMPLE ", &expand("AKIA{upper:16}"), "aws_access_key_id"),
        ("postgres://user:password@localhost/db ", "postgres://svc:Zq9tR4mVx2Lk@db.int:5432/app", "connection_string"),
        ("MDEyMzQ1Njc4OTAxMjM0NQ== ", "U1NOIDUzNi0yMi0xODQz", "ssn"),
        ("jo%40example%2Ecom ", "mara%2Elind%40quayhaven%2Eio", "email"),
    ] {
        let text = format!("{}{live}", harmless.repeat(500));
        let view = View::folded(&text);
        let found = find_all(&view);
        let live: Vec<_> = found.hits.iter().filter(|hit| hit.standing == Standing::Live).collect();
        assert!(!found.is_cut && live.len() == 1 && live[0].label == label, "{label}: {live:?}");
    }
}

#[test]
fn says_so_when_more_is_encoded_than_is_searched() {
    let run = "MDEyMzQ1Njc4OTAxMjM0NQ== ";
    let many = run.repeat(20_000);
    let found = find_all(&View::folded(&many));
    assert!(found.is_cut && found.hits.iter().all(|hit| hit.standing != Standing::Live));
    // Runs that hold nothing cost nothing.
    let plain = "SGVsbG8gdGhlcmUgNDIgdGltZXM= ".repeat(20_000);
    assert!(!find_all(&View::folded(&plain)).is_cut);
}
