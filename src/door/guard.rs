//! Host and Origin: a page in a browser must not reach a door on loopback through a name that points here.

use std::net::{IpAddr, SocketAddr};

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Uri};

/// Which names a door answers to.
#[derive(Debug, Clone)]
pub struct Guard {
    port: u16,
    loopback: bool,
    allowed_hosts: Vec<String>,
    allowed_origins: Vec<String>,
}

/// Why a request is refused before its body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The Host header names another host.
    #[error("the Host header is not this door's; add the name to allowed_hosts to serve it")]
    Host,
    /// The Origin header names another origin.
    #[error("the Origin header is not allowed; add it to allowed_origins to serve it")]
    Origin,
}

impl Guard {
    /// A guard of the door bound at `address`.
    pub fn new(address: SocketAddr, allowed_hosts: &[String], allowed_origins: &[String]) -> Self {
        Self {
            port: address.port(),
            loopback: address.ip().is_loopback(),
            allowed_hosts: allowed_hosts.to_vec(),
            allowed_origins: allowed_origins.to_vec(),
        }
    }

    /// Checks a request's authority and origin.
    ///
    /// # Errors
    /// The header at fault. A missing Host is refused: only HTTP/1.0 leaves it out.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
        let host = uri.authority().map(http::uri::Authority::as_str).or_else(|| headers.get(HOST)?.to_str().ok());
        let host = host.filter(|host| self.knows_host(host)).ok_or(Refused::Host)?;
        // A page that this door served itself says so, by whichever of its names the browser knows it.
        let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
        let is_own = |origin: &str| {
            let named = ["http://", "https://"].iter().find_map(|scheme| origin.strip_prefix(scheme));
            named.is_some_and(|named| named.eq_ignore_ascii_case(host))
        };
        if origin.is_some_and(is_own) && headers.get_all(ORIGIN).iter().count() == 1 {
            return Ok(());
        }
        self.check_origin(headers)
    }

    /// Checks a request's origin alone, where a name that points here gives a page in a browser nothing.
    ///
    /// # Errors
    /// [`Refused::Origin`].
    pub fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refused> {
        match headers.get(ORIGIN).map(|origin| origin.to_str()) {
            None => Ok(()),
            Some(Ok(origin)) if self.knows_origin(origin) => Ok(()),
            Some(_) => Err(Refused::Origin),
        }
    }

    fn knows_host(&self, host: &str) -> bool {
        let (name, port) = split(host);
        if self.allowed_hosts.iter().any(|one| one.eq_ignore_ascii_case(host) || one.eq_ignore_ascii_case(name)) {
            return true;
        }
        let ours = port.map_or(self.port == 80, |port| port == self.port);
        // A door bound beyond loopback is reached by addresses too; a name must be configured.
        ours && (is_loopback(name) || (!self.loopback && address(name).is_some()))
    }

    fn knows_origin(&self, origin: &str) -> bool {
        if self.allowed_origins.iter().any(|one| one.eq_ignore_ascii_case(origin)) {
            return true;
        }
        let Some((scheme, host)) = origin.split_once("://") else { return false };
        let (name, port) = split(host);
        let usual = if scheme == "https" { 443 } else { 80 };
        matches!(scheme, "http" | "https") && port.unwrap_or(usual) == self.port && is_loopback(name)
    }
}

/// A host and its port; an IPv6 literal keeps its brackets.
fn split(host: &str) -> (&str, Option<u16>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            (name, port.parse().ok())
        }
        _ => (host, None),
    }
}

fn address(name: &str) -> Option<IpAddr> {
    name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name).parse().ok()
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost") || address(name).is_some_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(guard: &Guard, host: &str, origin: Option<&str>) -> Result<(), Refused> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(ORIGIN, origin.parse().unwrap());
        }
        guard.check(&Uri::from_static("/"), &headers)
    }

    #[test]
    fn a_loopback_door_answers_to_loopback_names_on_its_port_only() {
        let guard = Guard::new(([127, 0, 0, 1], 6920).into(), &["iris.test".to_owned()], &[]);
        for host in ["localhost:6920", "127.0.0.1:6920", "[::1]:6920", "LOCALHOST:6920", "iris.test", "iris.test:80"] {
            assert_eq!(check(&guard, host, None), Ok(()), "{host}");
        }
        for host in [
            "evil.example:6920",
            "127.0.0.1:80",
            "localhost",
            "localhost.evil.example:6920",
            "10.0.0.1:6920",
            "",
            "[::1",
        ] {
            assert_eq!(check(&guard, host, None), Err(Refused::Host), "{host}");
        }
    }

    #[test]
    fn an_origin_must_be_our_own_or_configured() {
        let guard = Guard::new(([127, 0, 0, 1], 6920).into(), &[], &["https://app.test".to_owned()]);
        for origin in ["http://localhost:6920", "http://127.0.0.1:6920", "https://app.test"] {
            assert_eq!(check(&guard, "localhost:6920", Some(origin)), Ok(()), "{origin}");
        }
        for origin in
            ["null", "http://localhost:3000", "https://evil.example", "file://", "http://localhost.evil.example:6920"]
        {
            assert_eq!(check(&guard, "localhost:6920", Some(origin)), Err(Refused::Origin), "{origin}");
        }
    }

    /// Guarantees: forms of pages that this door served by a configured name come back in, those of others do not.
    #[test]
    fn a_page_of_this_door_is_known_by_each_of_its_names() {
        let guard = Guard::new(([0, 0, 0, 0], 6920).into(), &["iris.test".to_owned()], &[]);
        for (host, origin) in [("iris.test", "https://iris.test"), ("10.0.0.9:6920", "http://10.0.0.9:6920")] {
            assert_eq!(check(&guard, host, Some(origin)), Ok(()), "{origin}");
        }
        for (host, origin) in [
            ("iris.test", "https://iris.test.evil.example"),
            ("iris.test", "https://evil.example"),
            ("iris.test", "iris.test"),
            ("evil.example", "http://evil.example"),
            ("10.0.0.9:6920", "http://10.0.0.9:80"),
        ] {
            assert!(check(&guard, host, Some(origin)).is_err(), "{host} {origin}");
        }
    }

    #[test]
    fn a_request_without_a_host_is_refused() {
        let guard = Guard::new(([127, 0, 0, 1], 6920).into(), &[], &[]);
        assert_eq!(guard.check(&Uri::from_static("/"), &HeaderMap::new()), Err(Refused::Host));
    }
}
