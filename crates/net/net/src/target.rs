//! The target of requests: a URL and the addresses behind it.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use crate::address_race;
use weir_request::origin::CredentialOrigin;
use weir_request::url::{HttpUrl, UrlError};

/// Target of requests: the parts of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The URL, without user and password.
    pub url: String,
    /// Whether to speak TLS.
    pub tls: bool,
    /// Host in lower case without brackets, which the certificate must name.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path and query, beginning with `/`.
    pub path: String,
    /// `user:password` from the URL, decoded; the colon is always there.
    pub userinfo: Option<Box<[u8]>>,
}

/// An address that a socket can connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketAddress {
    /// IPv4 or IPv6.
    Inet(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl fmt::Display for SocketAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inet(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Reason why a URL is unusable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetError {
    /// Not a URL of http or https.
    Url(UrlError),
    /// `--connect-to` is not HOST:PORT.
    ConnectTo(String),
    /// The name has no address.
    Resolve(String, String),
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(error) => error.fmt(f),
            Self::ConnectTo(text) => write!(f, "--connect-to '{}': write it as HOST:PORT", text.escape_debug()),
            Self::Resolve(host, why) => write!(f, "no address for host '{}': {why}", host.escape_debug()),
        }
    }
}

impl From<UrlError> for TargetError {
    fn from(error: UrlError) -> Self {
        Self::Url(error)
    }
}

impl From<&HttpUrl> for Target {
    fn from(url: &HttpUrl) -> Self {
        Self {
            url: url.to_string(),
            tls: url.is_tls(),
            host: url.host_without_brackets().to_owned(),
            port: url.port(),
            // All of it is ASCII.
            path: String::from_utf8_lossy(url.target()).into_owned(),
            userinfo: url.userinfo().map(Box::from),
        }
    }
}

impl Target {
    /// Parses a URL as people type it; without a scheme it is http.
    ///
    /// # Errors
    /// If the text is not a URL, or has another scheme.
    pub fn parse(url: &str) -> Result<Self, UrlError> {
        HttpUrl::parse_typed(url).map(|url| Self::from(&url))
    }

    /// Target of the path `/` at a host without brackets.
    pub fn of_host(tls: bool, host: &str, port: u16) -> Self {
        let mut target =
            Self { url: String::new(), tls, host: host.to_owned(), port, path: "/".to_owned(), userinfo: None };
        target.url = format!("{}/", target.origin());
        target
    }

    /// Scheme, host and port, without the scheme's default port.
    pub fn origin(&self) -> String {
        format!("{}://{}", if self.tls { "https" } else { "http" }, self.host_header())
    }

    /// Origin to which credentials for it belong.
    pub fn credential_origin(&self) -> CredentialOrigin<'_> {
        CredentialOrigin { is_tls: self.tls, host: &self.host, port: self.port }
    }

    /// Value of the Host header, without the scheme's default port.
    pub fn host_header(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match (self.tls, self.port) {
            (false, 80) | (true, 443) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }

    /// Addresses in the order in which they are attempted; `connect_to` (HOST:PORT) is resolved in place of the URL's
    /// host.
    ///
    /// # Errors
    /// If the name has no address.
    pub fn resolve(&self, connect_to: Option<&str>) -> Result<Vec<SocketAddress>, TargetError> {
        let (host, port) = match connect_to {
            None => (self.host.as_str(), self.port),
            Some(text) => {
                let bad = || TargetError::ConnectTo(text.to_owned());
                let (host, port) = text.rsplit_once(':').ok_or_else(bad)?;
                (host.trim_start_matches('[').trim_end_matches(']'), port.parse().map_err(|_| bad())?)
            }
        };
        let failed = |why: String| TargetError::Resolve(host.to_owned(), why);
        let found = (host, port).to_socket_addrs().map_err(|e| failed(resolver_message(&e)))?;
        let found: Vec<_> = address_race::in_turn(found).into_iter().map(SocketAddress::Inet).collect();
        if found.is_empty() { Err(failed("the name exists, but has none".into())) } else { Ok(found) }
    }
}

/// The resolver's message without the name of the function.
fn resolver_message(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.rsplit(": ").next().unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_as_people_write_them() {
        let parts = |url: &str| {
            let t = Target::parse(url).expect("valid");
            (t.tls, t.host.clone(), t.port, t.path.clone(), t.host_header())
        };
        let own =
            |tls, host: &str, port, path: &str, header: &str| (tls, host.into(), port, path.into(), header.into());
        assert_eq!(parts("http://localhost"), own(false, "localhost", 80, "/", "localhost"));
        assert_eq!(parts("localhost:8080/x"), own(false, "localhost", 8080, "/x", "localhost:8080"));
        assert_eq!(parts("HTTPS://a.b/c?d=e#f"), own(true, "a.b", 443, "/c?d=e", "a.b"));
        assert_eq!(parts("http://[::1]:9/"), own(false, "::1", 9, "/", "[::1]:9"));
        assert_eq!(parts("http://h?q=1"), own(false, "h", 80, "/?q=1", "h"));
        let user = Target::parse("http://me:p%40ss@h/").expect("valid");
        assert_eq!((user.userinfo.as_deref(), user.url.as_str()), (Some(&b"me:p@ss"[..]), "http://h/"));
        let host = Target::of_host(true, "::1", 443);
        assert_eq!(host, Target::parse("https://[::1]/").expect("valid"));
    }

    #[test]
    fn connect_to_replaces_the_address_only() {
        let target = Target::parse("http://example.invalid/").expect("valid");
        let addresses = target.resolve(Some("[::1]:81")).expect("an address");
        assert_eq!(addresses, [SocketAddress::Inet("[::1]:81".parse().expect("valid"))]);
        assert!(matches!(target.resolve(Some("nope")), Err(TargetError::ConnectTo(_))));
    }
}
