//! Addresses to listen on, as text.

use std::fmt;
use std::path::PathBuf;

/// TCP, Unix or systemd socket to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// A TCP port of a host's address; port 0 lets the system choose.
    Tcp(String, u16),
    /// A Unix socket, which is created.
    Unix(PathBuf),
    /// A socket that systemd has opened (socket activation), by its name (`FileDescriptorName=`) or number from 0.
    Systemd(String),
}

impl ListenAddress {
    /// Parses `HOST:PORT`, `[::1]:PORT`, `unix:/PATH` or `systemd:NAME`.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(path) = text.strip_prefix("unix:") {
            return (!path.is_empty() && !path.contains('\0')).then(|| Self::Unix(path.into()));
        }
        if let Some(name) = text.strip_prefix("systemd:") {
            // The characters of `FileDescriptorName=`.
            let is_name = name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':');
            return (!name.is_empty() && is_name).then(|| Self::Systemd(name.to_owned()));
        }
        let (host, port) = text.rsplit_once(':')?;
        let port = Some(port).filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()?;
        let is_host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(inner) => inner.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && !host.contains([':', '[', ']', ' ', '/']),
        };
        is_host.then(|| Self::Tcp(host.to_owned(), port))
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Systemd(name) => write!(f, "systemd:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    #[test]
    fn addresses_parse() {
        for text in ["127.0.0.1:80", "[::1]:0", "localhost:65535", "unix:/run/gate.sock", "systemd:http", "systemd:0"] {
            assert_eq!(ListenAddress::parse(text).unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "80",
            ":80",
            "::1:80",
            "[::x]:80",
            "h:65536",
            "h:+1",
            "h:",
            "a/b:1",
            "unix:",
            "systemd:",
            "systemd:a:b",
        ] {
            assert_eq!(ListenAddress::parse(wrong), None, "{wrong}");
        }
    }
}
