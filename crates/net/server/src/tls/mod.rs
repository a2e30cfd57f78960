//! TLS towards clients: certificates by server name, client certificates, session tickets, reloads.
//!
//! - [`ServerTlsOptions`]: the files and rules; [`ServerTls`]: the configuration made of them, which a reload replaces
//!   for connections that begin from then on
//! - `certificate_resolver`: the certificate for a server name; [`ClientIdentity`]: identity of a client in its
//!   certificate it; `distinguished_name`: subjects as text; `file_stamps`: changes of files

mod certificate_resolver;
mod client_identity;
mod distinguished_name;
mod file_stamps;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ProducesTickets, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};

use self::certificate_resolver::CertificateResolver;
pub use self::client_identity::ClientIdentity;
use self::file_stamps::FileStamps;
use weir_machine::lock::lock;

/// Files and rules of TLS towards clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTlsOptions {
    /// Certificates, at least one; the first one is for clients that name no known server.
    pub certificates: Vec<CertificateFiles>,
    /// PEM file with the CA certificates that clients' certificates are verified by; None asks for none.
    pub client_ca: Option<PathBuf>,
    /// Whether clients need a certificate, with `client_ca`.
    pub client_auth: ClientAuth,
    /// Oldest version of TLS.
    pub min_version: MinTlsVersion,
}

/// A certificate of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// PEM file with the certificate, then those of intermediate CAs.
    pub cert: PathBuf,
    /// PEM file with its private key.
    pub key: PathBuf,
    /// DER file with an OCSP response for it, which is sent along (stapled).
    pub ocsp: Option<PathBuf>,
}

/// Whether clients need a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAuth {
    /// A client without a certificate gets no connection.
    #[default]
    Required,
    /// A client may do without; an invalid certificate gets no connection.
    Optional,
}

/// Oldest version of TLS that clients may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinTlsVersion {
    /// 1.2 (RFC 5246) or 1.3.
    #[default]
    Tls12,
    /// 1.3 (RFC 8446).
    Tls13,
}

/// Reason why TLS cannot be configured, and the certificate of the list that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerTlsError {
    /// A file cannot be read, or does not have what it should: its role (`cert`, `key`, `ocsp`, `client_ca`).
    File(&'static str, Option<usize>, PathBuf, String),
    /// Certificate and key do not belong together.
    Mismatch(usize, String),
    /// The system has no random numbers.
    System(String),
}

impl std::error::Error for ServerTlsError {}

impl fmt::Display for ServerTlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(_, _, path, why) => write!(f, "{}: {why}", path.display()),
            Self::Mismatch(_, why) => write!(f, "certificate and key do not match: {why}"),
            Self::System(why) => f.write_str(why),
        }
    }
}

/// TLS of a listener: its current configuration, for all event loops.
#[derive(Debug)]
pub struct ServerTls(Mutex<CurrentTls>);

#[derive(Debug)]
struct CurrentTls {
    options: ServerTlsOptions,
    config: Arc<ServerConfig>,
    /// Makes session tickets, whose keys change every six hours.
    tickets: Arc<dyn ProducesTickets>,
    /// The client CA's file, by which sessions of before are valid or not.
    client_ca: Option<Vec<u8>>,
    /// State of the files when they were read.
    stamps: FileStamps,
}

impl ServerTls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file is missing or invalid, or certificate and key do not match.
    pub fn new(options: ServerTlsOptions) -> Result<Self, ServerTlsError> {
        CurrentTls::new(options, None).map(|current| Self(Mutex::new(current)))
    }

    /// The current configuration.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&lock(&self.0).config)
    }

    /// Reads the files again; connections that begin from then on use them, those that are open are not affected.
    /// Sessions of before can be resumed, unless clients are verified in another way.
    ///
    /// # Errors
    /// As [`Self::new`]; then nothing has changed.
    pub fn reload(&self, options: ServerTlsOptions) -> Result<(), ServerTlsError> {
        let mut current = lock(&self.0);
        *current = CurrentTls::new(options, Some(&current))?;
        Ok(())
    }

    /// Reads the files again if one of them has changed since they were last read, or were last tried to be read;
    /// returns whether one has.
    ///
    /// # Errors
    /// As [`Self::reload`].
    pub fn reload_if_changed(&self) -> Result<bool, ServerTlsError> {
        let mut current = lock(&self.0);
        let stamps = FileStamps::of(&current.options);
        if stamps == current.stamps {
            return Ok(false);
        }
        match CurrentTls::new(current.options.clone(), Some(&current)) {
            Ok(new) => *current = new,
            Err(error) => {
                // Reported once for each change: certificate and key may be replaced one after the other.
                current.stamps = stamps;
                return Err(error);
            }
        }
        Ok(true)
    }
}

