//! For fuzzers: the bytes of a segment file, as they are and with the checksums of their headers put right, so that what
//! the headers say is met too.

use std::io::{self, IoSlice};
use std::sync::Arc;

use iris_core::model::Lane;

use super::disk::DiskFile;
use super::frame::{self, Key};
use super::scan::{Bodies, Scanner, Step};

struct Bytes(Vec<u8>);

impl DiskFile for Bytes {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        let count = buffer.len().min(self.0.len() - start);
        buffer[..count].copy_from_slice(&self.0[start..start + count]);
        Ok(count)
    }

    fn write_at(&self, _: u64, _: &mut [IoSlice<'_>]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn truncate(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A walk ends, moves on at every step, stays within the file, and finds the same whether bodies are read or checked.
pub(crate) fn segment(data: &[u8]) {
    walk(data.to_vec());
    walk(with_right_checksums(data.to_vec()));
}

fn walk(data: Vec<u8>) {
    let end = data.len() as u64;
    let (file, key): (Arc<dyn DiskFile>, _) = (Arc::new(Bytes(data)), Arc::new(Key([7; Key::BYTES])));
    let mut found: Option<Vec<(u64, u64)>> = None;
    for bodies in [Bodies::Read, Bodies::Check] {
        let mut scanner = Scanner::new(Arc::clone(&file), Lane::Traces, Arc::clone(&key), 0);
        let mut records = Vec::new();
        loop {
            let from = scanner.at();
            match scanner.step(end, bodies) {
                Step::End => break,
                Step::Damaged { at, bytes, .. } => assert!(at == from && bytes > 0 && at + bytes <= end),
                Step::Record { seq, body, meta } => {
                    assert!(bodies == Bodies::Check || crc32fast::hash(&body) == meta.checksum);
                    records.push((from, seq));
                }
                Step::Opening { .. } | Step::Unknown { .. } => {}
            }
            assert!(scanner.at() > from, "a step moves on");
        }
        assert_eq!(found.get_or_insert_with(|| records.clone()), &records);
    }
}

fn with_right_checksums(mut data: Vec<u8>) -> Vec<u8> {
    let mut at = 0;
    while at < data.len() {
        let header = frame::header_bytes(&data[at..]).and_then(|length| data.get_mut(at..at + length));
        if let Some((covered, checksum)) = header.and_then(|header| header.split_last_chunk_mut::<4>()) {
            *checksum = crc32fast::hash(covered).to_le_bytes();
        }
        at += frame::ALIGN as usize;
    }
    data
}
