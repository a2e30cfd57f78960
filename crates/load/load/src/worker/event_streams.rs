//! Responses that are streams of events: bytes to their observers, and what their ends mean.

use super::{Flow, Worker};
use crate::connection::LoadConnection;
use crate::event_streams::{
    ArrivedEvents, PieceArrival, ReadWait, StreamArrival, StreamObserver, StreamOptions, StreamSinks, StreamTap,
};
use crate::exchange::FlowExchange;
use crate::flight::{Flight, ReadTimes};
use crate::plan::LoadPlan;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_base::grpc_status::{GRPC_OK, is_grpc_status};
use weir_http2::connection::ResponseNotes;
use weir_http2::error_code::ErrorCode;
use weir_measure::outcome::{Outcome, RequestEnd};
use weir_measure::stream_timeline::StreamEnd;
use weir_net::wire::{DecodeStep, HeadNotes, ResponseObserver, WireError};
use weir_pace::feed::Feed;
use weir_scenario::plan::StreamEndRule;

/// Maximum number of observers that a thread keeps for the next streams of HTTP/2.
const MAX_SPARE_OBSERVERS: usize = 1024;

/// Period after a partial write in which its socket is polled without delay.
const UNSENT_PERIOD: Nanos = Nanos::from_millis(50);

/// Settings for observing responses as streams, and a thread's spare observers.
#[derive(Debug)]
pub(super) struct StreamObservers {
    options: StreamOptions,
    /// Whether only responses are observed that users of a program read as streams of events.
    is_for_programs: bool,
    /// When responses to steps are ended on purpose, by the step's index.
    end_rules: Vec<StreamEndRule>,
    /// Whether the kernel has timed the arrival of what was read last.
    is_stamped: bool,
    /// How long events may wait in their sockets.
    reads: ReadWait,
    /// When a request was last left partly written.
    unsent_at: Nanos,
    #[allow(clippy::vec_box, reason = "a box goes to a stream and comes back as it is")]
    spare: Vec<Box<StreamObserver>>,
}

impl StreamObservers {
    /// Observers that a plan asks for; or those of responses that users of a program may read as streams, and of no
    /// others.
    pub(super) fn of(plan: &LoadPlan, may_read_events: bool) -> Option<Self> {
        let is_for_programs = plan.streams.is_none();
        let options = plan.streams.or_else(|| may_read_events.then(StreamOptions::default))?;
        let end_rules = if is_for_programs { Vec::new() } else { plan.stream_ends() };
        Some(Self {
            options,
            is_for_programs,
            end_rules,
            is_stamped: false,
            reads: ReadWait::default(),
            unsent_at: Nanos::ZERO,
            spare: Vec::new(),
        })
    }

    /// Whether the response to a request is observed.
    #[inline]
    pub(super) fn observes(&self, exchange: &mut impl FlowExchange) -> bool {
        !self.is_for_programs || exchange.arrived().is_some()
    }

    /// Notes whether the kernel has timed the arrival of what was read.
    pub(super) fn note_read(&mut self, is_stamped: bool) {
        self.is_stamped = is_stamped;
    }

    /// Notes that a request was left partly written.
    pub(super) fn note_unsent(&mut self, now: Nanos) {
        self.unsent_at = now;
    }

    fn take(&mut self) -> Box<StreamObserver> {
        self.spare.pop().unwrap_or_else(|| Box::new(StreamObserver::new(&self.options)))
    }

    fn put(&mut self, mut observer: Box<StreamObserver>) {
        if self.spare.len() < MAX_SPARE_OBSERVERS {
            observer.abandon();
            self.spare.push(observer);
        }
    }
}

