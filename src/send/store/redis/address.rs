//! Where a queue on a Redis server is, as a person writes it.

use std::path::PathBuf;
use std::{fmt, fs};

use ::redis::{Client, ClientTlsConfig, ConnectionInfo, IntoConnectionInfo, TlsCertificates};
use rustls::crypto::ring;

use crate::decide::{Nanos, words};
use crate::http::tls::{Tls, TlsOptions};
use crate::send::store::StoreError;

/// A server, and one of the queues on it:
/// `redis://[USER:PASSWORD@]HOST[:PORT][/DB][?queue=NAME&strict=1&lease=3s]`;
/// `rediss://...[?cacert=FILE&cert=FILE&key=FILE&insecure=1&...]` over TLS;
/// `redis+unix:///PATH[?db=N&...]` by a socket of the file system.
#[derive(Clone)]
pub struct Address {
    pub(super) server: ConnectionInfo,
    shown: String,
    /// What all keys of the queue begin with.
    pub(super) prefix: String,
    /// A server that may lose what it has said to have is refused.
    pub strict: bool,
    /// So long after it was heard of last a sender is given up, and its keys and jobs go to others.
    pub lease: Nanos,
}

const SCHEMES: [&str; 4] = ["redis://", "rediss://", "redis+unix://", "unix://"];
/// A shorter lease would be lost by a pause of any machine, a longer one holds keys up for no use.
const LEASES: (Nanos, Nanos) = (Nanos::from_millis(200), Nanos::from_secs(3600));
const LEASE: Nanos = Nanos::from_secs(3);

impl Address {
    /// Whether it is meant to be one.
    pub fn is(text: &str) -> bool {
        SCHEMES.iter().any(|scheme| text.starts_with(scheme))
    }

    /// Reads it.
    ///
    /// # Errors
    /// What is wrong with it, and what to write.
    pub fn read(text: &str) -> Result<Self, StoreError> {
        let shown = shown(text);
        let wrong = |why: String| StoreError::Address(PathBuf::from(&shown), why);
        let (place, asked) = text.split_once('?').unwrap_or((text, ""));
        let (mut queue, mut strict, mut lease, mut rest) = ("jobs".to_owned(), false, LEASE, Vec::new());
        let mut tls = TlsOptions::default();
        for word in asked.split('&').filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            match name {
                "queue" => value.clone_into(&mut queue),
                "strict" => strict = flag(name, value).map_err(wrong)?,
                "insecure" => tls.insecure = flag(name, value).map_err(wrong)?,
                "cacert" => tls.cacert = Some(value.into()),
                "cert" => tls.cert = Some(value.into()),
                "key" => tls.key = Some(value.into()),
                "lease" => lease = words::time(value).map_err(|why| wrong(format!("lease: {why}")))?.into(),
                "db" | "user" | "pass" | "protocol" => rest.push(word),
                _ => {
                    let why =
                        format!("it has '{name}'; there are queue, strict, lease, cacert, cert, key and insecure");
                    return Err(wrong(why));
                }
            }
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if queue.is_empty() || queue.len() > 100 || !queue.chars().all(is_name) {
            return Err(wrong(format!("its queue is '{queue}'; a name has letters, digits, '-', '_' and '.'")));
        }
        if lease < LEASES.0 || lease > LEASES.1 {
            return Err(wrong("its lease is not between 200ms and 1h; leave it out for 3s".into()));
        }
        let mut plain = if rest.is_empty() { place.to_owned() } else { format!("{place}?{}", rest.join("&")) };
        if tls.insecure {
            plain += "#insecure";
        }
        let mut server = plain.as_str().into_connection_info().map_err(|error| {
            wrong(format!("{}; write redis://HOST:PORT", error.detail().unwrap_or("it is not understood")))
        })?;
        if place.starts_with("rediss://") {
            server = over_tls(server, &tls).map_err(wrong)?;
        } else if tls != TlsOptions::default() {
            return Err(wrong("cacert, cert, key and insecure are for TLS; write rediss://".into()));
        }
        Ok(Self { server, shown, prefix: format!("weir:{queue}:"), strict, lease })
    }

