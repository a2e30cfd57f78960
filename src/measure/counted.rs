//! What was counted of a run: by one thread or by all of them, on one machine or on several, in a stretch or over all.

use std::collections::BTreeMap;

use super::outcome::TransportFailure;
use super::recorder::Totals;
use crate::decide::Nanos;

/// What was counted. It adds up: over threads, over agents, and over the stretches of a run.
#[derive(Clone, Debug, Default)]
pub struct RunCounts {
    /// Outcomes.
    pub totals: Totals,
    /// Requests in the system, integrated over the window, in request nanoseconds.
    pub area: f64,
    /// When the last request ended.
    pub last_done: Nanos,
    /// Requests on their way when the run was cut off.
    pub unfinished: u64,
    /// Arrivals of the open loop that were due in the window, ...
    pub offered: u64,
    /// ... and those of them that were never sent.
    pub dropped: u64,
    /// Most requests that waited for a connection at one moment.
    pub max_backlog: u64,
    /// Connections made.
    pub connections: u64,
    /// What the service calls itself; empty if it has no name.
    pub server: Option<String>,
    /// TLS version and cipher.
    pub tls: Option<String>,
    /// What the first failure of each kind said.
    pub details: BTreeMap<TransportFailure, String>,
    /// CPU time of the generator in the window, ...
    pub cpu: Nanos,
    /// ... and its busiest thread's share of a core, from the window's beginning until now.
    pub cpu_utilization: f64,
    /// How long after the run's start the last thread began.
    pub began: Nanos,
}

impl RunCounts {
    /// Adds what somebody else counted.
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

    /// Adds what the same one counted since.
    pub fn add_later(&mut self, later: &Self) {
        self.add(later);
        // A share of a core is no sum and no maximum over time: the latest tells of all that was before.
        self.cpu_utilization = later.cpu_utilization;
    }

    /// Requests in the system, averaged over a window of this length.
    pub fn in_flight_mean(&self, length: Nanos) -> f64 {
        self.area / length.0.max(1) as f64
    }
}
