//! Traces that the store has and nobody here remembers, so that a span of one is not taken for the first of a new trace.

use std::hash::{BuildHasher, RandomState};

use crate::model::RowKey;

/// Size of the filter, bits: 4 MiB.
const BITS_LOG2: u32 = 25;
/// Bits set for a trace.
const BITS_PER_TRACE: u64 = 4;

/// Which traces were forgotten, as far as a fixed number of bytes can say: a Bloom filter. It never misses one. Of
/// traces that are new it takes one in five hundred for forgotten when it holds two million, one in seven when it holds
/// eight: each costs a load that finds nothing.
#[derive(Debug, Clone, Default)]
pub struct Forgotten {
    hasher: RandomState,
    /// Empty until the first is forgotten.
    bits: Vec<u64>,
}

impl Forgotten {
    /// Adds a trace.
    pub fn insert(&mut self, key: &RowKey) {
        self.insert_hash(self.hash(key));
    }

    /// Whether the trace may be one of them.
    pub fn may_contain(&self, key: &RowKey) -> bool {
        let is_set = |(word, bit): (usize, u64)| self.bits.get(word).is_some_and(|word| word & bit != 0);
        places(self.hash(key)).all(is_set)
    }

    pub(super) fn hash(&self, key: &RowKey) -> u64 {
        self.hasher.hash_one(key)
    }

    pub(super) fn insert_hash(&mut self, hash: u64) {
        if self.bits.is_empty() {
            self.bits.resize(1 << (BITS_LOG2 - u64::BITS.ilog2()), 0);
        }
        for (word, bit) in places(hash) {
            if let Some(word) = self.bits.get_mut(word) {
                *word |= bit;
            }
        }
    }
}

/// The word and the bit of each place: two halves of the hash stand for as many hashes as there are places.
fn places(hash: u64) -> impl Iterator<Item = (usize, u64)> {
    let step = hash.rotate_left(u64::BITS / 2) | 1;
    (0..BITS_PER_TRACE).map(move |index| {
        let place = hash.wrapping_add(step.wrapping_mul(index)) >> (u64::BITS - BITS_LOG2);
        (usize::try_from(place / u64::from(u64::BITS)).unwrap_or(usize::MAX), 1 << (place % u64::from(u64::BITS)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Tenant, TraceId};

    fn key(n: u64) -> RowKey {
        let mut bytes = [1; 16];
        bytes[..8].copy_from_slice(&n.to_be_bytes());
        RowKey { tenant: Tenant::local(), trace_id: TraceId::from_bytes(&bytes).unwrap() }
    }

    #[test]
    fn none_is_missed_and_few_are_taken_for_one() {
        let mut forgotten = Forgotten::default();
        assert!(!forgotten.may_contain(&key(1)), "nothing was forgotten");
        (0..500_000).for_each(|n| forgotten.insert(&key(n)));
        assert!((0..500_000).all(|n| forgotten.may_contain(&key(n))));
        // One in 100,000 is expected of half a million.
        let mistaken = (500_000..1_000_000).filter(|n| forgotten.may_contain(&key(*n))).count();
        assert!(mistaken < 100, "{mistaken} of 500,000");
    }
}
