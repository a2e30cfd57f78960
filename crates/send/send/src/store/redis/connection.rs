//! Connection to the server, reconnected after a loss.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use ::redis::{Cmd, Connection, RedisError, Value};

use super::address::QueueAddress;
use super::durability;
use super::script::{ALL_SCRIPTS, RedisScript, ScriptCall};
use crate::store::{JobOrder, StoreError};
use crate::wall_clock::wall_ms;
use weir_redis::{RedisConnectError, RedisValue, error_line, field, info};

/// Timeout of a reply; the call is repeated after it.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Differences of clocks below this are those of the network.
const SAME_CLOCK_MS: i64 = 10;

/// Version of the layout of keys on the server.
const LAYOUT_VERSION: &str = "3";

/// State that all connections of a store share.
#[derive(Debug)]
pub(super) struct QueueContext {
    pub(super) address: QueueAddress,
    /// Unique name of this handle in the queue.
    pub(super) client_name: String,
    /// Whether a missing queue is created.
    pub(super) create: bool,
    /// Order of a new queue.
    pub(super) order: JobOrder,
    /// Offset of the server's clock from this machine's.
    pub(super) clock_offset_ms: AtomicI64,
}

impl QueueContext {
    /// Updates the offset from the server's time between two readings of the local clock.
    pub(super) fn update_clock_offset(&self, before: i64, server: i64, after: i64) {
        let ahead = server - (before + after) / 2;
        let is_same = ahead.abs() <= SAME_CLOCK_MS.max(after - before);
        self.clock_offset_ms.store(if is_same { 0 } else { ahead }, Ordering::Relaxed);
    }
}

/// Failure of a call.
#[derive(Debug)]
pub(super) enum RedisFailure {
    /// The server is unreachable, maybe for a while; the call may have been executed.
    Unreachable(String),
    /// A repetition would fail as well.
    Fatal(StoreError),
}

pub(super) struct RedisConnection {
    context: Arc<QueueContext>,
    connection: Option<Connection>,
    /// SHA-1 hashes of the scripts.
    script_hashes: Vec<Vec<u8>>,
    pub(super) order: JobOrder,
    /// `run_id` of the server at the last connection.
    run_id: String,
    /// Whether the server has restarted since.
    pub(super) server_restarted: bool,
}

impl RedisConnection {
    pub(super) fn new(context: Arc<QueueContext>) -> Self {
        let order = context.order;
        Self {
            context,
            connection: None,
            script_hashes: Vec::new(),
            order,
            run_id: String::new(),
            server_restarted: false,
        }
    }

    /// Connects unless connected.
    pub(super) fn open(&mut self) -> Result<&mut Connection, RedisFailure> {
        if self.connection.is_none() {
            let mut connection = connect(&self.context.address)?;
            self.initialize(&mut connection)?;
            self.connection = Some(connection);
        }
        self.connection.as_mut().ok_or_else(|| RedisFailure::Unreachable("no connection".into()))
    }

