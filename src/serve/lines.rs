//! MCP over a stream of bytes: one message a line, none longer than the limit.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::SinkExt;
use rmcp::RoleServer;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::error::Category;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader};
use tokio::sync::Mutex;
use tokio_util::codec::{BytesCodec, FramedWrite};

use super::message::{self, Refusal};

/// What a stream gives.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line without its end; the last one may have had none.
    Whole(Vec<u8>),
    /// A line that was longer than the limit; nothing of it is kept.
    TooLong,
}

/// The lines of a stream.
pub(super) struct Lines<R> {
    read: BufReader<R>,
    line: Vec<u8>,
    bytes_max: usize,
    /// What is left of a line that was too long is being thrown away.
    discarding: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Reads lines of at most `bytes_max` bytes.
    pub(super) fn new(read: R, bytes_max: usize) -> Self {
        Self { read: BufReader::new(read), line: Vec::new(), bytes_max, discarding: false }
    }

    /// The next line that is not empty; `None` at the end. A call that is given up loses nothing: no byte is taken
    /// without being kept before the next wait.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let available = self.read.fill_buf().await?;
            let end = available.iter().position(|byte| *byte == b'\n');
            let (taken, is_whole) = match (end, available.len()) {
                (None, 0) => (0, true),
                (Some(end), _) => (end + 1, true),
                (None, all) => (all, false),
            };
            let is_last = taken == 0;
            let is_too_long = self.line.len() + end.unwrap_or(taken) > self.bytes_max;
            if !self.discarding && !is_too_long {
                self.line.extend_from_slice(&available[..end.unwrap_or(taken)]);
            }
            self.read.consume(taken);
            if self.discarding {
                self.discarding = !is_whole;
            } else if is_too_long {
                self.line = Vec::new();
                self.discarding = !is_whole;
                return Ok(Some(Line::TooLong));
            } else if is_whole {
                let line = std::mem::take(&mut self.line);
                if !line.trim_ascii().is_empty() {
                    return Ok(Some(Line::Whole(line)));
                }
            }
            if is_last {
                return Ok(None);
            }
        }
    }
}

/// A peer that speaks MCP a message a line. Whatever is no message is answered, and the session goes on.
pub(super) struct Peer<R, W> {
    lines: Lines<R>,
    out: Arc<Mutex<Option<FramedWrite<W, BytesCodec>>>>,
    /// An answer that is not handed over yet.
    refusal: Option<Bytes>,
    /// An answer was handed over and may not be written yet.
    is_unflushed: bool,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Peer<R, W> {
    /// A peer that sends by `read` and is answered by `write`.
    pub(super) fn new(read: R, write: W, bytes_max: usize) -> Self {
        let out = Arc::new(Mutex::new(Some(FramedWrite::new(write, BytesCodec::new()))));
        Self { lines: Lines::new(read, bytes_max), out, refusal: None, is_unflushed: false }
    }

    /// Writes out a pending refusal; false when nobody takes it any more. May be given up at any wait.
    async fn answer(&mut self) -> bool {
        if self.refusal.is_none() && !self.is_unflushed {
            return true;
        }
        let mut out = self.out.lock().await;
        let Some(out) = out.as_mut() else { return false };
        if let Some(line) = &self.refusal {
            if out.feed(line.clone()).await.is_err() {
                return false;
            }
            self.refusal = None;
            self.is_unflushed = true;
        }
        self.is_unflushed = SinkExt::<Bytes>::flush(out).await.is_err();
        !self.is_unflushed
    }
}

impl<R, W> Transport<RoleServer> for Peer<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let out = Arc::clone(&self.out);
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut out = out.lock().await;
            let out = out.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            out.send(Bytes::from(line)).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if !self.answer().await {
                return None;
            }
            let refusal = match self.lines.next().await {
                Ok(Some(Line::Whole(line))) => match read(&line) {
                    Ok(message) => return Some(message),
                    Err(refusal) => refusal,
                },
                Ok(Some(Line::TooLong)) => Refusal::too_large(self.lines.bytes_max),
                Ok(None) => return None,
                Err(error) => {
                    tracing::debug!(%error, "a peer's stream broke");
                    return None;
                }
            };
            self.refusal = Some(refusal.to_line());
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        drop(self.out.lock().await.take());
        Ok(())
    }
}

/// Reads a message whole.
///
/// # Errors
/// What to answer instead.
pub(super) fn read(bytes: &[u8]) -> Result<ClientJsonRpcMessage, Refusal> {
    let head = message::head(bytes)?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    serde_json::from_slice(bytes).map_err(|error| {
        let refusal = match error.classify() {
            Category::Data => Refusal::no_message("its fields do not fit together"),
            _ => Refusal::not_json("an escape or a number is not valid, or it is nested too deep"),
        };
        refusal.with_id(head.id.unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    async fn lines(text: &[u8], bytes_max: usize) -> Vec<Line> {
        let mut lines = Lines::new(text, bytes_max);
        let mut found = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            found.push(line);
        }
        found
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.into())
    }

    #[tokio::test]
    async fn lines_are_bounded_and_none_is_lost() {
        assert_eq!(lines(b"ab\n\n \r\ncde\nf", 3).await, [whole("ab"), whole("cde"), whole("f")]);
        assert_eq!(lines(b"abcd\nef\nxxxxxxxxx", 3).await, [Line::TooLong, whole("ef"), Line::TooLong]);
        let long = [vec![b'x'; 100_000], b"\nok\n".to_vec()].concat();
        assert_eq!(lines(&long, 10).await, [Line::TooLong, whole("ok")]);
        assert_eq!(lines(&long, 100_000).await, [whole(&"x".repeat(100_000)), whole("ok")]);
        assert_eq!(lines(&long, 99_999).await, [Line::TooLong, whole("ok")]);
    }

    #[tokio::test]
    async fn a_read_that_is_given_up_loses_nothing() {
        let (mut far, near) = tokio::io::duplex(64);
        let mut lines = Lines::new(near, 100);
        far.write_all(b"first ").await.unwrap();
        let given_up = tokio::time::timeout(std::time::Duration::from_millis(20), lines.next()).await;
        assert!(given_up.is_err(), "there is no whole line yet");
        far.write_all(b"half\nnext\n").await.unwrap();
        assert_eq!(lines.next().await.unwrap(), Some(whole("first half")));
        assert_eq!(lines.next().await.unwrap(), Some(whole("next")));
    }

    #[test]
    fn what_the_envelope_lets_pass_is_read_whole_or_refused() {
        assert!(read(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).is_ok());
        let refused = read(br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":7}"#).unwrap_err().to_value();
        assert_eq!((&refused["error"]["code"], &refused["id"]), (&(-32600).into(), &1.into()), "{refused}");
        let deep =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{}1{}}}"#, "[".repeat(500), "]".repeat(500));
        for text in [r#"{"jsonrpc":"2.0","id":1,"method":"x","params":"\ud800"}"#, &deep] {
            assert!(read(text.as_bytes()).unwrap_err().to_value()["error"]["code"] == -32700, "{text:.80}");
        }
    }
}
