//! Address of a Redis server.

use std::fmt;

use weir_net::tls::TlsOptions;

/// A server: `redis://[USER:PASSWORD@]HOST[:PORT][/DB]`;
/// `rediss://...[?cacert=FILE&cert=FILE&cert_key=FILE&insecure=1]` over TLS; `redis+unix:///PATH[?db=N]` by a socket of
/// the file system.
#[derive(Clone)]
pub struct RedisAddress {
    /// Address as written, without parameters of weir.
    pub(super) text: String,
    redacted: String,
    pub(super) tls: TlsOptions,
}

/// Equal for the same server and user; other parameters may differ.
impl PartialEq for RedisAddress {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, &self.tls) == (&other.text, &other.tls)
    }
}

impl Eq for RedisAddress {}

const SCHEMES: [&str; 4] = ["redis://", "rediss://", "redis+unix://", "unix://"];

impl RedisAddress {
    /// Whether the text has the scheme of an address.
    pub fn is_address(text: &str) -> bool {
        SCHEMES.iter().any(|scheme| text.starts_with(scheme))
    }

    /// Parses an address. Returns it with the parameters that are not about the server, as names and values.
    ///
    /// # Errors
    /// The error and its remedy.
    pub fn parse(text: &str) -> Result<(Self, Vec<(String, String)>), String> {
        let (place, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut rest, mut more, mut tls) = (Vec::new(), Vec::new(), TlsOptions::default());
        for word in query.split('&').filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            match name {
                "db" | "user" | "pass" | "protocol" => rest.push(word),
                "cacert" => tls.cacert = Some(value.into()),
                "cert" => tls.cert = Some(value.into()),
                "cert_key" => tls.key = Some(value.into()),
                "insecure" => tls.insecure = parse_flag(name, value)?,
                _ => more.push((name.to_owned(), value.to_owned())),
            }
        }
        let end = if tls.insecure { "#insecure" } else { "" };
        let query = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
        let address = Self { text: format!("{place}{query}{end}"), redacted: Self::redact(text), tls };
        address.client()?;
        Ok((address, more))
    }

    /// No client: the program has none.
    #[cfg(not(feature = "redis"))]
    fn client(&self) -> Result<(), String> {
        Err(super::LEFT_OUT.to_owned())
    }

    /// Address without user and password, for messages.
    pub fn redacted(&self) -> &str {
        &self.redacted
    }

    /// Text of an address, possibly invalid, without user and password.
    pub fn redact(text: &str) -> String {
        let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
        let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
        let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
        let is_plain = |word: &&str| !word.starts_with("pass=") && !word.starts_with("user=");
        let query: Vec<&str> =
            query.unwrap_or_default().split('&').filter(|word| !word.is_empty()).filter(is_plain).collect();
        let end = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
        format!("{scheme}://{place}{end}")
    }
}

/// Parses a switch in an address.
///
/// # Errors
/// It is neither 1 nor 0.
pub fn parse_flag(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err(format!("{name} is '{value}'; write 1 or 0")),
    }
}

impl fmt::Debug for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.redacted).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_about_the_server_is_its_and_no_password_is_shown() {
        let (address, more) = RedisAddress::parse("redis://me:secret@host:7000/2?queue=orders&db=3&strict").unwrap();
        assert_eq!(more, [("queue".to_owned(), "orders".to_owned()), ("strict".to_owned(), String::new())]);
        assert_eq!(address.redacted(), "redis://host:7000/2?queue=orders&db=3&strict");
        assert_eq!(format!("{address:?}"), format!("Address({:?})", address.redacted()));
        let (socket, _) = RedisAddress::parse("redis+unix:///run/redis.sock?db=1&pass=secret").unwrap();
        assert_eq!(socket.redacted(), "redis+unix:///run/redis.sock?db=1");
        let same = RedisAddress::parse("redis://me:secret@host:7000/2?db=3").unwrap().0;
        let other = RedisAddress::parse("redis://me:other@host:7000/2?db=3").unwrap().0;
        assert!(address == same && address != other);
        assert!(
            RedisAddress::is_address("rediss://host")
                && !RedisAddress::is_address("jobs.db")
                && !RedisAddress::is_address("memory")
        );
    }

    #[test]
    fn what_is_no_address_is_told_with_its_remedy() {
        for (text, remedy) in [
            ("redis://a:secret@host:no", "write redis://HOST:PORT"),
            ("redis://a:secret@host?cacert=ca.pem", "write rediss://"),
            ("rediss://a:secret@host?insecure=yes", "insecure is 'yes'; write 1 or 0"),
            ("rediss://a:secret@host?cacert=nowhere.pem", "cacert nowhere.pem: "),
            ("rediss://a:secret@host?insecure=1&cert=cert.pem", "go together"),
        ] {
            let why = RedisAddress::parse(text).unwrap_err();
            assert!(why.contains(remedy) && !why.contains("secret") && why.lines().count() == 1, "{why}");
        }
    }
}
