//! Address that a page listens on.

use std::net::IpAddr;
use std::str::FromStr;

/// Address that a page listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebAddress {
    /// Address or name of the host.
    pub host: String,
    /// Port; 0 lets the system choose.
    pub port: u16,
}

impl WebAddress {
    /// Default listen address, reachable from this machine only.
    pub const DEFAULT: &str = "127.0.0.1:8089";

    /// Whether only this machine reaches it.
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl FromStr for WebAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("invalid address '{text}'; write HOST:PORT, e.g. {}", Self::DEFAULT);
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let is_host = host.parse::<IpAddr>().is_ok() || (!host.is_empty() && host.chars().all(is_name));
        let port = port.parse().map_err(|_| wrong())?;
        if is_host { Ok(Self { host: host.to_owned(), port }) } else { Err(wrong()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        let read = |text: &str| {
            text.parse::<WebAddress>().map(|address| (address.host.clone(), address.port, address.is_loopback()))
        };
        assert_eq!(read("127.0.0.1:8089"), Ok(("127.0.0.1".to_owned(), 8089, true)));
        assert_eq!(read("[::1]:0"), Ok(("::1".to_owned(), 0, true)));
        assert_eq!(read("localhost:1").map(|read| read.2), Ok(true));
        assert_eq!(read("0.0.0.0:80").map(|read| read.2), Ok(false));
        assert_eq!(read("build-7.example:80").map(|read| read.2), Ok(false));
        for wrong in
            ["", "8089", ":8089", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999", "a b:1", "http://h:1", "h/x:1"]
        {
            assert!(read(wrong).is_err_and(|why| why.contains("HOST:PORT")), "{wrong}");
        }
    }
}