    fn initialize(&mut self, connection: &mut Connection) -> Result<(), RedisFailure> {
        let terms = Arc::clone(&self.context);
        let info = info(connection).map_err(|error| self.classify_error(&error))?;
        // Until a restarted server has loaded its data, it reports no append-only file.
        if field(&info, "loading") == Some("1") {
            return Err(RedisFailure::Unreachable("the server is loading its data".into()));
        }
        durability::check(connection, &info, &terms.address).map_err(RedisFailure::Fatal)?;
        let mut names = Vec::with_capacity(ALL_SCRIPTS.len());
        for (_, text) in ALL_SCRIPTS {
            let name = ::redis::cmd("SCRIPT").arg("LOAD").arg(text).query::<Vec<u8>>(connection);
            names.push(name.map_err(|error| self.classify_error(&error))?);
        }
        self.script_hashes = names;
        let mut ask = ScriptCall::new(RedisScript::Open);
        let run = field(&info, "run_id").unwrap_or_default();
        let lease_ms = terms.address.lease.0 / 1_000_000;
        ask.arg(run).arg(LAYOUT_VERSION).arg(terms.order.name()).number(lease_ms).flag(terms.create);
        let before = wall_ms().0;
        let said = self.command(&ask, 0).query::<Value>(connection).map_err(|error| self.classify_error(&error))?;
        let mut said = RedisValue::list(said).into_iter();
        let mut next = || said.next().unwrap_or(RedisValue(Value::Nil));
        let (version, order, server) = (next().text(), next().text(), next().int());
        if version.is_empty() {
            return Err(RedisFailure::Fatal(StoreError::NoStore(terms.address.path())));
        }
        if version != LAYOUT_VERSION {
            return Err(RedisFailure::Fatal(StoreError::Version(terms.address.path(), version, LAYOUT_VERSION.into())));
        }
        self.order = if order == JobOrder::Deadline.name() { JobOrder::Deadline } else { JobOrder::Fifo };
        terms.update_clock_offset(before, server, wall_ms().0);
        let last = std::mem::replace(&mut self.run_id, run.to_owned());
        self.server_restarted |= !last.is_empty() && last != run;
        Ok(())
    }

    fn command(&self, ask: &ScriptCall, number: u64) -> Cmd {
        let mut command = ::redis::cmd("EVALSHA");
        let name = self.script_hashes.get(ask.script as usize).map_or(&[][..], Vec::as_slice);
        command.arg(name).arg(1).arg(&self.context.address.prefix).arg(&self.context.client_name).arg(number);
        for word in &ask.args {
            command.arg(word.as_slice());
        }
        command
    }

    /// Makes calls in one round trip; each has a reply or an error. After a lost connection it is unknown which calls
    /// were executed.
    pub(super) fn call_all(
        &mut self,
        asks: &[(u64, &ScriptCall)],
    ) -> Result<Vec<Result<Value, StoreError>>, RedisFailure> {
        self.open()?;
        let packed: Vec<u8> =
            asks.iter().flat_map(|(number, ask)| self.command(ask, *number).get_packed_command()).collect();
        let Some(mut connection) = self.connection.take() else {
            return Err(RedisFailure::Unreachable("no connection".into()));
        };
        connection.send_packed_command(&packed).map_err(|error| connection_lost(&error))?;
        let mut replies = Vec::with_capacity(asks.len());
        for _ in asks {
            let reply = connection.recv_response().map_err(|error| connection_lost(&error))?;
            replies.push(match reply {
                Value::ServerError(error) => match self.classify_error(&RedisError::from(error)) {
                    RedisFailure::Fatal(why) => Err(why),
                    // The connection is dropped; the next one loads the scripts again.
                    passing @ RedisFailure::Unreachable(_) => return Err(passing),
                },
                value => Ok(value),
            });
        }
        self.connection = Some(connection);
        Ok(replies)
    }

    /// Classifies an error of the server.
    fn classify_error(&self, error: &RedisError) -> RedisFailure {
        let path = self.context.address.path();
        match error.code() {
            // Inside a script the code is in the text.
            _ if error.to_string().contains("OOM") => RedisFailure::Fatal(StoreError::NoSpace(path, 0)),
            Some("ERR" | "WRONGTYPE") => RedisFailure::Fatal(StoreError::ReadWriteFailed(path, error_line(error))),
            Some("NOPERM" | "NOAUTH" | "WRONGPASS") => {
                RedisFailure::Fatal(StoreError::Address(path, error_line(error)))
            }
            _ => connection_lost(error),
        }
    }
}

pub(super) fn connect(address: &QueueAddress) -> Result<Connection, RedisFailure> {
    address.server.connect(CONNECT_TIMEOUT, RESPONSE_TIMEOUT).map_err(|why| match why {
        RedisConnectError::Unreachable(why) => RedisFailure::Unreachable(why),
        RedisConnectError::Rejected(why) => RedisFailure::Fatal(StoreError::Address(address.path(), why)),
    })
}

fn connection_lost(error: &RedisError) -> RedisFailure {
    RedisFailure::Unreachable(error_line(error))
}
