//! Address that scrapes are served at.

use std::str::FromStr;

/// Address that scrapes are served at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrapeAddress {
    /// Address or name of the host.
    pub host: String,
    /// Port; 0 lets the system choose.
    pub port: u16,
}

impl FromStr for ScrapeAddress {
    type Err = String;

    /// Reads `HOST:PORT`, `[::1]:PORT`, `:PORT` or `PORT`; the default host is this machine alone.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("invalid address '{text}'; write HOST:PORT, e.g. 127.0.0.1:9095, or a URL");
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        let port = port.parse().map_err(|_| wrong())?;
        match host {
            "" => Ok(Self { host: "127.0.0.1".to_owned(), port }),
            host if host.chars().all(is_host) => Ok(Self { host: host.to_owned(), port }),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port() {
        let read = |text: &str| text.parse::<ScrapeAddress>().map(|address| (address.host, address.port));
        assert_eq!(read("9095"), Ok(("127.0.0.1".to_owned(), 9095)));
        assert_eq!(read(":9095"), Ok(("127.0.0.1".to_owned(), 9095)));
        assert_eq!(read("[::1]:0"), Ok(("::1".to_owned(), 0)));
        assert_eq!(read("0.0.0.0:80"), Ok(("0.0.0.0".to_owned(), 80)));
        for wrong in ["", "localhost", "a b:1", "h/x:1", "127.0.0.1:99999", "h:"] {
            assert!(read(wrong).is_err_and(|why| why.contains("HOST:PORT")), "{wrong}");
        }
    }
}
