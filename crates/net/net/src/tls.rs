//! TLS configuration: certificates, trust, server name, and what is offered.

mod offer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme, SupportedProtocolVersion};
use serde::{Deserialize, Serialize};

use self::offer::OfferedTls;
pub use self::offer::{TlsOffer, TlsVersion};

/// TLS options of the user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsOptions {
    /// PEM file of the only trusted certificates.
    pub cacert: Option<PathBuf>,
    /// Client certificate chain (PEM).
    pub cert: Option<PathBuf>,
    /// Private key of the client certificate (PEM).
    pub key: Option<PathBuf>,
    /// Whether any certificate is accepted.
    pub insecure: bool,
    /// Versions and cipher suites.
    #[serde(default, skip_serializing_if = "TlsOffer::is_default")]
    pub offer: TlsOffer,
}

/// Certificates and a key as PEM texts: of connections that have their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PemTexts {
    /// The only trusted certificates.
    pub cacerts: Vec<String>,
    /// Client certificate chain; empty without one.
    pub cert: String,
    /// Private key of the client certificate.
    pub key: String,
}

/// Reason why TLS cannot be configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsError {
    /// A file cannot be read, or has no certificate or key.
    File(&'static str, PathBuf, String),
    /// A text has no certificate or key: its name, and why.
    Text(&'static str, String),
    /// Certificate without key, or key without certificate.
    IncompletePair,
    /// Certificate and key do not belong together.
    Mismatch(String),
    /// The system's certificate store is empty or unreadable.
    NoRoots(String),
    /// The host is not a valid name in a certificate.
    Name(String),
    /// A cipher suite that there is not, and the names of those that there are.
    Suite(String, String),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(flag, path, why) => write!(f, "{flag} {}: {why}", path.display()),
            Self::Text(name, why) => write!(f, "{name}: {why}"),
            Self::IncompletePair => f.write_str("--cert and --cert-key go together; give both"),
            Self::Mismatch(why) => write!(f, "--cert and --cert-key do not fit: {why}"),
            Self::NoRoots(why) => {
                write!(
                    f,
                    "this machine has no usable CA certificates ({why}); install ca-certificates, or give --cacert or -k"
                )
            }
            Self::Suite(name, known) => write!(f, "no cipher suite '{name}'; choose {known}"),
            Self::Name(host) => write!(f, "'{host}' cannot be the name in a certificate"),
        }
    }
}

/// A valid configuration, and the name that the service's certificate must have.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Shared by all connections.
    pub config: Arc<ClientConfig>,
    /// Server name, sent as SNI and verified.
    pub name: ServerName<'static>,
}

impl Tls {
    /// Builds a configuration without session resumption: each connection counts as a new client.
    ///
    /// # Errors
    /// If files are missing or do not match.
    pub fn new(host: &str, options: &TlsOptions) -> Result<Self, TlsError> {
        Self::without_resumption(host, configuration(options)?)
    }

    /// The same, with PEM texts in place of the files of the options where they are given.
    ///
    /// # Errors
    /// If a text or a file has no certificate or key, or they do not fit.
    pub fn with_texts(host: &str, options: &TlsOptions, texts: &PemTexts) -> Result<Self, TlsError> {
        let OfferedTls { provider, versions } = options.offer.offered()?;
        let provider = Arc::new(provider);
        let trust = match &texts.cacerts[..] {
            given @ [_, ..] if !options.insecure => {
                let mut all = Vec::new();
                for text in given {
                    all.extend(certificates_of("cacerts", text)?);
                }
                let failed = |why| TlsError::Text("cacerts", why);
                Some(CertificateTrust::of(all, &provider).map_err(failed)?)
            }
            _ => trust_of(options, &provider)?,
        };
        let identity = match (&texts.cert[..], &texts.key[..]) {
            ("", "") => identity_of(options)?,
            (_, "") => return Err(TlsError::Text("key", "it is missing, and there is a cert".to_owned())),
            ("", _) => return Err(TlsError::Text("cert", "it is missing, and there is a key".to_owned())),
            (cert, key) => {
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes());
                Some((certificates_of("cert", cert)?, key.map_err(|e| TlsError::Text("key", e.to_string()))?))
            }
        };
        Self::without_resumption(host, built(trust, identity, (provider, &versions))?)
    }

    fn without_resumption(host: &str, mut config: ClientConfig) -> Result<Self, TlsError> {
        config.resumption = Resumption::disabled();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = ServerName::try_from(host.to_owned()).map_err(|_| TlsError::Name(host.to_owned()))?;
        Ok(Self { config: Arc::new(config), name })
    }

    /// Offers HTTP/2 to the service, and HTTP/1.1 if it `may_fall_back` to that.
    #[must_use]
    pub fn offering_http2(self, may_fall_back: bool) -> Self {
        let versions: &[&[u8]] = if may_fall_back { &[b"h2", b"http/1.1"] } else { &[b"h2"] };
        self.offering(versions)
    }

    /// Offers HTTP/1.1 alone.
    #[must_use]
    pub fn offering_http1(self) -> Self {
        self.offering(&[b"http/1.1"])
    }

    fn offering(self, versions: &[&[u8]]) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = versions.iter().map(|version| version.to_vec()).collect();
        Self { config: Arc::new(config), ..self }
    }

    /// Builds the configuration that a client's connections share, for any host, with session resumption.
    ///
    /// # Errors
    /// If files are missing or do not match.
    pub fn shared(options: &TlsOptions) -> Result<Arc<ClientConfig>, TlsError> {
        configuration(options).map(Arc::new)
    }
}

