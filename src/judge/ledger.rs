//! What judging has cost today, and what it still may.
//!
//! Before a call its worst case is set aside, all limits at once under one lock, so any number of calls at the same time
//! stay below them together; the lock is also one on the file, so that processes that share a home share its day.
//! Afterwards what it did cost takes its place. What nobody settles, because the call was given up or the process ended,
//! stays as set aside: the provider may have charged it.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use iris_core::model::Tenant;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

/// The file, in the home folder.
const FILE: &str = "spend.json";
/// What is locked while it is read and written anew: the file itself is replaced each time.
const LOCK: &str = "spend.lock";
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// Billionths of a US dollar: sums of whole numbers do not drift.
const NANOS: f64 = 1e9;
/// Tenants of which a sum is kept; a gateway may name any number of them.
const TENANTS_MAX: usize = 4096;

/// What one day may cost, in US dollars.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ceilings {
    /// All tenants together.
    pub day: Option<f64>,
    /// Each.
    pub day_tenant: Option<f64>,
}

/// A limit that a call would have broken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Over {
    /// What is left of it, in US dollars.
    pub left_usd: f64,
    /// The setting.
    pub setting: &'static str,
}

/// The sums of one day.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Day {
    /// Days since 1970.
    day: u64,
    nanos: u64,
    tenants: HashMap<String, u64>,
}

/// What is counted of this process.
#[derive(Debug, Default)]
struct Kept {
    day: Day,
    spent_nanos: u64,
    refused: u64,
    failures: u64,
}

/// What judging costs.
#[derive(Clone)]
pub struct Ledger {
    kept: Arc<Mutex<Kept>>,
    home: Option<PathBuf>,
    ceilings: Ceilings,
}

/// A worst case that was set aside.
pub struct Reserved {
    ledger: Ledger,
    tenant: String,
    day: u64,
    nanos: u64,
}

/// What the ledger tells.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Standing {
    /// Spent or set aside today, in billionths of a US dollar.
    pub today_nanos: u64,
    /// Spent since the process started, in billionths of a US dollar.
    pub spent_nanos: u64,
    /// Calls refused for a limit of the day.
    pub refused: u64,
    /// Times the file could not be read or written.
    pub failures: u64,
}

impl Ledger {
    /// Reads what this day has cost so far, from the home folder.
    ///
    /// # Errors
    /// When the file cannot be read: without it a limit of the day would begin anew.
    pub fn open(home: &Path, ceilings: Ceilings) -> io::Result<Self> {
        let day = read(home)?;
        let kept = Kept { day, ..Kept::default() };
        Ok(Self { kept: Arc::new(Mutex::new(kept)), home: Some(home.to_owned()), ceilings })
    }

    /// One that is kept in memory alone.
    pub fn forgetful(ceilings: Ceilings) -> Self {
        Self { kept: Arc::default(), home: None, ceilings }
    }

    /// The limits.
    pub const fn ceilings(&self) -> Ceilings {
        self.ceilings
    }

    /// Sets the worst case of a call aside.
    ///
    /// # Errors
    /// The limit it would break.
    pub fn reserve(&self, tenant: &Tenant, worst_usd: f64, now_ms: u64) -> Result<Reserved, Over> {
        let (nanos, today) = (nanos_of(worst_usd), now_ms / DAY_MS);
        let mut kept = self.lock();
        self.changing(&mut kept, |kept| {
            if kept.day.day != today {
                kept.day = Day { day: today, ..Day::default() };
            }
            let is_full = kept.day.tenants.len() >= TENANTS_MAX && !kept.day.tenants.contains_key(tenant.as_str());
            let of_tenant = kept.day.tenants.get(tenant.as_str()).copied().unwrap_or(0);
            for (ceiling, used, setting) in [
                (self.ceilings.day, kept.day.nanos, "judge.ceiling_usd_day"),
                (self.ceilings.day_tenant, of_tenant, "judge.ceiling_usd_day_tenant"),
            ] {
                let Some(ceiling) = ceiling.map(nanos_of) else { continue };
                let unknown = is_full && setting == "judge.ceiling_usd_day_tenant";
                if unknown || used.saturating_add(nanos) > ceiling {
                    kept.refused += 1;
                    let left = if unknown { 0 } else { ceiling.saturating_sub(used) };
                    return Err(Over { left_usd: usd_of(left), setting });
                }
            }
            kept.day.nanos = kept.day.nanos.saturating_add(nanos);
            if !is_full {
                kept.day.tenants.insert(tenant.as_str().to_owned(), of_tenant.saturating_add(nanos));
            }
            Ok(Reserved { ledger: self.clone(), tenant: tenant.as_str().to_owned(), day: today, nanos })
        })
    }

