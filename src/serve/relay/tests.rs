use std::future::pending;

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream, duplex};
use tokio::time::timeout;

use super::*;

const LIMIT: usize = 1000;
const SOON: Duration = Duration::from_secs(20);

/// The far ends of a relay: a client that sends and reads.
struct Client {
    to: DuplexStream,
    from: BufReader<DuplexStream>,
}

impl Client {
    async fn send(&mut self, message: &Value) {
        self.to.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn read(&mut self) -> Value {
        read(&mut self.from).await
    }
}

async fn read(from: &mut (impl AsyncBufReadExt + Unpin)) -> Value {
    let mut line = String::new();
    timeout(SOON, from.read_line(&mut line)).await.expect("an answer in time").unwrap();
    serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"))
}

fn client() -> (Client, Relay<DuplexStream>) {
    let (to, input) = duplex(1 << 20);
    let (output, from) = duplex(1 << 20);
    let (relay, writing) = relay(input, output, LIMIT);
    tokio::spawn(writing);
    (Client { to, from: BufReader::new(from) }, relay)
}

/// The far end of a link.
struct Holder {
    to: tokio::io::WriteHalf<DuplexStream>,
    from: BufReader<tokio::io::ReadHalf<DuplexStream>>,
}

fn link() -> (DuplexStream, Holder) {
    let (near, far) = duplex(1 << 20);
    let (from, to) = tokio::io::split(far);
    (near, Holder { to, from: BufReader::new(from) })
}

impl Holder {
    async fn read(&mut self) -> Value {
        read(&mut self.from).await
    }

    async fn answer(&mut self, id: &Value) {
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": {} });
        self.to.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
    }
}

fn request(id: u64, method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method })
}

/// Scenario: a client is greeted, calls, and its holder ends before it answers; another holder follows.
/// Guarantees: the call is answered with an error that may be retried, the next holder is greeted as the first one
/// was, the client sees nothing of it, and the next call is answered.
#[tokio::test]
async fn a_client_is_handed_from_one_holder_to_the_next() {
    let (mut client, mut relay) = client();
    let (near, mut first) = link();
    let (other, mut second) = link();
    let carrying = tokio::spawn(async move {
        let ends = (relay.carry(near).await.unwrap(), relay.carry(other).await.unwrap());
        (ends, relay)
    });
    client
        .send(
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "clientInfo": { "name": "c" } } }),
        )
        .await;
    assert_eq!(first.read().await["params"]["clientInfo"]["name"], "c");
    first.answer(&json!(1)).await;
    assert_eq!(client.read().await["id"], 1);
    client.send(&request(2, "tools/call")).await;
    first.read().await;
    first.to.write_all(br#"{"jsonrpc":"2.0","id":2,"resu"#).await.unwrap();
    drop(first);
    let lost = client.read().await;
    assert_eq!((&lost["id"], &lost["error"]["code"]), (&json!(2), &json!(-32000)), "{lost}");
    let data = &lost["error"]["data"];
    assert_eq!((&data["code"], &data["retryable"]), (&json!("IRIS_STORAGE_ERROR"), &json!(true)), "{lost}");

    let greeting = second.read().await;
    assert_eq!((&greeting["method"], &greeting["params"]["clientInfo"]["name"]), (&json!("initialize"), &json!("c")));
    second.answer(&greeting["id"]).await;
    assert_eq!(second.read().await["method"], "notifications/initialized");
    client.send(&request(3, "ping")).await;
    assert_eq!(second.read().await, request(3, "ping"));
    second.answer(&json!(3)).await;
    assert_eq!(client.read().await["id"], 3, "the greeting was the relay's own affair");
    drop(client);
    let (ends, _) = timeout(SOON, carrying).await.unwrap().unwrap();
    assert_eq!(ends, (End::LinkBroke, End::ClientLeft));
}

