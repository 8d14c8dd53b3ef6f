//! One record on disk. Little endian, starting at a multiple of eight bytes:
//!
//! | at | bytes | what |
//! |--|--|--|
//! | 0 | 4 | magic |
//! | 4 | 1 | version |
//! | 5 | 3 | kind, door, encoding |
//! | 8 | 8 | seq |
//! | 16 | 2 | header length, checksum included |
//! | 18 | 2 | zero |
//! | 20 | 4 | body length |
//! | 24 | 8 | arrival, nanoseconds since the Unix epoch |
//! | 32 | 16 | keyed body hash |
//! | 48 | 4 | body checksum (CRC-32) |
//! | 52 | n | tenant |
//! | 52+n | 4 | header checksum (CRC-32 of all before it) |
//!
//! then the body, then zeros up to the next multiple of eight.
//! In every later version too the magic, version, seq and both lengths stay where they are and the header ends
//! with its checksum, so that an older program can step over a frame it cannot read.

use bytes::Bytes;
use iris_core::model::{Lane, Tenant, Timestamp};
use xxhash_rust::xxh3::Xxh3;

use super::{Door, Encoding, Kind, Record};

/// Frames start at multiples of this many bytes.
pub(super) const ALIGN: u64 = 8;
/// First bytes of every frame; not UTF-8, so rare in text bodies.
pub(super) const MAGIC: [u8; 4] = [0x9e, b'I', b'R', b'J'];
/// The version this program writes, and the newest it reads.
pub(super) const VERSION: u8 = 1;
/// The header without tenant and checksum.
const FIXED: usize = 52;
const CHECKSUM: usize = 4;
/// The shortest header, which every frame has.
pub(super) const HEADER_MIN: usize = FIXED + CHECKSUM;
/// The longest tenant name in bytes.
pub(super) const TENANT_BYTES_MAX: usize = 1024;
/// A newer version's header may be longer than ours, but not without end.
pub(super) const HEADER_MAX: usize = 8 * 1024;
/// The kind of a segment's first frame: its body is the highest seq acknowledged in the lane before it.
const OPENING: u8 = 0;

/// The secret that keys body hashes, so that nobody outside can make two messages that count as one.
#[derive(Clone)]
pub(super) struct Key(pub(super) [u8; Self::BYTES]);

impl Key {
    /// The length xxh3 wants for a secret.
    pub(super) const BYTES: usize = 192;

    /// Over tenant, signal and message.
    pub(super) fn hash(&self, tenant: &str, lane: Lane, body: &[u8]) -> u128 {
        let mut hasher = Xxh3::with_secret(self.0);
        hasher.update(&(tenant.len() as u64).to_le_bytes());
        hasher.update(tenant.as_bytes());
        hasher.update(&[lane as u8]);
        hasher.update(body);
        hasher.digest128()
    }
}

/// What a frame's header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) seq: u64,
    /// Header length in bytes.
    pub(super) header: u64,
    /// Body length in bytes.
    pub(super) body: u64,
    pub(super) content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    Record(Meta),
    /// The first frame of a segment.
    Opening(Meta),
    /// Whole, but of a newer version or with a kind, door or encoding this program does not know.
    Unknown,
}

/// A record without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Meta {
    kind: Option<Kind>,
    tenant: Tenant,
    door: Door,
    encoding: Encoding,
    arrived: Timestamp,
    pub(super) hash: u128,
    pub(super) checksum: u32,
}

impl Meta {
    pub(super) fn tenant(&self) -> &str {
        self.tenant.as_str()
    }

    /// Whether it may come again and must then be known by its hash: a message, or a verdict.
    pub(super) fn may_come_again(&self) -> bool {
        matches!(self.kind, Some(Kind::Otlp | Kind::Verdict))
    }

    /// The record; `None` for an opening.
    pub(super) fn record(self, body: Bytes) -> Option<Record> {
        let Self { kind, tenant, door, encoding, arrived, .. } = self;
        Some(Record { kind: kind?, tenant, door, encoding, arrived, body })
    }
}

impl Header {
    /// Bytes from the start of this frame to the start of the next.
    pub(super) fn stride(&self) -> u64 {
        (self.header + self.body).next_multiple_of(ALIGN)
    }
}

/// Bytes a record takes on disk.
pub(super) fn stride(tenant: &str, body: usize) -> u64 {
    ((HEADER_MIN + tenant.len() + body) as u64).next_multiple_of(ALIGN)
}

