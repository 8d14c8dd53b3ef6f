use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use crate::door::KeyConfig;
use crate::door::probe::get;
use crate::serve::tests::{app, open_app};
use crate::serve::{Anonymous, Config};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

/// A door with these keys over an app whose store is not open.
async fn door(home: &std::path::Path, keys: Vec<KeyConfig>, anonymous: Anonymous) -> SocketAddr {
    let config = Config { anonymous, ..Config::default() };
    open_app(app(home), config, keys, CancellationToken::new()).await
}

fn key(name: &str, tenant: &str, scopes: &str) -> KeyConfig {
    let scopes: Vec<&str> = scopes.split(' ').collect();
    serde_json::from_value(
        serde_json::json!({ "name": name, "key": format!("{name}-s3cret"), "tenant": tenant, "scopes": scopes }),
    )
    .unwrap()
}

/// The status and the answer to a form.
async fn post(to: SocketAddr, path: &str, headers: &[(&str, &str)], fields: &[(&str, &str)]) -> (u16, String) {
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    let mut request =
        format!("POST {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    let mut stream = tokio::net::TcpStream::connect(to).await.unwrap();
    stream.write_all(format!("{request}\r\n{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    (answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default(), answer)
}

/// What a form of that page carries.
fn token(page: &str) -> String {
    let value = page.split("name=\"token\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    value.unwrap_or_else(|| panic!("no form: {page}")).to_owned()
}

fn header(answer: &str, name: &str) -> Option<String> {
    let head = answer.split("\r\n\r\n").next().unwrap_or_default();
    head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")).map(str::to_owned))
}

/// Signs in: what to send as cookie from then on.
async fn signed_in(to: SocketAddr, key: &str) -> String {
    let (_, page) = get(to, "/sign-in?next=/rules", &[]).await;
    let fields = [("token", &*token(&page)), ("key", key), ("next", "/rules")];
    let (status, answer) = post(to, "/sign-in", &[FORM], &fields).await;
    assert_eq!((status, header(&answer, "location").as_deref()), (303, Some("/rules")), "{answer}");
    header(&answer, "set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

/// Guarantees: every page carries the policy, is stored nowhere, loads nothing from elsewhere and has nothing inline.
#[tokio::test]
async fn every_page_keeps_to_its_policy() {
    let home = tempfile::tempdir().unwrap();
    let to = door(home.path(), Vec::new(), Anonymous::All).await;
    // Without a store most pages say that it is not open yet.
    for (path, status) in [("/", 503), ("/traces", 503), ("/traces/0", 400), ("/rules", 200), ("/system", 200)] {
        let (got, page) = get(to, path, &[]).await;
        assert_eq!(got, status, "{path}: {page}");
        let policy = header(&page, "content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(header(&page, "cache-control").as_deref(), Some("no-store"));
        assert_eq!(header(&page, "content-type").as_deref(), Some("text/html; charset=utf-8"));
        let body = page.split("\r\n\r\n").nth(1).unwrap();
        for inline in [" style=", "<style", " onclick=", "javascript:", "src=\"http", "href=\"http", "<script>"] {
            assert!(!body.contains(inline), "{path} has {inline}");
        }
        assert!(body.contains("<html lang=\"en\">") && body.contains("<main id=\"main\""), "{path}");
    }
}

/// Guarantees: what pages load is kept by browsers for ever under a name that changes with what is in it.
#[tokio::test]
async fn assets_have_names_of_their_own() {
    let home = tempfile::tempdir().unwrap();
    let to = door(home.path(), vec![key("one", "local", "read")], Anonymous::All).await;
    let (_, page) = get(to, "/sign-in", &[]).await;
    let names: Vec<&str> = page.split("/assets/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(names.len(), 3, "{page}");
    for name in names {
        let (status, answer) = get(to, &format!("/assets/{name}"), &[]).await;
        assert_eq!((status, header(&answer, "cache-control").unwrap().contains("immutable")), (200, true), "{name}");
        assert_eq!(header(&answer, "x-content-type-options").as_deref(), Some("nosniff"));
    }
    assert_eq!(get(to, "/assets/style.css", &[]).await.0, 404);
}

/// Guarantees: with a key set a page leads to where one signs in and back; the cookie is this door's alone, and neither the
/// API nor MCP takes it.
#[tokio::test]
async fn one_signs_in_with_a_key_and_out_again() {
    let home = tempfile::tempdir().unwrap();
    let to = door(home.path(), vec![key("one", "local", "read admin")], Anonymous::All).await;
    let (status, answer) = get(to, "/rules?done=paused", &[]).await;
    assert_eq!((status, header(&answer, "location").as_deref()), (303, Some("/sign-in?next=%2Frules%3Fdone%3Dpaused")));
    let (_, page) = get(to, "/sign-in", &[]).await;
    for wrong in ["", "wrong", "one"] {
        let (status, answer) = post(to, "/sign-in", &[FORM], &[("token", &token(&page)), ("key", wrong)]).await;
        assert_eq!((status, header(&answer, "set-cookie")), (403, None), "{wrong}");
    }
    let fields = [("token", &*token(&page)), ("key", "one-s3cret"), ("next", "//evil.example")];
    let (status, answer) = post(to, "/sign-in", &[FORM], &fields).await;
    assert_eq!((status, header(&answer, "location").as_deref()), (303, Some("/")));
    let cookie = header(&answer, "set-cookie").unwrap();
    assert!(cookie.starts_with(&format!("iris_session_{}=", to.port())), "{cookie}");
    assert!(cookie.contains("; HttpOnly") && cookie.contains("; SameSite=Strict"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();
    let (status, page) = get(to, "/rules", &[("cookie", cookie)]).await;
    assert!(status == 200 && page.contains("Sign out") && page.contains("<bdi>one</bdi>"), "{page}");
    for path in ["/api/v1/tools", "/mcp"] {
        assert_eq!(get(to, path, &[("cookie", cookie)]).await.0, 401, "{path}");
    }
    assert_eq!(get(to, "/rules", &[("authorization", "Bearer one-s3cret")]).await.0, 200);
    let (status, answer) = post(to, "/sign-out", &[FORM, ("cookie", cookie)], &[("token", &token(&page))]).await;
    assert!(status == 303 && header(&answer, "set-cookie").unwrap().contains("Max-Age=0"), "{answer}");
    assert_eq!(get(to, "/rules", &[("cookie", cookie)]).await.0, 303, "the session is over");
}

/// Guarantees: a form without the token of its own session changes nothing; neither does one of another site.
#[tokio::test]
async fn a_form_must_come_from_a_page_of_the_same_session() {
    let home = tempfile::tempdir().unwrap();
    let keys = vec![key("one", "local", "read admin"), key("two", "local", "read admin")];
    let to = door(home.path(), keys, Anonymous::All).await;
    let (ours, theirs) = (signed_in(to, "one-s3cret").await, signed_in(to, "two-s3cret").await);
    let other = token(&get(to, "/rules", &[("cookie", &theirs)]).await.1);
    let own = token(&get(to, "/rules", &[("cookie", &ours)]).await.1);
    let rule = |token: &str| {
        let fields = [
            ("token", token),
            ("name", "r1"),
            ("type", "min_length"),
            ("length", "5"),
            ("eval_type", "custom"),
            ("severity", "low"),
        ];
        fields.map(|(name, value)| (name.to_owned(), value.to_owned()))
    };
    let sent = async |token: &str, headers: &[(&str, &str)]| {
        let fields = rule(token);
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        post(to, "/rules/deploy", headers, &fields).await
    };
    for wrong in ["", "0", other.as_str()] {
        assert_eq!(sent(wrong, &[FORM, ("cookie", &ours)]).await.0, 403, "{wrong}");
    }
    assert_eq!(sent(&own, &[FORM, ("cookie", &ours), ("origin", "https://evil.example")]).await.0, 403);
    assert_eq!(sent(&own, &[("content-type", "text/plain"), ("cookie", &ours)]).await.0, 415);
    assert_eq!(sent(&own, &[FORM]).await.0, 303, "without the cookie nobody is signed in");
    assert!(!get(to, "/rules", &[("cookie", &ours)]).await.1.contains("<bdi>r1</bdi>"));
    let origin = format!("http://{to}");
    let (status, answer) = sent(&own, &[FORM, ("cookie", &ours), ("origin", &origin)]).await;
    assert_eq!((status, header(&answer, "location").as_deref()), (303, Some("/rules?done=deployed")), "{answer}");
    assert!(get(to, "/rules", &[("cookie", &ours)]).await.1.contains("<bdi>r1</bdi>"));
}

/// Guarantees: a rule is tried for mistakes, deployed, paused, let go on and removed; what is wrong is said in words, and
/// what was entered stays.
#[tokio::test]
async fn a_rule_lives_and_dies_by_forms() {
    let home = tempfile::tempdir().unwrap();
    let to = door(home.path(), Vec::new(), Anonymous::All).await;
    let token = token(&get(to, "/rules", &[]).await.1);
    let rule = [
        ("token", &*token),
        ("name", "no <b>promises"),
        ("type", "regex_no_match"),
        ("eval_type", "safety"),
        ("severity", "high"),
    ];
    let with =
        |more: &[(&'static str, &'static str)]| rule.iter().copied().chain(more.iter().copied()).collect::<Vec<_>>();
    let (status, page) = post(to, "/rules/deploy", &[FORM], &with(&[("pattern", "(?=x)\"><script>")])).await;
    assert_eq!(status, 400, "{page}");
    assert!(
        page.contains("role=\"alert\"") && page.contains("pattern") && page.contains("no &#60;b&#62;promises"),
        "{page}"
    );
    assert!(page.contains("(?=x)&#34;&#62;&#60;script&#62;") && !page.contains("\"><script>"), "{page}");
    assert_eq!(post(to, "/rules/deploy", &[FORM], &with(&[("pattern", "guarantee")])).await.0, 303);
    let (_, page) = get(to, "/rules?done=deployed", &[]).await;
    assert!(
        page.contains("no &#60;b&#62;promises") && page.contains("in force") && page.contains("The rule is deployed"),
        "{page}"
    );
    let id = page.split("action=\"/rules/rule-").nth(1).and_then(|rest| rest.split('/').next()).unwrap().to_owned();
    for (change, seen) in [("pause", "paused"), ("resume", "in force"), ("delete", "None is deployed")] {
        let (status, answer) = post(to, &format!("/rules/rule-{id}/{change}"), &[FORM], &[("token", &token)]).await;
        assert_eq!(status, 303, "{change}: {answer}");
        let (_, page) = get(to, "/rules", &[]).await;
        assert!(page.contains(seen), "{change}: {page}");
    }
    let (_, answer) = post(to, &format!("/rules/rule-{id}/delete"), &[FORM], &[("token", &token)]).await;
    assert_eq!(header(&answer, "location").as_deref(), Some("/rules?done=gone"));
    assert_eq!(post(to, &format!("/rules/rule-{id}/explode"), &[FORM], &[("token", &token)]).await.0, 404);
}

/// Guarantees: whoever may only look sees no form that changes something, and sends one in vain; another tenant's key sees
/// neither the rules of this one nor the figures of the process.
#[tokio::test]
async fn pages_show_what_the_caller_may_see() {
    let home = tempfile::tempdir().unwrap();
    let keys =
        vec![key("owner", "local", "read admin"), key("looker", "local", "read"), key("other", "red", "read admin")];
    let to = door(home.path(), keys, Anonymous::All).await;
    let [owner, looker, other] = [
        signed_in(to, "owner-s3cret").await,
        signed_in(to, "looker-s3cret").await,
        signed_in(to, "other-s3cret").await,
    ];
    let own = token(&get(to, "/rules", &[("cookie", &owner)]).await.1);
    let rule = |token: &str| {
        [
            ("token", token),
            ("name", "ours"),
            ("type", "min_length"),
            ("length", "5"),
            ("eval_type", "custom"),
            ("severity", "low"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
    };
    let deploy = async |cookie: &str, token: &str| {
        let fields = rule(token);
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        post(to, "/rules/deploy", &[FORM, ("cookie", cookie)], &fields).await
    };
    assert_eq!(deploy(&owner, &own).await.0, 303);
    let (_, page) = get(to, "/rules", &[("cookie", &looker)]).await;
    assert!(page.contains("<bdi>ours</bdi>") && !page.contains("/rules/deploy") && !page.contains("/pause"), "{page}");
    let (status, _) = deploy(&looker, &token(&page)).await;
    assert!((400..500).contains(&status), "{status}");
    let (_, page) = get(to, "/rules", &[("cookie", &other)]).await;
    assert!(!page.contains("<bdi>ours</bdi>") && page.contains("tenant <bdi>red</bdi>"), "{page}");
    let (_, page) = get(to, "/system", &[("cookie", &other)]).await;
    assert!(!page.contains("Journal") && page.contains("keys of the tenant"), "{page}");
}

/// Guarantees: a page for onlookers alone, where no key is set, has no form that changes something.
#[tokio::test]
async fn onlookers_change_nothing() {
    let home = tempfile::tempdir().unwrap();
    let to = door(home.path(), Vec::new(), Anonymous::Read).await;
    let (status, page) = get(to, "/rules", &[]).await;
    assert!(status == 200 && !page.contains("<form class=\"rule-form\""), "{page}");
    assert_eq!(get(to, "/sign-in", &[]).await.0, 303, "there is nothing to sign in with");
}
