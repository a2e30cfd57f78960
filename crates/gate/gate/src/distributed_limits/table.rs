//! The table of allocations in Redis: one script, run over one connection, which is reestablished when it is lost.

use std::time::Duration;

use ::redis::{Connection, RedisError, Value};

use super::renewal_error::RenewalError;
use crate::config::DistributedLimitConfig;
use weir_base::Nanos;
use weir_limits::fraction::Fraction;
use weir_redis::{RedisAddress, RedisConnectError, RedisValues, error_line, field, info, unique_name};
use weir_resilience::ratelimit::split::{AllocationKey, AllocationRequest, SplitReply, SplitRequest};

const RENEW_SCRIPT: &str = include_str!("renew.lua");
/// Shortest and longest timeout of a request; between them a third of the lease.
const MIN_TIMEOUT: Nanos = Nanos::from_millis(100);
const MAX_TIMEOUT: Nanos = Nanos::SECOND;

/// The table of allocations in Redis, from one gateway.
pub(super) struct RedisSplitTable {
    address: RedisAddress,
    prefix: String,
    lease_ms: u64,
    /// Random name of this gateway.
    gate: String,
    /// Timeout of a request.
    timeout: Duration,
    connection: Option<TableConnection>,
}

struct TableConnection {
    connection: Connection,
    /// ID of the server's run.
    server_run: String,
    /// SHA of the script on the server.
    script_sha: Vec<u8>,
}

impl RedisSplitTable {
    /// A table without a connection yet.
    ///
    /// # Errors
    /// The system has no random numbers; in one line.
    pub(super) fn new(config: &DistributedLimitConfig) -> Result<Self, String> {
        let gate = unique_name().ok_or("cluster: the system has no random numbers")?;
        let third = Nanos(config.lease.0 / 3);
        Ok(Self {
            address: config.redis.clone(),
            prefix: format!("weir:cluster:{}:", config.name),
            lease_ms: config.lease.as_millis(),
            gate,
            timeout: third.clamp(MIN_TIMEOUT, MAX_TIMEOUT).as_duration(),
            connection: None,
        })
    }

    /// The same with another timeout of a request.
    #[cfg(test)]
    pub(super) fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Sends a request and waits for its reply.
    ///
    /// # Errors
    /// See [`RenewalError`]. A later reply to this request is dropped with the connection.
    pub(super) fn renew(&mut self, request: &SplitRequest) -> Result<SplitReply, RenewalError> {
        let mut server = match self.connection.take() {
            Some(server) => server,
            None => self.connect()?,
        };
        let mut command = ::redis::cmd("EVALSHA");
        command
            .arg(server.script_sha.as_slice())
            .arg(1)
            .arg(&self.prefix)
            .arg(&self.gate)
            .arg(request.number)
            .arg(&server.server_run);
        command
            .arg(self.lease_ms)
            .arg(u8::from(request.is_leaving))
            .arg(request.default_fraction.parts())
            .arg(request.seen_change)
            .arg(request.last_reply);
        for AllocationRequest { allocation, in_use, demand } in &request.allocations {
            command.arg(key_name(*allocation)).arg(in_use.parts()).arg(*demand);
        }
        // With an error the connection is dropped, and a late reply with it.
        let value = command.query::<Value>(&mut server.connection).map_err(|error| renewal_error(&error))?;
        self.connection = Some(server);
        match parse_reply(value) {
            Some(reply) => Ok(reply),
            None if request.is_leaving => Ok(SplitReply::default()),
            None => Err(RenewalError::Unreachable("a later request came first".to_owned())),
        }
    }

    fn connect(&self) -> Result<TableConnection, RenewalError> {
        let mut connection = self.address.connect(self.timeout, self.timeout).map_err(|why| match why {
            RedisConnectError::Unreachable(why) => RenewalError::Unreachable(why),
            RedisConnectError::Rejected(why) => RenewalError::Rejected(why),
        })?;
        let info = info(&mut connection).map_err(|error| renewal_error(&error))?;
        let run = field(&info, "run_id").unwrap_or_default().to_owned();
        let script = ::redis::cmd("SCRIPT").arg("LOAD").arg(RENEW_SCRIPT).query::<Vec<u8>>(&mut connection);
        let script = script.map_err(|error| renewal_error(&error))?;
        Ok(TableConnection { connection, server_run: run, script_sha: script })
    }
}

fn renewal_error(error: &RedisError) -> RenewalError {
    match error.code() {
        Some("NOPERM" | "NOAUTH" | "WRONGPASS") => RenewalError::Rejected(error_line(error)),
        _ => RenewalError::Unreachable(error_line(error)),
    }
}

/// Name of an allocation in the table.
fn key_name(allocation: AllocationKey) -> String {
    format!("{:016x}:{:016x}", allocation.limit, allocation.key)
}

/// Inverse of [`key_name`].
fn parse_key_name(name: &str) -> Option<AllocationKey> {
    let (limit, key) = name.split_once(':')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    Some(AllocationKey { limit: number(limit)?, key: number(key)? })
}

/// Parses a reply; None if a later request came first.
fn parse_reply(value: Value) -> Option<SplitReply> {
    let mut words = RedisValues::of(value);
    if words.is_empty() {
        return None;
    }
    let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let (gates, default, seen_change) =
        (number(words.next_value().count()), number(words.next_value().count()), words.next_value().count());
    let mut is = || words.next_value().int() == 1;
    let (joined, has_more, fits) = (is(), is(), is());
    let mut list = RedisValues::of(words.next_value().0);
    let mut allocations = Vec::new();
    while !list.is_empty() {
        let (name, parts) = (list.next_value().text(), list.next_value().int());
        if let Some(allocation) = parse_key_name(&name) {
            allocations.push((allocation, u32::try_from(parts).ok().map(Fraction::from_parts)));
        }
    }
    Some(SplitReply {
        gates,
        default_fraction: Fraction::from_parts(default),
        seen_change,
        joined,
        has_more,
        fits,
        allocations,
    })
}
