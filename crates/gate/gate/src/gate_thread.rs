//! State of one event loop of the gateway.

use std::cell::Cell;

use super::config_cell::CachedRuntime;
use super::tracing::Tracer;
use weir_base::rng::SeededRng;
use weir_call::CallEngine;

/// State of one event loop.
#[derive(Debug)]
pub(super) struct GateThread {
    pub(super) engine: CallEngine,
    pub(super) runtime: CachedRuntime,
    pub(super) tracer: Option<Tracer>,
    /// Seed of the hashes by which callers keep their upstreams and hosts.
    pub(super) seed: u64,
    /// Random numbers for the upstreams of calls and for copies.
    random: Cell<SeededRng>,
}

/// Stream of the seed's random numbers.
const ROUTE_STREAM: u64 = 0x726f_7574;

impl GateThread {
    /// State of the event loop of this number.
    pub(super) fn new(
        engine: CallEngine,
        runtime: CachedRuntime,
        tracer: Option<Tracer>,
        (seed, number): (u64, u64),
    ) -> Self {
        let random = Cell::new(SeededRng::new(seed, ROUTE_STREAM + number));
        Self { engine, runtime, tracer, seed, random }
    }

    pub(super) fn random_bits(&self) -> u64 {
        let mut random = self.random.get();
        let bits = random.bits();
        self.random.set(random);
        bits
    }
}
