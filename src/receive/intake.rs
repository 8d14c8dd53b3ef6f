//! Bodies into memory, never more of it than was permitted: every buffer takes its permit before it grows.

use std::io::Read;

use bytes::Bytes;
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use super::fault::Fault;
use crate::ingest::Permit;

/// The first size of a buffer; it doubles from there.
const BUFFER_LEAST_BYTES: usize = 16 * 1024;

/// The largest zstd window taken, as a power of two: the 8 MiB that every decoder should support.
/// Source: <https://www.rfc-editor.org/rfc/rfc8878#section-3.1.1.1.2>.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// The bytes of a gRPC message's prefix: a flag and a length.
/// Source: <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#requests>.
const PREFIX_BYTES: usize = 5;

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Zstd,
    Deflate,
}

/// A buffer that asks before it grows.
#[derive(Debug)]
struct Gathered<'a> {
    bytes: Vec<u8>,
    /// What the sender says the length will be; only ever makes the buffer smaller.
    declared: Option<usize>,
    bytes_max: usize,
    /// Bytes held for something else on the same permit.
    beside: usize,
    permit: &'a mut Permit,
}

impl Gathered<'_> {
    fn push(&mut self, chunk: &[u8]) -> Result<(), Fault> {
        let needed = self.bytes.len().saturating_add(chunk.len());
        self.make_room(needed)?;
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }

    /// Makes the capacity at least `needed`, by doubling.
    fn make_room(&mut self, needed: usize) -> Result<(), Fault> {
        if needed > self.bytes_max {
            return Err(Fault::too_large(self.bytes_max as u64));
        }
        if needed <= self.bytes.capacity() {
            return Ok(());
        }
        let doubled = self.bytes.capacity().saturating_mul(2).max(BUFFER_LEAST_BYTES);
        let most = self.declared.map_or(self.bytes_max, |declared| declared.min(self.bytes_max));
        let capacity = doubled.min(most).max(needed);
        self.permit.hold(self.beside + capacity)?;
        self.bytes.reserve_exact(capacity - self.bytes.len());
        Ok(())
    }
}

/// Reads an HTTP body to its end.
pub(super) async fn read_body<B>(
    body: &mut B,
    bytes_max: usize,
    deadline: Instant,
    permit: &mut Permit,
) -> Result<Bytes, Fault>
where
    B: Body<Data = Bytes> + Unpin,
{
    let declared = body.size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
    if declared.is_some_and(|declared| declared > bytes_max) {
        return Err(Fault::too_large(bytes_max as u64));
    }
    let mut gathered = Gathered { bytes: Vec::new(), declared, bytes_max, beside: 0, permit };
    while let Some(chunk) = next_chunk(body, deadline).await? {
        gathered.push(&chunk)?;
    }
    Ok(gathered.bytes.into())
}

/// Reads the one message of a unary gRPC call; says whether it is compressed.
pub(super) async fn read_message<B>(
    body: &mut B,
    bytes_max: usize,
    deadline: Instant,
    permit: &mut Permit,
) -> Result<(Bytes, bool), Fault>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut prefix = Vec::with_capacity(PREFIX_BYTES);
    let mut gathered = Gathered { bytes: Vec::new(), declared: None, bytes_max, beside: 0, permit };
    while let Some(mut chunk) = next_chunk(body, deadline).await? {
        if prefix.len() < PREFIX_BYTES {
            prefix.extend_from_slice(&chunk.split_to(chunk.len().min(PREFIX_BYTES - prefix.len())));
            if prefix.len() == PREFIX_BYTES {
                let length = message_length(&prefix)?;
                if length > bytes_max {
                    return Err(Fault::too_large(bytes_max as u64));
                }
                gathered.declared = Some(length);
            }
        }
        let left = gathered.declared.unwrap_or(0) - gathered.bytes.len();
        if chunk.len() > left {
            return Err(Fault::malformed("a call carries exactly one message"));
        }
        gathered.push(&chunk)?;
    }
    match gathered.declared {
        Some(length) if gathered.bytes.len() == length => Ok((gathered.bytes.into(), prefix.first() == Some(&1))),
        Some(length) => {
            let message = format!("the message has {} of the {length} bytes it announces", gathered.bytes.len());
            Err(Fault::malformed(message))
        }
        None => Err(Fault::malformed("the call carries no message")),
    }
}

