//! A provider of models that speaks as Anthropic's does and always says the same.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// One that runs; dropping it ends it.
pub struct Provider {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Provider {
    /// Answers every question with this text, for 1,000 tokens sent and 100 received.
    pub async fn start(says: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(answer(socket, says, Arc::clone(&kept)));
            }
        });
        Self { port, asked, task }
    }

    /// What is set so that it is asked.
    pub fn settings(&self) -> [(&'static str, String); 2] {
        [
            ("IRIS_ANTHROPIC_API_KEY", "sk-test-0123456789".to_owned()),
            ("IRIS__JUDGE__ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{}", self.port)),
        ]
    }

    /// Everything it was sent.
    pub fn asked(&self) -> String {
        self.asked.lock().unwrap().join("\n")
    }

    /// How often it was asked.
    pub fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

async fn answer(mut socket: TcpStream, says: &str, asked: Arc<Mutex<Vec<String>>>) {
    let (mut text, mut piece) = (Vec::new(), [0; 8192]);
    loop {
        let read = socket.read(&mut piece).await.unwrap_or(0);
        text.extend_from_slice(&piece[..read]);
        let whole = String::from_utf8_lossy(&text).into_owned();
        let is_all = whole.split_once("\r\n\r\n").is_some_and(|(_, body)| serde_json::from_str::<Value>(body).is_ok());
        if is_all || read == 0 {
            asked.lock().unwrap().push(whole);
            break;
        }
    }
    let body = json!({ "id": "msg_1", "content": [{ "type": "text", "text": says }], "stop_reason": "end_turn",
                       "usage": { "input_tokens": 1000, "output_tokens": 100 } })
    .to_string();
    let length = body.len();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
    let _ = socket.write_all(format!("{head}Content-Length: {length}\r\n\r\n{body}").as_bytes()).await;
}
