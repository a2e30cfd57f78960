//! One connection to the server, made anew when it is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ::redis::{Cmd, Connection, RedisError, Value};

use super::address::Address;
use super::durability;
use super::script::{ALL, Ask, Script};
use crate::redis::{NoConnection, Reply, field, info, words};
use crate::send::sender::wall_ms;
use crate::send::store::{Order, StoreError};

/// A server that is there answers sooner; one that is slower than that is asked the same again.
const ANSWER: Duration = Duration::from_secs(5);
/// So long a connection may take.
const CONNECT: Duration = Duration::from_secs(1);
/// Clocks that differ by less are the same clock, seen at two times.
const SAME_CLOCK_MS: i64 = 10;

/// Of the layout of the keys on the server.
const VERSION: &str = "2";

/// What all connections of a store have in common.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) address: Address,
    /// This handle's name among all that share the queue.
    pub(super) client: String,
    /// Make the queue if there is none.
    pub(super) create: bool,
    /// The order that a new queue gets.
    pub(super) order: Order,
    /// So much the server's clock is ahead of this machine's.
    pub(super) ahead_ms: AtomicI64,
}

impl Terms {
    /// What the server's clock was, between two looks at ours.
    pub(super) fn compare(&self, before: i64, server: i64, after: i64) {
        let ahead = server - (before + after) / 2;
        let is_same = ahead.abs() <= SAME_CLOCK_MS.max(after - before);
        self.ahead_ms.store(if is_same { 0 } else { ahead }, Ordering::Relaxed);
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// It may be there again later; what was asked may have been done.
    Away(String),
    /// To ask again would not help.
    Ends(StoreError),
}

pub(super) struct Link {
    terms: Arc<Terms>,
    connection: Option<Connection>,
    /// The scripts' names on this server.
    names: Vec<Vec<u8>>,
    pub(super) order: Order,
    /// Which run of the server it was connected to last.
    run: String,
    /// It is another one than before.
    pub(super) is_another_run: bool,
}

impl Link {
    pub(super) fn new(terms: Arc<Terms>) -> Self {
        let order = terms.order;
        Self { terms, connection: None, names: Vec::new(), order, run: String::new(), is_another_run: false }
    }

    /// Makes sure that there is a connection.
    pub(super) fn open(&mut self) -> Result<&mut Connection, Trouble> {
        if self.connection.is_none() {
            let mut connection = connect(&self.terms.address)?;
            self.begin(&mut connection)?;
            self.connection = Some(connection);
        }
        self.connection.as_mut().ok_or_else(|| Trouble::Away("no connection".into()))
    }

    fn begin(&mut self, connection: &mut Connection) -> Result<(), Trouble> {
        let terms = Arc::clone(&self.terms);
        let info = info(connection).map_err(|error| self.refused(&error))?;
        durability::check(connection, &info, &terms.address).map_err(Trouble::Ends)?;
        let mut names = Vec::with_capacity(ALL.len());
        for (_, text) in ALL {
            let name = ::redis::cmd("SCRIPT").arg("LOAD").arg(text).query::<Vec<u8>>(connection);
            names.push(name.map_err(|error| self.refused(&error))?);
        }
        self.names = names;
        let mut ask = Ask::new(Script::Open);
        let run = field(&info, "run_id").unwrap_or_default();
        let lease_ms = terms.address.lease.0 / 1_000_000;
        ask.say(run).say(VERSION).say(terms.order.word()).number(lease_ms).flag(terms.create);
        let before = wall_ms().0;
        let said = self.command(&ask, 0).query::<Value>(connection).map_err(|error| self.refused(&error))?;
        let mut said = Reply::list(said).into_iter();
        let mut next = || said.next().unwrap_or(Reply(Value::Nil));
        let (version, order, server) = (next().text(), next().text(), next().int());
        if version.is_empty() {
            return Err(Trouble::Ends(StoreError::NoStore(terms.address.path())));
        }
        if version != VERSION {
            return Err(Trouble::Ends(StoreError::Version(terms.address.path(), version)));
        }
        self.order = if order == Order::Deadline.word() { Order::Deadline } else { Order::FirstIn };
        terms.compare(before, server, wall_ms().0);
        let last = std::mem::replace(&mut self.run, run.to_owned());
        self.is_another_run |= !last.is_empty() && last != run;
        Ok(())
    }

    fn command(&self, ask: &Ask, number: u64) -> Cmd {
        let mut command = ::redis::cmd("EVALSHA");
        let name = self.names.get(ask.script as usize).map_or(&[][..], Vec::as_slice);
        command.arg(name).arg(1).arg(&self.terms.address.prefix).arg(&self.terms.client).arg(number);
        for word in &ask.words {
            command.arg(word.as_slice());
        }
        command
    }

    /// Asks all of it at once. Each has its answer, or the reason why there is none of it; if the connection is lost,
    /// nobody knows which of it was done.
    pub(super) fn ask(&mut self, asks: &[(u64, &Ask)]) -> Result<Vec<Result<Value, StoreError>>, Trouble> {
        self.open()?;
        let packed: Vec<u8> =
            asks.iter().flat_map(|(number, ask)| self.command(ask, *number).get_packed_command()).collect();
        let Some(mut connection) = self.connection.take() else { return Err(Trouble::Away("no connection".into())) };
        connection.send_packed_command(&packed).map_err(|error| away(&error))?;
        let mut answers = Vec::with_capacity(asks.len());
        for _ in asks {
            let answer = connection.recv_response().map_err(|error| away(&error))?;
            answers.push(match answer {
                Value::ServerError(error) => match self.refused(&RedisError::from(error)) {
                    Trouble::Ends(why) => Err(why),
                    // The connection is dropped: with the next one the scripts are loaded, too.
                    passing @ Trouble::Away(_) => return Err(passing),
                },
                value => Ok(value),
            });
        }
        self.connection = Some(connection);
        Ok(answers)
    }

    /// What an error of the server means.
    fn refused(&self, error: &RedisError) -> Trouble {
        let path = self.terms.address.path();
        match error.code() {
            // In the middle of a script's work such a code is within the text.
            _ if error.to_string().contains("OOM") => Trouble::Ends(StoreError::NoSpace(path, 0)),
            Some("ERR" | "WRONGTYPE") => Trouble::Ends(StoreError::Broken(path, words(error))),
            Some("NOPERM" | "NOAUTH" | "WRONGPASS") => Trouble::Ends(StoreError::Address(path, words(error))),
            _ => away(error),
        }
    }
}

pub(super) fn connect(address: &Address) -> Result<Connection, Trouble> {
    address.server.connect(CONNECT, ANSWER).map_err(|why| match why {
        NoConnection::Away(why) => Trouble::Away(why),
        NoConnection::Refused(why) => Trouble::Ends(StoreError::Address(address.path(), why)),
    })
}

fn away(error: &RedisError) -> Trouble {
    Trouble::Away(words(error))
}
