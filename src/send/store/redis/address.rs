//! Where a queue on a Redis server is, as a person writes it.

use std::fmt;
use std::path::PathBuf;

use crate::decide::{Nanos, words};
use crate::redis;
use crate::send::store::StoreError;

/// A server, and one of the queues on it: what [`redis::RedisAddress`] reads, and `queue=NAME`, `strict=1`, `lease=3s`.
#[derive(Clone)]
pub struct QueueAddress {
    pub(super) server: redis::RedisAddress,
    /// What all keys of the queue begin with.
    pub(super) prefix: String,
    /// A server that may lose what it has said to have is refused.
    pub strict: bool,
    /// So long after it was heard of last a sender is given up, and its keys and jobs go to others.
    pub lease: Nanos,
}

/// A shorter lease would be lost by a pause of any machine, a longer one holds keys up for no use.
const LEASE_RANGE: (Nanos, Nanos) = (Nanos::from_millis(200), Nanos::from_secs(3600));
const DEFAULT_LEASE: Nanos = Nanos::from_secs(3);

impl QueueAddress {
    /// Whether it is meant to be one.
    pub fn is_address(text: &str) -> bool {
        redis::RedisAddress::is_address(text)
    }

    /// Reads it.
    ///
    /// # Errors
    /// What is wrong with it, and what to write.
    pub fn read(text: &str) -> Result<Self, StoreError> {
        let wrong = |why: String| StoreError::Address(PathBuf::from(redis::RedisAddress::redact(text)), why);
        let (server, asked) = redis::RedisAddress::parse(text).map_err(wrong)?;
        let (mut queue, mut strict, mut lease) = ("jobs".to_owned(), false, DEFAULT_LEASE);
        for (name, value) in asked {
            match name.as_str() {
                "queue" => queue = value,
                "strict" => strict = redis::parse_flag(&name, &value).map_err(wrong)?,
                "lease" => lease = words::time(&value).map_err(|why| wrong(format!("lease: {why}")))?.into(),
                _ => return Err(wrong(format!("it has '{name}'; there are queue, strict and lease"))),
            }
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if queue.is_empty() || queue.len() > 100 || !queue.chars().all(is_name) {
            return Err(wrong(format!("its queue is '{queue}'; a name has letters, digits, '-', '_' and '.'")));
        }
        if lease < LEASE_RANGE.0 || lease > LEASE_RANGE.1 {
            return Err(wrong("its lease is not between 200ms and 1h; leave it out for 3s".into()));
        }
        Ok(Self { server, prefix: format!("weir:{queue}:"), strict, lease })
    }

    /// Without a password.
    pub fn redacted(&self) -> &str {
        self.server.redacted()
    }

    pub(super) fn path(&self) -> PathBuf {
        PathBuf::from(self.redacted())
    }
}

impl fmt::Debug for QueueAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.redacted()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_server_a_queue_and_its_terms() {
        let address = QueueAddress::read("redis://me:secret@host:7000/2?queue=orders&strict=1&lease=500ms").unwrap();
        assert_eq!((address.prefix.as_str(), address.strict), ("weir:orders:", true));
        assert_eq!(address.lease, Nanos::from_millis(500));
        assert_eq!(address.redacted(), "redis://host:7000/2?queue=orders&strict=1&lease=500ms");
        assert_eq!(format!("{address:?}"), format!("Address({:?})", address.redacted()));
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
    fn what_is_wrong_with_an_address_is_told_without_its_password() {
        for (text, why) in [
            ("redis://a:secret@host?queue=a b", "its queue is 'a b'"),
            ("redis://a:secret@host?queue=", "its queue is ''"),
            ("redis://a:secret@host?strict=yes", "strict is 'yes'"),
            ("redis://a:secret@host?lease=1", "'1' is not a time"),
            ("redis://a:secret@host?lease=1ms", "not between 200ms and 1h"),
            ("redis://a:secret@host?size=1", "it has 'size'"),
            ("redis://a:secret@host?insecure=1", "write rediss://"),
            ("redis://a:secret@host:no", "write redis://HOST:PORT"),
        ] {
            let told = QueueAddress::read(text).unwrap_err().to_string();
            assert!(told.contains(why) && !told.contains("secret") && told.lines().count() == 1, "{text}: {told}");
        }
    }
}
