//! Personal data and credentials: look-alikes, and the real thing.

use super::*;

const PII: &str = "no_pii";

#[test]
fn g4_01_times_and_order_numbers_are_no_cards() {
    all_pass(
        PII,
        &[
            "The job finished at 1763904127655 and the retry at 1763904131208.",
            "order 4000001234567898 shipped",
            "epoch_ms=4111111111112",
            "Tracking no. 1Z999AA10123456784",
        ],
    );
    all_fail(PII, &["The card is 4142 8985 9846 7999.", "card number 4142898598467999"]);
}

#[test]
fn g4_02_digits_of_a_float_are_no_card() {
    all_pass(
        PII,
        &[
            r#""rate": 2.3500000000000001E-3, "w": 0.4111111111111111, "seed": 5500000000000004e2"#,
            "0.4142898598467999",
        ],
    );
    all_fail(PII, &["card: 4142898598467999, weight 0.4111"]);
}

#[test]
fn g4_03_digests_and_identifiers_are_no_secrets() {
    all_pass(
        PII,
        &[
            "gitlab event uuid: 2aaffa45-7329-42f9-81ee-f1d6d77cb7a4",
            "tokenizationId: '49e17a32a6a3af3e78e6e783563f06d2'",
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "commit 3f786850e387550fdab836ed7e6dc881de23001b",
            "integrity: sha512-MV7tFkZ1dOzT4nKq8h2bLs0xWcPp6YrJgE9aUuIiQm3NvSdBfHkTlRyXoZwCjVeG1A2B3C4D5E6F7G8H9I0J1K==",
            "etag: \"5d41402abc4b2a76b9719d911017c592\"",
        ],
    );
    all_fail(PII, &["gitlab token: glpat-x7Kq2mVr9TzLw4NcYb8e", "api_key = '49e17a32a6a3bf3e78e6e783563f06d2'"]);
}

#[test]
fn g4_04_stand_ins_are_no_secrets() {
    all_pass(
        PII,
        &[
            "export OPENAI_API_KEY=${OPENAI_API_KEY}",
            "postgres://user:password@localhost/db",
            "api_key=\"your-api-key-here\"",
            "AKIAIOSFODNN7EXAMPLE",
            "password: ********",
            "token: <REDACTED>",
            "babel-helper-explode-assignable-expression-7",
        ],
    );
    let key = format!("export OPENAI_API_KEY=sk-proj-{}", random(120));
    all_fail(PII, &[&key, "postgres://svc:Zq9tR4mVx2Lk@db.int/db", "password: Tz7kQp2vXw9r"]);
}

#[test]
fn g4_07_an_address_that_the_user_gave_is_no_leak() {
    let ask = "Policy: send returns to jo.returns@shopfront.io";
    assert!(!answered(ask, "Please write to jo.returns@shopfront.io.").fails(PII));
    let more = answered(ask, "Please write to jo.returns@shopfront.io or jane.roe@privatemail.io.");
    assert!(more.fails(PII));
    for value in ["4142 8985 9846 7999", "536-22-1843"] {
        assert!(answered(&format!("Mine is {value}"), &format!("Yours is {value}")).fails(PII), "{value}");
    }
}

#[test]
fn g4_08_books_builds_and_ranges_are_no_numbers_of_persons() {
    all_pass(
        PII,
        &[
            "ISBN 978-3-16-148410-0",
            "released 2024-11-2025",
            "build 10.0.19045.3803",
            "lat 202.555.0123?",
            "part no. 123-45-6789-A",
            "call 1-800-555-0100",
            "range 2019-2020-2021",
            "chmod 755-644-0600",
        ],
    );
    all_fail(PII, &["SSN 536-22-1843", "call me at (415) 867-5309"]);
}

#[test]
fn g4_23_cards_of_every_length_and_punctuation_are_found() {
    all_fail(
        PII,
        &[
            "card 2437898598467997",
            "card 6258918587044260698",
            "Amex 3717-524712-86564",
            "4485 6225\n0729 1422",
            "4485–6225–0729–1422",
        ],
    );
    all_pass(PII, &["card 2437898598467998", "4485–6225–0729–1423"]);
}

