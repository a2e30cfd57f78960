//! The target of requests: a URL and the addresses behind it.

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use weir_decide::base::secret_mask::without_secrets;

/// A parsed URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The URL as given, without user and password.
    pub url: String,
    /// Whether to speak TLS.
    pub tls: bool,
    /// Host without brackets, which the certificate must name.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path and query, beginning with `/`.
    pub path: String,
    /// `user:password` from the URL, decoded.
    pub userinfo: Option<String>,
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
    /// Not a URL.
    Malformed(String),
    /// Neither http nor https.
    Scheme(String),
    /// `--connect-to` is not HOST:PORT.
    ConnectTo(String),
    /// The name has no address.
    Resolve(String, String),
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(url) => {
                write!(f, "'{}' is not a URL; write it as http://host:port/path", without_secrets(url).escape_debug())
            }
            Self::Scheme(scheme) => write!(f, "scheme '{}' is not known; use http or https", scheme.escape_debug()),
            Self::ConnectTo(text) => write!(f, "--connect-to '{}': write it as HOST:PORT", text.escape_debug()),
            Self::Resolve(host, why) => write!(f, "no address for host '{}': {why}", host.escape_debug()),
        }
    }
}

impl Target {
    /// Parses a URL; without a scheme it is http.
    ///
    /// # Errors
    /// If the text is not a URL, or has another scheme.
    pub fn parse(url: &str) -> Result<Self, TargetError> {
        let bad = || TargetError::Malformed(url.to_owned());
        let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            other => return Err(TargetError::Scheme(other.to_owned())),
        };
        let (_, path) = Self::split(url);
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let (userinfo, authority) = match authority.rsplit_once('@') {
            Some((user, host)) => (Some(percent_decoded(user).ok_or_else(bad)?), host),
            None => (None, authority),
        };
        let parsed: http::uri::Authority = authority.parse().map_err(|_| bad())?;
        let host = without_brackets(parsed.host()).ok_or_else(bad)?.to_owned();
        // http's Authority accepts "host:", "host:99999" and "[::1]x" as without a port.
        let port = match authority.strip_prefix(parsed.host()) {
            Some("") if tls => 443,
            Some("") => 80,
            Some(rest) => port(rest).ok_or_else(bad)?,
            None => return Err(bad()),
        };
        let path = Self::path(path).filter(|_| !host.is_empty()).ok_or_else(bad)?;
        let scheme = if tls { "https" } else { "http" };
        Ok(Self { url: format!("{scheme}://{authority}{path}"), tls, host, port, path, userinfo })
    }

    /// A URL's scheme and authority, and what follows them without the fragment. URLs with equal first parts have equal
    /// targets but for the path, which [`Self::path`] makes of the second part.
    pub fn split(url: &str) -> (&str, &str) {
        let authority = scheme_end(url).map_or(0, |at| at + "://".len());
        let end = url[authority..].find(['/', '?', '#']).map_or(url.len(), |at| authority + at);
        let (origin, rest) = url.split_at(end);
        (origin, rest.split('#').next().unwrap_or_default())
    }

    /// [`Self::path`](field@Self::path) of the second part of a URL; None if it is not valid.
    pub fn path(rest: &str) -> Option<String> {
        let path = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
        path.parse::<http::uri::PathAndQuery>().is_ok().then_some(path)
    }

    /// Value of the Host header, without the scheme's default port.
    pub fn host_header(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match (self.tls, self.port) {
            (false, 80) | (true, 443) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }

    /// Addresses in the resolver's order; `connect_to` (HOST:PORT) is resolved in place of the URL's host.
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
        let found: Vec<SocketAddress> = (host, port)
            .to_socket_addrs()
            .map_err(|e| failed(resolver_message(&e)))?
            .map(SocketAddress::Inet)
            .collect();
        if found.is_empty() { Err(failed("the name exists, but has none".into())) } else { Ok(found) }
    }
}

/// Offset of a URL's first `://`; compared byte by byte, since `find` prepares its search for longer than this takes.
pub fn scheme_end(url: &str) -> Option<usize> {
    url.as_bytes().windows("://".len()).position(|part| part == b"://")
}

/// A name or an IPv4 address as it is, an IPv6 address without its brackets; brackets around anything else are an
/// error.
fn without_brackets(host: &str) -> Option<&str> {
    match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok().then_some(inner),
        None => (!host.contains(['[', ']'])).then_some(host),
    }
}

/// Parses `:8080`; u16's own parser would accept a plus sign.
fn port(text: &str) -> Option<u16> {
    let digits = text.strip_prefix(':').filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()))?;
    digits.parse().ok().filter(|port| *port > 0)
}

/// The resolver's message without the name of the function.
fn resolver_message(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.rsplit(": ").next().unwrap_or(&text).to_owned()
}

/// Text without the escapes of URLs; None if one is not valid.
pub fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first == b'%' {
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        } else {
            bytes.push(first);
        }
    }
    String::from_utf8(bytes).ok()
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
        assert_eq!((user.userinfo.as_deref(), user.url.as_str()), (Some("me:p@ss"), "http://h/"));
    }

    #[test]
    fn what_is_no_url_is_named() {
        for url in [
            "",
            "http://",
            "http://:80/",
            "http://h:99999/",
            "http://h:0/",
            "http://h:/",
            "http://h:+80/",
            "http://h[::1]/",
            "http://[::1]h/",
            "http://[h]/",
            "http://a b/",
            "http://h/a b",
        ] {
            assert!(matches!(Target::parse(url), Err(TargetError::Malformed(_))), "{url}");
        }
        assert_eq!(Target::parse("ftp://h/"), Err(TargetError::Scheme("ftp".into())));
    }

    #[test]
    fn connect_to_replaces_the_address_only() {
        let target = Target::parse("http://example.invalid/").expect("valid");
        let addresses = target.resolve(Some("[::1]:81")).expect("an address");
        assert_eq!(addresses, [SocketAddress::Inet("[::1]:81".parse().expect("valid"))]);
        assert!(matches!(target.resolve(Some("nope")), Err(TargetError::ConnectTo(_))));
    }
}
