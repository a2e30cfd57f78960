//! Keys on a Redis server, which machines share.
//!
//! A key is one string, so a cluster has no slots to cross. A step changes a copy of the key, and one script stores it if
//! the key has not changed since and the server's clock has come to the time of the decision; otherwise the step runs
//! again with what the script returned. The user of a grant learns of it after the script, so it departs after the time
//! of the decision by the server's clock. An event of a slot is taken in when the server's clock has passed it for
//! certain.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::redis::{Connection, Value};
use rustc_hash::FxHashMap;
use weir_base::Nanos;
use weir_delivery::limiter::{HolderId, LimiterKey, LimiterRules};
use weir_machine::clock;
use weir_redis::{RedisAddress, RedisConnectError, RedisValues, error_line};

use super::stored_key::{StoredKey, WriteTime};
use super::{Act, KeyStore, StepTime, hashed};
use crate::trouble::StoreTrouble;

/// Stores a key; arguments: the number that it must have, its value, the time in microseconds, its time to live in ms.
const SCRIPT: &str = "
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local value = redis.call('GET', KEYS[1])
local number = value and string.match(value, '^(%d+) ') or '0'
if number ~= ARGV[1] then return {0, now, value or ''} end
if now < tonumber(ARGV[3]) then return {2, now, ''} end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[4])
return {1, now, ''}
";
/// Number that no key has, to read one.
const READ: &str = "-";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const REPLY_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of attempts of a step beside other processes.
const MAX_ATTEMPTS: u32 = 50;
/// Time after which a holder that was not seen is gone; it is here every few seconds while it holds slots.
const GONE_AFTER: Nanos = Nanos::from_secs(10);
/// Age at which a measurement of the server's clock is replaced by any newer one.
const CLOCK_AGE: Nanos = Nanos::SECOND;
/// Maximum number of keys that are remembered between steps.
const MAX_KEYS: usize = 1000;

pub(super) struct RedisKeys {
    server: RedisAddress,
    name: String,
    rules: Arc<LimiterRules>,
    holder: HolderId,
    connection: Option<Connection>,
    clock: Option<ServerClock>,
    keys: FxHashMap<String, CachedKey>,
}

/// Server's time within a round trip of this process's clock.
#[derive(Clone, Copy, Debug)]
struct ServerClock {
    server: Nanos,
    end: Nanos,
    round_trip: Nanos,
}

/// The key as it was at this number.
#[derive(Clone, Debug)]
struct CachedKey {
    number: u64,
    key: LimiterKey,
    seen: BTreeMap<HolderId, Nanos>,
}

enum Reply {
    Stored,
    Other(Vec<u8>),
    Early,
}

impl RedisKeys {
    pub(super) fn new(server: &RedisAddress, name: &str, rules: &Arc<LimiterRules>, holder: HolderId) -> Self {
        Self {
            server: server.clone(),
            name: name.to_owned(),
            rules: Arc::clone(rules),
            holder,
            connection: None,
            clock: None,
            keys: FxHashMap::default(),
        }
    }

    fn unreachable(&self, why: &str) -> StoreTrouble {
        StoreTrouble::Failed(format!("{}: {why}", self.server.redacted()))
    }

