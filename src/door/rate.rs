//! How often callers may knock: a bucket of permits for each of them, filled again at an even pace.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A bucket holds what comes in within this time: so much may come at once.
const BURST: Duration = Duration::from_secs(10);

/// Limits the requests of each caller.
#[derive(Debug)]
pub struct Rate {
    per_second: f64,
    burst: f64,
    /// Callers are the keys of the configuration and those without one: there are never more.
    buckets: Mutex<HashMap<String, Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    permits: f64,
    filled: Instant,
}

impl Rate {
    /// So many requests a minute for each caller; 0: no limit.
    pub fn per_minute(requests: u32) -> Self {
        let per_second = f64::from(requests) / 60.0;
        Self { per_second, burst: (per_second * BURST.as_secs_f64()).max(1.0), buckets: Mutex::default() }
    }

    /// Takes a permit of `caller`.
    ///
    /// # Errors
    /// How long to wait for the next one.
    pub fn take(&self, caller: &str) -> Result<(), Duration> {
        self.take_at(caller, Instant::now())
    }

    fn take_at(&self, caller: &str, now: Instant) -> Result<(), Duration> {
        if self.per_second <= 0.0 {
            return Ok(());
        }
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if !buckets.contains_key(caller) {
            buckets.insert(caller.to_owned(), Bucket { permits: self.burst, filled: now });
        }
        let Some(bucket) = buckets.get_mut(caller) else { return Ok(()) };
        let since = now.saturating_duration_since(bucket.filled).as_secs_f64();
        bucket.permits = (bucket.permits + since * self.per_second).min(self.burst);
        bucket.filled = now;
        if bucket.permits >= 1.0 {
            bucket.permits -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - bucket.permits) / self.per_second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_knocks_too_often_is_told_when_to_come_back() {
        let (rate, begun) = (Rate::per_minute(60), Instant::now());
        let taken = (0..100).take_while(|_| rate.take_at("a", begun).is_ok()).count();
        assert_eq!(taken, 10, "what comes within ten seconds may come at once");
        let wait = rate.take_at("a", begun).unwrap_err();
        assert!(wait > Duration::from_millis(900) && wait <= Duration::from_secs(1), "{wait:?}");
        assert!(rate.take_at("b", begun).is_ok(), "another caller has a bucket of its own");
        assert!(rate.take_at("a", begun + Duration::from_secs(1)).is_ok());
        assert!(rate.take_at("a", begun + Duration::from_secs(1)).is_err());
    }

    #[test]
    fn without_a_limit_everybody_comes_in() {
        let (rate, begun) = (Rate::per_minute(0), Instant::now());
        assert!((0..100_000).all(|_| rate.take_at("a", begun).is_ok()));
    }
}
