//! Connections to a Redis server.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ::redis::{Client, ClientTlsConfig, Connection, IntoConnectionInfo, TlsCertificates};
use rustls::crypto::ring;

use super::address::RedisAddress;
use super::error_line;
use weir_net::tls::{Tls, TlsOptions};

/// Reason why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisConnectError {
    /// Passing: another attempt may succeed.
    Unreachable(String),
    /// Permanent: another attempt would fail, too.
    Rejected(String),
}

impl RedisAddress {
    /// Client; certificates are read again each time, since they may be replaced while the program runs.
    pub(super) fn client(&self) -> Result<Client, String> {
        let why = |error: ::redis::RedisError| error.detail().unwrap_or("it is not understood").to_owned();
        let info = self.text.as_str().into_connection_info();
        let info = info.map_err(|error| format!("{}; write redis://HOST:PORT", why(error)))?;
        if self.text.starts_with("rediss://") {
            // The client uses the default provider of the process, which is ambiguous with several.
            let _ = ring::default_provider().install_default();
            return Client::build_with_tls(info, certificates(&self.tls)?).map_err(why);
        }
        if self.tls != TlsOptions::default() {
            return Err("cacert, cert, cert_key and insecure are for TLS; write rediss://".into());
        }
        Client::open(info).map_err(why)
    }

    /// Connects within this time; `reply` is the timeout of each reply.
    ///
    /// # Errors
    /// See [`RedisConnectError`].
    pub fn connect(&self, within: Duration, reply: Duration) -> Result<Connection, RedisConnectError> {
        let client = self.client().map_err(RedisConnectError::Rejected)?;
        let connection = client.get_connection_with_timeout(within).map_err(|error| {
            let why = error_line(&error);
            let is_passing = error.is_io_error() || error.is_timeout();
            // This is an error of the socket, but permanent.
            if why.contains("invalid peer certificate") {
                let remedy = "name its authority with cacert=FILE";
                return RedisConnectError::Rejected(format!("certificate verification failed ({why}); {remedy}"));
            }
            if is_passing { RedisConnectError::Unreachable(why) } else { RedisConnectError::Rejected(why) }
        })?;
        let timeouts =
            connection.set_read_timeout(Some(reply)).and_then(|()| connection.set_write_timeout(Some(reply)));
        timeouts.map_err(|error| RedisConnectError::Unreachable(error_line(&error)))?;
        Ok(connection)
    }
}

fn certificates(options: &TlsOptions) -> Result<TlsCertificates, String> {
    Tls::shared(options).map_err(|why| why.to_string().replace("--cert-key", "cert_key").replace("--", ""))?;
    let read = |path: &PathBuf| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let client_tls = match (&options.cert, &options.key) {
        (Some(cert), Some(key)) => Some(ClientTlsConfig { client_cert: read(cert)?, client_key: read(key)? }),
        _ => None,
    };
    let root_cert = options.cacert.as_ref().map(read).transpose()?;
    Ok(TlsCertificates { client_tls, root_cert })
}
