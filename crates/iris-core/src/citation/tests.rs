//! What is found, and what must never be reached, with every spelling of it that is known.

use core::net::IpAddr;
use std::path::Path;

use proptest::prelude::*;

use super::*;

fn lines(name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/citation").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).map(str::to_owned).collect()
}

/// Field case G7-03: judged by the bits, whatever the spelling. A name is not resolved here: each of these is refused
/// before any look-up.
#[test]
fn g7_03_no_spelling_of_a_forbidden_address_passes() {
    let spellings = lines("forbidden.txt");
    assert!(spellings.len() >= 120, "{}", spellings.len());
    let guard = Guard::default();
    for spelling in &spellings {
        assert!(Target::parse(spelling, &guard).is_err(), "{spelling}");
        let https = spelling.replacen("http:", "https:", 1);
        assert!(Target::parse(&https, &guard).is_err(), "{https}");
    }
    for spelling in lines("permitted.txt") {
        assert!(Target::parse(&spelling, &guard).is_ok(), "{spelling}: {:?}", Target::parse(&spelling, &guard));
    }
}

/// Field case G7-01: a redirect is judged like the address that a text cites, and never leads from https to http.
#[test]
fn g7_01_redirects_are_judged_anew() {
    let guard = Guard::default();
    let from = Target::parse("https://public.example.org/a/b", &guard).unwrap();
    for spelling in
        lines("forbidden.txt").iter().filter(|one| one.contains("//") && !one.starts_with("//") && one.len() > 8)
    {
        // What stands behind a scheme alone is a path of the host that redirects.
        if ["https://?", "http:///"].contains(&spelling.as_str()) || spelling.starts_with("jar:") {
            continue;
        }
        assert!(from.redirected(spelling, &guard).is_err(), "{spelling}");
    }
    for (location, why) in [
        ("//[::1]/", Refused::Forbidden("unspecified, loopback or IPv4-compatible")),
        ("//127.0.0.1/secret", Refused::Forbidden("loopback")),
        ("file:///etc/passwd", Refused::BadScheme),
        ("http://public.example.org/", Refused::Downgrade),
        ("https://public.example.org:8443/", Refused::Port),
        ("//user@public.example.org/", Refused::Credentials),
        ("\\\\127.0.0.1\\", Refused::Forbidden("loopback")),
    ] {
        assert_eq!(from.redirected(location, &guard), Err(why), "{location}");
    }
    assert_eq!(from.redirected("../c", &guard).unwrap().as_str(), "https://public.example.org/c");
    let plain = Target::parse("http://public.example.org/", &guard).unwrap();
    assert_eq!(
        plain.redirected("https://public.example.org/x#y", &guard).unwrap().as_str(),
        "https://public.example.org/x"
    );
}

/// Field case G7-02: one forbidden address among those of a name forbids the name.
#[test]
fn g7_02_one_private_answer_is_enough() {
    let guard = Guard::default();
    let of = |list: &[&str]| guard.refuses_any(&list.iter().map(|one| one.parse().unwrap()).collect::<Vec<IpAddr>>());
    assert_eq!(of(&["93.184.216.34"]), None);
    assert!(of(&["93.184.216.34", "127.0.0.1"]).is_some());
    assert!(of(&["93.184.216.34", "fd00::1"]).is_some());
    assert!(of(&["::ffff:10.0.0.1", "93.184.216.34"]).is_some());
}

#[test]
fn an_operator_adds_and_takes_away() {
    let ranges = |list: &[&str]| list.iter().map(|one| one.parse().unwrap()).collect::<Vec<Cidr>>();
    let own = vec!["203.0.114.9".parse().unwrap(), "2606:4700::9".parse().unwrap()];
    let guard = Guard::new(own, ranges(&["8.8.8.0/24", "2606:4700:1::/48"]), ranges(&["10.1.0.0/16", "127.0.0.1"]));
    let refuses = |one: &str| guard.refuses(one.parse().unwrap()).is_some();
    assert!(refuses("203.0.114.9") && refuses("::ffff:203.0.114.9") && refuses("2606:4700::9"), "its own");
    assert!(
        refuses("8.8.8.8") && refuses("::ffff:8.8.8.8") && refuses("64:ff9b::8.8.8.8") && refuses("2606:4700:1::5")
    );
    assert!(
        !refuses("10.1.2.3")
            && !refuses("::ffff:10.1.2.3")
            && !refuses("127.0.0.1")
            && refuses("127.0.0.2")
            && refuses("10.2.0.1")
    );
    assert!(!refuses("8.8.4.4") && !refuses("2606:4700:2::5"));
    for nonsense in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "name/8", "10.0.0.0/-1", "10.0.0.0/8/8"] {
        assert!(nonsense.parse::<Cidr>().is_err(), "{nonsense}");
    }
    assert_eq!("10.0.0.0/8".parse::<Cidr>().unwrap().to_string(), "10.0.0.0/8");
}

