//! Certificates and checks: what the user asked for -> a rustls configuration.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use serde::{Deserialize, Serialize};

/// What the user may say about TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsOptions {
    /// Trust the certificates in this PEM file, and no others.
    pub cacert: Option<PathBuf>,
    /// Our own certificate chain (PEM).
    pub cert: Option<PathBuf>,
    /// Its private key (PEM).
    pub key: Option<PathBuf>,
    /// Accept any certificate.
    pub insecure: bool,
}

/// Why there can be no TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsError {
    /// A file cannot be read, or holds nothing of use.
    File(&'static str, PathBuf, String),
    /// Certificate without key, or key without certificate.
    IncompletePair,
    /// Certificate and key do not belong together.
    Mismatch(String),
    /// The machine's own store of certificates is empty or unreadable.
    NoRoots(String),
    /// The host cannot be named in a certificate.
    Name(String),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(flag, path, why) => write!(f, "{flag} {}: {why}", path.display()),
            Self::IncompletePair => f.write_str("--cert and --cert-key go together; give both"),
            Self::Mismatch(why) => write!(f, "--cert and --cert-key do not fit: {why}"),
            Self::NoRoots(why) => {
                write!(
                    f,
                    "this machine has no usable CA certificates ({why}); install ca-certificates, or give --cacert or -k"
                )
            }
            Self::Name(host) => write!(f, "'{host}' cannot be the name in a certificate"),
        }
    }
}

/// A checked configuration and the name that the service's certificate must bear.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Shared by all connections.
    pub config: Arc<ClientConfig>,
    /// The name asked for (SNI) and checked.
    pub name: ServerName<'static>,
}

impl Tls {
    /// Builds the configuration. Sessions are not resumed: each connection stands for a new client.
    ///
    /// # Errors
    /// When files are missing or do not fit.
    pub fn new(host: &str, options: &TlsOptions) -> Result<Self, TlsError> {
        let mut config = configuration(options)?;
        config.resumption = Resumption::disabled();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = ServerName::try_from(host.to_owned()).map_err(|_| TlsError::Name(host.to_owned()))?;
        Ok(Self { config: Arc::new(config), name })
    }

    /// What the connections of one client share, to whatever host: sessions are resumed.
    ///
    /// # Errors
    /// When files are missing or do not fit.
    pub fn shared(options: &TlsOptions) -> Result<Arc<ClientConfig>, TlsError> {
        configuration(options).map(Arc::new)
    }
}

fn configuration(options: &TlsOptions) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|e| TlsError::Mismatch(e.to_string()))?;
    let trust = match &options.cacert {
        _ if options.insecure => Some(CertificateTrust::Any),
        Some(path) => Some(CertificateTrust::from_file(path, &provider)?),
        None => None,
    };
    let builder = match trust {
        Some(trust) => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(CertificateVerifier { trust, provider }))
        }
        None => builder.with_root_certificates(native_roots()?),
    };
    let config = match (&options.cert, &options.key) {
        (None, None) => builder.with_no_client_auth(),
        (Some(cert), Some(key)) => {
            let chain = certificates("--cert", cert)?;
            let key = PrivateKeyDer::from_pem_file(key)
                .map_err(|e| TlsError::File("--cert-key", key.clone(), e.to_string()))?;
            builder.with_client_auth_cert(chain, key).map_err(|e| TlsError::Mismatch(e.to_string()))?
        }
        _ => return Err(TlsError::IncompletePair),
    };
    Ok(config)
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

/// Whose certificates are taken, where it is not left to the system's store.
#[derive(Debug)]
enum CertificateTrust {
    /// `-k`: anybody's.
    Any,
    /// `--cacert`: what these certificates have signed, and these certificates themselves.
    ///
    /// The latter is for what `openssl req -x509` makes, and many a developer's service uses: a self-signed certificate
    /// that calls itself a CA. As the certificate of a service, webpki refuses it even where it is given as trusted;
    /// OpenSSL, and so curl, takes it. Its name is checked all the same.
    Certificates(Arc<WebPkiServerVerifier>, Vec<CertificateDer<'static>>),
}

impl CertificateTrust {
    fn from_file(path: &Path, provider: &Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let failed = |why: String| TlsError::File("--cacert", path.to_owned(), why);
        let given = certificates("--cacert", path)?;
        let mut roots = RootCertStore::empty();
        for certificate in &given {
            roots.add(certificate.clone()).map_err(|e| failed(e.to_string()))?;
        }
        let webpki = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
            .build()
            .map_err(|e| failed(e.to_string()))?;
        Ok(Self::Certificates(webpki, given))
    }
}

/// Checks a service's certificate against a [`CertificateTrust`]. The handshake's signatures are checked whatever that is: a broken
/// peer should not look sound.
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
