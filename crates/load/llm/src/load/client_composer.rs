//! Sessions of a composition of clients, as a load sends them.

use super::trace_tally::{TraceOmission, TraceTally};
use crate::clients::{ClientMix, ClientSessions};
use crate::trace::TraceSession;
use weir_base::rng::SeededRng;

/// Stream of random numbers that sessions are chosen by.
const SAMPLE_SALT: u64 = 0x6c6c_6d0d;

/// Sessions of a composition of clients.
#[derive(Debug)]
pub(super) struct ClientComposer {
    mix: ClientMix,
    sessions: ClientSessions,
    tally: TraceTally,
    sample: Option<f64>,
    seed: u64,
    /// Number of sessions so far, also of those that are left out.
    number: u64,
}

impl ClientComposer {
    /// Sessions of a composition, or a fraction of them, by seed.
    ///
    /// # Errors
    /// One line: no session ever arrives.
    pub(super) fn new(mix: ClientMix, seed: u64, sample: Option<f64>) -> Result<Self, String> {
        let sessions = ClientSessions::new(mix.clone(), seed);
        if sessions.clone().next().is_none() {
            return Err("--trace: no session of any client; give them a rate above 0".to_owned());
        }
        Ok(Self { mix, sessions, tally: TraceTally::default(), sample, seed, number: 0 })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.mix.clients.iter().map(|client| client.name.as_str())
    }

    pub(super) fn is_endless(&self) -> bool {
        self.mix.is_endless()
    }

    pub(super) fn has_turns(&self) -> bool {
        self.mix.has_turns()
    }

    pub(super) fn mean_rate(&self) -> f64 {
        self.mix.mean_rate() * self.sample.unwrap_or(1.0)
    }

    pub(super) fn tally(&self) -> &TraceTally {
        &self.tally
    }

    /// Next session that is chosen.
    pub(super) fn next(&mut self) -> Option<TraceSession> {
        let rng = SeededRng::new(self.seed, SAMPLE_SALT);
        loop {
            let (_, session) = self.sessions.next()?;
            let number = self.number;
            self.number += 1;
            if self.sample.is_none_or(|fraction| rng.unit_at(number) <= fraction) {
                return Some(session);
            }
            self.tally.leave_out(TraceOmission::NotSampled, 1);
        }
    }
}
