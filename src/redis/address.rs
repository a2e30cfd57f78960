//! Where a Redis server is, as a person writes it, and a connection to it.

use std::fmt;
use std::time::Duration;

use ::redis::{Client, Connection, ConnectionInfo, IntoConnectionInfo};

use super::words;

/// A server: `redis://[USER:PASSWORD@]HOST[:PORT][/DB]`, with `rediss` over TLS; `redis+unix:///PATH[?db=N]` by a socket
/// of the file system.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// As it was written, for the server.
    text: String,
    shown: String,
}

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoConnection {
    /// It may be there later.
    Away(String),
    /// To try again would not help.
    Refused(String),
}

const SCHEMES: [&str; 4] = ["redis://", "rediss://", "redis+unix://", "unix://"];

impl Address {
    /// Whether it is meant to be one.
    pub fn is(text: &str) -> bool {
        SCHEMES.iter().any(|scheme| text.starts_with(scheme))
    }

    /// Reads it. What stands after a `?` and is not about the server comes back beside it, as names and values.
    ///
    /// # Errors
    /// What is wrong with it, and what to write.
    pub fn read(text: &str) -> Result<(Self, Vec<(String, String)>), String> {
        let (place, asked) = text.split_once('?').unwrap_or((text, ""));
        let (mut rest, mut more) = (Vec::new(), Vec::new());
        for word in asked.split('&').filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            match name {
                "db" | "user" | "pass" | "protocol" => rest.push(word),
                _ => more.push((name.to_owned(), value.to_owned())),
            }
        }
        let text_of_server = if rest.is_empty() { place.to_owned() } else { format!("{place}?{}", rest.join("&")) };
        let address = Self { text: text_of_server, shown: Self::shown_of(text) };
        address.info()?;
        Ok((address, more))
    }

    fn info(&self) -> Result<ConnectionInfo, String> {
        let info = self.text.as_str().into_connection_info();
        info.map_err(|error| format!("{}; write redis://HOST:PORT", error.detail().unwrap_or("it is not understood")))
    }

    /// What may be shown of it: no name, no password.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// What may be shown of what is meant to be an address.
    pub fn shown_of(text: &str) -> String {
        let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
        let (place, asked) = rest.split_once('?').map_or((rest, None), |(place, asked)| (place, Some(asked)));
        let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
        let is_plain = |word: &&str| !word.starts_with("pass=") && !word.starts_with("user=");
        let asked: Vec<&str> =
            asked.unwrap_or_default().split('&').filter(|word| !word.is_empty()).filter(is_plain).collect();
        let end = if asked.is_empty() { String::new() } else { format!("?{}", asked.join("&")) };
        format!("{scheme}://{place}{end}")
    }

    /// Connects within this time; from then on every answer may take as long as `answer`.
    ///
    /// # Errors
    /// See [`NoConnection`].
    pub fn connect(&self, within: Duration, answer: Duration) -> Result<Connection, NoConnection> {
        let info = self.info().map_err(NoConnection::Refused)?;
        let client = Client::open(info).map_err(|error| NoConnection::Refused(words(&error)))?;
        let connection = client.get_connection_with_timeout(within).map_err(|error| {
            let is_passing = error.is_io_error() || error.is_timeout();
            if is_passing { NoConnection::Away(words(&error)) } else { NoConnection::Refused(words(&error)) }
        })?;
        let timeouts =
            connection.set_read_timeout(Some(answer)).and_then(|()| connection.set_write_timeout(Some(answer)));
        timeouts.map_err(|error| NoConnection::Away(words(&error)))?;
        Ok(connection)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.shown).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_about_the_server_is_its_and_no_password_is_shown() {
        let (address, more) = Address::read("redis://me:secret@host:7000/2?queue=orders&db=3&strict").unwrap();
        assert_eq!(more, [("queue".to_owned(), "orders".to_owned()), ("strict".to_owned(), String::new())]);
        assert_eq!(address.shown(), "redis://host:7000/2?queue=orders&db=3&strict");
        assert_eq!(format!("{address:?}"), format!("Address({:?})", address.shown()));
        let (socket, _) = Address::read("redis+unix:///run/redis.sock?db=1&pass=secret").unwrap();
        assert_eq!(socket.shown(), "redis+unix:///run/redis.sock?db=1");
        assert!(Address::is("rediss://host") && !Address::is("jobs.db") && !Address::is("memory"));
    }

    #[test]
    fn what_is_no_address_is_told_with_its_remedy() {
        let why = Address::read("redis://a:secret@host:no").unwrap_err();
        assert!(why.contains("write redis://HOST:PORT") && !why.contains("secret"), "{why}");
    }
}
