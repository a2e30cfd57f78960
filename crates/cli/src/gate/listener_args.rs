//! The flags of `weir gate` about where it listens.

use std::path::PathBuf;

use clap::Args;

use super::ConfigErrors;
use super::SERVER;
use weir_gate::config::{Config, ListenerConfig};
use weir_machine::max_connections;
use weir_server::tls::{CertificateFiles, ClientAuth, MinTlsVersion, ServerTlsOptions};
use weir_server::{ConnectionLimits, ListenAddress, MAX_OPEN_FILES, Proxies};

/// Listener flags.
#[derive(Debug, Args)]
pub(super) struct ListenerArgs {
    /// listen on HOST:PORT, PORT, unix:/PATH or systemd:NAME [default: the file's, or 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address, help_heading = SERVER)]
    listen: Option<ListenAddress>,
    /// serve HTTPS with this certificate chain (PEM), reread when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = SERVER)]
    tls_cert: Option<PathBuf>,
    /// use this private key (PEM) for --tls-cert
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = SERVER)]
    tls_key: Option<PathBuf>,
    /// serve the admin API here: metrics, health, state, draining [default: the file's, or none]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address, help_heading = SERVER)]
    pub(super) admin: Option<ListenAddress>,
    /// accept at most N connections [default: 3/4 of the open-file limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000), help_heading = SERVER)]
    max_connections: Option<u32>,
    /// accept at most N connections per address [default: half of --max-connections]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000), help_heading = SERVER)]
    max_connections_per_address: Option<u32>,
}

/// Parses `HOST:PORT`, `[::1]:PORT`, `:PORT`, `PORT`, `unix:/PATH` or `systemd:NAME`.
pub(super) fn parse_address(text: &str) -> Result<ListenAddress, String> {
    let port = text.strip_prefix(':').unwrap_or(text);
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let address = match port.parse().ok().filter(|_| is_port) {
        Some(port) => Some(ListenAddress::Tcp("127.0.0.1".to_owned(), port)),
        None => ListenAddress::parse(text),
    };
    address.ok_or_else(|| "write it as 127.0.0.1:8080, [::1]:8080, 8080, unix:/PATH or systemd:NAME".to_owned())
}

impl ListenerArgs {
    /// Limits of the connections of all listeners. By default a quarter of the descriptors is left to upstreams and the
    /// admin listener, and half of the others to further callers beside one address.
    pub(super) fn connection_limits(&self) -> ConnectionLimits {
        let files = max_connections().min(MAX_OPEN_FILES);
        let given = |number: Option<u32>| number.map(u64::from);
        let max = given(self.max_connections).unwrap_or((files - files / 4).max(1));
        let max_per_address = given(self.max_connections_per_address).unwrap_or(max.div_ceil(2));
        let saturated = |number: u64| usize::try_from(number).ok();
        ConnectionLimits { max: saturated(max), max_per_address: saturated(max_per_address), ..Default::default() }
    }

    /// The listeners of file and flags.
    ///
    /// # Errors
    /// Flags for one listener beside several in the file.
    pub(super) fn listeners(&self, config: &Config) -> Result<Vec<ListenerConfig>, ConfigErrors> {
        if !config.listeners.is_empty() {
            let flag = self.listen.as_ref().map(|_| "--listen").or(self.tls_cert.as_ref().map(|_| "--tls-cert"));
            return match flag {
                None => Ok(config.listeners.clone()),
                Some(flag) => {
                    Err(vec![format!("{flag} and the file's [[listeners]] cannot be combined; leave out one of them")])
                }
            };
        }
        let address = self.listen.clone().or_else(|| config.listen.clone());
        let certificates = self.tls_cert.clone().zip(self.tls_key.clone());
        Ok(vec![ListenerConfig {
            name: ListenerConfig::ONLY.to_owned(),
            address: address.unwrap_or_else(|| ListenAddress::Tcp("127.0.0.1".to_owned(), 8080)),
            tls: certificates.map(|(cert, key)| ServerTlsOptions {
                certificates: vec![CertificateFiles { cert, key, ocsp: None }],
                client_ca: None,
                client_auth: ClientAuth::default(),
                min_version: MinTlsVersion::default(),
            }),
            proxy_protocol: Proxies::default(),
            redirect_to_https: None,
            max_connections: None,
            max_connections_per_address: None,
        }])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    #[test]
    fn a_port_alone_is_one_of_this_machine() {
        for (text, expected) in [
            ("8080", "127.0.0.1:8080"),
            (":0", "127.0.0.1:0"),
            ("[::1]:80", "[::1]:80"),
            ("localhost:80", "localhost:80"),
            ("unix:a.sock", "unix:a.sock"),
            ("systemd:0", "systemd:0"),
        ] {
            assert_eq!(parse_address(text).unwrap().to_string(), expected);
        }
        for wrong in ["", ":", "65536", ":+1", "host", "::1:80"] {
            assert!(parse_address(wrong).is_err(), "{wrong}");
        }
    }
}
