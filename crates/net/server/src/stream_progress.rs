//! Progress of one HTTP/2 stream. The timeouts of a connection do not serve: any frame, of another stream or of none,
//! would give it more time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};

use slab::Slab;

use super::coarse_clock::CoarseClock;
use crate::timeouts::{TimeoutKind, Timeouts};
use crate::transfer_pace::{PaceRule, TransferPace};
use weir_base::Nanos;

/// Pace of a stream's request body and response, and its end when one is too slow.
#[derive(Debug)]
pub(super) struct StreamProgress {
    coarse_clock: CoarseClock,
    body: Cell<TransferPace>,
    write: Cell<TransferPace>,
    /// Whether it is a call of gRPC, whose messages may take turns with long pauses.
    is_grpc: bool,
    has_response: Cell<bool>,
    is_cut: Cell<bool>,
    task: RefCell<Option<Waker>>,
}

impl StreamProgress {
    pub(super) fn new(coarse_clock: CoarseClock, is_grpc: bool) -> Self {
        Self {
            coarse_clock,
            body: Cell::default(),
            write: Cell::default(),
            is_grpc,
            has_response: Cell::new(false),
            is_cut: Cell::new(false),
            task: RefCell::default(),
        }
    }

    /// Records that the service waits for more of the request's body.
    pub(super) fn wants_body(&self) {
        let now = self.coarse_clock.now();
        update(&self.body, |body| body.wait(now));
    }

    /// Records received bytes of the body, which end the wait.
    pub(super) fn received(&self, bytes: usize) {
        let now = self.coarse_clock.now();
        update(&self.body, |body| {
            body.record_moved(now, bytes as u64);
            body.stop_waiting(now);
        });
    }

    /// Records that the service waits no longer for the body.
    pub(super) fn has_body(&self) {
        let now = self.coarse_clock.now();
        update(&self.body, |body| body.stop_waiting(now));
    }

    /// Records that the response begins.
    pub(super) fn set_responding(&self) {
        self.has_response.set(true);
    }

    /// Records a part of the response: until the next one is requested, the peer's window has no room for it.
    pub(super) fn sending(&self, bytes: usize) {
        let now = self.coarse_clock.now();
        update(&self.write, |write| {
            write.record_moved(now, bytes as u64);
            write.wait(now);
        });
        // In a stream of both directions one that moves is enough.
        update(&self.body, |body| body.record_moved(now, bytes as u64));
    }

    /// Records that the last part is on its way.
    pub(super) fn sent(&self) {
        let now = self.coarse_clock.now();
        update(&self.write, |write| write.stop_waiting(now));
    }

    /// Timeout that has expired by these limits; to be called regularly.
    pub(super) fn expired(&self, now: Nanos, limits: &Timeouts) -> Option<TimeoutKind> {
        if self.is_cut() {
            return None;
        }
        let body_pace = if self.is_grpc && self.has_response.get() {
            PaceRule { stall: limits.tunnel, min_bytes_per_s: 0 }
        } else {
            limits.body_pace()
        };
        if update(&self.write, |write| write.is_expired(now, limits.write_pace())) {
            Some(TimeoutKind::Write)
        } else if update(&self.body, |body| body.is_expired(now, body_pace)) {
            Some(TimeoutKind::Body)
        } else {
            None
        }
    }

    /// Ends the stream: its task drops all that it holds, which resets it.
    pub(super) fn cut(&self) {
        self.is_cut.set(true);
        if let Some(task) = self.task.take() {
            task.wake();
        }
    }

    /// Whether this end has ended the stream.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.get()
    }

    /// Sets the task to wake.
    pub(super) fn set_task(&self, cx: &Context<'_>) {
        let mut task = self.task.borrow_mut();
        if !task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
            *task = Some(cx.waker().clone());
        }
    }
}

fn update<T>(pace: &Cell<TransferPace>, change: impl FnOnce(&mut TransferPace) -> T) -> T {
    let mut changed = pace.get();
    let result = change(&mut changed);
    pace.set(changed);
    result
}

/// Open streams of a connection.
#[derive(Debug, Default)]
pub(super) struct OpenStreams(RefCell<Slab<Rc<StreamProgress>>>);

impl OpenStreams {
    /// Adds a stream; the key removes it.
    pub(super) fn add(&self, stream: Rc<StreamProgress>) -> usize {
        self.0.borrow_mut().insert(stream)
    }

    pub(super) fn remove(&self, key: usize) {
        self.0.borrow_mut().try_remove(key);
    }

    pub(super) fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Records bytes that the peer has taken from the system's buffer while that has no room for more: streams wait for
    /// it, and each has an equal part.
    pub(super) fn record_drained(&self, now: Nanos, bytes: u64) {
        let streams = self.0.borrow();
        let waiting = || streams.iter().filter(|(_, stream)| stream.write.get().is_waiting());
        let part = bytes.checked_div(waiting().count() as u64).filter(|part| *part > 0);
        for (_, stream) in waiting().take_while(|_| part.is_some()) {
            update(&stream.write, |write| write.record_moved(now, part.unwrap_or_default()));
        }
    }

    /// Ends the streams whose timeouts have expired, and reports each.
    pub(super) fn cut_expired(&self, now: Nanos, limits: &Timeouts, mut report: impl FnMut(TimeoutKind)) {
        for (_, stream) in &*self.0.borrow() {
            if let Some(expired) = stream.expired(now, limits) {
                stream.cut();
                report(expired);
            }
        }
    }
}
