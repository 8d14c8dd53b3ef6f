//! What anybody outside can make happen is logged seldom: once a minute of each kind, with how often it was.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The least time between two lines of one kind.
const PAUSE: Duration = Duration::from_secs(60);
/// Kinds that are told apart; others are not told.
const KINDS_MAX: usize = 32;

/// Which kinds were told when. Kinds are the program's own, never what somebody sent.
#[derive(Debug)]
pub struct Seldom<K>(Mutex<BTreeMap<K, (Instant, u64)>>);

impl<K: Ord> Seldom<K> {
    /// Nothing was told yet.
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// It happened. `Some` when it is to be told now: how often it was since it was told last, this time included.
    pub fn happened(&self, kind: K) -> Option<u64> {
        self.at(kind, Instant::now())
    }

    fn at(&self, kind: K, now: Instant) -> Option<u64> {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((told, times)) = kinds.get_mut(&kind) {
            *times += 1;
            if now.saturating_duration_since(*told) < PAUSE {
                return None;
            }
            *told = now;
            return Some(std::mem::take(times));
        }
        if kinds.len() >= KINDS_MAX {
            return None;
        }
        kinds.insert(kind, (now, 0));
        Some(1)
    }
}

impl<K: Ord> Default for Seldom<K> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: two kinds happen again and again for three minutes, and very many others once.
    /// Guarantees: each of the two is told once a minute, with how often it was; nothing grows without a bound.
    #[test]
    fn each_kind_is_told_once_a_minute() {
        let (seldom, begun) = (Seldom::new(), Instant::now());
        let mut told = Vec::new();
        for second in 0..180 {
            for kind in [1, 2] {
                told.extend(seldom.at(kind, begun + Duration::from_secs(second)).map(|times| (kind, second, times)));
            }
        }
        assert_eq!(told, [(1, 0, 1), (2, 0, 1), (1, 60, 60), (2, 60, 60), (1, 120, 60), (2, 120, 60)]);
        let others = (100..1000).filter(|kind| seldom.at(*kind, begun).is_some()).count();
        assert_eq!(others, KINDS_MAX - 2);
    }
}
