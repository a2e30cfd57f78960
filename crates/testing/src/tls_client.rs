//! Clients that speak TLS, one setting for several connections.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion};

use super::certificates::{Authority, Pair};
use super::raw::Raw;
use super::raw_stream::RawStream;

/// Nothing takes longer than this.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client, with the sessions of its earlier connections.
#[derive(Clone)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
}

/// Options of a client.
#[derive(Default)]
pub struct TlsClientBuilder<'a> {
    identity: Option<&'a Pair>,
    versions: Option<&'a [&'static SupportedProtocolVersion]>,
    alpn: &'a [&'static str],
}

impl<'a> TlsClientBuilder<'a> {
    /// A certificate of its own.
    #[must_use]
    pub fn identity(mut self, pair: &'a Pair) -> Self {
        self.identity = Some(pair);
        self
    }

    /// These versions of TLS only.
    #[must_use]
    pub fn versions(mut self, versions: &'a [&'static SupportedProtocolVersion]) -> Self {
        self.versions = Some(versions);
        self
    }

    /// Protocols that it offers.
    #[must_use]
    pub fn alpn(mut self, protocols: &'a [&'static str]) -> Self {
        self.alpn = protocols;
        self
    }

    /// The client, which trusts this authority alone.
    pub fn trusting(self, authority: &Authority) -> TlsClient {
        let mut roots = RootCertStore::empty();
        roots.add(authority.certificate()).unwrap();
        let versions = self.versions.unwrap_or(rustls::ALL_VERSIONS);
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match self.identity {
            Some(pair) => {
                let chain = vec![CertificateDer::from_pem_slice(pair.cert.as_bytes()).unwrap()];
                let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = self.alpn.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        TlsClient { config: Arc::new(config) }
    }
}

impl TlsClient {
    pub fn build<'a>() -> TlsClientBuilder<'a> {
        TlsClientBuilder::default()
    }

    /// A connection after its handshake, to the server of this name; or why there is none.
    pub fn try_connect(&self, address: &str, name: &str) -> io::Result<Raw> {
        self.on(TcpStream::connect(address)?, name)
    }

    /// The same over a connection that is there already.
    pub fn on(&self, stream: TcpStream, name: &str) -> io::Result<Raw> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let connection = ClientConnection::new(Arc::clone(&self.config), name).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        while stream.conn.is_handshaking() {
            match stream.conn.complete_io(&mut stream.sock) {
                // A read with a timeout ends so when this process was stopped for a while.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => {
                    done?;
                }
            }
        }
        Ok(Raw::over(RawStream::Tls(Box::new(stream))))
    }

    /// A connection after its handshake.
    pub fn connect(&self, address: &str, name: &str) -> Raw {
        self.try_connect(address, name).unwrap()
    }

    /// Configuration that all connections of the client share, for other libraries.
    pub fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }
}
