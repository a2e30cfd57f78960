//! Counts of a run, or of a part of it: a thread, an agent, an interval.

use std::collections::BTreeMap;

use super::recorder::Totals;
use crate::decide::Nanos;
use crate::decide::base::failure::FailureKind;

/// Counts of a run; sums over threads, agents and intervals.
#[derive(Clone, Debug, Default)]
pub struct RunCounts {
    /// Totals by outcome.
    pub totals: Totals,
    /// Requests in the system, integrated over the window, in request nanoseconds.
    pub area: f64,
    /// End of the last request, since the start of the run.
    pub last_done: Nanos,
    /// Requests in flight when the run was interrupted.
    pub unfinished: u64,
    /// Arrivals of the open loop with an intended start in the window.
    pub offered: u64,
    /// Of these, arrivals that were never sent.
    pub dropped: u64,
    /// Maximum number of requests that waited for a connection at once.
    pub max_backlog: u64,
    /// Number of connections opened.
    pub connections: u64,
    /// `Server` header of the first response.
    pub server: Option<String>,
    /// TLS version and cipher.
    pub tls: Option<String>,
    /// Message of the first failure of each kind.
    pub details: BTreeMap<FailureKind, String>,
    /// CPU time of the generator in the window.
    pub cpu: Nanos,
    /// CPU utilization of its busiest thread since the start of the window, in [0, 1].
    pub cpu_utilization: f64,
    /// Offset of the last thread's start from the start of the run.
    pub began: Nanos,
}

impl RunCounts {
    /// Adds counts of another thread or agent.
    pub fn add(&mut self, other: &Self) {
        self.totals.add(&other.totals);
        self.area += other.area;
        self.last_done = self.last_done.max(other.last_done);
        self.unfinished += other.unfinished;
        self.offered += other.offered;
        self.dropped += other.dropped;
        self.max_backlog += other.max_backlog;
        self.connections += other.connections;
        self.server = self.server.take().or_else(|| other.server.clone());
        self.tls = self.tls.take().or_else(|| other.tls.clone());
        for (kind, words) in &other.details {
            self.details.entry(*kind).or_insert_with(|| words.clone());
        }
        self.cpu += other.cpu;
        self.cpu_utilization = self.cpu_utilization.max(other.cpu_utilization);
        self.began = self.began.max(other.began);
    }

    /// Adds later counts of the same thread or agent.
    pub fn add_later(&mut self, later: &Self) {
        self.add(later);
        // Utilization is an average since the start of the window: the latest value replaces earlier ones.
        self.cpu_utilization = later.cpu_utilization;
    }

    /// Requests in the system, averaged over a window of this length.
    pub fn in_flight_mean(&self, length: Nanos) -> f64 {
        self.area / length.0.max(1) as f64
    }
}