fn message_length(prefix: &[u8]) -> Result<usize, Fault> {
    let [0 | 1, length @ ..] = prefix else {
        return Err(Fault::malformed("the compressed flag of the message must be 0 or 1"));
    };
    let length = <[u8; 4]>::try_from(length).map_err(|_| Fault::malformed("the message has no length"))?;
    usize::try_from(u32::from_be_bytes(length)).map_err(|_| Fault::malformed("the message is too long"))
}

async fn next_chunk<B>(body: &mut B, deadline: Instant) -> Result<Option<Bytes>, Fault>
where
    B: Body<Data = Bytes> + Unpin,
{
    loop {
        match timeout_at(deadline, body.frame()).await {
            Err(_) => return Err(Fault::timed_out()),
            Ok(None) => return Ok(None),
            Ok(Some(Err(_))) => return Err(Fault::aborted()),
            Ok(Some(Ok(frame))) => {
                if let Ok(chunk) = frame.into_data() {
                    return Ok(Some(chunk));
                }
            }
        }
    }
}

/// Undoes compression, on the blocking pool. The permit comes back holding what the message needs.
pub(super) async fn inflate(
    compression: Compression,
    compressed: Bytes,
    bytes_max: usize,
    mut permit: Permit,
) -> Result<(Bytes, Permit), Fault> {
    let task = tokio::task::spawn_blocking(move || {
        let bytes = inflate_here(compression, &compressed, bytes_max, &mut permit)?;
        drop(compressed);
        permit.keep(bytes.capacity());
        Ok((bytes.into(), permit))
    });
    task.await.unwrap_or_else(|_| Err(Fault::malformed("the message cannot be decompressed")))
}

fn inflate_here(
    compression: Compression,
    compressed: &[u8],
    bytes_max: usize,
    permit: &mut Permit,
) -> Result<Vec<u8>, Fault> {
    let name = match compression {
        Compression::Gzip => "gzip",
        Compression::Zstd => "zstd",
        Compression::Deflate => "deflate",
    };
    let bad = |_| Fault::malformed(format!("the message is not whole and valid {name}"));
    // zstd keeps a window beside what it has written, never longer than that.
    let window_max = if compression == Compression::Zstd { 1 << ZSTD_WINDOW_LOG_MAX } else { 0 };
    let mut reader: Box<dyn Read + '_> = match compression {
        Compression::Gzip => Box::new(MultiGzDecoder::new(compressed)),
        Compression::Deflate => Box::new(ZlibDecoder::new(compressed)),
        Compression::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::with_buffer(compressed).map_err(bad)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(bad)?;
            Box::new(decoder)
        }
    };
    let mut gathered = Gathered { bytes: Vec::new(), declared: None, bytes_max, beside: compressed.len(), permit };
    loop {
        let filled = gathered.bytes.len();
        if filled == gathered.bytes.capacity() {
            // One byte beyond the limit tells a message that ends there from one that goes on.
            if filled == bytes_max {
                return match reader.read(&mut [0]).map_err(bad)? {
                    0 => Ok(gathered.bytes),
                    _ => Err(Fault::too_large(bytes_max as u64)),
                };
            }
            gathered.beside = compressed.len() + window_max.min(filled.saturating_mul(2).max(BUFFER_LEAST_BYTES));
            gathered.make_room(filled + 1)?;
        }
        let capacity = gathered.bytes.capacity();
        gathered.bytes.resize(capacity, 0);
        let read = gathered.bytes.get_mut(filled..).map_or(Ok(0), |room| reader.read(room)).map_err(bad);
        gathered.bytes.truncate(filled + *read.as_ref().unwrap_or(&0));
        if read? == 0 {
            return Ok(gathered.bytes);
        }
    }
}

#[cfg(test)]
#[path = "tests/intake.rs"]
mod tests;
