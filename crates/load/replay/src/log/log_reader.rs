//! Requests of a log in the order of their starts.

use std::collections::VecDeque;
use std::path::PathBuf;

use super::log_end::end_of;
use super::log_lines::{LogLine, LogLines};
use super::log_moment::LogMoment;
use super::log_tally::LogTally;
use crate::{
    AccessFormat, AccessRecord, FormatDetection, LineError, LineOmission, LogTimeline, RecordSelection, TimedRecord,
    WindowLimit,
};
use weir_base::Nanos;

/// Windows in which lines are sorted: at most this many, and this much memory.
const WINDOW: WindowLimit = WindowLimit { items: 50_000, bytes: 16 << 20 };

/// Which log to read, and how: files, format, selection, period and seed of the sampling.
#[derive(Clone, Debug)]
pub(crate) struct LogRequest {
    /// Files, in order; `-` is stdin.
    pub(crate) files: Vec<PathBuf>,
    /// Format with its name, if it is given.
    pub(crate) format: Option<(String, AccessFormat)>,
    pub(crate) selection: RecordSelection,
    pub(crate) from: Option<LogMoment>,
    pub(crate) to: Option<LogMoment>,
    pub(crate) seed: u64,
}

/// Requests of a log in the order of their starts, read as they are needed.
#[derive(Debug)]
pub(crate) struct LogReader {
    request: LogRequest,
    format: AccessFormat,
    format_name: String,
    lines: LogLines,
    /// First lines, from which the format was detected, with their places.
    first_lines: VecDeque<(LogLine, String)>,
    timeline: LogTimeline,
    tally: LogTally,
    /// Start of the first request of the log.
    first_ns: Option<i64>,
    is_end: bool,
    /// Whether a request has come that is behind the part that is wanted.
    is_over: bool,
    /// First request, if it was read already.
    peeked: Option<TimedRecord>,
}

impl LogReader {
    /// Opens the log, and detects its format from the first lines unless it is given.
    ///
    /// # Errors
    /// One line, if a file cannot be read or its lines have no known format.
    pub(crate) fn open(request: LogRequest) -> Result<Self, String> {
        let mut lines = LogLines::new(&request.files);
        let mut first_lines = VecDeque::new();
        let (format_name, format) = match request.format.clone() {
            Some(given) => given,
            None => detected(&mut lines, &mut first_lines)?,
        };
        Ok(Self {
            timeline: LogTimeline::new(WINDOW, request.seed),
            request,
            format,
            format_name,
            lines,
            first_lines,
            tally: LogTally::default(),
            first_ns: None,
            is_end: false,
            is_over: false,
            peeked: None,
        })
    }

    /// Reads the same log again, and counts on.
    pub(crate) fn restart(&mut self) {
        self.lines = LogLines::new(&self.request.files);
        self.first_lines.clear();
        self.timeline = LogTimeline::new(WINDOW, self.request.seed);
        (self.first_ns, self.is_end, self.is_over) = (None, false, false);
    }

    /// Name of the format.
    pub(crate) fn format_name(&self) -> &str {
        &self.format_name
    }

    /// Counts a request that is sent.
    pub(crate) fn count(&mut self, timed: &TimedRecord) {
        self.tally.add(timed);
    }

    /// Counts of the log up to the line that was read last.
    pub(crate) fn tally(&mut self) -> &LogTally {
        self.tally.set_out_of_order(self.timeline.out_of_order());
        &self.tally
    }

    /// Reads to the first request and fills the windows behind it.
    ///
    /// # Errors
    /// One line, if a file cannot be read, or if there is no request.
    pub(crate) fn peek(&mut self) -> Result<(), String> {
        self.peeked = self.take_next()?;
        if self.peeked.is_none() {
            return Err(self.emptiness());
        }
        while !self.is_end && !self.timeline.is_full() {
            self.read_line()?;
        }
        Ok(())
    }

