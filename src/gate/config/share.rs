//! Reads `[share]`: the gates with which limits are shared.

use super::DistributedLimitConfig;
use super::read::DocumentNode;
use crate::decide::{Nanos, words};
use crate::redis::RedisAddress;

/// A shorter lease would be lost by a pause of any machine; a longer one holds portions up for no use.
const LEASE_RANGE: (Nanos, Nanos) = (Nanos::from_millis(200), Nanos::from_secs(3600));
/// Beyond that an even part of a limit is nothing.
const MAX_GATES: u32 = 10_000;

const ADDRESS_REMEDY: &str = r#"write it as "redis://HOST:PORT""#;

impl DistributedLimitConfig {
    /// Gates that ask this server, under the name that stands when nothing is said.
    fn new(redis: RedisAddress) -> Self {
        Self { redis, name: "gate".to_owned(), lease: Nanos::from_secs(2), gates: 1 }
    }

    /// Reads `redis://HOST:PORT[?name=NAME&lease=2s&gates=4]`.
    ///
    /// # Errors
    /// What is wrong with it, and what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: String| format!("'{}': {why}", RedisAddress::redact(text));
        if !RedisAddress::is_address(text) {
            return Err(wrong("it is no address of a Redis server; write redis://HOST:PORT".to_owned()));
        }
        let (redis, more) = RedisAddress::parse(text).map_err(wrong)?;
        let mut read = Self::new(redis);
        for (name, value) in more {
            match name.as_str() {
                "name" => read.name = value,
                "lease" => read.lease = words::time(&value).map_err(wrong)?.into(),
                "gates" => {
                    read.gates = value.parse().map_err(|_| wrong(format!("gates is '{value}'; write a number")))?;
                }
                _ => return Err(wrong(format!("it has '{name}'; there are name, lease and gates"))),
            }
        }
        match read.validation_error() {
            Some((_, what, remedy)) => Err(wrong(format!("{what}; {remedy}"))),
            None => Ok(read),
        }
    }

    /// Which of it is wrong, what, and the remedy.
    fn validation_error(&self) -> Option<(&'static str, String, &'static str)> {
        let Self { name, lease, gates, .. } = self;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_name) {
            let remedy = "take up to 64 letters, digits, \"-\", \"_\" and \".\"";
            Some(("name", format!("{name:?} is no name"), remedy))
        } else if !(LEASE_RANGE.0..=LEASE_RANGE.1).contains(lease) {
            Some(("lease", format!("a lease of {lease} is not possible"), "write one from \"200ms\" to \"1h\""))
        } else if !(1..=MAX_GATES).contains(gates) {
            Some(("gates", format!("{gates} gates are not possible"), "write a number from 1 to 10000"))
        } else {
            None
        }
    }
}

/// Reads `"redis://HOST:PORT"`, or `{ redis = "redis://HOST:PORT", name = "gate", lease = "2s", gates = 4 }`.
pub(super) fn distributed_limits(node: &DocumentNode<'_>) -> Option<DistributedLimitConfig> {
    if !node.is_table() {
        return DistributedLimitConfig::parse(node.string()?).map_err(|why| node.error(why, "")).ok();
    }
    let table = node.table()?;
    let redis = table.get("redis");
    let name = table.get("name").and_then(|node| Some((node.string()?.to_owned(), node)));
    let lease = table.get("lease").and_then(|node| Some((node.time()?, node)));
    let gates = table.get("gates").and_then(|node| Some((node.integer(1..=u64::from(MAX_GATES))?, node)));
    table.check_unknown_keys();
    let Some(redis) = redis else {
        table.error("it has no redis", r#"write redis = "redis://HOST:PORT""#);
        return None;
    };
    let text = redis.string()?;
    // It may have a password, which is nothing for a terminal.
    let shown = RedisAddress::redact(text);
    let address = match RedisAddress::is_address(text).then(|| RedisAddress::parse(text)) {
        Some(Ok((address, more))) => {
            if let Some((name, _)) = more.first() {
                redis.error(format!("{shown:?} says {name}, too"), "write name, lease and gates as keys of share");
            }
            address
        }
        Some(Err(why)) => {
            redis.error(format!("{shown:?}: {why}"), "");
            return None;
        }
        None => {
            redis.error(format!("{shown:?} is no address of a Redis server"), ADDRESS_REMEDY);
            return None;
        }
    };
    let mut read = DistributedLimitConfig::new(address);
    if let Some((name, _)) = &name {
        read.name.clone_from(name);
    }
    if let Some((lease, _)) = &lease {
        read.lease = *lease;
    }
    if let Some((gates, _)) = &gates {
        read.gates = u32::try_from(*gates).unwrap_or(MAX_GATES);
    }
    if let Some((key, what, remedy)) = read.validation_error() {
        let of = match key {
            "name" => name.map(|(_, node)| node),
            "lease" => lease.map(|(_, node)| node),
            _ => gates.map(|(_, node)| node),
        };
        of.as_ref().unwrap_or(node).error(what, remedy);
    }
    Some(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_may_say_all_of_it() {
        let read =
            DistributedLimitConfig::parse("redis://me:secret@host:7000/2?name=orders&lease=500ms&gates=4").unwrap();
        assert_eq!((read.name.as_str(), read.lease, read.gates), ("orders", Nanos::from_millis(500), 4));
        let plain = DistributedLimitConfig::parse("redis://host").unwrap();
        assert_eq!((plain.name.as_str(), plain.lease, plain.gates), ("gate", Nanos::from_secs(2), 1));
    }

    #[test]
    fn what_is_wrong_with_it_is_told_without_its_password() {
        for (text, why) in [
            ("redis://a:secret@host?name=a b", "\"a b\" is no name"),
            ("redis://a:secret@host?lease=1ms", "a lease of 1ms is not possible"),
            ("redis://a:secret@host?lease=1", "'1' is not a time"),
            ("redis://a:secret@host?gates=0", "0 gates are not possible"),
            ("redis://a:secret@host?gates=x", "gates is 'x'"),
            ("redis://a:secret@host?size=1", "it has 'size'"),
            ("redis://a:secret@host:no", "write redis://HOST:PORT"),
            ("http://a:secret@host", "write redis://HOST:PORT"),
        ] {
            let told = DistributedLimitConfig::parse(text).unwrap_err();
            assert!(told.contains(why) && !told.contains("secret") && told.lines().count() == 1, "{text}: {told}");
        }
    }
}
