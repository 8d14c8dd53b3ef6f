//! Who may bring bytes in: permits that are tried, never waited for, and given back when the answer has left.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::memory::Guard;

/// One semaphore permit stands for this many bytes.
const UNIT_BYTES: u64 = 1024;

/// The part of the memory limit that requests on their way in may hold: 32 MiB of 256 MiB.
const SHARE: u64 = 8;

/// Why bytes may not come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// Other requests hold what is left, or the process is near its memory limit: worth another try.
    #[error("too many bytes are being received")]
    Busy,
    /// This request alone needs more than there ever is.
    #[error("needs more than {bytes_max} bytes of memory")]
    TooLarge {
        /// All bytes that requests together may hold.
        bytes_max: u64,
    },
}

/// The bytes that requests on their way in may hold together. Clones share them.
#[derive(Debug, Clone)]
pub struct Admission(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    units: Arc<Semaphore>,
    units_max: u32,
    guard: Guard,
}

impl Admission {
    /// An eighth of the memory limit for bytes on their way in; refuses at 85 % of it by resident size.
    pub fn new(memory_limit_bytes: u64) -> Self {
        Self::with_bytes(memory_limit_bytes / SHARE, memory_limit_bytes)
    }

    /// The same with the bytes said outright.
    pub fn with_bytes(bytes_max: u64, memory_limit_bytes: u64) -> Self {
        // A u32 of KiB is 4 TiB, and far below what a semaphore can hold.
        let units_max = u32::try_from(bytes_max / UNIT_BYTES).unwrap_or(u32::MAX).max(1);
        let units = Arc::new(Semaphore::new(units_max as usize));
        Self(Arc::new(Shared { units, units_max, guard: Guard::new(memory_limit_bytes) }))
    }

    /// Lets a request in that holds nothing yet. Near the memory limit requests come in one after the other: an
    /// allocator may keep what was freed, and a door that waits for it to shrink could stay shut for ever.
    ///
    /// # Errors
    /// [`Denied::Busy`] when the process is near its memory limit and another request is under way.
    pub fn enter(&self) -> Result<Permit, Denied> {
        let alone = self.0.units.available_permits() == self.0.units_max as usize;
        if !alone && self.0.guard.is_over() {
            Err(Denied::Busy)
        } else {
            Ok(Permit { admission: self.clone(), held: None })
        }
    }

    /// All bytes that requests together may hold.
    pub fn bytes_max(&self) -> u64 {
        u64::from(self.0.units_max) * UNIT_BYTES
    }

    /// The bytes that are free.
    pub fn bytes_free(&self) -> u64 {
        self.0.units.available_permits() as u64 * UNIT_BYTES
    }
}

/// The bytes one request may hold, given back when dropped.
#[derive(Debug)]
pub struct Permit {
    admission: Admission,
    held: Option<OwnedSemaphorePermit>,
}

impl Permit {
    /// Makes sure that at least `bytes` are held, never waiting. On an error nothing has changed.
    ///
    /// # Errors
    /// [`Denied::Busy`] when others hold what is missing, [`Denied::TooLarge`] when there is never that much.
    pub fn hold(&mut self, bytes: usize) -> Result<(), Denied> {
        let shared = &self.admission.0;
        let too_large = Denied::TooLarge { bytes_max: self.admission.bytes_max() };
        let wanted = u32::try_from((bytes as u64).div_ceil(UNIT_BYTES)).map_err(|_| too_large)?;
        if wanted > shared.units_max {
            return Err(too_large);
        }
        let missing = wanted.saturating_sub(self.units());
        if missing == 0 {
            return Ok(());
        }
        let more = Arc::clone(&shared.units).try_acquire_many_owned(missing).map_err(|_| Denied::Busy)?;
        match &mut self.held {
            Some(held) => held.merge(more),
            none => *none = Some(more),
        }
        Ok(())
    }

    /// Gives back what is held beyond `bytes`.
    pub fn keep(&mut self, bytes: usize) {
        let wanted = u32::try_from((bytes as u64).div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        let surplus = self.units().saturating_sub(wanted);
        if let Some(held) = &mut self.held {
            drop(held.split(surplus as usize));
        }
    }

    fn units(&self) -> u32 {
        self.held.as_ref().map_or(0, |held| u32::try_from(held.num_permits()).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOMY: u64 = 1 << 50;

    #[test]
    fn gives_back_what_it_took() {
        let admission = Admission::with_bytes(10 * 1024, ROOMY);
        let mut first = admission.enter().unwrap();
        first.hold(4097).unwrap();
        assert_eq!(admission.bytes_free(), 5 * 1024, "rounded up to whole KiB");
        let mut second = admission.enter().unwrap();
        assert_eq!(second.hold(6 * 1024), Err(Denied::Busy));
        assert_eq!(admission.bytes_free(), 5 * 1024, "a refusal takes nothing");
        first.keep(1024);
        second.hold(6 * 1024).unwrap();
        second.hold(1).unwrap();
        assert_eq!(admission.bytes_free(), 3 * 1024, "holding less than held changes nothing");
        drop((first, second));
        assert_eq!(admission.bytes_free(), admission.bytes_max());
    }

    #[test]
    fn says_when_waiting_would_not_help() {
        let admission = Admission::with_bytes(10 * 1024, ROOMY);
        let mut permit = admission.enter().unwrap();
        assert_eq!(permit.hold(10 * 1024 + 1), Err(Denied::TooLarge { bytes_max: 10 * 1024 }));
        assert_eq!(permit.hold(usize::MAX), Err(Denied::TooLarge { bytes_max: 10 * 1024 }));
    }

    #[test]
    fn near_the_memory_limit_requests_come_in_one_after_the_other() {
        let admission = Admission::with_bytes(1024 * 1024, 1024);
        let mut first = admission.enter().unwrap();
        first.hold(1).unwrap();
        assert!(matches!(admission.enter(), Err(Denied::Busy)));
        drop(first);
        admission.enter().unwrap();
    }
}
