use super::sample::expand;
use super::{Findings, Places, Standing, find_all, placeholder, placeholders, secret};
use crate::text::View;

fn found_in(text: &str) -> Findings {
    let view = View::folded(text);
    find_all(&view, &Places::of(view.text()))
}

/// Labels of what is found, test values and public ones in brackets. Each is one that is read again once it was redacted.
fn labels(text: &str) -> Vec<String> {
    let hits = found_in(text).hits;
    for hit in &hits {
        let redacted = placeholder(hit.label, 1);
        let read = placeholders(&redacted).next().and_then(|one| one.hit());
        assert!(read.is_some_and(|read| read.label == hit.label), "{}: no line in OTHERS of placeholder.rs", hit.label);
    }
    hits.into_iter()
        .map(|hit| match hit.standing {
            Standing::Live => hit.label.to_owned(),
            Standing::TestValue => format!("[{}]", hit.label),
            Standing::Public => format!("({})", hit.label),
        })
        .collect()
}

#[test]
fn every_row_of_the_secret_table_finds_its_examples_and_nothing_else() {
    assert!(secret::TABLE.entries.len() >= 250, "secret.toml did not parse");
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
        ("write to mara at quayhaven dot io", "email"),
        ("mara dot lind at gmail dot com", "email"),
        ("mara.lind @ quayhaven.io", "email"),
        ("почта@пример.рф", "email"),
        ("用户@例子.公司", "email"),
        ("jörg@müller-haus.de", "email"),
        ("id\tcard\texp\n7\t4142898598467999\t09/28", "credit_card"),
        ("SSN: 536 - 22 - 8716", "ssn"),
        ("my social is 536 22 8716", "ssn"),
        ("ssn 5 3 6 2 2 8 7 1 6", "ssn"),
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

/// Values without a shape of their own, by the names they are bound to.
#[test]
fn a_name_and_a_drawn_value_make_a_secret() {
    for (text, found) in [
        ("ACME_API_KEY={alnum:32}", true),
        ("\"client_secret\": \"{alnum:36}\"", true),
        ("DJANGO_SECRET_KEY = '{b64:40}'", true),
        ("alchemy_key = \"{lower:31}\"", true),
        ("acme SECRET {hex:40}", true),
        ("acme_TOKEN {alnum:32}", true),
        ("wandb {hex:40}", true),
        ("postmark: \"{hex:8}-{hex:4}-{hex:4}-{hex:4}-{hex:12}\"", true),
        ("getEnv(\"api_token\", \"{hex:8}-{hex:4}-{hex:4}-{hex:4}-{hex:12}\")", true),
        ("password: Tr0ub4dor-and-3", true),
        ("DB_PASSWORD=q7{alnum:12}", true),
        ("PWD:=FlUgeGeHeImEn08", true),
        ("password = \"super$ecret\"", true),
        ("пароль: Zq9tR4mVx2Lk", true),
        ("api_key = os.environ[\"ACME_API_KEY\"]", false),
        ("token: str = Field(description=\"the token\")", false),
        ("tokenizationId: \"{hex:32}\"", false),
        ("secretName=my-app-credentials-secret", false),
        ("integrity: sha512-{b64:60}", false),
        ("public_key = \"{alnum:43}\"", false),
        ("cache_key = {hex:32}", false),
        ("primary key {hex:32}", false),
        ("password: ********", false),
        ("password = getpass()", false),
        ("Your password is required.", false),
        ("password=${DB_PASSWORD}", false),
        ("\"password\": \"Enter your password\"", false),
        ("password: Ag{b64:600}", false),
        ("the access internationalization-of-things gives", false),
        ("see token-management-for-all-the-people", false),
        ("keyPressed = kVK_Return.u16", false),
        ("github commit {hex:40}", false),
        ("meraki-api-key: {hex:40}", true),
        ("meraki: {alnum:39}", false),
        ("meraki_token = {hex:64}R21", false),
        ("TWITCH_STREAM_KEY = \"live_{digit:9}_{alnum:30}\"", true),
        ("TWITCH_STREAM_KEY = \"{digit:9}_{alnum:25}\"", false),
        ("--set pixie.apiKey=px-api-{hex:8}-{hex:4}-{hex:4}-{hex:4}-{hex:12}", true),
        ("--set pixie.apiKey=px-api-a1b2c3d4-e5f6-g7h8-i8j0-k0l3m3n4o0p5", false),
        ("The secret is to keep the dough cold.", false),
    ] {
        let labels = labels(&expand(text));
        let live = labels.iter().any(|label| !label.starts_with(['[', '(']));
        assert_eq!(live, found, "{text}: {labels:?}");
    }
}

/// Check digits: a number that carries them, and the same with one digit turned.
#[test]
fn national_numbers_are_proved_by_their_check_digits() {
    for (good, bad, label) in [
        ("NHS number 943 476 5919", "NHS number 943 476 5918", "health_number"),
        ("routing number 021000021", "routing number 021000022", "bank_routing"),
        ("NPI 1234567893", "NPI 1234567894", "health_provider"),
        ("DEA AB1234563", "DEA AB1234564", "health_provider"),
        ("SIN 046 454 286", "SIN 046 454 287", "social_insurance"),
        ("TFN 123 456 782", "TFN 123 456 783", "tax_id"),
        ("DNI 12345678Z", "DNI 12345678A", "national_id"),
        ("CPF 529.982.247-25", "CPF 529.982.247-26", "national_id"),
        ("Aadhaar 2341 2341 2346", "Aadhaar 2341 2341 2347", "national_id"),
        ("PESEL 44051401359", "PESEL 44051401358", "national_id"),
        ("BSN 111222333", "BSN 111222334", "national_id"),
        ("hetu 131052-308T", "hetu 131052-308U", "national_id"),
        ("personnummer 811228-9874", "personnummer 811228-9875", "national_id"),
        ("sécurité sociale 1 85 05 78 006 084 91", "sécurité sociale 1 85 05 78 006 084 92", "national_id"),
        ("AHV 756.9217.0769.85", "AHV 756.9217.0769.86", "national_id"),
        ("身份证 11010519491231002X", "身份证 110105194912310021", "national_id"),
        ("NRIC S1234567D", "NRIC S1234567A", "national_id"),
        ("TCKN 10000000146", "TCKN 10000000147", "national_id"),
        ("codice fiscale RSSMRA85T10A562S", "codice fiscale RSSMRA85T10A562T", "national_id"),
        ("Steuer-ID 86 095 742 719", "Steuer-ID 86 095 742 718", "tax_id"),
        ("VIN 1M8GDM9AXKP042788", "VIN 1M8GDM9A1KP042788", "vehicle_id"),
    ] {
        assert_eq!(labels(good), [label], "{good}");
        assert!(!labels(bad).contains(&label.to_owned()), "{bad}: {:?}", labels(bad));
    }
}

#[test]
fn sealed_and_sample_tokens_open_nothing() {
    let sample = [
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
        "eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ",
        "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
    ];
    assert_eq!(labels(&format!("token {}", sample.join("."))), ["[json_web_token]"]);
    let sealed = expand("eyJhbGciOiJSU0EtT0FFUCIsImVuYyI6IkEyNTZHQ00ifQ.{url:80}.{url:16}.{url:40}.{url:22}");
    assert_eq!(labels(&format!("jwe {sealed}")), Vec::<String>::new());
    let live = expand("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI3IiwiZXhwIjo0MTAyNDQ0ODAwfQ.{url:43}");
    assert_eq!(labels(&format!("jwt {live}")), ["json_web_token"]);
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
        ("VTFOT0lEVXpOaTB5TWkweE9EUXo=", "ssn"),
        ("mara=2Elind=40quayhaven=2Eio", "email"),
        ("mara.lind&commat;quayhaven&period;io", "email"),
        ("mara.lind\\x40quayhaven.io", "email"),
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
        "Look at amazon dot com, or reach us at quayhaven dot io.",
        "Card ending in **4539, or **** **** **** 4539.",
        "Photos are at icloud.com; meet at noon @ pier 4.",
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
        ("api_key=\"replace-with-Your0wn-zq81K7b2\"", "[secret_assignment]"),
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
    let hits = found_in("email x@quayhaven.io, phone 555-010-4477, SSN 536-22-8716, card 4142 8985 9846 7999").hits;
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
        let found = found_in(&text);
        let live: Vec<_> = found.hits.iter().filter(|hit| hit.standing == Standing::Live).collect();
        assert!(!found.is_cut && live.len() == 1 && live[0].label == label, "{label}: {live:?}");
    }
}

#[test]
fn says_so_when_more_is_encoded_than_is_searched() {
    let run = "MDEyMzQ1Njc4OTAxMjM0NQ== ";
    let many = run.repeat(20_000);
    let found = found_in(&many);
    assert!(found.is_cut && found.hits.iter().all(|hit| hit.standing != Standing::Live));
    // Runs that hold nothing cost nothing.
    let plain = "SGVsbG8gdGhlcmUgNDIgdGltZXM= ".repeat(20_000);
    assert!(!found_in(&plain).is_cut);
}
