//! Requests of a trace in the order of their arrivals.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::trace_options::{TraceLoop, TraceOptions};
use super::trace_tally::{TraceOmission, TraceTally};
use super::trace_turns::{LaterTurns, TurnPlaces};
use crate::trace::{TraceFormat, TraceLineError, TraceLines, TraceRecord, TraceSession, TraceStart, TraceTurn};
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_replay::log::{LogLine, LogLines};
use weir_replay::{SortWindow, WindowLimit};

/// Window in which arrivals are sorted, and later turns find their session: number and memory of the requests.
const WINDOW: WindowLimit = WindowLimit { items: 50_000, bytes: 16 << 20 };
/// Stream of random numbers that sessions are chosen by.
const SAMPLE_SALT: u64 = 0x6c6c_6d09;

/// Requests of a trace in the order of their arrivals, read as they are needed.
#[derive(Debug)]
pub(super) struct TraceReader {
    lines: LogLines,
    reader: TraceLines,
    /// First line, unless it is the heading of a table.
    first_line: Option<String>,
    window: SortWindow<TraceSession>,
    /// Later turns of sessions that are in the window, by the session's name.
    later: HashMap<u64, LaterTurns>,
    /// Requests that others may wait for.
    places: TurnPlaces,
    later_bytes: usize,
    records: Vec<TraceRecord>,
    tally: TraceTally,
    /// Number of requests that were read.
    number: u64,
    pacing: TraceLoop,
    sample: Option<f64>,
    seed: u64,
    is_end: bool,
    /// First session, if it was read already.
    peeked: Option<(i64, TraceSession)>,
}

impl TraceReader {
    /// Opens a trace, tells its format, and fills the window.
    ///
    /// # Errors
    /// One line: a file that cannot be read, an unknown format, or no request.
    pub(super) fn open(asked: &TraceOptions, seed: u64) -> Result<Self, String> {
        let name = asked.name();
        let mut lines = LogLines::new(std::slice::from_ref(&asked.file));
        let first = match lines.next_line()? {
            Some(LogLine::Text(text)) => text,
            Some(LogLine::TooLong) => return Err(format!("{}: a line that is too long for a trace", lines.place())),
            None => return Err(format!("--trace: {name} has no lines")),
        };
        let reader = TraceLines::new(asked.format, &first, asked.block_tokens)
            .map_err(|why| format!("--trace: {}: {why}; --trace-format names a format", lines.place()))?;
        let mut own = Self {
            first_line: (!reader.has_heading()).then_some(first),
            lines,
            reader,
            window: SortWindow::new(WINDOW),
            later: HashMap::new(),
            places: TurnPlaces::default(),
            later_bytes: 0,
            records: Vec::new(),
            tally: TraceTally::default(),
            number: 0,
            pacing: asked.pacing,
            sample: asked.sample,
            seed,
            is_end: false,
            peeked: None,
        };
        own.peeked = own.take_next()?;
        if own.peeked.is_none() {
            return Err(own.tally.emptiness(&name, own.reader.format().name()));
        }
        while !own.is_end && !own.is_full() {
            own.read_line()?;
        }
        Ok(own)
    }

    /// Format.
    pub(super) fn format(&self) -> TraceFormat {
        self.reader.format()
    }

    /// Whether requests may wait for the response to another one, as far as it can be known.
    pub(super) fn has_turns(&self) -> bool {
        let first = self.peeked.as_ref().is_some_and(|(_, session)| !session.later.is_empty());
        self.may_have_turns() && (first || self.later.values().any(|later| !later.turns.is_empty()))
    }

    /// Mean rate of the arrivals in the window, per second.
    pub(super) fn sampled_rate(&self) -> f64 {
        let times = self.peeked.iter().map(|(at, _)| *at).chain(self.window.items().map(|(at, _)| at));
        let (count, first, last) = times
            .fold((0_u64, i64::MAX, i64::MIN), |(count, first, last), at| (count + 1, first.min(at), last.max(at)));
        count as f64 / (last.saturating_sub(first) as f64 / 1e9).max(1.0)
    }

    /// Counts so far.
    pub(super) fn tally(&self) -> &TraceTally {
        &self.tally
    }

    /// Counts a session that is sent, which arrives at a time of the trace.
    pub(super) fn count(&mut self, at: i64, session: &TraceSession) {
        self.tally.add(at, session);
    }

    /// Next session with its arrival; `None` at the end.
    ///
    /// # Errors
    /// One line, if the file cannot be read.
    pub(super) fn next(&mut self) -> Result<Option<(i64, TraceSession)>, String> {
        match self.peeked.take() {
            Some(timed) => Ok(Some(timed)),
            None => self.take_next(),
        }
    }

    fn is_full(&self) -> bool {
        self.window.is_full() || self.later_bytes >= WINDOW.bytes
    }

