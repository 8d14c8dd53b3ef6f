//! The forms in which one value of a call may be meant: as written, with percent signs decoded, and each of them with
//! `.` and `..` worked out.

use unicode_normalization::UnicodeNormalization;

use crate::text::View;

/// Characters of a value that are looked at.
const CHARS_MAX: usize = 4096;

/// A value in all its forms; `whole` is false when it was longer than what is looked at.
pub(super) struct Forms {
    pub forms: Vec<Vec<char>>,
    /// The same in small letters and without disguises, for what is denied.
    pub folded: Vec<Vec<char>>,
    pub whole: bool,
}

impl Forms {
    pub fn of(value: &str) -> Self {
        let (value, whole) = match value.char_indices().nth(CHARS_MAX) {
            Some((at, _)) => (value.get(..at).unwrap_or_default(), false),
            None => (value, true),
        };
        let mut texts: Vec<String> = Vec::new();
        for base in [Some(value.to_owned()), decoded(value)].into_iter().flatten() {
            let plain: String = base.nfkc().collect::<String>().replace('\\', "/");
            let worked_out = worked_out(&plain);
            for form in [plain, worked_out] {
                if !texts.contains(&form) {
                    texts.push(form);
                }
            }
        }
        let folded = texts.iter().map(|form| folded(form)).collect();
        let forms = texts.iter().map(|form| form.chars().collect()).collect();
        Self { forms, folded, whole }
    }
}

/// Small letters, without disguises.
pub(super) fn folded(text: &str) -> Vec<char> {
    View::folded(text).text().chars().flat_map(char::to_lowercase).collect()
}

/// `%2e` as the byte it stands for, once; nothing when there is none or it is no text.
fn decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = |at: usize| after.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        match (first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The path without empty segments, `.` and `..`; a `..` that leaves a relative path stays, one that leaves the root
/// falls. The scheme and host of a URL stay in front.
fn worked_out(text: &str) -> String {
    let (scheme, path) = match text.split_once("://") {
        Some((scheme, path))
            if !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) =>
        {
            (Some(scheme), path)
        }
        _ => (None, text),
    };
    let rooted = scheme.is_some() || path.starts_with('/');
    let mut segments: Vec<&str> = Vec::new();
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let host = scheme.and_then(|_| parts.next());
    for part in parts {
        match part {
            "." => {}
            ".." if segments.last().is_some_and(|last| *last != "..") => drop(segments.pop()),
            ".." if rooted => {}
            part => segments.push(part),
        }
    }
    let mut joined = segments.join("/");
    if path.ends_with('/') && !joined.is_empty() {
        joined.push('/');
    }
    match (scheme, host) {
        (Some(scheme), Some(host)) if segments.is_empty() => {
            format!("{scheme}://{host}{}", if path.ends_with('/') { "/" } else { "" })
        }
        (Some(scheme), Some(host)) => format!("{scheme}://{host}/{joined}"),
        _ if path.starts_with('/') => format!("/{joined}"),
        _ => joined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(value: &str) -> Vec<String> {
        Forms::of(value).forms.into_iter().map(|form| form.into_iter().collect()).collect()
    }

    #[test]
    fn a_path_is_read_in_every_form_it_can_mean() {
        assert_eq!(forms("/a/./b//../c"), ["/a/./b//../c", "/a/c"]);
        assert_eq!(forms("data/../../etc"), ["data/../../etc", "../etc"]);
        assert_eq!(forms("/../../etc/"), ["/../../etc/", "/etc/"]);
        assert_eq!(forms("..\\x"), ["../x"]);
        assert_eq!(forms("%2e%2e/etc"), ["%2e%2e/etc", "../etc"]);
        assert_eq!(forms("https://a.b/c/../d"), ["https://a.b/c/../d", "https://a.b/d"]);
        assert_eq!(forms("https://a.b/../../d"), ["https://a.b/../../d", "https://a.b/d"]);
        assert_eq!(forms("https://a.b"), ["https://a.b"]);
        assert_eq!(forms("plain text"), ["plain text"]);
        assert_eq!(forms("\u{ff0f}etc"), ["/etc"], "full width");
        assert_eq!(forms("100%"), ["100%"]);
        assert!(!Forms::of(&"x".repeat(5000)).whole);
    }
}
