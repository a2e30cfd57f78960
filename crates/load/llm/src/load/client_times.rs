//! Times of the responses to each client of a composition.

use crate::trace::TraceSession;
use weir_base::Nanos;
use weir_histogram::Histogram;
use weir_measure::llm_timeline::LlmTimeline;
use weir_measure::run_trace::TracedClient;

/// Times of the responses to each client of a composition.
#[derive(Debug)]
pub(super) struct ClientTimes {
    /// End of the warm-up.
    from: Nanos,
    clients: Vec<ClientResponseTimes>,
}

/// Times of responses.
#[derive(Clone, Debug, Default)]
struct ClientResponseTimes {
    responses: u64,
    ttft: Histogram,
    tpot: Histogram,
    e2e: Histogram,
}

impl ClientTimes {
    /// None yet, of this number of clients, in a run whose warm-up ends at `from`.
    pub(super) fn new(clients: usize, from: Nanos) -> Self {
        Self { from, clients: vec![ClientResponseTimes::default(); clients] }
    }

    /// Records a successful response, which ended at `done`, to a request of a session.
    pub(super) fn record(&mut self, session: &TraceSession, timeline: &LlmTimeline, done: Nanos) {
        let Some(client) = self.clients.get_mut(session.client as usize) else { return };
        if timeline.intended < self.from {
            return;
        }
        let times = timeline.times(done);
        client.responses += 1;
        if let Some(ttft) = times.ttft {
            client.ttft.record(ttft);
        }
        if let Some(tpot) = times.tpot.filter(|_| timeline.output_tokens > Some(1)) {
            client.tpot.record(tpot);
        }
        client.e2e.record(times.e2e);
    }

    /// Adds the times to the clients of a result.
    pub(super) fn add_to(&self, clients: &mut [TracedClient]) {
        for (client, times) in clients.iter_mut().zip(&self.clients) {
            client.responses = times.responses;
            client.ttft_ms = times.ttft.percentiles();
            client.tpot_ms = times.tpot.percentiles();
            client.e2e_ms = times.e2e.percentiles();
        }
    }
}
