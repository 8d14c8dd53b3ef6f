//! Very many connections, and senders that take their time.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{SOON, all_there, is_long, open, put};
use crate::support::iris::Iris;
use crate::support::proc::{handles, peak_kib};

/// Scenario: every door gets many more connections than it has room for, which say nothing; some of them go away, some
/// stay; meanwhile runs come.
/// Guarantees: doors answer; runs are taken and judged; handles and memory stay bounded, and handles are given back.
#[tokio::test(flavor = "multi_thread")]
async fn floods_of_connections_keep_nobody_out() {
    let iris = Iris::start(&[("IRIS__ASSEMBLY__QUIET_MS", "200")]).await;
    open(&iris).await;
    assert_eq!(put(&iris, 1).await, 200);
    all_there(&iris, [1], "before").await;
    let before = handles(iris.pid());
    let each = if is_long() { 3000 } else { 400 };
    let mut number = 1;
    for door in ["http", "grpc", "web", "ops"] {
        let mut crowd = Vec::new();
        for count in 0..each {
            // A full queue of the system's own refuses or stalls some: that is no answer of ours.
            let connecting = tokio::time::timeout(Duration::from_millis(500), TcpStream::connect(iris.door(door)));
            if let Ok(Ok(stream)) = connecting.await
                && count % 3 > 0
            {
                crowd.push(stream);
            }
        }
        assert!(handles(iris.pid()) < 2500, "{} handles", handles(iris.pid()));
        let until = Instant::now() + SOON;
        number += 1;
        while put(&iris, number).await != 200 {
            assert!(Instant::now() < until, "kept out at {door}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(iris.get("ops", "/livez").await.0, 200, "{door}");
        all_there(&iris, [number], door).await;
        drop(crowd);
    }
    assert!(peak_kib(iris.pid()) < 256 * 1024, "{} KiB", peak_kib(iris.pid()));
    let until = Instant::now() + SOON;
    while handles(iris.pid()) > before + 64 {
        assert!(Instant::now() < until, "{} handles, {before} before", handles(iris.pid()));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Scenario: many senders announce a body, send a byte now and then, and never end; a good one sends beside them.
/// Guarantees: the good one is taken and judged; the others hold no more than their connections, and are cut off in time.
#[tokio::test(flavor = "multi_thread")]
async fn slow_senders_hold_up_nobody() {
    let iris = Iris::start(&[("IRIS__ASSEMBLY__QUIET_MS", "200")]).await;
    open(&iris).await;
    let mut slow = tokio::task::JoinSet::new();
    for _ in 0..32 {
        let address = iris.door("http");
        slow.spawn(async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let head = format!(
                "POST /v1/traces HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/x-protobuf\r\n\
                 content-length: 1000000\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            let begun = Instant::now();
            let mut answer = [0; 512];
            loop {
                let wait = tokio::time::timeout(Duration::from_millis(200), stream.read(&mut answer)).await;
                match wait {
                    Ok(Ok(count)) if count > 0 => {
                        return (begun.elapsed(), String::from_utf8_lossy(&answer[..count]).into_owned());
                    }
                    Ok(_) => return (begun.elapsed(), String::new()),
                    Err(_) if stream.write_all(b"x").await.is_err() => return (begun.elapsed(), String::new()),
                    Err(_) => {}
                }
                assert!(begun.elapsed() < SOON, "never cut off");
            }
        });
    }
    let until = Instant::now() + SOON;
    for number in 1..=20 {
        while put(&iris, number).await != 200 {
            assert!(Instant::now() < until, "held up");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    all_there(&iris, 1..=20, "beside slow senders").await;
    while let Some(cut_off) = slow.join_next().await {
        let (after, said) = cut_off.unwrap();
        assert!(
            said.is_empty() || said.starts_with("HTTP/1.1 408") || said.starts_with("HTTP/1.1 503"),
            "{after:?} {said}"
        );
    }
    assert!(peak_kib(iris.pid()) < 256 * 1024, "{} KiB", peak_kib(iris.pid()));
}
