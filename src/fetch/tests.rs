//! Real sockets on loopback, and a canary that nobody may connect to.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use super::fake::{Answer, Names, PUBLIC, page, redirect, serve};
use super::*;

fn limits() -> Limits {
    Limits { timeout: Duration::from_secs(10), bytes_max: 1 << 20, hosts: Vec::new() }
}

async fn fetch(names: Names, address: &str, limits: &Limits) -> Result<Page, Failure> {
    Fetcher::new(&Config::default(), names).fetch(address, limits).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_is_read_without_telling_who_asks() {
    let server = serve(page("text/html; charset=utf-8", "hello")).await;
    let names = Names::default().with("public.example.org", &[&[(PUBLIC, server.port)]]);
    let page = fetch(names, "http://public.example.org/a?b=c#d", &limits()).await.unwrap();
    assert_eq!((page.text.as_str(), page.bytes_fetched, page.truncated, page.status), ("hello", 5, false, 200));
    assert_eq!(
        (page.url.as_str(), page.content_type.as_str()),
        ("http://public.example.org/a?b=c", "text/html; charset=utf-8")
    );
    let request = server.requests.lock().unwrap()[0].to_ascii_lowercase();
    assert!(request.starts_with("get /a?b=c http/1.1\r\n"), "{request}");
    for header in ["cookie", "authorization", "referer", "x-api-key"] {
        assert!(!request.contains(&format!("\r\n{header}:")), "{request}");
    }
}

/// Field case G7-01.
/// Guarantees: a redirect to a forbidden address, another scheme or without end is refused, and the canary on loopback
/// sees no connection.
#[tokio::test(flavor = "multi_thread")]
async fn g7_01_a_redirect_is_judged_like_an_address() {
    let canary = serve(page("text/plain", "secret")).await;
    let port = canary.port;
    for (location, kind) in [
        (format!("http://127.0.0.1:{port}/secret"), "ssrf"),
        (format!("//[::1]:{port}/"), "ssrf"),
        (format!("http://0x7f000001:{port}/"), "ssrf"),
        (format!("http://localhost:{port}/"), "ssrf"),
        ("http://169.254.169.254/latest/meta-data/".to_owned(), "ssrf"),
        ("http://inner.example.org/".to_owned(), "ssrf"),
        ("file:///etc/passwd".to_owned(), "bad_scheme"),
        ("gopher://x/".to_owned(), "bad_scheme"),
        ("/again".to_owned(), "redirect_loop"),
    ] {
        let server = serve(redirect(&location)).await;
        let names = Names::default()
            .with("public.example.org", &[&[(PUBLIC, server.port)]])
            .with("inner.example.org", &[&[(IpAddr::V4(Ipv4Addr::LOCALHOST), port)]]);
        let failure = fetch(names, "http://public.example.org/a", &limits()).await.unwrap_err();
        assert_eq!(failure.kind, kind, "{location}: {failure}");
        assert_eq!(server.seen(), if kind == "redirect_loop" { 4 } else { 1 }, "{location}");
    }
    assert_eq!(canary.seen(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn three_redirects_are_followed_and_the_last_is_told() {
    let last = serve(page("text/plain", "here")).await;
    let names = |one: u16, two: u16, three: u16| {
        Names::default()
            .with("a.example.org", &[&[(PUBLIC, one)]])
            .with("b.example.org", &[&[(PUBLIC, two)]])
            .with("c.example.org", &[&[(PUBLIC, three)]])
            .with("d.example.org", &[&[(PUBLIC, last.port)]])
    };
    let (one, two, three) = (
        serve(redirect("http://b.example.org/")).await,
        serve(redirect("http://c.example.org/")).await,
        serve(redirect("http://d.example.org/end")).await,
    );
    let page = fetch(names(one.port, two.port, three.port), "http://a.example.org/", &limits()).await.unwrap();
    assert_eq!((page.text.as_str(), page.url.as_str()), ("here", "http://d.example.org/end"));
    // The list of hosts is asked at every hop.
    let listed = Limits { hosts: vec!["a.example.org".to_owned(), "b.example.org".to_owned()], ..limits() };
    let failure = fetch(names(one.port, two.port, three.port), "http://a.example.org/", &listed).await.unwrap_err();
    assert_eq!(failure.kind, "not_allowed_domain");
    assert_eq!((last.seen(), three.seen()), (1, 1));
}

/// Field case G7-02.
/// Guarantees: the address that was judged is the one that is connected to, and one private answer forbids the name.
#[tokio::test(flavor = "multi_thread")]
async fn g7_02_a_name_that_changes_its_answer_changes_nothing() {
    let (server, canary) = (serve(page("text/plain", "public")).await, serve(page("text/plain", "secret")).await);
    let local = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let names = Names::default().with("flip.example.org", &[&[(PUBLIC, server.port)], &[(local, canary.port)]]);
    let fetcher = Fetcher::new(&Config::default(), names);
    let page = fetcher.fetch("http://flip.example.org/", &limits()).await.unwrap();
    assert_eq!(page.text, "public", "one look-up is judged and connected to");
    let failure = fetcher.fetch("http://flip.example.org/", &limits()).await.unwrap_err();
    assert_eq!(failure.kind, "ssrf");
    for other in ["fd00::1", "::1", "10.0.0.1", "::ffff:127.0.0.1"] {
        let names = Names::default()
            .with("both.example.org", &[&[(PUBLIC, server.port), (other.parse().unwrap(), canary.port)]]);
        assert_eq!(fetch(names, "http://both.example.org/", &limits()).await.unwrap_err().kind, "ssrf", "{other}");
    }
    assert_eq!((server.seen(), canary.seen()), (1, 0));
}

/// Field case G7-03 at the door: no spelling of a forbidden address reaches a look-up or a socket.
#[tokio::test(flavor = "multi_thread")]
async fn g7_03_no_spelling_reaches_a_socket() {
    let cases = include_str!("../../tests/cases/citation/forbidden.txt");
    let names = Names::default();
    let fetcher = Fetcher::new(&Config::default(), names);
    let mut count = 0;
    for spelling in cases.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let failure = fetcher.fetch(spelling, &limits()).await.unwrap_err();
        assert!(matches!(failure.kind, "ssrf" | "bad_scheme"), "{spelling}: {failure:?}");
        count += 1;
    }
    assert!(count >= 120, "{count}");
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn coded(coding: &str, body: &[u8]) -> Answer {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    Answer::Bytes([head.as_bytes(), body].concat())
}

/// Field case G7-05.
/// Guarantees: what is decoded is counted, the whole time is limited, and nothing is read that cannot be.
#[tokio::test(flavor = "multi_thread")]
async fn g7_05_size_and_time_are_limited_as_a_whole() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n".to_vec();
    let bomb = gzip(&vec![b'x'; 64 << 20]);
    let coded_head =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n".to_vec();
    let short = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\n12345".to_vec();
    let two = [gzip(b"one "), gzip(b"two")].concat();
    for (answer, wanted) in [
        (coded("gzip", &gzip(b"small")), Ok((5, false))),
        (coded("GZIP", &two), Ok((7, false))),
        (coded("identity", b"plain"), Ok((5, false))),
        (coded("gzip", &bomb), Err("too_large")),
        (Answer::Bytes([&coded_head[..], &bomb].concat()), Ok((1000, true))),
        (coded("gzip, gzip", &gzip(&gzip(b"x"))), Err("not_text")),
        (coded("deflate", b"x"), Err("not_text")),
        (coded("br", b"x"), Err("not_text")),
        (coded("gzip", b"no gzip at all"), Err("not_text")),
        (page("text/plain", &"x".repeat(1001)), Err("too_large")),
        (page("text/plain", &"x".repeat(1000)), Ok((1000, false))),
        (Answer::Endless(head.clone(), vec![b'x'; 700]), Ok((1000, true))),
        (Answer::Bytes(short), Err("unknown")),
        (Answer::Bytes(b"no http at all\r\n\r\n".to_vec()), Err("unknown")),
        (page("application/pdf", "%PDF"), Err("not_text")),
        (Answer::Bytes(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec()), Err("bad_status")),
        (Answer::Bytes(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()), Err("bad_status")),
        (Answer::Drip(head, Duration::from_millis(200)), Err("timeout")),
        (
            Answer::Endless(b"HTTP/1.1 200 OK\r\n".to_vec(), b"X-Pad: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n".to_vec()),
            Err("unknown"),
        ),
    ] {
        let server = serve(answer).await;
        let names = Names::default().with("public.example.org", &[&[(PUBLIC, server.port)]]);
        let limits = Limits { timeout: Duration::from_millis(1500), bytes_max: 1000, hosts: Vec::new() };
        let began = Instant::now();
        let read = fetch(names, "http://public.example.org/", &limits).await;
        assert!(began.elapsed() < Duration::from_secs(5), "{read:?}");
        assert_eq!(read.map(|page| (page.bytes_fetched, page.truncated)).map_err(|failure| failure.kind), wanted);
    }
}

/// Guarantees: a call only ever narrows what the operator set, where the operator says so.
#[test]
fn a_call_widens_nothing_that_is_closed() {
    let config = |fetch| Config { fetch: Some(fetch), ..Config::default() };
    for (fetch, asked, may) in [
        (Fetch::Never, Some(true), false),
        (Fetch::Never, None, false),
        (Fetch::Ask, Some(true), true),
        (Fetch::Ask, None, false),
        (Fetch::On, None, true),
        (Fetch::On, Some(false), false),
    ] {
        assert_eq!(config(fetch).may_fetch(asked), may, "{fetch:?} {asked:?}");
    }
    let hosts = |domains, own: &[&str], asked: Option<&[&str]>| {
        let owned = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let config = Config { domains: Some(domains), allow_domains: owned(own), ..Config::default() };
        config.hosts(asked.map(owned).as_deref())
    };
    let some = |list: &[&str]| Some(list.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
    assert_eq!(hosts(Domains::Intersect, &["a.org"], Some(&["b.org"])), (None, true));
    assert_eq!(hosts(Domains::Intersect, &["a.org"], Some(&["x.a.org"])), (some(&["x.a.org"]), false));
    assert_eq!(hosts(Domains::Intersect, &["x.a.org"], Some(&["a.org"])), (some(&["x.a.org"]), true));
    assert_eq!(hosts(Domains::Intersect, &["x.a.org"], Some(&["org"])), (some(&["x.a.org"]), true));
    assert_eq!(hosts(Domains::Intersect, &["a.org"], Some(&[])), (some(&["a.org"]), false));
    assert_eq!(hosts(Domains::Intersect, &["a.org"], None), (some(&["a.org"]), false));
    assert_eq!(hosts(Domains::Merge, &["a.org"], Some(&["b.org"])), (some(&["a.org", "b.org"]), false));
    assert_eq!(hosts(Domains::Merge, &[], None), (some(&[]), false));
}
