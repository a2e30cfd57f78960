//! Certificates made for the test, and services that use them.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};

use super::weir::Weir;

/// A certificate authority.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, PEM.
pub struct Pair {
    pub cert: String,
    pub key: String,
}

impl Pair {
    /// Both as files in the folder: `NAME.pem` and `NAME-key.pem`.
    pub fn files(&self, weir: &Weir, name: &str) {
        weir.write(&format!("{name}.pem"), &self.cert);
        weir.write(&format!("{name}-key.pem"), &self.key);
    }

    /// The certificate in DER.
    pub fn der(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.cert.as_bytes()).unwrap()
    }
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    /// Its own certificate as a file in the folder.
    pub fn file(&self, weir: &Weir, name: &str) -> PathBuf {
        weir.write(name, self.issuer.pem())
    }

    /// Its own certificate.
    pub fn certificate(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
    }

    /// A certificate for a name or an IP address.
    pub fn issue(&self, name: &str) -> Pair {
        self.issue_for(&[name])
    }

    /// A certificate for several names; the first one is its common name.
    pub fn issue_for(&self, names: &[&str]) -> Pair {
        let key = KeyPair::generate().unwrap();
        let alternatives: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(alternatives).unwrap();
        // OpenSSL takes one that bears its issuer's name for self-signed.
        params.distinguished_name.push(DnType::CommonName, names[0]);
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        Pair { cert: cert.pem(), key: key.serialize_pem() }
    }

    /// Configuration of a service with a certificate for `name`.
    pub fn service(&self, name: &str) -> Arc<ServerConfig> {
        self.config(name, rustls::ALL_VERSIONS, false)
    }

    /// The same, with these versions of TLS only.
    pub fn service_of(&self, name: &str, versions: &[&'static SupportedProtocolVersion]) -> Arc<ServerConfig> {
        self.config(name, versions, false)
    }

    /// The same, and it takes only clients with a certificate from this authority.
    pub fn service_for_known_clients(&self, name: &str) -> Arc<ServerConfig> {
        self.config(name, rustls::ALL_VERSIONS, true)
    }

    fn config(&self, name: &str, versions: &[&'static SupportedProtocolVersion], known: bool) -> Arc<ServerConfig> {
        let key = KeyPair::generate().unwrap();
        let cert = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        let provider = Arc::new(ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(versions).unwrap();
        let builder = if known {
            let mut roots = RootCertStore::empty();
            roots.add(self.issuer.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        Arc::new(builder.with_single_cert(vec![cert.der().clone()], key).unwrap())
    }
}