/// Bytes of a segment's first frame.
pub(super) const OPENING_BYTES: u64 = (HEADER_MIN as u64 + 8).next_multiple_of(ALIGN);

/// Appends a record's header.
pub(super) fn push_header(out: &mut Vec<u8>, seq: u64, record: &Record, hash: u128, checksum: u32) {
    let labels = [record.kind as u8, record.door as u8, record.encoding as u8];
    push(out, labels, seq, record.body.len(), record.arrived, hash, checksum, record.tenant.as_str());
}

/// Appends a whole opening frame. `previous` is the highest seq acknowledged in the lane so far.
pub(super) fn push_opening(out: &mut Vec<u8>, seq: u64, previous: u64, lane: Lane, key: &Key) {
    let body = previous.to_le_bytes();
    let labels = [OPENING, Door::Sidecar as u8, Encoding::Protobuf as u8];
    let hash = key.hash("", lane, &body);
    push(out, labels, seq, body.len(), Timestamp::default(), hash, crc32fast::hash(&body), "");
    out.extend_from_slice(&body);
    pad(out);
}

/// Appends zeros up to the next frame's start; `out` must have begun at one.
pub(super) fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(ALIGN as usize), 0);
}

/// The zeros after a frame of this many bytes.
pub(super) fn padding(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGN as usize) - bytes
}

#[allow(clippy::too_many_arguments)] // the fields of the header, in their order
fn push(out: &mut Vec<u8>, labels: [u8; 3], seq: u64, body: usize, at: Timestamp, hash: u128, sum: u32, tenant: &str) {
    let start = out.len();
    // Lengths were checked on entry: bodies against the lane, tenants against TENANT_BYTES_MAX.
    let header = u16::try_from(HEADER_MIN + tenant.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&MAGIC);
    out.push(VERSION);
    out.extend_from_slice(&labels);
    out.extend_from_slice(&seq.to_le_bytes());
    out.extend_from_slice(&header.to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out.extend_from_slice(&u32::try_from(body).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(&at.as_unix_nanos().to_le_bytes());
    out.extend_from_slice(&hash.to_le_bytes());
    out.extend_from_slice(&sum.to_le_bytes());
    out.extend_from_slice(tenant.as_bytes());
    let checksum = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// How long the header starting here claims to be; `None` when this is no frame at all.
pub(super) fn header_bytes(start: &[u8]) -> Option<usize> {
    let fixed: &[u8; FIXED] = start.first_chunk()?;
    let length = usize::from(u16::from_le_bytes([fixed[16], fixed[17]]));
    (fixed.starts_with(&MAGIC) && fixed[4] >= VERSION && (HEADER_MIN..=HEADER_MAX).contains(&length)).then_some(length)
}

/// Reads a header of exactly the length that [`header_bytes`] gave; `None` when it is damaged.
pub(super) fn parse(header: &[u8]) -> Option<Header> {
    let (covered, checksum) = header.split_last_chunk::<CHECKSUM>()?;
    if crc32fast::hash(covered) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let (fixed, tenant) = covered.split_first_chunk::<FIXED>()?;
    let content = if fixed[4] == VERSION { meta(fixed, tenant) } else { None };
    Some(Header {
        seq: u64_at(fixed, 8),
        header: header.len() as u64,
        body: u64::from(u32_at(fixed, 20)),
        content: match content {
            Some(meta) if meta.kind.is_some() => Content::Record(meta),
            Some(meta) => Content::Opening(meta),
            None => Content::Unknown,
        },
    })
}

fn meta(fixed: &[u8; FIXED], tenant: &[u8]) -> Option<Meta> {
    let mut hash = [0; 16];
    hash.copy_from_slice(&fixed[32..48]);
    Some(Meta {
        kind: if fixed[5] == OPENING { None } else { Some(Kind::from_byte(fixed[5])?) },
        tenant: Tenant::new(std::str::from_utf8(tenant).ok()?),
        door: Door::from_byte(fixed[6])?,
        encoding: Encoding::from_byte(fixed[7])?,
        arrived: Timestamp::from_unix_nanos(u64_at(fixed, 24)),
        hash: u128::from_le_bytes(hash),
        checksum: u32_at(fixed, 48),
    })
}

fn u64_at(fixed: &[u8; FIXED], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&fixed[at..at + 8]);
    u64::from_le_bytes(bytes)
}

fn u32_at(fixed: &[u8; FIXED], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&fixed[at..at + 4]);
    u32::from_le_bytes(bytes)
}
