//! What a load has sent of a trace, and the times of its responses to each client of a composition.

use crate::trace::{TracePrompt, TraceSession, TraceTurn};
use weir_base::Nanos;
use weir_histogram::Histogram;
use weir_measure::llm_timeline::LlmTimeline;
use weir_measure::run_trace::{RunTrace, TracedClient};

/// What a load has sent of a trace, and the times of its responses to each client of a composition.
#[derive(Debug)]
pub(super) struct TracedRun {
    /// End of the warm-up.
    from: Nanos,
    sent: SentRequests,
    /// Arrivals of the earliest session and of the last one.
    arrivals: Option<(i64, i64)>,
    clients: Vec<ClientRun>,
}

/// Requests that were sent, with their recorded tokens.
#[derive(Clone, Debug, Default)]
struct SentRequests {
    requests: u64,
    later_turns: u64,
    input_tokens: u64,
    output_tokens: u64,
    blocks: u64,
}

impl SentRequests {
    fn add(&mut self, turn: u32, sent: &TraceTurn) {
        self.requests += 1;
        self.later_turns += u64::from(turn > 0);
        self.input_tokens += sent.input_tokens;
        self.output_tokens += sent.output_tokens;
        if let TracePrompt::Blocks { ids, .. } = &sent.prompt {
            self.blocks += ids.len() as u64;
        }
    }
}

/// What was sent of a client.
#[derive(Clone, Debug, Default)]
struct ClientRun {
    sessions: u64,
    sent: SentRequests,
    times: ClientResponseTimes,
}

/// Times of responses.
#[derive(Clone, Debug, Default)]
struct ClientResponseTimes {
    responses: u64,
    ttft: Histogram,
    tpot: Histogram,
    e2e: Histogram,
}

impl TracedRun {
    /// Nothing yet, of this number of clients, in a run whose warm-up ends at `from`.
    pub(super) fn new(clients: usize, from: Nanos) -> Self {
        Self { from, sent: SentRequests::default(), arrivals: None, clients: vec![ClientRun::default(); clients] }
    }

    /// Takes note of a session that begins.
    pub(super) fn begin(&mut self, session: &TraceSession) {
        let at = session.arrival;
        self.arrivals = Some(self.arrivals.map_or((at, at), |(first, last)| (first.min(at), last.max(at))));
        if let Some(client) = self.clients.get_mut(session.client as usize) {
            client.sessions += 1;
        }
    }

    /// Takes note of a request that is sent: turn `turn` of a session.
    pub(super) fn send(&mut self, session: &TraceSession, turn: u32) {
        let Some(sent) = session.turn(turn as usize) else { return };
        self.sent.add(turn, sent);
        if let Some(client) = self.clients.get_mut(session.client as usize) {
            client.sent.add(turn, sent);
        }
    }

    /// Records a successful response, which ended at `done`, to a request of a session.
    pub(super) fn record(&mut self, session: &TraceSession, timeline: &LlmTimeline, done: Nanos) {
        let Some(client) = self.clients.get_mut(session.client as usize) else { return };
        if timeline.intended < self.from {
            return;
        }
        let (client, times) = (&mut client.times, timeline.times(done));
        client.responses += 1;
        if let Some(ttft) = times.ttft {
            client.ttft.record(ttft);
        }
        if let Some(tpot) = times.tpot.filter(|_| timeline.output_tokens > Some(1)) {
            client.tpot.record(tpot);
        }
        client.e2e.record(times.e2e);
    }

    /// Part of the result of a run; `names` are those of the clients.
    pub(super) fn to_trace(&self, names: &[String]) -> RunTrace {
        let client = |(name, client): (&String, &ClientRun)| TracedClient {
            name: name.clone(),
            sessions: client.sessions,
            requests: client.sent.requests,
            input_tokens: client.sent.input_tokens,
            output_tokens: client.sent.output_tokens,
            responses: client.times.responses,
            ttft_ms: client.times.ttft.percentiles(),
            tpot_ms: client.times.tpot.percentiles(),
            e2e_ms: client.times.e2e.percentiles(),
        };
        RunTrace {
            clients: names.iter().zip(&self.clients).map(client).collect(),
            requests: self.sent.requests,
            later_turns: self.sent.later_turns,
            trace_s: self.arrivals.map_or(0.0, |(first, last)| last.saturating_sub(first) as f64 / 1e9),
            input_tokens: self.sent.input_tokens,
            output_tokens: self.sent.output_tokens,
            blocks: self.sent.blocks,
            ..RunTrace::default()
        }
    }
}