    /// Without a password.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.shown).finish()
    }
}

fn flag(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err(format!("{name} is '{value}'; write 1 or 0")),
    }
}

/// With what is asked of TLS. Files are read now, so that a mistake is told of before anything begins.
fn over_tls(server: ConnectionInfo, options: &TlsOptions) -> Result<ConnectionInfo, String> {
    // The client takes the process's, and would not know which if there were several.
    let _ = ring::default_provider().install_default();
    Tls::shared(options).map_err(|why| why.to_string().replace("--", ""))?;
    let read = |path: &PathBuf| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    let client_tls = match (&options.cert, &options.key) {
        (Some(cert), Some(key)) => Some(ClientTlsConfig { client_cert: read(cert)?, client_key: read(key)? }),
        _ => None,
    };
    let root_cert = options.cacert.as_ref().map(read).transpose()?;
    let client = Client::build_with_tls(server, TlsCertificates { client_tls, root_cert });
    let client = client.map_err(|error| error.detail().unwrap_or("its certificates are not understood").to_owned())?;
    Ok(client.get_connection_info().clone())
}

/// What may be shown of it: no name, no password.
fn shown(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    let (place, asked) = rest.split_once('?').map_or((rest, None), |(place, asked)| (place, Some(asked)));
    let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
    let is_plain = |word: &&str| !word.starts_with("pass=") && !word.starts_with("user=");
    let asked: Vec<&str> =
        asked.unwrap_or_default().split('&').filter(|word| !word.is_empty()).filter(is_plain).collect();
    let end = if asked.is_empty() { String::new() } else { format!("?{}", asked.join("&")) };
    format!("{scheme}://{place}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_server_a_queue_and_its_terms() {
        let address = Address::read("redis://me:secret@host:7000/2?queue=orders&strict=1&lease=500ms").unwrap();
        assert_eq!((address.prefix.as_str(), address.strict), ("weir:orders:", true));
        assert_eq!(address.lease, Nanos::from_millis(500));
        assert_eq!(address.shown(), "redis://host:7000/2?queue=orders&strict=1&lease=500ms");
        assert_eq!(format!("{address:?}"), format!("Address({:?})", address.shown()));
        let socket = Address::read("redis+unix:///run/redis.sock?db=1&pass=secret").unwrap();
        assert_eq!((socket.prefix.as_str(), socket.lease), ("weir:jobs:", LEASE));
        assert_eq!(socket.shown(), "redis+unix:///run/redis.sock?db=1");
        assert!(Address::is("rediss://host") && !Address::is("jobs.db") && !Address::is("memory"));
    }

    #[test]
    fn what_is_wrong_with_an_address_is_told_without_its_password() {
        for (text, why) in [
            ("redis://a:secret@host?queue=a b", "its queue is 'a b'"),
            ("redis://a:secret@host?queue=", "its queue is ''"),
            ("redis://a:secret@host?strict=yes", "strict is 'yes'"),
            ("redis://a:secret@host?lease=1", "'1' is not a time"),
            ("redis://a:secret@host?lease=1ms", "not between 200ms and 1h"),
            ("redis://a:secret@host?size=1", "it has 'size'"),
            ("redis://a:secret@host?insecure=1", "write rediss://"),
            ("redis://a:secret@host?cacert=ca.pem", "write rediss://"),
            ("rediss://a:secret@host?insecure=yes", "insecure is 'yes'"),
            ("rediss://a:secret@host?cacert=nowhere.pem", "cacert nowhere.pem: "),
            ("rediss://a:secret@host?insecure=1&cert=cert.pem", "cert and key go together"),
            ("redis://a:secret@host:no", "write redis://HOST:PORT"),
        ] {
            let told = Address::read(text).unwrap_err().to_string();
            assert!(told.contains(why) && !told.contains("secret") && told.lines().count() == 1, "{text}: {told}");
        }
    }
}