fn configuration(options: &TlsOptions) -> Result<ClientConfig, TlsError> {
    let OfferedTls { provider, versions } = options.offer.offered()?;
    let provider = Arc::new(provider);
    built(trust_of(options, &provider)?, identity_of(options)?, (provider, &versions))
}

fn trust_of(options: &TlsOptions, provider: &Arc<CryptoProvider>) -> Result<Option<CertificateTrust>, TlsError> {
    match &options.cacert {
        _ if options.insecure => Ok(Some(CertificateTrust::Any)),
        Some(path) => CertificateTrust::from_file(path, provider).map(Some),
        None => Ok(None),
    }
}

fn identity_of(options: &TlsOptions) -> Result<Option<PemIdentity>, TlsError> {
    match (&options.cert, &options.key) {
        (None, None) => Ok(None),
        (Some(cert), Some(key)) => {
            let chain = certificates("--cert", cert)?;
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|e| TlsError::File("--cert-key", key.clone(), e.to_string()))?;
            Ok(Some((chain, key)))
        }
        _ => Err(TlsError::IncompletePair),
    }
}

/// Certificates of a client, and their key.
type PemIdentity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn built(
    trust: Option<CertificateTrust>,
    identity: Option<PemIdentity>,
    (provider, versions): (Arc<CryptoProvider>, &[&'static SupportedProtocolVersion]),
) -> Result<ClientConfig, TlsError> {
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .map_err(|e| TlsError::Mismatch(e.to_string()))?;
    let builder = match trust {
        Some(trust) => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(CertificateVerifier { trust, provider }))
        }
        None => builder.with_root_certificates(native_roots()?),
    };
    match identity {
        None => Ok(builder.with_no_client_auth()),
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(|e| TlsError::Mismatch(e.to_string())),
    }
}

/// Number of usable CA certificates in the system's store.
///
/// # Errors
/// If there is none.
pub fn native_root_count() -> Result<usize, TlsError> {
    native_roots().map(|roots| roots.len())
}

fn native_roots() -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    let native = rustls_native_certs::load_native_certs();
    let (added, _) = store.add_parsable_certificates(native.certs);
    if added == 0 {
        let why = native.errors.first().map_or_else(|| "none found".to_owned(), ToString::to_string);
        return Err(TlsError::NoRoots(why));
    }
    Ok(store)
}

fn certificates(flag: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let failed = |why: String| TlsError::File(flag, path.to_owned(), why);
    let found: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<_, _>>)
        .map_err(|e| failed(e.to_string()))?;
    if found.is_empty() { Err(failed("no certificate (PEM) in it".into())) } else { Ok(found) }
}

fn certificates_of(name: &'static str, text: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(text.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|e: rustls::pki_types::pem::Error| TlsError::Text(name, e.to_string()))?;
    if found.is_empty() { Err(TlsError::Text(name, "no certificate (PEM) in it".into())) } else { Ok(found) }
}

/// Trust in certificates, other than the system's store.
#[derive(Debug)]
enum CertificateTrust {
    /// `-k`: any certificate.
    Any,
    /// `--cacert`: certificates signed by these, and these themselves.
    ///
    /// The latter is for the output of `openssl req -x509`, common in development: a self-signed certificate that calls
    /// itself a CA. webpki rejects it as a server certificate even if it is trusted; OpenSSL, and so curl, accepts it.
    /// Its name is verified all the same.
    Certificates(Arc<WebPkiServerVerifier>, Vec<CertificateDer<'static>>),
}

impl CertificateTrust {
    fn from_file(path: &Path, provider: &Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let failed = |why: String| TlsError::File("--cacert", path.to_owned(), why);
        Self::of(certificates("--cacert", path)?, provider).map_err(failed)
    }

    fn of(given: Vec<CertificateDer<'static>>, provider: &Arc<CryptoProvider>) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in &given {
            roots.add(certificate.clone()).map_err(|e| e.to_string())?;
        }
        let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
            .build()
            .map_err(|e| e.to_string())?;
        Ok(Self::Certificates(webpki, given))
    }
}

/// Verifier of a service's certificate by a [`CertificateTrust`]. Signatures of the handshake are always verified, so
/// that a broken peer does not look valid.
#[derive(Debug)]
struct CertificateVerifier {
    trust: CertificateTrust,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match &self.trust {
            CertificateTrust::Any => Ok(ServerCertVerified::assertion()),
            CertificateTrust::Certificates(_, given) if given.iter().any(|given| given == end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            CertificateTrust::Certificates(webpki, _) => {
                webpki.verify_server_cert(end_entity, intermediates, name, ocsp, now)
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
