//! Servers on loopback behind names that a resolver of the test makes public; each counts whoever connects to it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{Place, Resolve, Resolving};

pub const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34));

/// Answers every connection with the same bytes after it has read a request, and counts them.
pub struct Server {
    pub port: u16,
    seen: Arc<AtomicUsize>,
    pub requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How a server answers.
#[derive(Clone)]
pub enum Answer {
    Bytes(Vec<u8>),
    /// The bytes one by one, with a pause before each.
    Drip(Vec<u8>, Duration),
    /// The bytes, then the same piece for ever.
    Endless(Vec<u8>, Vec<u8>),
}

pub async fn serve(answer: Answer) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (seen, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (counted, kept) = (Arc::clone(&seen), Arc::clone(&requests));
    let task = tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let (answer, kept) = (answer.clone(), Arc::clone(&kept));
            tokio::spawn(async move {
                let mut request = vec![0; 4096];
                let read = socket.read(&mut request).await.unwrap_or(0);
                kept.lock().unwrap().push(String::from_utf8_lossy(&request[..read]).into_owned());
                match answer {
                    Answer::Bytes(bytes) => drop(socket.write_all(&bytes).await),
                    Answer::Drip(bytes, pause) => {
                        for byte in bytes {
                            tokio::time::sleep(pause).await;
                            if socket.write_all(&[byte]).await.is_err() {
                                return;
                            }
                        }
                    }
                    Answer::Endless(head, piece) => {
                        let _ = socket.write_all(&head).await;
                        while socket.write_all(&piece).await.is_ok() {}
                    }
                }
            });
        }
    });
    Server { port, seen, requests, task }
}

impl Server {
    pub fn seen(&self) -> usize {
        self.seen.load(Ordering::SeqCst)
    }
}

pub fn page(kind: &str, body: &str) -> Answer {
    Answer::Bytes(
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .into_bytes(),
    )
}

pub fn redirect(location: &str) -> Answer {
    Answer::Bytes(
        format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .into_bytes(),
    )
}

/// A resolver whose answers are given: by name, one after another; the last one stays.
#[derive(Clone, Default)]
pub struct Names(Arc<Mutex<Vec<(String, Answers)>>>);

/// What a name stands for, look-up by look-up.
type Answers = Vec<Vec<Place>>;

impl Names {
    pub fn with(self, name: &str, answers: &[&[(IpAddr, u16)]]) -> Self {
        let answers = answers.iter().map(|one| {
            one.iter()
                .map(|(address, port)| Place { address: *address, dial: SocketAddr::from(([127, 0, 0, 1], *port)) })
                .collect()
        });
        self.0.lock().unwrap().push((name.to_owned(), answers.collect()));
        self
    }
}

impl Resolve for Names {
    fn resolve(&self, name: String, _: u16) -> Resolving<'_> {
        let mut names = self.0.lock().unwrap();
        let found = names
            .iter_mut()
            .find(|(known, _)| *known == name)
            .map(|(_, answers)| if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() });
        Box::pin(async move { found.ok_or_else(|| std::io::Error::other("no such name")) })
    }
}