#[test]
fn a_list_of_hosts_holds_what_is_below_them() {
    let list = ["Example.org".to_owned(), "*.acme.io".to_owned(), ".dot.net.".to_owned()];
    for name in ["example.org", "a.b.example.org", "EXAMPLE.ORG", "acme.io", "x.acme.io", "dot.net"] {
        assert!(is_allowed(name, &list), "{name}");
    }
    for name in ["badexample.org", "example.org.evil.net", "org", "", "acme.io.", "xacme.io"] {
        assert!(!is_allowed(name, &list), "{name}");
    }
    assert!(is_allowed("any.host", &[]), "no list, no limit");
    assert!(!is_allowed("any.host", &[" ".to_owned()]), "a list of nothing allows nothing");
}

proptest! {
    /// Whatever IPv4 address is forbidden is forbidden in each of the forms in which another address carries it.
    #[test]
    fn a_carried_address_is_as_forbidden_as_itself(bits in any::<u32>()) {
        let four = core::net::Ipv4Addr::from(bits);
        let [a, b, c, d] = four.octets();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let carried = [
            core::net::Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, high, low),
            core::net::Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
            core::net::Ipv6Addr::new(0x2606, 0x4700, 0, 0, 0, 0x5efe, high, low),
        ];
        for six in carried {
            prop_assert_eq!(forbidden(IpAddr::V6(six)).is_some(), forbidden(IpAddr::V4(four)).is_some(), "{}", six);
        }
        let never = [
            core::net::Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
            core::net::Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low),
            core::net::Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
            core::net::Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, high, low),
            core::net::Ipv6Addr::new(0x2001, 0, high, low, 0, 0, !high, !low),
        ];
        for six in never {
            prop_assert!(forbidden(IpAddr::V6(six)).is_some(), "{}", six);
        }
    }

    /// What the standard library knows to be private is forbidden.
    #[test]
    fn what_is_known_private_is_forbidden(bits in any::<u32>()) {
        let four = core::net::Ipv4Addr::from(bits);
        let special = four.is_private() || four.is_loopback() || four.is_link_local() || four.is_multicast()
            || four.is_broadcast() || four.is_documentation() || four.is_unspecified();
        prop_assert!(!special || forbidden(IpAddr::V4(four)).is_some(), "{}", four);
    }

    /// No text makes the search panic; every citation stands where it says.
    #[test]
    fn citations_stand_where_they_say(text in "(\\[[0-9]{1,4}\\]|\\([A-Z][a-z]{0,8}, (19|20)[0-9]{2}\\)|https?://[a-z]{1,6}\\.[a-z]{2,3}/[a-z()]{0,6}|10\\.[0-9]{4}/[a-z]{1,5}| |é|😀|[.,)]){0,40}") {
        let letters: Vec<char> = text.chars().collect();
        let found = find(&text);
        let mut end = 0;
        for citation in &found.citations {
            let raw: String = letters[citation.span.start()..citation.span.end()].iter().collect();
            prop_assert_eq!(&raw, &citation.raw);
            prop_assert!(citation.span.start() >= end, "in order, none inside another");
            end = citation.span.end();
            prop_assert!(citation.context.contains(&citation.raw));
        }
    }
}

fn kinds(text: &str) -> Vec<(Kind, String)> {
    find(text).citations.into_iter().map(|one| (one.kind, one.identifier)).collect()
}

