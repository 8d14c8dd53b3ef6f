use std::net::SocketAddr;

use super::*;
use crate::door::probe::get;

async fn open(obstacle: fn() -> Option<&'static str>) -> (SocketAddr, Arc<Ops>, CancellationToken) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (to, cancel) = (listener.local_addr().unwrap(), CancellationToken::new());
    let ops = Ops::new(obstacle, || json!({ "room": 1 }), || vec![Family::one("iris_x", "X", Kind::Gauge, 7)]);
    tokio::spawn(serve(listener, None, Arc::clone(&ops), cancel.clone()));
    (to, ops, cancel)
}

/// Guarantees: ready means that the doors are open and that what comes in can be acknowledged.
#[tokio::test]
async fn ready_is_who_can_acknowledge() {
    let (to, ops, _cancel) = open(|| None).await;
    assert_eq!(get(to, "/livez", &[]).await.0, 200);
    let (status, body) = get(to, "/readyz", &[]).await;
    assert!(status == 503 && body.ends_with("not ready: starting or draining\n"), "{status} {body}");
    ops.set_ready(true);
    assert_eq!(get(to, "/readyz", &[]).await.0, 200);
    let (to, ops, _cancel) = open(|| Some("the disk")).await;
    ops.set_ready(true);
    let (status, body) = get(to, "/readyz", &[]).await;
    assert!(status == 503 && body.ends_with("not ready: the disk\n"), "{status} {body}");
    let (status, body) = get(to, "/readyz?full", &[]).await;
    assert!(status == 503 && body.contains("\"not_ready\":\"the disk\"") && body.contains("\"room\":1"), "{body}");
    let (status, body) = get(to, "/metrics", &[]).await;
    assert!(status == 200 && body.contains("iris_x 7"), "{body}");
}

/// Guarantees: a page in a browser reads nothing here, neither across origins nor through a name that points here.
#[tokio::test]
async fn a_page_in_a_browser_reads_nothing() {
    let (to, _ops, _cancel) = open(|| None).await;
    for path in ["/livez", "/readyz", "/readyz?full", "/metrics", "/nowhere"] {
        for header in [("host", "evil.example"), ("origin", "https://evil.example"), ("origin", "null")] {
            assert_eq!(get(to, path, &[header]).await.0, 403, "{path} {header:?}");
        }
    }
}

/// Guarantees: more connections than there is room for do not keep a probe out.
#[tokio::test]
async fn idle_connections_make_room() {
    let (to, _ops, _cancel) = open(|| None).await;
    let mut idle = Vec::new();
    for _ in 0..CONNECTIONS_MAX + 8 {
        idle.push(tokio::net::TcpStream::connect(to).await.unwrap());
    }
    let asked = tokio::time::timeout(Duration::from_secs(20), get(to, "/livez", &[])).await;
    assert_eq!(asked.unwrap().0, 200);
}
