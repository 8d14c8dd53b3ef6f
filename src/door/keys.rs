//! Keys with a name, a tenant and scopes: one list for every door.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderMap;
use iris_core::contract::Scope;
use iris_core::model::Tenant;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::Unwelcome;
use super::bearer::shown;
use super::fresh::Fresh;

/// The most keys of one installation: every request is held against all of them.
const KEYS_MAX: usize = 64;

/// Where a gateway says whose data a request is about; over gRPC it is metadata.
const TENANT_HEADER: &str = "x-iris-tenant";

static TENANTS_IGNORED: AtomicU64 = AtomicU64::new(0);

/// A key that callers show as a Bearer token.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyConfig {
    /// What logs call it; never the key itself.
    pub name: String,
    /// The key.
    #[serde(default, serialize_with = "crate::door::hidden")]
    #[schemars(with = "Option<String>")]
    pub key: Option<SecretString>,
    /// A file that holds the key, instead of `key`.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// Whose data its holder sees and sends: letters, digits, `-`, `_` and `.`.
    #[serde(default = "local")]
    pub tenant: String,
    /// What its holder may do: read, write (log, evaluate, send OTLP), admin (rules, deletion) and judge (spend).
    #[serde(default = "usual")]
    pub scopes: Vec<Scope>,
    /// A gateway's key: the header `x-iris-tenant` of a request may name another tenant than `tenant`, and the resource
    /// attribute `iris.tenant` that of the spans, records and points beneath it. Of other keys both are ignored.
    #[serde(default)]
    pub may_set_tenant: bool,
}

fn local() -> String {
    Tenant::local().to_string()
}

fn usual() -> Vec<Scope> {
    vec![Scope::Read, Scope::Write]
}

impl KeyConfig {
    /// What is wrong with a list of keys, one line a problem.
    pub fn problems(keys: &[Self]) -> Vec<String> {
        let mut problems = Vec::new();
        if keys.len() > KEYS_MAX {
            problems.push(format!("keys: {} of them; at most {KEYS_MAX}", keys.len()));
        }
        for (at, key) in keys.iter().enumerate() {
            let place = format!("keys[{at}]");
            for (field, name) in [("name", &key.name), ("tenant", &key.tenant)] {
                if !Tenant::is_name(name) {
                    problems.push(format!(
                        "{place}.{field}: 1 to {} letters, digits, hyphens, underscores and dots",
                        Tenant::NAME_BYTES_MAX
                    ));
                }
            }
            if keys[..at].iter().any(|other| other.name == key.name) {
                problems.push(format!("{place}.name: another key has that name"));
            }
            match (&key.key, &key.key_file) {
                (None, None) => problems.push(format!("{place}: set key or key_file")),
                (Some(_), Some(_)) => problems.push(format!("{place}: set either key or key_file")),
                (Some(text), None) if text.expose_secret().trim().is_empty() => {
                    problems.push(format!("{place}.key: must not be blank"));
                }
                _ => {}
            }
            if key.scopes.is_empty() {
                let all = Scope::ALL.map(Scope::as_str).join(", ");
                problems.push(format!("{place}.scopes: at least one of {all}"));
            }
        }
        problems
    }
}

/// Requests whose key may not name a tenant and did.
pub fn tenants_ignored() -> u64 {
    TENANTS_IGNORED.load(Ordering::Relaxed)
}

/// Who showed a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The key's name.
    pub name: String,
    /// Whose data it sees.
    pub tenant: Tenant,
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// Whether a request may say whose data it is about.
    pub may_set_tenant: bool,
}

/// Every key a door knows.
#[derive(Clone, Default)]
pub struct Keys {
    /// Digests, so that neither length nor content shows in the time a comparison takes.
    known: Vec<([u8; 32], Arc<Holder>)>,
}

