//! The table on the server: one script, run by one connection, which is made anew when it is lost.

use std::fmt;
use std::time::Duration;

use ::redis::{Connection, RedisError, Value};

use crate::decide::Nanos;
use crate::decide::portion::{AllocationKey, AllocationRequest, Fraction, SplitReply, SplitRequest};
use crate::gate::config::DistributedLimitConfig;
use crate::redis::{RedisAddress, RedisConnectError, RedisValues, error_line, field, info, unique_name};

const RENEW_SCRIPT: &str = include_str!("renew.lua");
/// A server that is there answers sooner, however short the lease.
const MIN_TIMEOUT: Nanos = Nanos::from_millis(100);
const MAX_TIMEOUT: Nanos = Nanos::SECOND;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RenewalError {
    /// There may be one later.
    Unreachable(String),
    /// To ask again would not help, as far as one can tell.
    Rejected(String),
}

impl fmt::Display for RenewalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Unreachable(why) | Self::Rejected(why)) = self;
        f.write_str(why)
    }
}

/// What all gates know of each other.
pub(super) struct RedisSplitTable {
    address: RedisAddress,
    prefix: String,
    lease_ms: u64,
    /// This gate's name among all.
    gate: String,
    /// How long an answer may take.
    timeout: Duration,
    connection: Option<TableConnection>,
}

struct TableConnection {
    connection: Connection,
    /// Which run of the server it is.
    server_run: String,
    /// The script's name there.
    script_sha: Vec<u8>,
}

impl RedisSplitTable {
    /// Nobody is asked yet.
    ///
    /// # Errors
    /// The system has no random numbers; in one line.
    pub(super) fn new(terms: &DistributedLimitConfig) -> Result<Self, String> {
        let gate = unique_name().ok_or("share: the system has no random numbers")?;
        let third = Nanos(terms.lease.0 / 3);
        Ok(Self {
            address: terms.redis.clone(),
            prefix: format!("weir:share:{}:", terms.name),
            lease_ms: terms.lease.0 / 1_000_000,
            gate,
            timeout: third.clamp(MIN_TIMEOUT, MAX_TIMEOUT).as_duration(),
            connection: None,
        })
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// See [`RenewalError`]. Nobody hears a later answer to this question.
    pub(super) fn renew(&mut self, ask: &SplitRequest) -> Result<SplitReply, RenewalError> {
        let mut link = match self.connection.take() {
            Some(link) => link,
            None => self.connect()?,
        };
        let mut command = ::redis::cmd("EVALSHA");
        command
            .arg(link.script_sha.as_slice())
            .arg(1)
            .arg(&self.prefix)
            .arg(&self.gate)
            .arg(ask.number)
            .arg(&link.server_run);
        command
            .arg(self.lease_ms)
            .arg(u8::from(ask.is_leaving))
            .arg(ask.default_fraction.parts())
            .arg(ask.seen_change)
            .arg(ask.last_reply);
        for AllocationRequest { allocation: claim, in_use: holds, demand: wants } in &ask.allocations {
            command.arg(key_name(*claim)).arg(holds.parts()).arg(*wants);
        }
        // With an error the connection is dropped, and whatever comes over it later with it.
        let value = command.query::<Value>(&mut link.connection).map_err(|error| renewal_error(&error))?;
        self.connection = Some(link);
        match parse_reply(value) {
            Some(said) => Ok(said),
            None if ask.is_leaving => Ok(SplitReply::default()),
            None => Err(RenewalError::Unreachable("it has heard a later question".to_owned())),
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

/// A claim as the table calls it.
fn key_name(claim: AllocationKey) -> String {
    format!("{:016x}:{:016x}", claim.limit, claim.key)
}

/// The other way round.
fn parse_key_name(name: &str) -> Option<AllocationKey> {
    let (limit, key) = name.split_once(':')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    Some(AllocationKey { limit: number(limit)?, key: number(key)? })
}

/// Reads an answer; None: a later question came first.
fn parse_reply(value: Value) -> Option<SplitReply> {
    let mut words = RedisValues::of(value);
    if words.is_empty() {
        return None;
    }
    let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let (gates, usual, seen) =
        (number(words.next_value().count()), number(words.next_value().count()), words.next_value().count());
    let mut is = || words.next_value().int() == 1;
    let (joined, more, fits) = (is(), is(), is());
    let mut list = RedisValues::of(words.next_value().0);
    let mut claims = Vec::new();
    while !list.is_empty() {
        let (name, parts) = (list.next_value().text(), list.next_value().int());
        if let Some(claim) = parse_key_name(&name) {
            claims.push((claim, u32::try_from(parts).ok().map(Fraction::from_parts)));
        }
    }
    Some(SplitReply {
        gates,
        default_fraction: Fraction::from_parts(usual),
        seen_change: seen,
        joined,
        has_more: more,
        fits,
        allocations: claims,
    })
}
