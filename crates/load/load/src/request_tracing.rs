//! Traces of sampled requests: each has a header `traceparent`, by which its service joins the trace, and is reported
//! when it has ended.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};

use memchr::memmem;

use weir_base::rng::SeededRng;
use weir_machine::clock::WallOffset;
use weir_measure::outcome::{Outcome, RequestEnd};
use weir_net::trace_sampling::sampled;
use weir_net::traceparent::TraceContext;
use weir_scenario::plan::RequestBytes;

/// Requests that may wait to be taken; further ones are counted as missed.
const MAX_WAITING: usize = 8192;

/// Tracing of the requests of a load.
#[derive(Clone, Debug)]
pub struct RequestTracing {
    /// Fraction of the requests that is sampled, 0 to 1.
    fraction: f64,
    /// Random number: loads of the same seed have other traces.
    run: u64,
    ended: SyncSender<SampledRequest>,
    missed: Arc<AtomicU64>,
}

/// Sampled requests that have ended.
#[derive(Debug)]
pub struct SampledRequests {
    ended: Receiver<SampledRequest>,
    missed: Arc<AtomicU64>,
}

/// Sampled request that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledRequest {
    /// Trace and span, as sent to the service.
    pub context: TraceContext,
    /// Method, path and host of the request.
    pub head: SampledHead,
    /// Index of its step.
    pub step: u32,
    /// Intended start, in nanoseconds since 1970.
    pub intended_unix_ns: u64,
    /// Start of the request, in nanoseconds since 1970.
    pub sent_unix_ns: u64,
    /// First byte of the response, in nanoseconds since 1970; the end without one.
    pub first_byte_unix_ns: u64,
    /// End, in nanoseconds since 1970.
    pub done_unix_ns: u64,
    /// Status, or kind of failure.
    pub end: RequestEnd,
    /// Reasons why it has failed, if any are known.
    pub message: String,
}

/// Facts about a sampled request when it is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampledHead {
    /// Method.
    pub method: String,
    /// Path without the query, which may have secrets.
    pub path: String,
    /// Host and port.
    pub host: String,
}

/// Request that is sampled, while it is in flight.
#[derive(Clone, Debug)]
pub(crate) struct RequestSpan {
    pub(crate) context: TraceContext,
    pub(crate) head: SampledHead,
}

/// Sampler of one thread.
#[derive(Debug)]
pub(crate) struct RequestSampler {
    tracing: RequestTracing,
    ids: SeededRng,
}

impl RequestTracing {
    /// Tracing of a fraction of the requests; those that have ended are taken from the other part.
    pub fn new(fraction: f64) -> (Self, SampledRequests) {
        let (ended, requests) = mpsc::sync_channel(MAX_WAITING);
        let missed = Arc::<AtomicU64>::default();
        let run = RandomState::new().hash_one("traces");
        (Self { fraction, run, ended, missed: Arc::clone(&missed) }, SampledRequests { ended: requests, missed })
    }

    /// Sampler of a thread.
    pub(crate) fn sampler(&self, thread: u64) -> RequestSampler {
        RequestSampler { tracing: self.clone(), ids: SeededRng::new(self.run, thread) }
    }
}

impl SampledRequests {
    /// Next request that has ended; none for now.
    pub fn take(&self) -> Option<SampledRequest> {
        self.ended.try_recv().ok()
    }

    /// Number of sampled requests that were not taken in time.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

impl RequestSampler {
    /// Context of the next request, if it is sampled.
    pub(crate) fn next(&mut self) -> Option<TraceContext> {
        let trace_id = (u128::from(self.ids.bits()) << 64 | u128::from(self.ids.bits())).max(1);
        let span_id = self.ids.bits().max(1);
        sampled(trace_id, self.tracing.fraction).then_some(TraceContext { trace_id, span_id, flags: 1 })
    }