impl Keys {
    /// Reads the list, files included.
    ///
    /// # Errors
    /// A file that cannot be read or is empty, or a key that two names share: whose it is must not be a question.
    pub fn read(keys: &[KeyConfig]) -> Result<Self, String> {
        let mut read = Self::default();
        for (at, key) in keys.iter().enumerate() {
            let secret = match (&key.key, &key.key_file) {
                (Some(key), _) => key.clone(),
                (None, Some(path)) => from_file(&format!("keys[{at}].key_file"), path)?,
                (None, None) => return Err(format!("keys[{at}]: set key or key_file")),
            };
            let holder = Holder {
                name: key.name.clone(),
                tenant: Tenant::new(&key.tenant),
                scopes: key.scopes.clone(),
                may_set_tenant: key.may_set_tenant,
            };
            read = read.and(&secret, holder)?;
        }
        Ok(read)
    }

    /// The same with one key more.
    ///
    /// # Errors
    /// When another name has that key.
    pub fn and(mut self, key: &SecretString, holder: Holder) -> Result<Self, String> {
        let digest: [u8; 32] = Sha256::digest(key.expose_secret().trim().as_bytes()).into();
        if let Some((_, other)) = self.known.iter().find(|(known, _)| *known == digest) {
            return Err(format!("the keys {} and {} are the same", other.name, holder.name));
        }
        self.known.push((digest, Arc::new(holder)));
        Ok(self)
    }

    /// Whether nobody needs a key.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Who shows a key here.
    ///
    /// # Errors
    /// [`Unwelcome`].
    pub fn admit(&self, headers: &HeaderMap) -> Result<Arc<Holder>, Unwelcome> {
        let digest = Sha256::digest(shown(headers).ok_or(Unwelcome::Missing)?);
        let mut found = None;
        for (known, holder) in &self.known {
            if known.ct_eq(&digest[..]).into() {
                found = Some(Arc::clone(holder));
            }
        }
        about(headers, found.ok_or(Unwelcome::Wrong)?)
    }

    /// Who holds the key of which this is the SHA-256: for whoever showed it before.
    pub fn holder(&self, digest: &[u8; 32]) -> Option<Arc<Holder>> {
        let mut found = None;
        for (known, holder) in &self.known {
            if known.ct_eq(digest).into() {
                found = Some(Arc::clone(holder));
            }
        }
        found
    }
}

/// The keys of one door, read again when a file that holds one changes. Clones share them.
#[derive(Clone)]
pub struct KeyRing(Arc<Fresh<Keys>>);

impl KeyRing {
    /// Reads the list, and the door's own key when it has one: given, or in a file named by a setting.
    ///
    /// # Errors
    /// As [`Keys::read`].
    pub fn read(
        keys: &[KeyConfig],
        own: Option<SecretString>,
        own_file: Option<(&'static str, PathBuf)>,
        holder: Holder,
    ) -> Result<Self, String> {
        let listed = keys.to_vec();
        let files = keys.iter().filter_map(|key| key.key_file.clone());
        let files = files.chain(own_file.iter().map(|(_, path)| path.clone())).collect();
        let make = move || {
            let known = Keys::read(&listed)?;
            let own = match (&own, &own_file) {
                (Some(own), _) => Some(own.clone()),
                (None, Some((setting, path))) => Some(from_file(setting, path)?),
                (None, None) => None,
            };
            match own {
                Some(own) => known.and(&own, holder.clone()),
                None => Ok(known),
            }
        };
        Fresh::new(files, make).map(|fresh| Self(Arc::new(fresh)))
    }

    /// The keys as they are now.
    pub fn now(&self) -> Arc<Keys> {
        self.0.get()
    }

    /// Nobody needs a key.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self(Arc::new(Fresh::new(Vec::new(), || Ok(Keys::default())).unwrap()))
    }
}

/// The holder with the tenant that the request names, when it may name one.
fn about(headers: &HeaderMap, holder: Arc<Holder>) -> Result<Arc<Holder>, Unwelcome> {
    let mut named = headers.get_all(TENANT_HEADER).iter();
    let Some(first) = named.next() else { return Ok(holder) };
    if !holder.may_set_tenant {
        TENANTS_IGNORED.fetch_add(1, Ordering::Relaxed);
        return Ok(holder);
    }
    match (first.to_str().ok().filter(|name| Tenant::is_name(name)), named.next()) {
        (Some(name), None) => Ok(Arc::new(Holder { tenant: Tenant::new(name), ..(*holder).clone() })),
        _ => Err(Unwelcome::NoTenant),
    }
}

