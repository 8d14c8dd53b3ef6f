//! What is made of files and made anew when they change: keys and certificates that are rotated while this runs.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use sha2::{Digest, Sha256};

/// How often it is looked whether the files have changed, at most.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Makes the thing of what the files hold now.
type Make<T> = Box<dyn Fn() -> Result<T, String> + Send + Sync>;

/// Something of which the files may change. Reading costs nothing but, every two seconds at most, a look at a few small
/// files; what cannot be made of them leaves what was there in force and is logged.
pub struct Fresh<T> {
    made: ArcSwap<T>,
    make: Make<T>,
    files: Vec<PathBuf>,
    /// Of what the files held when they were looked at last.
    digest: Mutex<[u8; 32]>,
    born: Instant,
    looked_ms: AtomicU64,
}

impl<T> Fresh<T> {
    /// Makes it for the first time.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn new(
        files: Vec<PathBuf>,
        make: impl Fn() -> Result<T, String> + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let (digest, made) = (digest(&files), make()?);
        Ok(Self {
            made: ArcSwap::from_pointee(made),
            make: Box::new(make),
            files,
            digest: Mutex::new(digest),
            born: Instant::now(),
            looked_ms: AtomicU64::new(0),
        })
    }

    /// As the files say it now, or said it when they could be understood last.
    pub fn get(&self) -> Arc<T> {
        let now_ms = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        let looked_ms = self.looked_ms.load(Ordering::Relaxed);
        let every_ms = u64::try_from(LOOK_EVERY.as_millis()).unwrap_or(u64::MAX);
        let is_due = !self.files.is_empty() && now_ms.saturating_sub(looked_ms) >= every_ms;
        let is_mine =
            || self.looked_ms.compare_exchange(looked_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_due && is_mine() {
            self.look();
        }
        self.made.load_full()
    }

    fn look(&self) {
        let mut known = self.digest.lock().unwrap_or_else(PoisonError::into_inner);
        let found = digest(&self.files);
        if *known == found {
            return;
        }
        *known = found;
        let files: Vec<_> = self.files.iter().map(|file| file.display().to_string()).collect();
        match (self.make)() {
            Ok(made) => {
                self.made.store(Arc::new(made));
                tracing::info!(?files, "read again, because they changed");
            }
            Err(error) => {
                tracing::error!(error, "the files changed and cannot be used; what was read before stays in force");
            }
        }
    }
}

/// One digest over all files, each by its length, an absent one like none.
fn digest(files: &[impl AsRef<Path>]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for file in files {
        match std::fs::read(file) {
            Ok(bytes) => {
                hash.update((bytes.len() as u64).to_le_bytes());
                hash.update(bytes);
            }
            Err(_) => hash.update(u64::MAX.to_le_bytes()),
        }
    }
    hash.finalize().into()
}
