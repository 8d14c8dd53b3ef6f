//! HTML made in Rust. Everything that enters is escaped here, so what leaves may stand in a template as it is.

use std::fmt;

/// A piece of HTML.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Markup(String);

impl askama::filters::HtmlSafe for Markup {}

impl fmt::Display for Markup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Markup {
    /// A text.
    pub fn text(text: &str) -> Self {
        Self(escaped(text))
    }

    /// A time.
    pub fn time(machine: &str, absolute: &str, relative: &str) -> Self {
        Self(format!(
            "<time datetime=\"{}\" title=\"{}\">{}</time>",
            escaped(machine),
            escaped(absolute),
            escaped(relative)
        ))
    }

    /// A short word with a sign before it.
    pub fn badge(class: &str, sign: &str, word: &str) -> Self {
        Self(format!(
            "<span class=\"badge {}\"><span aria-hidden=\"true\">{}</span> {}</span>",
            escaped(class),
            escaped(sign),
            escaped(word)
        ))
    }

    /// A drawing that its maker has escaped.
    pub(super) fn drawing(svg: String) -> Self {
        Self(svg)
    }
}

/// The text with nothing in it that begins or ends markup.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_enters_is_markup() {
        let hostile = "\"><script>alert('1')</script>&";
        for made in
            [Markup::text(hostile), Markup::time(hostile, hostile, hostile), Markup::badge(hostile, hostile, hostile)]
        {
            let made = made.to_string();
            assert!(!made.contains("<script") && !made.contains("'1'") && made.contains("&lt;script&gt;"), "{made}");
        }
    }
}
