//! Values reserved or published for tests and documentation: seen, named, and never held against anyone.

use core::net::IpAddr;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// Names set aside for documentation and tests. Source: <https://www.rfc-editor.org/rfc/rfc2606> and
/// <https://www.rfc-editor.org/rfc/rfc6761>; `example` under a country is what people write for the same end.
pub fn is_test_domain(domain: &str) -> bool {
    let mut labels = domain.rsplit('.');
    let last = labels.next().unwrap_or("");
    if matches!(last, "test" | "example" | "invalid" | "localhost") {
        return true;
    }
    let second = labels.next().unwrap_or("");
    let third = labels.next().unwrap_or("");
    second == "example" || third == "example" && matches!(second, "co" | "com" | "org" | "net" | "ac" | "gov")
}

/// Whether an address is on a reserved name, or is the address everyone types.
pub fn is_test_address(local: &str, domain: &str) -> bool {
    is_test_domain(domain)
        || matches!(
            domain,
            "test.com" | "domain.com" | "yourdomain.com" | "yourcompany.com" | "email.com" | "company.com"
        ) && matches!(
            local,
            "test"
                | "you"
                | "user"
                | "name"
                | "your"
                | "email"
                | "your.name"
                | "first.last"
                | "yourname"
                | "someone"
                | "username"
        )
}

/// Card numbers that payment providers publish for their test modes. Sources: <https://docs.stripe.com/testing>,
/// <https://developer.paypal.com/tools/sandbox/card-testing/>, <https://docs.adyen.com/development-resources/testing>.
pub fn is_test_card(number: &str) -> bool {
    TEST_CARDS.contains(&number)
}

const TEST_CARDS: [&str; 46] = [
    "4111111111111111",
    "4242424242424242",
    "4012888888881881",
    "4222222222222",
    "4000056655665556",
    "4000000000000002",
    "4000000000000010",
    "4000000000000028",
    "4000000000000036",
    "4000000000000044",
    "4000000000000069",
    "4000000000000077",
    "4000000000000101",
    "4000000000000119",
    "4000000000000127",
    "4000000000000259",
    "4000000000000341",
    "4000000000003055",
    "4000000000003063",
    "4000000000003220",
    "4000000000009235",
    "4000000000009979",
    "4000000000009987",
    "4000000000009995",
    "4000002500003155",
    "4000002760003184",
    "4005519200000004",
    "4009348888881881",
    "4917610000000000",
    "4988438843884305",
    "5555555555554444",
    "5105105105105100",
    "5200828282828210",
    "5454545454545454",
    "2223003122003222",
    "2221000000000009",
    "378282246310005",
    "371449635398431",
    "378734493671000",
    "6011111111111117",
    "6011000990139424",
    "30569309025904",
    "38520000023237",
    "3530111333300000",
    "3566002020360505",
    "6200000000000005",
];

/// Social security numbers that were printed and withdrawn, or set aside for advertising. 123-45-6789 is not among
/// them: people type it, and it was issued. Source: <https://www.ssa.gov/history/ssn/misused.html>.
pub fn is_test_ssn(number: &str) -> bool {
    matches!(number, "078051120" | "219099999" | "457555462")
        || number.strip_prefix("98765432").is_some_and(|last| last.len() == 1)
}

/// Numbers for fiction. Sources: NANPA's 555-0100 to 555-0199 and the area code 555, which is not assigned;
/// Ofcom's <https://www.ofcom.org.uk/phones-and-broadband/phone-numbers/numbers-for-drama>; ACMA's numbers for drama.
pub fn is_test_phone(number: &str) -> bool {
    let local = number.strip_prefix('1').filter(|_| number.len() == 11).unwrap_or(number);
    let american = local.len() == 10 && (local.get(3..8) == Some("55501") || local.starts_with("555"));
    let bare = local.len() == 7 && local.starts_with("555");
    let british =
        number.strip_prefix("44").map(|rest| rest.trim_start_matches('0')).or_else(|| number.strip_prefix('0'));
    let drama = british.is_some_and(|rest| {
        ["207946", "1632960", "7700900", "8081570", "9098790", "3069990"].iter().any(|head| rest.starts_with(head))
            || rest.len() == 10 && rest.starts_with('1') && rest.get(3..6) == Some("496")
    });
    let australian = number.strip_prefix("61").or_else(|| number.strip_prefix('0')).is_some_and(|rest| {
        matches!(rest.get(..5), Some("25550" | "35550" | "75550" | "85550" | "27010" | "37010" | "77010" | "87010"))
            || rest.starts_with("491570")
    });
    let placeholder = matches!(local, "1234567890" | "0123456789" | "0000000000" | "1111111111");
    american || bare || drama || australian || placeholder
}

