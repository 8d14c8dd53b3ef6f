//! A body as it comes in: decoded bytes are counted and cut off, and of a long one only the beginning is kept.

use std::io::{self, Write};

use flate2::write::MultiGzDecoder;
use reqwest::header::HeaderValue;

/// Bytes that are kept: enough for the words that a judge reads to stand among markup.
const KEPT_BYTES_MAX: usize = 512 * 1024;

/// How a body is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coding {
    /// As it is.
    Plain,
    /// One layer of gzip.
    Gzip,
}

impl Coding {
    /// What the headers say; none for a coding, or a stack of them, that is not read.
    pub fn of<'a>(values: impl Iterator<Item = &'a HeaderValue>) -> Option<Self> {
        let mut coding = Self::Plain;
        for value in values {
            for one in value.to_str().ok()?.split(',').map(str::trim).filter(|one| !one.is_empty()) {
                match (coding, one.to_ascii_lowercase().as_str()) {
                    (_, "identity") => {}
                    (Self::Plain, "gzip" | "x-gzip") => coding = Self::Gzip,
                    _ => return None,
                }
            }
        }
        Some(coding)
    }
}

/// What was taken of a body.
pub(super) struct Taken {
    pub bytes: u64,
    pub is_cut: bool,
    pub text: String,
}

/// A body on its way in.
pub(super) enum Intake {
    Plain(Sink),
    Gzip(Box<MultiGzDecoder<Sink>>),
}

impl Intake {
    pub fn new(coding: Coding, bytes_max: u64) -> Self {
        let sink = Sink { kept: Vec::new(), bytes: 0, bytes_max, is_full: false };
        match coding {
            Coding::Plain => Self::Plain(sink),
            Coding::Gzip => Self::Gzip(Box::new(MultiGzDecoder::new(sink))),
        }
    }

    /// Takes some of it. False once there is more than may be read.
    ///
    /// # Errors
    /// When it cannot be decoded.
    pub fn push(&mut self, chunk: &[u8]) -> io::Result<bool> {
        let written = match self {
            Self::Plain(sink) => sink.write_all(chunk),
            Self::Gzip(decoder) => decoder.write_all(chunk),
        };
        match written {
            _ if self.sink().is_full => Ok(false),
            written => written.map(|()| true),
        }
    }

    fn sink(&self) -> &Sink {
        match self {
            Self::Plain(sink) => sink,
            Self::Gzip(decoder) => decoder.get_ref(),
        }
    }

    /// What was taken.
    ///
    /// # Errors
    /// When its end is missing.
    pub fn finish(self) -> io::Result<Taken> {
        let sink = match self {
            Self::Plain(sink) => sink,
            Self::Gzip(decoder) if decoder.get_ref().is_full => {
                let full = decoder.get_ref();
                return Ok(full.taken());
            }
            Self::Gzip(decoder) => decoder.finish()?,
        };
        Ok(sink.taken())
    }
}

/// Counts all bytes, keeps the first ones, and refuses more than the limit.
pub(super) struct Sink {
    kept: Vec<u8>,
    bytes: u64,
    bytes_max: u64,
    is_full: bool,
}

impl Sink {
    fn taken(&self) -> Taken {
        Taken { bytes: self.bytes, is_cut: self.is_full, text: String::from_utf8_lossy(&self.kept).into_owned() }
    }
}

impl Write for Sink {
    fn write(&mut self, chunk: &[u8]) -> io::Result<usize> {
        let room = usize::try_from(self.bytes_max - self.bytes).unwrap_or(usize::MAX);
        let taken = chunk.len().min(room);
        self.is_full |= taken < chunk.len();
        let kept = taken.min(KEPT_BYTES_MAX - self.kept.len());
        self.kept.extend_from_slice(&chunk[..kept]);
        self.bytes += u64::try_from(taken).unwrap_or(u64::MAX);
        if self.is_full { Err(io::Error::other("more than may be read")) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
