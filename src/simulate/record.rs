//! What happened, in short windows.

use super::call::{Call, Place};
use crate::decide::Nanos;

/// One stretch.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    /// First tries, and all.
    pub(super) fresh: u64,
    pub(super) tries: u64,
    pub(super) answered: u64,
    pub(super) refused: u64,
    /// By the upstream.
    pub(super) failed: u64,
    /// At their deadline, without an answer.
    pub(super) given_up: u64,
    /// Of those that came in it, by priority.
    pub(super) came: [u64; 4],
    pub(super) served: [u64; 4],
    /// The same of the first of the callers' kinds.
    pub(super) good_came: u64,
    pub(super) good_served: u64,
    /// Response times of what was accepted, in ms, and as multiples of the unhindered p99.
    pub(super) took_ms: Vec<f32>,
    pub(super) stretch: Vec<f32>,
    /// How long those waited that were refused then.
    pub(super) waited_ms: Vec<f32>,
    /// Means over it.
    pub(super) in_flight: f64,
    pub(super) queue: f64,
    /// At its end; none: there is none.
    pub(super) limit: Option<f64>,
}

#[derive(Debug)]
pub(super) struct Record {
    pub(super) length: Nanos,
    pub(super) all: Vec<Window>,
    pub(super) current: Window,
    began: Nanos,
    seen: Nanos,
}

impl Record {
    pub(super) fn new(length: Nanos) -> Self {
        Self { length, all: Vec::new(), current: Window::default(), began: Nanos::ZERO, seen: Nanos::ZERO }
    }

    /// When the current window is over.
    pub(super) fn ends(&self) -> Nanos {
        self.began + self.length
    }

    /// Until now it was like this.
    pub(super) fn pass(&mut self, now: Nanos, in_flight: u32, queue: u32) {
        let length = (now - self.seen).as_secs_f64();
        self.current.in_flight += length * f64::from(in_flight);
        self.current.queue += length * f64::from(queue);
        self.seen = now;
    }

    /// The window is over.
    pub(super) fn close(&mut self, limit: Option<f64>) {
        let length = self.length.as_secs_f64();
        self.current.in_flight /= length;
        self.current.queue /= length;
        self.current.limit = limit;
        self.all.push(std::mem::take(&mut self.current));
        self.began = self.ends();
    }

    pub(super) fn came(&mut self, call: &Call) {
        self.current.tries += 1;
        self.current.fresh += u64::from(call.retry == 0);
        self.current.came[call.priority.index()] += 1;
        self.current.good_came += u64::from(call.kind == 0);
    }

    pub(super) fn answered(&mut self, now: Nanos, call: &Call) {
        self.current.answered += 1;
        self.accepted(now, call);
        let window = (call.start.0 / self.length.0) as usize;
        let then = if window < self.all.len() { &mut self.all[window] } else { &mut self.current };
        then.served[call.priority.index()] += 1;
        then.good_served += u64::from(call.kind == 0);
    }

    pub(super) fn given_up(&mut self, now: Nanos, call: &Call) {
        self.current.given_up += 1;
        if call.place == Place::Running {
            self.accepted(now, call);
        }
    }

    pub(super) fn refused(&mut self, now: Nanos, call: &Call) {
        self.current.refused += 1;
        self.current.waited_ms.push((now - call.start).as_millis_f64() as f32);
    }

    fn accepted(&mut self, now: Nanos, call: &Call) {
        let took = now - call.start;
        self.current.took_ms.push(took.as_millis_f64() as f32);
        self.current.stretch.push((took.as_secs_f64() / call.unhindered.as_secs_f64()) as f32);
    }
}
