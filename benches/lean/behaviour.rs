//! The seam: a request has arrived, and is to be answered now or later.

use crate::clock::Nanos;

/// Which connection an answer belongs to, and with HTTP/2 which stream. Descriptors are used again, generations are not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    pub descriptor: usize,
    pub generation: u64,
    pub stream: u32, // 0: HTTP/1.1
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Now,
    /// The behaviour keeps the ticket and hands it back from `due`.
    Later,
}

/// What the server does beside answering. The defaults answer at once and cost nothing.
pub trait Behaviour {
    /// Whether the time is needed at all; if not, the server reads no clock.
    const TIMED: bool = true;

    /// A counted request was read at `now`.
    fn arrived(&mut self, _now: Nanos, _ticket: Ticket) -> Answer {
        Answer::Now
    }

    /// The next answer that is due at `now`; asked until there is none.
    fn due(&mut self, _now: Nanos) -> Option<Ticket> {
        None
    }

    /// How long the server may sleep at `now`; None is for ever.
    fn idle(&self, _now: Nanos) -> Option<Nanos> {
        None
    }

    /// Until when nothing is read, accepted or answered, if so at `now`.
    fn frozen_until(&self, _now: Nanos) -> Option<Nanos> {
        None
    }

    /// Further members for the JSON object of `/_stats`, each with a comma before it.
    fn stats(&self) -> String {
        String::new()
    }

    /// The JSON object of `/_arrivals`.
    fn arrivals(&self, _rate_per_s: Option<f64>) -> String {
        "{}".to_owned()
    }

    /// Forgets what was noted so far.
    fn reset(&mut self) {}
}

/// Answers at once, and nothing else.
pub struct Plain;

impl Behaviour for Plain {
    const TIMED: bool = false;
}

/// The smallest value that at least `q` (a quantile in [0, 1]) of the sorted values do not exceed; 0 if there are none.
pub fn quantile<T: Copy + Default>(sorted: &[T], q: f64) -> T {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}