/// Lines that the called party pays for belong to organisations.
pub fn is_toll_free(number: &str) -> bool {
    let local = number.strip_prefix('1').filter(|_| number.len() == 11).unwrap_or(number);
    local.len() == 10 && matches!(local.get(..3), Some("800" | "833" | "844" | "855" | "866" | "877" | "888"))
}

/// Addresses for documentation. Sources: <https://www.rfc-editor.org/rfc/rfc5737>,
/// <https://www.rfc-editor.org/rfc/rfc3849> and <https://www.rfc-editor.org/rfc/rfc9637>.
pub fn is_documentation_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            matches!((a, b, c), (192, 0, 2) | (198, 51, 100) | (203, 0, 113))
        }
        IpAddr::V6(v6) => {
            let [first, second, ..] = v6.segments();
            (first, second) == (0x2001, 0xdb8) || first == 0x3fff && second < 0x1000
        }
    }
}

/// Name servers that everyone uses.
pub fn is_public_resolver(address: IpAddr) -> bool {
    const RESOLVERS: [[u8; 4]; 12] = [
        [8, 8, 8, 8],
        [8, 8, 4, 4],
        [1, 1, 1, 1],
        [1, 0, 0, 1],
        [1, 1, 1, 2],
        [1, 1, 1, 3],
        [9, 9, 9, 9],
        [149, 112, 112, 112],
        [208, 67, 222, 222],
        [208, 67, 220, 220],
        [94, 140, 14, 14],
        [94, 140, 15, 15],
    ];
    match address {
        IpAddr::V4(v4) => RESOLVERS.contains(&v4.octets()),
        IpAddr::V6(v6) => matches!(
            v6.segments(),
            [0x2001, 0x4860, 0x4860, 0, 0, 0, 0, 0x8888 | 0x8844]
                | [0x2606, 0x4700, 0x4700, 0, 0, 0, 0, 0x1111 | 0x1001]
        ),
    }
}

/// Whether a value where a secret should stand is plainly a stand-in for one.
pub fn is_stand_in(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let masked =
        lower.bytes().filter(|byte| matches!(byte, b'*' | b'x' | b'.' | b'-' | b'_' | b'#')).count() * 2 > lower.len();
    let run = longest_run(&lower) >= 6;
    let opened = lower.starts_with(['<', '$', '{', '[', '%', '(', '@', '&'])
        || lower.contains("${")
        || lower.contains("{{")
        || lower.contains("...");
    masked
        || run
        // A value of full length is reported even so: nobody can tell a lazy sample from a lazy key.
        || lower.len() < 20 && is_counted_up(&lower)
        || opened
        || says_stand_in(&lower)
        || EXACT.contains(&lower.as_str())
}

fn says_stand_in(lower: &str) -> bool {
    static WORDS: LazyLock<Option<AhoCorasick>> =
        LazyLock::new(|| AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).build(STAND_IN_WORDS).ok());
    match &*WORDS {
        Some(words) => words.is_match(lower),
        None => STAND_IN_WORDS.iter().any(|word| lower.contains(word)),
    }
}

const STAND_IN_WORDS: [&str; 23] = [
    "example",
    "placeholder",
    "changeme",
    "change-me",
    "change_me",
    "redacted",
    "dummy",
    "sample",
    "your_",
    "your-",
    "yourkey",
    "yourtoken",
    "your api",
    "insert",
    "replace",
    "my_",
    "my-",
    "fake",
    "notreal",
    "not_real",
    "undefined",
    "foobar",
    "lorem",
];

const EXACT: [&str; 22] = [
    "password",
    "passwd",
    "pass",
    "pwd",
    "secret",
    "token",
    "mypassword",
    "hunter2",
    "username",
    "postgres",
    "root",
    "admin",
    "none",
    "null",
    "true",
    "false",
    "string",
    "password123",
    "password1",
    "mysecret",
    "test",
    "guest",
];

/// `1234567890abcdef` and the like: most characters follow from the one before.
pub(super) fn is_counted_up(value: &str) -> bool {
    let letters: Vec<u8> =
        value.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase()).collect();
    let follows = |pair: &&[u8]| matches!(pair, [a, b] if *b == a.wrapping_add(1) || (*a, *b) == (b'9', b'0') || (*a, *b) == (b'0', b'a'));
    letters.len() >= 8 && letters.windows(2).filter(follows).count() * 10 >= letters.len() * 6
}

fn longest_run(text: &str) -> usize {
    let (mut longest, mut run, mut last) = (0, 0, None);
    for byte in text.bytes() {
        run = if last == Some(byte) { run + 1 } else { 1 };
        longest = longest.max(run);
        last = Some(byte);
    }
    longest
}