    fn call(&mut self, name: &str, number: &str, value: &[u8], at: Nanos, ttl_ms: u64) -> Result<Reply, StoreTrouble> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.server.connect(CONNECT_TIMEOUT, REPLY_TIMEOUT).map_err(|error| match error {
                RedisConnectError::Unreachable(why) => self.unreachable(&format!("unreachable: {why}")),
                RedisConnectError::Rejected(why) => self.unreachable(&why),
            })?,
        };
        let mut command = ::redis::cmd("EVAL");
        // Rounded up: a time that has not come is never taken for one that has.
        command.arg(SCRIPT).arg(1).arg(name).arg(number).arg(value).arg(at.0.div_ceil(1000)).arg(ttl_ms);
        let begin = clock::monotonic();
        let reply = match command.query::<Value>(&mut connection) {
            Ok(reply) => reply,
            Err(error) => {
                // It may have been executed. What it has granted belongs to a holder that is not seen any more.
                self.holder = self.holder.wrapping_add(1);
                return Err(self.unreachable(&error_line(&error)));
            }
        };
        let end = clock::monotonic();
        self.connection = Some(connection);
        let mut reply = RedisValues::of(reply);
        let (code, server_us) = (reply.next_value().int(), reply.next_value().count());
        self.measured(begin, Nanos(server_us.saturating_mul(1000)), end);
        Ok(match code {
            1 => Reply::Stored,
            2 => Reply::Early,
            _ => Reply::Other(reply.next_value().bytes().unwrap_or_default()),
        })
    }

    /// Takes in the server's time within a round trip; the shortest one of late is the most exact.
    fn measured(&mut self, begin: Nanos, server: Nanos, end: Nanos) {
        let round_trip = end - begin;
        let is_better = self.clock.is_none_or(|known| round_trip <= known.round_trip || end - known.end > CLOCK_AGE);
        // A clock that was set back, or that runs slower, is followed at once.
        let is_behind = self.clock.is_some_and(|known| server < known.server + (begin - known.end));
        if is_better || is_behind {
            self.clock = Some(ServerClock { server, end, round_trip });
        }
    }

    /// The key as the server has it.
    fn read(&mut self, name: &str, value: &[u8]) -> Result<CachedKey, StoreTrouble> {
        let now = self.time()?.now;
        let Some(space) = value.iter().position(|byte| *byte == b' ') else {
            // What is away and still counts here was lost by the server.
            let is_lost = self.keys.remove(name).is_some_and(|mut known| known.number > 0 && !known.key.is_idle(now));
            let key =
                if is_lost { LimiterKey::worst_case(&self.rules, now) } else { LimiterKey::begun_at(&self.rules, now) };
            return Ok(CachedKey { number: 0, key, seen: BTreeMap::new() });
        };
        let number = std::str::from_utf8(&value[..space]).ok().and_then(|text| text.parse().ok());
        let number = number.ok_or_else(|| self.unreachable(&format!("{name} is of another program")))?;
        let at = WriteTime { now, wall_ms: 0, boot: "" };
        let stored = StoredKey::read(&value[space + 1..], &self.rules, &at, self.server.redacted())?;
        Ok(match stored {
            Some(stored) => CachedKey { number, key: stored.key, seen: stored.head.seen },
            None => CachedKey { number, key: LimiterKey::begun_at(&self.rules, now), seen: BTreeMap::new() },
        })
    }

    fn time(&self) -> Result<StepTime, StoreTrouble> {
        let known = self.clock.ok_or_else(|| self.unreachable("no reply"))?;
        let now = clock::monotonic();
        Ok(StepTime { now: known.server + (now - known.end), local: now - known.round_trip, holder: self.holder })
    }

    /// Runs the step on a copy; returns it if it has changed.
    fn changed(&self, known: &CachedKey, check: bool, act: &mut Act<'_>) -> Result<Option<CachedKey>, StoreTrouble> {
        let time = self.time()?;
        let mut next = known.clone();
        let mut changed = false;
        if check {
            let seen = |holder: &HolderId| known.seen.get(holder).copied().unwrap_or_default();
            let gone = |holder: &HolderId| *holder != self.holder && seen(holder) + GONE_AFTER < time.now;
            for holder in next.key.holders().into_iter().filter(|holder| gone(holder)) {
                next.key.lost(holder, time.now);
                changed = true;
            }
        }
        changed |= act(&mut next.key, time);
        let holders = next.key.holders();
        next.seen.retain(|holder, _| holders.contains(holder));
        if holders.contains(&self.holder) {
            let before = next.seen.insert(self.holder, time.now);
            changed |= before.is_none_or(|before| time.now - before > Nanos(GONE_AFTER.0 / 5));
        }
        next.number += 1;
        Ok(changed.then_some(next))
    }
}

impl KeyStore for RedisKeys {
    fn step(&mut self, key: &str, check: bool, act: &mut Act<'_>) -> Result<(), StoreTrouble> {
        let name = format!("weir:limiter:{}:{}", self.name, hashed(key));
        let mut is_fresh = false;
        for _ in 0..MAX_ATTEMPTS {
            let known = match self.keys.get(&name) {
                Some(known) => known.clone(),
                None => {
                    let Reply::Other(value) = self.call(&name, READ, b"", Nanos::ZERO, 1)? else { continue };
                    is_fresh = true;
                    self.read(&name, &value)?
                }
            };
            let Some(next) = self.changed(&known, check, act)? else {
                if is_fresh {
                    self.keys.insert(name, known);
                    return Ok(());
                }
                // Another process may have changed it.
                let number = known.number.to_string();
                let Reply::Other(value) = self.call(&name, READ, b"", Nanos::ZERO, 1)? else { continue };
                is_fresh = true;
                if !value.starts_with(number.as_bytes()) || value.get(number.len()) != Some(&b' ') {
                    let read = self.read(&name, &value)?;
                    self.keys.insert(name.clone(), read);
                }
                continue;
            };
            let now = self.time()?.now;
            let CachedKey { number, key, seen } = next;
            let at = WriteTime { now, wall_ms: 0, boot: "" };
            let ttl_ms = key.memory(now).as_millis() + 1000;
            let stored = StoredKey::new(key, &self.rules, &at, seen);
            let value = [number.to_string().as_bytes(), b" ", &stored.write()?].concat();
            match self.call(&name, &known.number.to_string(), &value, now, ttl_ms)? {
                Reply::Stored => {
                    if self.keys.len() >= MAX_KEYS {
                        self.keys.clear();
                    }
                    self.keys.insert(name, CachedKey { number, key: stored.key, seen: stored.head.seen });
                    return Ok(());
                }
                Reply::Other(value) => {
                    let read = self.read(&name, &value)?;
                    is_fresh = true;
                    self.keys.insert(name.clone(), read);
                }
                Reply::Early => {}
            }
        }
        Err(StoreTrouble::Busy)
    }
}

impl fmt::Debug for RedisKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisKeys").field("server", &self.server).field("name", &self.name).finish_non_exhaustive()
    }
}
