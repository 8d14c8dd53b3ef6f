//! Walks the frames of one segment file, for recovery and for readers alike. Damage costs the frames it touches
//! and nothing else; memory is one chunk, plus the body that is handed out.

use std::sync::Arc;

use bytes::Bytes;
use iris_core::model::Lane;

use super::disk::DiskFile;
use super::frame::{self, Content, Header, Key, Meta};

/// Bytes read at once, and the most kept between two steps.
const CHUNK_BYTES: usize = 128 * 1024;
/// An unreadable chunk is read again in pieces of this size, so that a bad sector costs little.
const PIECE_BYTES: usize = 4096;
/// After damage every candidate frame is checked by its keyed hash; a crafted body could offer very many. Past
/// this many hashed bytes the rest of the segment counts as damaged.
const RESYNC_BYTES_MAX: u64 = 1 << 30;

/// What to do with the bodies on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bodies {
    /// Check and hand out.
    Read,
    /// Check.
    Check,
    /// Trust the header.
    Skip,
}

/// What stands at one place.
#[derive(Debug)]
pub(super) enum Step {
    Record {
        seq: u64,
        meta: Meta,
        /// Empty unless asked for.
        body: Bytes,
    },
    /// The segment's first frame: what was acknowledged in the lane before it.
    Opening { previous: u64 },
    /// A whole frame that this program cannot read.
    Unknown { seq: u64 },
    /// Bytes that are no whole frame, up to the next one or the end. The seq is known when only the body is bad.
    Damaged { at: u64, bytes: u64, seq: Option<u64> },
    /// Nothing but zeros follows.
    End,
}

pub(super) struct Scanner {
    file: Arc<dyn DiskFile>,
    lane: Lane,
    key: Arc<Key>,
    /// Where the next frame starts.
    at: u64,
    last_seq: u64,
    resync_bytes: u64,
    buffer: Vec<u8>,
    buffer_at: u64,
}

impl Scanner {
    pub(super) fn new(file: Arc<dyn DiskFile>, lane: Lane, key: Arc<Key>, at: u64) -> Self {
        Self { file, lane, key, at, last_seq: 0, resync_bytes: 0, buffer: Vec::new(), buffer_at: 0 }
    }

    /// Where the next step will look.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Whether the next step needs no disk.
    pub(super) fn is_buffered(&self, end: u64) -> bool {
        let Some(rest) = self.buffered(self.at) else { return self.at >= end };
        let Some(header) = frame::header_bytes(rest).and_then(|length| rest.get(..length)) else { return false };
        frame::parse(header).is_some_and(|header| header.header + header.body <= rest.len() as u64)
    }

    /// The next frame, looking at no byte at or after `end`.
    pub(super) fn step(&mut self, end: u64, bodies: Bodies) -> Step {
        let at = self.at;
        if at >= end {
            return Step::End;
        }
        let Some(header) = self.header(at, end) else { return self.resync(at, end) };
        let body_at = at + header.header;
        if body_at + header.body > end {
            self.at = end;
            return Step::Damaged { at, bytes: end - at, seq: Some(header.seq) };
        }
        self.at = at + header.stride();
        self.last_seq = header.seq;
        let damaged = Step::Damaged { at, bytes: self.at.min(end) - at, seq: Some(header.seq) };
        match header.content {
            Content::Unknown => Step::Unknown { seq: header.seq },
            Content::Opening(meta) => {
                let body = self.body(body_at, header.body, end);
                match <[u8; 8]>::try_from(body.as_slice()) {
                    Ok(previous) if crc32fast::hash(&body) == meta.checksum => {
                        Step::Opening { previous: u64::from_le_bytes(previous) }
                    }
                    _ => damaged,
                }
            }
            Content::Record(meta) => match bodies {
                Bodies::Skip => Step::Record { seq: header.seq, meta, body: Bytes::new() },
                Bodies::Check if self.checksum(body_at, header.body, end) == meta.checksum => {
                    Step::Record { seq: header.seq, meta, body: Bytes::new() }
                }
                Bodies::Check => damaged,
                Bodies::Read => {
                    let body = self.body(body_at, header.body, end);
                    if crc32fast::hash(&body) == meta.checksum {
                        Step::Record { seq: header.seq, meta, body: body.into() }
                    } else {
                        damaged
                    }
                }
            },
        }
    }

