//! Whether there is anything to see.

use super::fold::is_invisible;

/// Whether a text shows nothing: only white space, invisible characters and blanks that fonts draw empty.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || is_invisible(c) || c == '\u{2800}')
}
