//! Counts of a trace: lines, requests, tokens, and what is left out.

use std::collections::BTreeMap;

use crate::trace::{TracePrompt, TraceSession, TraceTurn};
use weir_measure::run_trace::{RunTrace, TracedClient};

/// Reason why a line or a request is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TraceOmission {
    /// Cannot be read.
    Broken,
    /// Longer than a mebibyte.
    TooLong,
    /// About something else than a request.
    NoRequest,
    /// Without tokens of a prompt or a response, as a request that has failed.
    NoTokens,
    /// Not among the sampled sessions.
    NotSampled,
    /// Too far out of order.
    OutOfOrder,
    /// A later turn whose session has no first one near before it.
    LostTurn,
}

impl TraceOmission {
    /// Name in results.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::TooLong => "too_long",
            Self::NoRequest => "no_request",
            Self::NoTokens => "no_tokens",
            Self::NotSampled => "not_sampled",
            Self::OutOfOrder => "out_of_order",
            Self::LostTurn => "lost_turn",
        }
    }
}

/// Counts of a trace.
#[derive(Clone, Debug, Default)]
pub(super) struct TraceTally {
    pub(super) lines: u64,
    requests: u64,
    later_turns: u64,
    input_tokens: u64,
    output_tokens: u64,
    blocks: u64,
    /// Arrivals of the first session and of the last one.
    times: Option<(i64, i64)>,
    left_out: BTreeMap<TraceOmission, u64>,
    first_broken: Option<String>,
    clients: Vec<ClientTally>,
}

/// Counts of what a client of a composition sends.
#[derive(Clone, Copy, Debug, Default)]
struct ClientTally {
    sessions: u64,
    requests: u64,
    input_tokens: u64,
    output_tokens: u64,
}

impl TraceTally {
    /// Counts of a composition of this number of clients.
    pub(super) fn of_clients(clients: usize) -> Self {
        Self { clients: vec![ClientTally::default(); clients], ..Self::default() }
    }

    /// Counts a session that is sent.
    pub(super) fn add(&mut self, at: i64, session: &TraceSession) {
        self.later_turns += session.later.len() as u64;
        self.times = Some((self.times.map_or(at, |(first, _)| first), at));
        session.turns().for_each(|turn| self.add_turn(turn));
        let Some(client) = self.clients.get_mut(session.client as usize) else { return };
        client.sessions += 1;
        client.requests += 1 + session.later.len() as u64;
        client.input_tokens += session.turns().map(|turn| turn.input_tokens).sum::<u64>();
        client.output_tokens += session.turns().map(|turn| turn.output_tokens).sum::<u64>();
    }

    fn add_turn(&mut self, turn: &TraceTurn) {
        self.requests += 1;
        self.input_tokens += turn.input_tokens;
        self.output_tokens += turn.output_tokens;
        if let TracePrompt::Blocks { ids, .. } = &turn.prompt {
            self.blocks += ids.len() as u64;
        }
    }

    /// Counts what is left out.
    pub(super) fn leave_out(&mut self, omission: TraceOmission) {
        *self.left_out.entry(omission).or_default() += 1;
    }

    /// Counts a line that cannot be read; `describe` has its place and problem.
    pub(super) fn add_broken(&mut self, describe: impl FnOnce() -> String) {
        self.leave_out(TraceOmission::Broken);
        if self.first_broken.is_none() {
            self.first_broken = Some(describe());
        }
    }

    /// Why a trace in this format has no request.
    pub(super) fn emptiness(&self, name: &str, format: &str) -> String {
        if let Some(first) = &self.first_broken {
            return format!("--trace: {first}; the format was taken to be {format}");
        }
        let most = self.left_out.iter().max_by_key(|(_, count)| **count);
        let left_out =
            most.map_or_else(String::new, |(omission, _)| format!("; most are left out: {}", omission.name()));
        format!("--trace: {name}: no request in {} lines{left_out}", self.lines)
    }

    /// Part of the result of a run; `names` are those of the clients of a composition.
    pub(super) fn to_trace(&self, names: &[String]) -> RunTrace {
        let client = |(name, counts): (&String, &ClientTally)| TracedClient {
            name: name.clone(),
            sessions: counts.sessions,
            requests: counts.requests,
            input_tokens: counts.input_tokens,
            output_tokens: counts.output_tokens,
            ..TracedClient::default()
        };
        RunTrace {
            clients: names.iter().zip(&self.clients).map(client).collect(),
            lines: self.lines,
            requests: self.requests,
            later_turns: self.later_turns,
            trace_s: self.times.map_or(0.0, |(first, last)| last.saturating_sub(first) as f64 / 1e9),
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            blocks: self.blocks,
            left_out: self.left_out.iter().map(|(omission, n)| (omission.name().to_owned(), *n)).collect(),
            first_broken: self.first_broken.clone(),
            ..RunTrace::default()
        }
    }
}
