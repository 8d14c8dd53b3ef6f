//! Public internet addresses, which tie an event to a household.

use core::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

use super::{Hit, Standing, context, pattern, person, reserved};
use crate::text::View;

static V4: LazyLock<Regex> = LazyLock::new(|| pattern(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"));
static V6: LazyLock<Regex> = LazyLock::new(|| pattern(r"[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{0,4}){2,7}"));
static VERSION_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)(?:version|release|build|(?-u:\b)ver|(?-u:\b)v|chrome/|firmware|driver|assembly|package|section|§|[a-z]/)[ .:=]*$",
    )
});

/// Finds public addresses.
pub fn find(view: &View<'_>) -> Vec<Hit> {
    let text = view.text();
    let v4 = V4.find_iter(text).filter(|found| {
        context::is_number_alone(text, &found.range())
            && !VERSION_WORDS.is_match(context::before(text, found.start(), 16))
    });
    let v6 = V6.find_iter(text).filter(|found| {
        let whole = |c: Option<char>| !c.is_some_and(|c| c.is_ascii_alphanumeric() || c == ':' || c == '.');
        whole(context::last(text, found.start())) && whole(context::next(text, found.end()))
    });
    v4.chain(v6)
        .filter_map(|found| {
            let address: IpAddr = found.as_str().parse().ok()?;
            if reserved::is_documentation_address(address) {
                return Some(person(found.range(), "ip_address", Standing::TestValue));
            }
            if reserved::is_public_resolver(address) {
                return Some(person(found.range(), "ip_address", Standing::Public));
            }
            is_public(address).then(|| person(found.range(), "ip_address", Standing::Live))
        })
        .collect()
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