    /// Requests that are in the windows, with their starts as far as they are known.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (i64, &AccessRecord)> {
        let peeked = self.peeked.iter().map(|timed| (timed.start_ns, &timed.record));
        peeked.chain(self.timeline.waiting())
    }

    /// Time from the first request to the last one, as far as it can be known without reading the log.
    pub(crate) fn expected_length(&self) -> Option<Nanos> {
        let first = self.peeked.as_ref()?.start_ns;
        let end = end_of(self.request.files.last()?, &self.format)?;
        let to = self.request.to.map_or(i64::MAX, |to| to.unix_ns(self.first_ns.unwrap_or(first)));
        u64::try_from(end.min(to).saturating_sub(first)).ok().map(Nanos)
    }

    /// Next request; `None` at the end.
    ///
    /// # Errors
    /// One line, if a file cannot be read.
    pub(crate) fn next(&mut self) -> Result<Option<TimedRecord>, String> {
        match self.peeked.take() {
            Some(timed) => Ok(Some(timed)),
            None => self.take_next(),
        }
    }

    fn take_next(&mut self) -> Result<Option<TimedRecord>, String> {
        while !self.is_over {
            let Some(timed) = self.timeline.next(self.is_end) else {
                if self.is_end {
                    break;
                }
                self.read_line()?;
                continue;
            };
            let first = *self.first_ns.get_or_insert(timed.start_ns);
            let bound = |moment: Option<LogMoment>| moment.map(|moment| moment.unix_ns(first));
            if bound(self.request.from).is_some_and(|from| timed.start_ns < from) {
                self.tally.leave_out(LineOmission::OutsideTime);
                continue;
            }
            if bound(self.request.to).is_some_and(|to| timed.start_ns >= to) {
                self.tally.leave_out(LineOmission::OutsideTime);
                // All that follow start later.
                self.is_over = true;
                break;
            }
            return Ok(Some(timed));
        }
        Ok(None)
    }

    /// Takes one line into the windows.
    fn read_line(&mut self) -> Result<(), String> {
        let (line, place) = match self.first_lines.pop_front() {
            Some((line, place)) => (line, Some(place)),
            None => match self.lines.next_line()? {
                Some(line) => (line, None),
                None => {
                    self.is_end = true;
                    return Ok(());
                }
            },
        };
        self.tally.lines += 1;
        let LogLine::Text(text) = line else {
            self.tally.leave_out(LineOmission::TooLong);
            return Ok(());
        };
        match self.format.record(&text) {
            Ok(record) => match self.request.selection.check(&record) {
                Ok(()) => self.timeline.push(record),
                Err(omission) => self.tally.leave_out(omission),
            },
            Err(LineError::NoRequest(_)) => self.tally.leave_out(LineOmission::NoRequest),
            Err(error) => {
                let lines = &self.lines;
                self.tally.add_broken(|| format!("{}: {error}", place.unwrap_or_else(|| lines.place())));
            }
        }
        Ok(())
    }

    /// Why there is no request.
    fn emptiness(&mut self) -> String {
        self.tally.set_out_of_order(self.timeline.out_of_order());
        let names: Vec<String> = self.request.files.iter().map(|file| file.display().to_string()).collect();
        let names = names.join(", ");
        match (self.tally.lines, self.tally.main_omission(), self.tally.first_broken()) {
            (0, ..) => format!("{names}: no lines"),
            (_, Some(LineOmission::Broken), Some(first)) if self.request.format.is_some() => {
                format!("{first}; the lines are not of --log-pattern")
            }
            (_, Some(LineOmission::Broken), Some(first)) => {
                format!("{first}; the format was taken to be {}", self.format_name)
            }
            (lines, Some(omission), _) => {
                format!("{names}: no request to send in {lines} lines; most are left out: {}", omission.description())
            }
            (lines, None, _) => format!("{names}: no request in {lines} lines"),
        }
    }
}

/// Format that the first lines have; they are kept, with their places.
fn detected(lines: &mut LogLines, kept: &mut VecDeque<(LogLine, String)>) -> Result<(String, AccessFormat), String> {
    let mut detection = FormatDetection::new();
    let mut first: Option<(String, String)> = None;
    while kept.len() < FormatDetection::LINES {
        let Some(line) = lines.next_line()? else { break };
        if let LogLine::Text(text) = &line {
            detection.add(text);
            first.get_or_insert_with(|| (text.clone(), lines.place()));
        }
        kept.push_back((line, lines.place()));
    }
    let Some((text, place)) = first else { return Ok(("json".to_owned(), "json".parse::<AccessFormat>()?)) };
    match detection.format(&text) {
        Ok((name, format)) => Ok((name.to_owned(), format)),
        Err(error) => Err(format!(
            "{place}: unknown log format: {error}; give it with --log-pattern, e.g. '$remote_addr [$time_local] \
             \"$request\" $status', or one of {}",
            AccessFormat::names()
        )),
    }
}
