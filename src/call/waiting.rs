//! A call's wait for a place.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::places::{Places, Told};
use crate::decide::Nanos;
use crate::decide::admit::{Refusal, Ticket, Why};
use crate::machine::clock::Clock;
use crate::machine::timer::Timer;

/// A call that waits for a place; dropped, it does not want it any more.
#[derive(Debug)]
pub(super) struct Waiting {
    places: Arc<Places>,
    ticket: Ticket,
    told: oneshot::Receiver<Told>,
    clock: Clock,
    since: Nanos,
    look_at: Nanos,
}

impl Waiting {
    pub(super) fn new(
        places: Arc<Places>,
        ticket: Ticket,
        told: oneshot::Receiver<Told>,
        clock: Clock,
        since: Nanos,
        look_at: Nanos,
    ) -> Self {
        Self { places, ticket, told, clock, since, look_at }
    }

    /// Until there is a place, or it has waited for too long.
    pub(super) async fn ends(mut self, timer: &Timer) -> Told {
        loop {
            let told = tokio::select! {
                biased;
                told = &mut self.told => told,
                () = timer.sleep_until(self.look_at), if self.look_at < Nanos::NEVER => match self.places.overdue(timer.clock(), timer.now(), self.ticket) {
                    Some(Ok(look_at)) => {
                        self.look_at = look_at;
                        continue;
                    }
                    Some(Err(refusal)) => return Err(refusal),
                    // Another thread has decided, and is about to tell.
                    None => (&mut self.told).await,
                },
            };
            let mut told = told.unwrap_or(Err(Refusal { why: Why::Waited, retry_after: Nanos::SECOND }));
            if let Ok(place) = &mut told {
                place.begin(timer.clock(), timer.now());
            }
            return told;
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.places.withdraw(self.ticket, self.clock.now() - self.since);
    }
}