impl<F: Flow> Worker<'_, F> {
    /// Decodes bytes of a response over HTTP/1.1 that came at `at`, and observes its events. One that has the events
    /// that were asked for ends here, and its connection cannot be used again.
    pub(super) fn decode_observed(
        &mut self,
        index: u32,
        bytes: &[u8],
        is_bodyless: bool,
        ReadTimes { at, now }: ReadTimes,
    ) -> Result<DecodeStep, WireError> {
        let nothing = Ok(DecodeStep { used: bytes.len(), response: None });
        let Self { connections, results, flow, reading, observers, .. } = self;
        let (Some(observers), Some(slot)) = (observers, connections.get(index)) else { return nothing };
        let Some(flight) = slot.flights.front().copied() else { return nothing };
        let LoadConnection { decoder, exchange, .. } = slot;
        let mut taken = exchange.take_observer().unwrap_or_else(|| observers.take());
        let mut arrived = exchange.arrived().map(std::mem::take);
        let end_rule = exchange.step().and_then(|step| observers.end_rules.get(step as usize));
        let cache = flow.head_cache(exchange, &mut reading.cache);
        let before = taken.read_bytes();
        let mut tap = StreamTap {
            observer: &mut taken,
            options: &observers.options,
            arrival: arrival_of(&flight, at, observers.is_stamped.then(|| now - at)),
            sinks: StreamSinks {
                arrived: arrived.as_mut(),
                reads: Some(&mut observers.reads),
                ..results.counters.stream_sinks(&observers.options, flight.intended)
            },
            end_rule,
            kept: exchange.kept(),
        };
        let mut decoded = decoder.push_observed(bytes, is_bodyless, cache, &mut tap);
        if let Ok(DecodeStep { used, response: response @ None }) = &mut decoded
            && taken.has_stopped()
        {
            *used = bytes.len();
            *response = decoder.abandon();
        }
        results.counters.record_body(taken.read_bytes().saturating_sub(before), flight.intended);
        exchange.put_observer(taken);
        give_back(arrived, exchange);
        decoded
    }

    /// Whether a response over HTTP/2 is observed.
    #[inline]
    pub(super) fn observes_stream(&mut self, index: u32, key: u32) -> bool {
        let Self { connections, observers: Some(observers), .. } = self else { return false };
        let streams = connections.get(index).and_then(|slot| slot.streams.as_mut());
        streams.and_then(|streams| streams.get(key)).is_some_and(|it| observers.observes(&mut it.inner))
    }

    /// Observes the head of a response over HTTP/2.
    pub(super) fn observe_head(&mut self, index: u32, key: u32, notes: &ResponseNotes, at: Nanos) {
        let Self { connections, results, observers: Some(observers), .. } = self else { return };
        let Some(streams) = connections.get(index).and_then(|slot| slot.streams.as_mut()) else { return };
        let (text, Some(exchange)) = streams.head_text_and(key) else { return };
        let flight = exchange.flight;
        let mut taken = exchange.inner.take_observer().unwrap_or_else(|| observers.take());
        let mut tap = StreamTap {
            observer: &mut taken,
            options: &observers.options,
            arrival: arrival_of(&flight, at, None),
            sinks: results.counters.stream_sinks(&observers.options, flight.intended),
            end_rule: exchange.inner.step().and_then(|step| observers.end_rules.get(step as usize)),
            kept: None::<&mut ()>,
        };
        tap.head(text, HeadNotes { sets_cookie: notes.sets_cookie, is_encoded: notes.is_encoded });
        exchange.inner.put_observer(taken);
    }

    /// Observes a piece of a body over HTTP/2.
    pub(super) fn observe_data(&mut self, index: u32, key: u32, bytes: &[u8], ReadTimes { at, now }: ReadTimes) {
        let Self { connections, results, observers: Some(observers), .. } = self else { return };
        let Some(streams) = connections.get(index).and_then(|slot| slot.streams.as_mut()) else { return };
        let Some(exchange) = streams.get(key) else { return };
        let flight = exchange.flight;
        let Some(mut taken) = exchange.inner.take_observer() else { return };
        let mut arrived = exchange.inner.arrived().map(std::mem::take);
        let came = at.max(flight.sent.min(now));
        let mut tap = StreamTap {
            observer: &mut taken,
            options: &observers.options,
            arrival: arrival_of(&flight, came, observers.is_stamped.then(|| now - came)),
            sinks: StreamSinks {
                arrived: arrived.as_mut(),
                ..results.counters.stream_sinks(&observers.options, flight.intended)
            },
            end_rule: None,
            kept: exchange.inner.kept(),
        };
        let before = tap.observer.read_bytes();
        tap.body(bytes);
        results.counters.record_body(taken.read_bytes().saturating_sub(before), flight.intended);
        let has_stopped = taken.has_stopped();
        exchange.inner.put_observer(taken);
        give_back(arrived, &mut exchange.inner);
        if !has_stopped {
            return;
        }
        let Some(stream) = exchange.stream else { return };
        if let Some(totals) = streams.protocol.cancel(stream, ErrorCode::CANCEL) {
            self.stream_ended(index, key, &totals, at, now);
        }
    }

    /// Ends the reading of a whole response; what is wrong with its content makes it a failure.
    pub(super) fn settle_observed(
        &mut self,
        observer: Option<&mut StreamObserver>,
        arrived: Option<&mut ArrivedEvents>,
        outcome: &mut Outcome,
    ) {
        let (Some(observers), Some(observer)) = (&self.observers, observer) else { return };
        if !observer.is_reading() {
            return;
        }
        outcome.counted_in = observer.read_bytes();
        let sinks = self.results.counters.stream_sinks(&observers.options, outcome.intended);
        let mut sinks = StreamSinks { arrived, ..sinks };
        let fault = observer.settle(&observers.options, outcome.done, &mut sinks);
        if let Some(fault) = fault
            && matches!(outcome.end, RequestEnd::Response(_))
        {
            self.results.counters.record_detail(FailureKind::Body, || fault.to_string());
            outcome.end = RequestEnd::Failed(FailureKind::Body);
        }
    }

    /// Records what was observed of a whole response, now that it is known whether the request succeeded.
    pub(super) fn record_observed(&mut self, observer: Option<&mut StreamObserver>, outcome: &Outcome) {
        let (Some(observers), Some(observer)) = (&mut self.observers, observer) else { return };
        if !observer.is_reading() {
            return;
        }
        observers.reads.record_response(outcome.service());
        let end = match outcome.end {
            RequestEnd::Failed(FailureKind::Timeout) => StreamEnd::TimedOut,
            // A call that ends with another status than OK, behind some of its messages.
            RequestEnd::Response(status) if is_grpc_status(status) && status != GRPC_OK => StreamEnd::BrokenOff,
            _ => StreamEnd::Complete,
        };
        let mut sinks = self.results.counters.stream_sinks(&observers.options, outcome.intended);
        observer.record(&observers.options, end, outcome.done, outcome.is_ok(), &mut sinks);
    }

    /// Ends the observation of a whole response of the plan over HTTP/1.1.
    pub(super) fn end_observed_on(&mut self, index: u32, outcome: &mut Outcome) {
        let Some(mut observer) = self.connections.get(index).and_then(|slot| slot.exchange.take_observer()) else {
            return;
        };
        self.settle_observed(Some(&mut observer), None, outcome);
        self.record_observed(Some(&mut observer), outcome);
        if let Some(slot) = self.connections.get(index) {
            slot.exchange.put_observer(observer);
        }
    }

    /// Ends the observation of a whole response of the plan over HTTP/2.
    pub(super) fn end_observed(&mut self, mut observer: Option<Box<StreamObserver>>, outcome: &mut Outcome) {
        self.settle_observed(observer.as_deref_mut(), None, outcome);
        self.record_observed(observer.as_deref_mut(), outcome);
        self.put_observer(observer);
    }

    /// Takes an observer back.
    pub(super) fn put_observer(&mut self, observer: Option<Box<StreamObserver>>) {
        if let (Some(observers), Some(observer)) = (&mut self.observers, observer) {
            observers.put(observer);
        }
    }

    /// Ends the observation of a response that fails; returns the kind of failure, which within a stream is another.
    pub(super) fn fail_observed(
        &mut self,
        observer: Option<&mut StreamObserver>,
        kind: FailureKind,
        intended: Nanos,
        now: Nanos,
    ) -> FailureKind {
        let (Some(observers), Some(observer)) = (&self.observers, observer) else { return kind };
        if !observer.is_reading() {
            return kind;
        }
        let failure = observer.failure_kind(kind);
        let end = match failure {
            FailureKind::Stalled => StreamEnd::Stalled,
            FailureKind::Timeout => StreamEnd::TimedOut,
            _ => StreamEnd::BrokenOff,
        };
        let events = observer.timeline().events;
        if failure != kind {
            let plural = if events == 1 { "" } else { "s" };
            let words = || format!("the response ended after {events} event{plural} ({})", kind.name());
            self.results.counters.record_detail(failure, words);
        }
        let mut sinks = self.results.counters.stream_sinks(&observers.options, intended);
        observer.record(&observers.options, end, now, false, &mut sinks);
        failure
    }

    /// Records what has come of the streams in flight, which the end of the run cuts off.
    pub(super) fn cut_observed(&mut self, now: Nanos) {
        for index in self.connections.indices() {
            let Some(slot) = self.connections.get(index) else { continue };
            let mut taken: Vec<_> = slot.exchange.take_observer().into_iter().collect();
            if let Some(streams) = &mut slot.streams {
                taken.extend(streams.exchanges().filter_map(|exchange| exchange.inner.take_observer()));
            }
            taken.into_iter().for_each(|observer| self.cut_off(observer, now));
        }
    }

    /// Records what has come of a stream that is dropped since the run is over.
    pub(super) fn cut_off(&mut self, mut observer: Box<StreamObserver>, now: Nanos) {
        let Some(observers) = &self.observers else { return };
        let mut sinks = self.results.counters.stream_sinks(&observers.options, observer.timeline().intended);
        observer.record(&observers.options, StreamEnd::CutOff, now, false, &mut sinks);
    }

    /// Time that may pass after a read at `now` until the next one; 0 if anything but events may come that is not to
    /// wait: an arrival needs a connection, one is being made, or a request is partly written. Of connections with
    /// several streams a read has the events of several responses, whose times would be one; and a user that sends
    /// again within its iteration would do so late.
    pub(super) fn read_wait(&mut self, now: Nanos) -> Nanos {
        let plan = self.shared.plan;
        let is_shared = plan.pipeline > 1 || self.shared.http2.as_ref().is_some_and(|http2| http2.streams > 1);
        // The next request of an iteration is intended when the response before it has come.
        let has_follow_ups = F::has_follow_ups(plan);
        let has_backlog = matches!(self.feed, Feed::Open(_)) && self.feed.next_due().is_some_and(|due| due <= now);
        let is_connecting = self.connections.connecting() > 0 || self.flow.is_awaiting();
        let Some(observers) = self.observers.as_mut().filter(|observers| observers.is_stamped) else {
            return Nanos::ZERO;
        };
        let is_writing = now < observers.unsent_at + UNSENT_PERIOD && observers.unsent_at > Nanos::ZERO;
        let wait = observers.reads.after(now);
        if is_shared || has_follow_ups || has_backlog || is_connecting || is_writing { Nanos::ZERO } else { wait }
    }

    /// Fails responses that have stalled.
    pub(super) fn expire_stalled(&mut self, now: Nanos) {
        let Some(StreamObservers { options, .. }) = &self.observers else { return };
        let options = *options;
        let Some(timeout) = options.stall_timeout else { return };
        let words = || format!("no event within {timeout}");
        for index in self.connections.indices() {
            let Some(slot) = self.connections.get(index) else { continue };
            let Some(streams) = &mut slot.streams else {
                if slot.exchange.observer().is_some_and(|observer| observer.stalls_at(&options) <= now) {
                    self.fail(index, FailureKind::Stalled, &words);
                }
                continue;
            };
            let stalled = streams.take_where(|exchange| {
                exchange.inner.observer().is_some_and(|observer| observer.stalls_at(&options) <= now)
            });
            if !stalled.is_empty() {
                self.results.counters.record_detail(FailureKind::Stalled, words);
                self.fail_expired(index, stalled, FailureKind::Stalled, now);
            }
        }
    }
}

/// Times of the request of bytes that came at `at`, and were read with a delay, if the kernel has timed them.
fn arrival_of(flight: &Flight, at: Nanos, read_delay: Option<Nanos>) -> StreamArrival {
    StreamArrival {
        intended: flight.intended,
        ready: flight.ready,
        sent: flight.sent,
        first_byte: flight.first_byte.unwrap_or(at),
        piece: PieceArrival { at, read_delay },
    }
}

/// Gives an exchange back its buffer of events.
fn give_back(arrived: Option<ArrivedEvents>, exchange: &mut impl FlowExchange) {
    if let (Some(arrived), Some(place)) = (arrived, exchange.arrived()) {
        *place = arrived;
    }
}