#[test]
fn the_four_kinds_are_found() {
    let text = "As shown [1] and by (Müller et al., 2019), see https://example.org/a?b=c. Also doi:10.1016/S0140-6736(20)30183-5, [23].";
    assert_eq!(
        kinds(text),
        [
            (Kind::Numbered, "1".to_owned()),
            (Kind::AuthorYear, "Müller et al., 2019".to_owned()),
            (Kind::Url, "https://example.org/a?b=c".to_owned()),
            (Kind::Doi, "10.1016/S0140-6736(20)30183-5".to_owned()),
            (Kind::Numbered, "23".to_owned()),
        ]
    );
    let found = find("x https://a.example.org/1 y");
    assert_eq!((found.citations[0].span.start(), found.citations[0].span.end()), (2, 25));
    assert_eq!(found.citations[0].context, "x https://a.example.org/1 y");
    for (text, identifier) in [
        ("(https://example.org/x)", "https://example.org/x"),
        ("[text](https://example.org/x)", "https://example.org/x"),
        ("<https://example.org/x>", "https://example.org/x"),
        ("https://en.wikipedia.org/wiki/Rust_(language).", "https://en.wikipedia.org/wiki/Rust_(language)"),
        ("\"https://example.org/x\",", "https://example.org/x"),
        ("HTTPS://EXAMPLE.ORG/X!", "HTTPS://EXAMPLE.ORG/X"),
        ("http://[::1]/x", "http://[::1]/x"),
        ("**https://example.org/x**", "https://example.org/x"),
        ("https://doi.org/10.1000/182", "https://doi.org/10.1000/182"),
        ("见https://example.org/x。", "https://example.org/x"),
    ] {
        assert_eq!(kinds(text), [(Kind::Url, identifier.to_owned())], "{text}");
    }
    for text in [
        "[1234]",
        "[a]",
        "(2019)",
        "(smith, 2019)",
        "(Smith, 1799)",
        "(Smith, 219)",
        "10.123/x",
        "10.1000/",
        "http://",
        "https:// x",
        "a_[1]",
        "[1](",
        "v10.10000",
    ] {
        assert_eq!(kinds(text), [], "{text}");
    }
    let long = format!("({}, 2019)", "A".repeat(51));
    assert_eq!(kinds(&long), []);
}

#[test]
fn the_rest_is_counted_and_the_context_is_cut() {
    let text = "word ".repeat(100) + &"[7] ".repeat(60) + &"word ".repeat(100);
    let found = find(&text);
    assert_eq!((found.citations.len(), found.total), (CITATIONS_MAX, 60));
    let context = &found.citations[0].context;
    assert!(
        context.starts_with('…') && context.ends_with('…') && context.chars().count() == 200 + 3 + 200 + 2,
        "{context}"
    );
    let huge = "https://a.example.org/x ".repeat(60_000);
    assert!(find(&huge).is_cut);
    assert_eq!(find(&format!("https://a.example.org/{}", "x".repeat(3_000))).total, 0);
}

#[test]
fn a_doi_resolves_at_its_resolver() {
    let guard = Guard::default();
    for (doi, address) in [
        ("10.1000/182", "https://doi.org/10.1000/182"),
        ("10.1016/S0140-6736(20)30183-5", "https://doi.org/10.1016/S0140-6736%2820%2930183-5"),
        ("10.1000/a?b#c%20", "https://doi.org/10.1000/a%3Fb%23c%2520"),
        ("10.1000/\u{e9}", "https://doi.org/10.1000/%C3%A9"),
    ] {
        assert_eq!(doi_address(doi), address);
        assert_eq!(Target::parse(address, &guard).unwrap().name(), Some("doi.org"), "a DOI leads nowhere else");
    }
}

#[test]
fn nothing_judged_is_no_verdict() {
    let tally = |judged, supported| Tally { resolved: judged, judged, supported };
    assert_eq!((tally(0, 0).score(), tally(0, 0).passed()), (None, None));
    assert_eq!((tally(3, 2).score(), tally(3, 2).passed(), tally(3, 2).unsupported()), (Some(0.67), Some(false), 1));
    assert_eq!((tally(4, 4).score(), tally(4, 4).passed()), (Some(1.0), Some(true)));
    for kind in ["", "text/html; charset=utf-8", "application/JSON", "application/xhtml+xml", "application/ld+json"] {
        assert!(is_text(kind), "{kind}");
    }
    for kind in ["application/pdf", "image/png", "application/octet-stream", "video/mp4"] {
        assert!(!is_text(kind), "{kind}");
    }
}
