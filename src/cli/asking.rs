//! What is asked, and over which connections: the flags that every command has that drives load.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::decide::words;
use crate::http::tls::TlsOptions;
use crate::load::Options;
use crate::load::options::RequestBodySource;

const REQUEST: &str = "Request";
const CONNECTION: &str = "Connection";

/// A request, and the connections that it goes over.
#[derive(Clone, Debug, Args)]
pub(super) struct RequestArgs {
    /// Where to, e.g. http://localhost:8080/path
    url: String,

    /// The method [default: GET, or POST with a body]
    #[arg(short, long, value_name = "METHOD", help_heading = REQUEST)]
    method: Option<String>,
    /// A header; repeatable. One without a value takes a default header away
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", help_heading = REQUEST)]
    headers: Vec<String>,
    /// The body, or @FILE (@- is stdin); repeatable: each request takes one at random, by seed
    #[arg(short, long = "body", value_name = "TEXT|@FILE", allow_hyphen_values = true, help_heading = REQUEST)]
    bodies: Vec<RequestBodySource>,
    /// The bodies' weights, in their order
    #[arg(long, value_name = "W,W,...", value_delimiter = ',', help_heading = REQUEST)]
    weights: Vec<f64>,
    /// Basic authentication
    #[arg(short, long, value_name = "USER:PASSWORD", help_heading = REQUEST)]
    auth: Option<String>,
    /// The longest wait for an answer, and for a free connection [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = words::seconds, help_heading = REQUEST)]
    timeout: Option<Duration>,

    /// Close the connection after each answer
    #[arg(long = "no-keepalive", help_heading = CONNECTION)]
    no_keep_alive: bool,
    /// Requests in flight on a connection at a time
    #[arg(long, value_name = "N", help_heading = CONNECTION)]
    pipeline: Option<u64>,
    /// Connect to this Unix socket
    #[arg(long, value_name = "PATH", help_heading = CONNECTION)]
    unix_socket: Option<PathBuf>,
    /// Connect here, whatever the URL's host
    #[arg(long, value_name = "HOST:PORT", help_heading = CONNECTION)]
    connect_to: Option<String>,
    /// Trust the CA certificates in this PEM file only
    #[arg(long = "cacert", value_name = "FILE", help_heading = CONNECTION)]
    ca_cert: Option<PathBuf>,
    /// Our own certificate (PEM); needs --key
    #[arg(long, value_name = "FILE", help_heading = CONNECTION)]
    cert: Option<PathBuf>,
    /// Our own private key (PEM); needs --cert
    #[arg(long, value_name = "FILE", help_heading = CONNECTION)]
    key: Option<PathBuf>,
    /// Accept any certificate
    #[arg(short = 'k', long, help_heading = CONNECTION)]
    insecure: bool,
    /// The name to ask for in TLS [default: the URL's host]
    #[arg(long, value_name = "NAME", help_heading = CONNECTION)]
    sni: Option<String>,
}

/// The command line as the manifest keeps it: without passwords, in whatever way they were written (`-a X`, `-qaX`,
/// `--auth=X`, `X@host`).
pub(super) fn redacted(args: &[OsString], secrets: &[String]) -> Vec<String> {
    let hide = |arg: &OsString| {
        let text = arg.to_string_lossy().into_owned();
        secrets.iter().filter(|secret| !secret.is_empty()).fold(text, |text, secret| text.replace(secret, "***"))
    };
    args.iter().map(hide).collect()
}

/// Headers whose value lets whoever reads it in.
pub(super) fn is_secret(header: &str) -> bool {
    let name = header.trim().to_ascii_lowercase();
    ["authorization", "cookie", "token", "secret", "api-key", "apikey"].iter().any(|word| name.ends_with(word))
}

impl RequestArgs {
    /// Reads the bodies that come from stdin: once, whoever drives the load.
    ///
    /// # Errors
    /// It cannot be read, in one line.
    pub(super) fn read_stdin(&mut self) -> Result<(), String> {
        let is_stdin =
            |body: &&mut RequestBodySource| matches!(body, RequestBodySource::File(path) if path.as_os_str() == "-");
        let mut wanted = self.bodies.iter_mut().filter(is_stdin);
        let Some(body) = wanted.next() else { return Ok(()) };
        if wanted.next().is_some() {
            return Err("-b @-: stdin can be read once; give it to one body".into());
        }
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map_err(|e| format!("-b @-: cannot read stdin: {e}"))?;
        *body = RequestBodySource::Bytes(bytes);
        Ok(())
    }

    /// What nobody who reads the result should learn.
    pub(super) fn secrets(&self) -> Vec<String> {
        let headers = self.headers.iter().filter_map(|line| line.split_once(':'));
        let values = headers.filter(|(name, _)| is_secret(name)).map(|(_, value)| value.trim());
        let after_scheme = self.url.split_once("://").map_or(self.url.as_str(), |(_, rest)| rest);
        let authority = after_scheme.split(['/', '?', '#']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map(|(user, _)| user);
        values.chain(user).chain(self.auth.as_deref()).map(str::to_owned).collect()
    }

    /// The form that a load has, with nothing about its pace filled in.
    pub(super) fn into_options(self) -> Options {
        Options {
            url: self.url,
            method: self.method,
            headers: self.headers,
            bodies: self.bodies,
            weights: self.weights,
            auth: self.auth,
            timeout: self.timeout,
            no_keepalive: self.no_keep_alive,
            pipeline: self.pipeline,
            unix_socket: self.unix_socket,
            connect_to: self.connect_to,
            tls: TlsOptions { cacert: self.ca_cert, cert: self.cert, key: self.key, insecure: self.insecure },
            sni: self.sni,
            ..Options::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_holds_no_password() {
        let typed = [
            "weir",
            "load",
            "http://me:pw@h/a@b",
            "-a",
            "me:pw",
            "-ame:pw",
            "--auth=me:pw",
            "-H",
            "Authorization: Bearer pw",
            "-HX-Api-Key: pw",
            "--header=cookie: pw",
            "-H",
            "Accept: */*",
        ];
        let kept = redacted(&typed.map(OsString::from), &["me:pw", "Bearer pw", "pw"].map(String::from));
        assert!(!kept.join(" ").contains("pw"), "{kept:?}");
        assert_eq!(kept[2], "http://***@h/a@b");
        assert_eq!(kept.last().map(String::as_str), Some("Accept: */*"));
    }
}
