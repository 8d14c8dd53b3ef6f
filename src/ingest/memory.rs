//! How much memory this process may use, and how much it uses.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The budget when no cgroup sets one, bytes.
pub const DEFAULT_LIMIT_BYTES: u64 = 256 * 1024 * 1024;

/// A cgroup v1 limit at or above this means "none": the kernel writes the largest page-aligned number.
const V1_NONE_BYTES: u64 = 1 << 60;

/// Admission refuses from this share of the limit on, percent.
const REFUSE_AT_PERCENT: u64 = 85;

/// How long one look at the resident size serves.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The memory limit of the cgroup this process is in, or [`DEFAULT_LIMIT_BYTES`].
pub fn limit_bytes() -> u64 {
    limit_from(|path| std::fs::read_to_string(Path::new(path)).ok()).unwrap_or(DEFAULT_LIMIT_BYTES)
}

/// The smallest limit on the way from our own cgroup to the root that is visible here; cgroup v2 first, then v1.
fn limit_from(read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let membership = read("/proc/self/cgroup").unwrap_or_default();
    let v2 = membership.lines().find_map(|line| line.strip_prefix("0::"));
    let v1 = membership.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|controller| controller == "memory").then_some(path)
    });
    let v2 = ancestors(v2.unwrap_or("/"))
        .filter_map(|path| parse_limit(&read(&format!("/sys/fs/cgroup{path}/memory.max"))?))
        .min();
    v2.or_else(|| {
        ancestors(v1.unwrap_or("/"))
            .filter_map(|path| parse_limit(&read(&format!("/sys/fs/cgroup/memory{path}/memory.limit_in_bytes"))?))
            .min()
    })
}

/// `/a/b` gives `/a/b`, `/a` and the empty path of the root.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    let path = path.trim_end_matches('/');
    std::iter::successors(Some(path), |path| path.rfind('/').and_then(|cut| path.get(..cut)))
}

fn parse_limit(text: &str) -> Option<u64> {
    let bytes: u64 = text.trim().parse().ok()?;
    (bytes > 0 && bytes < V1_NONE_BYTES).then_some(bytes)
}

/// Says when the resident size is so near the limit that nothing more may be taken in.
#[derive(Debug)]
pub(super) struct Guard {
    refuse_at_bytes: u64,
    page_bytes: u64,
    born: Instant,
    looked_ms: AtomicU64,
    over: AtomicBool,
}

impl Guard {
    pub(super) fn new(limit_bytes: u64) -> Self {
        Self {
            refuse_at_bytes: limit_bytes / 100 * REFUSE_AT_PERCENT,
            page_bytes: u64::try_from(rustix::param::page_size()).unwrap_or(4096),
            born: Instant::now(),
            looked_ms: AtomicU64::new(u64::MAX),
            over: AtomicBool::new(false),
        }
    }

    /// Whether to refuse. Looks at most every 50 ms; a resident size that cannot be read never refuses.
    pub(super) fn is_over(&self) -> bool {
        let now_ms = u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        let looked_ms = self.looked_ms.load(Ordering::Relaxed);
        let every_ms = u64::try_from(LOOK_EVERY.as_millis()).unwrap_or(u64::MAX);
        if looked_ms == u64::MAX || now_ms.saturating_sub(looked_ms) >= every_ms {
            self.looked_ms.store(now_ms, Ordering::Relaxed);
            let resident = std::fs::read_to_string("/proc/self/statm").ok();
            let resident = resident.and_then(|statm| resident_bytes(&statm, self.page_bytes));
            self.over.store(resident.is_some_and(|bytes| bytes >= self.refuse_at_bytes), Ordering::Relaxed);
        }
        self.over.load(Ordering::Relaxed)
    }
}

/// Resident memory that is not a mapped file, in bytes: the second number of `/proc/self/statm` less the third. Pages
/// of the binary and of the database library can be dropped by the kernel at any time and are not what fills a limit.
/// Source: <https://man7.org/linux/man-pages/man5/proc_pid_statm.5.html>.
fn resident_bytes(statm: &str, page_bytes: u64) -> Option<u64> {
    let mut numbers = statm.split_ascii_whitespace().skip(1);
    let resident: u64 = numbers.next()?.parse().ok()?;
    let mapped: u64 = numbers.next()?.parse().ok()?;
    resident.saturating_sub(mapped).checked_mul(page_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(files: &[(&str, &str)]) -> Option<u64> {
        limit_from(|path| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned()))
    }

    #[test]
    fn reads_version_2_and_takes_the_smallest_ancestor() {
        let own = ("/proc/self/cgroup", "0::/kubepods/pod1/iris\n");
        let files = [
            own,
            ("/sys/fs/cgroup/kubepods/pod1/iris/memory.max", "max\n"),
            ("/sys/fs/cgroup/kubepods/pod1/memory.max", "268435456\n"),
            ("/sys/fs/cgroup/kubepods/memory.max", "8589934592\n"),
        ];
        assert_eq!(limit(&files), Some(268_435_456));
        assert_eq!(limit(&[own, ("/sys/fs/cgroup/memory.max", "134217728\n")]), Some(134_217_728));
    }

    #[test]
    fn reads_version_1_and_knows_its_word_for_none() {
        let own = ("/proc/self/cgroup", "5:cpu,cpuacct:/\n4:memory:/docker/abc\n");
        let path = "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes";
        assert_eq!(limit(&[own, (path, "536870912\n")]), Some(536_870_912));
        assert_eq!(limit(&[own, (path, "9223372036854771712\n")]), None);
        assert_eq!(limit(&[("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1048576")]), Some(1_048_576));
        assert_eq!(limit(&[]), None);
    }

    #[test]
    fn refuses_near_the_limit_only() {
        assert_eq!(resident_bytes("1000 20 3 4 0 6 0\n", 4096), Some(69_632));
        assert_eq!(resident_bytes("", 4096), None);
        assert!(Guard::new(1024 * 1024).is_over(), "no process fits into 0.85 MiB");
        assert!(!Guard::new(1 << 50).is_over());
    }
}
