//! Counts as numbers to compute with.

/// A count as a number; exact up to 2^53, and no text or list here has so many of anything.
#[expect(clippy::cast_precision_loss, reason = "counts of characters and words lie far below 2^53")]
pub(super) const fn number(count: usize) -> f64 {
    count as f64
}