    /// Reports a request that has ended.
    pub(crate) fn report(&self, span: &RequestSpan, step: u32, outcome: &Outcome, wall: &WallOffset, message: String) {
        let ended = SampledRequest {
            context: span.context,
            head: span.head.clone(),
            step,
            intended_unix_ns: wall.unix_ns(outcome.intended),
            sent_unix_ns: wall.unix_ns(outcome.sent),
            first_byte_unix_ns: wall.unix_ns(outcome.first_byte.max(outcome.sent)),
            done_unix_ns: wall.unix_ns(outcome.done.max(outcome.sent)),
            end: outcome.end,
            message,
        };
        if self.tracing.ended.try_send(ended).is_err() {
            self.tracing.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl SampledHead {
    /// Parses the head of a request; missing parts are empty.
    fn of(head: &[u8]) -> Self {
        let text = String::from_utf8_lossy(head);
        let mut lines = text.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let path = target.split(['?', '#']).next().unwrap_or_default();
        let host = lines.filter_map(|line| line.split_once(':')).find(|(name, _)| name.eq_ignore_ascii_case("host"));
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            host: host.map(|(_, value)| value.trim().to_owned()).unwrap_or_default(),
        }
    }
}

impl RequestSpan {
    /// Span of a request that has the header of a context.
    pub(crate) fn of(context: TraceContext, request: &RequestBytes) -> Self {
        Self { context, head: SampledHead::of(&request.written[..head_end(request).unwrap_or(0)]) }
    }
}

/// End of the last header, before the empty line.
fn head_end(request: &RequestBytes) -> Option<usize> {
    memmem::find(&request.written, b"\r\n\r\n").map(|at| at + 2)
}

/// Adds the header of a context to a request; false if the request has one already.
pub(crate) fn add_traceparent(request: &mut RequestBytes, context: TraceContext) -> bool {
    let Some(end) = head_end(request) else { return false };
    let bytes = &mut request.written;
    let has_own = bytes[..end].split(|byte| *byte == b'\n').any(|line| {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        name.eq_ignore_ascii_case(b"traceparent")
    });
    if !has_own {
        let line = format!("traceparent: {context}\r\n");
        bytes.splice(end..end, line.into_bytes());
    }
    !has_own
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes(text: &str) -> RequestBytes {
        RequestBytes { written: text.as_bytes().to_vec(), shared_body: None }
    }

    #[test]
    fn the_header_is_the_last_of_the_head() {
        let context = TraceContext { trace_id: 1, span_id: 2, flags: 1 };
        let mut request = bytes("POST /a/b?key=s HTTP/1.1\r\nhost: h:1\r\n\r\nx\r\n\r\ny");
        assert!(add_traceparent(&mut request, context));
        let own = |text: &str| text.to_owned();
        let head = SampledHead { method: own("POST"), path: own("/a/b"), host: own("h:1") };
        assert_eq!(RequestSpan::of(context, &request).head, head);
        let line = "traceparent: 00-00000000000000000000000000000001-0000000000000002-01\r\n";
        let expected = format!("POST /a/b?key=s HTTP/1.1\r\nhost: h:1\r\n{line}\r\nx\r\n\r\ny");
        assert_eq!(String::from_utf8(request.written).unwrap(), expected);
        for other in ["GET / HTTP/1.1\r\nTraceparent: x\r\n\r\n", "", "GET / HTTP/1.1\r\n"] {
            let mut request = bytes(other);
            assert_eq!((add_traceparent(&mut request, context), request), (false, bytes(other)));
        }
    }

    #[test]
    fn loads_and_threads_have_traces_of_their_own() {
        let ids = || {
            let (tracing, _) = RequestTracing::new(1.0);
            [0, 1].map(|thread| tracing.sampler(thread).next().map(|context| context.trace_id))
        };
        let mut all: Vec<_> = ids().into_iter().chain(ids()).collect();
        assert!(all.iter().all(Option::is_some));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 4);
        assert!(RequestTracing::new(0.0).0.sampler(0).next().is_none());
    }

    #[test]
    fn what_is_not_taken_in_time_is_counted() {
        let (tracing, requests) = RequestTracing::new(1.0);
        let sampler = tracing.sampler(0);
        let span =
            RequestSpan { context: TraceContext { trace_id: 1, span_id: 1, flags: 1 }, head: SampledHead::default() };
        let wall = weir_machine::clock::Clock::starting_in(weir_base::Nanos::ZERO).wall_offset();
        let at = weir_base::Nanos::ZERO;
        let end = RequestEnd::Response(200);
        let (bytes_in, body_in, bytes_out) = (0, 0, 0);
        let outcome = Outcome {
            number: 0,
            intended: at,
            ready: at,
            sent: at,
            first_byte: at,
            done: at,
            connect: at,
            end,
            bytes_in,
            body_in,
            bytes_out,
            counted_in: 0,
        };
        for _ in 0..MAX_WAITING + 3 {
            sampler.report(&span, 0, &outcome, &wall, String::new());
        }
        assert_eq!(requests.missed(), 3);
        assert_eq!(std::iter::from_fn(|| requests.take()).count(), MAX_WAITING);
    }

    proptest! {
        /// Any bytes: they are as before, but for one line.
        #[test]
        fn nothing_else_is_changed(before: Vec<u8>) {
            let mut request = RequestBytes { written: before.clone(), shared_body: None };
            match add_traceparent(&mut request, TraceContext { trace_id: 1, span_id: 2, flags: 1 }) {
                false => prop_assert_eq!(request.written, before),
                true => prop_assert_eq!(request.written.len(), before.len() + 70),
            }
        }
    }
}
