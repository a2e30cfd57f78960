//! Script of a response: what is written when, and how it ends. PURE: seed and number of the request decide it.

use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_events::StreamFormat;

use super::event_text::EventText;
use super::options::Options;

/// Fault of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFault {
    /// Breaks off within an event.
    Cut,
    /// Ends within an event as if it was whole.
    Half,
    /// Pauses before an event.
    Stall,
}

/// Write of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamWrite {
    /// Time of the write, from the request's arrival.
    pub due: Nanos,
    /// Bytes.
    pub bytes: Vec<u8>,
    /// Number of events that these bytes complete.
    pub completes: u64,
}

/// Script of a response: an iterator over its writes.
#[derive(Debug)]
pub struct StreamScript<'a> {
    options: &'a Options,
    text: EventText<'a>,
    events: u64,
    fault: Option<(StreamFault, u64)>,
    gaps: SeededRng,
    cuts: SeededRng,
    stalls: SeededRng,
    /// Number of groups of events written, and of events in them.
    groups: u64,
    written: u64,
    /// Time of the last group's first write.
    due: Nanos,
    /// Writes of the current group, the last one first.
    pending: Vec<StreamWrite>,
    has_ended: bool,
}

impl StreamFault {
    /// Name in records and statistics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Half => "half",
            Self::Stall => "stall",
        }
    }
}

impl<'a> StreamScript<'a> {
    /// Script of request `k` with this number of events.
    pub fn new(options: &'a Options, format: StreamFormat, events: u64, k: u64) -> Self {
        let rng = |salt: u64| SeededRng::new(options.seed, (salt << 48) ^ k);
        let faults = &options.faults;
        let draws = rng(51);
        let kind =
            [(StreamFault::Cut, faults.cut), (StreamFault::Half, faults.half), (StreamFault::Stall, faults.stall)]
                .into_iter()
                .zip(0..)
                .find_map(|((fault, fraction), draw)| (draws.unit_at(draw) <= fraction).then_some(fault));
        // `unit_at` is in (0, 1], so the event is from 1 to `events`.
        let fault = kind.filter(|_| events > 0).map(|fault| (fault, (draws.unit_at(9) * events as f64).ceil() as u64));
        Self {
            options,
            text: EventText {
                format,
                sse: &options.sse,
                event_bytes: options.event_bytes,
                words: rng(52),
                choices: rng(53),
            },
            events,
            fault,
            gaps: rng(54),
            cuts: rng(55),
            stalls: rng(56),
            groups: 0,
            written: 0,
            due: Nanos::ZERO,
            pending: Vec::new(),
            has_ended: false,
        }
    }

    /// Fault of the response, and the number of its event, from 1.
    pub fn fault(&self) -> Option<(StreamFault, u64)> {
        self.fault
    }

    /// Makes the writes of the next group of events.
    fn next_group(&mut self) {
        let first = self.written + 1;
        let last = self.events.min(self.written.saturating_add(self.options.pack.max(1)));
        let delay = match self.groups {
            0 => self.options.first_delay.at(&self.gaps, 0),
            group => self.options.gap.at(&self.gaps, group),
        };
        self.due += delay;
        let mut bytes = if first == 1 { self.text.opening() } else { Vec::new() };
        let mut ends = Vec::new();
        for n in first..=last {
            let event = self.text.event(n);
            match self.fault {
                Some((StreamFault::Stall, at)) if at == n => {
                    self.due += self.options.faults.stall_time.at(&self.stalls, 0);
                }
                Some((StreamFault::Cut | StreamFault::Half, at)) if at == n => {
                    bytes.extend_from_slice(&event[..event.len() / 2]);
                    self.has_ended = true;
                    break;
                }
                _ => {}
            }
            bytes.extend_from_slice(&event);
            ends.push(bytes.len());
        }
        self.groups += 1;
        self.written = last;
        self.has_ended |= last == self.events;
        self.split(&bytes, &ends);
    }

    /// Cuts the bytes of a group at random places.
    fn split(&mut self, bytes: &[u8], ends: &[usize]) {
        let parts = (self.options.split.max(1) as usize).min(bytes.len().max(1));
        // Different places: one in each of equal parts.
        let place = |part: usize| {
            let (low, high) = (part * bytes.len() / parts, (part + 1) * bytes.len() / parts);
            let draw = self.cuts.unit_at((self.groups << 20) | part as u64);
            (low + ((high - low) as f64 * draw) as usize).clamp(1, bytes.len())
        };
        let mut places: Vec<usize> = (0..parts - 1).map(place).chain([bytes.len()]).collect();
        places.dedup();
        let mut from = 0;
        for (index, to) in (0..).zip(places) {
            self.pending.push(StreamWrite {
                due: self.due + Nanos(self.options.split_gap.0.saturating_mul(index)),
                bytes: bytes[from..to].to_vec(),
                completes: ends.iter().filter(|end| from < **end && **end <= to).count() as u64,
            });
            from = to;
        }
        self.due = self.pending.last().map_or(self.due, |write| write.due);
        self.pending.reverse();
    }
}

impl Iterator for StreamScript<'_> {
    type Item = StreamWrite;

    fn next(&mut self) -> Option<StreamWrite> {
        if self.pending.is_empty() && !self.has_ended && self.events > 0 {
            self.next_group();
        }
        self.pending.pop()
    }
}

#[cfg(test)]
mod tests;