/// Guarantees: a greeting that was under way is given to the next holder, not answered with an error.
#[tokio::test]
async fn a_greeting_that_got_lost_is_made_again() {
    let (mut client, mut relay) = client();
    let (near, mut first) = link();
    let (other, mut second) = link();
    tokio::spawn(async move {
        relay.carry(near).await.unwrap();
        relay.carry(other).await.unwrap();
    });
    client.send(&request(1, "initialize")).await;
    first.read().await;
    drop(first);
    assert_eq!(second.read().await, request(1, "initialize"));
    second.answer(&json!(1)).await;
    assert_eq!(client.read().await["result"], json!({}));
}

/// Guarantees: what is no message never reaches the holder, is answered at once, and the session goes on; while no
/// holder is there as well.
#[tokio::test]
async fn what_is_no_message_is_answered_here() {
    let (mut client, mut relay) = client();
    let (near, mut holder) = link();
    let waiting = tokio::spawn(async move {
        let nobody = timeout(Duration::from_millis(300), relay.wait_for(pending::<()>())).await;
        assert!(nobody.is_err());
        relay.carry(near).await.unwrap();
    });
    for round in 0..2 {
        for (line, code) in [("hello", -32700), ("[]", -32600), ("{}", -32600), (&*"x".repeat(LIMIT + 1), -32600)] {
            client.to.write_all(format!("{line}\n").as_bytes()).await.unwrap();
            let answer = client.read().await;
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &Value::Null), "{line:.20}");
            if line.len() > LIMIT {
                assert_eq!(answer["error"]["data"], json!({ "bytesMax": LIMIT, "setting": "mcp.message_bytes_max" }));
            }
        }
        client.send(&request(round, "ping")).await;
        assert_eq!(holder.read().await, request(round, "ping"));
        holder.answer(&json!(round)).await;
        assert_eq!(client.read().await["id"], round);
    }
    drop(client);
    timeout(SOON, waiting).await.unwrap().unwrap();
}

/// Guarantees: a call that finds nobody for too long is answered with an error that may be retried.
#[tokio::test]
async fn a_call_that_nobody_answers_is_not_left_in_silence() {
    let (mut client, mut relay) = client();
    relay.patience = Duration::from_millis(20);
    tokio::spawn(async move { relay.wait_for(pending::<()>()).await });
    client.send(&request(7, "tools/list")).await;
    let answer = client.read().await;
    assert_eq!((&answer["id"], &answer["error"]["data"]["retryable"]), (&json!(7), &json!(true)), "{answer}");
}

/// Guarantees: a client that closes its side after its last call still gets the answer; one that left is noticed.
#[tokio::test]
async fn a_client_that_sends_no_more_still_gets_its_answers() {
    let (mut client, mut relay) = client();
    let (near, mut holder) = link();
    let carrying = tokio::spawn(async move { relay.carry(near).await.unwrap() });
    client.send(&request(1, "tools/list")).await;
    client.to.shutdown().await.unwrap();
    holder.read().await;
    holder.answer(&json!(1)).await;
    assert_eq!(client.read().await["id"], 1);
    assert_eq!(timeout(SOON, carrying).await.unwrap().unwrap(), End::ClientLeft);
    let (gone, mut relay) = self::client();
    drop(gone);
    assert!(relay.wait_for(pending::<()>()).await.unwrap().is_none());
}

/// Guarantees: requests under way are bounded; a request that was taken back makes room.
#[tokio::test]
async fn requests_under_way_are_bounded() {
    let (mut client, mut relay) = client();
    let (near, mut holder) = link();
    tokio::spawn(async move { relay.carry(near).await });
    for id in 0..FLYING_MAX as u64 {
        client.send(&request(id, "ping")).await;
        holder.read().await;
    }
    client.send(&request(5000, "ping")).await;
    let refused = client.read().await;
    assert_eq!((&refused["id"], &refused["error"]["data"]["retryable"]), (&json!(5000), &json!(true)), "{refused}");
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 3 } });
    client.send(&cancelled).await;
    assert_eq!(holder.read().await, cancelled);
    client.send(&request(5001, "ping")).await;
    assert_eq!(holder.read().await["id"], 5001);
}