    /// From a place that holds no frame to the next that does.
    fn resync(&mut self, from: u64, end: u64) -> Step {
        let mut at = from;
        let mut dirty_to = from;
        while at < end {
            // Read anew, so that the window starts at a multiple of the alignment.
            self.fill(at, end);
            let length = self.buffer.len() as u64;
            let mut candidates = Vec::new();
            for (index, word) in self.buffer.chunks(frame::ALIGN as usize).enumerate() {
                if word.iter().any(|byte| *byte != 0) {
                    let word_at = at + index as u64 * frame::ALIGN;
                    dirty_to = (word_at + frame::ALIGN).min(end);
                    if word.starts_with(&frame::MAGIC) && word_at > from {
                        candidates.push(word_at);
                    }
                }
            }
            for candidate in candidates {
                if self.is_frame(candidate, end) {
                    self.at = candidate;
                    return Step::Damaged { at: from, bytes: candidate - from, seq: None };
                }
            }
            at += length;
        }
        self.at = end;
        if dirty_to == from { Step::End } else { Step::Damaged { at: from, bytes: dirty_to - from, seq: None } }
    }

    /// Whether a record of ours starts here. A sender may have put the likeness of a frame into a body, so the
    /// checksums are not enough: the hash is keyed with what no sender knows.
    fn is_frame(&mut self, at: u64, end: u64) -> bool {
        let Some(header) = self.header(at, end) else { return false };
        let Content::Record(meta) = &header.content else { return false };
        let body_at = at + header.header;
        if header.seq <= self.last_seq || body_at + header.body > end || self.resync_bytes > RESYNC_BYTES_MAX {
            return false;
        }
        self.resync_bytes += header.body;
        let body = self.body(body_at, header.body, end);
        self.key.hash(meta.tenant(), self.lane, &body) == meta.hash
    }

    fn header(&mut self, at: u64, end: u64) -> Option<Header> {
        let length = frame::header_bytes(self.peek(at, frame::HEADER_MIN, end)?)?;
        frame::parse(self.peek(at, length, end)?)
    }

    /// The CRC-32 of a part of the file.
    fn checksum(&mut self, mut at: u64, length: u64, end: u64) -> u32 {
        let stop = (at + length).min(end);
        let mut hasher = crc32fast::Hasher::new();
        while at < stop {
            let window = self.window(at, end);
            let take = window.len().min(usize::try_from(stop - at).unwrap_or(usize::MAX));
            if take == 0 {
                break;
            }
            hasher.update(&window[..take]);
            at += take as u64;
        }
        hasher.finalize()
    }

    /// A part of the file as its own buffer: what is in the chunk already is copied, the rest read in place.
    fn body(&mut self, at: u64, length: u64, end: u64) -> Vec<u8> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length <= CHUNK_BYTES / 2
            && let Some(bytes) = self.peek(at, length, end)
        {
            return bytes.to_vec();
        }
        let mut body = vec![0; length];
        let have = self.buffered(at).unwrap_or_default();
        let have = &have[..have.len().min(length)];
        let (ready, rest) = body.split_at_mut(have.len());
        ready.copy_from_slice(have);
        read_or_zero(&*self.file, at + ready.len() as u64, rest);
        body
    }

    /// At least one byte from `at` on, when it is before `end`.
    fn window(&mut self, at: u64, end: u64) -> &[u8] {
        if self.buffered(at).is_none() {
            self.fill(at, end);
        }
        self.buffered(at).unwrap_or_default()
    }

    fn peek(&mut self, at: u64, length: usize, end: u64) -> Option<&[u8]> {
        if at + length as u64 > end {
            return None;
        }
        if self.buffered(at).is_none_or(|bytes| bytes.len() < length) {
            self.fill(at, end);
        }
        self.buffered(at)?.get(..length)
    }

    fn buffered(&self, at: u64) -> Option<&[u8]> {
        let skip = usize::try_from(at.checked_sub(self.buffer_at)?).ok()?;
        self.buffer.get(skip..).filter(|rest| !rest.is_empty())
    }

    fn fill(&mut self, at: u64, end: u64) {
        let length = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX).min(CHUNK_BYTES);
        self.buffer.resize(length, 0);
        self.buffer_at = at;
        read_or_zero(&*self.file, at, &mut self.buffer);
    }
}

/// Reads, with zeros for what cannot be read: the checksums then say which record that cost.
fn read_or_zero(file: &dyn DiskFile, at: u64, buffer: &mut [u8]) {
    match file.read_at(at, buffer) {
        Ok(count) => buffer[count..].fill(0),
        Err(_) => {
            for (index, piece) in buffer.chunks_mut(PIECE_BYTES).enumerate() {
                let count = file.read_at(at + (index * PIECE_BYTES) as u64, piece).unwrap_or(0);
                piece[count..].fill(0);
            }
        }
    }
}
