//! Times of one streamed response, as its bytes and events arrive.

use weir_base::Nanos;

/// End of a streamed response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// Whole response, whose last event is complete.
    Complete,
    /// Whole response that ends within an event, which is discarded.
    Unfinished,
    /// Response that ended on purpose, after a number of events or a match.
    Stopped,
    /// Response whose connection ended early, or whose framing is invalid.
    BrokenOff,
    /// Response without an event for longer than the stall timeout.
    Stalled,
    /// Response that did not end within the timeout of its request.
    TimedOut,
    /// Response that was in flight when the run ended.
    CutOff,
}

/// Times of one streamed response so far. An event arrives with the piece of the body that completes it; events that
/// arrive together have a gap of 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamTimeline {
    /// Intended start of the request.
    pub intended: Nanos,
    /// Time of the send.
    pub sent: Nanos,
    /// Arrival of the first byte of the response; none before it.
    pub first_byte: Option<Nanos>,
    /// Arrival of the first event; none before it.
    pub first_event: Option<Nanos>,
    /// Arrival of the last event so far; the intended start before the first.
    pub last_event: Nanos,
    /// Longest gap between two events so far.
    pub longest_gap: Nanos,
    /// Number of events.
    pub events: u64,
    /// Number of events that arrived together with the one before them.
    pub coalesced: u64,
}

impl StreamTimeline {
    /// Timeline of a request that was sent at `sent`.
    pub fn new(intended: Nanos, sent: Nanos) -> Self {
        Self {
            intended,
            sent,
            first_byte: None,
            first_event: None,
            last_event: intended,
            longest_gap: Nanos::ZERO,
            events: 0,
            coalesced: 0,
        }
    }

    /// Records bytes of the response, of its head or body.
    #[inline]
    pub fn record_bytes(&mut self, at: Nanos) {
        self.first_byte.get_or_insert(at);
    }

    /// Records an event, and returns its gap to the one before it; none for the first.
    #[inline]
    pub fn record_event(&mut self, at: Nanos) -> Option<Nanos> {
        self.events += 1;
        let before = std::mem::replace(&mut self.last_event, at);
        if self.first_event.is_none() {
            self.first_event = Some(at);
            return None;
        }
        let gap = at - before;
        self.longest_gap = self.longest_gap.max(gap);
        self.coalesced += u64::from(gap == Nanos::ZERO);
        Some(gap)
    }

    /// Time at which the response has stalled if no further event arrives: `timeout` behind the last event. Never before
    /// the first one, since the request's timeout limits that wait.
    pub fn stalls_at(&self, timeout: Nanos) -> Nanos {
        if self.first_event.is_some() { self.last_event + timeout } else { Nanos::NEVER }
    }
}
