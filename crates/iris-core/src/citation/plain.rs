//! The words of a page: what its markup would show, so that a judge's share of a source is not spent on markup.

/// Elements whose content nobody reads.
const UNREAD: [&str; 6] = ["script", "style", "template", "svg", "noscript", "iframe"];

/// Elements that stand within a line.
const INLINE: [&str; 19] = [
    "a", "abbr", "b", "bdi", "cite", "code", "em", "font", "i", "kbd", "mark", "q", "s", "small", "span", "strong",
    "sub", "sup", "u",
];

/// Entities that are read by name.
const ENTITIES: [(&str, char); 12] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", ' '),
    ("ndash", '–'),
    ("mdash", '—'),
    ("hellip", '…'),
    ("rsquo", '’'),
    ("ldquo", '“'),
    ("rdquo", '”'),
];

/// Bytes of an entity that are looked at.
const ENTITY_BYTES_MAX: usize = 12;

/// The text of a source of that media type: of HTML what its tags hold, of anything else the text itself.
pub fn plain(text: &str, content_type: &str) -> String {
    let is_html = content_type.to_ascii_lowercase().contains("html")
        || content_type.is_empty() && text.trim_start().get(..5).is_some_and(|head| head.eq_ignore_ascii_case("<!doc"));
    if is_html { of_html(text) } else { text.to_owned() }
}

fn of_html(text: &str) -> String {
    let mut words = Words::default();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        words.add(before);
        if let Some(comment) = tag.strip_prefix("<!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        let inner = tag.get(1..).unwrap_or_default();
        let is_tag = inner.starts_with(|first: char| first.is_ascii_alphabetic() || matches!(first, '/' | '!' | '?'));
        if !is_tag {
            words.add("<");
            rest = inner;
            continue;
        }
        let Some((inside, after)) = inner.split_once('>') else { break };
        let name = inside.trim_start_matches('/').split(|letter: char| !letter.is_ascii_alphanumeric()).next();
        let name = name.unwrap_or_default().to_ascii_lowercase();
        rest = after;
        let opens = !inside.starts_with('/') && !inside.ends_with('/');
        if opens && UNREAD.contains(&name.as_str()) {
            rest = behind(after, &name);
        }
        if !INLINE.contains(&name.as_str()) {
            words.end_line();
        }
    }
    if !rest.contains('<') {
        words.add(rest);
    }
    words.text.truncate(words.text.trim_end().len());
    words.text
}

/// What follows the end tag of that name; nothing where there is none.
fn behind<'a>(text: &'a str, name: &str) -> &'a str {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("</") {
        if after.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) {
            return after.split_once('>').map_or("", |(_, after)| after);
        }
        rest = after;
    }
    ""
}

/// Text in lines, without the white space that markup is laid out with.
#[derive(Default)]
struct Words {
    text: String,
    wants_space: bool,
}

impl Words {
    fn add(&mut self, raw: &str) {
        let mut letters = raw.char_indices();
        while let Some((at, letter)) = letters.next() {
            let (letter, skipped) = match letter {
                '&' => entity(raw.get(at + 1..).unwrap_or_default()).unwrap_or(('&', 0)),
                other => (other, 0),
            };
            for _ in 0..skipped {
                letters.next();
            }
            if letter.is_whitespace() {
                self.wants_space = true;
                continue;
            }
            if self.wants_space && !self.text.is_empty() && !self.text.ends_with('\n') {
                self.text.push(' ');
            }
            self.wants_space = false;
            self.text.push(letter);
        }
    }

    fn end_line(&mut self) {
        self.wants_space = false;
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }
}

/// The letter of an entity that stands behind an ampersand, and how many letters it takes.
fn entity(text: &str) -> Option<(char, usize)> {
    let bytes = text.as_bytes();
    let end = bytes.iter().take(ENTITY_BYTES_MAX).position(|byte| *byte == b';')?;
    let name = text.get(..end)?;
    let letter = match name.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code).filter(|letter| !letter.is_control() || letter.is_whitespace())?
        }
        None => ENTITIES.iter().find(|(known, _)| *known == name)?.1,
    };
    // The name is of single bytes, or it would not have been found.
    Some((letter, end + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_is_read_without_its_markup() {
        let page = "<!DOCTYPE html><html><head><title>Rust &amp; more</title><style>b{color:red}</style>\
                    <SCRIPT>if (a < b) { document.write('<p>no</p>') }</SCRIPT></head><body>\n  <h1>Safe</h1><!-- <p>not this</p> -->\
                    <p>Memory&nbsp;<b>safe</b>ty &#8212; 1 &lt; 2,\n   and 3 < 4.</p><img src=x/><noscript>no</noscript>end</body>";
        assert_eq!(
            plain(page, "text/html; charset=utf-8"),
            "Rust & more\nSafe\nMemory safety — 1 < 2, and 3 < 4.\nend"
        );
        assert_eq!(plain("<b>x</b> &amp;", "text/plain"), "<b>x</b> &amp;");
        assert_eq!(plain("<!doctype html><p>x", ""), "x");
        assert_eq!(plain("a <script>b", "text/html"), "a");
        assert_eq!(plain("AT&T &unknown; &#x0; &#xD800;", "text/html"), "AT&T &unknown; &#x0; &#xD800;");
    }

    #[test]
    fn hostile_pages_are_read_in_linear_time() {
        for unit in ["<", "<a", "</", "<script>", "<!--", "&", "&#", "<script></", "< "] {
            let page = unit.repeat(200_000);
            assert!(plain(&page, "text/html").len() <= page.len());
        }
    }

    proptest! {
        #[test]
        fn any_page_is_read(page in "(<|>|/|script|p|!--|-->|&|;|#|amp|é|😀| |\n){0,80}") {
            let _ = plain(&page, "text/html");
        }
    }
}
