//! The two providers as servers on loopback that misbehave in every way that they have been seen to.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::Config;

pub const KEY: &str = "sk-test-0123456789abcdefghij";

/// What a fake provider does with one request.
#[derive(Clone)]
pub enum Act {
    /// Status, further header lines, body.
    Says(u16, &'static str, String),
    /// Sends these bytes and closes.
    Raw(&'static [u8]),
    /// Reads and says nothing.
    Hangs,
    /// Says what is made of the request.
    Makes(fn(&Value) -> Act),
}

pub struct Fake {
    pub port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    pub most_at_once: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn request(socket: &mut tokio::net::TcpStream) -> String {
    let mut text = Vec::new();
    let mut piece = [0; 8192];
    loop {
        let read = socket.read(&mut piece).await.unwrap_or(0);
        text.extend_from_slice(&piece[..read]);
        let whole = String::from_utf8_lossy(&text).into_owned();
        let length = whole
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.trim().parse::<usize>().ok());
        if let Some((_, body)) = whole.split_once("\r\n\r\n")
            && body.len() >= length.unwrap_or(0)
        {
            return whole;
        }
        if read == 0 {
            return whole;
        }
    }
}

/// Acts in turn, the last act for ever.
pub async fn fake(acts: Vec<Act>, pause: Duration) -> Fake {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let (now, most_at_once) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (kept, most) = (Arc::clone(&requests), Arc::clone(&most_at_once));
    let task = tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let (acts, kept, now, most) = (acts.clone(), Arc::clone(&kept), Arc::clone(&now), Arc::clone(&most));
            tokio::spawn(async move {
                let text = request(&mut socket).await;
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let turn = {
                    let mut kept = kept.lock().unwrap();
                    kept.push(text);
                    kept.len() - 1
                };
                tokio::time::sleep(pause).await;
                // Whoever has the answer may ask again before this task goes on.
                now.fetch_sub(1, Ordering::SeqCst);
                let act = match &acts[turn.min(acts.len() - 1)] {
                    Act::Makes(make) => make(&body_of(&kept.lock().unwrap()[turn])),
                    other => other.clone(),
                };
                match &act {
                    Act::Says(status, headers, body) => {
                        let length = body.len();
                        let head = format!(
                            "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n{headers}\r\n"
                        );
                        let _ = socket.write_all(format!("{head}{body}").as_bytes()).await;
                    }
                    Act::Raw(bytes) => drop(socket.write_all(bytes).await),
                    Act::Hangs => tokio::time::sleep(Duration::from_secs(60)).await,
                    Act::Makes(_) => unreachable!("one makes no other"),
                }
            });
        }
    });
    Fake { port, requests, most_at_once, task }
}

fn body_of(request: &str) -> Value {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

impl Fake {
    pub fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    pub fn request(&self, at: usize) -> (String, Value) {
        let requests = self.requests.lock().unwrap();
        let (head, body) = requests[at].split_once("\r\n\r\n").unwrap();
        (head.to_ascii_lowercase(), serde_json::from_str(body).unwrap())
    }
}

pub const JSON: &str = "Content-Type: application/json\r\n";

pub fn claude(text: &str) -> Act {
    let body = json!({ "id": "msg_1", "content": [{ "type": "text", "text": text }], "stop_reason": "end_turn", "usage": { "input_tokens": 1000, "output_tokens": 100 } });
    Act::Says(200, JSON, body.to_string())
}

pub fn gpt(text: &str) -> Act {
    let body = json!({ "id": "chatcmpl-1", "choices": [{ "message": { "content": text }, "finish_reason": "stop" }], "usage": { "prompt_tokens": 1000, "completion_tokens": 100 } });
    Act::Says(200, JSON, body.to_string())
}

pub fn config(port: u16) -> Config {
    Config {
        anthropic_api_key: Some(SecretString::from(KEY)),
        openai_api_key: Some(SecretString::from(KEY)),
        anthropic_base_url: Some(format!("http://127.0.0.1:{port}/v1/")),
        openai_base_url: Some(format!("http://127.0.0.1:{port}")),
        ..Config::default()
    }
}