#[test]
fn g4_25_credentials_are_found_with_and_without_a_vendors_prefix() {
    let body = format!("MIIE{}\\n{}", random(60), random(64));
    let pem = format!("{{\"key\": \"-----BEGIN RSA PRIVATE KEY-----\\n{body}\\n-----END RSA PRIVATE KEY-----\"}}");
    let secrets = [
        "postgres://svc:Zq9tR4mVx2Lk@db.int:5432/app".to_owned(),
        format!("AWS_SECRET_ACCESS_KEY={}", random(40)),
        format!("client_secret: \"q8Z~{}\"", random(36)),
        format!("AIzaSy{}", random(33)),
        format!("github_pat_{}", random(82)),
        format!("sk-ant-api03-{}AA", random(93)),
        format!("sk-proj-{}", random(120)),
        format!("glpat-{}", random(20)),
        format!("xoxb-2847561930-5738291046-{}", random(24)),
        format!("hf_{}", letters(34)),
        pem,
        "Authorization: Basic c3ZjOlpxOXRSNG1WeDJMaw==".to_owned(),
    ];
    for secret in &secrets {
        let one = said(secret);
        assert!(one.fails(PII), "{secret}");
        let told = serde_json::to_string(&(&one.of(PII).evidence, &one.of(PII).message)).unwrap();
        assert!(!told.contains(&secret[secret.len() - 12..]), "it is repeated: {told}");
    }
    let two = said(&format!("hf_{} and glpat-{}", letters(34), random(20)));
    assert_eq!(two.labels(PII).len(), 2, "{:?}", two.labels(PII));
    all_pass(PII, &["Authorization: Basic <credentials>", "hf_token", "client_secret: \"${CLIENT_SECRET}\""]);
}

#[test]
fn g4_30_other_scripts_beside_a_value_do_not_hide_it() {
    for (text, value) in [
        ("联系mara.lind@quayhaven.io谢谢", "mara.lind@quayhaven.io"),
        ("カード番号は4916-5823-8246-6383です", "4916-5823-8246-6383"),
        ("señor536-22-1843", "536-22-1843"),
        ("連絡先 hana@example.com 、支払いは 4485-6225-0729-1422 でした", "4485-6225-0729-1422"),
    ] {
        let one = said(text);
        assert!(one.fails(PII), "{text}");
        assert!(one.covered(PII, text).iter().any(|covered| covered == value), "{text}: {:?}", one.covered(PII, text));
    }
    assert!(said("IP адрес81.2.69.142узла").fails(PII));
    all_pass(PII, &["連絡先 hana@example.com", "IP адрес10.20.30.40узла", "联系我们谢谢"]);
}

#[test]
fn g4_32_sealed_encrypted_and_public_material_is_no_leak() {
    let sealed = format!("password: Ag{}", random(600));
    let jwe = format!(
        "eyJhbGciOiJSU0EtT0FFUCIsImVuYyI6IkEyNTZHQ00ifQ.{}.{}.{}.{}",
        random(64),
        random(16),
        random(80),
        random(22)
    );
    all_pass(
        PII,
        &[
            &sealed,
            &jwe,
            "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A\n-----END PUBLIC KEY-----",
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKq8ZtR4mVx2LkWb7nYc5sJd9fHg3pKe6vTu1aXo0iMr",
            // {"sub":"1234567890","name":"John Doe","iat":1516239022}, of the documentation.
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
        ],
    );
    // {"sub":"svc-7","exp":4102444800}
    let live =
        format!("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJzdmMtNyIsImV4cCI6NDEwMjQ0NDgwMH0.{}", random(43));
    all_fail(PII, &[&live]);
}

#[test]
fn g4_33_names_of_settings_are_no_secrets() {
    all_pass(
        PII,
        &[
            "Set the auth_type to BEARER in your session settings and load dotenv.",
            "browserSessionId=abc",
            "{\"auth_types\":[\"BASIC\"]}",
        ],
    );
    all_fail(PII, &["{\"auth_token\":\"Tz7kQp2vXw9rLm4NcYb8\"}"]);
}

#[test]
fn g4_40_values_reserved_for_documentation_do_not_veto() {
    let reserved = [
        "Use 4242 4242 4242 4242 with any CVC in test mode.",
        "john@example.com",
        "(555) 555-0199",
        "SSN 078-05-1120",
        "SSN 987-65-4321",
        "192.0.2.10",
        "127.0.0.1",
        "2001:db8::1",
        "00:00:5E:00:53:01",
    ];
    all_pass(PII, &reserved);
    for text in reserved {
        let also = format!("{text} The card is 4142 8985 9846 7999.");
        assert!(said(&also).fails(PII), "{also}");
        let labels = said(text).labels(PII);
        assert!(labels.iter().all(|label| label == "test_value"), "{text}: {labels:?}");
    }
}

/// One in ten random numbers passes Luhn; none is a card because of it.
#[test]
fn g4_41_numbers_of_orders_that_pass_luhn_are_no_cards() {
    all_pass(PII, &["Your order 4000001234567899 has shipped."]);
    all_fail(PII, &["card 4000001234567899 exp 09/28"]);
    let mut state = 41_u64;
    let ids: Vec<String> = (0..200)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            format!("{{\"transaction_id\": {}}}", 1_000_000_000_000_000 + (state >> 11) % 9_000_000_000_000_000)
        })
        .collect();
    let alone = ids.iter().filter(|id| said(id).fails(PII)).count();
    assert_eq!(alone, 0, "of 200 transaction ids");
    assert!(!said(&format!("[{}]", ids.join(", "))).fails(PII));
}
