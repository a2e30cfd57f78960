//! Sessions of a trace in the order of their arrivals.

use super::session_window::{ArrivedSession, SessionWindow};
use super::trace_options::{TraceLoop, TraceOptions};
use super::trace_tally::{TraceOmission, TraceTally};
use crate::trace::{AssembledSession, TraceFormat, TraceLineError, TraceLines, TraceRecord, TraceSession, TurnRule};
use weir_base::rng::SeededRng;
use weir_replay::log::{LogLine, LogLines};

/// Stream of random numbers that sessions are chosen by.
const SAMPLE_SALT: u64 = 0x6c6c_6d09;

/// Sessions of a trace in the order of their arrivals, read as they are needed.
#[derive(Debug)]
pub(super) struct TraceReader {
    lines: LogLines,
    reader: TraceLines,
    /// First line, unless it is the heading of a table.
    first_line: Option<String>,
    window: SessionWindow,
    rule: TurnRule,
    records: Vec<TraceRecord>,
    tally: TraceTally,
    sample: SessionSample,
    is_end: bool,
    /// First session, if it was read already.
    peeked: Option<TraceSession>,
}

/// Sessions that are chosen, each whole: a function of the seed and of a session's name.
#[derive(Clone, Copy, Debug)]
struct SessionSample {
    fraction: Option<f64>,
    seed: u64,
}

impl SessionSample {
    fn contains(self, session: &ArrivedSession) -> bool {
        let rng = SeededRng::new(self.seed, SAMPLE_SALT);
        self.fraction.is_none_or(|fraction| rng.unit_at(session.key()) <= fraction)
    }
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
        let rule =
            TurnRule { names_all: reader.format() == TraceFormat::Agentic, chains: asked.pacing != TraceLoop::Open };
        let mut own = Self {
            first_line: (!reader.has_heading()).then_some(first),
            lines,
            window: SessionWindow::new(rule, reader.may_have_turns() || rule.chains),
            reader,
            rule,
            records: Vec::new(),
            tally: TraceTally::default(),
            sample: SessionSample { fraction: asked.sample, seed },
            is_end: false,
            peeked: None,
        };
        own.peeked = own.take_next()?;
        if own.peeked.is_none() {
            return Err(own.tally.emptiness(&name, own.reader.format().name()));
        }
        own.fill()?;
        Ok(own)
    }

    /// Format.
    pub(super) fn format(&self) -> TraceFormat {
        self.reader.format()
    }

    /// Whether requests may wait for the response to another one, as far as it can be known.
    pub(super) fn has_turns(&self) -> bool {
        let first = self.peeked.as_ref().is_some_and(|session| !session.later.is_empty());
        first || self.chosen().any(|session| session.recorded.records().len() > 1)
    }

    /// Sessions in the window that are chosen.
    fn chosen(&self) -> impl Iterator<Item = &ArrivedSession> {
        self.window.sessions().filter(|session| self.sample.contains(session))
    }

    /// Mean rate of the arrivals in the window, per second.
    pub(super) fn sampled_rate(&self) -> f64 {
        let first = self.peeked.iter().map(|session| session.arrival);
        let times = first.chain(self.chosen().map(|session| session.arrival));
        let (count, first, last) = times
            .fold((0_u64, i64::MAX, i64::MIN), |(count, first, last), at| (count + 1, first.min(at), last.max(at)));
        count as f64 / (last.saturating_sub(first) as f64 / 1e9).max(1.0)
    }

    /// Counts so far.
    pub(super) fn tally(&self) -> &TraceTally {
        &self.tally
    }

    /// Next session; `None` at the end.
    ///
    /// # Errors
    /// One line, if the file cannot be read.
    pub(super) fn next(&mut self) -> Result<Option<TraceSession>, String> {
        match self.peeked.take() {
            Some(session) => Ok(Some(session)),
            None => self.take_next(),
        }
    }

    fn fill(&mut self) -> Result<(), String> {
        while !self.is_end && !self.window.is_full() {
            self.read_line()?;
        }
        Ok(())
    }

    fn take_next(&mut self) -> Result<Option<TraceSession>, String> {
        loop {
            self.fill()?;
            let Some(arrived) = self.window.pop() else { return Ok(None) };
            let requests = arrived.recorded.records().len() as u64;
            if !self.sample.contains(&arrived) {
                self.tally.leave_out(TraceOmission::NotSampled, requests);
                continue;
            }
            let Some(AssembledSession { session, lost }) = arrived.recorded.assembled(self.rule) else {
                self.tally.leave_out(TraceOmission::LostTurn, requests);
                continue;
            };
            self.tally.leave_out(TraceOmission::LostTurn, lost);
            return Ok(Some(TraceSession { arrival: arrived.arrival, ..session }));
        }
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
            self.tally.leave_out(TraceOmission::TooLong, 1);
            return Ok(());
        };
        let mut records = std::mem::take(&mut self.records);
        match self.reader.push_records(&text, &mut records) {
            Ok(()) => {}
            Err(TraceLineError::NoRequest) => self.tally.leave_out(TraceOmission::NoRequest, 1),
            Err(TraceLineError::NoTokens) => self.tally.leave_out(TraceOmission::NoTokens, 1),
            Err(TraceLineError::Broken(why)) => {
                let lines = &self.lines;
                self.tally.add_broken(|| format!("{}: {why}", lines.place()));
            }
        }
        for record in records.drain(..) {
            if let Err(omission) = self.window.push(record) {
                self.tally.leave_out(omission, 1);
            }
        }
        self.records = records;
        Ok(())
    }
}
