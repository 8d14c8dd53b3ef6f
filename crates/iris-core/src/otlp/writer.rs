//! Protobuf written front to back, though a message's length stands before it and is known only after it.
//!
//! The length of a small message is put in when it ends, which moves the few bytes it has. That of a large one
//! is kept until all is written, so that a large value inside many messages is not moved once for each.

use super::wire::{put_varint, varint_len};

/// From here on a message is large. A message may lie in a hundred others, so this bounds what moves.
const LARGE_BYTES: usize = 16 << 10;

/// What has been written.
#[derive(Default)]
pub(super) struct Writer {
    bytes: Vec<u8>,
    /// Lengths still to be put in: where, and how long the message is.
    late: Vec<(usize, usize)>,
    /// How many bytes they will take.
    late_bytes: usize,
}

/// A message that was begun.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    start: usize,
    late_bytes: usize,
}

impl Writer {
    pub(super) fn varint(&mut self, value: u64) {
        put_varint(&mut self.bytes, value);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Begins a message.
    pub(super) fn begin(&self) -> Begun {
        Begun { start: self.bytes.len(), late_bytes: self.late_bytes }
    }

    /// Puts the length in front of what was written since.
    pub(super) fn finish(&mut self, begun: Begun) {
        let written = self.bytes.len() - begun.start;
        let length = written + (self.late_bytes - begun.late_bytes);
        if written >= LARGE_BYTES {
            self.late.push((begun.start, length));
            self.late_bytes += varint_len(length as u64);
            return;
        }
        // Nothing inside is late: it would be larger than this.
        let mut bytes = Vec::with_capacity(varint_len(length as u64));
        put_varint(&mut bytes, length as u64);
        self.bytes.splice(begun.start..begun.start, bytes);
    }

    /// All of it.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        if self.late.is_empty() {
            return self.bytes;
        }
        self.late.sort_unstable();
        let mut out = Vec::with_capacity(self.bytes.len() + self.late_bytes);
        let mut at = 0;
        for (start, length) in self.late {
            out.extend_from_slice(self.bytes.get(at..start).unwrap_or_default());
            put_varint(&mut out, length as u64);
            at = start;
        }
        out.extend_from_slice(self.bytes.get(at..).unwrap_or_default());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_messages_carry_their_lengths() {
        for size in [0, 1, 127, 128, LARGE_BYTES - 4, LARGE_BYTES - 3, LARGE_BYTES, 3 * LARGE_BYTES] {
            let mut writer = Writer::default();
            let mut expected = vec![7; size];
            let begun: Vec<Begun> = (0..5)
                .map(|level| {
                    writer.varint(level);
                    writer.begin()
                })
                .collect();
            writer.bytes(&expected);
            for (level, begun) in begun.into_iter().enumerate().rev() {
                writer.finish(begun);
                writer.varint(9);
                let mut outer = vec![level as u8];
                put_varint(&mut outer, expected.len() as u64);
                outer.extend(expected);
                outer.push(9);
                expected = outer;
            }
            assert_eq!(writer.into_bytes(), expected, "{size}");
        }
    }
}