    /// What is told of it. `now_ms` says which day it is.
    pub fn standing(&self, now_ms: u64) -> Standing {
        let kept = self.lock();
        Standing {
            today_nanos: if kept.day.day == now_ms / DAY_MS { kept.day.nanos } else { 0 },
            spent_nanos: kept.spent_nanos,
            refused: kept.refused,
            failures: kept.failures,
        }
    }

    /// What a tenant has spent, or has set aside, today, in US dollars.
    pub fn today_usd(&self, tenant: &Tenant, now_ms: u64) -> f64 {
        let kept = self.lock();
        let is_today = kept.day.day == now_ms / DAY_MS;
        let nanos = kept.day.tenants.get(tenant.as_str()).copied().filter(|_| is_today);
        usd_of(nanos.unwrap_or(0))
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the day as the file has it, and writes it down, whole or not at all, while no other process does. A disk
    /// that takes nothing stops no call: the limits hold in memory.
    fn changing<T>(&self, kept: &mut Kept, change: impl FnOnce(&mut Kept) -> T) -> T {
        let Some(home) = &self.home else { return change(kept) };
        let begun = || -> io::Result<(File, Day)> {
            let lock = File::options().create(true).append(true).open(home.join(LOCK))?;
            flock(&lock, FlockOperation::LockExclusive)?;
            Ok((lock, read(home)?))
        };
        let (lock, failed) = match begun() {
            Ok((lock, day)) => {
                // After a write that failed, memory knows more than the file.
                if day.day > kept.day.day || day.day == kept.day.day && day.nanos > kept.day.nanos || kept.failures == 0
                {
                    kept.day = day;
                }
                (Some(lock), None)
            }
            Err(error) => (None, Some(error)),
        };
        let changed = change(kept);
        let failed = failed.or_else(|| write(home, &kept.day).err());
        if let Some(error) = failed {
            if kept.failures == 0 {
                tracing::warn!(%error, "what judging cost today could not be written down; after a restart its limit begins anew");
            }
            kept.failures += 1;
        }
        drop(lock);
        changed
    }
}

fn read(home: &Path) -> io::Result<Day> {
    match std::fs::read(home.join(FILE)) {
        Ok(text) => Ok(serde_json::from_slice(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Day::default()),
        Err(error) => Err(error),
    }
}

fn write(home: &Path, day: &Day) -> io::Result<()> {
    let mut temporary = tempfile::NamedTempFile::new_in(home)?;
    serde_json::to_writer(&mut temporary, day)?;
    temporary.persist(home.join(FILE)).map_err(|error| error.error)?;
    Ok(())
}

impl Reserved {
    /// Puts what the call did cost in place of what was set aside.
    pub fn settle(self, spent_usd: f64) {
        let spent = nanos_of(spent_usd);
        let mut kept = self.ledger.lock();
        kept.spent_nanos = kept.spent_nanos.saturating_add(spent);
        self.ledger.changing(&mut kept, |kept| {
            if kept.day.day != self.day {
                return;
            }
            let settled = |sum: u64| sum.saturating_sub(self.nanos).saturating_add(spent);
            kept.day.nanos = settled(kept.day.nanos);
            if let Some(sum) = kept.day.tenants.get_mut(&self.tenant) {
                *sum = settled(*sum);
            }
        });
    }
}

/// Rounded up: a limit must not be passed by a fraction.
fn nanos_of(usd: f64) -> u64 {
    (usd * NANOS - 1e-6).max(0.0).ceil() as u64
}

fn usd_of(nanos: u64) -> f64 {
    nanos as f64 / NANOS
}
