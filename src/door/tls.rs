//! TLS at a door: certificate and key from files that may be rotated, and client certificates where a CA is named.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::fresh::Fresh;

/// How long a client may take to agree on a connection.
const GREETING_MAX: Duration = Duration::from_secs(10);
/// The longest file that is read, bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// TLS for one door; plain text without it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TlsConfig {
    /// The certificate with its chain, PEM. Read again when it changes.
    pub cert_file: Option<PathBuf>,
    /// Its private key, PEM. Read again when it changes.
    pub key_file: Option<PathBuf>,
    /// CAs, PEM: clients must show a certificate that one of them has signed. Read again when it changes.
    pub client_ca_file: Option<PathBuf>,
}

impl TlsConfig {
    /// Whether the door speaks TLS.
    pub const fn is_on(&self) -> bool {
        self.cert_file.is_some() && self.key_file.is_some()
    }

    /// Whether only clients with a certificate come in.
    pub const fn asks_for_certificates(&self) -> bool {
        self.is_on() && self.client_ca_file.is_some()
    }

    /// What could not work, a line a problem; `place` is where these settings stand.
    pub fn problems(&self, place: &str) -> Vec<String> {
        let mut problems = Vec::new();
        if self.cert_file.is_some() != self.key_file.is_some() {
            problems.push(format!("{place}: set both cert_file and key_file"));
        }
        if self.client_ca_file.is_some() && !self.is_on() {
            problems.push(format!("{place}.client_ca_file: needs cert_file and key_file too"));
        }
        problems
    }

    /// Reads the files, when TLS is on.
    ///
    /// # Errors
    /// The file at fault, and why.
    pub fn open(&self, place: &str) -> Result<Option<Tls>, String> {
        if !self.is_on() {
            return Ok(None);
        }
        let files = [&self.cert_file, &self.key_file, &self.client_ca_file].into_iter().flatten().cloned().collect();
        let (config, place) = (self.clone(), place.to_owned());
        let fresh = Fresh::new(files, move || config.read(&place).map(Arc::new))?;
        Ok(Some(Tls(Arc::new(fresh))))
    }

    fn read(&self, place: &str) -> Result<ServerConfig, String> {
        let (Some(cert), Some(key)) = (&self.cert_file, &self.key_file) else {
            return Err(format!("{place}: set both cert_file and key_file"));
        };
        let chain = certificates(&format!("{place}.cert_file"), cert)?;
        let key_place = format!("{place}.key_file");
        let key = PrivateKeyDer::from_pem_slice(&read(&key_place, key)?)
            .map_err(|_| format!("{key_place}: {}: no private key in PEM", key.display()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| format!("{place}: {error}"))?;
        let builder = match &self.client_ca_file {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let ca_place = format!("{place}.client_ca_file");
                let roots = Arc::new(roots(&ca_place, file)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| format!("{ca_place}: {error}"))?)
            }
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| format!("{place}: certificate and key do not fit: {error}"))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// The certificates of a PEM file.
///
/// # Errors
/// When it cannot be read or has none.
pub fn certificates(place: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes = read(place, file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(format!("{place}: {}: no certificate in PEM", file.display())),
    }
}

fn roots(place: &str, file: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(place, file)? {
        roots.add(certificate).map_err(|error| format!("{place}: {}: {error}", file.display()))?;
    }
    Ok(roots)
}

/// A file of bounded length.
///
/// # Errors
/// The system's, with the setting that names it.
pub fn read(place: &str, file: &Path) -> Result<Vec<u8>, String> {
    use std::io::Read as _;
    let failed = |error: io::Error| format!("{place}: {}: {error}", file.display());
    let mut bytes = Vec::new();
    std::fs::File::open(file).map_err(failed)?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// TLS of a door that is open. Clones share it.
#[derive(Clone)]
pub struct Tls(Arc<Fresh<Arc<ServerConfig>>>);

impl Tls {
    /// Agrees with a client on a connection.
    ///
    /// # Errors
    /// When it does not come about, or not in time.
    pub(super) async fn greet(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let acceptor = TlsAcceptor::from(Arc::clone(&*self.0.get()));
        match tokio::time::timeout(GREETING_MAX, acceptor.accept(stream)).await {
            Ok(greeted) => greeted,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}
