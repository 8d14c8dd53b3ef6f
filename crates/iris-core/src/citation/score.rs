//! What the rulings on single citations come to.

/// How many citations there were, and what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Whose source was read.
    pub resolved: u64,
    /// That a judge ruled on.
    pub judged: u64,
    /// That their source supports.
    pub supported: u64,
}

impl Tally {
    /// Supported of judged with two decimals; none when nothing was judged.
    pub fn score(self) -> Option<f64> {
        (self.judged > 0).then(|| (self.supported as f64 / self.judged as f64 * 100.0).round() / 100.0)
    }

    /// Whether every judged citation is supported; none when nothing was judged, for then nothing was verified.
    pub fn passed(self) -> Option<bool> {
        (self.judged > 0).then_some(self.supported == self.judged)
    }

    /// Judged and not supported.
    pub const fn unsupported(self) -> u64 {
        self.judged.saturating_sub(self.supported)
    }
}

/// Whether a media type is text that a judge can read; none stated counts as text.
pub fn is_text(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence.is_empty() || essence.starts_with("text/") || essence.contains("xml") || essence.contains("json")
}