/// A secret from a file, blanks around it left out.
///
/// # Errors
/// What keeps it from being read, with the setting that names the file.
pub fn from_file(setting: &str, path: &Path) -> Result<SecretString, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{setting}: {}: {error}", path.display()))?;
    match text.trim() {
        "" => Err(format!("{setting}: {}: the file is empty", path.display())),
        secret => Ok(secret.into()),
    }
}

#[cfg(test)]
mod tests {
    use http::header::AUTHORIZATION;

    use super::*;

    fn key(name: &str, secret: &str, tenant: &str) -> KeyConfig {
        KeyConfig {
            name: name.to_owned(),
            key: Some(secret.into()),
            key_file: None,
            tenant: tenant.to_owned(),
            scopes: usual(),
            may_set_tenant: false,
        }
    }

    fn headers(token: &str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, format!("Bearer {token}").parse().unwrap())])
    }

    #[test]
    fn a_key_says_who_holds_it() {
        let keys = Keys::read(&[key("one", "s1", "red"), key("two", "s2", "blue")]).unwrap();
        assert_eq!(keys.admit(&headers("s2")).unwrap().tenant.as_str(), "blue");
        assert_eq!(keys.admit(&headers("s3")).unwrap_err(), Unwelcome::Wrong);
        assert_eq!(keys.admit(&HeaderMap::new()).unwrap_err(), Unwelcome::Missing);
        let by_digest = |key: &str| keys.holder(&Sha256::digest(key).into()).map(|holder| holder.name.clone());
        assert_eq!((by_digest("s1").as_deref(), by_digest("s3")), (Some("one"), None));
    }

    /// Guarantees: a gateway's key speaks for the tenant that the header names, and for its own without one; a name that
    /// is none, or two of them, are refused; of any other key the header is ignored and counted.
    #[test]
    fn a_gateway_says_whose_data_it_is() {
        let gateway = KeyConfig { may_set_tenant: true, ..key("gateway", "g", "red") };
        let keys = Keys::read(&[gateway, key("plain", "p", "red")]).unwrap();
        let asked = |token: &str, tenants: &[&'static str]| {
            let mut headers = headers(token);
            for tenant in tenants {
                headers.append(TENANT_HEADER, http::HeaderValue::from_static(tenant));
            }
            keys.admit(&headers).map(|holder| holder.tenant.as_str().to_owned())
        };
        assert_eq!(asked("g", &["blue"]).as_deref(), Ok("blue"));
        assert_eq!(asked("g", &[]).as_deref(), Ok("red"));
        for wrong in [&[""][..], &["a b"], &["../red"], &["a/b"], &["blue", "green"]] {
            assert_eq!(asked("g", wrong), Err(Unwelcome::NoTenant), "{wrong:?}");
        }
        let before = tenants_ignored();
        assert_eq!(asked("p", &["blue"]).as_deref(), Ok("red"));
        assert!(tenants_ignored() > before);
    }

    #[test]
    fn a_key_may_stand_in_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let named = KeyConfig { key: None, key_file: Some(file.path().to_owned()), ..key("one", "", "red") };
        assert!(Keys::read(std::slice::from_ref(&named)).err().unwrap().contains("empty"));
        std::fs::write(file.path(), "s1\n").unwrap();
        assert!(Keys::read(&[named]).unwrap().admit(&headers("s1")).is_ok());
    }

    #[test]
    fn a_list_that_cannot_be_meant_is_refused_by_place() {
        assert!(Keys::read(&[key("one", "s", "red"), key("two", "s ", "blue")]).is_err(), "one key, two holders");
        let wrong = [
            key("one", " ", "red"),
            key("one", "s", "red"),
            key("", "s", "a/b"),
            KeyConfig { scopes: Vec::new(), key: None, ..key("x", "", "red") },
        ];
        let problems = KeyConfig::problems(&wrong);
        for place in [
            "keys[0].key:",
            "keys[1].name: another",
            "keys[2].name:",
            "keys[2].tenant:",
            "keys[3]: set",
            "keys[3].scopes",
        ] {
            assert!(problems.iter().any(|problem| problem.starts_with(place)), "{place}: {problems:?}");
        }
        assert!(KeyConfig::problems(&[key("one", "s", "red")]).is_empty());
    }
}
