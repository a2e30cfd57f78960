//! Address of a queue on a Redis server.

use std::fmt;
use std::path::PathBuf;

use crate::store::StoreError;
use weir_base::Nanos;
use weir_base::units;
use weir_redis as redis;

/// Address of a queue: what [`redis::RedisAddress`] reads, and `queue=NAME`, `strict=1`, `lease=3s`.
#[derive(Clone)]
pub struct QueueAddress {
    pub(super) server: redis::RedisAddress,
    /// Prefix of all keys of the queue.
    pub(super) prefix: String,
    /// Whether a server that may lose accepted jobs is rejected.
    pub strict: bool,
    /// Lease time: how long a sender counts as alive after its last heartbeat.
    pub lease: Nanos,
}

/// Range of a lease: a shorter one would expire in a pause of any machine, a longer one blocks keys after a crash.
const LEASE_RANGE: (Nanos, Nanos) = (Nanos::from_millis(200), Nanos::from_secs(3600));
const DEFAULT_LEASE: Nanos = Nanos::from_secs(3);

impl QueueAddress {
    /// Whether the text has a scheme of Redis.
    pub fn is_address(text: &str) -> bool {
        redis::RedisAddress::is_address(text)
    }

    /// Parses an address.
    ///
    /// # Errors
    /// One line of text, without the password.
    pub fn read(text: &str) -> Result<Self, StoreError> {
        let wrong = |why: String| StoreError::Address(PathBuf::from(redis::RedisAddress::redact(text)), why);
        let (server, query) = redis::RedisAddress::parse(text).map_err(wrong)?;
        let (mut queue, mut strict, mut lease) = ("jobs".to_owned(), false, DEFAULT_LEASE);
        for (name, value) in query {
            match name.as_str() {
                "queue" => queue = value,
                "strict" => strict = redis::parse_flag(&name, &value).map_err(wrong)?,
                "lease" => lease = units::time(&value).map_err(|why| wrong(format!("lease: {why}")))?.into(),
                _ => return Err(wrong(format!("unknown parameter '{name}'; choose queue, strict or lease"))),
            }
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if queue.is_empty() || queue.len() > 100 || !queue.chars().all(is_name) {
            return Err(wrong(format!(
                "invalid queue '{queue}': not a word of letters, digits, '-', '_' and '.'; write e.g. orders"
            )));
        }
        if lease < LEASE_RANGE.0 || lease > LEASE_RANGE.1 {
            return Err(wrong("invalid lease: not between 200ms and 1h; write e.g. 3s".into()));
        }
        Ok(Self { server, prefix: format!("weir:{queue}:"), strict, lease })
    }

    /// Address without user and password.
    pub fn redacted(&self) -> &str {
        self.server.redacted()
    }

    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(self.redacted())
    }
}

impl fmt::Debug for QueueAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QueueAddress").field(&self.redacted()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_server_a_queue_and_options() {
        let address = QueueAddress::read("redis://me:secret@host:7000/2?queue=orders&strict=1&lease=500ms").unwrap();
        assert_eq!((address.prefix.as_str(), address.strict), ("weir:orders:", true));
        assert_eq!(address.lease, Nanos::from_millis(500));
        assert_eq!(address.redacted(), "redis://host:7000/2?queue=orders&strict=1&lease=500ms");
        assert_eq!(format!("{address:?}"), format!("QueueAddress({:?})", address.redacted()));
        let socket = QueueAddress::read("redis+unix:///run/redis.sock?db=1&pass=secret").unwrap();
        assert_eq!((socket.prefix.as_str(), socket.lease), ("weir:jobs:", DEFAULT_LEASE));
        assert_eq!(socket.redacted(), "redis+unix:///run/redis.sock?db=1");
        assert!(
            QueueAddress::is_address("rediss://host")
                && !QueueAddress::is_address("jobs.db")
                && !QueueAddress::is_address("memory")
        );
    }

    #[test]
    fn errors_of_an_address_do_not_contain_its_password() {
        for (text, why) in [
            ("redis://a:secret@host?queue=a b", "invalid queue 'a b'"),
            ("redis://a:secret@host?queue=", "invalid queue ''"),
            ("redis://a:secret@host?strict=yes", "strict is 'yes'"),
            ("redis://a:secret@host?lease=1", "invalid time '1'"),
            ("redis://a:secret@host?lease=1ms", "not between 200ms and 1h"),
            ("redis://a:secret@host?size=1", "unknown parameter 'size'"),
            ("redis://a:secret@host?insecure=1", "write rediss://"),
            ("redis://a:secret@host:no", "write redis://HOST:PORT"),
        ] {
            let error = QueueAddress::read(text).unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("secret") && error.lines().count() == 1, "{text}: {error}");
        }
    }
}
