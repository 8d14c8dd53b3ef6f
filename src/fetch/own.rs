//! The addresses of this machine itself, which are public ones in many places and must not be reached all the same.

use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kernel's table of IPv4 routes: local addresses stand in it with `host LOCAL` below them.
const IPV4: &str = "/proc/net/fib_trie";
/// The kernel's list of IPv6 addresses.
const IPV6: &str = "/proc/net/if_inet6";
/// Bytes of either that are read.
const BYTES_MAX: u64 = 1 << 20;

/// Every address of every interface, as far as the kernel tells.
pub(super) fn addresses() -> Vec<IpAddr> {
    let read = |path| {
        let mut text = String::new();
        // Where there is no such file, the table of forbidden addresses still holds.
        let _ = File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text));
        text
    };
    let mut found: Vec<IpAddr> = ipv4(&read(IPV4)).map(IpAddr::V4).collect();
    found.extend(ipv6(&read(IPV6)).map(IpAddr::V6));
    found.sort_unstable();
    found.dedup();
    found
}

fn ipv4(text: &str) -> impl Iterator<Item = Ipv4Addr> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let pairs: Vec<(&str, &str)> = lines.iter().copied().zip(lines.iter().copied().skip(1)).collect();
    pairs.into_iter().filter(|(_, next)| *next == "/32 host LOCAL").filter_map(|(line, _)| {
        let (_, address) = line.rsplit_once(' ')?;
        address.parse().ok()
    })
}

fn ipv6(text: &str) -> impl Iterator<Item = Ipv6Addr> {
    text.lines().filter_map(|line| {
        let bits = u128::from_str_radix(line.split_whitespace().next()?, 16).ok()?;
        Some(Ipv6Addr::from(bits))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_read() {
        let trie = "Local:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 203.0.114.9\n        /32 host LOCAL\n     |-- 203.0.114.255\n        /32 link BROADCAST\n";
        assert_eq!(ipv4(trie).collect::<Vec<_>>(), [Ipv4Addr::new(203, 0, 114, 9)]);
        let list = "00000000000000000000000000000001 01 80 10 80       lo\n26064700000000000000000000000009 02 40 00 80     eth0\nnothing\n";
        let found: Vec<String> = ipv6(list).map(|address| address.to_string()).collect();
        assert_eq!(found, ["::1", "2606:4700::9"]);
        assert!(addresses().contains(&IpAddr::V4(Ipv4Addr::LOCALHOST)), "{:?}", addresses());
    }
}
