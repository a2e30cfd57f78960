//! The table on the server: one script, run by one connection, which is made anew when it is lost.

use std::fmt;
use std::time::Duration;

use ::redis::{Connection, RedisError, Value};

use crate::decide::Nanos;
use crate::decide::portion::{Ask, Asked, Claim, Portion, Said};
use crate::gate::config::ShareConfig;
use crate::redis::{Address, NoConnection, Replies, field, info, new_name, words};

const SCRIPT: &str = include_str!("renew.lua");
/// A server that is there answers sooner, however short the lease.
const LEAST_PATIENCE: Nanos = Nanos::from_millis(100);
const MOST_PATIENCE: Nanos = Nanos::SECOND;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// There may be one later.
    Away(String),
    /// To ask again would not help, as far as one can tell.
    Refused(String),
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Away(why) | Self::Refused(why)) = self;
        f.write_str(why)
    }
}

/// What all gates know of each other.
pub(super) struct Table {
    address: Address,
    prefix: String,
    lease_ms: u64,
    /// This gate's name among all.
    gate: String,
    /// How long an answer may take.
    patience: Duration,
    link: Option<Link>,
}

struct Link {
    connection: Connection,
    /// Which run of the server it is.
    run: String,
    /// The script's name there.
    script: Vec<u8>,
}

impl Table {
    /// Nobody is asked yet.
    ///
    /// # Errors
    /// The system has no random numbers; in one line.
    pub(super) fn new(terms: &ShareConfig) -> Result<Self, String> {
        let gate = new_name().ok_or("share: the system has no random numbers")?;
        let third = Nanos(terms.lease.0 / 3);
        Ok(Self {
            address: terms.redis.clone(),
            prefix: format!("weir:share:{}:", terms.name),
            lease_ms: terms.lease.0 / 1_000_000,
            gate,
            patience: third.clamp(LEAST_PATIENCE, MOST_PATIENCE).as_duration(),
            link: None,
        })
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// See [`NoAnswer`]. Nobody hears a later answer to this question.
    pub(super) fn renew(&mut self, ask: &Ask) -> Result<Said, NoAnswer> {
        let mut link = match self.link.take() {
            Some(link) => link,
            None => self.connect()?,
        };
        let mut command = ::redis::cmd("EVALSHA");
        command.arg(link.script.as_slice()).arg(1).arg(&self.prefix).arg(&self.gate).arg(ask.number).arg(&link.run);
        command.arg(self.lease_ms).arg(u8::from(ask.leaves)).arg(ask.usual.parts()).arg(ask.seen).arg(ask.heard);
        for Asked { claim, holds, wants } in &ask.claims {
            command.arg(name(*claim)).arg(holds.parts()).arg(*wants);
        }
        // With an error the connection is dropped, and whatever comes over it later with it.
        let value = command.query::<Value>(&mut link.connection).map_err(|error| no_answer(&error))?;
        self.link = Some(link);
        match said(value) {
            Some(said) => Ok(said),
            None if ask.leaves => Ok(Said::default()),
            None => Err(NoAnswer::Away("it has heard a later question".to_owned())),
        }
    }

    fn connect(&self) -> Result<Link, NoAnswer> {
        let mut connection = self.address.connect(self.patience, self.patience).map_err(|why| match why {
            NoConnection::Away(why) => NoAnswer::Away(why),
            NoConnection::Refused(why) => NoAnswer::Refused(why),
        })?;
        let info = info(&mut connection).map_err(|error| no_answer(&error))?;
        let run = field(&info, "run_id").unwrap_or_default().to_owned();
        let script = ::redis::cmd("SCRIPT").arg("LOAD").arg(SCRIPT).query::<Vec<u8>>(&mut connection);
        let script = script.map_err(|error| no_answer(&error))?;
        Ok(Link { connection, run, script })
    }
}

fn no_answer(error: &RedisError) -> NoAnswer {
    match error.code() {
        Some("NOPERM" | "NOAUTH" | "WRONGPASS") => NoAnswer::Refused(words(error)),
        _ => NoAnswer::Away(words(error)),
    }
}

/// A claim as the table calls it.
fn name(claim: Claim) -> String {
    format!("{:016x}:{:016x}", claim.limit, claim.key)
}

/// The other way round.
fn claim(name: &str) -> Option<Claim> {
    let (limit, key) = name.split_once(':')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    Some(Claim { limit: number(limit)?, key: number(key)? })
}

/// Reads an answer; None: a later question came first.
fn said(value: Value) -> Option<Said> {
    let mut words = Replies::of(value);
    if words.is_empty() {
        return None;
    }
    let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let (gates, usual, seen) = (number(words.take().count()), number(words.take().count()), words.take().count());
    let mut is = || words.take().int() == 1;
    let (joined, more, fits) = (is(), is(), is());
    let mut list = Replies::of(words.take().0);
    let mut claims = Vec::new();
    while !list.is_empty() {
        let (name, parts) = (list.take().text(), list.take().int());
        if let Some(claim) = claim(&name) {
            claims.push((claim, u32::try_from(parts).ok().map(Portion::of)));
        }
    }
    Some(Said { gates, usual: Portion::of(usual), seen, joined, more, fits, claims })
}
