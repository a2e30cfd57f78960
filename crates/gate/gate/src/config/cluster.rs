//! Parses `cluster`: the gateways with which limits are shared.

use super::DistributedLimitConfig;
use super::read::DocumentNode;
use weir_base::Nanos;
use weir_base::units;
use weir_redis::RedisAddress;

/// Shortest and longest lease: a shorter one would expire in an ordinary pause of a machine; a longer one holds the
/// allocations of dead gateways for too long.
const LEASE_RANGE: (Nanos, Nanos) = (Nanos::from_millis(200), Nanos::from_secs(3600));
/// Maximum cluster size: an even part of a limit would be nothing beyond it.
const MAX_GATES: u32 = 10_000;

const ADDRESS_REMEDY: &str = r#"write it as "redis://HOST:PORT""#;

impl DistributedLimitConfig {
    /// A cluster at this server, with defaults.
    fn new(redis: RedisAddress) -> Self {
        Self { redis, name: "gate".to_owned(), lease: Nanos::from_secs(2), gates: 1 }
    }

    /// Parses `redis://HOST:PORT[?name=NAME&lease=2s&gates=4]`.
    ///
    /// # Errors
    /// The error and its remedy, without the password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let error = |why: String| format!("'{}': {why}", RedisAddress::redact(text));
        if !RedisAddress::is_address(text) {
            return Err(format!("invalid Redis URL '{}'; write e.g. redis://HOST:PORT", RedisAddress::redact(text)));
        }
        let (redis, more) = RedisAddress::parse(text).map_err(error)?;
        let mut read = Self::new(redis);
        for (name, value) in more {
            match name.as_str() {
                "name" => read.name = value,
                "lease" => read.lease = units::time(&value).map_err(error)?.into(),
                "gates" => {
                    read.gates =
                        value.parse().map_err(|_| error(format!("invalid gates '{value}'; write a number")))?;
                }
                _ => return Err(error(format!("unknown parameter '{name}'; choose name, lease or gates"))),
            }
        }
        match read.validation_error() {
            Some((_, what, remedy)) => Err(error(format!("{what}; {remedy}"))),
            None => Ok(read),
        }
    }

    /// The first invalid key, the error and its remedy.
    fn validation_error(&self) -> Option<(&'static str, String, &'static str)> {
        let Self { name, lease, gates, .. } = self;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_name) {
            let remedy = "write up to 64 letters, digits, \"-\", \"_\" and \".\"";
            Some(("name", format!("invalid name {name:?}"), remedy))
        } else if !(LEASE_RANGE.0..=LEASE_RANGE.1).contains(lease) {
            Some(("lease", format!("invalid lease {lease}"), "write one from \"200ms\" to \"1h\""))
        } else if !(1..=MAX_GATES).contains(gates) {
            Some(("gates", format!("invalid gates {gates}"), "write a number from 1 to 10000"))
        } else {
            None
        }
    }
}

/// Parses `"redis://HOST:PORT"`, or `{ url = "redis://HOST:PORT", name = "gate", lease = "2s", gates = 4 }`.
pub(super) fn distributed_limits(node: &DocumentNode<'_>) -> Option<DistributedLimitConfig> {
    if !node.is_table() {
        return DistributedLimitConfig::parse(node.string()?).map_err(|why| node.error(why, "")).ok();
    }
    let table = node.table()?;
    let url = table.get("url");
    let name = table.get("name").and_then(|node| Some((node.string()?.to_owned(), node)));
    let lease = table.get("lease").and_then(|node| Some((node.time()?, node)));
    let gates = table.get("gates").and_then(|node| Some((node.integer(1..=u64::from(MAX_GATES))?, node)));
    table.check_unknown_keys();
    let Some(url) = url else {
        table.error("url missing", r#"write url = "redis://HOST:PORT""#);
        return None;
    };
    let text = url.string()?;
    // A password must not be printed.
    let shown = RedisAddress::redact(text);
    let address = match RedisAddress::is_address(text).then(|| RedisAddress::parse(text)) {
        Some(Ok((address, more))) => {
            if let Some((name, _)) = more.first() {
                url.error(format!("{shown:?} has {name}"), "write name, lease and gates as keys of cluster");
            }
            address
        }
        Some(Err(why)) => {
            url.error(format!("{shown:?}: {why}"), "");
            return None;
        }
        None => {
            url.error(format!("invalid Redis URL {shown:?}"), ADDRESS_REMEDY);
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
    fn a_url_may_have_all_settings() {
        let read =
            DistributedLimitConfig::parse("redis://me:secret@host:7000/2?name=orders&lease=500ms&gates=4").unwrap();
        assert_eq!((read.name.as_str(), read.lease, read.gates), ("orders", Nanos::from_millis(500), 4));
        let plain = DistributedLimitConfig::parse("redis://host").unwrap();
        assert_eq!((plain.name.as_str(), plain.lease, plain.gates), ("gate", Nanos::from_secs(2), 1));
    }

    #[test]
    fn errors_have_no_password() {
        for (text, why) in [
            ("redis://a:secret@host?name=a b", "invalid name \"a b\""),
            ("redis://a:secret@host?lease=1ms", "invalid lease 1ms"),
            ("redis://a:secret@host?lease=1", "'1'"),
            ("redis://a:secret@host?gates=0", "invalid gates 0"),
            ("redis://a:secret@host?gates=x", "invalid gates 'x'"),
            ("redis://a:secret@host?size=1", "unknown parameter 'size'"),
            ("redis://a:secret@host:no", "write redis://HOST:PORT"),
            ("http://a:secret@host", "write e.g. redis://HOST:PORT"),
        ] {
            let error = DistributedLimitConfig::parse(text).unwrap_err();
            assert!(error.contains(why) && !error.contains("secret") && error.lines().count() == 1, "{text}: {error}");
        }
    }
}
