//! What the store went through since the process began, and how often its file may be looked over.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::store::Damage;

/// Looks at a whole file that may begin within [`LOOKS_WITHIN`]: a disk that goes on damaging it must not keep the store
/// away for ever.
const LOOKS_MAX: usize = 3;
const LOOKS_WITHIN: Duration = Duration::from_secs(60 * 60);

/// Damages that are told.
const DAMAGES_MAX: usize = 16;

/// The store's life in this process.
#[derive(Debug, Default)]
pub(super) struct Life {
    restarts: AtomicU64,
    looks: AtomicU64,
    is_looked_over: AtomicBool,
    damage: Mutex<VecDeque<Damage>>,
}

impl Life {
    /// How often the store could not go on and was opened as at a start.
    pub fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Relaxed)
    }

    /// How often something met damage in the file and all of it was looked over.
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Whether the file is being looked over, or what can be read of it put in a new one.
    pub fn is_looked_over(&self) -> bool {
        self.is_looked_over.load(Ordering::Relaxed)
    }

    /// What could not be read, and what came of it, oldest first.
    pub fn damage(&self) -> Vec<Damage> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The store ended; with damage the file is looked over now.
    pub fn ended(&self, is_damaged: bool) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
        if is_damaged {
            self.looks.fetch_add(1, Ordering::Relaxed);
            self.is_looked_over.store(true, Ordering::Relaxed);
        }
    }

    /// It is open again, and this was found on the way.
    pub fn opened(&self, found: Vec<Damage>) {
        self.is_looked_over.store(false, Ordering::Relaxed);
        let mut damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        damage.extend(found);
        let beyond = damage.len().saturating_sub(DAMAGES_MAX);
        damage.drain(..beyond);
    }
}

/// When the newest looks began.
#[derive(Debug, Default)]
pub(super) struct Looks(VecDeque<Instant>);

impl Looks {
    /// When the next may begin; a time that has passed: now.
    pub fn next(&self, now: Instant) -> Instant {
        match self.0.front() {
            Some(oldest) if self.0.len() >= LOOKS_MAX => *oldest + LOOKS_WITHIN,
            _ => now,
        }
    }

    /// One begins.
    pub fn begin(&mut self, now: Instant) {
        self.0.push_back(now);
        if self.0.len() > LOOKS_MAX {
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scenario: damage is met again as soon as the store is open again, for ever.
    /// Guarantees: three looks begin at once; each further one waits until an hour after the third before it.
    #[test]
    fn looks_are_three_an_hour() {
        let (mut looks, begun) = (Looks::default(), Instant::now());
        let mut now = begun;
        let mut began = Vec::new();
        for _ in 0..7 {
            now = now.max(looks.next(now)) + Duration::from_secs(60);
            looks.begin(now);
            began.push((now - begun).as_secs() / 60);
        }
        assert_eq!(began, [1, 2, 3, 62, 63, 64, 123]);
    }

    /// Scenario: damage is found again and again.
    /// Guarantees: the newest are told, and how often it was looked for; what is told is bounded.
    #[test]
    fn what_is_told_of_damage_is_bounded() {
        let life = Life::default();
        for second in 0..40 {
            life.ended(true);
            assert!(life.is_looked_over());
            let found_at = iris_core::model::Timestamp::from_unix_nanos(second * 1_000_000_000);
            life.opened(vec![Damage { part: crate::store::DamagedPart::Main, found_at, salvaged: None }]);
            assert!(!life.is_looked_over());
        }
        let told = life.damage();
        assert_eq!((told.len(), life.looks(), life.restarts()), (DAMAGES_MAX, 40, 40));
        assert_eq!(told.last().map(|damage| damage.found_at.as_unix_nanos()), Some(39_000_000_000));
    }
}