impl CurrentTls {
    fn new(options: ServerTlsOptions, before: Option<&Self>) -> Result<Self, ServerTlsError> {
        // Before the files are read, so that a change in between is seen by the next look.
        let stamps = FileStamps::of(&options);
        let provider = Arc::new(ring::default_provider());
        let mut keys = Vec::new();
        for (index, files) in options.certificates.iter().enumerate() {
            keys.push(Arc::new(certified_key(index, files, &provider)?));
        }
        let resolver = CertificateResolver::new(&keys);
        let versions: &[&'static SupportedProtocolVersion] = match options.min_version {
            MinTlsVersion::Tls12 => &[&TLS13, &TLS12],
            MinTlsVersion::Tls13 => &[&TLS13],
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(|error| ServerTlsError::System(error.to_string()))?;
        let mut client_ca = None;
        let builder = match &options.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let failed = |why: String| ServerTlsError::File("client_ca", None, path.clone(), why);
                let pem = fs::read(path).map_err(|error| failed(error.to_string()))?;
                let mut roots = RootCertStore::empty();
                for certificate in certificates(&pem).map_err(&failed)? {
                    roots.add(certificate).map_err(|error| failed(error.to_string()))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                let verifier = match options.client_auth {
                    ClientAuth::Required => verifier,
                    ClientAuth::Optional => verifier.allow_unauthenticated(),
                };
                let verifier = verifier.build().map_err(|error| failed(error.to_string()))?;
                client_ca = Some(pem);
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder.with_cert_resolver(Arc::new(resolver));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // A session carries the identity of its client: one of before is valid only if it were so today.
        let kept =
            before.filter(|before| before.client_ca == client_ca && before.options.client_auth == options.client_auth);
        let tickets = match kept {
            Some(before) => Arc::clone(&before.tickets),
            None => ring::Ticketer::new().map_err(|error| ServerTlsError::System(error.to_string()))?,
        };
        config.ticketer = Arc::clone(&tickets);
        Ok(Self { options, config: Arc::new(config), tickets, client_ca, stamps })
    }
}

/// Reads one certificate with its key.
fn certified_key(
    index: usize,
    files: &CertificateFiles,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, ServerTlsError> {
    let read = |role: &'static str, path: &Path| {
        let failed = |why: String| ServerTlsError::File(role, Some(index), path.to_owned(), why);
        fs::read(path).map_err(|error| failed(error.to_string()))
    };
    let failed =
        |role: &'static str, path: &Path, why: String| ServerTlsError::File(role, Some(index), path.to_owned(), why);
    let chain = certificates(&read("cert", &files.cert)?).map_err(|why| failed("cert", &files.cert, why))?;
    let key = PrivateKeyDer::from_pem_slice(&read("key", &files.key)?)
        .map_err(|_| failed("key", &files.key, "no private key (PEM) in it".to_owned()))?;
    let mut certified = CertifiedKey::from_der(chain, key, provider).map_err(|error| {
        let why = match error {
            rustls::Error::InconsistentKeys(_) => "the key is of another certificate".to_owned(),
            other => other.to_string(),
        };
        ServerTlsError::Mismatch(index, why)
    })?;
    if let Some(path) = &files.ocsp {
        let response = read("ocsp", path)?;
        // An OCSP response is a SEQUENCE; a PEM file would be sent as it is, and break every handshake of strict
        // clients.
        if response.first() != Some(&0x30) {
            return Err(failed("ocsp", path, "no OCSP response (DER) in it".to_owned()));
        }
        certified.ocsp = Some(response);
    }
    Ok(certified)
}

/// The certificates of a PEM text; at least one.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err("no certificate (PEM) in it".to_owned()),
    }
}
