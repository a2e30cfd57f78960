//! `/drip`: a slow body.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use weir_base::Nanos;
use weir_machine::timer::{Sleep, Timer};
use weir_server::BodyError;

/// Body whose bytes come evenly over a time; the last one comes at its end.
pub(super) struct DripBody {
    timer: Timer,
    page: Bytes,
    steps: DripSchedule,
    begin: Nanos,
    step: u64,
    sent: u64,
    wait: Option<Sleep>,
}

/// Steps of a body: bytes and due times.
#[derive(Clone, Copy, Debug)]
struct DripSchedule {
    bytes: u64,
    length: Nanos,
    count: u64,
}

impl DripBody {
    /// Body of `bytes` of the repeated page, over `length` from `begin`.
    pub(super) fn new(timer: &Timer, page: &Bytes, bytes: u64, begin: Nanos, length: Nanos) -> Self {
        let steps = DripSchedule::new(bytes, length);
        Self { timer: timer.clone(), page: page.clone(), steps, begin, step: 0, sent: 0, wait: None }
    }
}

impl DripSchedule {
    /// One step per byte, but at least 1 ms each.
    fn new(bytes: u64, length: Nanos) -> Self {
        Self { bytes, length, count: bytes.min(length.as_millis()).max(1) }
    }

    /// Number of bytes sent after a step.
    fn bytes_after(&self, step: u64) -> u64 {
        self.prorate(self.bytes, step)
    }

    /// Due time of a step, from the start.
    fn due(&self, step: u64) -> Nanos {
        Nanos(self.prorate(self.length.0, step))
    }

    fn prorate(&self, whole: u64, step: u64) -> u64 {
        (u128::from(whole) * u128::from(step.min(self.count)) / u128::from(self.count)) as u64
    }
}

impl http_body::Body for DripBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        while this.sent < this.steps.bytes {
            if let Some(wait) = &mut this.wait {
                ready!(Pin::new(wait).poll(cx));
                this.wait = None;
            }
            let owed = this.steps.bytes_after(this.step) - this.sent;
            if owed > 0 {
                let from = (this.sent % this.page.len() as u64) as usize;
                let part = owed.min((this.page.len() - from) as u64);
                this.sent += part;
                return Poll::Ready(Some(Ok(Frame::data(this.page.slice(from..from + part as usize)))));
            }
            this.step += 1;
            this.wait = Some(this.timer.sleep_until(this.begin + this.steps.due(this.step)));
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.sent == self.steps.bytes
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.steps.bytes - self.sent)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ten_bytes_in_two_seconds_are_one_each_fifth_of_a_second() {
        let steps = DripSchedule::new(10, Nanos::from_secs(2));
        let plan: Vec<_> = (0..=10).map(|step| (steps.bytes_after(step), steps.due(step).as_millis_f64())).collect();
        assert_eq!(plan[..3], [(0, 0.0), (1, 200.0), (2, 400.0)]);
        assert_eq!(plan[10], (10, 2000.0));
    }

    proptest! {
        #[test]
        fn bytes_come_evenly_and_all_of_them_at_the_end(bytes in 1_u64..=1 << 40, ms in 0_u64..=600_000, at in 0.0..1.0) {
            let steps = DripSchedule::new(bytes, Nanos::from_millis(ms));
            prop_assert!(steps.count <= bytes && steps.count <= ms.max(1));
            prop_assert_eq!(steps.bytes_after(steps.count), bytes);
            prop_assert_eq!(steps.due(steps.count), Nanos::from_millis(ms));
            let step = (at * steps.count as f64) as u64;
            let even = bytes as f64 * step as f64 / steps.count as f64;
            prop_assert!((steps.bytes_after(step) as f64 - even).abs() <= 1.0 + even * 1e-9);
            prop_assert!(steps.bytes_after(step) < steps.bytes_after(step + 1));
            prop_assert!(ms == 0 || steps.due(step) < steps.due(step + 1));
        }
    }
}
