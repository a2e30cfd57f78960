//! Sessions of a trace in the order of their first requests, while later lines may still belong to them.

use std::collections::HashMap;

use super::trace_tally::TraceOmission;
use crate::trace::{RecordedSession, TraceRecord, TraceStart, TurnRule};
use weir_replay::{SortWindow, WindowLimit};

/// Number and memory of the requests in a window.
const LIMIT: WindowLimit = WindowLimit { items: 50_000, bytes: 64 << 20 };

/// Sessions in the order of their first requests, in a bounded window: those that come out have all requests that came
/// while they were in it.
#[derive(Debug)]
pub(super) struct SessionWindow {
    rule: TurnRule,
    /// Whether a request may belong to a session of an earlier one.
    has_sessions: bool,
    /// Sessions by their arrivals, each by the number of its first line; what has come out is there no more.
    arrivals: SortWindow<u64>,
    sessions: HashMap<u64, OpenSession>,
    /// Last session with a name, and with a request that others may wait for.
    names: HashMap<u64, u64>,
    ids: HashMap<u64, u64>,
    later_bytes: usize,
    count: u64,
}

/// Session with its arrival.
#[derive(Debug)]
pub(super) struct ArrivedSession {
    /// Arrival of its earliest request, or later, if that came too late.
    pub(super) arrival: i64,
    /// Number of its first line among the requests of the trace.
    pub(super) number: u64,
    pub(super) recorded: RecordedSession,
}

impl ArrivedSession {
    /// Name that it is chosen by: that of the session, or its number.
    pub(super) fn key(&self) -> u64 {
        self.recorded.name.unwrap_or(self.number)
    }
}

#[derive(Debug)]
struct OpenSession {
    arrived: ArrivedSession,
    later_bytes: usize,
}

impl SessionWindow {
    pub(super) fn new(rule: TurnRule, has_sessions: bool) -> Self {
        Self {
            rule,
            has_sessions,
            arrivals: SortWindow::new(LIMIT),
            sessions: HashMap::new(),
            names: HashMap::new(),
            ids: HashMap::new(),
            later_bytes: 0,
            count: 0,
        }
    }

    /// Whether the first session is to come out.
    pub(super) fn is_full(&self) -> bool {
        self.arrivals.is_full() || self.later_bytes >= LIMIT.bytes
    }

    /// Sessions, in no order.
    pub(super) fn sessions(&self) -> impl Iterator<Item = &ArrivedSession> {
        self.sessions.values().map(|session| &session.arrived)
    }

    /// Adds a request of the trace.
    ///
    /// # Errors
    /// The reason why it is left out.
    pub(super) fn push(&mut self, record: TraceRecord) -> Result<(), TraceOmission> {
        let number = self.count;
        self.count += 1;
        let awaited = record.after.iter().find_map(|wait| self.ids.get(&wait.request));
        let found = awaited.or_else(|| self.names.get(&record.session?)).copied();
        match found.filter(|_| self.belongs_to_known(&record)) {
            Some(of) => self.join(of, number, record),
            None => self.begin(number, record),
        }
    }

    /// Whether a request belongs to the session that has its name, and does not begin one of its own.
    fn belongs_to_known(&self, record: &TraceRecord) -> bool {
        let is_timed = matches!(record.start, TraceStart::At(_));
        !record.after.is_empty() || !is_timed || self.rule.names_all || self.rule.chains
    }

    fn join(&mut self, of: u64, number: u64, record: TraceRecord) -> Result<(), TraceOmission> {
        let Some(session) = self.sessions.get_mut(&of) else { return Err(TraceOmission::LostTurn) };
        let bytes = record.memory_bytes();
        session.later_bytes += bytes;
        self.later_bytes += bytes;
        if let Some(id) = record.id {
            self.ids.insert(id, of);
        }
        // Its session begins earlier than it seemed, if that is still possible.
        if let Some(arrival) = record.arrival().filter(|at| record.after.is_empty() && *at < session.arrived.arrival)
            && self.arrivals.push(arrival, 0, of).is_ok()
        {
            session.arrived.arrival = arrival;
        }
        session.arrived.recorded.push(number, record);
        Ok(())
    }

    fn begin(&mut self, number: u64, record: TraceRecord) -> Result<(), TraceOmission> {
        let Some(arrival) = record.arrival().filter(|_| record.after.is_empty()) else {
            return Err(TraceOmission::LostTurn);
        };
        self.arrivals.push(arrival, record.memory_bytes(), number).map_err(|_| TraceOmission::OutOfOrder)?;
        let mut name = record.session;
        if self.has_sessions {
            // A session without a name has one by its first request, if others may wait for that.
            name = name.or(record.id);
            self.names.extend(name.map(|name| (name, number)));
            self.ids.extend(record.id.map(|id| (id, number)));
        }
        let arrived = ArrivedSession { arrival, number, recorded: RecordedSession::new(name, number, record) };
        self.sessions.insert(number, OpenSession { arrived, later_bytes: 0 });
        Ok(())
    }

    /// First session; `None` if there is none.
    pub(super) fn pop(&mut self) -> Option<ArrivedSession> {
        loop {
            // A window that is full of later requests gives its first session away as well.
            let (_, _, number) = self.arrivals.pop(true)?;
            // A session may have come out at an earlier arrival.
            let Some(session) = self.sessions.remove(&number) else { continue };
            self.later_bytes -= session.later_bytes;
            let arrived = session.arrived;
            for id in arrived.recorded.records().filter_map(|record| record.id) {
                forget(&mut self.ids, id, number);
            }
            if let Some(name) = arrived.recorded.name {
                forget(&mut self.names, name, number);
            }
            return Some(arrived);
        }
    }
}

/// Removes a key, unless it stands for a later session by now.
fn forget(map: &mut HashMap<u64, u64>, key: u64, number: u64) {
    if map.get(&key) == Some(&number) {
        map.remove(&key);
    }
}
