//! Client of a composition.

use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_load::steps::ThinkTime;
use weir_pace::schedule::{Arrivals, LoadStage, Schedule};

use crate::TokenCount;
use crate::trace::name_hash;

/// Stream of random numbers that seeds of clients are made from.
const CLIENT_SALT: u64 = 0x6c6c_6d0b;
/// Turns of a conversation.
pub(super) const MIN_TURNS: u64 = 2;
pub(super) const MAX_TURNS: u64 = 200;

/// Client of a composition: when its sessions arrive, and what they ask.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadClient {
    /// Name, unique in the composition.
    pub name: String,
    /// Sessions per second, over time.
    pub stages: Vec<LoadStage>,
    /// Arrival process.
    pub arrivals: Arrivals,
    /// Tokens that are new in a turn's prompt.
    pub input: TokenCount,
    /// Tokens of a response.
    pub output: TokenCount,
    /// Tokens in front of each prompt, which all prompts of the client share.
    pub prefix_tokens: u64,
    /// Fraction of the sessions that have more than one turn, in [0, 1].
    pub conversations: f64,
    /// Turns of such a session, at least 2 of which are played.
    pub turns: TokenCount,
    /// Time between a response and the next turn.
    pub think: ThinkTime,
}

impl LoadClient {
    /// Seed of all random choices of the client.
    pub fn seed(&self, seed: u64) -> u64 {
        SeededRng::new(seed ^ name_hash(&self.name), CLIENT_SALT).bits()
    }

    /// Arrivals of its sessions.
    pub fn schedule(&self, seed: u64) -> Schedule {
        Schedule::new(self.stages.clone(), self.arrivals, self.seed(seed))
    }

    /// Time at which its last stage ends.
    pub fn end(&self) -> Nanos {
        self.stages.iter().fold(Nanos::ZERO, |sum, stage| sum + stage.length)
    }
}
