//! Slots of one key of a limiter, for the attempts of a call.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use http::response::Parts;
use weir::base::Nanos;
use weir::call::attempt_rate::{AttemptRate, RateSlot, SlotEnd, SlotFuture};
use weir::delivery::limit_headers::RateLimitHeaders;
use weir::delivery::limiter::{ResponseReport, SlotEvent};
use weir::limiter::{Limiter, Look, SlotId, StoreTrouble, TicketId};
use weir::machine::clock;
use weir::machine::timer::Timer;
use weir::retry::retry_after::service_clock;

use super::own::OwnLimiter;

/// Limiter and key of a call.
#[derive(Clone)]
pub(crate) struct RateKey {
    pub(crate) limiter: Arc<OwnLimiter>,
    pub(crate) key: String,
}

/// Slots of a key, for a call on this event loop.
pub(crate) struct KeyedRate<'a> {
    pub(crate) rate_key: &'a RateKey,
    pub(crate) timer: &'a Timer,
}

impl std::fmt::Debug for KeyedRate<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyedRate").finish_non_exhaustive()
    }
}

impl AttemptRate for KeyedRate<'_> {
    fn slot(&self) -> SlotFuture<'_> {
        Box::pin(async {
            let place = PlaceInLine::join(self.rate_key)?;
            loop {
                let wait = match place.look()? {
                    Ok(slot) => return Ok(slot),
                    Err(wait) => wait,
                };
                let mut late = pin!(self.timer.sleep(wait.min(Nanos::from_secs(3600))));
                poll_fn(|cx| match place.poll_woken(cx) {
                    Poll::Ready(()) => Poll::Ready(()),
                    Poll::Pending => late.as_mut().poll(cx),
                })
                .await;
            }
        })
    }

    fn free_slot(&self) -> Option<Box<dyn RateSlot>> {
        PlaceInLine::join(self.rate_key).ok()?.look().ok()?.ok()
    }
}

/// Place of a task in the line of a key; left when dropped without a slot.
struct PlaceInLine<'a> {
    limiter: &'a Arc<OwnLimiter>,
    ours: &'a Limiter,
    ticket: TicketId,
}

impl<'a> PlaceInLine<'a> {
    fn join(rate_key: &'a RateKey) -> Result<Self, String> {
        let limiter = &rate_key.limiter;
        let ours = limiter.ours().ok_or("the limiter belongs to the process before the fork")?;
        let ticket = ours.join(&rate_key.key, 1);
        limiter.begin_wait(ticket);
        Ok(Self { limiter, ours, ticket })
    }

    /// The slot, or the time until the next look.
    fn look(&self) -> Result<Result<Box<dyn RateSlot>, Nanos>, String> {
        let (look, wakes) = self.ours.look(self.ticket).map_err(|trouble| trouble_text(&trouble))?;
        self.limiter.wake(wakes);
        Ok(match look {
            Look::Taken(slot) => Ok(Box::new(KeyedSlot { limiter: Arc::clone(self.limiter), slot: Some(slot) })),
            Look::Wait { wait, .. } => Err(wait),
        })
    }

    fn poll_woken(&self, cx: &mut std::task::Context<'_>) -> Poll<()> {
        self.limiter.poll_wait(self.ticket, cx)
    }
}

impl Drop for PlaceInLine<'_> {
    fn drop(&mut self) {
        self.limiter.end_wait(self.ticket);
        // Without effect on a ticket whose slot is taken.
        self.limiter.wake(self.ours.cancel(self.ticket));
    }
}

fn trouble_text(trouble: &StoreTrouble) -> String {
    format!("rate limit: {trouble}")
}

/// Slot of an attempt.
struct KeyedSlot {
    limiter: Arc<OwnLimiter>,
    slot: Option<SlotId>,
}

impl std::fmt::Debug for KeyedSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyedSlot").field("slot", &self.slot).finish_non_exhaustive()
    }
}

impl KeyedSlot {
    fn end_by(&mut self, event: SlotEvent) {
        if let (Some(slot), Some(limiter)) = (self.slot.take(), self.limiter.ours()) {
            self.limiter.wake(limiter.end(&slot, event));
        }
    }
}

impl RateSlot for KeyedSlot {
    fn end(mut self: Box<Self>, end: SlotEnd<'_>) {
        self.end_by(match end {
            SlotEnd::Responded(head) => SlotEvent::Responded(Some(report(head))),
            SlotEnd::Unsent => SlotEvent::Unsent,
            SlotEnd::Abandoned => SlotEvent::Abandoned,
        });
    }
}

impl Drop for KeyedSlot {
    fn drop(&mut self) {
        self.end_by(SlotEvent::Abandoned);
    }
}

/// Status and limits of a response.
fn report(head: &Parts) -> ResponseReport {
    let text = |value: &http::HeaderValue| value.to_str().ok().map(str::to_owned);
    let date = head.headers.get(http::header::DATE).and_then(text);
    let now = service_clock(date.as_deref(), clock::wall());
    let all = head.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    ResponseReport { status: head.status.as_u16(), headers: RateLimitHeaders::read(all, now) }
}