    fn take_next(&mut self) -> Result<Option<(i64, TraceSession)>, String> {
        while !self.is_end && !self.is_full() {
            self.read_line()?;
        }
        // A window that is full of later turns gives its first session away as well.
        let popped = self.window.pop(true).map(|(at, _, session)| (at, session));
        Ok(popped.map(|(at, session)| (at, self.with_later_turns(session))))
    }

    /// Session with the turns that came for it while it was in the window.
    fn with_later_turns(&mut self, mut session: TraceSession) -> TraceSession {
        if let Some(name) = session.first.session
            && let Entry::Occupied(entry) = self.later.entry(name)
            && entry.get().first == session.first.number
        {
            let later = entry.remove();
            self.places.remove(&later);
            session.later = later.turns;
            let bytes: usize = session.later.iter().map(TraceTurn::memory_bytes).sum();
            self.later_bytes = self.later_bytes.saturating_sub(bytes);
        }
        session
    }

    /// Takes one line into the window.
    fn read_line(&mut self) -> Result<(), String> {
        let line = match self.first_line.take() {
            Some(line) => LogLine::Text(line),
            None => match self.lines.next_line()? {
                Some(line) => line,
                None => {
                    self.is_end = true;
                    return Ok(());
                }
            },
        };
        self.tally.lines += 1;
        let LogLine::Text(text) = line else {
            self.tally.leave_out(TraceOmission::TooLong);
            return Ok(());
        };
        let mut records = std::mem::take(&mut self.records);
        match self.reader.push_records(&text, &mut records) {
            Ok(()) => {}
            Err(TraceLineError::NoRequest) => self.tally.leave_out(TraceOmission::NoRequest),
            Err(TraceLineError::NoTokens) => self.tally.leave_out(TraceOmission::NoTokens),
            Err(TraceLineError::Broken(why)) => {
                let lines = &self.lines;
                self.tally.add_broken(|| format!("{}: {why}", lines.place()));
            }
        }
        for record in records.drain(..) {
            self.push(record);
        }
        self.records = records;
        Ok(())
    }

    fn push(&mut self, record: TraceRecord) {
        let number = self.number;
        self.number += 1;
        let session = self.places.session_of(&record).or(record.session);
        if !self.is_chosen(session.unwrap_or(number)) {
            return self.tally.leave_out(TraceOmission::NotSampled);
        }
        let (start, took, id) = (record.start, record.took, record.id);
        let known = session.and_then(|name| self.later.get_mut(&name));
        if let Some(later) = known.filter(|_| is_later_turn(&record, self.reader.format(), self.pacing)) {
            let turn = later.turn(record, &self.places, (number, session), self.pacing);
            let Some(turn) = turn else { return self.tally.leave_out(TraceOmission::LostTurn) };
            self.later_bytes += turn.memory_bytes();
            later.push(turn, (start, took), id);
            return self.places.add(id, session, later.turns.len());
        }
        let (TraceStart::At(at), true) = (start, record.after.is_empty()) else {
            return self.tally.leave_out(TraceOmission::LostTurn);
        };
        // A session without a name has one by its first request, if others may wait for that.
        let session = session.or(id.filter(|_| self.may_have_turns()));
        let turn = TraceTurn {
            number,
            session,
            after: Box::default(),
            not_before: Nanos::ZERO,
            input_tokens: record.input_tokens,
            output_tokens: record.output_tokens,
            prompt: record.prompt,
        };
        let first = TraceSession { client: 0, first: turn, later: Vec::new() };
        if self.window.push(at, first.memory_bytes(), first).is_err() {
            return self.tally.leave_out(TraceOmission::OutOfOrder);
        }
        if let (Some(name), true) = (session, self.may_have_turns()) {
            self.lose(name);
            self.later.insert(name, LaterTurns::new(number, at, took, id));
            self.places.add(id, session, 0);
        }
    }

    /// Whether requests may wait for the response to another one.
    fn may_have_turns(&self) -> bool {
        self.reader.may_have_turns() || self.pacing != TraceLoop::Open
    }

    /// Leaves out the turns of a session whose name comes again with a time of its own.
    fn lose(&mut self, name: u64) {
        let Some(lost) = self.later.remove(&name) else { return };
        self.places.remove(&lost);
        // Its first turn is in the window still, and is sent.
        for turn in lost.turns {
            self.later_bytes = self.later_bytes.saturating_sub(turn.memory_bytes());
            self.tally.leave_out(TraceOmission::LostTurn);
        }
    }

    /// Whether a session is among the sampled ones: a function of its name and the seed.
    fn is_chosen(&self, name: u64) -> bool {
        self.sample.is_none_or(|fraction| SeededRng::new(self.seed, SAMPLE_SALT).unit_at(name) <= fraction)
    }
}

/// Whether a request belongs to the session that has its name, and has not begun one of its own.
fn is_later_turn(record: &TraceRecord, format: TraceFormat, pacing: TraceLoop) -> bool {
    let is_timed = matches!(record.start, TraceStart::At(_));
    !record.after.is_empty() || !is_timed || format == TraceFormat::Agentic || pacing != TraceLoop::Open
}
