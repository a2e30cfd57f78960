//! Flags of how services are reached, shared by `load`, `capacity` and `run`.

use std::path::PathBuf;

use clap::Args;

use weir_load::Options;
use weir_net::tls::TlsOptions;

/// Heading of these flags in the help.
pub(super) const CONNECTION: &str = "Connection";

/// Addresses and certificates.
#[derive(Clone, Debug, Args)]
pub(super) struct ConnectionArgs {
    /// connect to this Unix socket
    #[arg(long, value_name = "PATH", help_heading = CONNECTION)]
    unix_socket: Option<PathBuf>,
    /// connect to this address instead of the URL's
    #[arg(long, value_name = "HOST:PORT", help_heading = CONNECTION)]
    connect_to: Option<String>,
    #[command(flatten)]
    certificate_args: CertificateArgs,
    /// skip certificate verification
    #[arg(short = 'k', long, help_heading = CONNECTION)]
    pub(super) insecure: bool,
}

/// Certificates that are trusted, and the one that is presented.
#[derive(Clone, Debug, Args)]
pub(super) struct CertificateArgs {
    /// trust these CA certificates (PEM) instead of the system's
    #[arg(long = "cacert", value_name = "FILE", help_heading = CONNECTION)]
    ca_cert: Option<PathBuf>,
    /// present this client certificate (PEM); needs --cert-key
    #[arg(long, value_name = "FILE", help_heading = CONNECTION)]
    cert: Option<PathBuf>,
    /// use this private key (PEM) for --cert
    #[arg(long = "cert-key", value_name = "FILE", help_heading = CONNECTION)]
    cert_key: Option<PathBuf>,
}

impl CertificateArgs {
    /// Options of TLS with these; `insecure` skips the verification.
    pub(super) fn into_options(self, insecure: bool) -> TlsOptions {
        TlsOptions { cacert: self.ca_cert, cert: self.cert, key: self.cert_key, insecure, ..TlsOptions::default() }
    }
}

impl ConnectionArgs {
    /// Options with these alone.
    pub(super) fn into_options(self) -> Options {
        Options {
            unix_socket: self.unix_socket,
            connect_to: self.connect_to,
            tls: self.certificate_args.into_options(self.insecure),
            ..Options::default()
        }
    }
}
