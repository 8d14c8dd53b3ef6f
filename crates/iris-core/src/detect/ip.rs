//! Public internet addresses, which tie an event to a household.

use core::net::{IpAddr, Ipv6Addr};
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::digits::{Group, groups};
use super::{Hit, Standing, context, pattern, person, reserved};
use crate::text::View;

static V6: LazyLock<Regex> = LazyLock::new(|| pattern(r"[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{0,4}){2,7}"));
static VERSION_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?:version|release|build|(?-u:\b)ver|(?-u:\b)v|chrome/|firmware|driver|assembly|package|section|§|[a-z]/)[ .:=]*$",
    )
});

/// Finds public addresses.
pub fn find(view: &View<'_>) -> Vec<Hit> {
    let text = view.text();
    let v4 = in_points(text).into_iter().filter(|found| {
        context::is_number_alone(text, found) && !VERSION_WORDS.is_match(context::before(text, found.start, 16))
    });
    let coloned = if text.contains(':') { text } else { "" };
    let v6 = V6.find_iter(coloned).map(|found| found.range()).filter(|found| {
        let whole = |c: Option<char>| !c.is_some_and(|c| c.is_ascii_alphanumeric() || c == ':' || c == '.');
        whole(context::last(text, found.start)) && whole(context::next(text, found.end))
    });
    v4.chain(v6)
        .filter_map(|found| {
            let address: IpAddr = text.get(found.clone())?.parse().ok()?;
            if reserved::is_documentation_address(address) {
                return Some(person(found, "ip_address", Standing::TestValue));
            }
            if reserved::is_public_resolver(address) {
                return Some(person(found, "ip_address", Standing::Public));
            }
            is_public(address).then(|| person(found, "ip_address", Standing::Live))
        })
        .collect()
}

/// Four numbers of up to three digits with points between them, and no fifth.
fn in_points(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    if memchr::memchr(b'.', bytes).is_none() {
        return found;
    }
    let groups = groups(text);
    let is_joined =
        |pair: &[Group]| matches!(pair, [one, next] if next.start == one.end + 1 && bytes.get(one.end) == Some(&b'.'));
    let mut rest = groups.as_slice();
    while !rest.is_empty() {
        let length = 1 + rest.windows(2).take_while(|pair| is_joined(pair)).count();
        let (row, others) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        rest = others;
        if let [first, _, _, last] = row
            && row.iter().all(|group| group.len() <= 3)
        {
            found.push(first.start..last.end);
        }
    }
    found
}

/// Whether packets to it travel the internet. Source: the IANA special-purpose address registries,
/// <https://www.iana.org/assignments/iana-ipv4-special-registry>.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, c, d] = v4.octets();
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_multicast()
                || matches!((a, b, c), (0 | 240..=255, ..) | (100, 64..=127, _) | (192, 0, 0) | (198, 18 | 19, _))
                || d == 0 && c == 0)
        }
        IpAddr::V6(v6) => is_global_unicast(v6),
    }
}

/// 2000::/3, the only part of the space that is handed out.
const fn is_global_unicast(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xE000 == 0x2000
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    static SHAPE: LazyLock<Regex> = LazyLock::new(|| pattern(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"));

    proptest! {
        /// Looking at rows of numbers finds what the shape of an address finds among numbers that stand alone.
        #[test]
        fn rows_of_numbers_are_those_of_the_shape(parts in prop::collection::vec(
            prop::sample::select(vec!["1", "22", "203", "4444", ".", ".", ".", ":", "-", "_", " ", "a", "é", "0.1"]),
            0..24,
        )) {
            let text = parts.concat();
            let alone = |bytes: &Range<usize>| context::is_number_alone(&text, bytes);
            let shaped: Vec<_> = SHAPE.find_iter(&text).map(|found| found.range()).filter(alone).collect();
            let in_rows: Vec<_> = in_points(&text).into_iter().filter(alone).collect();
            prop_assert_eq!(in_rows, shaped);
        }
    }
}
