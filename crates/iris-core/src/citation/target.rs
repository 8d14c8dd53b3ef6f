//! The address of a source, judged before anything is looked up.

use core::net::IpAddr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::{Host, Url};

use super::Guard;

/// The longest address that is followed, in bytes.
const URL_BYTES_MAX: usize = 2048;

/// Why an address is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is no address, or not one of the web.
    #[error("not an http or https address")]
    BadScheme,
    /// It names or carries a forbidden address.
    #[error("the address is forbidden: {0}")]
    Forbidden(&'static str),
    /// It carries a name and password.
    #[error("the address carries credentials")]
    Credentials,
    /// It names another port than the web's.
    #[error("only ports 80 and 443 are fetched from")]
    Port,
    /// It leads from https to http.
    #[error("a redirect leads from https to http")]
    Downgrade,
    /// Its host is not on the list of those that may be fetched.
    #[error("the host is not on the list of those that may be fetched")]
    NotAllowed,
}

impl Refused {
    /// The kind on the wire.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::BadScheme => "bad_scheme",
            Self::Forbidden(_) | Self::Credentials | Self::Port | Self::Downgrade => "ssrf",
            Self::NotAllowed => "not_allowed_domain",
        }
    }
}

/// An address that may be looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    url: Url,
}

impl Target {
    /// Reads an address as a text has it.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn parse(text: &str, guard: &Guard) -> Result<Self, Refused> {
        if text.len() > URL_BYTES_MAX {
            return Err(Refused::BadScheme);
        }
        Self::judged(Url::parse(text).map_err(|_| Refused::BadScheme)?, guard)
    }

    /// Where a redirect leads.
    ///
    /// # Errors
    /// As [`Target::parse`]; also when it leads from https to http.
    pub fn redirected(&self, location: &str, guard: &Guard) -> Result<Self, Refused> {
        if location.len() > URL_BYTES_MAX {
            return Err(Refused::BadScheme);
        }
        let next = Self::judged(self.url.join(location).map_err(|_| Refused::BadScheme)?, guard)?;
        if self.is_secure() && !next.is_secure() {
            return Err(Refused::Downgrade);
        }
        Ok(next)
    }

    fn judged(mut url: Url, guard: &Guard) -> Result<Self, Refused> {
        // Escapes make it up to three times as long as it was written.
        if !matches!(url.scheme(), "http" | "https") || url.as_str().len() > URL_BYTES_MAX {
            return Err(Refused::BadScheme);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refused::Credentials);
        }
        let refused = match url.host().ok_or(Refused::BadScheme)? {
            Host::Ipv4(address) => guard.refuses(IpAddr::V4(address)),
            Host::Ipv6(address) => guard.refuses(IpAddr::V6(address)),
            Host::Domain(name) => refused_name(name),
        };
        if let Some(why) = refused {
            return Err(Refused::Forbidden(why));
        }
        if !matches!(url.port_or_known_default(), Some(80 | 443)) {
            return Err(Refused::Port);
        }
        url.set_fragment(None);
        Ok(Self { url })
    }

    /// The address, without fragment.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// Whether the connection is encrypted.
    pub fn is_secure(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The host's name, in lower case without a last dot; none when it is a literal address.
    pub fn name(&self) -> Option<&str> {
        self.url.domain().map(|name| name.strip_suffix('.').unwrap_or(name))
    }

    /// The literal address of the host; it was judged.
    pub fn literal(&self) -> Option<IpAddr> {
        match self.url.host()? {
            Host::Ipv4(address) => Some(IpAddr::V4(address)),
            Host::Ipv6(address) => Some(IpAddr::V6(address)),
            Host::Domain(_) => None,
        }
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or(443)
    }

    /// The host as it stands in the address.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }
}

/// Names that stand for this machine, its network or a cloud's metadata, whatever they resolve to.
const NAMES: &[&str] = &[
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "lan",
    "home",
    "corp",
    "private",
    "home.arpa",
    "in-addr.arpa",
    "ip6.arpa",
    "onion",
    "svc",
    "metadata.google",
    "metadata.azure",
    "metadata.azure.com",
    "metadata.packet.net",
    "metadata.platformequinix.com",
    "metadata.tencentyun.com",
    "instance-data",
    "rancher-metadata",
];

/// Why a name must not be looked up.
fn refused_name(name: &str) -> Option<&'static str> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_below = |one: &str| name == one || name.strip_suffix(one).is_some_and(|rest| rest.ends_with('.'));
    if NAMES.iter().any(|one| is_below(one)) {
        return Some("a name of this machine, its network or a cloud's metadata");
    }
    // A name of one label is completed by the resolver's search list: inside a cluster, to a service.
    (!name.contains('.') || name.is_empty()).then_some("a name without a domain")
}

/// Whether a host is on a list of hosts, itself or below one of them. An empty list allows every host.
pub fn is_allowed(name: &str, list: &[String]) -> bool {
    let name = name.to_ascii_lowercase();
    list.is_empty()
        || list.iter().any(|one| {
            let one = one.trim().trim_start_matches("*.").trim_matches('.').to_ascii_lowercase();
            !one.is_empty() && (name == one || name.strip_suffix(&one).is_some_and(|rest| rest.ends_with('.')))
        })
}

/// What may stand in the path behind the resolver's name.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'/').remove(b':').remove(b'~');

/// Where a DOI resolves. Source: <https://www.doi.org/the-identifier/resources/factsheets/doi-resolution-documentation>.
pub fn doi_address(doi: &str) -> String {
    format!("https://doi.org/{}", utf8_percent_encode(doi, KEPT))
}
